"""The vectors of one model, small enough to keep many of them at hand.

Each vector is kept twice: as one byte a dimension, which gives its cosine to three digits, and as one bit a dimension (on which
side of the mean it lies), which tells at a tenth of the price whether it is worth a look.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from memory_mesh.index.arrays import Array, Columns, Flags, Floats, Grown, Ints

_STEPS = 127
_BLOCK = 8192  # bits of so many vectors stay in the processor's cache
_ROWS = 1024  # so many whole vectors do
_FOR_MEAN = 20_000
_WORD = 64
_BYTE = 4  # fewer words than this have no more bits than a byte can count


class Space:
    """The vectors of one model and dimension: a base, perhaps in a mapped file, and what came later."""

    def __init__(self, dimension: int, base: Columns | None = None) -> None:
        self.dimension = dimension
        base = _empty(dimension) if base is None else base
        self._base_codes, self._base_bits = base["codes"], base["bits"]
        self.mean: Floats = base["mean"]
        self._meant_for = int(base["meant_for"][0])  # how many there were when the mean was taken
        self._codes = Grown(np.empty((0, dimension), np.int8))
        self._bits = Grown(np.empty((0, self._base_bits.shape[0]), np.uint64))
        self._weights = Grown(np.array(base["weights"]))
        self._slots = Grown(np.array(base["vector_slots"]))  # the memory or passage whose vector it is
        self._owners = Grown(np.full(self._slots.size, -1, np.int32))  # the memory that it speaks for; -1: none
        self._rows = Grown(np.zeros(0, np.int32))  # by slot: where its own vector is; -1: nowhere
        self.further: dict[int, list[int]] = {}  # by slot: where the vectors of its passages are

    def __len__(self) -> int:
        return self._slots.size

    @property
    def owners(self) -> Ints:
        return self._owners.all

    @property
    def slots(self) -> Ints:
        return self._slots.all

    @property
    def rows(self) -> Ints:
        """By slot: where its own vector is; -1: nowhere."""
        return self._rows.all

    # --- change ---

    def attach(self, owner_of: Ints) -> None:
        """Say of what was read from a file which memory each vector speaks for."""
        self._rows.fill(len(owner_of), -1)
        self._owners.all[:] = owner_of[self.slots]
        self.rows[self.slots] = np.arange(len(self))
        for row in np.flatnonzero((self.owners != self.slots) & (self.owners >= 0)).tolist():
            self.further.setdefault(int(self.owners[row]), []).append(row)

    def add(self, slots: Sequence[int], data: Sequence[bytes]) -> None:
        """Vectors of new slots. What they speak for is said by `speak`."""
        codes, weights = quantised(np.frombuffer(b"".join(data), "<f4").reshape(len(data), -1))
        bits = self.bits_of(codes, weights)
        self.reach(max(slots) + 1)
        for at, slot in enumerate(slots):
            self.rows[slot] = len(self)
            self._codes.append(codes[at])
            self._bits.append(bits[at])
            self._weights.append(weights[at])
            self._slots.append(slot)
            self._owners.append(-1)

    def reach(self, slots: int) -> None:
        """Know of so many slots."""
        self._rows.fill(slots, -1)

    def speak(self, slot: int, owner: int) -> None:
        """The vector of a slot, if it has one here, speaks for this memory from now on; -1: for none."""
        row = int(self.rows[slot]) if slot < self._rows.size else -1
        if row < 0:
            return
        before = int(self.owners[row])
        if before >= 0 and before != slot:
            self.further[before].remove(row)
            if not self.further[before]:
                del self.further[before]
        self.owners[row] = owner
        if owner >= 0 and owner != slot:
            self.further.setdefault(owner, []).append(row)

    def bits_of(self, codes: Array, weights: Array) -> Array:
        """One bit a dimension: whether it lies above the mean."""
        return _packed(codes.astype(np.float32) * weights[:, None] > self.mean)

    def packed(self, keep: Flags, fresh: Ints) -> Columns:
        """All of it as one base, without the dead and under the slots' new numbers."""
        living = keep[self.slots]
        codes = np.concatenate([part[kept] for part, kept in self._parts(living)])
        weights = self._weights.all[living]
        if len(codes) >= 2 * self._meant_for:
            self.mean, self._meant_for = _mean(codes, weights), len(codes)
            bits = np.empty((self._base_bits.shape[0], len(codes)), np.uint64)
            for at in range(0, len(codes), _BLOCK):
                bits[:, at : at + _BLOCK] = self.bits_of(codes[at : at + _BLOCK], weights[at : at + _BLOCK]).T
        else:
            old = len(self._base_codes)
            bits = np.concatenate((self._base_bits[:, living[:old]], self._bits.all[living[old:]].T), axis=1)
        return {
            "codes": codes, "bits": np.ascontiguousarray(bits), "mean": self.mean, "weights": weights,
            "vector_slots": fresh[self.slots[living]].astype(np.int32), "meant_for": np.array([self._meant_for]),
        }  # fmt: skip

    def _parts(self, marks: Flags) -> list[tuple[Array, Flags]]:
        old = len(self._base_codes)
        return [(self._base_codes, marks[:old]), (self._codes.all, marks[old:])]

    # --- questions ---

    def products(self, left: Ints, right: Ints) -> Floats:
        """The cosine of each of these vectors with its partner; 0 where one of them is missing (-1)."""
        products = np.zeros(len(left), np.float32)
        there = ((left >= 0) & (right >= 0)).nonzero()[0]
        left, right = left[there], right[there]
        dots = np.vecdot(self._taken(left), self._taken(right), dtype=np.float32)
        products[there] = dots * self._weights.all[left] * self._weights.all[right]
        return products

    def lengths(self, rows: Ints) -> Floats:
        """1 for each of these vectors; 0 where it is missing (-1), or has no length of its own."""
        lengths = np.zeros(len(rows), np.float32)
        there = rows >= 0
        lengths[there] = self._weights.all[rows[there]] > 0
        return lengths

    def cosines(self, rows: Ints, query: Floats) -> Floats:
        """The cosine of each of these vectors with the query."""
        dots = np.empty(len(rows), np.float32)
        for at in range(0, len(rows), _ROWS):
            # Row by row: a product with a matrix wakes threads, and waits for them longer than it works.
            np.vecdot(self._taken(rows[at : at + _ROWS]), query, out=dots[at : at + _ROWS])
        dots *= self._weights.all[rows]
        return dots

    def signs(self, query: Floats) -> Array:
        """The bits of a query."""
        bits: Array = _packed(query[None, :] > self.mean)[0]
        return bits

    def distances(self, signs: Array, words: slice) -> Array:
        """In how many of these bits each vector differs from the query."""
        # Where a byte can hold them they are added up twice as fast.
        counted = np.empty(len(self), np.uint8 if len(signs[words]) < _BYTE else np.uint16)
        old = len(self._base_codes)
        _differences(self._base_bits[words], signs[words], counted[:old])
        _differences(self._bits.all.T[words], signs[words], counted[old:])
        return counted

    def distances_of(self, rows: Ints, signs: Array, words: Iterable[int]) -> Array:
        """The same, of some vectors."""
        counted, old = np.zeros(len(rows), np.uint16), len(self._base_codes)
        tail = rows >= old
        mixed = bool(tail.any())
        for word in words:
            bits = self._base_bits[word].take(rows, mode="clip") if old else np.zeros(len(rows), np.uint64)
            if mixed:
                bits[tail] = self._bits.all[rows[tail] - old, word]
            counted += np.bitwise_count(bits ^ signs[word])
        return counted

    def _taken(self, rows: Ints) -> Array:
        old = len(self._base_codes)
        if not self._codes.size:
            return self._base_codes.take(rows, axis=0)
        if not old:
            return self._codes.all.take(rows, axis=0)
        taken = self._base_codes.take(rows, axis=0, mode="clip")
        tail = rows >= old
        taken[tail] = self._codes.all[rows[tail] - old]
        return taken


