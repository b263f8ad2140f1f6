"""The guard: whether the store can be read, and its chains end as they were sealed. Where it finds damage, no job runs."""

from collections.abc import Sequence

from memory_mesh.core import audit
from memory_mesh.core.audit import Broken, Verdict
from memory_mesh.core.errors import StoreCorrupt
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.records import Block, Head
from memory_mesh.core.model.where import Compare, all_of, equals
from memory_mesh.flows import audit as trail
from memory_mesh.flows.context import Context

_TAIL = 100  # blocks of each chain; `verify` walks all of them
_ATTEMPTS = 5


def guard(context: Context) -> str:
    """What was looked at; `StoreCorrupt` where something is wrong."""
    memories = context.store.count(Kind.MEMORY, equals("user_id", context.reader.user_id))
    ends = trail.heads(context)
    for chain in [*(head.id for head in ends), *_headless(context, ends)]:
        if broken := _broken(context, chain):
            raise StoreCorrupt(
                f"block {broken.number} of the chain {broken.chain}: {broken.reason}", remedy="run memory-mesh audit verify"
            )
    return f"{memories} memories, {len(ends)} chains"


def _headless(context: Context, ends: Sequence[Head]) -> list[str]:
    """A chain that has blocks and lost its head."""
    unnamed = trail.of_none(head.id for head in ends)
    found = context.store.find(Kind.BLOCK, all_of(equals("user_id", context.reader.user_id), unnamed), limit=1)
    return [Block.of(row).chain for row in found]


def _broken(context: Context, chain: str) -> Broken | None:
    """A break at the end of a chain. Others may write between two reads, so it counts only if the chain stands still."""
    for attempt in range(_ATTEMPTS):
        before = _head(context, chain)
        verdict = _tail(context, chain, before)
        if not isinstance(verdict, Broken):
            return None
        if _head(context, chain) == before:
            return verdict
        context.pause(attempt)
    return None


def _tail(context: Context, chain: str, head: Head | None) -> Verdict:
    last = head.number if head else 0
    blocks = trail.blocks(context, chain, Compare("number", ">", last - _TAIL))
    # Of a chain of searches the first blocks may be gone behind a checkpoint; `verify` looks whether they may.
    if blocks and blocks[0].number > max(1, last - _TAIL + 1) and not audit.of_recalls(chain):
        return Broken(chain, blocks[0].number - 1, None, "it is missing")
    return audit.verify_tail(chain, blocks, head)


def _head(context: Context, chain: str) -> Head | None:
    row = context.store.get(Kind.HEAD, [chain]).get(chain)
    return Head.of(row) if row else None
