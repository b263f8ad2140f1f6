"""The candidates for a query: the best by keywords, the best by vectors, and the neighbours of the best of both.

The partitions that a reader sees make one corpus and give one pool; a session stays within its partition.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from memory_mesh.core.model.columns import Kind
from memory_mesh.core.search import SIGNALS, Corpus, Pool, Query, Signal
from memory_mesh.index.arrays import Flags, Floats, Ints, distinct, places_in
from memory_mesh.index.keywords import Held, Scale
from memory_mesh.index.rows import key_of
from memory_mesh.index.signals import (
    Picked,
    Read,
    Side,
    keyword_signals,
    plain_signals,
    session_signal,
    vector_signals,
)
from memory_mesh.index.similarity import Likeness
from memory_mesh.index.table import Table
from memory_mesh.index.vectors import unit
from memory_mesh.index.view import View

_MOST = 3  # a pool is at most so many times as large as asked for


def pool_of(asked: Query, seen: Iterable[tuple[Table, View]], *, size: int) -> Pool:
    """The candidates among these partitions."""
    words = dict(sorted(Counter(asked.tokens).items()))
    sides = [_side(asked, words, table, view) for table, view in seen if len(table)]
    counts = [sum(held) for held in zip(*(side.held.counts for side in sides), strict=True)] if sides else []
    corpus = sum((Corpus(side.table.documents, side.table.length) for side in sides), Corpus(0, 0))
    scale = Scale.of(corpus, counts, list(words.values())[: len(counts)])
    picked = [Picked.of(side, slots) for side, slots in zip(sides, _picked(sides, scale, size), strict=True)]
    read = [Read.of(side, each) for side, each in zip(sides, picked, strict=True)]
    sessions = _session_signals(sides, picked, read, list(words.values()))
    stranger = _stranger(asked, sides)
    found = [
        {
            **keyword_signals(text, scale),
            **vector_signals(side, each, text),
            **plain_signals(asked, side, each),
            "keywords_session": session,
            "stranger": np.full(len(each.slots), stranger, np.float32),
        }
        for side, each, text, session in zip(sides, picked, read, sessions, strict=True)
    ]
    return Pool(
        ids=[id_ for side, each in zip(sides, picked, strict=True) for id_ in side.table.ids.of(each.slots)],
        signals={name: _joined([held[name] for held in found]) for name in SIGNALS},
        documents=sum(_documents(side) for side in sides),
        excluded=dict(sum((_unseen(side) for side in sides), Counter())),  # those that left something out
        without_vector=sum(_foreign(asked, side) for side in sides),
    )


def _stranger(asked: Query, sides: Sequence[Side]) -> float:
    """The share of the query's names that nobody has mentioned in what the reader sees."""
    unheard = [name for name in asked.names if not any(side.view.readable[side.table.holding(name)[0]].any() for side in sides)]
    return len(unheard) / len(asked.names) if asked.names else 0.0


def _side(asked: Query, words: Mapping[str, int], table: Table, view: View) -> Side:
    likeness = None
    if asked.vector and (space := table.spaces.get((asked.vector.model, asked.vector.dimension))):
        likeness = Likeness(table, view, space, unit(asked.vector.data))
    return Side(table, view, _allowed(asked, table, view), Held(table, list(words)), likeness)


def _allowed(asked: Query, table: Table, view: View) -> Flags | None:
    if asked.only is None:
        return None
    allowed = np.zeros(len(table), np.bool_)
    allowed[table.slots_of([key_of(Kind.MEMORY, id_) for id_ in asked.only])] = True
    allowed &= view.readable
    return allowed


def _picked(sides: Sequence[Side], scale: Scale, size: int) -> list[Ints]:
    """The candidates of each partition."""
    by_words = _best_of_all([side.held.best(scale, side.candidates, size) for side in sides], size)
    by_vectors = _best_of_all([_most_alike(side, size) for side in sides], size)
    room = _MOST * size
    picked = []
    for side, worded, alike in zip(sides, by_words, by_vectors, strict=True):
        best = np.concatenate((worded[: size // 3], alike[: size // 3]))
        near = np.concatenate(side.view.neighbours(best))
        near = near[near >= 0]
        near = near[side.candidates[near]]
        chosen = distinct(worded, alike)
        near = near[places_in(chosen, near) == len(chosen)]
        every = distinct(chosen, near)
        if len(every) > room:
            every = distinct(chosen, near[: max(0, room - len(chosen))])
        room -= len(every)
        picked.append(every)
    return picked


def _most_alike(side: Side, size: int) -> tuple[Ints, Floats]:
    if side.likeness is None:
        return np.zeros(0, np.int32), np.zeros(0, np.float32)
    return side.likeness.best(side.allowed, size)


def _best_of_all(found: Sequence[tuple[Ints, Floats]], size: int) -> list[Ints]:
    """The best of several lists, each best first."""
    values = np.concatenate([np.zeros(0, np.float32), *(scores for _, scores in found)])
    if len(values) <= size:
        return [slots for slots, _ in found]
    least = -np.partition(-values, size - 1)[size - 1]
    return [slots[scores >= least] for slots, scores in found]


def _session_signals(sides: Sequence[Side], picked: Sequence[Picked], read: Sequence[Read], asked: Sequence[int]) -> list[Signal]:
    counted = [
        side.held.in_sessions(side.view.readable, each.place, len(each.sessions))
        for side, each in zip(sides, picked, strict=True)
    ]
    sessions = sum((side.view.sessions for side in sides), Corpus(0, 0))
    holding = [sum(held) for held in zip(*(held for _, held in counted), strict=True)]
    scale = Scale.of(sessions, holding, asked[: len(holding)])
    return [
        session_signal(side, each, text, times, scale)
        for side, each, text, (times, _) in zip(sides, picked, read, counted, strict=True)
    ]


def _joined(parts: Sequence[Signal]) -> Signal:
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.float32), *parts])


def _documents(side: Side) -> int:
    return side.view.documents if side.allowed is None else int(np.count_nonzero(side.allowed))


def _unseen(side: Side) -> Counter[str]:
    return Counter({**side.view.unseen(), "filter": side.view.documents - _documents(side)})


def _foreign(asked: Query, side: Side) -> int:
    """The candidates that cannot be compared with the query."""
    if asked.vector is None:
        return 0
    return _documents(side) - (0 if side.likeness is None else side.likeness.comparable(side.allowed))
