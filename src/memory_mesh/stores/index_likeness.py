"""How like a query the vectors of a partition are: the best of all, and of those that are asked for by name."""

import numpy as np

from memory_mesh.stores.index_arrays import Array, Flags, Floats, Ints
from memory_mesh.stores.index_table import Table
from memory_mesh.stores.index_vectors import Space
from memory_mesh.stores.index_view import View, rows_of

# So many vectors are compared one by one; of more, the bits say first which are worth it.
EXACT = 1500
# So many of the nearest by all bits are compared exactly.
NEAREST = 1000
# Beyond so many vectors the first words of their bits say which ones' other bits are worth a look: one in so many.
COARSE, WORDS, ONE_IN = 60_000, 2, 10
_FAR = 10_000


class Likeness:
    """A query's vector against the vectors of one partition, of the same model."""

    def __init__(self, table: Table, view: View, space: Space, query: Floats) -> None:
        self._table, self._view, self._space, self._query = table, view, space, query
        self._all = space.cosines(np.arange(len(space)), query) if len(space) <= EXACT else None
        self._signs = space.signs(query) if self._all is None else np.zeros(0, np.uint64)
        self._compared = np.zeros(0, np.int32), np.zeros(0, np.float32)

    @property
    def has_passages(self) -> bool:
        return bool(self._space.further)

    def comparable(self, slots: Flags) -> int:
        """How many of these memories have a vector to compare."""
        held = self._space.rows >= 0
        held[list(self._space.further)] = True
        return int(np.count_nonzero(held & slots))

    def best(self, allowed: Flags | None, size: int) -> tuple[Ints, Floats]:
        """The most alike memories, and how alike; None allows all that are readable."""
        space = self._space
        seen = self._view.rows_seen(space) if allowed is None else rows_of(space, allowed)
        rows = np.arange(len(space)) if seen is None else np.flatnonzero(seen)
        if self._all is None and len(rows) > EXACT:
            rows = self._shortlist(seen)
        cosines = self._cosines(rows)
        owners = space.owners[rows]
        self._compared = owners, cosines
        order = _highest(cosines, size if not space.further else len(cosines))
        if space.further:  # a memory counts once, with its best passage
            _, firsts = np.unique(owners[order], return_index=True)
            order = order[np.sort(firsts)][:size]
        return owners[order], cosines[order]

    def of(self, slots: Ints) -> Floats:
        """How alike these memories are, each by its best passage; 0 without a vector."""
        rows = self._space.rows[slots]
        held = rows >= 0
        cosines = np.full(len(slots), -np.inf, np.float32)
        cosines[held] = self._cosines(rows[held])
        at, passages = self._passages(slots)
        if len(at):
            np.maximum.at(cosines, at, self._cosines(passages))
        return np.where(np.isfinite(cosines), cosines, np.float32(0))

    def own(self, slots: Ints) -> Floats:
        """The same by their own vectors alone."""
        rows = self._space.rows[slots]
        cosines = np.zeros(len(slots), np.float32)
        cosines[rows >= 0] = self._cosines(rows[rows >= 0])
        return cosines

    def length(self, slots: Ints, before: Ints, behind: Ints) -> Floats:
        """The length of ½ · before + own + ½ · behind, for vectors of length one."""
        rows = self._space.rows
        held = [(which >= 0) & (rows.take(which, mode="clip") >= 0) for which in (slots, before, behind)]
        close = self._view.closeness(self._space)
        missing = np.isnan(close[slots, 0]) | ((behind >= 0) & np.isnan(close[behind, 0]))
        if missing.any():
            wanted = np.unique(np.concatenate((slots[missing], behind[missing & (behind >= 0)])))
            self._work_out(wanted, close)
        with_behind = np.where(behind >= 0, close[behind, 0], 0)
        square = held[0] + (held[1] + held[2].astype(np.float32)) / 4 + close[slots, 0] + with_behind + close[slots, 1] / 2
        length: Floats = np.sqrt(np.maximum(square, 0)).astype(np.float32)
        return length

    def of_sessions(self, sessions: Ints, place: Ints) -> Floats:
        """The best of each of these sessions; -inf without a vector. `place` says where among them a session is, -1: nowhere."""
        best = np.full(len(sessions), -np.inf, np.float32)
        self._raise(best, place, *self._compared)
        slots, groups = self._table.members.of(sessions)
        seen = self._view.readable[slots]
        slots, groups = slots[seen], groups[seen]
        rows = self._space.rows[slots]
        at, passages = self._passages(slots)
        rows, groups = np.concatenate((rows[rows >= 0], passages)), np.concatenate((groups[rows >= 0], groups[at]))
        if self._all is None and len(rows) > EXACT:
            rows, groups = self._nearest_of_each(rows, groups, len(sessions))
        np.maximum.at(best, groups, self._cosines(rows))
        return best

    def _nearest_of_each(self, rows: Ints, groups: Ints, count: int) -> tuple[Ints, Ints]:
        """Of each session the one that is nearest by its bits."""
        keys = self._space.distances_of(rows, self._signs).astype(np.int64) << 32 | np.arange(len(rows))
        least = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(least, groups, keys)
        found = least[least < np.iinfo(np.int64).max] & 0xFFFFFFFF
        return rows[found], groups[found]

    def _raise(self, best: Floats, place: Ints, slots: Ints, cosines: Floats) -> None:
        if not len(place):
            return  # no memory of the partition belongs to a session
        sessions = self._table.column("session")[slots]
        at = np.where((sessions >= 0) & self._view.readable[slots], place.take(sessions, mode="clip"), -1)
        np.maximum.at(best, at[at >= 0], cosines[at >= 0])

    def _work_out(self, slots: Ints, close: Array) -> None:
        before, behind = self._view.neighbours(slots)
        units = [self._units(which) for which in (slots, before, behind)]
        close[slots, 0] = np.einsum("ij,ij->i", units[0], units[1])
        close[slots, 1] = np.einsum("ij,ij->i", units[1], units[2])

    def _units(self, slots: Ints) -> Floats:
        rows = np.where(slots >= 0, self._space.rows.take(slots, mode="clip"), -1)
        units = np.zeros((len(slots), self._space.dimension), np.float32)
        units[rows >= 0] = self._space.units(rows[rows >= 0])
        return units

    def _cosines(self, rows: Ints) -> Floats:
        return self._space.cosines(rows, self._query) if self._all is None else self._all[rows]

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
            distances[~seen] = _FAR
        if not coarse:
            return _lowest(distances, NEAREST)
        rows = _lowest(distances, max(len(space) // ONE_IN, 4 * NEAREST))
        rows = rows[distances[rows] < _FAR]
        return rows[_lowest(space.distances_of(rows, self._signs), NEAREST)]


def _lowest(values: Array, count: int) -> Array:
    """The places of the lowest values, ascending."""
    if len(values) <= count:
        return np.arange(len(values))
    most = np.partition(values, count)[count]
    below = np.flatnonzero(values < most)
    ties = np.flatnonzero(values == most)[: count - len(below)]
    return np.sort(np.concatenate((below, ties)))


def _highest(values: Floats, count: int) -> Array:
    """The places of the highest values, best first."""
    at = np.argpartition(-values, count)[:count] if count < len(values) else np.arange(len(values))
    order: Array = at[np.argsort(-values[at], kind="stable")]
    return order
