"""Array structures of the index. The base of each may lie in a memory-mapped file; later additions lie in memory."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

# numpy mixes the widths of numbers freely, so only flags have a type of their own.
Array: TypeAlias = NDArray[Any]
Ints: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[Any]
Flags: TypeAlias = NDArray[np.bool_]
Columns: TypeAlias = Mapping[str, Array]  # by name
Model: TypeAlias = tuple[str, int]  # of vectors: name and dimension

_MIN_CAPACITY = 16
_MAX_LISTED = 50_000
_MAX_COUNT = 65535
_SAMPLED = 4000
_STEPS = 127
_BITS_BLOCK = 8192  # vectors whose bits fit into the processor's cache
_ROWS_BLOCK = 1024  # vectors that fit into it
_MEAN_SAMPLE = 20_000
_WORD = 64
_BYTE_WORDS = 4  # fewer words than this have no more bits than a byte can count


class GrowingArray:
    """An array that grows at its end, by doubling."""

    __slots__ = ("_data", "size")

    def __init__(self, start: Array) -> None:
        self._data, self.size = start, len(start)

    @property
    def values(self) -> Array:
        """The values, valid until the array grows."""
        return self._data[: self.size]

    def extend(self, values: Array) -> None:
        self.grow(self.size + len(values), values)

    def grow(self, size: int, value: object) -> None:
        """Grow to a size, with `value` in every new place."""
        if size > len(self._data):
            larger = np.empty((max(size, 2 * self.size, _MIN_CAPACITY), *self._data.shape[1:]), self._data.dtype)
            larger[: self.size] = self.values
            self._data = larger
        if size > self.size:
            self._data[self.size : size] = value
            self.size = size


class Texts:
    """Many short texts: those of a large base as one byte array, others in a list."""

    def __init__(self, joined: Array, ends: Array) -> None:
        self._joined, self._ends = joined, ends
        few = len(ends) <= _MAX_LISTED  # few enough to decode all of them at once
        self._listed: list[str] = self._decoded(np.arange(len(ends))) if few else []
        self._first_listed = 0 if few else len(ends)

    def at(self, places: Ints) -> list[str]:
        """Return the texts at these places."""
        first, listed = self._first_listed, self._listed
        if not first:
            return [listed[at] for at in places.tolist()]
        base = iter(self._decoded(places[places < first]))
        return [next(base) if at < first else listed[at - first] for at in places.tolist()]

    def _decoded(self, places: Ints) -> list[str]:
        ends = self._ends[places]
        lengths = ends - np.where(places > 0, self._ends[places - 1], 0)
        stops = np.cumsum(lengths)
        data = self._joined[np.arange(int(lengths.sum())) + np.repeat(ends - stops, lengths)].tobytes()
        text = data.decode() if data.isascii() else None  # slicing one text is faster than decoding many
        spans = [slice(stop - length, stop) for stop, length in zip(stops.tolist(), lengths.tolist(), strict=True)]
        return [data[span].decode() for span in spans] if text is None else [text[span] for span in spans]

    def append(self, text: str) -> None:
        self._listed.append(text)

    def packed(self, keep: Flags) -> tuple[Array, Array]:
        """Return the texts to keep as a new base."""
        texts = [text.encode() for text in self.at(keep.nonzero()[0])]
        return np.frombuffer(b"".join(texts), np.uint8), np.cumsum([len(text) for text in texts], dtype=np.int64)


class Keys:
    """The place of each 64-bit key: sorted arrays for the base, a dict for later additions."""

    def __init__(self, keys: Array, places: Array) -> None:
        self._keys, self._places = keys, places
        self._later: dict[int, int] = {}

    def set(self, key: int, place: int) -> None:
        self._later[key] = place

    def places(self, keys: Sequence[int]) -> Ints:
        """Return the place of each key; -1: none."""
        at = places_in(self._keys, np.fromiter(keys, np.uint64, len(keys)))
        places = np.full(len(keys), -1, np.int32)
        known = at < len(self._keys)
        places[known] = self._places[at[known]]
        if self._later:
            places[:] = [self._later.get(key, place) for key, place in zip(keys, places.tolist(), strict=True)]
        return places


class Postings:
    """For each keyword the slots that contain it, ascending, and how often: sorted arrays for the base, lists for additions."""

    def __init__(self, base: Columns) -> None:
        self._keys, self._ends = base["word_keys"], base["word_ends"]
        self._slots, self._counts = base["word_slots"], base["word_times"]
        self._later: dict[str, tuple[array[int], array[int]]] = {}

    def add(self, slot: int, words: Sequence[str]) -> None:
        for word, count in Counter(words).items():
            lists = self._later.get(word)
            if lists is None:
                lists = self._later[word] = (array("i"), array("H"))
            lists[0].append(slot)
            lists[1].append(min(count, _MAX_COUNT))

    def of(self, word: str) -> tuple[Ints, Array]:
        """Return the slots that contain a word, dead ones included, and how often each does."""
        key, span = hash64(word), slice(0)
        at = int(np.searchsorted(self._keys, np.uint64(key)))
        if at < len(self._keys) and int(self._keys[at]) == key:
            span = slice(int(self._ends[at - 1]) if at else 0, int(self._ends[at]))
        slots, counts = self._slots[span], self._counts[span]
        if (later := self._later.get(word)) is None:
            return slots, counts
        # Copied: an array.array cannot grow while numpy holds a view of it.
        return np.concatenate((slots, np.array(later[0], np.int32))), np.concatenate((counts, np.array(later[1], np.uint16)))

    def packed(self, keep: Flags, new_slots: Array) -> Columns:
        """Return all postings as a new base, without dead slots."""
        later = sorted((hash64(word), *lists) for word, lists in self._later.items())
        later_keys, later_sizes = [key for key, *_ in later], [len(slots) for _, slots, _ in later]
        keys = np.concatenate((
            self._keys.repeat(np.diff(self._ends, prepend=0)),
            np.array(later_keys, np.uint64).repeat(np.array(later_sizes, np.int64)),
        ))  # fmt: skip
        slots = np.concatenate((self._slots, *(np.frombuffer(slots, np.int32) for _, slots, _ in later)))
        counts = np.concatenate((self._counts, *(np.frombuffer(counts, np.uint16) for _, _, counts in later)))
        living = keep[slots].nonzero()[0]
        order = living[np.argsort(keys[living], kind="stable")]  # two sorted parts, which this sort merges
        keys = keys[order]
        ends = np.flatnonzero(np.diff(keys, append=~keys[-1:])) + 1
        return {
            "word_keys": keys[ends - 1], "word_ends": ends, "word_slots": new_slots[slots[order]], "word_times": counts[order],
        }  # fmt: skip


class SessionMembers:
    """The slots of each session: grouped for the base, lists for later additions."""

    def __init__(self, sessions: Array, count: int) -> None:
        order = np.argsort(sessions, kind="stable").astype(np.int32)
        self._order = order[np.count_nonzero(sessions < 0) :]
        self._starts = np.searchsorted(sessions[self._order], np.arange(count + 1))
        self._later: dict[int, list[int]] = defaultdict(list)

    def add(self, session: int, slot: int) -> None:
        if session >= 0:
            self._later[session].append(slot)

    def of(self, sessions: Ints) -> tuple[Ints, Ints]:
        """Return the slots of these sessions, dead ones included, and for each the place of its session in `sessions`."""
        last = len(self._starts) - 1
        first = self._starts[np.minimum(sessions, last)]
        counts = self._starts[np.minimum(sessions + 1, last)] - first
        groups = np.repeat(np.arange(len(sessions), dtype=np.int32), counts)
        slots = self._order[np.arange(len(groups)) + np.repeat(first - (np.cumsum(counts) - counts), counts)]
        if self._later:
            later = [(slot, at) for at, code in enumerate(sessions.tolist()) for slot in self._later.get(code, ())]
            more = np.array(later, np.int32).reshape(-1, 2)
            slots, groups = np.concatenate((slots, more[:, 0])), np.concatenate((groups, more[:, 1]))
        return slots, groups


def distinct(*parts: Array) -> Array:
    """Return the values of some arrays, ascending, each once. Faster than `np.unique` on small arrays."""
    values = np.sort(np.concatenate(parts))
    first = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values[first]


def places_in(among: Array, values: Array) -> Array:
    """Return the place of each value in an ascending array, or its length if the value is not there."""
    at = np.searchsorted(among, values)
    return np.where(among.take(at, mode="clip") == values, at, len(among)) if len(among) else at


def nth_highest(values: Floats, n: int) -> float:
    """Return the n-th highest value; 0 if there are fewer."""
    return float(-np.partition(-values, n - 1)[n - 1]) if len(values) >= n else 0.0


def highest(values: Floats, count: int) -> Ints:
    """Return the places of the highest values, best first."""
    values = -values
    at = values.argpartition(count)[:count] if count < len(values) else np.arange(len(values))
    order: Ints = at[values[at].argsort(kind="stable")]
    return order


def lowest(values: Array, count: int) -> Ints:
    """Return the places of about `count` of the lowest values, ascending; a few more where many are equal."""
    if len(values) <= count:
        return np.arange(len(values))
    sample = values[:: 8 if count > _SAMPLED else 1]
    highest = int(np.bincount(sample).cumsum().searchsorted(count * len(sample) // len(values)))
    places: Ints = (values <= highest).nonzero()[0]
    return places[: 2 * count]


def maxima(count: int, groups: Iterable[tuple[Ints, Floats]]) -> Floats:
    """Return the highest value at each of `count` places; 0 where there is none."""
    best = np.full(count, -np.inf, np.float32)
    for places, values in groups:
        np.maximum.at(best, places, values)
    return np.where(np.isfinite(best), best, np.float32(0))


def hash64(text: str) -> int:
    """Return a 64-bit hash that is equal in every process. Among a billion texts, two collide with a chance of one in forty."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


