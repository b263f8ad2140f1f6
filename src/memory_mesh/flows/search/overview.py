"""What a reader can see, counted and grouped: numbers, a timeline, and a picture of the links.

Everything is counted by the store, and no text is read for it. Of texts, at most a page is read.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import islice, pairwise
from typing import TypeVar

from memory_mesh.core.errors import whole_number
from memory_mesh.core.graph import connected
from memory_mesh.core.model import (
    ANYTHING,
    Block,
    Compare,
    In,
    IsNull,
    Kind,
    Link,
    Memory,
    MemoryType,
    Or,
    Row,
    Status,
    Where,
    all_of,
    equals,
    in_project,
    iso,
    of_user,
    partitions,
    valid_in,
    visible_to,
)
from memory_mesh.core.search import Query
from memory_mesh.core.text import shortened
from memory_mesh.flows.audit import audit
from memory_mesh.flows.context import (
    Context,
    count_skills,
    count_visible,
    paged,
    read_once,
    require_memory,
)
from memory_mesh.flows.graph.links import SHOWN, links_of, read_active
from memory_mesh.flows.search import readable
from memory_mesh.flows.search.readable import is_readable, periods, trusts
from memory_mesh.flows.search.reads import get_all

MAX_BARS = 120  # days, or groups of days
_TRUST_OF = 1_000  # memories whose trust is read: the newest
_MAX_LINKS = 1_000  # links of a picture of everything: the newest
_MAX_STEP = 2_500  # links of one step around a memory
_MAX_CIRCLES = 200  # groups of a picture: more cannot be read
_MAX_NODES = 2_000
_MAX_DEPTH = 6
_MAX_NEAR = 300  # memories that are linked by session and similarity, which is computed
_MAX_ALIKE, _ALIKE = 2, 0.5  # links of one memory to similar ones, and the lowest cosine
_MAX_GROUP = 60  # memories that become one node
_MAX_READ = 5_000  # rows that one page of an earlier time looks at
_PAGE = 500
_TITLE = 120  # characters
_MAX_VIEWS, _MINUTE_MS = 16, 60_000  # kept in memory until the store changes, for up to a minute
_EVERY = tuple(status.value for status in Status)
View = TypeVar("View")


# --- numbers ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """How many memories there are by day, or by groups of `step` days."""

    counts: Sequence[tuple[str, int]] = ()  # the first day of each group
    step: int = 1
    first: str | None = None  # days
    last: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The counts of what a reader can see."""

    days: Days
    by_status: Mapping[str, int]
    by_type: Mapping[str, int]
    trust: Sequence[int]  # ten counts: trust below 0.1, below 0.2 …
    trust_of: int  # the memories that `trust` counts
    skills: int


def numbers(context: Context) -> Numbers:
    """Count what the reader can see. The result is kept until the store changes, for up to a
    minute."""
    return _kept(context, ("numbers", context.reader), lambda: _numbers(context))


