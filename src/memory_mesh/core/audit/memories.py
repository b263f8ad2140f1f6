"""Compare a memory and its history with what its blocks sealed.

The history is walked back from the current revision: each row has the values that a revision replaced. So the content and the
columns of every revision can be compared with the block of that revision.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

from memory_mesh.core.audit.seals import block_digest, content_hash
from memory_mesh.core.audit.verify import sealed_content
from memory_mesh.core.claims import Claim
from memory_mesh.core.model import Block, Memory, Row, change_id


@dataclass(frozen=True, slots=True)
class Fault:
    """A memory that differs from what a block sealed, and how."""

    block: Block
    reason: str


def memory_fault(row: Row, history: Sequence[Row], blocks: Sequence[Block]) -> Fault | None:
    """Return the first difference, from the current revision back; `blocks` are those of this memory, of every chain."""
    memory, sealed = Memory.of(row), _by_revision(blocks)
    if not sealed:
        erased = (block for block in blocks if (block.metadata or {}).get("action") == "erase")
        return next((Fault(block, f"{memory.id} was erased, but is stored") for block in erased), None)
    latest = sealed[max(sealed)][0][0]
    if max(sealed) > memory.revision:
        return Fault(latest, f"{memory.id} is at revision {memory.revision}, but a later one was sealed")
    if reason := _history_fault(memory, history):
        return Fault(latest, reason)
    # Earlier versions did not write a block for every revision.
    since = min((block.memory_revision or 0 for block in blocks if block.digest and block.memory_revision), default=None)
    for revision, change in _revisions(memory, history):
        found = sealed.get(revision.revision, [])
        if not found and since is not None and revision.revision > since:
            return Fault(latest, f"revision {revision.revision} of {memory.id} was not sealed")
        faults = (Fault(block, reason) for block, hash_ in found if (reason := _revision_fault(revision, change, block, hash_)))
        if fault := next(faults, None):
            return fault
    reason = _derived_fault(row, memory)
    return Fault(latest, reason) if reason else None


def _derived_fault(row: Row, memory: Memory) -> str | None:
    """Compare columns that are not sealed with those that they follow from. By them a read finds a memory, or does not."""
    if row.partition != memory.partition:
        return f"{memory.id} is stored in a partition of another scope"
    claim = Claim.of(memory)
    if memory.claim_key != (claim.key if claim else None):
        return f"the claim_key of {memory.id} is not that of its claim"
    return None


def _by_revision(blocks: Sequence[Block]) -> dict[int, list[tuple[Block, str]]]:
    """Return the blocks with the hash of the content that they sealed, by revision of the memory."""
    sealed: dict[int, list[tuple[Block, str]]] = {}
    for block in blocks:
        if content := sealed_content(block.yamo_text):
            sealed.setdefault(content[0], []).append((block, content[1]))
    return sealed


def _history_fault(memory: Memory, history: Sequence[Row]) -> str | None:
    expected = {change_id(memory.id, number): number for number in range(2, memory.revision + 1)}
    found = {row.id: row.number for row in history}
    if missing := expected.keys() - found.keys():
        return f"the history of {memory.id} lacks revision {min(expected[id_] for id_ in missing)}"
    if found != expected or len(history) != len(expected):
        return f"the history of {memory.id} has rows that were never written"
    known = {field.name for field in fields(memory)}
    unreadable = (row for row in history if not known.issuperset(_before(row)))
    return next((f"the history of {memory.id} cannot be read at revision {row.number}" for row in unreadable), None)


def _revisions(memory: Memory, history: Sequence[Row]) -> Iterator[tuple[Memory, Row | None]]:
    """Yield each revision of a memory with the history row that it was written with, the current one first."""
    for change in sorted(history, key=lambda row: row.number, reverse=True):
        yield memory, change
        memory = replace(memory, **{**_before(change), "revision": change.number - 1})  # type: ignore[arg-type]
    yield memory, None


def _before(change: Row) -> dict[str, object]:
    before = change.value("before")
    return dict(before) if isinstance(before, dict) else {} if before is None else {"": before}


def _revision_fault(memory: Memory, change: Row | None, block: Block, hash_: str) -> str | None:
    if content_hash(memory.salt or "", memory.content) != hash_:
        return f"the content of {memory.id} (revision {memory.revision}) differs from what was sealed"
    if block.digest is not None and block_digest(block, memory, change) != block.digest:
        return f"the columns or the history of {memory.id} (revision {memory.revision}) differ from what was sealed"
    return None
