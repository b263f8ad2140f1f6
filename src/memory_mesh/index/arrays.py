"""Arrays that grow: what was there may lie in a mapped file, what comes later lies in memory."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

# Of whole numbers numpy mixes two widths as it likes, so that only truth values are worth telling apart by type.
Array: TypeAlias = NDArray[Any]
Ints: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[Any]
Flags: TypeAlias = NDArray[np.bool_]
Columns: TypeAlias = Mapping[str, Array]  # by name

_LEAST = 16
_FEW = 50_000


class Grown:
    """An array that grows at its end, by doubling."""

    __slots__ = ("_data", "size")

    def __init__(self, start: Array) -> None:
        self._data, self.size = start, len(start)

    @property
    def all(self) -> Array:
        """What is in it; good until the next change."""
        return self._data[: self.size]

    def append(self, value: object) -> None:
        if self.size == len(self._data):
            self.reserve(self.size + 1)
        self._data[self.size] = value
        self.size += 1

    def fill(self, size: int, value: object) -> None:
        """Grow to a size, with one value in every new place."""
        if size > self.size:
            self.reserve(size)
            self._data[self.size : size] = value
            self.size = size

    def reserve(self, size: int) -> None:
        if size > len(self._data):
            grown = np.empty((max(size, 2 * self.size, _LEAST), *self._data.shape[1:]), self._data.dtype)
            grown[: self.size] = self.all
            self._data = grown


class Texts:
    """Many short texts: those of the file end to end, later ones as they are."""

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

    def of(self, places: Ints) -> list[str]:
        """Many of them."""
        if len(self._ends) <= _FEW:  # few enough to keep at hand
            if not self._listed:
                self._listed = self._read(np.arange(len(self._ends)))
            listed, later, few = self._listed, self._later, len(self._listed)
            return [listed[at] if at < few else later[at - few] for at in places.tolist()]
        based = places < len(self._ends)
        return self._read(places) if based.all() else [self[at] for at in places.tolist()]

    def _read(self, places: Ints) -> list[str]:
        """Some of the file's, at once where they are plain enough."""
        ends = self._ends[places]
        lengths = ends - np.where(places > 0, self._ends[places - 1], 0)
        stops = np.cumsum(lengths)
        taken = self._joined[np.arange(int(lengths.sum())) + np.repeat(ends - stops, lengths)].tobytes()
        if not taken.isascii():
            return [self[at] for at in places.tolist()]
        text = taken.decode()
        return [text[stop - length : stop] for stop, length in zip(stops.tolist(), lengths.tolist(), strict=True)]

    def append(self, text: str) -> None:
        self._later.append(text)

    def packed(self, keep: Flags) -> tuple[Array, Array]:
        """Those to keep, as a file holds them."""
        before = len(self._ends)
        lengths = np.diff(self._ends, prepend=0)
        later = [text.encode() for text, kept in zip(self._later, keep[before:].tolist(), strict=True) if kept]
        old = self._joined[np.repeat(keep[:before], lengths)]
        joined = np.concatenate((old, np.frombuffer(b"".join(later), np.uint8)))
        sizes = np.concatenate((lengths[keep[:before]], np.array([len(text) for text in later], np.int64)))
        return joined, np.cumsum(sizes, dtype=np.int64)


class Keys:
    """Where each key is: sorted for what is in the file, a dict for what came later."""

    def __init__(self, keys: Array, places: Array) -> None:
        self._keys, self._places = keys, places
        self._later: dict[int, int] = {}

    def get(self, key: int) -> int:
        """The place of a key; -1 where it has none."""
        found = self._later.get(key)
        if found is not None:
            return found
        at = int(np.searchsorted(self._keys, np.uint64(key)))
        return int(self._places[at]) if at < len(self._keys) and int(self._keys[at]) == key else -1

    def set(self, key: int, place: int) -> None:
        self._later[key] = place

    def of(self, keys: Sequence[int]) -> Ints:
        """The places of those among many keys that have one."""
        asked = np.fromiter(keys, np.uint64, len(keys))
        at = np.searchsorted(self._keys, asked).clip(max=max(len(self._keys) - 1, 0))
        places = self._places[at] if len(self._keys) else np.full(len(asked), -1, np.int32)
        places = np.where(self._keys[at] == asked, places, -1) if len(self._keys) else places
        if self._later:
            later = (self._later.get(key, old) for key, old in zip(keys, places.tolist(), strict=True))
            places = np.fromiter(later, np.int32, len(keys))
        return places[places >= 0].astype(np.int32)


def distinct(*parts: Array) -> Array:
    """All values of some arrays, ascending, each once. (`unique` is made for larger ones.)"""
    values = np.sort(np.concatenate(parts))
    first = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return values[first]


def places_in(among: Array, values: Array) -> Array:
    """Where each value is among ascending ones; their end where it is not one of them."""
    at = np.searchsorted(among, values)
    return np.where(among.take(at, mode="clip") == values, at, len(among)) if len(among) else at


def sorted_keys(keys: Array) -> tuple[Array, Array]:
    """Keys in order, and the place of each."""
    order = np.argsort(keys, kind="stable")
    return keys[order], order.astype(np.int32)


def recoded(codes: Array) -> tuple[Array, Array]:
    """The codes that are in use, and each one's place among them; nothing (-1) stays nothing."""
    used, fresh = np.unique(codes, return_inverse=True)
    none = int(len(used) > 0 and used[0] < 0)
    return used[none:], (fresh.reshape(-1) - none).astype(np.int32)
