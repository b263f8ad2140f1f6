"""The vectors of one model, and their similarity to a query.

Each vector is stored twice: as one byte per dimension, which gives its cosine to three digits, and as one bit per dimension
(above or below the mean), which shows at a tenth of the cost whether it is worth comparing.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np

from memory_mesh.index.arrays import Array, Columns, Flags, Floats, GrowingArray, Ints

Model: TypeAlias = tuple[str, int]  # name and dimension

# Up to this number all vectors are compared. Beyond it, their bits select the ones that are.
MAX_EXACT = 1500
# Vectors selected by their bits: one in eighty, within these bounds. Of 17,000 real sentences that finds 99 % of the first ten
# and 93 % of the first hundred.
ONE_IN, MIN_SHORTLIST, MAX_SHORTLIST = 80, 500, 2000
# Beyond this number of vectors, the first words of their bits select one in so many, and the other bits are read of those only.
COARSE, COARSE_WORDS, COARSE_ONE_IN = 60_000, 3, 32

_STEPS = 127
_BITS_BLOCK = 8192  # vectors whose bits fit into the processor's cache
_ROWS_BLOCK = 1024  # vectors that fit into it
_MEAN_SAMPLE = 20_000
_WORD = 64
_BYTE_WORDS = 4  # fewer words than this have no more bits than a byte can count
_SAMPLED = 4000


class Space:
    """The vectors of one model: a base, perhaps in a mapped file, and later additions.

    A row is the place of a vector, a slot the place of a memory or passage in the table. The owner of a vector is the memory
    itself, or the memory that a passage is part of.
    """

    def __init__(self, model: Model, base: Columns | None = None) -> None:
        self.model, dimension = model, model[1]
        base = _empty(dimension) if base is None else base
        self._base_codes, self._base_bits = base["codes"], base["bits"]
        self._mean: Floats = base["mean"]
        self._mean_size = int(base["meant_for"][0])  # the number of vectors that the mean was computed from
        self._codes = GrowingArray(np.empty((0, dimension), np.int8))
        self._bits = GrowingArray(np.empty((0, self._base_bits.shape[0]), np.uint64))
        self._weights = GrowingArray(np.array(base["weights"]))
        self._slots = GrowingArray(np.array(base["vector_slots"]))
        self._owners = GrowingArray(np.full(self._slots.size, -1, np.int32))
        self._rows = GrowingArray(np.zeros(0, np.int32))
        self.passages: dict[int, list[int]] = {}  # by slot: the rows of its passages

    def __len__(self) -> int:
        return self._slots.size

    @property
    def owners(self) -> Ints:
        """By row: the slot of the memory that the vector belongs to; -1: none."""
        return self._owners.values

    @property
    def slots(self) -> Ints:
        """By row: the slot of the memory or passage."""
        return self._slots.values

    @property
    def rows(self) -> Ints:
        """By slot: the row of its own vector; -1: none."""
        return self._rows.values

    # --- changes ---

    def set_owners(self, owner_of: Ints) -> None:
        """Set the owners of all vectors of the base; `owner_of` is by slot."""
        self.grow(len(owner_of))
        self.owners[:] = owner_of[self.slots]
        self.rows[self.slots] = np.arange(len(self))
        for row in np.flatnonzero((self.owners != self.slots) & (self.owners >= 0)).tolist():
            self.passages.setdefault(int(self.owners[row]), []).append(row)

    def add(self, slots: Sequence[int], data: Sequence[bytes]) -> None:
        """Add the vectors of new slots, without owners."""
        codes, weights = _quantised(np.frombuffer(b"".join(data), "<f4").reshape(len(data), -1))
        bits = self._bits_of(codes, weights)
        self.grow(max(slots) + 1)
        for at, slot in enumerate(slots):
            self.rows[slot] = len(self)
            self._codes.append(codes[at])
            self._bits.append(bits[at])
            self._weights.append(weights[at])
            self._slots.append(slot)
            self._owners.append(-1)

    def grow(self, slots: int) -> None:
        """Make room for so many slots."""
        self._rows.grow(slots, -1)

    def set_owner(self, slot: int, owner: int) -> None:
        """Set the owner of the vector of a slot, if it has one; -1: none."""
        row = int(self.rows[slot]) if slot < self._rows.size else -1
        if row < 0:
            return
        before = int(self.owners[row])
        if before >= 0 and before != slot:
            self.passages[before].remove(row)
            if not self.passages[before]:
                del self.passages[before]
        self.owners[row] = owner
        if owner >= 0 and owner != slot:
            self.passages.setdefault(owner, []).append(row)

    def packed(self, keep: Flags, new_slots: Ints) -> Columns:
        """Return all vectors as a new base, without dead slots."""
        living, old = keep[self.slots], len(self._base_codes)
        codes = np.concatenate((self._base_codes[living[:old]], self._codes.values[living[old:]]))
        weights = self._weights.values[living]
        if len(codes) >= 2 * self._mean_size:
            self._mean, self._mean_size = _mean(codes, weights), len(codes)
            bits = np.empty((self._base_bits.shape[0], len(codes)), np.uint64)
            for at in range(0, len(codes), _BITS_BLOCK):
                bits[:, at : at + _BITS_BLOCK] = self._bits_of(codes[at : at + _BITS_BLOCK], weights[at : at + _BITS_BLOCK]).T
        else:
            bits = np.concatenate((self._base_bits[:, living[:old]], self._bits.values[living[old:]].T), axis=1)
        return {
            "codes": codes, "bits": np.ascontiguousarray(bits), "mean": self._mean, "weights": weights,
            "vector_slots": new_slots[self.slots[living]].astype(np.int32), "meant_for": np.array([self._mean_size]),
        }  # fmt: skip

    def _bits_of(self, codes: Array, weights: Array) -> Array:
        return _packed_bits(codes.astype(np.float32) * weights[:, None] > self._mean)

    # --- comparisons ---

    def products(self, left: Ints, right: Ints) -> Floats:
        """Return the cosine of each pair of rows; 0 where one of them is -1."""
        products = np.zeros(len(left), np.float32)
        there = ((left >= 0) & (right >= 0)).nonzero()[0]
        left, right = left[there], right[there]
        dots = np.vecdot(self._take(left), self._take(right), dtype=np.float32)
        products[there] = dots * self._weights.values[left] * self._weights.values[right]
        return products

    def lengths(self, rows: Ints) -> Floats:
        """Return 1 for each row; 0 where it is -1, or its vector is zero."""
        lengths = np.zeros(len(rows), np.float32)
        there = rows >= 0
        lengths[there] = self._weights.values[rows[there]] > 0
        return lengths

    def cosines(self, rows: Ints, query: Floats) -> Floats:
        """Return the cosine of each row with the query."""
        dots = np.empty(len(rows), np.float32)
        for at in range(0, len(rows), _ROWS_BLOCK):
            # Row by row: a matrix product wakes threads, and waiting for them takes longer than the work.
            np.vecdot(self._take(rows[at : at + _ROWS_BLOCK]), query, out=dots[at : at + _ROWS_BLOCK])
        dots *= self._weights.values[rows]
        return dots

    def query_bits(self, query: Floats) -> Array:
        bits: Array = _packed_bits(query[None, :] > self._mean)[0]
        return bits

    def distances(self, query_bits: Array, words: slice) -> Array:
        """Return in how many of these bits each vector differs from the query."""
        # Adding up bytes takes half the time, where a byte can hold the sum.
        counted = np.empty(len(self), np.uint8 if len(query_bits[words]) < _BYTE_WORDS else np.uint16)
        old = len(self._base_codes)
        _count_differences(self._base_bits[words], query_bits[words], counted[:old])
        _count_differences(self._bits.values.T[words], query_bits[words], counted[old:])
        return counted

    def distances_of(self, rows: Ints, query_bits: Array, words: Iterable[int]) -> Array:
        """Return the same for some rows."""
        counted, old = np.zeros(len(rows), np.uint16), len(self._base_codes)
        later = rows >= old
        mixed = bool(later.any())
        for word in words:
            bits = self._base_bits[word].take(rows, mode="clip") if old else np.zeros(len(rows), np.uint64)
            if mixed:
                bits[later] = self._bits.values[rows[later] - old, word]
            counted += np.bitwise_count(bits ^ query_bits[word])
        return counted

    def _take(self, rows: Ints) -> Array:
        old = len(self._base_codes)
        if not self._codes.size:
            return self._base_codes.take(rows, axis=0)
        if not old:
            return self._codes.values.take(rows, axis=0)
        codes = self._base_codes.take(rows, axis=0, mode="clip")
        later = rows >= old
        codes[later] = self._codes.values[rows[later] - old]
        return codes


class VisibleVectors:
    """The vectors of a space that belong to memories visible to one reader, with values that are reused between queries."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._rows: Flags | None = None
        self._comparable: int | None = None
        self._context_lengths = GrowingArray(np.empty(0, np.float32))

    def rows(self, readable: Flags) -> Flags | None:
        """Return by row whether its owner is readable; None: all are."""
        if self._rows is None:
            self._rows = owned_rows(self.space, readable)
        return None if self._rows.all() else self._rows

    def comparable(self, readable: Flags) -> int:
        """Return how many readable memories have a vector."""
        if self._comparable is None:
            self._comparable = count_comparable(self.space, readable)
        return self._comparable

    def context_lengths(self, size: int) -> Floats:
        """By slot: the length of ½ · previous + own + ½ · next; NaN: not computed yet. `Similarity` fills it in."""
        self._context_lengths.grow(size, np.nan)
        return self._context_lengths.values

    def forget_rows(self) -> None:
        """Forget which rows are readable, because that has changed."""
        self._rows = self._comparable = None

    def forget_lengths(self, slots: Ints, size: int) -> None:
        """Forget the lengths of these slots, because their neighbours have changed."""
        self.context_lengths(size)[slots] = np.nan


