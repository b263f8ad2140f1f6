"""Searches in the audit trail: each leaves a block in a chain of its own, written in groups while searches go on.

A crash loses the searches that still waited: one group, or more where others kept the store busy. What is older than its time
is removed behind a checkpoint, a block that names the last one removed.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from threading import Thread

from memory_mesh.core.audit import blocks as yamo_blocks
from memory_mesh.core.audit import chain as audit
from memory_mesh.core.audit.chain import Broken, Entry
from memory_mesh.core.audit.search_log import Recall, Recalls
from memory_mesh.core.checks import number
from memory_mesh.core.errors import StoreBusy, StoreClosed, StoreError, StoreReadOnly
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.records import Block, Head, SearchResult
from memory_mesh.core.model.rows import Key, Row
from memory_mesh.core.model.times import iso
from memory_mesh.core.model.where import Compare, all_of, equals
from memory_mesh.flows import audit as trail
from memory_mesh.flows.context import Context, Plan, commit, must_be_enabled, sealed

_log = logging.getLogger(__name__)

RETENTION_DAYS = 90
_DAY_MS = 86_400_000
_AT_ONCE = 1000  # blocks removed in one write


# --- writing ---


def note(context: Context, *, query: str, limit: int, filter: str | None, ms: int, answers: Sequence[SearchResult]) -> None:
    """A search was answered. It waits for nothing: its block is written later, by another thread or on closing."""
    if not (context.options.audit_recalls and context.options.enable_yamo and context.options.enable_memory):
        return
    recall = Recall(
        user_id=context.reader.user_id, agent_id=context.reader.agent_id, query=query, limit=limit, filter=filter, ms=ms,
        results=len(answers), top_score=max((answer.score for answer in answers), default=0.0),
    )  # fmt: skip
    if context.state.search_log.add(recall):
        context.state.search_log.start(
            Thread(target=_write, args=(context, context.state.search_log), name="memory-mesh recalls", daemon=True)
        )


def flush(context: Context) -> None:
    """Write the blocks of all searches so far, now; while others keep the store busy they wait on."""
    _write(context, context.state.search_log)  # waits for a thread that is writing


def close(context: Context) -> None:
    """Write what waits, for the last time."""
    flush(context)
    while left := context.state.search_log.take():
        _lose(context, context.state.search_log, len(left), "others kept the store busy")


def _write(context: Context, recalls: Recalls) -> None:
    """A store that cannot be written to is searched all the same. That searches leave no block is then said once."""
    with recalls.writing:
        while taken := recalls.take():
            try:
                _append(context, taken)
            except StoreReadOnly:
                continue  # whoever opened it so knows that nothing is kept
            except (StoreBusy, StoreClosed) as error:  # a search that ended after `close` waits for the next opening
                _lose(context, recalls, recalls.put_back(taken), error.what)
                return
            except StoreError as error:
                _lose(context, recalls, len(taken), error.what)
                return


def _lose(context: Context, recalls: Recalls, count: int, why: str) -> None:
    if recalls.lose(count):
        _log.warning("%s searches left no block in the audit trail of %s: %s", f"{count:,}", context.store.url, why)


def _append(context: Context, taken: Sequence[Recall]) -> None:
    chains: dict[str, list[Recall]] = {}
    for recall in taken:
        chain = audit.chain_name(recall.user_id, recall.agent_id, recalls=True)
        chains.setdefault(chain, []).append(_masked(context, recall))
    commit(context, lambda: Plan(None, [row for chain, told in chains.items() for row in _rows(context, chain, told)]))


def _rows(context: Context, chain: str, told: Iterable[Recall]) -> list[Row]:
    return sealed(context, chain, [_entry(context, recall) for recall in told])


def _entry(context: Context, recall: Recall) -> Entry:
    return Entry(
        id=context.ids.new("yamo_recall", recall.ms),
        operation_type="recall",
        ms=recall.ms,
        write=lambda seal: yamo_blocks.recall(
            seal, agent=str(recall.agent_id), query=recall.query, limit=recall.limit, filter=recall.filter, at=iso(recall.ms),
            results=recall.results, top_score=recall.top_score,
        ),
    )  # fmt: skip


def _masked(context: Context, recall: Recall) -> Recall:
    """The search as it may be kept. A filter holds values too."""
    said = None if recall.filter is None else _line(context, recall.filter)
    return replace(recall, query=_line(context, recall.query), filter=said)


def _line(context: Context, text: str) -> str:
    """Masked, and without what no store can keep: NUL, and halves of surrogate pairs."""
    return context.layer0.line(text.encode("utf-8", "replace").decode().replace("\0", "?"))


# --- how long they are kept ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What became of old recall blocks."""

    removed: int = 0
    checkpoints: tuple[str, ...] = ()  # the blocks that tell of it
    broken: tuple[Broken, ...] = ()  # chains that were left alone: what is wrong with them must not be swept away

    def __add__(self, other: "Pruned") -> "Pruned":
        return Pruned(
            removed=self.removed + other.removed,
            checkpoints=self.checkpoints + other.checkpoints,
            broken=self.broken + other.broken,
        )


