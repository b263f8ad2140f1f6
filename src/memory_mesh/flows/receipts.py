"""Idempotency keys: a receipt, written with the memory, records the key and the request, so that a repeated call stores once."""

import json
from hashlib import sha256

from memory_mesh.core import model
from memory_mesh.core.errors import InvalidInput, KeyReused, shown
from memory_mesh.core.model import Kind, Receipt, Row, iso
from memory_mesh.flows.context import Context


def receipt_id(context: Context, key: str | None, *position: int) -> str | None:
    """Return the id of a key's receipt; None without a key.

    It differs by agent, session and position in a batch: else a session could find out the keys and texts of another.
    """
    if key is None:
        return None
    if not isinstance(key, str) or not key.strip():
        raise InvalidInput(f"idempotency_key is {shown(key)}", expected="a non-empty text")
    reader = context.reader
    session = [] if reader.session_id is None else [[reader.session_id]]
    parts = [reader.user_id, reader.agent_id, *session, key, *position]
    return "receipt_" + sha256(json.dumps(parts).encode()).hexdigest()


def request_hash(*parts: object) -> str:
    """Return a hash of a request, by which another request under the same key is detected."""
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def replayed_id(receipt: Receipt, request: str) -> str:
    """Return the id of the memory that a key stored. Raise `KeyReused` if the request was another one or is erased."""
    if receipt.request is None:
        raise KeyReused("the memory stored under this idempotency_key has been erased", remedy="use a new key to store it again")
    if receipt.request != request:
        raise KeyReused("this idempotency_key was used for another request", remedy="use a new key for a new request")
    return receipt.ref


def find_replayed(context: Context, key: str | None, request: str, *position: int) -> str | None:
    """Return the id of the memory that an earlier call with this key stored; None for a first call."""
    id_ = receipt_id(context, key, *position)
    row = context.store.get(Kind.RECEIPT, [id_]).get(id_) if id_ else None
    return replayed_id(Receipt.of(row), request) if row else None


def receipt_rows(context: Context, key: str | None, memory_id: str, request: str, *position: int) -> list[Row]:
    """Return the receipt of a call, to be written in the same transaction; empty without a key."""
    id_ = receipt_id(context, key, *position)
    if id_ is None:
        return []
    receipt = Receipt(id=id_, created_at=iso(context.clock()), ref=memory_id, request=request)
    return [receipt.row(model.partition(context.reader.user_id, context.reader.agent_id))]