class Similarity:
    """The similarity of a query's vector to the vectors of one partition, of the same model."""

    def __init__(self, visible: VisibleVectors, readable: Flags, query: bytes) -> None:
        self._visible, self._space, self._readable = visible, visible.space, readable
        self._query = _unit(query)
        space = self._space
        self._all = space.cosines(np.arange(len(space)), self._query) if len(space) <= MAX_EXACT else None
        self._query_bits = space.query_bits(self._query) if self._all is None else np.zeros(0, np.uint64)
        self._compared: list[tuple[Ints, Floats]] = []  # slots and their cosines

    def comparable(self, allowed: Flags | None) -> int:
        """Return how many of the allowed memories have a vector; None allows all readable ones."""
        return self._visible.comparable(self._readable) if allowed is None else count_comparable(self._space, allowed)

    def best(self, allowed: Flags | None, size: int) -> tuple[Ints, Floats]:
        """Return the most similar allowed memories and their cosines, best first; None allows all readable ones."""
        space = self._space
        visible = self._visible.rows(self._readable) if allowed is None else owned_rows(space, allowed)
        if self._all is None and (len(space) if visible is None else np.count_nonzero(visible)) > MAX_EXACT:
            rows = self._shortlist(visible)
        else:
            rows = np.arange(len(space)) if visible is None else visible.nonzero()[0]
        cosines = self._cosines(rows)
        owners = space.owners[rows]
        self._compared.append((owners, cosines))
        order = _highest(cosines, size if not space.passages else len(cosines))
        if space.passages:  # a memory counts once, with its best passage
            _, firsts = np.unique(owners[order], return_index=True)
            order = order[np.sort(firsts)][:size]
        return owners[order], cosines[order]

    def of(self, slots: Ints, wanted: Sequence[Ints]) -> tuple[Floats, Floats]:
        """Return the cosines of these memories, by their best passage and by their own vector, for the places in `wanted`.

        0 for a memory without a vector, and in one more place at the end.
        """
        some = np.zeros(len(slots) + 1, np.bool_)
        for places in wanted:
            some[places] = True
        at = some[:-1].nonzero()[0]
        rows = self._space.rows[slots[at]]
        there = rows >= 0
        own = np.zeros(len(some), np.float32)
        own[at[there]] = self._compare(slots[at[there]], rows[there])
        with_passages, passage_rows = self._passages(slots[at])
        if not len(with_passages):
            return own, own
        best = np.full(len(some), -np.inf, np.float32)
        best[at[there]] = own[at[there]]
        np.maximum.at(best, at[with_passages], self._compare(slots[at[with_passages]], passage_rows))
        return np.where(np.isfinite(best), best, np.float32(0)), own

    def context_lengths(self, slots: Ints, before: Ints, after: Ints) -> Floats:
        """Return the length of ½ · before + own + ½ · after, for vectors of length one."""
        lengths = self._visible.context_lengths(len(self._readable))
        new = np.isnan(lengths[slots]).nonzero()[0]
        if len(new):
            lengths[slots[new]] = self._context_length(slots[new], before[new], after[new])
        return lengths[slots]

    def of_sessions(self, count: int, place: Ints, session_of: Ints) -> Floats:
        """Return the best cosine of each of `count` sessions, among all memories compared so far; 0 if there are none.

        `place` is by session: its place among the `count`; -1: none. `session_of` is by slot.
        """
        best = np.full(count, -np.inf, np.float32)
        for slots, cosines in self._compared:
            codes = session_of[slots]
            at = np.where(codes >= 0, place.take(codes, mode="clip"), -1) if len(place) else codes
            np.maximum.at(best, at[at >= 0], cosines[at >= 0])
        return np.where(np.isfinite(best), best, np.float32(0))

    def _context_length(self, *slots: Ints) -> Floats:
        space = self._space
        own, before, after = (np.where(which >= 0, space.rows[which], -1) for which in slots)
        square = space.lengths(own) + (space.lengths(before) + space.lengths(after)) / 4
        square += space.products(own, before) + space.products(own, after)
        square += space.products(before, after) / 2
        return np.sqrt(np.maximum(square, 0))

    def _cosines(self, rows: Ints) -> Floats:
        return self._space.cosines(rows, self._query) if self._all is None else self._all[rows]

    def _compare(self, slots: Ints, rows: Ints) -> Floats:
        cosines = self._cosines(rows)
        self._compared.append((slots, cosines))
        return cosines

    def _passages(self, slots: Ints) -> tuple[Ints, Ints]:
        """Return the places of the memories with passages, and the rows of these passages."""
        passages = self._space.passages
        pairs = [(at, row) for at, slot in enumerate(slots.tolist()) for row in passages.get(slot, ())] if passages else []
        columns = np.array(pairs, np.int32).reshape(-1, 2)
        return columns[:, 0], columns[:, 1]

    def _shortlist(self, visible: Flags | None) -> Ints:
        space, bits = self._space, self._query_bits
        coarse = len(space) > COARSE
        distances = space.distances(bits, slice(COARSE_WORDS if coarse else None))
        if visible is not None:
            distances |= np.multiply(~visible, np.iinfo(distances.dtype).max, dtype=distances.dtype)
        size = min(max(len(space) // ONE_IN, MIN_SHORTLIST), MAX_SHORTLIST)
        rows = _lowest(distances, max(len(space) // COARSE_ONE_IN, 4 * size) if coarse else size)
        if visible is not None:
            rows = rows[visible[rows]]
        if not coarse:
            return rows
        others = space.distances_of(rows, bits, range(COARSE_WORDS, len(bits)))
        return rows[_lowest(distances[rows] + others, size)]


def owned_rows(space: Space, slots: Flags) -> Flags:
    """Return by row whether its owner is one of these slots."""
    return (space.owners >= 0) & slots.take(space.owners, mode="clip")


def count_comparable(space: Space, slots: Flags) -> int:
    """Return how many of these slots own a vector."""
    has_vector = space.rows >= 0
    has_vector[list(space.passages)] = True
    return int(np.count_nonzero(has_vector & slots))


def _quantised(vectors: Array) -> tuple[Array, Array]:
    """Return the vectors as bytes, and for each the factor that makes its length one."""
    wide = np.nan_to_num(vectors.astype(np.float64))
    peaks = np.abs(wide).max(axis=1, keepdims=True)
    codes = np.rint(np.divide(wide * _STEPS, peaks, out=np.zeros_like(wide), where=peaks > 0)).astype(np.int8)
    lengths = np.linalg.norm(codes.astype(np.float32), axis=1)
    return codes, np.divide(1, lengths, out=np.zeros(len(codes), np.float32), where=lengths > 0)


def _unit(data: bytes) -> Floats:
    """Return a packed vector with length one; a zero vector stays zero."""
    wide = np.frombuffer(data, "<f4").astype(np.float64)
    length = float(np.sqrt(np.vecdot(wide, wide)))
    return (wide / length if length > 0 else np.zeros_like(wide)).astype(np.float32)


def _packed_bits(flags: Flags) -> Array:
    bytes_ = np.packbits(flags, axis=1, bitorder="little")
    packed = np.zeros((len(flags), 8 * -(-flags.shape[1] // _WORD)), np.uint8)
    packed[:, : bytes_.shape[1]] = bytes_
    return packed.view(np.uint64)


def _count_differences(bits: Array, query_bits: Array, out: Array) -> None:
    differing, counted = np.empty(_BITS_BLOCK, np.uint64), np.empty(_BITS_BLOCK, np.uint8)
    for at in range(0, len(out), _BITS_BLOCK):
        part = out[at : at + _BITS_BLOCK]
        part[:] = 0
        for word, query_word in enumerate(query_bits):
            np.bitwise_xor(bits[word, at : at + _BITS_BLOCK], query_word, out=differing[: len(part)])
            np.bitwise_count(differing[: len(part)], out=counted[: len(part)])
            part += counted[: len(part)]


def _mean(codes: Array, weights: Array) -> Floats:
    sample = slice(None, None, max(1, len(codes) // _MEAN_SAMPLE))
    if not len(codes):
        return np.zeros(codes.shape[1], np.float32)
    mean: Floats = (codes[sample].astype(np.float32) * weights[sample][:, None]).mean(axis=0)
    return mean


def _lowest(values: Array, count: int) -> Array:
    """Return the places of about `count` of the lowest values, ascending; a few more where many are equal."""
    if len(values) <= count:
        return np.arange(len(values))
    sample = values[:: 8 if count > _SAMPLED else 1]
    highest = int(np.bincount(sample).cumsum().searchsorted(count * len(sample) // len(values)))
    places: Array = (values <= highest).nonzero()[0]
    return places[: 2 * count]


def _highest(values: Floats, count: int) -> Array:
    """Return the places of the highest values, best first."""
    at = np.argpartition(-values, count)[:count] if count < len(values) else np.arange(len(values))
    order: Array = at[np.argsort(-values[at], kind="stable")]
    return order


def _empty(dimension: int) -> Columns:
    return {
        "codes": np.empty((0, dimension), np.int8), "bits": np.empty((-(-dimension // _WORD), 0), np.uint64),
        "mean": np.zeros(dimension, np.float32), "weights": np.zeros(0, np.float32), "vector_slots": np.zeros(0, np.int32),
        "meant_for": np.zeros(1, np.int64),
    }  # fmt: skip
