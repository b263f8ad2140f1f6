"""The vector channel of a search: the nearest memories of a partition, and other cosines."""

import numpy as np

from memory_mesh.core.model import Vector
from memory_mesh.index.arrays import Flags, Floats, Ints, distinct, highest, maxima, places_in
from memory_mesh.index.space import QueryVector, are_few
from memory_mesh.index.tokens import QueryTokens
from memory_mesh.index.view import VisibleVectors

BEFORE = 0.94  # what a word in the previous memory counts, compared with one in the memory itself
_SPARSE = 4  # if fewer than one in so many vectors of a space are visible, only those are compared


class Similarity:
    """The similarity of a query's vector to the vectors of one partition, of the same model."""

    def __init__(self, visible: VisibleVectors, allowed: Flags | None, query: Vector) -> None:
        self._visible, self._space = visible, visible.space
        self._allowed = visible.rows  # by row
        if allowed is not None:
            self._allowed = self._allowed & allowed.take(self._space.owners, mode="clip")
        self._query = QueryVector.of(query.data)
        self._tokens = None if self._space.tokens.empty else QueryTokens.of(query.tokens)
        self._filtered = allowed is not None
        # Rows and their cosines, unless all were compared.
        self._compared: list[tuple[Ints, Floats]] = []
        # By row, with a 0 at the end, unless the reader sees too many: then a shortlist is
        # compared. Hidden vectors do not decide this.
        self._all = self._compare_all() if are_few(visible.count) else None

    def best(self, size: int) -> tuple[Ints, Floats]:
        """Return the most similar allowed memories, best first, and their cosines."""
        if self._all is None:
            rows = self._space.shortlist(self._query, self._allowed)
            return self._best(rows, self._cosines(rows), size)
        cosines = self._all[:-1]
        if self._filtered or self._visible.count < len(cosines):
            rows = self._allowed.nonzero()[0]
            return self._best(rows, cosines.take(rows), size)
        return self._best(None, cosines, size)

    def _best(self, rows: Ints | None, cosines: Floats, size: int) -> tuple[Ints, Floats]:
        """Return the owners and the cosines of the highest of these rows, or of all. A memory
        counts once, with its best passage."""
        count = size
        while True:
            order = highest(cosines, count)
            owners = self._space.owners.take(order if rows is None else rows.take(order))
            if not self._space.passages:
                return owners, cosines.take(order)
            _, firsts = np.unique(owners, return_index=True)
            if len(firsts) >= size or count >= len(cosines):
                firsts = np.sort(firsts)[:size]
                return owners[firsts], cosines.take(order[firsts])
            count *= 4

    def count(self, allowed: Flags | None) -> int:
        """Return the number of these memories, by slot, that have a vector; None: of all
        readable ones."""
        visible = self._visible
        return (
            visible.memory_count
            if allowed is None
            else int(np.count_nonzero(visible.memories & allowed))
        )

    def of(self, slots: Ints) -> tuple[Floats, Floats]:
        """Return the cosines of memories, by their best passage and by their own vector; 0 for
        -1 and without a vector."""
        if not self._space.passages:
            rows = self._space.rows.take(slots)
            np.copyto(rows, -1, where=slots < 0)
            own = self._all.take(rows) if self._all is not None else self._cosines_or_0(rows)
            return own, own
        memories = distinct(slots.reshape(-1))
        memories = memories[memories >= 0]
        best, own = self.compare(memories)
        places = places_in(memories, slots)
        return best.take(places), own.take(places)

    def compare(self, slots: Ints) -> tuple[Floats, Floats]:
        """Return the same for these memories, and 0 in one more place at the end."""
        rows, passages = np.append(self._space.rows[slots], -1), self._space.passages
        own = self._cosines_or_0(rows)
        if not passages:
            return own, own
        pairs = [
            (place, row)
            for place, slot in enumerate(slots.tolist())
            for row in passages.get(slot, ())
        ]
        places, passage_rows = np.array(pairs, np.int32).reshape(-1, 2).T
        own_at = (rows >= 0).nonzero()[0]
        parts = ((own_at, own[own_at]), (places, self._cosines(passage_rows)))
        return maxima(len(own), parts), own

    def by_tokens(self, own: Ints, before: Ints) -> Floats | None:
        """Return how well the tokens of memories match those of the query, and how well they do
        together with those of the memories before them; 0 without tokens, and None if the query or
        every vector has none. Of several passages the best one counts, and all of them together."""
        if self._tokens is None:
            return None
        memories = distinct(own, before)
        memories = memories[memories >= 0]
        rows, places = self._rows_of(memories)
        there = self._space.tokens.counts(rows).nonzero()[0]
        rows, places = rows[there], places[there]
        nearest, weights = self._space.tokens.nearest(rows, self._tokens), self._tokens.weights
        if not self._space.passages:
            all_of = np.zeros((len(memories) + 1, len(weights)), np.float32)
            all_of[places] = nearest
            best = all_of @ weights
        else:
            all_of = np.full((len(memories) + 1, len(weights)), -np.inf, np.float32)
            np.maximum.at(all_of, places, nearest)
            all_of[~np.isfinite(all_of)] = 0
            best = maxima(len(all_of), [(places, nearest @ weights)])
        has_tokens = np.zeros(len(all_of), np.bool_)
        has_tokens[places] = True
        at, at_before = places_in(memories, own), places_in(memories, before)
        together = all_of.take(at, axis=0)
        np.maximum(
            together, BEFORE * all_of.take(at_before, axis=0), out=together,
            where=has_tokens.take(at_before)[:, None],
        )  # fmt: skip
        return np.stack((best.take(at), together @ weights))

    def _rows_of(self, slots: Ints) -> tuple[Ints, Ints]:
        """Return the rows of these memories, those of passages too, and the place of the memory
        of each."""
        rows, passages = self._space.rows.take(slots), self._space.passages
        there = (rows >= 0).nonzero()[0]
        if not passages:
            return rows[there], there
        pairs = [
            (row, at) for at, slot in enumerate(slots.tolist()) for row in passages.get(slot, ())
        ]
        more = np.array(pairs, np.int64).reshape(-1, 2).T
        return np.concatenate((rows[there], more[0])), np.concatenate((there, more[1]))

    def context_lengths(self, slots: Ints) -> Floats:
        """Return the length of own + ½ · before + ½ · after, for vectors of length one; `slots`
        has a row of each, own last."""
        lengths, space = self._visible.context_lengths, self._space
        found: Floats = lengths.take(slots[-1])
        new = np.isnan(found).nonzero()[0]
        if len(new):
            before, after, own = (
                np.where(which[new] >= 0, space.rows[which[new]], -1) for which in slots
            )
            square = space.lengths(own) + (space.lengths(before) + space.lengths(after)) / 4
            square += space.products(own, before) + space.products(own, after)
            square += space.products(before, after) / 2
            found[new] = np.sqrt(np.maximum(square, 0))
            lengths[slots[-1][new]] = found[new]
        return found

    def of_sessions(self, count: int, place: Ints) -> Floats:
        """Return the best cosine of each of `count` sessions, among all readable memories compared
        so far; 0 if there are none, and in one more place at the end.

        `place` is by session, and in its last place for none: its place among the `count`; `count`:
        it is not one of them.
        """
        best = np.full(count + 1, -np.inf, np.float32)
        if self._all is not None and not self._compared:
            starts, sessions = self._visible.runs
            np.maximum.at(best, place.take(sessions), np.maximum.reduceat(self._all[:-1], starts))
        for rows, cosines in self._compared:
            np.maximum.at(best, place.take(self._visible.sessions.take(rows)), cosines)
        best[-1] = 0
        return np.where(np.isfinite(best), best, np.float32(0))

    @property
    def knows_all(self) -> bool:
        """Whether every vector was compared."""
        return self._all is not None

    def _compare_all(self) -> Floats:
        """Compare all visible vectors, or all of the space where that is faster; return the
        cosines by row, and a 0."""
        if len(self._space) <= _SPARSE * self._visible.count:
            return self._space.all_cosines(self._query)
        rows, cosines = self._visible.rows.nonzero()[0], np.zeros(len(self._space) + 1, np.float32)
        cosines[rows] = self._space.cosines(rows, self._query)
        self._compared.append((rows, cosines[rows]))
        return cosines

    def _cosines_or_0(self, rows: Ints) -> Floats:
        """Return the cosine of each of these rows; 0 where it is -1."""
        cosines, there = np.zeros(rows.shape, np.float32), rows >= 0
        cosines[there] = self._cosines(rows[there])
        return cosines

    def _cosines(self, rows: Ints) -> Floats:
        if self._all is not None:
            return self._all[rows]
        cosines = self._space.cosines(rows, self._query)
        self._compared.append((rows, cosines))
        return cosines
