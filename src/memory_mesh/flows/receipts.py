"""Idempotency keys: a call repeated under its key stores once. What a key stored stands in a receipt, written with it."""

import json
from hashlib import sha256

from memory_mesh.core.errors import InvalidInput, KeyReused, shown
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.records import Receipt
from memory_mesh.core.model.rows import Row
from memory_mesh.core.model.scope import partition
from memory_mesh.core.model.times import iso
from memory_mesh.flows.context import Context


def receipt_id(context: Context, key: str | None, *place: int) -> str | None:
    """The id under which a key's receipt is kept: keys of two agents never meet, nor those of two places in a batch."""
    if key is None:
        return None
    if not isinstance(key, str) or not key.strip():
        raise InvalidInput(f"idempotency_key is {shown(key)}", expected="a non-empty text")
    return "receipt_" + sha256(json.dumps([context.reader.user_id, context.reader.agent_id, key, *place]).encode()).hexdigest()


def request(*parts: object) -> str:
    """What a call asked for, so that another call under the same key is noticed."""
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def stored(receipt: Receipt, asked: str) -> str:
    """The memory that a key stored, if it is repeated for the same request."""
    if receipt.request is None:
        raise KeyReused("what this idempotency_key stored has been erased", remedy="use a new key to store it again")
    if receipt.request != asked:
        raise KeyReused("this idempotency_key stands for another request", remedy="use a new key for a new request")
    return receipt.ref


def repeated(context: Context, key: str | None, asked: str) -> bool:
    """Whether this call was made before."""
    id_ = receipt_id(context, key)
    held = context.store.get(Kind.RECEIPT, [id_]) if id_ else {}
    return bool(held) and bool(stored(Receipt.of(held[str(id_)]), asked))


def rows(context: Context, key: str | None, memory_id: str, asked: str) -> list[Row]:
    """The receipt of a call, to be written with what it did."""
    id_ = receipt_id(context, key)
    if id_ is None:
        return []
    kept = Receipt(id=id_, created_at=iso(context.clock()), ref=memory_id, request=asked)
    return [kept.row(partition(context.reader.user_id, context.reader.agent_id))]