# --- vectors ---


class Space:
    """The vectors of one model: a base, perhaps in a mapped file, and later additions.

    Each vector is stored twice: as one byte per dimension, which gives its cosine to three digits, and as one bit per dimension
    (above or below the mean), which shows at a tenth of the cost whether it is worth comparing.

    A row is the place of a vector, a slot the place of a memory or passage in the table. The owner of a vector is the memory
    itself, or the memory that a passage is part of.
    """

    def __init__(self, model: Model, base: Columns | None = None) -> None:
        self.model, dimension = model, model[1]
        base = _empty_space(dimension) if base is None else base
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

    def add(self, vectors: Mapping[int, bytes]) -> None:
        """Add the vectors of new slots, by slot, without owners."""
        slots = list(vectors)
        codes, weights = _quantised(np.frombuffer(b"".join(vectors.values()), "<f4").reshape(len(slots), -1))
        self.grow(max(slots) + 1)
        self.rows[slots] = np.arange(len(self), len(self) + len(slots))
        self._codes.extend(codes)
        self._bits.extend(self._bits_of(codes, weights))
        self._weights.extend(weights)
        self._slots.extend(np.array(slots, np.int32))
        self._owners.grow(len(self), -1)

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
        """Return all vectors as a new base, without dead slots; at least one is alive."""
        living, old = keep[self.slots], len(self._base_codes)
        codes = np.concatenate((self._base_codes[living[:old]], self._codes.values[living[old:]]))
        weights = self._weights.values[living]
        if len(codes) >= 2 * self._mean_size:
            sample = slice(None, None, max(1, len(codes) // _MEAN_SAMPLE))
            self._mean = (codes[sample].astype(np.float32) * weights[sample][:, None]).mean(axis=0)
            self._mean_size = len(codes)
            blocks = [slice(at, at + _BITS_BLOCK) for at in range(0, len(codes), _BITS_BLOCK)]
            bits = np.concatenate([self._bits_of(codes[block], weights[block]).T for block in blocks], axis=1)
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
        return ((rows >= 0) & (self._weights.values[rows] > 0)).astype(np.float32)

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

    def distances_of(self, rows: Ints, query_bits: Array, words: slice) -> Array:
        """Return the same for some rows."""
        base, later = self._base_bits[words], rows >= len(self._base_codes)
        bits = base.take(rows, axis=1, mode="clip") if base.size else np.empty((len(base), len(rows)), np.uint64)
        if later.any():
            bits[:, later] = self._bits.values.T[words, rows[later] - len(self._base_codes)]
        counted: Array = np.bitwise_count(bits ^ query_bits[words, None]).sum(axis=0, dtype=np.uint16)
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


def _quantised(vectors: Array) -> tuple[Array, Array]:
    """Return the vectors as bytes, and for each the factor that makes its length one."""
    wide = np.nan_to_num(vectors.astype(np.float64))
    peaks = np.abs(wide).max(axis=1, keepdims=True)
    codes = np.rint(np.divide(wide * _STEPS, peaks, out=np.zeros_like(wide), where=peaks > 0)).astype(np.int8)
    lengths = np.linalg.norm(codes.astype(np.float32), axis=1)
    return codes, np.divide(1, lengths, out=np.zeros(len(codes), np.float32), where=lengths > 0)


def _packed_bits(flags: Flags) -> Array:
    packed = np.zeros((len(flags), 8 * -(-flags.shape[1] // _WORD)), np.uint8)
    packed[:, : -(-flags.shape[1] // 8)] = np.packbits(flags, axis=1, bitorder="little")
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


def _empty_space(dimension: int) -> Columns:
    return {
        "codes": np.empty((0, dimension), np.int8), "bits": np.empty((-(-dimension // _WORD), 0), np.uint64),
        "mean": np.zeros(dimension, np.float32), "weights": np.zeros(0, np.float32), "vector_slots": np.zeros(0, np.int32),
        "meant_for": np.zeros(1, np.int64),
    }  # fmt: skip
