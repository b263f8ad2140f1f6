"""The trust of memories when they are read: that of each by itself, and no more than that of the memories it was derived from."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from memory_mesh.core.model import Kind, Memory, MemoryRecord, SearchResult, millis
from memory_mesh.core.safety import BASE_TRUST, Source
from memory_mesh.core.safety.trust import Trust, trust_of
from memory_mesh.flows.context import Context
from memory_mesh.flows.past import as_known

_MAX_LEVELS, _MAX_SOURCES = 16, 2_000  # that are read; further sources count as inferences

Result = TypeVar("Result", bound=SearchResult)


def record(context: Context, memory: Memory) -> MemoryRecord:
    """Return the public part of a memory, with its trust now. What is stored and sealed is its base trust."""
    return records(context, [memory])[0]


def records(context: Context, memories: Sequence[Memory], *, ms: int | None = None) -> list[MemoryRecord]:
    """Return the public part of memories, each with its trust now or at another time."""
    known = trusts(context, memories, ms=ms)
    return [memory.record(known[memory.id].value) for memory in memories]


def with_trust(context: Context, results: Sequence[Result], *, known_at: str | None = None) -> list[Result]:
    """Return the results of a search, which have their base trust, with their trust now or at the time of `known_at`."""
    known = trusts(context, results, known_at=known_at)
    return [result.changed(trust=known[result.id].value) for result in results]


def trusts(
    context: Context, memories: Sequence[MemoryRecord], *, ms: int | None = None, known_at: str | None = None
) -> dict[str, Trust]:
    """Return the trust of memories by id, now or at another time.

    A digest or reflection is trusted no more than the least trusted of its sources, and of their sources. Erased sources do not
    count. With `known_at`, the memories are given as they were then, and so count their sources.
    """
    at = millis(known_at) if known_at else context.clock() if ms is None else ms
    if not any(memory.sources for memory in memories):  # as most: nothing is read
        return {memory.id: trust_of(memory, at) for memory in memories}
    known, unread = _with_sources(context, memories, known_at)
    own = {id_: trust_of(memory, at) for id_, memory in known.items()}
    values = {id_: trust.value for id_, trust in own.items()} | dict.fromkeys(unread, BASE_TRUST[Source.INFERENCE])
    changed = True
    while changed:  # in a cycle, all get the trust of the least
        lowered = {id_: min(values[one] for one in (id_, *memory.sources) if one in values) for id_, memory in known.items()}
        changed, values = any(lowered[id_] < values[id_] for id_ in lowered), values | lowered
    least = {one.id: min((values[id_] for id_ in one.sources if id_ in values), default=None) for one in memories}
    return {id_: replace(own[id_], least_source=source) for id_, source in least.items()}


def _with_sources(
    context: Context, memories: Sequence[MemoryRecord], known_at: str | None
) -> tuple[dict[str, MemoryRecord], set[str]]:
    """Return the memories with their sources and those of the sources, by id, and the ids that were not read."""
    known = {memory.id: memory for memory in memories}
    missing, asked = _sources(memories), set(known)
    for _ in range(_MAX_LEVELS):
        wanted = sorted(missing - asked)[: _MAX_SOURCES - (len(known) - len(memories))]
        if not wanted:
            break
        asked.update(wanted)
        read = [Memory.of(row) for row in context.store.get(Kind.MEMORY, wanted).values()]
        read = as_known(context, read, known_at) if known_at else read
        known |= {memory.id: memory for memory in read}
        missing |= _sources(read)
    return known, missing - asked


def _sources(memories: Iterable[MemoryRecord]) -> set[str]:
    return {id_ for memory in memories for id_ in memory.sources}
