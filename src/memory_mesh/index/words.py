"""Which memory holds which keyword, how often: sorted arrays for most, short lists for what came later."""

from array import array
from collections import Counter
from collections.abc import Sequence

import numpy as np

from memory_mesh.index.arrays import Array, Columns, Flags, Ints
from memory_mesh.index.rows import word_key

_MOST_TIMES = 65535


class Words:
    """For each keyword the slots that hold it, ascending, and how often each does."""

    def __init__(self, base: Columns) -> None:
        self._keys, self._ends = base["word_keys"], base["word_ends"]
        self._slots, self._times = base["word_slots"], base["word_times"]
        self._later: dict[str, tuple[array[int], array[int]]] = {}

    def add(self, slot: int, words: Sequence[str]) -> None:
        later = self._later
        for word, times in Counter(words).items():
            held = later.get(word)
            if held is None:
                held = later[word] = (array("i"), array("H"))
            held[0].append(slot)
            held[1].append(min(times, _MOST_TIMES))

    def of(self, word: str) -> tuple[Ints, Array]:
        """The slots that hold a word, dead ones too, and how often."""
        at = int(np.searchsorted(self._keys, np.uint64(word_key(word))))
        slots, times = self._slots[:0], self._times[:0]
        if at < len(self._keys) and int(self._keys[at]) == word_key(word):
            place = slice(int(self._ends[at - 1]) if at else 0, int(self._ends[at]))
            slots, times = self._slots[place], self._times[place]
        if (held := self._later.get(word)) is None:
            return slots, times
        # Copied: an array that numpy looks at cannot grow.
        return np.concatenate((slots, np.array(held[0], np.int32))), np.concatenate((times, np.array(held[1], np.uint16)))

    def packed(self, keep: Flags, fresh: Array) -> Columns:
        """All of it as one base, without the dead slots and under their new numbers. Slots keep their order, so that nothing
        needs to be sorted but the words."""
        old = _Part.of_base(self._keys, self._ends, self._slots, self._times, keep)
        new = _Part.of_lists(self._later, keep)
        keys = np.union1d(old.keys, new.keys)
        counts = np.zeros(len(keys), np.int64)
        places = [np.searchsorted(keys, part.keys) for part in (old, new)]
        for part, place in zip((old, new), places, strict=True):
            counts[place] += part.counts
        slots, times = np.empty(counts.sum(), np.int32), np.empty(counts.sum(), np.uint16)
        starts = np.cumsum(counts) - counts
        for part, place in zip((old, new), places, strict=True):
            to = np.repeat(starts[place] - (np.cumsum(part.counts) - part.counts), part.counts) + np.arange(len(part.slots))
            slots[to], times[to] = fresh[part.slots], part.times
            starts[place] += part.counts
        used = counts > 0
        return {"word_keys": keys[used], "word_ends": np.cumsum(counts[used]), "word_slots": slots, "word_times": times}


class _Part:
    """Words with their living slots, end to end."""

    def __init__(self, keys: Array, counts: Array, slots: Array, times: Array) -> None:
        self.keys, self.counts, self.slots, self.times = keys, counts, slots, times

    @classmethod
    def of_base(cls, keys: Array, ends: Array, slots: Array, times: Array, keep: Flags) -> "_Part":
        counts = np.diff(ends, prepend=0)
        living = keep[slots]
        if not living.all():
            left = np.concatenate(([0], np.cumsum(living)))[np.concatenate(([0], ends))]
            counts, slots, times = np.diff(left), slots[living], times[living]
        return cls(keys, counts, slots, times)

    @classmethod
    def of_lists(cls, lists: dict[str, tuple["array[int]", "array[int]"]], keep: Flags) -> "_Part":
        words = sorted(lists, key=word_key)
        slots = np.frombuffer(b"".join([lists[word][0].tobytes() for word in words]), np.int32)
        times = np.frombuffer(b"".join([lists[word][1].tobytes() for word in words]), np.uint16)
        ends = np.cumsum(np.array([len(lists[word][0]) for word in words], np.int64))
        keys = np.array([word_key(word) for word in words], np.uint64)
        return cls.of_base(keys, ends, slots, times, keep)