def quantised(vectors: Array) -> tuple[Array, Array]:
    """Vectors as bytes, and what makes each of length one again."""
    wide = np.nan_to_num(vectors.astype(np.float64))
    peaks = np.abs(wide).max(axis=1, keepdims=True)
    codes = np.rint(np.divide(wide * _STEPS, peaks, out=np.zeros_like(wide), where=peaks > 0)).astype(np.int8)
    lengths = np.linalg.norm(codes.astype(np.float32), axis=1)
    return codes, np.divide(1, lengths, out=np.zeros(len(codes), np.float32), where=lengths > 0)


def unit(data: bytes) -> Floats:
    """A packed vector, of length one; one of length zero stays zero."""
    wide = np.frombuffer(data, "<f4").astype(np.float64)
    length = float(np.sqrt(np.vecdot(wide, wide)))
    return (wide / length if length > 0 else np.zeros_like(wide)).astype(np.float32)


def _packed(flags: Flags) -> Array:
    bytes_ = np.packbits(flags, axis=1, bitorder="little")
    packed = np.zeros((len(flags), 8 * -(-flags.shape[1] // _WORD)), np.uint8)
    packed[:, : bytes_.shape[1]] = bytes_
    return packed.view(np.uint64)


def _differences(bits: Array, signs: Array, out: Array) -> None:
    differing, counted = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint8)
    for at in range(0, len(out), _BLOCK):
        part = out[at : at + _BLOCK]
        part[:] = 0
        for word, sign in enumerate(signs):
            np.bitwise_xor(bits[word, at : at + _BLOCK], sign, out=differing[: len(part)])
            np.bitwise_count(differing[: len(part)], out=counted[: len(part)])
            part += counted[: len(part)]


def _mean(codes: Array, weights: Array) -> Floats:
    some = slice(None, None, max(1, len(codes) // _FOR_MEAN))
    if not len(codes):
        return np.zeros(codes.shape[1], np.float32)
    mean: Floats = (codes[some].astype(np.float32) * weights[some][:, None]).mean(axis=0)
    return mean


def _empty(dimension: int) -> Columns:
    return {
        "codes": np.empty((0, dimension), np.int8), "bits": np.empty((-(-dimension // _WORD), 0), np.uint64),
        "mean": np.zeros(dimension, np.float32), "weights": np.zeros(0, np.float32), "vector_slots": np.zeros(0, np.int32),
        "meant_for": np.zeros(1, np.int64),
    }  # fmt: skip
