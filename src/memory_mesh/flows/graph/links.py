"""Link new memories to similar ones, follow links, and add links by hand."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from memory_mesh.core import graph, model
from memory_mesh.core.claims.updates import DECIDED, MAY_UPDATE, said_at
from memory_mesh.core.errors import InvalidInput, listed, nearest, shown, whole_number
from memory_mesh.core.graph import LINK_TYPES, MADE_BY_US, MemoryLink, Reached, connected, link
from memory_mesh.core.model import (
    Compare,
    In,
    Key,
    Kind,
    Link,
    Memory,
    Or,
    Row,
    Status,
    Vector,
    Where,
    all_of,
    batches,
    equals,
    in_project,
    iso,
    partitions,
    visible_to,
)
from memory_mesh.core.search import Query
from memory_mesh.core.search.lexical import best_cosines
from memory_mesh.flows.claims.review import acting_for
from memory_mesh.flows.context import (
    Context,
    Plan,
    commit,
    find_memory,
    intact,
    paged,
    require_memory,
)
from memory_mesh.flows.search.readable import is_readable, records

# --- linking a new memory ---

_CANDIDATES = 20  # of the index, whose cosines are approximate
RELATED = 0.7  # the lowest cosine of a memory that a new one may supersede by `evolve`


@dataclass(frozen=True, slots=True)
class Links:
    """The links of new memories, and the rows that they change."""

    of: dict[str, list[Link]] = field(default_factory=dict)  # by memory, best first
    puts: list[Row] = field(default_factory=list)
    deletes: list[Key] = field(default_factory=list)


def find_similar(
    context: Context, vector: Vector | None, *, size: int = _CANDIDATES
) -> list[tuple[Memory, float]]:
    """Return readable active memories with their cosine to a vector, most similar first."""
    if vector is None:
        return []
    query = Query(tokens=[], vector=vector, reader=context.reader, at=iso(context.clock()))
    pool = context.index.snapshot(context.reader).candidates(query, size=size)
    rough = sorted(zip(pool.signals["vectors"], pool.ids, strict=True), key=lambda pair: -pair[0])[
        :size
    ]
    stored = context.store.get(Kind.MEMORY, [id_ for _, id_ in rough])
    rows = [
        row
        for row in stored.values()
        if model.visible(context.reader, row) and row.value("status") == Status.ACTIVE
    ]
    pairs = [(Memory.of(row), cosine(vector, row.vector)) for row in intact(context, rows)]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0].id))


def connect(context: Context, new: Sequence[Memory], ms: int) -> Links:
    """Return the links of new memories to similar ones, also to earlier ones of the same write."""
    similar = {memory.id: find_similar(context, memory.vector) for memory in new}
    for memory, pairs in zip(new, _earlier(new), strict=True):
        similar[memory.id] += pairs
    targets = {
        target.id
        for pairs in similar.values()
        for target, cosine in pairs
        if cosine > graph.MIN_SIMILARITY
    }
    incoming = _incoming(context, targets)
    known = {link.id for links in incoming.values() for link in links}
    made: dict[str, list[Link]] = {}
    for memory in new:
        made[memory.id] = graph.choose(memory, similar[memory.id], incoming, ms)
        for one in made[memory.id]:
            incoming[one.target].append(one)
    dropped = {link.id for links in incoming.values() for link in graph.replaced(links)}
    kept = {id_: [link for link in links if link.id not in dropped] for id_, links in made.items()}
    puts = [link.row(memory.partition) for memory in new for link in kept[memory.id]]
    return Links(kept, puts, [Key(Kind.LINK, id_) for id_ in sorted(dropped & known)])


def _earlier(new: Sequence[Memory]) -> list[list[tuple[Memory, float]]]:
    """Return for each memory the most similar ones before it, with their cosines."""
    pairs: list[list[tuple[Memory, float]]] = [[] for _ in new]
    by_model: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for at, memory in enumerate(new):
        if memory.vector:
            by_model[memory.vector.model, len(memory.vector.data)].append(at)
    for places in by_model.values():
        import numpy as np  # only similar memories need it

        rows = np.stack(
            [np.frombuffer(cast("Vector", new[at].vector).data, dtype=np.float32) for at in places]
        ).astype(np.float64)
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
        for place, at in enumerate(places):
            cosines = rows[:place] @ rows[place]
            best = np.argsort(-cosines, kind="stable")[:_CANDIDATES]
            pairs[at] = [(new[places[other]], float(cosines[other])) for other in best]
    return pairs


def _incoming(context: Context, targets: set[str]) -> defaultdict[str, list[Link]]:
    found: defaultdict[str, list[Link]] = defaultdict(list)
    where = all_of(In("target", tuple(sorted(targets))), equals("link_type", "similar"))
    for row in context.store.find(Kind.LINK, where) if targets else ():
        link = Link.of(row)
        found[link.target].append(link)
    return found


def cosine(one: Vector | None, other: Vector | None) -> float:
    """Return the cosine of two vectors; 0 without one of them, or if they cannot be compared."""
    if one is None or other is None or (one.model, one.dimension) != (other.model, other.dimension):
        return 0.0
    return best_cosines(one.data, [("", other.data)], 1)[0].score


# --- following links ---
# A method that names a memory reads for the caller if the caller can see it, and otherwise for its
# owner, an agent of the same user. Every link and every memory at its other end is then under the
# same two conditions: visible to that reader, and active.

MAX_HOPS = 20
_MAX_REACHED = 10_000  # memories of one traversal
_AT_ONCE = 500  # ids in one condition
_TYPE = re.compile(r"[a-z][a-z0-9_]{0,63}")
# The links that people see and follow. A change that is only possible is none of them.
SHOWN = Compare("link_type", "<>", MAY_UPDATE)


def links(context: Context, memory_id: str) -> list[MemoryLink]:
    """Return the links from and to a memory whose other end is readable, most similar first."""
    reading = _reading_for(context, memory_id)
    ends = [(one, _other(one, memory_id)) for one in links_of(reading, [memory_id])]
    others = read_active(reading, (id_ for _, id_ in ends))
    shown = {one.id: one for one in records(reading, list(others.values()))}
    found = [MemoryLink.seen_from(one, memory_id, shown[id_]) for one, id_ in ends if id_ in shown]
    return sorted(found, key=lambda one: (-(one.similarity or 0.0), one.link_type, one.id))


def traverse(
    context: Context, start_id: str, max_hops: object = 2, types: object = None
) -> list[Reached]:
    """Return the memories within so many links of a memory, nearest first, each once."""
    hops = whole_number("max_hops", max_hops, max_=MAX_HOPS)
    reading = _reading_for(context, start_id)
    of_types = _types(reading, types)
    paths: dict[str, tuple[str, ...]] = {start_id: ()}
    reached: list[Reached] = []
    edge = [start_id]
    for distance in range(1, hops + 1):
        steps = _steps(links_of(reading, edge, of_types), edge, paths)
        found = read_active(reading, steps)
        for memory in records(reading, [found[id_] for id_ in sorted(found)]):
            before, type_ = steps[memory.id]
            paths[memory.id] = (*paths[before], before)
            reached.append(
                Reached(memory=memory, distance=distance, link_type=type_, path=paths[memory.id])
            )
        if len(reached) > _MAX_REACHED:
            what = f"more than {_MAX_REACHED:,} memories are within {distance} links of {start_id}"
            raise InvalidInput(what, remedy="lower max_hops, or name the types to follow")
        edge = list(found)
    return reached


def clusters(context: Context, min_size: object = 2) -> list[list[Memory]]:
    """Return the groups of memories that are connected by links, largest first; in each, the
    most linked one first."""
    size = whole_number("min_size", min_size, min_=2)
    pairs = [
        (str(row.value("ref")), str(row.value("target")))
        for row in paged(context, Kind.LINK, all_of(visible_to(context.reader), SHOWN))
    ]
    memories = read_active(context, (id_ for pair in pairs for id_ in pair))
    readable = {
        (one, other) for one, other in map(sorted, pairs) if memories.keys() >= {one, other}
    }
    linked = Counter(id_ for pair in readable for id_ in pair)
    groups = [group for group in connected((*pair, 1.0) for pair in readable) if len(group) >= size]
    return [
        [memories[id_] for id_ in sorted(group, key=lambda id_: (-linked[id_], id_))]
        for group in groups
    ]


def add_link(context: Context, source_id: str, target_id: str, type_: object) -> Link:
    """Link two memories that the reader of the first one can see, and return the link. A link
    that exists is returned."""
    name = _own_type(type_)

    def decide() -> Plan[Link]:
        reading = _reading_for(context, source_id)
        seen = {part: context.store.version(part) for part in partitions(reading.reader)}
        source, target = require_memory(reading, source_id), require_memory(reading, target_id)
        if source.id == target.id:
            raise InvalidInput(
                f"{shown(source_id)} is both ends of the link", expected="two memories"
            )
        new = link(source, target, name, context.clock())
        if known := context.store.get(Kind.LINK, [new.id]).get(new.id):
            return Plan(Link.of(known))
        return Plan(new, [new.row(source.partition)], seen=seen)

    return commit(context, decide)


def remove_link(context: Context, source_id: str, target_id: str, type_: object) -> bool:
    """Remove a link that was added by hand, and return whether there was one."""
    name = _own_type(type_)

    def decide() -> Plan[bool]:
        reading = _reading_for(context, source_id)
        wanted = all_of(
            equals("ref", source_id), equals("target", target_id), equals("link_type", name)
        )
        found = context.store.find(Kind.LINK, all_of(visible_to(reading.reader), wanted))
        return Plan(bool(found), deletes=[Key(Kind.LINK, row.id) for row in found])

    return commit(context, decide)


# --- reading ---


def links_of(context: Context, ids: Sequence[str], types: Where = SHOWN) -> list[Link]:
    """Return the links from and to memories that the reader may see. The other ends are not
    checked here."""
    found: dict[str, Link] = {}
    for some in map(tuple, batches(ids, _AT_ONCE)):
        ends = Or((In("ref", some), In("target", some)))
        rows = context.store.find(Kind.LINK, all_of(visible_to(context.reader), ends, types))
        found |= {row.id: Link.of(row) for row in rows}
    return list(found.values())


def read_active(context: Context, ids: Iterable[str]) -> dict[str, Memory]:
    """Return the active memories of these ids that the reader can see, by id."""
    test = is_readable(context, (Status.ACTIVE,), in_project(context.reader.project))
    found: dict[str, Memory] = {}
    for some in batches(dict.fromkeys(ids), _AT_ONCE):
        rows: Iterable[Row] = context.store.get(Kind.MEMORY, some).values()
        found |= {row.id: Memory.of(row) for row in intact(context, rows) if test(row)}
    return found


def _reading_for(context: Context, memory_id: str) -> Context:
    """Return the context of the caller if it can see the memory, else that of the owner. Raise
    `NotFound` for another user's."""
    reading = context if find_memory(context, memory_id) else acting_for(context, memory_id)
    require_memory(reading, memory_id)
    return reading


