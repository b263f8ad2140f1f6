"""What a reader may read, now or as of a time, and how far it is trusted.

A reader gets memories in its scope, with the statuses that it asks for, not expired, and valid.
What is not valid now (`valid_from`, `valid_until`) is left out of every read, unless the time that
a question names, a status of the past, only statuses other than active, or a condition on these two
columns ask for it; `as_of` is such a condition. By its id it is always found.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from memory_mesh.core import model
from memory_mesh.core.claims.rules import Trust, trust_of
from memory_mesh.core.errors import InvalidInput, listed, shown
from memory_mesh.core.language.safety import BASE_TRUST, Source
from memory_mesh.core.model import (
    ANYTHING,
    Change,
    Compare,
    In,
    Kind,
    Memory,
    MemoryRecord,
    Not,
    Period,
    Row,
    SearchResult,
    Status,
    Where,
    all_of,
    columns_in,
    equals,
    in_project,
    iso,
    millis,
    parse_time,
    rewound,
    visible,
    visible_from,
)
from memory_mesh.core.search.query import Query, Span, period_of
from memory_mesh.flows.context import Context

# --- conditions ---

_STATUSES, _KNOWN_STATUSES = ", ".join(Status), frozenset(Status)
_VALIDITY, _PAST = {"valid_from", "valid_until"}, {Status.SUPERSEDED, Status.ARCHIVED}


def readable(
    context: Context, statuses: Sequence[str] = (Status.ACTIVE,), where: Where = ANYTHING
) -> Where:
    """Return the condition that the reader's memories meet now: in scope, with one of these
    statuses, not expired, valid."""
    at, allowed = iso(context.clock()), known_statuses(statuses)
    valid = model.valid_in(periods(at, allowed, where))
    return all_of(
        model.visible_to(context.reader), In("status", allowed), model.not_expired(at), valid, where
    )


def is_readable(
    context: Context,
    statuses: Sequence[str],
    where: Where,
    *,
    at: str | None = None,
    valid: Sequence[Period] | None = None,
) -> Callable[[Row], bool]:
    """Return `readable` and a filter as a test of one row, which is faster than evaluating the
    condition.

    With `at`, memories may not have expired by then; the default is now. `valid` says in which
    periods they have to be valid, as `periods` returns them; the default is at that time, by the
    same rule.
    """
    allowed, at = frozenset(known_statuses(statuses)), at or iso(context.clock())
    when = periods(at, statuses, where) if valid is None else valid
    return partial(model.is_readable, context.reader, allowed, at, when, where)


def periods(
    at: str, statuses: Sequence[str], where: Where, spans: Sequence[Span] = ()
) -> tuple[Period, ...]:
    """Return the periods in one of which a memory has to be valid: a time, and the times that a
    question names.

    There are none if the past is asked for by a status, if nothing active is, or if the condition
    is about validity itself.
    """
    is_asked_for = (
        Status.ACTIVE not in statuses or _PAST & set(statuses) or columns_in(where) & _VALIDITY
    )
    return () if is_asked_for else about(at, spans)


def about(at: str, spans: Sequence[Span]) -> tuple[Period, ...]:
    """Return a time, and the times that a question names, as periods."""
    return (at, at), *map(period_of, spans)


def count_not_valid(context: Context, query: Query) -> int:
    """Return how many memories a search left out because they are not valid at the times that it
    is about."""
    if not query.periods:
        return 0
    seen = all_of(
        model.visible_to(query.reader),
        In("status", tuple(query.statuses)),
        model.not_expired(query.at),
    )
    return context.store.count(Kind.MEMORY, all_of(seen, Not(model.valid_in(query.periods))))


def known_statuses(statuses: Sequence[str], name: str = "status") -> tuple[str, ...]:
    """Return the statuses, or raise InvalidInput if one of them does not exist."""
    given = listed(name, statuses, expected=f"a list of {_STATUSES}")
    for status in given:
        if not isinstance(status, str) or status not in _KNOWN_STATUSES:
            raise InvalidInput(f"unknown status {shown(status)}", expected=f"one of {_STATUSES}")
    return tuple(given)


# --- the past ---
# `as_of` asks for what was valid at a time, and `known_at` for what was believed then. Only the
# history is read for that. Erased memories and texts are gone from every time.

# Candidates of a search at an earlier time: status and filter apply to what they were then.
KNOWN_POOL = 1_000


def read_time(name: str, given: object) -> str | None:
    """Return the time of an option, or raise `InvalidInput`."""
    return None if given is None else parse_time(given, name)


def read_known_at(context: Context, given: object) -> str | None:
    """Return the time of the option `known_at`, or raise `InvalidInput`, also if it lies in the
    future."""
    at, present = read_time("known_at", given), iso(context.clock())
    if at is not None and at > present:
        raise InvalidInput(
            f"known_at {at} is in the future",
            expected=f"a time until now ({present})",
            remedy="leave known_at out",
        )
    return at


def narrowed(
    at: str | None, where: Where, statuses: Sequence[str]
) -> tuple[Where, tuple[str, ...]]:
    """Return the condition and the statuses of a search, narrowed to what was valid at a time;
    unchanged without one."""
    if at is None:
        return where, tuple(statuses)
    from memory_mesh.core.claims.claim import as_of  # few searches name a time

    return all_of(where, as_of(at, statuses)), tuple(
        dict.fromkeys([*statuses, Status.SUPERSEDED.value])
    )


def stored_by(at: str) -> Where:
    """Return the condition that a memory was stored at a time or before."""
    return Compare("created_at", "<=", at)


def changes_of(context: Context, memory_id: str) -> list[Change]:
    """Return the changes of a memory or skill, oldest first. The reader is not checked."""
    rows = context.store.find(Kind.CHANGE, equals("ref", memory_id))
    return sorted((Change.of(row) for row in rows), key=lambda change: change.number)


def rewind(context: Context, rows: Iterable[Row], at: str) -> list[Row]:
    """Return memories as they were at a time, without those that were stored later, or that the
    reader could not see then."""
    here = in_project(context.reader.project)
    memories = {
        row.id: (row, Memory.of(row))
        for row in rows
        if visible(context.reader, row) and here.matches(row)
    }
    changes = changes_by_id(context, [memory for _, memory in memories.values()])
    found: list[Row] = []
    for id_, (row, memory) in memories.items():
        then = rewound(memory, changes[id_], at)
        # Never more than `history` shows.
        if then and then.revision >= visible_from(context.reader, memory, changes[id_]):
            found.append(replace(then.row(), sealed=row.sealed, used=row.used))
    return found


def as_known(context: Context, memories: Sequence[Memory], at: str) -> list[Memory]:
    """Return memories as they were at a time, without those that were stored later. The reader
    is not checked."""
    changes = changes_by_id(context, memories)
    return [then for memory in memories if (then := rewound(memory, changes[memory.id], at))]


def changes_by_id(context: Context, memories: Iterable[Memory]) -> dict[str, list[Change]]:
    """Return the changes of memories by id."""
    revised = tuple(memory.id for memory in memories if memory.revision > 1)
    changes: dict[str, list[Change]] = defaultdict(list)
    for row in context.store.find(Kind.CHANGE, In("ref", revised)) if revised else ():
        changes[str(row.value("ref"))].append(Change.of(row))
    return changes


# --- trust ---
# A memory is trusted no more than the memories that it was derived from.

_MAX_LEVELS, _MAX_SOURCES = 16, 2_000  # that are read; further sources count as inferences

Result = TypeVar("Result", bound=SearchResult)


def record(context: Context, memory: Memory) -> MemoryRecord:
    """Return the public part of a memory, with its trust now. What is stored and sealed is its
    base trust."""
    return records(context, [memory])[0]


def records(
    context: Context, memories: Sequence[Memory], *, ms: int | None = None
) -> list[MemoryRecord]:
    """Return the public part of memories, each with its trust now or at another time."""
    known = trusts(context, memories, ms=ms)
    return [memory.record(known[memory.id].value) for memory in memories]


def with_trust(
    context: Context, results: Sequence[Result], *, known_at: object = None
) -> list[Result]:
    """Return copies of the results of a search, which have their base trust, with their trust now
    or at the time of `known_at`. Changes to them do not reach the cache of searches."""
    by_id = trusts(context, results, known_at=None if known_at is None else str(known_at))
    return [result.copied(trust=by_id[result.id].value) for result in results]


def trusts(
    context: Context,
    memories: Sequence[MemoryRecord],
    *,
    ms: int | None = None,
    known_at: str | None = None,
) -> dict[str, Trust]:
    """Return the trust of memories by id, now or at another time.

    A digest or reflection is trusted no more than the least trusted of its sources, and of their
    sources. Erased sources do not count. With `known_at`, the memories are given as they were then,
    and so count their sources.
    """
    at = millis(known_at) if known_at else context.clock() if ms is None else ms
    if not any(memory.sources for memory in memories):  # as most: nothing is read
        return {memory.id: trust_of(memory, at) for memory in memories}
    known, unread = _with_sources(context, memories, known_at)
    own = {id_: trust_of(memory, at) for id_, memory in known.items()}
    values = {id_: trust.value for id_, trust in own.items()} | dict.fromkeys(
        unread, BASE_TRUST[Source.INFERENCE]
    )
    changed = True
    while changed:  # in a cycle, all get the trust of the least
        lowered = {
            id_: min(values[one] for one in (id_, *memory.sources) if one in values)
            for id_, memory in known.items()
        }
        changed, values = any(lowered[id_] < values[id_] for id_ in lowered), values | lowered
    least = {
        one.id: min((values[id_] for id_ in one.sources if id_ in values), default=None)
        for one in memories
    }
    return {id_: replace(own[id_], least_source=source) for id_, source in least.items()}


def _with_sources(
    context: Context, memories: Sequence[MemoryRecord], known_at: str | None
) -> tuple[dict[str, MemoryRecord], set[str]]:
    """Return the memories with their sources and those of the sources, by id, and the ids that
    were not read."""
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
