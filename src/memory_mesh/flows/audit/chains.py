"""Append signed blocks to the audit chains, and read the blocks of a chain in order."""

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from memory_mesh.core import audit
from memory_mesh.core.audit import ERASED, Broken, Entry, Seal, Verdict
from memory_mesh.core.audit.blocks import retain, seal_old
from memory_mesh.core.audit.chain import Keys, SigningKey
from memory_mesh.core.audit.signing import KeyWalk, key_of
from memory_mesh.core.errors import SettingsError, StoreCorrupt
from memory_mesh.core.model import (
    ANYTHING,
    Block,
    Compare,
    Head,
    In,
    Kind,
    Memory,
    Row,
    Where,
    all_of,
    equals,
    iso,
)
from memory_mesh.flows.context import Context, read_once

# --- signatures ---


def writer_key(context: Context, chain: str, head: Head | None) -> SigningKey | None:
    """Return the key that signs the next block of a chain: that of its head, if we have it, else
    the current one.

    The first durable write creates the key. Searches do not: a chain of searches is not signed
    before that.
    """
    if context.files.signing is None:
        return None
    keys = context.files.signing.by_id()
    if not keys and audit.of_recalls(chain):
        return None
    if known := keys.get((head.key_id if head else None) or ""):
        return known
    context.file.check_writable()
    return context.files.signing.current()


def signed(context: Context, key: SigningKey | None, before: Head | None, newer: Head) -> Head:
    """Return the new head with its signature; without one if the head before it lacks a valid
    signature. Otherwise the new signature would hide blocks that were appended without the key."""
    if key is None:
        return newer
    if (
        before is None
        or key.has_signed(before)
        or (before.key_id != key.id and is_signed(context, before))
    ):
        return key.signed(newer)
    return replace(newer, key_id=key.id, signature=None)


def is_signed(context: Context, head: Head) -> bool:
    """Return whether a head has the signature that its chain requires, as far as our keys can
    tell."""
    keys = context.files.signing.by_id() if context.files.signing else {}
    if key := keys.get(head.key_id or ""):
        return key.has_signed(head)
    last = context.store.find(
        Kind.BLOCK, all_of(equals("chain", head.id), equals("number", head.number)), limit=1
    )
    blocks = [Block.of(row) for row in last]
    return all(block.yamo_text != ERASED and key_of(block) not in keys for block in blocks)


def key_walk(context: Context, chain: str) -> KeyWalk:
    """Return a walk that checks the keys of a chain. It creates no key."""
    if context.files.signing is None:
        return KeyWalk(chain, {}, "this store has no key file")
    try:
        keys: Keys = context.files.signing.by_id()
    except SettingsError as error:
        return KeyWalk(chain, {}, str(error))
    return KeyWalk(
        chain, keys, "" if keys else f"there is no key file {context.files.signing.place}"
    )


def with_signature(walk: KeyWalk, verdict: Verdict, head: Head | None) -> Verdict:
    """Return the verdict on a chain with the state of its signature; a wrong signature breaks a
    chain that is sound otherwise."""
    if isinstance(verdict, Broken):
        return verdict
    found = walk.end(head)
    return found if isinstance(found, Broken) else replace(verdict, signature=found)


# --- appending ---

_WINDOW = 2000  # blocks read at once: chains grow long
# The metadata that the block of a memory repeats: distillation looks for failures in blocks.
_METADATA_IN_BLOCK = ("status", "tags", "error_pattern")


def own_chain(context: Context) -> str:
    """Return the name of the reader's audit chain."""
    return audit.chain_name(context.reader.user_id, context.reader.agent_id)


def head_of(context: Context, chain: str) -> Head | None:
    """Return the head of an audit chain; None if it has none."""
    row = context.store.get(Kind.HEAD, [chain]).get(chain)
    return Head.of(row) if row else None


def new_entry(
    context: Context, operation: str, ms: int, write: Callable[[Seal], str], **more: Any
) -> Entry:
    """Return the audit entry of an operation, with a new id; `more` sets further fields."""
    return Entry(
        id=context.ids.new(f"yamo_{operation}", ms),
        operation_type=operation,
        ms=ms,
        write=write,
        **more,
    )


def retain_entry(
    context: Context, ms: int, memory: Memory, action: str, change: Row | None = None
) -> Entry:
    """Return the audit entry that records an action on a memory: add, observe, update, …"""
    repeated = {
        name: memory.metadata[name] for name in _METADATA_IN_BLOCK if name in memory.metadata
    }
    write = partial(
        retain,
        agent=str(context.reader.agent_id),
        memory_id=memory.id,
        memory_type=memory.memory_type,
        at=iso(ms),
        content=memory.content,
        hypothesis=str(memory.metadata.get("hypothesis") or "none"),
        action=action,
        revision=memory.revision,
    )
    return new_entry(
        context,
        "retain",
        ms,
        write,
        memory=memory,
        change=change,
        metadata={"action": action, **repeated},
    )


