"""Array structures of the index.

The base of each may lie in a memory-mapped file; later additions lie in memory.
"""

from collections import defaultdict
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
_SAMPLE = 8192
_GROUP = 16
_ASCII = 128


class GrowingArray:
    """An array that grows at its end, by doubling. `values` are valid until it grows."""

    __slots__ = ("_data", "size", "values")

    def __init__(self, start: Array) -> None:
        self._data, self.values, self.size = start, start, len(start)

    def extend(self, values: Array) -> None:
        self.grow(self.size + len(values), values)

    def grow(self, size: int, value: object) -> None:
        """Grow to a size, with `value` in every new place."""
        if size > len(self._data):
            larger = np.empty(
                (max(size, 2 * self.size, _MIN_CAPACITY), *self._data.shape[1:]), self._data.dtype
            )
            larger[: self.size] = self.values
            self._data = larger
        if size > self.size:
            self._data[self.size : size] = value
            self.size, self.values = size, self._data[:size]


class Texts:
    """Many short texts: those of a large base as one byte array, others in a list."""

    def __init__(self, joined: Array, ends: Array) -> None:
        self._joined, self._ends = joined, ends
        width = len(joined) // len(ends) if len(ends) else 0
        same = (
            width
            and joined.max() < _ASCII
            and bool((ends == np.arange(1, len(ends) + 1) * width).all())
        )
        # Ids of ours all have the same length; 0: these have not.
        self._width = width if same else 0
        few = len(ends) <= _MAX_LISTED  # few enough to decode all of them at once
        self._listed: list[str] = self._decoded(np.arange(len(ends))) if few else []
        self._first_listed = 0 if few else len(ends)

    def at(self, places: Ints) -> list[str]:
        """Return the texts at these places."""
        first, listed = self._first_listed, self._listed
        if not first:
            return list(map(listed.__getitem__, places.tolist()))
        if not listed:
            return self._decoded(places)
        base = iter(self._decoded(places[places < first]))
        return [next(base) if at < first else listed[at - first] for at in places.tolist()]

    def _decoded(self, places: Ints) -> list[str]:
        if width := self._width:
            text = self._joined.reshape(-1, width)[places].tobytes().decode()
            return [text[at : at + width] for at in range(0, len(text), width)]
        starts = np.where(places > 0, self._ends[places - 1], 0)
        spans = zip(starts.tolist(), self._ends[places].tolist(), strict=True)
        return [self._joined[start:end].tobytes().decode() for start, end in spans]

    def __getitem__(self, place: int) -> str:
        if place >= self._first_listed:
            return self._listed[place - self._first_listed]
        start = int(self._ends[place - 1]) if place else 0
        return self._joined[start : self._ends[place]].tobytes().decode()

    def extend(self, texts: Iterable[str]) -> None:
        self._listed.extend(texts)

    def packed(self, keep: Flags) -> tuple[Array, Array]:
        """Return the texts to keep as a new base."""
        texts = [text.encode() for text in self.at(keep.nonzero()[0])]
        return np.frombuffer(b"".join(texts), np.uint8), np.cumsum(
            [len(text) for text in texts], dtype=np.int64
        )


class Keys:
    """The place of each 64-bit key: sorted arrays for the base, a dict for later additions."""

    def __init__(self, keys: Array, places: Array) -> None:
        self._keys, self._places = keys, places
        self._later: dict[int, int] = {}

    def set(self, places: Iterable[tuple[int, int]]) -> None:
        """Set the place of each of these keys."""
        self._later.update(places)

    def places(self, keys: Sequence[int]) -> Ints:
        """Return the place of each key; -1: none."""
        at = places_in(self._keys, np.fromiter(keys, np.uint64, len(keys)))
        places = np.full(len(keys), -1, np.int32)
        known = at < len(self._keys)
        places[known] = self._places[at[known]]
        if self._later:
            places[:] = [
                self._later.get(key, place)
                for key, place in zip(keys, places.tolist(), strict=True)
            ]
        return places


