"""Array structures of the index. The base of each may lie in a memory-mapped file; later additions lie in memory."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
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

_MIN_CAPACITY = 16
_MAX_LISTED = 50_000
_MAX_COUNT = 65535


class GrowingArray:
    """An array that grows at its end, by doubling."""

    __slots__ = ("_data", "size")

    def __init__(self, start: Array) -> None:
        self._data, self.size = start, len(start)

    @property
    def values(self) -> Array:
        """The values, valid until the array grows."""
        return self._data[: self.size]

    def append(self, value: object) -> None:
        if self.size == len(self._data):
            self._reserve(self.size + 1)
        self._data[self.size] = value
        self.size += 1

    def grow(self, size: int, value: object) -> None:
        """Grow to a size, with `value` in every new place."""
        if size > self.size:
            self._reserve(size)
            self._data[self.size : size] = value
            self.size = size

    def _reserve(self, size: int) -> None:
        if size > len(self._data):
            larger = np.empty((max(size, 2 * self.size, _MIN_CAPACITY), *self._data.shape[1:]), self._data.dtype)
            larger[: self.size] = self.values
            self._data = larger


class Texts:
    """Many short texts: those of the base as one byte array, later ones in a list."""

    def __init__(self, joined: Array, ends: Array) -> None:
        self._joined, self._ends = joined, ends
        self._later: list[str] = []
        self._listed: list[str] = []

    def __len__(self) -> int:
        return len(self._ends) + len(self._later)

    def __getitem__(self, at: int) -> str:
        if at >= len(self._ends):
            return self._later[at - len(self._ends)]
        start = int(self._ends[at - 1]) if at else 0
        return self._joined[start : int(self._ends[at])].tobytes().decode()

    def at(self, places: Ints) -> list[str]:
        """Return the texts at these places."""
        if len(self._ends) <= _MAX_LISTED:  # few enough to decode all of them once
            if not self._listed:
                self._listed = self._decoded(np.arange(len(self._ends)))
            listed, later, count = self._listed, self._later, len(self._listed)
            return [listed[at] if at < count else later[at - count] for at in places.tolist()]
        return self._decoded(places) if (places < len(self._ends)).all() else [self[at] for at in places.tolist()]

    def _decoded(self, places: Ints) -> list[str]:
        """Return texts of the base, decoded together if they are ASCII."""
        ends = self._ends[places]
        lengths = ends - np.where(places > 0, self._ends[places - 1], 0)
        stops = np.cumsum(lengths)
        data = self._joined[np.arange(int(lengths.sum())) + np.repeat(ends - stops, lengths)].tobytes()
        if not data.isascii():
            return [self[at] for at in places.tolist()]
        text = data.decode()
        return [text[stop - length : stop] for stop, length in zip(stops.tolist(), lengths.tolist(), strict=True)]

    def append(self, text: str) -> None:
        self._later.append(text)

    def packed(self, keep: Flags) -> tuple[Array, Array]:
        """Return the texts to keep as a new base."""
        base = len(self._ends)
        lengths = np.diff(self._ends, prepend=0)
        later = [text.encode() for text, kept in zip(self._later, keep[base:].tolist(), strict=True) if kept]
        old = self._joined[np.repeat(keep[:base], lengths)]
        joined = np.concatenate((old, np.frombuffer(b"".join(later), np.uint8)))
        sizes = np.concatenate((lengths[keep[:base]], np.array([len(text) for text in later], np.int64)))
        return joined, np.cumsum(sizes, dtype=np.int64)


class Keys:
    """The place of each 64-bit key: sorted arrays for the base, a dict for later additions."""

    def __init__(self, keys: Array, places: Array) -> None:
        self._keys, self._places = keys, places
        self._later: dict[int, int] = {}

    def get(self, key: int) -> int:
        """Return the place of a key, or -1."""
        place = self._later.get(key)
        if place is not None:
            return place
        at = int(np.searchsorted(self._keys, np.uint64(key)))
        return int(self._places[at]) if at < len(self._keys) and int(self._keys[at]) == key else -1

    def set(self, key: int, place: int) -> None:
        self._later[key] = place

    def places(self, keys: Sequence[int]) -> Ints:
        """Return the places of those keys that have one."""
        wanted = np.fromiter(keys, np.uint64, len(keys))
        at = np.searchsorted(self._keys, wanted).clip(max=max(len(self._keys) - 1, 0))
        places = self._places[at] if len(self._keys) else np.full(len(wanted), -1, np.int32)
        places = np.where(self._keys[at] == wanted, places, -1) if len(self._keys) else places
        if self._later:
            later = (self._later.get(key, old) for key, old in zip(keys, places.tolist(), strict=True))
            places = np.fromiter(later, np.int32, len(keys))
        return places[places >= 0].astype(np.int32)


class Postings:
    """For each keyword the slots that contain it, ascending, and how often: sorted arrays for the base, lists for additions."""

    def __init__(self, base: Columns) -> None:
        self._keys, self._ends = base["word_keys"], base["word_ends"]
        self._slots, self._counts = base["word_slots"], base["word_times"]
        self._later: dict[str, tuple[array[int], array[int]]] = {}

    def add(self, slot: int, words: Sequence[str]) -> None:
        later = self._later
        for word, count in Counter(words).items():
            lists = later.get(word)
            if lists is None:
                lists = later[word] = (array("i"), array("H"))
            lists[0].append(slot)
            lists[1].append(min(count, _MAX_COUNT))

    def of(self, word: str) -> tuple[Ints, Array]:
        """Return the slots that contain a word, dead ones included, and how often each does."""
        at = int(np.searchsorted(self._keys, np.uint64(word_key(word))))
        slots, counts = self._slots[:0], self._counts[:0]
        if at < len(self._keys) and int(self._keys[at]) == word_key(word):
            span = slice(int(self._ends[at - 1]) if at else 0, int(self._ends[at]))
            slots, counts = self._slots[span], self._counts[span]
        if (later := self._later.get(word)) is None:
            return slots, counts
        # Copied: an array.array cannot grow while numpy holds a view of it.
        return np.concatenate((slots, np.array(later[0], np.int32))), np.concatenate((counts, np.array(later[1], np.uint16)))

    def packed(self, keep: Flags, new_slots: Array) -> Columns:
        """Return all postings as a new base, without dead slots. Slots keep their order, so only the words are sorted."""
        words = sorted(self._later, key=word_key)
        later_slots = np.frombuffer(b"".join([self._later[word][0].tobytes() for word in words]), np.int32)
        later_counts = np.frombuffer(b"".join([self._later[word][1].tobytes() for word in words]), np.uint16)
        later_ends = np.cumsum(np.array([len(self._later[word][0]) for word in words], np.int64))
        parts = (
            (self._keys, *_living(self._ends, self._slots, self._counts, keep)),
            (np.array([word_key(word) for word in words], np.uint64), *_living(later_ends, later_slots, later_counts, keep)),
        )
        keys = np.union1d(parts[0][0], parts[1][0])
        sizes = np.zeros(len(keys), np.int64)
        places = [np.searchsorted(keys, part_keys) for part_keys, *_ in parts]
        for (_, part_sizes, _, _), place in zip(parts, places, strict=True):
            sizes[place] += part_sizes
        slots, counts = np.empty(sizes.sum(), np.int32), np.empty(sizes.sum(), np.uint16)
        starts = np.cumsum(sizes) - sizes
        for (_, part_sizes, part_slots, part_counts), place in zip(parts, places, strict=True):
            to = np.repeat(starts[place] - (np.cumsum(part_sizes) - part_sizes), part_sizes) + np.arange(len(part_slots))
            slots[to], counts[to] = new_slots[part_slots], part_counts
            starts[place] += part_sizes
        used = sizes > 0
        return {"word_keys": keys[used], "word_ends": np.cumsum(sizes[used]), "word_slots": slots, "word_times": counts}


def _living(ends: Array, slots: Array, counts: Array, keep: Flags) -> tuple[Array, Array, Array]:
    """Return the number of postings of each word, and their slots and counts, without dead slots."""
    sizes = np.diff(ends, prepend=0)
    living = keep[slots]
    if not living.all():
        left = np.concatenate(([0], np.cumsum(living)))[np.concatenate(([0], ends))]
        sizes, slots, counts = np.diff(left), slots[living], counts[living]
    return sizes, slots, counts


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
        added = (
            [(slot, at) for at, code in enumerate(sessions.tolist()) for slot in self._later.get(code, ())] if self._later else []
        )
        if added:
            more = np.array(added, np.int32)
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


def sorted_keys(keys: Array) -> tuple[Array, Array]:
    """Return the keys in order, and the old place of each."""
    order = np.argsort(keys, kind="stable")
    return keys[order], order.astype(np.int32)


def recoded(codes: Array) -> tuple[Array, Array]:
    """Return the codes in use, and each code as a place among them; -1 stays -1."""
    used, places = np.unique(codes, return_inverse=True)
    negative = int(len(used) > 0 and used[0] < 0)
    return used[negative:], (places.reshape(-1) - negative).astype(np.int32)


def hash64(text: str) -> int:
    """Return a 64-bit hash that is equal in every process. Among a billion texts, two collide with a chance of one in forty."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


@lru_cache(maxsize=65536)
def word_key(word: str) -> int:
    """Return the key of a keyword; cached, because words recur."""
    return hash64(word)
