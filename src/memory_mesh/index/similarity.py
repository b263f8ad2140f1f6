"""How like a query the vectors of a partition are: the best of all, and of those that are asked for by name."""

from collections.abc import Sequence

import numpy as np

from memory_mesh.index.arrays import Array, Flags, Floats, Ints
from memory_mesh.index.table import Table
from memory_mesh.index.vectors import Space
from memory_mesh.index.view import View, rows_of, speaking

# So many vectors are compared one by one; of more, the bits say first which are worth it.
EXACT = 1500
# So many of the nearest by their bits are compared exactly: one in eighty, but no fewer and no more than these. Of 17,000 real
# sentences that finds 99 % of the first ten and 93 % of the first hundred.
NEAREST, LEAST, MOST = 80, 500, 2000
# Beyond so many vectors the first words of their bits say which ones' other bits are worth a look: one in so many.
COARSE, WORDS, ONE_IN = 60_000, 3, 32
# Of the candidates' sessions so many memories are compared that a filter leaves out.
MEMBERS = 4000
_MANY = 4000


class Likeness:
    """A query's vector against the vectors of one partition, of the same model."""

    def __init__(self, table: Table, view: View, space: Space, query: Floats) -> None:
        self._table, self._view, self._space, self._query = table, view, space, query
        self._all = space.cosines(np.arange(len(space)), query) if len(space) <= EXACT else None
        self._signs = space.signs(query) if self._all is None else np.zeros(0, np.uint64)
        self._compared: list[tuple[Ints, Floats]] = []  # memories, and how alike each was found
        self._filtered = False

    def comparable(self, allowed: Flags | None) -> int:
        """How many of these memories have a vector to compare; None: of all that are readable."""
        return self._view.comparable(self._space) if allowed is None else speaking(self._space, allowed)

    def best(self, allowed: Flags | None, size: int) -> tuple[Ints, Floats]:
        """The most alike memories, and how alike; None allows all that are readable."""
        self._filtered = allowed is not None
        space = self._space
        seen = self._view.rows_seen(space) if allowed is None else rows_of(space, allowed)
        if self._all is None and (len(space) if seen is None else np.count_nonzero(seen)) > EXACT:
            rows = self._shortlist(seen)
        else:
            rows = np.arange(len(space)) if seen is None else seen.nonzero()[0]
        cosines = self._cosines(rows)
        owners = space.owners[rows]
        self._compared.append((owners, cosines))
        order = _highest(cosines, size if not space.further else len(cosines))
        if space.further:  # a memory counts once, with its best passage
            _, firsts = np.unique(owners[order], return_index=True)
            order = order[np.sort(firsts)][:size]
        return owners[order], cosines[order]

    def of(self, slots: Ints, wanted: Sequence[Ints]) -> tuple[Floats, Floats]:
        """How alike those of these memories are whose places are wanted: by the best passage, and by their own vectors alone.
        0 without a vector, and for the one behind the last."""
        some = np.zeros(len(slots) + 1, np.bool_)
        for places in wanted:
            some[places] = True
        at = some[:-1].nonzero()[0]
        rows = self._space.rows[slots[at]]
        held = rows >= 0
        own = np.zeros(len(some), np.float32)
        own[at[held]] = self._noted(slots[at[held]], rows[held])
        passed, passages = self._passages(slots[at])
        if not len(passed):
            return own, own
        best = np.full(len(some), -np.inf, np.float32)
        best[at[held]] = own[at[held]]
        np.maximum.at(best, at[passed], self._noted(slots[at[passed]], passages))
        return np.where(np.isfinite(best), best, np.float32(0)), own

    def length(self, slots: Ints, before: Ints, behind: Ints) -> Floats:
        """The length of ½ · before + own + ½ · behind, for vectors of length one."""
        known = self._view.mixed_lengths(self._space)
        new = np.isnan(known[slots]).nonzero()[0]
        if len(new):
            known[slots[new]] = self._mixed_length(slots[new], before[new], behind[new])
        return known[slots]

    def of_sessions(self, sessions: Ints, place: Ints) -> Floats:
        """The best of each of these sessions, among all that were compared; 0 where none was. `place` says where among them a
        session is; -1: nowhere."""
        if self._filtered:  # then none was compared that the caller's filter does not let through
            slots, _ = self._table.members.of(sessions)
            slots = slots[self._view.readable[slots]]
            self.of(slots[:MEMBERS], [np.arange(min(len(slots), MEMBERS))])
        best = np.full(len(sessions), -np.inf, np.float32)
        for slots, cosines in self._compared:
            codes = self._table.column("session")[slots]
            at = np.where(codes >= 0, place.take(codes, mode="clip"), -1) if len(place) else codes
            np.maximum.at(best, at[at >= 0], cosines[at >= 0])
        return np.where(np.isfinite(best), best, np.float32(0))

    def _mixed_length(self, *slots: Ints) -> Floats:
        rows = self._space.rows
        own, before, behind = (np.where(which >= 0, rows[which], -1) for which in slots)
        square = self._space.lengths(own) + (self._space.lengths(before) + self._space.lengths(behind)) / 4
        square += self._space.products(own, before) + self._space.products(own, behind)
        square += self._space.products(before, behind) / 2
        return np.sqrt(np.maximum(square, 0))

    def _cosines(self, rows: Ints) -> Floats:
        return self._space.cosines(rows, self._query) if self._all is None else self._all[rows]

    def _noted(self, slots: Ints, rows: Ints) -> Floats:
        cosines = self._cosines(rows)
        self._compared.append((slots, cosines))
        return cosines

    def _passages(self, slots: Ints) -> tuple[Ints, Ints]:
        """Which of these memories have passages, and where their vectors are."""
        further = self._space.further
        found = [(at, row) for at, slot in enumerate(slots.tolist()) for row in further.get(slot, ())] if further else []
        pairs = np.array(found, np.int32).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def _shortlist(self, seen: Flags | None) -> Ints:
        space = self._space
        coarse = len(space) > COARSE
        distances = space.distances(self._signs, slice(WORDS if coarse else None))
        if seen is not None:
            distances |= np.multiply(~seen, np.iinfo(distances.dtype).max, dtype=distances.dtype)
        enough = min(max(len(space) // NEAREST, LEAST), MOST)
        rows = _lowest(distances, max(len(space) // ONE_IN, 4 * enough) if coarse else enough)
        if seen is not None:
            rows = rows[seen[rows]]
        if not coarse:
            return rows
        others = space.distances_of(rows, self._signs, range(WORDS, len(self._signs)))
        return rows[_lowest(distances[rows] + others, enough)]


def _lowest(values: Array, count: int) -> Array:
    """The places of about so many of the lowest values, ascending; a few more where many are equal."""
    if len(values) <= count:
        return np.arange(len(values))
    some = values[:: 8 if count > _MANY else 1]  # how far the lowest reach is seen from a part of them
    most = int(np.bincount(some).cumsum().searchsorted(count * len(some) // len(values)))
    found: Array = (values <= most).nonzero()[0]
    return found[: 2 * count]


def _highest(values: Floats, count: int) -> Array:
    """The places of the highest values, best first."""
    at = np.argpartition(-values, count)[:count] if count < len(values) else np.arange(len(values))
    order: Array = at[np.argsort(-values[at], kind="stable")]
    return order