def _other(one: Link, memory_id: str) -> str:
    return one.target if one.ref == memory_id else one.ref


def _steps(
    found: Iterable[Link], edge: Sequence[str], known: Mapping[str, object]
) -> dict[str, tuple[str, str]]:
    """Return the new memories one link further, each with the memory before it and the type of
    the best link to it."""
    at_edge = set(edge)
    steps: dict[str, tuple[str, str]] = {}
    for one in sorted(found, key=lambda one: (-(one.similarity or 0.0), one.id)):
        for before, after in ((one.ref, one.target), (one.target, one.ref)):
            if before in at_edge and after not in known:
                steps.setdefault(after, (before, one.link_type))
    return steps


# --- types ---


def _types(context: Context, given: object) -> Where:
    """Return the condition that a link has one of these types, or raise `InvalidInput` for one
    that no link has."""
    if given is None:
        return SHOWN
    names = listed("types", given, expected="a list of link types")
    for name in names:
        if not isinstance(name, str) or not (name in LINK_TYPES or _occurs(context, name)):
            near = nearest(name, LINK_TYPES) if isinstance(name, str) else ""
            remedy = f"did you mean {near!r}?" if near else ""
            expected = f"{', '.join(LINK_TYPES)}, or another type that a link has"
            raise InvalidInput(f"unknown link type {shown(name)}", expected=expected, remedy=remedy)
    if not names:
        raise InvalidInput("types is empty", expected="at least one link type, or None for all")
    return In("link_type", tuple(names))