def prune(context: Context, *, older_than_days: float = RETENTION_DAYS) -> Pruned:
    """Remove the recall blocks of the caller's user that are older, each run of them behind a checkpoint."""
    must_be_enabled(context)
    days = number("older_than_days", older_than_days, min_=0, max_=1e6, expected="a number of days, 0 or more")
    before = iso(max(0, context.clock() - round(days * _DAY_MS)))
    done = Pruned()
    for chain in (head.id for head in trail.heads(context) if audit.of_recalls(head.id)):
        if context.store.count(Kind.BLOCK, all_of(equals("chain", chain), Compare("created_at", "<", before))):
            done += _pruned(context, chain, before)
    return done


def _pruned(context: Context, chain: str, before: str) -> Pruned:
    verdict = trail.verify(context, chain)
    if isinstance(verdict, Broken):
        return Pruned(broken=(verdict,))
    done = Pruned()
    while step := commit(context, lambda: _decide(context, chain, before))[0]:
        done += step
    return done


def _decide(context: Context, chain: str, before: str) -> Plan[Pruned | None]:
    """Remove the next blocks, and say so at the end of the chain. The new head is made from the one that was read first: whoever
    else appends or removes meanwhile makes it a conflict."""
    head = Head.of(context.store.get(Kind.HEAD, [chain])[chain])
    old = list(takewhile(lambda block: block.created_at < before, _oldest(context, chain, head)))
    if all(yamo_blocks.sealed_through(block.yamo_text) for block in old):
        return Plan(None)  # a checkpoint alone is never removed: the next would only say the same
    entry = _checkpoint(context, chain, old)
    blocks, newer = audit.append(chain, head, [entry])
    gone = [Key(Kind.BLOCK, block.id) for block in old]
    return Plan(Pruned(removed=len(old), checkpoints=(entry.id,)), [newer.row(), *(block.row() for block in blocks)], gone)


def _oldest(context: Context, chain: str, head: Head) -> list[Block]:
    """The first blocks of a chain; up to its head it has no gap."""
    first = head.number - context.store.count(Kind.BLOCK, equals("chain", chain)) + 1
    return trail.blocks(context, chain, Compare("number", "<", first + _AT_ONCE))


def _checkpoint(context: Context, chain: str, old: Sequence[Block]) -> Entry:
    ms = context.clock()
    agent = str(audit.owner_of(chain)[1])
    last = old[-1]
    return Entry(
        id=context.ids.new("yamo_recall", ms),
        operation_type="recall",
        ms=ms,
        write=lambda seal: yamo_blocks.checkpoint(
            seal, agent=agent, at=iso(ms), through=last.number, through_hash=last.block_hash, removed=len(old)
        ),
    )  # fmt: skip
