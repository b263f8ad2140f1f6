"""BM25 over arrays: the scores of `core.search.lexical`, for the best memories of many or for a given list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from memory_mesh.core.search import K1, B, Corpus
from memory_mesh.index.arrays import Array, Flags, Floats, Ints, distinct
from memory_mesh.index.table import Table

# So many places, among so many memories, are scored sooner than it takes to find out which of them matter; so a word's list.
SHORT, LARGE, LONG = 100_000, 200_000, 2000
_TABLE = 4_000_000  # marks in a table; beyond, sorting takes less


@dataclass(frozen=True, slots=True)
class Scale:
    """What a query's words weigh among some documents."""

    weights: Floats  # by word: how often it is asked for · how rare it is
    average: float  # keywords in a document

    @classmethod
    def of(cls, corpus: Corpus, holding: Sequence[int], asked: Sequence[int]) -> "Scale":
        rarities = [log(1 + (corpus.documents - held + 0.5) / (held + 0.5)) for held in holding]
        weights = [times * rarity for times, rarity in zip(asked, rarities, strict=True)]
        return cls(np.array(weights, np.float32), corpus.length / corpus.documents if corpus.documents else 1.0)

    @property
    def most(self) -> Floats:
        """By word: more than any document can get for it."""
        return self.weights * np.float32(K1 + 1)

    def parts(self, times: Floats, most: Array, lengths: Array) -> Floats:
        """What documents get for one word each: the most that it gives, damped."""
        part: Floats = times * most
        part /= times + self._damping(lengths)
        return part

    def scores(self, times: Floats, lengths: Array) -> Floats:
        """What documents get in all; `times` has a row for each."""
        gained: Floats = np.vecdot(times / (times + self._damping(lengths)[:, None]), self.most)
        return gained

    def coverage(self, times: Floats) -> Floats:
        """The share of the query's weight whose words are there."""
        whole = float(self.weights.sum())
        covered: Floats = np.vecdot((times > 0).astype(np.float32), self.weights)
        return covered / np.float32(whole) if whole > 0 else np.zeros(len(times), np.float32)

    def _damping(self, lengths: Array) -> Floats:
        damping: Floats = lengths * np.float32(K1 * B / self.average)
        damping += np.float32(K1 * (1 - B))
        return damping


class Held:
    """Where the words of a query stand in a table: their lists, end to end."""

    def __init__(self, table: Table, words: Sequence[str]) -> None:
        lists = [table.holding(word) for word in words]
        self._table, self._count = table, len(words)
        self.counts = [len(slots) for slots, _ in lists]
        self._slots: Ints = np.concatenate([np.zeros(0, np.int32), *(slots for slots, _ in lists)])
        self._times: Floats = np.concatenate([np.zeros(0, np.uint16), *(times for _, times in lists)]).astype(np.float32)
        self._words: Ints = np.arange(self._count).repeat(self.counts)

    def best(self, scale: Scale, allowed: Flags, size: int) -> tuple[Ints, Floats]:
        """The memories of the highest scores, best first, and these; none of score zero."""
        if len(self._slots) and (len(self._slots) > SHORT or len(self._table) > LARGE):
            return self._best_of_many(scale, allowed, size)
        lengths = self._table.column("length").take(self._slots)
        parts = scale.parts(self._times, scale.most.take(self._words), lengths)
        scores = np.bincount(self._slots, parts, minlength=len(self._table))
        return _best(_scored(scores, allowed), scores, size)

    def times(self, place: Ints, count: int) -> Floats:
        """How often each of some memories holds each word. `place` says where among the `count` a slot is; their end: nowhere."""
        counted = np.zeros((count + 1, self._count), np.float32)
        at = place.take(self._slots)
        found = (at < count).nonzero()[0]
        counted[at[found], self._words[found]] = self._times[found]
        return counted

    def in_sessions(self, readable: Flags, place: Ints, count: int) -> tuple[Floats, list[int]]:
        """How often each of some sessions holds each word in readable memories, and how many sessions of all do, each memory
        without one counted as one. `place` says where among the `count` sessions a session is; -1: nowhere."""
        codes, there = self._table.column("session").take(self._slots), readable.take(self._slots)
        alone = np.bincount(self._words[there & (codes < 0)], minlength=self._count)
        together = (there & (codes >= 0)).nonzero()[0]
        codes, words = codes[together], self._words[together]
        holding = alone + _distinct_of_each(words, codes, self._count, len(place))
        at = place.take(codes)
        wanted = (at >= 0).nonzero()[0]
        times = self._times[together[wanted]]
        counted = np.bincount(at[wanted] * self._count + words[wanted], times, minlength=count * self._count)
        return counted.astype(np.float32).reshape(count, self._count), holding.tolist()

    def _best_of_many(self, scale: Scale, allowed: Flags, size: int) -> tuple[Ints, Floats]:
        """The same without a look at every slot, rare words first: a common one adds little, and in the end it is looked up only
        where it can still matter."""
        lengths, scores, ends = self._table.column("length"), np.zeros(len(self._table), np.float32), np.cumsum(self.counts)
        order = sorted((word for word, count in enumerate(self.counts) if count), key=lambda word: -scale.weights[word])
        rest = np.cumsum(scale.most[order][::-1])[::-1]  # more than this and the following words can give
        touched: list[Ints] = []
        slots: Ints | None = None
        for at, word in enumerate(order):
            place = slice(int(ends[word]) - self.counts[word], int(ends[word]))
            holding, times = self._slots[place], self._times[place]
            if touched and slots is None and len(holding) > LONG:
                found = distinct(*touched)
                found = found[allowed[found]]
                least = _nth_highest(scores[found], size)
                if rest[at] < least:  # whoever has none of the words so far cannot come in any more
                    slots = found[scores[found] >= least - rest[at]]
            if slots is not None:
                where = holding.searchsorted(slots)
                there = holding.take(where, mode="clip") == slots
                holding, times = slots[there], times[where[there]]
            scores[holding] += scale.parts(times, scale.most[word], lengths[holding])
            touched.append(holding)
        if slots is None:
            slots = distinct(*touched)
            slots = slots[allowed[slots]]
        return _best(slots, scores, size)


def named(called: Mapping[str, Sequence[int]], words: Sequence[str], speakers: int) -> Flags:
    """By speaker: whether one of these words is in the name; and one more for nobody."""
    marks = np.zeros(speakers + 1, np.bool_)
    for word in words:
        if speaking := called.get(word):
            marks[speaking] = True
    return marks


def _distinct_of_each(groups: Ints, values: Ints, count: int, most: int) -> Ints:
    """How many different values below `most` each of `count` groups has."""
    keys = groups * most + values
    if count * most > _TABLE:
        return np.bincount(distinct(keys) // most, minlength=count)
    marked = np.zeros((count, most), np.bool_)
    marked.reshape(-1)[keys] = True
    counted: Ints = np.count_nonzero(marked, axis=1)
    return counted


def _scored(scores: Floats, allowed: Flags) -> Ints:
    found = (scores > 0).nonzero()[0]  # of truth values it is quicker than of numbers
    return found[allowed[found]]


def _nth_highest(values: Floats, n: int) -> float:
    return float(-np.partition(-values, n - 1)[n - 1]) if len(values) >= n else 0.0


def _best(slots: Ints, scores: Floats, size: int) -> tuple[Ints, Floats]:
    values = -scores[slots]
    if size < len(values):
        at = values.argpartition(size)[:size]
        slots, values = slots[at], values[at]
    order = values.argsort(kind="stable")
    return slots[order], -values[order]
