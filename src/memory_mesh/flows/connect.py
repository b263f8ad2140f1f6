"""Find the memories that are similar to a new one, and link them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from memory_mesh.core import graph, model
from memory_mesh.core.model import In, Key, Kind, Link, Memory, Row, Status, Vector, all_of, equals, iso
from memory_mesh.core.search import Query
from memory_mesh.core.search.scores import best_cosines
from memory_mesh.flows.context import Context, intact

_CANDIDATES = 20  # of the index, whose cosines are approximate
RELATED = 0.7  # the lowest cosine of a memory that a new one may supersede by `evolve`


@dataclass(frozen=True, slots=True)
class Links:
    """The links of new memories, and the rows that they change."""

    of: dict[str, list[Link]] = field(default_factory=dict)  # by memory, best first
    puts: list[Row] = field(default_factory=list)
    deletes: list[Key] = field(default_factory=list)


def find_similar(context: Context, vector: Vector | None, *, size: int = _CANDIDATES) -> list[tuple[Memory, float]]:
    """Return readable active memories with their cosine to a vector, most similar first."""
    if vector is None:
        return []
    query = Query(tokens=[], vector=vector, reader=context.reader, at=iso(context.clock()))
    pool = context.index.snapshot(context.reader).candidates(query, size=size)
    rough = sorted(zip(pool.signals["vectors"], pool.ids, strict=True), key=lambda pair: -pair[0])[:size]
    stored = context.store.get(Kind.MEMORY, [id_ for _, id_ in rough])
    rows = [row for row in stored.values() if model.visible(context.reader, row) and row.value("status") == Status.ACTIVE]
    pairs = [(Memory.of(row), cosine(vector, row.vector)) for row in intact(context, rows)]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0].id))


def connect(context: Context, new: Sequence[Memory], ms: int) -> Links:
    """Return the links of new memories to similar ones, also to earlier ones of the same write."""
    similar = {memory.id: find_similar(context, memory.vector) for memory in new}
    for memory, pairs in zip(new, _earlier(new), strict=True):
        similar[memory.id] += pairs
    targets = {target.id for pairs in similar.values() for target, cosine in pairs if cosine > graph.MIN_SIMILARITY}
    incoming = _incoming(context, targets)
    known = {link.id for links in incoming.values() for link in links}
    made: dict[str, list[Link]] = {}
    for memory in new:
        made[memory.id] = graph.choose(memory, similar[memory.id], incoming, ms)
        for link in made[memory.id]:
            incoming[link.target].append(link)
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

        rows = np.stack([np.frombuffer(cast("Vector", new[at].vector).data, dtype=np.float32) for at in places]).astype(
            np.float64
        )
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
