"""Follow the links between memories, group the linked ones, and add links by hand.

A method that names a memory reads for the caller if the caller can see it, and otherwise for its owner, an agent of the same
user. Every link and every memory at its other end is then under the same two conditions: visible to that reader, and active.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from memory_mesh.core.checks import listed, nearest, whole_number
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.graph import LINK_TYPES, MADE_BY_US, MemoryLink, Reached, connected, link
from memory_mesh.core.model import (
    ANYTHING,
    In,
    Key,
    Kind,
    Link,
    Memory,
    Or,
    Row,
    Status,
    Where,
    all_of,
    batches,
    equals,
    in_project,
    partitions,
    visible_to,
)
from memory_mesh.flows.cases import acting_for
from memory_mesh.flows.context import Context, Plan, commit, find_memory, intact, paged, require_memory
from memory_mesh.flows.readable import is_readable
from memory_mesh.flows.trust import records

MAX_HOPS = 20
_MAX_REACHED = 10_000  # memories of one traversal
_AT_ONCE = 500  # ids in one condition
_TYPE = re.compile(r"[a-z][a-z0-9_]{0,63}")


def links(context: Context, memory_id: str) -> list[MemoryLink]:
    """Return the links from and to a memory whose other end is readable, most similar first."""
    reading = _reading_for(context, memory_id)
    ends = [(one, _other(one, memory_id)) for one in links_of(reading, [memory_id])]
    others = read_active(reading, (id_ for _, id_ in ends))
    shown = {one.id: one for one in records(reading, list(others.values()))}
    found = [MemoryLink.seen_from(one, memory_id, shown[id_]) for one, id_ in ends if id_ in shown]
    return sorted(found, key=lambda one: (-(one.similarity or 0.0), one.link_type, one.id))


def traverse(context: Context, start_id: str, max_hops: object = 2, types: object = None) -> list[Reached]:
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
            reached.append(Reached(memory=memory, distance=distance, link_type=type_, path=paths[memory.id]))
        if len(reached) > _MAX_REACHED:
            what = f"more than {_MAX_REACHED:,} memories are within {distance} links of {start_id}"
            raise InvalidInput(what, remedy="lower max_hops, or name the types to follow")
        edge = list(found)
    return reached


def clusters(context: Context, min_size: object = 2) -> list[list[Memory]]:
    """Return the groups of memories that are connected by links, largest first; in each, the most linked one first."""
    size = whole_number("min_size", min_size, min_=2)
    pairs = [(str(row.value("ref")), str(row.value("target"))) for row in paged(context, Kind.LINK, visible_to(context.reader))]
    memories = read_active(context, (id_ for pair in pairs for id_ in pair))
    readable = {(one, other) for one, other in map(sorted, pairs) if memories.keys() >= {one, other}}
    linked = Counter(id_ for pair in readable for id_ in pair)
    groups = [group for group in connected((*pair, 1.0) for pair in readable) if len(group) >= size]
    return [[memories[id_] for id_ in sorted(group, key=lambda id_: (-linked[id_], id_))] for group in groups]


def add_link(context: Context, source_id: str, target_id: str, type_: object) -> Link:
    """Link two memories that the reader of the first one can see, and return the link. A link that exists is returned."""
    name = _own_type(type_)
    if source_id == target_id:
        raise InvalidInput(f"{shown(source_id)} is both ends of the link", expected="two memories")

    def decide() -> Plan[Link]:
        reading = _reading_for(context, source_id)
        seen = {part: context.store.version(part) for part in partitions(reading.reader)}
        source, target = require_memory(reading, source_id), require_memory(reading, target_id)
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
        wanted = all_of(equals("ref", source_id), equals("target", target_id), equals("link_type", name))
        found = context.store.find(Kind.LINK, all_of(visible_to(reading.reader), wanted))
        return Plan(bool(found), deletes=[Key(Kind.LINK, row.id) for row in found])

    return commit(context, decide)


# --- reading ---


def links_of(context: Context, ids: Sequence[str], types: Where = ANYTHING) -> list[Link]:
    """Return the links from and to memories that the reader may see. The other ends are not checked here."""
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
    """Return the context of the caller if it can see the memory, else that of the owner. Raise `NotFound` for another user's."""
    reading = context if find_memory(context, memory_id) else acting_for(context, memory_id)
    require_memory(reading, memory_id)
    return reading


def _other(one: Link, memory_id: str) -> str:
    return one.target if one.ref == memory_id else one.ref


def _steps(found: Iterable[Link], edge: Sequence[str], known: Mapping[str, object]) -> dict[str, tuple[str, str]]:
    """Return the new memories one link further, each with the memory before it and the type of the best link to it."""
    at_edge = set(edge)
    steps: dict[str, tuple[str, str]] = {}
    for one in sorted(found, key=lambda one: (-(one.similarity or 0.0), one.id)):
        for before, after in ((one.ref, one.target), (one.target, one.ref)):
            if before in at_edge and after not in known:
                steps.setdefault(after, (before, one.link_type))
    return steps


# --- types ---


def _types(context: Context, given: object) -> Where:
    """Return the condition that a link has one of these types, or raise `InvalidInput` for one that no link has."""
    if given is None:
        return ANYTHING
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
    return fits and context.store.count(Kind.LINK, all_of(visible_to(context.reader), equals("link_type", name))) > 0


def _own_type(given: object) -> str:
    """Return the type of a link that a caller adds or removes, or raise `InvalidInput`."""
    if not isinstance(given, str) or not _TYPE.fullmatch(given):
        expected = "related, cause, or another name of lower-case letters, digits and _"
        raise InvalidInput(f"the link type is {shown(given)}", expected=expected)
    if given in MADE_BY_US:
        what = f"links of type {given} are made by memory-mesh itself"
        raise InvalidInput(what, expected="related, cause, or another name", remedy=MADE_BY_US[given])
    return given