class SessionMembers:
    """The slots of each session: grouped for the base, lists for later additions."""

    def __init__(self, sessions: Array, count: int) -> None:
        order = np.argsort(sessions, kind="stable").astype(np.int32)
        self._order = order[np.count_nonzero(sessions < 0) :]
        self._starts = np.searchsorted(sessions[self._order], np.arange(count + 1))
        self._later: dict[int, list[int]] = defaultdict(list)

    def add(self, sessions: Iterable[int], slots: Iterable[int]) -> None:
        for session, slot in zip(sessions, slots, strict=True):
            if session >= 0:
                self._later[session].append(slot)

    def of(self, sessions: Ints) -> tuple[Ints, Ints]:
        """Return the slots of these sessions, dead ones included, and for each the place of its
        session in `sessions`."""
        last = len(self._starts) - 1
        first = self._starts[np.minimum(sessions, last)]
        counts = self._starts[np.minimum(sessions + 1, last)] - first
        groups = np.repeat(np.arange(len(sessions), dtype=np.int32), counts)
        slots = self._order[
            np.arange(len(groups)) + np.repeat(first - (np.cumsum(counts) - counts), counts)
        ]
        if self._later:
            later = [
                (slot, at)
                for at, code in enumerate(sessions.tolist())
                for slot in self._later.get(code, ())
            ]
            more = np.array(later, np.int32).reshape(-1, 2)
            slots, groups = (
                np.concatenate((slots, more[:, 0])),
                np.concatenate((groups, more[:, 1])),
            )
        return slots, groups


def distinct(*parts: Array) -> Array:
    """Return the values of some arrays, ascending, each once. Faster than `np.unique` on small
    arrays."""
    values = np.concatenate(parts)
    values.sort()
    first = np.empty(len(values), np.bool_)
    first[:1] = True
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values[first]


def places_in(among: Array, values: Array) -> Array:
    """Return the place of each value in an ascending array, or its length if the value is not
    there."""
    at = among.searchsorted(values)
    return np.where(among.take(at, mode="clip") == values, at, len(among)) if len(among) else at


def nth_highest(values: Floats, n: int) -> float:
    """Return the n-th highest value; 0 if there are fewer."""
    return float(-np.partition(-values, n - 1)[n - 1]) if len(values) >= n else 0.0


def highest(values: Floats, count: int) -> Ints:
    """Return the places of the highest values, best first; of equal values the first ones."""
    if count >= len(values):
        return (-values).argsort(kind="stable")
    groups = len(values) // _GROUP
    # At least `count` values are as high as the `count`-th highest maximum of a group, and few
    # others are.
    best = (
        np.maximum.reduce(values[: groups * _GROUP].reshape(_GROUP, groups))
        if count < groups
        else values.copy()
    )
    best.partition(len(best) - count)
    at = (values >= best[len(best) - count]).nonzero()[0]
    order: Ints = at[(-values[at]).argsort(kind="stable")[:count]]
    return order


def lowest(values: Ints, allowed: Flags, count: int) -> Ints:
    """Return the places of about `count` of the lowest allowed values, ascending; a few more
    where many are equal."""
    step = max(1, len(values) // _SAMPLE)
    sample = values[::step][allowed[::step]]
    highest = int(np.bincount(sample).cumsum().searchsorted(count // step))
    low = values <= highest
    low &= allowed
    return low.nonzero()[0][: 2 * count]


def maxima(count: int, groups: Iterable[tuple[Ints, Floats]]) -> Floats:
    """Return the highest value at each of `count` places; 0 where there is none."""
    best = np.full(count, -np.inf, np.float32)
    for places, values in groups:
        np.maximum.at(best, places, values)
    return np.where(np.isfinite(best), best, np.float32(0))


def hash64(text: str) -> int:
    """Return a 64-bit hash that is equal in every process. Among a billion texts, two collide
    with a chance of one in forty."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
