"""The vectors of one model, and how a query is compared with them.

Each vector is stored as one byte per dimension, which gives its cosine to three digits. In a large
base it is also stored as one bit per dimension (above or below the mean), which shows at a sixth of
the cost whether it is worth comparing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from memory_mesh.core.model import Vector
from memory_mesh.index.arrays import (
    Array,
    Columns,
    Flags,
    Floats,
    GrowingArray,
    Ints,
    Model,
    lowest,
)
from memory_mesh.index.tokens import TokenVectors

try:
    import numkong as simd
except ImportError:
    # Without a wheel for the system, numpy computes the same numbers, about six times as slowly.
    simd = None  # type: ignore[assignment]

# Visible vectors that are all compared; of more, their bits select the ones that are.
MAX_EXACT = 20_000
# Vectors selected by their bits. Of a million mixtures of embedded sentences, 2,000 as well as
# 3,000 found all of the first ten, and 99 % of the first hundred.
SHORTLIST = 2500
_SPARSE = 16  # the bits of fewer rows than one in so many are read row by row
_STEPS = 127
_MIN_PEAK = 1e-30
_BLOCK = 1024  # vectors that fit into the processor's cache
_MEAN_SAMPLE = 20_000


def are_few(count: int) -> bool:
    """Return whether so many visible vectors are all compared."""
    return count <= MAX_EXACT


@dataclass(frozen=True, slots=True)
class QueryVector:
    """A query as bytes and as bits."""

    codes: Array
    weight: float  # the factor that makes its length one
    unit: Floats

    @classmethod
    def of(cls, data: bytes) -> "QueryVector":
        vector = np.frombuffer(data, "<f4")
        peak = float(np.abs(vector).max(initial=0))
        if not _MIN_PEAK < peak < inf:
            vector, peak = (
                np.nan_to_num(vector),
                float(np.abs(np.nan_to_num(vector)).max(initial=0)),
            )
        unit = np.rint(vector * np.float32(_STEPS / max(peak, _MIN_PEAK)))
        codes, length = unit.astype(np.int8), sqrt(float(np.vecdot(unit, unit)))
        weight = 1 / length if length else 0.0
        unit *= np.float32(weight)
        return cls(codes, weight, unit)


class Space:
    """The vectors of one model: a base, perhaps in a mapped file, and later additions.

    A row is the place of a vector, a slot the place of a memory or passage in the table. The owner
    of a vector is the memory itself, or the memory that a passage is part of.
    """

    def __init__(self, model: Model, base: Columns | None = None) -> None:
        self.model, dimension = model, model[1]
        base = base or {
            "codes": np.empty((0, dimension), np.int8),
            "weights": np.zeros(0),
            "vector_slots": np.zeros(0),
        }
        self._base = base["codes"]
        self._packed: simd.PackedMatrix | None = None  # the base in the order that the kernel reads
        self._bits = _Bits(base["bits"], base["mean"]) if "bits" in base else None
        self._codes = GrowingArray(np.empty((0, dimension), np.int8))
        self._weights = GrowingArray(np.array(base["weights"], np.float32))
        self._slots = GrowingArray(np.array(base["vector_slots"], np.int32))
        self._owners = GrowingArray(np.full(self._slots.size, -1, np.int32))
        self._rows = GrowingArray(np.zeros(0, np.int32))
        self.tokens = TokenVectors(base)
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

    def add(self, vectors: Mapping[int, Vector]) -> None:
        """Add the vectors of new slots, by slot, without owners."""
        slots = list(vectors)
        codes, weights = _quantised(
            np.frombuffer(b"".join(each.data for each in vectors.values()), "<f4").reshape(
                len(slots), -1
            )
        )
        self.grow(max(slots) + 1)
        self.rows[slots] = np.arange(len(self), len(self) + len(slots))
        self._codes.extend(codes)
        self._weights.extend(weights)
        self._slots.extend(np.array(slots, np.int32))
        self._owners.grow(len(self), -1)
        self.tokens.add([each.tokens for each in vectors.values()])

    def grow(self, slots: int) -> None:
        """Make room for so many slots."""
        self._rows.grow(slots, -1)

    def set_new_owners(self, slots: Ints, owner_of: Ints) -> None:
        """Set the owners of vectors that have none yet; `owner_of` is by slot, -1: none."""
        rows, owners = self.rows[slots], owner_of[slots]
        self.owners[rows] = owners
        for at in np.flatnonzero((owners != slots) & (owners >= 0)).tolist():
            self.passages.setdefault(int(owners[at]), []).append(int(rows[at]))

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
        """Return all vectors as a new base, without dead slots; at least one is alive."""
        living, old = keep[self.slots], len(self._base)
        codes = np.concatenate((self._base[living[:old]], self._codes.values[living[old:]]))
        weights = self._weights.values[living]
        slots = new_slots[self.slots[living]].astype(np.int32)
        bits = _Bits.columns_of(codes, weights) if len(codes) > MAX_EXACT else {}
        columns = {"codes": codes, "weights": weights, "vector_slots": slots}
        return {**columns, **bits, **self.tokens.packed(living)}

    # --- comparisons ---

    def all_cosines(self, query: QueryVector) -> Floats:
        """Return the cosine of each vector with the query, by row, and a 0."""
        padded, old = np.empty(len(self) + 1, np.float32), len(self._base)
        cosines, padded[-1] = padded[:-1], 0
        if self._packed:
            cosines[:old] = np.asarray(
                simd.dots_packed(query.codes[None, :], self._packed)
            ).reshape(-1)
        elif old:
            _dot(query.codes, self._base, cosines[:old])
            # For the next query.
            self._packed = simd.dots_pack(self._base, dtype="int8") if simd else None
        if old < len(self):
            _dot(query.codes, self._codes.values, cosines[old:])
        cosines *= self._weights.values
        cosines *= np.float32(query.weight)
        return padded

    def cosines(self, rows: Ints, query: QueryVector) -> Floats:
        """Return the cosine of each of these rows with the query."""
        cosines = np.empty(len(rows), np.float32)
        for at in range(0, len(rows), _BLOCK):
            _dot(query.codes, self._take(rows[at : at + _BLOCK]), cosines[at : at + _BLOCK])
        cosines *= self._weights.values[rows]
        cosines *= np.float32(query.weight)
        return cosines

    def shortlist(self, query: QueryVector, allowed: Flags) -> Ints:
        """Return those of the allowed rows that are worth comparing: the nearest by their bits, and
        all later additions.

        Other rows are removed before anything is counted, so that they neither push out an allowed
        one nor change the number.
        """
        old = len(self._base)
        later = allowed[old:].nonzero()[0] + old
        in_base = int(np.count_nonzero(allowed[:old]))
        if self._bits is None or in_base <= SHORTLIST:
            return np.concatenate((allowed[:old].nonzero()[0], later))
        if in_base * _SPARSE < old:
            rows = allowed[:old].nonzero()[0]
            near = rows[
                lowest(
                    self._bits.differences_of(rows, query.unit),
                    np.ones(len(rows), np.bool_),
                    SHORTLIST,
                )
            ]
        else:
            near = lowest(self._bits.differences(query.unit), allowed[:old], SHORTLIST)
        return np.concatenate((near, later))

    def products(self, left: Ints, right: Ints) -> Floats:
        """Return the cosine of each pair of rows; 0 where one of them is -1."""
        products = np.zeros(len(left), np.float32)
        there = ((left >= 0) & (right >= 0)).nonzero()[0]
        left, right = left[there], right[there]
        weights = self._weights.values
        products[there] = (
            _pair_dots(self._take(left), self._take(right)) * weights[left] * weights[right]
        )
        return products

    def lengths(self, rows: Ints) -> Floats:
        """Return 1 for each row; 0 where it is -1, or its vector is zero."""
        return ((rows >= 0) & (self._weights.values[rows] > 0)).astype(np.float32)

    def _take(self, rows: Ints) -> Array:
        old = len(self._base)
        if not self._codes.size:
            return self._base.take(rows, axis=0)
        if not old:
            return self._codes.values.take(rows, axis=0)
        codes = self._base.take(rows, axis=0, mode="clip")
        later = rows >= old
        codes[later] = self._codes.values[rows[later] - old]
        return codes


class _Bits:
    """One bit for each dimension of the vectors of a base."""

    def __init__(self, bits: Array, mean: Floats) -> None:
        self._bits, self._mean = bits, mean
        # A copy of the bits in the order that its kernel reads.
        self._packed = simd.hammings_pack(bits, dtype="uint1") if simd else None

    @classmethod
    def columns_of(cls, codes: Array, weights: Floats) -> Columns:
        sample = slice(None, None, max(1, len(codes) // _MEAN_SAMPLE))
        mean = (codes[sample] * weights[sample][:, None]).mean(axis=0)
        blocks = [slice(at, at + _BLOCK) for at in range(0, len(codes), _BLOCK)]
        bits = [_packed_bits(codes[block] * weights[block][:, None] > mean) for block in blocks]
        return {"bits": np.concatenate(bits), "mean": mean}

    def differences(self, query: Floats) -> Ints:
        """Return in how many bits each vector differs from the query."""
        bits = _packed_bits((query > self._mean)[None, :])
        if self._packed is None:
            return _count_differences(bits, self._bits)
        return np.asarray(simd.hammings_packed(bits, self._packed)).reshape(-1)

    def differences_of(self, rows: Ints, query: Floats) -> Ints:
        """Return the same for some rows."""
        return _count_differences(
            _packed_bits((query > self._mean)[None, :]), self._bits.take(rows, axis=0)
        )


def _dot(query: Array, codes: Array, out: Floats) -> None:
    if simd and len(codes):
        simd.dot(query, codes, out=out)
        return
    wide = query.astype(np.float32)
    for at in range(0, len(codes), _BLOCK):
        # Row by row: a matrix product wakes threads, and waiting for them takes longer than the
        # work.
        np.vecdot(codes[at : at + _BLOCK], wide, out=out[at : at + _BLOCK])


def _pair_dots(left: Array, right: Array) -> Floats:
    if simd and len(left):
        return np.asarray(simd.dot(left, right), np.float32)
    return np.vecdot(left, right, dtype=np.float32)  # type: ignore[no-any-return]


def _quantised(vectors: Array) -> tuple[Array, Floats]:
    """Return the vectors as bytes, and for each the factor that makes its length one."""
    wide = vectors.astype(np.float64)
    peaks = np.abs(wide).max(axis=1, keepdims=True)
    if not np.isfinite(peaks).all():
        return _quantised(np.nan_to_num(vectors))
    wide *= _STEPS / np.where(peaks > 0, peaks, 1)
    codes = np.rint(wide, out=wide).astype(np.int8)
    lengths = np.sqrt(np.vecdot(codes, codes, dtype=np.float32))
    return codes, (1 / np.where(lengths > 0, lengths, np.inf)).astype(np.float32)


def _packed_bits(flags: Flags) -> Array:
    # Whole words, for numpy.
    packed = np.zeros((len(flags), 8 * -(-flags.shape[1] // 64)), np.uint8)
    packed[:, : -(-flags.shape[1] // 8)] = np.packbits(flags, axis=1, bitorder="little")
    return packed


def _count_differences(query: Array, bits: Array) -> Ints:
    differing = bits.view(np.uint64) ^ query.view(np.uint64)
    counted: Ints = np.bitwise_count(differing).sum(axis=1, dtype=np.uint32)
    return counted
