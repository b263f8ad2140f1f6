"""Health checks: whether the models answer, and whether the pseudonym key is the one that the store was written with.

A store records the id of its pseudonym key. A lost key is reported, never replaced: with another key, the same person would get
another pseudonym.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from memory_mesh.core.errors import MemoryMeshError, SettingsError
from memory_mesh.core.model import Meta, iso
from memory_mesh.core.ports import Store
from memory_mesh.flows.context import Context, Plan, write_plan
from memory_mesh.flows.embed import embed_texts

_PSEUDONYM_KEY = "pseudonym_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result of checking one model."""

    part: str  # language model, embedder
    model: str | None = None  # None: not configured
    ok: bool = True
    detail: str
    remedy: str = ""


def check_models(context: Context) -> tuple[Checked, ...]:
    """Send one short request to the language model and one to the embedder."""
    return _check_chat(context), _check_embedder(context)


def _check_chat(context: Context) -> Checked:
    from memory_mesh.core.prompts.answers import build_check_prompt, read_check_reply

    part = "language model"
    if context.chat is None:
        return Checked(part=part, detail="none is set; memories are stored and found without one")
    began = context.clock()
    try:
        reply = context.chat.reply(build_check_prompt())
        read_check_reply(reply)
    except MemoryMeshError as error:
        return _failed(part, context.chat.model, error)
    used = f"{reply.tokens.sent} tokens sent, {reply.tokens.received} received"
    return Checked(part=part, model=context.chat.model, detail=f"answers as requested, in {context.clock() - began} ms, {used}")


def _check_embedder(context: Context) -> Checked:
    if context.embedder is None:
        return Checked(part="embedder", detail="none is set; memories are found by keywords")
    began = context.clock()
    try:
        vector = embed_texts(context.embedder, ["a sign of life"])[0]
    except MemoryMeshError as error:
        return _failed("embedder", context.embedder.model, error)
    detail = f"returns {vector.dimension} numbers, in {context.clock() - began} ms"
    return Checked(part="embedder", model=context.embedder.model, detail=detail)


def _failed(part: str, model: str, error: MemoryMeshError) -> Checked:
    expected = f"; expected {error.expected}" if error.expected else ""
    return Checked(part=part, model=model, ok=False, detail=error.what + expected, remedy=error.remedy)


# --- the pseudonym key ---


def stored_key_id(store: Store) -> str | None:
    """Return the id of the key that the store's pseudonyms were made with."""
    id_ = Meta.read(store, _PSEUDONYM_KEY).detail.get("key_id")
    return str(id_) if id_ else None


def pseudonym_key_error(store: Store, key: bytes | None) -> str | None:
    """Return what is wrong with a key for this store, or None."""
    stored = stored_key_id(store)
    if stored is None:
        return None
    if key is None:
        return "the pseudonym key of this store is lost"
    return None if _key_id(key) == stored else "the pseudonym key is not the one this store was written with"


def check_pseudonym_key(store: Store, key: bytes | None) -> None:
    """Raise `SettingsError` if the key is not the store's."""
    if error := pseudonym_key_error(store, key):
        remedy = "restore pseudonym.key of the home folder from a backup: another key gives the same person another pseudonym"
        raise SettingsError(error, remedy=remedy)


def record_pseudonym_key(store: Store, key: bytes, ms: int, pause: Callable[[int], None]) -> None:
    """Record the id of the key in a store that has none yet. Raise `SettingsError` if the store has another."""

    def decide() -> Plan[None]:
        meta = Meta.read(store, _PSEUDONYM_KEY)
        return Plan(None, [] if meta.detail.get("key_id") else [meta.row({"key_id": _key_id(key)}, at=iso(ms))])

    write_plan(store, decide, pause=pause)
    check_pseudonym_key(store, key)  # another process may have recorded its key first


def _key_id(key: bytes) -> str:
    """Return a hash of the key, which may be public."""
    return sha256(b"memory-mesh pseudonym key " + key).hexdigest()[:16]
