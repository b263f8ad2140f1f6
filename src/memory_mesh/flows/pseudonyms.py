"""The key behind pseudonyms: a store remembers which one it was written with, so that a lost key is noticed, not replaced.

Under another key the same person would become another one, silently.
"""

from collections.abc import Callable
from hashlib import sha256

from memory_mesh.core.errors import SettingsError
from memory_mesh.core.model import Meta, iso
from memory_mesh.core.ports import Store
from memory_mesh.flows.context import Plan, write_plan

_META = "pseudonym_key"


def key_id(key: bytes) -> str:
    """What may be told of a key."""
    return sha256(b"memory-mesh pseudonym key " + key).hexdigest()[:16]


def known_key(store: Store) -> str | None:
    """The id of the key that the store's pseudonyms were made with."""
    known = Meta.read(store, _META).detail.get("key_id")
    return str(known) if known else None


def trouble(store: Store, key: bytes | None) -> str | None:
    """What is wrong with a key for this store, or None."""
    known = known_key(store)
    if known is None:
        return None
    if key is None:
        return "the pseudonym key of this store is lost"
    return None if key_id(key) == known else "the pseudonym key is not the one this store was written with"


def check(store: Store, key: bytes | None) -> None:
    """Refuse a key that is not the store's."""
    if wrong := trouble(store, key):
        remedy = "restore pseudonym.key of the home folder from a backup; under another key the same person becomes another"
        raise SettingsError(wrong, remedy=remedy)


def vouch(store: Store, key: bytes, ms: int, pause: Callable[[int], None]) -> None:
    """Record in the store the key that it is written with from now on. Raise `SettingsError` if it has another."""

    def decide() -> Plan[None]:
        meta = Meta.read(store, _META)
        return Plan(None, [] if meta.detail.get("key_id") else [meta.row({"key_id": key_id(key)}, at=iso(ms))])

    write_plan(store, decide, pause=pause)
    check(store, key)  # another process may have been first
