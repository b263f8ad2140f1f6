"""Sign the heads of audit chains, and check the signatures when a chain is verified."""

from dataclasses import replace

from memory_mesh.core import audit
from memory_mesh.core.audit import ERASED, Broken, Verdict
from memory_mesh.core.audit.signing import Keys, KeyWalk, SigningKey, key_of
from memory_mesh.core.errors import SettingsError
from memory_mesh.core.model import Block, Head, Kind, all_of, equals
from memory_mesh.flows.context import Context


def writer_key(context: Context, chain: str, head: Head | None) -> SigningKey | None:
    """Return the key that signs the next block of a chain: that of its head, if we have it, else the current one.

    The first durable write creates the key. Searches do not: a chain of searches is not signed before that.
    """
    if context.signing is None:
        return None
    keys = context.signing.by_id()
    if not keys and audit.of_recalls(chain):
        return None
    if known := keys.get((head.key_id if head else None) or ""):
        return known
    context.file.check_writable()
    return context.signing.current()


def signed(context: Context, key: SigningKey | None, before: Head | None, newer: Head) -> Head:
    """Return the new head with its signature; without one if the head before it lacks a valid signature. Otherwise the new
    signature would hide blocks that were appended without the key."""
    if key is None:
        return newer
    if before is None or key.has_signed(before) or (before.key_id != key.id and is_signed(context, before)):
        return key.signed(newer)
    return replace(newer, key_id=key.id, signature=None)


def is_signed(context: Context, head: Head) -> bool:
    """Return whether a head has the signature that its chain requires, as far as our keys can tell."""
    keys = context.signing.by_id() if context.signing else {}
    if key := keys.get(head.key_id or ""):
        return key.has_signed(head)
    last = context.store.find(Kind.BLOCK, all_of(equals("chain", head.id), equals("number", head.number)), limit=1)
    blocks = [Block.of(row) for row in last]
    return all(block.yamo_text != ERASED and key_of(block) not in keys for block in blocks)


def key_walk(context: Context, chain: str) -> KeyWalk:
    """Return a walk that checks the keys of a chain. It creates no key."""
    if context.signing is None:
        return KeyWalk(chain, {}, "this store has no key file")
    try:
        keys: Keys = context.signing.by_id()
    except SettingsError as error:
        return KeyWalk(chain, {}, str(error))
    return KeyWalk(chain, keys, "" if keys else f"there is no key file {context.signing.place}")


def with_signature(walk: KeyWalk, verdict: Verdict, head: Head | None) -> Verdict:
    """Return the verdict on a chain with the state of its signature; a wrong signature breaks a chain that is sound otherwise."""
    if isinstance(verdict, Broken):
        return verdict
    found = walk.end(head)
    return found if isinstance(found, Broken) else replace(verdict, signature=found)
