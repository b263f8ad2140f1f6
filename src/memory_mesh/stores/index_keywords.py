"""BM25 over arrays: the scores of `core.lexical`, for the best memories of many and for those that are asked for by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from memory_mesh.core.lexical import K1, B, Corpus
from memory_mesh.stores.index_arrays import Array, Flags, Floats, Ints
from memory_mesh.stores.index_table import Table

# A list shorter than this is scored sooner than it takes to find out whether it matters.
SHORT = 2000


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

    def part(self, word: int, times: Array, lengths: Array) -> Floats:
        """What documents get for one word."""
        return _part(self.weights[word], times, self._damping(lengths))

    def scores(self, times: Floats, lengths: Array, parts: Array | int = 1) -> Floats:
        """What documents get in all; `times` has a row for each. Of `parts` documents joined the average is so much longer."""
        damping = self._damping(lengths / parts)[:, None] if len(times) else np.ones((0, 1), np.float32)
        scores: Floats = _part(self.weights, times, damping).sum(axis=1)
        return scores

    def coverage(self, times: Floats) -> Floats:
        """The share of the query's weight whose words are there."""
        whole = self.weights.sum()
        covered = np.vecdot((times > 0).astype(np.float32), self.weights)
        return covered / whole if whole > 0 else np.zeros(len(times), np.float32)

    def _damping(self, lengths: Array) -> Floats:
        damping: Floats = lengths.astype(np.float32)
        damping *= np.float32(K1 * B / self.average)
        damping += np.float32(K1 * (1 - B))
        return damping


def _part(weight: Array, times: Array, damping: Array) -> Floats:
    counted = times.astype(np.float32)
    part: Floats = counted * (weight * np.float32(K1 + 1)) / (counted + damping)
    return part


class Held:
    """Where the words of a query stand in a table."""

    def __init__(self, table: Table, words: Sequence[str]) -> None:
        self._table = table
        self.lists = [table.holding(word) for word in words]

    @property
    def counts(self) -> list[int]:
        return [len(slots) for slots, _ in self.lists]

    def best(self, scale: Scale, allowed: Flags, size: int) -> tuple[Ints, Floats]:
        """The memories of the highest scores, best first, and these; none of score zero."""
        lengths, scores = self._table.column("length"), np.zeros(len(self._table), np.float32)
        order = sorted((word for word, count in enumerate(self.counts) if count), key=lambda word: -scale.weights[word])
        rest = np.cumsum(scale.most[order][::-1])[::-1]  # more than this and the following words can give
        for at, word in enumerate(order):
            slots, times = self.lists[word]
            if at and len(slots) > SHORT:
                found = _scored(scores, allowed)
                least = _nth_highest(scores[found], size)
                if rest[at] < least:  # whoever has none of the words so far cannot come in any more
                    return self._finished(scale, order[at:], found[scores[found] >= least - rest[at]], scores, size)
            scores[slots] += scale.part(word, times, lengths[slots])
        return _best(_scored(scores, allowed), scores, size)

    def times(self, slots: Ints) -> Floats:
        """How often each of these slots (ascending) holds each word."""
        counted = np.zeros((len(slots), len(self.lists)), np.float32)
        for word, (holding, times) in enumerate(self.lists):
            if len(holding) < len(slots):
                at = np.searchsorted(slots, holding)
                there = slots.take(at, mode="clip") == holding if len(slots) else at < 0
                counted[at[there], word] = times[there]
            elif len(holding):
                at = np.searchsorted(holding, slots)
                there = holding.take(at, mode="clip") == slots
                counted[there, word] = times[at[there]]
        return counted

    def in_sessions(self, readable: Flags, place: Ints, count: int) -> tuple[Floats, list[int]]:
        """How often each of some sessions holds each word in readable memories, and how many sessions of all do. `place` says
        where among the `count` sessions a session is; -1: nowhere."""
        counted, holding = np.zeros((count, len(self.lists)), np.float32), []
        sessions = self._table.column("session")
        for word, (slots, times) in enumerate(self.lists):
            codes = sessions[slots]
            there = readable[slots] & (codes >= 0)
            codes = codes[there]
            marked = np.zeros(len(place), np.bool_)
            marked[codes] = True
            holding.append(int(np.count_nonzero(marked)))
            at = place[codes]
            wanted = at >= 0
            counted[:, word] = np.bincount(at[wanted], times[there][wanted], minlength=count)
        return counted, holding

    def _finished(self, scale: Scale, words: Sequence[int], slots: Ints, scores: Floats, size: int) -> tuple[Ints, Floats]:
        """Add what the last words give to those that can still be among the best."""
        lengths = self._table.column("length")[slots]
        for word in words:
            holding, times = self.lists[word]
            at = np.searchsorted(holding, slots)
            there = holding.take(at, mode="clip") == slots
            scores[slots[there]] += scale.part(word, times[at[there]], lengths[there])
        return _best(slots, scores, size)


def named(called: Mapping[str, Sequence[int]], words: Sequence[str], speakers: int) -> Flags:
    """By speaker: whether one of these words is in the name; and one more for nobody."""
    marks = np.zeros(speakers + 1, np.bool_)
    for word in words:
        marks[list(called.get(word, ()))] = True
    return marks


def _scored(scores: Floats, allowed: Flags) -> Ints:
    found = np.flatnonzero(scores)
    return found[allowed[found]].astype(np.int32)


def _nth_highest(values: Floats, n: int) -> float:
    return float(-np.partition(-values, n - 1)[n - 1]) if len(values) >= n else 0.0


def _best(slots: Ints, scores: Floats, size: int) -> tuple[Ints, Floats]:
    values = scores[slots]
    at = np.argpartition(-values, size)[:size] if size < len(values) else np.arange(len(values))
    at = at[np.argsort(-values[at], kind="stable")]
    return slots[at], values[at]