def audit_rows(
    context: Context,
    chain: str,
    entries: Sequence[Entry],
    *,
    head: Head | None = None,
    new_key: SigningKey | None = None,
) -> list[Row]:
    """Return the rows that append entries to an audit chain: the new head and the blocks.

    `head` is the head, if already read, and `new_key` the key to which the entries move the chain.
    """
    if not entries:
        return []
    head = head or head_of(context, chain)
    sealing = (
        [_sealing_entry(context, chain, head, entries[0].ms)] if head and head.seal is None else []
    )
    key = new_key or writer_key(context, chain, head)
    blocks, newer = audit.append(chain, head, [*sealing, *entries], key_id=key.id if key else None)
    # The head comes first: after a concurrent append, its revision is what conflicts.
    return [signed(context, key, head, newer).row(), *(block.row() for block in blocks)]


def _sealing_entry(context: Context, chain: str, head: Head, ms: int) -> Entry:
    """Return the entry that seals the blocks of an earlier version. They are verified first, and
    a break is recorded."""
    rows = audit.RowsDigest(chain)

    def counted() -> Iterator[Block]:
        for block in in_order(context, chain, head):
            rows.add(block)
            yield block

    try:
        old = counted()
        verdict = audit.verify_chain(chain, old, lambda: head)
        deque(old, maxlen=0)  # after a break, the rest is only counted
        found = (
            f"broken at block {verdict.number}, {verdict.reason}"
            if isinstance(verdict, audit.Broken)
            else "sound"
        )
        digest: str | None = rows.hexdigest()
    except StoreCorrupt as error:
        found, digest = f"unreadable, {error.what}", None
    write = partial(
        seal_old, agent=str(audit.owner_of(chain)[1]), at=iso(ms),
        last=(head.number, head.block_hash), count=rows.count, digest=digest, verdict=found,
    )  # fmt: skip
    operation = "recall" if audit.of_recalls(chain) else "retain"
    return new_entry(context, operation, ms, write, metadata={"action": "seal_old_blocks"})


def own_audit_rows(
    context: Context, entries: Sequence[Entry], data_version: Hashable = None
) -> list[Row]:
    """Return the rows that append the needed entries to the reader's own chain.

    With a data version, the head is read only if it was not read at that version.
    """
    chain, needed = own_chain(context), needed_entries(context, entries)
    known = needed and data_version is not None
    head = own_head(context, data_version) if known else None
    return audit_rows(context, chain, needed, head=head)


def own_head(context: Context, data_version: Hashable) -> Head | None:
    """Return the head of the reader's own chain, read only if it was not read at that version."""
    chain = own_chain(context)
    return read_once(context, data_version, (Kind.HEAD, chain), lambda: head_of(context, chain))


def needed_entries(context: Context, entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return the entries to append: all, or, if audit blocks are disabled, those of memories
    that have a block already. Without another one, their change would look like tampering."""
    if context.options.enable_yamo:
        return entries
    changed = tuple(entry.memory.id for entry in entries if entry.memory and entry.change)
    known = (
        {row.value("ref") for row in context.store.find(Kind.BLOCK, In("ref", changed))}
        if changed
        else set()
    )
    return [entry for entry in entries if entry.memory and entry.memory.id in known]


# --- reading ---


def blocks(context: Context, chain: str, where: Where = ANYTHING) -> list[Block]:
    """Return the blocks of a chain, the first block first."""
    rows = context.store.find(Kind.BLOCK, all_of(equals("chain", chain), where))
    return sorted((Block.of(row) for row in rows), key=lambda block: block.number)


def in_order(context: Context, chain: str, head: Head | None) -> Iterator[Block]:
    """Yield the blocks of a chain by number, a window at a time. A sound chain has no gap before
    its head; after a gap, the rest is read at once, and verification reports it."""
    count = context.store.count(Kind.BLOCK, equals("chain", chain))
    at = (head.number if head else count) - count + 1
    yield from blocks(context, chain, Compare("number", "<", at))
    while window := blocks(
        context, chain, all_of(Compare("number", ">=", at), Compare("number", "<", at + _WINDOW))
    ):
        yield from window
        at += _WINDOW
    yield from blocks(context, chain, Compare("number", ">=", at))