def _occurs(context: Context, name: str) -> bool:
    fits = _TYPE.fullmatch(name) is not None
    return (
        fits
        and context.store.count(
            Kind.LINK, all_of(visible_to(context.reader), equals("link_type", name))
        )
        > 0
    )


def _own_type(given: object) -> str:
    """Return the type of a link that a caller adds or removes, or raise `InvalidInput`."""
    if not isinstance(given, str) or not _TYPE.fullmatch(given):
        expected = "related, cause, or another name of lower-case letters, digits and _"
        raise InvalidInput(f"the link type is {shown(given)}", expected=expected)
    if given in MADE_BY_US:
        what = f"links of type {given} are made by memory-mesh itself"
        raise InvalidInput(
            what, expected="related, cause, or another name", remedy=MADE_BY_US[given]
        )
    return given


def moved_changes(context: Context, before: Memory, after: Memory) -> list[Row]:
    """Return the links of a memory to what it changed, which holds until another time now."""
    if (before.event_time, before.valid_from) == (after.event_time, after.valid_from):
        return []
    where = all_of(equals("ref", after.id), In("link_type", (*DECIDED, MAY_UPDATE)))
    links = map(Link.of, context.store.find(Kind.LINK, where))
    begun = [replace(link, created_at=said_at(after), revision=link.revision + 1) for link in links]
    return [link.row(after.partition, replaces=link.revision - 1) for link in begun]