def _kept(context: Context, name: Hashable, read: Callable[[], View]) -> View:
    """Call `read`, or return what it returned since the last change of the store in the same
    minute.

    Trust and validity change with time. Callers choose the names, so only a few views are kept.
    """
    version, name = context.store.data_version(), (name, context.clock() // _MINUTE_MS)
    # A write of this process keeps it.
    views: dict[Hashable, View] = read_once(context, version, "views", dict)
    found = views.get((version, name))
    if found is None:
        found = read()
        if len(views) >= _MAX_VIEWS:
            views.clear()
        views[version, name] = found
    return found


def _numbers(context: Context) -> Numbers:
    by_status = {status: _count(context, equals("status", status)) for status in _EVERY}
    total = sum(by_status.values())
    by_type = {
        type_.value: _count(context, In("status", _EVERY), equals("memory_type", type_))
        for type_ in MemoryType
    }  # fmt: skip
    by_type["other"] = total - sum(by_type.values())
    trust, trust_of = _trust(context)
    return Numbers(
        days=_days(context, _HAPPENED),
        by_status={status: number for status, number in by_status.items() if number},
        by_type={type_: number for type_, number in by_type.items() if number},
        trust=trust,
        trust_of=trust_of,
        skills=count_skills(context),
    )


def _count(context: Context, *conditions: Where) -> int:
    return count_visible(context, in_project(context.reader.project), *conditions)


def _trust(context: Context) -> tuple[list[int], int]:
    condition = all_of(
        visible_to(context.reader),
        in_project(context.reader.project),
        equals("status", Status.ACTIVE),
    )
    memories = [Memory.of(row) for row in islice(paged(context, Kind.MEMORY, condition), _TRUST_OF)]
    known = [trust.value for trust in trusts(context, memories).values()]
    counts = Counter(min(9, round(trust * 100) // 10) for trust in known)  # as pages show it
    return [counts[at] for at in range(10)], len(known)


_HAPPENED = ("event_time", "created_at")  # the first that a memory has is its date
_STORED = ("created_at",)


def _by_day(context: Context, dated: Sequence[str], *conditions: Where) -> dict[str, int]:
    """Count the memories that the reader can see by the day of the first of these times."""
    seen = all_of(visible_to(context.reader), in_project(context.reader.project), *conditions)
    counts = context.store.tally(Kind.MEMORY, dated, seen, length=len("2026-01-01"))
    return {day: number for day, number in counts.items() if day is not None}


def _days(context: Context, dated: Sequence[str]) -> Days:
    """Count the memories of each day, or of at most `MAX_BARS` groups of days."""
    counts = _by_day(context, dated)
    if not counts:
        return Days()
    first, last = (date.fromisoformat(day) for day in (min(counts), max(counts)))
    step, groups = -(-((last - first).days + 1) // MAX_BARS), Counter[date]()
    for day, number in counts.items():
        place = (date.fromisoformat(day) - first).days // step
        groups[first + timedelta(days=place * step)] += number
    return Days(
        counts=[(start.isoformat(), number) for start, number in sorted(groups.items())],
        step=step,
        first=first.isoformat(),
        last=last.isoformat(),
    )


def _stored(context: Context, *times: Where) -> int:
    """Count what the reader can see by times only. Stores have an index of partition and time,
    so no row is read for it."""
    reader = context.reader
    if reader.project is not None:
        return _count(context, *times)
    shared, *own = partitions(reader)
    parts = [equals("partition", shared), all_of(visible_to(reader), In("partition", tuple(own)))]
    return sum(context.store.count(Kind.MEMORY, all_of(part, *times)) for part in parts)


# --- users ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """How many memories the user of a reader has, and how many of them the reader can see."""

    of_user: int
    shown: int  # in its project


def visible_count(context: Context, *, any_agent: bool) -> Visible:
    """Count the memories of the reader's user; without `any_agent` only those that it can see."""
    shown = _count(context)
    condition = of_user(context.reader)
    return Visible(
        of_user=context.store.count(Kind.MEMORY, condition) if any_agent else shown, shown=shown
    )


# --- the timeline ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What a reader could see at a time, a page of it, and how many memories were stored by day."""

    days: Days
    count: int
    memories: Sequence[Memory]
    next: str | None = None  # the id to continue after; None: there are no more


def timeline(
    context: Context, *, happened: object = None, as_of: object = None, known_at: object = None,
    limit: object = 50, after: str | None = None
) -> Timeline:  # fmt: skip
    """Return a page of the memories that were valid (`as_of`) or believed (`known_at`) at a
    time, newest first; or of those that `happened` until then, the latest first."""
    most = whole_number("limit", limit, max_=_PAGE)
    at, known = readable.read_time("as_of", as_of), readable.read_known_at(context, known_at)
    if happened is not None:
        return _happened(context, readable.read_time("happened", happened) or "", most)
    days = _kept(context, ("days", context.reader), lambda: _days(context, _STORED))
    where, statuses = readable.narrowed(at, ANYTHING, (Status.ACTIVE,))
    if known is None:
        memories = get_all(context, limit=most, where=where, statuses=statuses, after=after)
        valid = valid_in(periods(iso(context.clock()), statuses, where))
        count = _count(context, where, In("status", statuses), valid)
        return Timeline(
            days=days,
            count=count,
            memories=memories,
            next=memories[-1].id if len(memories) == most else None,
        )
    memories, last = _known(context, known, at, limit=most, after=after)
    return Timeline(
        days=days, count=_stored(context, readable.stored_by(known)), memories=memories, next=last
    )


def _happened(context: Context, until: str, limit: int) -> Timeline:
    """Return the memories whose date is the latest until a time. Stores have no order by that
    date, so the days that have enough memories are found first."""
    reader, active = context.reader, equals("status", Status.ACTIVE)
    days = _kept(context, ("days that happened", reader), lambda: _days(context, _HAPPENED))
    by_day = _kept(context, ("dates", reader), lambda: _by_day(context, _HAPPENED, active))
    first, enough = until, 0
    for day in sorted((day for day in by_day if day <= until[:10]), reverse=True):
        first, enough = day, enough + by_day[day]
        if enough >= limit:
            break
    found = get_all(context, limit=_PAGE, where=_dated(first, until))
    memories = sorted(found, key=lambda one: (date_of(one), one.created_at, one.id), reverse=True)
    return Timeline(
        days=days,
        count=sum(number for day, number in by_day.items() if day <= until[:10]),
        memories=memories[:limit],
    )


def _dated(first: str, last: str) -> Where:
    """Return the condition that the date of a memory is between two times."""

    def within(name: str) -> Where:
        return all_of(Compare(name, ">=", first), Compare(name, "<=", last))

    return Or((within("event_time"), all_of(IsNull("event_time"), within("created_at"))))


def date_of(memory: Memory) -> str:
    """Return the date of a memory: when it happened, or else when it was stored."""
    return memory.event_time or memory.created_at


def _known(
    context: Context, known: str, at: str | None, *, limit: int, after: str | None
) -> tuple[list[Memory], str | None]:
    """Return memories as they were at a time, and the id to continue after."""
    where, statuses = readable.narrowed(at, ANYTHING, (Status.ACTIVE,))
    test, found, read = is_readable(context, statuses, where, at=known), list[Memory](), 0
    while read < _MAX_READ:
        page = get_all(
            context, limit=_PAGE, where=readable.stored_by(known), statuses=_EVERY, after=after
        )
        read += len(page)
        for row in readable.rewind(context, [memory.row() for memory in page], known):
            if test(row):
                found.append(Memory.of(row))
            if len(found) == limit:
                return found, row.id
        if len(page) < _PAGE:
            return found, None
        after = page[-1].id
    return found, after


# --- the picture of the links ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A memory, or a group of linked memories, in the picture."""

    memory: Memory  # of a group the best linked one
    links: int
    count: int = 1
    group: int = 0  # the memories of one group are connected


@dataclass(frozen=True, slots=True)
class Edge:
    """A link between two nodes; between groups the strongest one."""

    source: str
    target: str
    type: str
    strength: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Linked memories: at most so many nodes, so groups of memories may be one node each, the
    largest ones."""

    nodes: Sequence[Node] = ()
    edges: Sequence[Edge] = ()
    aggregated: bool = False
    newest: int | None = None  # only so many links were read, the newest ones


def picture(
    context: Context, *, seed: str | None = None, limit: object = 500, depth: object = 2
) -> Picture:
    """Return the linked memories that the reader can see; with `seed`, those within `depth`
    links of a memory."""
    most, hops = (
        whole_number("limit", limit, max_=_MAX_NODES),
        whole_number("depth", depth, max_=_MAX_DEPTH),
    )
    name = ("picture", context.reader, seed, most, hops)
    return _kept(context, name, lambda: _picture(context, seed, most, hops))


def _picture(context: Context, seed: str | None, limit: int, depth: int) -> Picture:
    if seed is not None:
        memories, links = _around(context, require_memory(context, seed), depth)
    else:
        condition = all_of(visible_to(context.reader), SHOWN)
        links = [Link.of(row) for row in context.store.find(Kind.LINK, condition, limit=_MAX_LINKS)]
        memories = read_active(context, (id_ for one in links for id_ in (one.ref, one.target)))
    edges = [
        Edge(one.ref, one.target, one.link_type, one.similarity)
        for one in links
        if one.ref in memories and one.target in memories
    ]
    newest = _MAX_LINKS if seed is None and len(links) == _MAX_LINKS else None
    room = min(limit, _MAX_NEAR) - len(memories)
    if newest is None and room > 0:
        near = _near(context, None if seed is None else memories[seed], room)
        memories |= {one.id: one for one in near}
        known = {frozenset((one.source, one.target)) for one in edges}
        for edge in (*_sessions(near), *_alike(near)):
            if (ends := frozenset((edge.source, edge.target))) not in known:
                known.add(ends)
                edges.append(edge)
    return replace(_drawn(memories, edges, limit, first=seed), newest=newest)


def _near(context: Context, seed: Memory | None, limit: int) -> list[Memory]:
    """Return the newest memories; around a memory those of its session."""
    if seed is None:
        return get_all(context, limit=limit)
    if seed.session_id is None:
        return [seed]
    return get_all(context, limit=limit, where=equals("session_id", seed.session_id))


def _sessions(memories: Iterable[Memory]) -> Iterator[Edge]:
    """Yield an edge from each memory of a session to the next one."""
    sessions: dict[tuple[str, str | None], list[Memory]] = defaultdict(list)
    for memory in memories:
        if memory.session_id is not None:
            sessions[memory.session_id, memory.project].append(memory)
    for session in sessions.values():
        ordered = sorted(session, key=lambda one: (one.turn or 0, date_of(one), one.number))
        for one, other in pairwise(ordered):
            yield Edge(one.id, other.id, "session", None)


def _alike(memories: Iterable[Memory]) -> Iterator[Edge]:
    """Yield edges from each memory to those that are most similar to it."""
    by_model: dict[tuple[str, int], list[Memory]] = defaultdict(list)
    for memory in memories:
        if memory.vector:
            by_model[memory.vector.model, memory.vector.dimension].append(memory)
    for same in by_model.values():
        import numpy as np  # only similar memories need it

        rows = np.array([np.frombuffer(one.vector.data, np.float32) for one in same if one.vector])
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
        cosines = rows @ rows.T
        np.fill_diagonal(cosines, 0)
        for at, others in enumerate(np.argsort(-cosines)[:, :_MAX_ALIKE]):
            for other in others:
                if cosines[at, other] >= _ALIKE:
                    yield Edge(same[at].id, same[other].id, "similar", float(cosines[at, other]))


def _around(context: Context, start: Memory, depth: int) -> tuple[dict[str, Memory], list[Link]]:
    """Return the memories within so many links of one, and the links that were followed."""
    memories, links, edge = {start.id: start}, dict[str, Link](), [start.id]
    for _ in range(depth):
        found = links_of(context, edge)
        links |= {one.id: one for one in found[:_MAX_STEP]}
        new = read_active(
            context, (id_ for one in found for id_ in (one.ref, one.target) if id_ not in memories)
        )
        memories |= dict(islice(new.items(), max(0, _MAX_NODES - len(memories))))
        edge = [id_ for id_ in new if id_ in memories]
    return memories, list(links.values())


def _drawn(
    memories: Mapping[str, Memory], edges: Sequence[Edge], limit: int, *, first: str | None
) -> Picture:
    """Return all memories as nodes if they are few, else groups of linked memories as nodes, the
    largest ones."""
    degree = Counter(id_ for one in edges for id_ in (one.source, one.target))
    pairs = [(one.source, one.target, one.strength or 0.0) for one in edges]
    if len(memories) <= limit:
        groups = {id_: at for at, group in enumerate(connected(pairs)) for id_ in group}
        order = sorted(memories, key=lambda id_: (id_ != first, -degree[id_], id_))
        nodes = [
            Node(memory=memories[id_], links=degree[id_], group=groups.get(id_, len(groups)))
            for id_ in order
        ]
        return Picture(nodes=nodes, edges=edges)
    joined = connected(pairs, max_size=_MAX_GROUP)[: min(limit, _MAX_CIRCLES)]
    best = {
        id_: max(group, key=lambda id_: (degree[id_], id_)) for group in joined for id_ in group
    }
    nodes = [Node(memory=memories[best[group[0]]], links=sum(degree[id_] for id_ in group),
                  count=len(group), group=at)
             for at, group in enumerate(joined)]  # fmt: skip
    between: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in edges:
        if (
            (source := best.get(one.source))
            and (target := best.get(one.target))
            and source != target
        ):
            between[min(source, target), max(source, target)].append(one.strength or 0.0)
    return Picture(
        nodes=nodes,
        edges=[Edge(*ends, "links", max(all_)) for ends, all_ in between.items()],
        aggregated=True,
    )


# --- one memory ---


def blocks_of(context: Context, memory_id: str) -> list[Block]:
    """Return the audit blocks about a memory, oldest first. Texts that the reader may not see
    are withheld."""
    rows = context.store.find(Kind.BLOCK, equals("ref", memory_id), limit=_PAGE)
    found = audit.within_scope(context, [Block.of(row) for row in rows])
    return sorted(found, key=lambda block: (block.created_at, block.number))


def passages_of(context: Context, memory: Memory) -> list[Row]:
    """Return the passages of a long memory, in the order of its text."""
    rows = context.store.find(Kind.PASSAGE, equals("ref", memory.id), limit=_PAGE)
    return sorted(rows, key=lambda row: int(str(row.value("text_start") or 0)))


def title_of(memory: Memory) -> str:
    """Return the first words of a memory, on one line."""
    return shortened(" ".join(memory.content[: 10 * _TITLE].split()), _TITLE)


# --- the search index ---


def prepare_search(context: Context) -> None:
    """Build the index of the reader, unless it is up to date. Nothing is embedded: a model may
    be a paid one."""
    context.index.prepare(context.reader)
    query = Query(tokens=["memory"], vector=None, reader=context.reader, at=iso(context.clock()))
    context.index.snapshot(context.reader).candidates(query, size=1)
