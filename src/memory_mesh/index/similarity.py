"""The vector channel of a search: the nearest memories of a partition, and the cosines of any others."""

import numpy as np

from memory_mesh.index.arrays import Flags, Floats, Ints, highest, maxima
from memory_mesh.index.space import QueryVector, are_few
from memory_mesh.index.view import VisibleVectors

_SPARSE = 4  # if fewer than one in so many vectors of a space are visible, only those are compared


class Similarity:
    """The similarity of a query's vector to the vectors of one partition, of the same model."""

    def __init__(self, visible: VisibleVectors, allowed: Flags | None, query: bytes) -> None:
        self._visible, self._space = visible, visible.space
        self._allowed = visible.rows  # by row
        if allowed is not None:
            self._allowed = self._allowed & allowed.take(self._space.owners, mode="clip")
        self._query = QueryVector.of(query)
        self._compared: list[tuple[Ints | slice, Floats]] = []  # rows and their cosines
        # By row, unless the reader sees too many: then a shortlist is compared. Hidden vectors do not decide this.
        self._all = self._compare_all() if are_few(visible.count) else None

    def best(self, size: int) -> tuple[Ints, Floats]:
        """Return the most similar allowed memories, best first, and their cosines."""
        rows = self._allowed.nonzero()[0] if self._all is not None else self._space.shortlist(self._query, self._allowed)
        cosines = self._cosines(rows)
        passages = len(self._space.passages) > 0
        order = highest(cosines, len(cosines) if passages else size)
        owners, cosines = self._space.owners[rows[order]], cosines[order]
        if passages:  # a memory counts once, with its best passage
            _, firsts = np.unique(owners, return_index=True)
            firsts = np.sort(firsts)[:size]
            return owners[firsts], cosines[firsts]
        return owners, cosines

    def count(self, allowed: Flags | None) -> int:
        """Return the number of these memories, by slot, that have a vector; None: of all readable ones."""
        visible = self._visible
        return visible.memory_count if allowed is None else int(np.count_nonzero(visible.memories & allowed))

    def of(self, slots: Ints, wanted: Ints) -> tuple[Floats, Floats]:
        """Return the cosines of these memories, by their best passage and by their own vector, for the places in `wanted`.

        0 for a memory without a vector, and in one more place at the end.
        """
        some = np.zeros(len(slots) + 1, np.bool_)
        some[wanted] = True
        at = some[:-1].nonzero()[0]
        rows = self._space.rows[slots[at]]
        there = rows >= 0
        own_at, own = at[there], np.zeros(len(some), np.float32)
        own[own_at] = self._cosines(rows[there])
        if not (passages := self._space.passages):
            return own, own
        memories = zip(at.tolist(), slots[at].tolist(), strict=True)
        pairs = [(place, row) for place, slot in memories for row in passages.get(slot, ())]
        places, passage_rows = np.array(pairs, np.int32).reshape(-1, 2).T
        parts = ((own_at, own[own_at]), (places, self._cosines(passage_rows)))
        return maxima(len(some), parts), own

    def context_lengths(self, *slots: Ints) -> Floats:
        """Return the length of own + ½ · before + ½ · after, for vectors of length one, of these memories."""
        lengths, space = self._visible.context_lengths, self._space
        new = np.isnan(lengths[slots[0]]).nonzero()[0]
        if len(new):
            own, before, after = (np.where(which[new] >= 0, space.rows[which[new]], -1) for which in slots)
            square = space.lengths(own) + (space.lengths(before) + space.lengths(after)) / 4
            square += space.products(own, before) + space.products(own, after)
            square += space.products(before, after) / 2
            lengths[slots[0][new]] = np.sqrt(np.maximum(square, 0))
        return lengths[slots[0]]

    def of_sessions(self, count: int, place: Ints) -> Floats:
        """Return the best cosine of each of `count` sessions, among all readable memories compared so far; 0 if there are none.

        `place` is by session: its place among the `count`; -1: none, as in its last place.
        """
        sessions = self._visible.sessions
        groups = [(place.take(sessions[rows]), cosines) for rows, cosines in self._compared]
        some = [((at >= 0).nonzero()[0], at, cosines) for at, cosines in groups]
        return maxima(count, ((at[there], cosines[there]) for there, at, cosines in some))

    @property
    def knows_all(self) -> bool:
        """Whether every vector was compared."""
        return self._all is not None

    def _compare_all(self) -> Floats:
        """Compare all visible vectors, or all of the space where that is faster; return the cosines by row."""
        if len(self._space) <= _SPARSE * self._visible.count:
            cosines = self._space.all_cosines(self._query)
            self._compared.append((slice(None), cosines))
            return cosines
        rows, cosines = self._visible.rows.nonzero()[0], np.zeros(len(self._space), np.float32)
        cosines[rows] = self._space.cosines(rows, self._query)
        self._compared.append((rows, cosines[rows]))
        return cosines

    def _cosines(self, rows: Ints) -> Floats:
        if self._all is not None:
            return self._all[rows]
        cosines = self._space.cosines(rows, self._query)
        self._compared.append((rows, cosines))
        return cosines
