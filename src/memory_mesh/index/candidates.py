"""The candidates for a query and their signals: the best by keywords, the best by vectors, and neighbours of the best of both.

All partitions that a reader sees form one corpus and give one pool; a session lies within one partition.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from memory_mesh.core.search import K1, SIGNALS, B, Corpus, Pool, Query, Signal
from memory_mesh.index.arrays import Array, Flags, Floats, Ints, distinct, highest, nth_highest, places_in
from memory_mesh.index.readings import find_corrections, find_people, with_corrections
from memory_mesh.index.similarity import Similarity
from memory_mesh.index.table import MISSING, Table
from memory_mesh.index.view import View

# Scoring all postings is faster than selecting some, up to this number of postings and up to this number of visible memories. A
# list of up to `SHORT_LIST` postings is always scored.
MAX_DENSE_POSTINGS, MAX_DENSE_SLOTS, SHORT_LIST = 100_000, 200_000, 2000
MAX_FLAGS = 4_000_000  # in a table of flags; beyond this, sorting is faster
MAX_MEMBERS = 4000  # memories of the candidates' sessions that are compared although the filter excludes them
_MAX_GROWTH = 3  # a pool has at most this many times the requested size
_CONTEXT = 3  # memories in a context: one and its two neighbours
_TINY = 1e-3  # the vectors of a memory and its neighbours can add up to zero, except for rounding
_DAY = 86_400_000.0  # milliseconds
_FADE = 2.0  # days outside of a named time that divide the signal by e


def find_candidates(query: Query, partitions: Iterable[tuple[Table, View, Flags | None]], *, size: int) -> Pool:
    """Return about `size` candidates by keywords, as many by vectors, and neighbours of the best.

    The flags of a partition are by slot: whether the caller's filter allows it; None: there is no filter.
    """
    words: dict[str, float] = dict(sorted(Counter(query.tokens).items()))
    parts = [PartitionQuery.of(query, list(words), table, view, flags) for table, view, flags in partitions if len(table)]
    counts = _document_counts(parts)
    views = [(part.table, part.view) for part in parts]
    if corrections := find_corrections([word for word, count in zip(words, counts, strict=False) if not count], views):
        words = with_corrections(words, corrections)
        parts = [replace(part, postings=QueryPostings(part.table, part.view, list(words))) for part in parts]
        counts = _document_counts(parts)
    corpus = sum((part.view.corpus for part in parts), Corpus(0, 0))
    bm25 = Bm25.of(corpus, counts, list(words.values()))
    chosen = _choose(parts, bm25, size)
    candidates = [Candidates.of(part, slots) for part, slots in zip(parts, chosen, strict=True)]
    people = find_people(query, views, corrections)
    signals = [
        {
            **_keyword_signals(each, bm25),
            **_vector_signals(each),
            **_other_signals(query, each, speakers),
            "keywords_session": session,
            "stranger": np.full(len(each.slots), people.stranger, np.float32),
        }
        for each, session, speakers in zip(
            candidates, _session_signals(candidates, list(words.values())), people.speakers, strict=True
        )
    ]
    return Pool(
        ids=[id_ for part, slots in zip(parts, chosen, strict=True) for id_ in part.table.ids.at(slots)],
        signals={name: _joined([each[name] for each in signals]) for name in SIGNALS},
        documents=sum(part.documents for part in parts),
        excluded=dict(sum((part.excluded for part in parts), Counter())),  # without zero counts
        without_vector=sum(part.without_vector for part in parts) if query.vector else 0,
        corrections=corrections,
    )


def _joined(parts: Sequence[Signal]) -> Signal:
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.float32), *parts])


# --- keywords ---


def _document_counts(parts: Sequence["PartitionQuery"]) -> list[int]:
    """Return how many memories contain each word, in all partitions."""
    return [sum(each) for each in zip(*(part.postings.counts for part in parts), strict=True)]


@dataclass(frozen=True, slots=True)
class Bm25:
    """The weights of a query's words among some documents; the scores are those of `core.search.bm25`."""

    weights: Floats  # by word: its count in the query · its rarity
    average: float  # keywords in a document

    @classmethod
    def of(cls, corpus: Corpus, document_counts: Sequence[int], query_counts: Sequence[float]) -> "Bm25":
        """Return the weights; `document_counts` is by word, and empty without a partition."""
        rarities = [log(1 + (corpus.documents - count + 0.5) / (count + 0.5)) for count in document_counts]
        weights = [count * rarity for count, rarity in zip(query_counts, rarities, strict=False)]
        return cls(np.array(weights, np.float32), corpus.length / corpus.documents if corpus.documents else 1.0)

    @property
    def limits(self) -> Floats:
        """By word: what a document's score for it stays below."""
        return self.weights * np.float32(K1 + 1)

    def parts(self, counts: Floats, limits: Array, lengths: Array) -> Floats:
        """Return the scores of documents for one word each."""
        part: Floats = counts * limits
        part /= counts + self._damping(lengths)
        return part

    def scores(self, counts: Floats, lengths: Array) -> Floats:
        """Return the scores of documents; `counts` is by word and document."""
        parts = counts / (counts + self._damping(lengths))
        parts *= _by_word(self.limits, counts)
        scores: Floats = parts.sum(axis=0)
        return scores

    def coverage(self, counts: Floats) -> Floats:
        """Return the fraction of the query's weight whose words occur in each document; `counts` is by word and document."""
        total = float(self.weights.sum())
        covered: Floats = ((counts > 0) * _by_word(self.weights, counts)).sum(axis=0)
        return covered / np.float32(total) if total > 0 else np.zeros_like(covered)

    def _damping(self, lengths: Array) -> Floats:
        damping: Floats = lengths * np.float32(K1 * B / self.average)
        damping += np.float32(K1 * (1 - B))
        return damping


def _by_word(values: Floats, counts: Floats) -> Floats:
    return values.reshape(-1, *(1,) * (counts.ndim - 1))


class QueryPostings:
    """The postings of a query's words among the memories in the reader's scope, concatenated."""

    def __init__(self, table: Table, view: View, words: Sequence[str]) -> None:
        lists = [view.postings(word) for word in words]
        self._table, self._view, self._word_count = table, view, len(words)
        self.counts = [len(slots) for slots, _ in lists]  # by word: memories that contain it
        self._slots: Ints = np.concatenate([np.zeros(0, np.int32), *(slots for slots, _ in lists)])
        self._times: Floats = np.concatenate([np.zeros(0, np.uint16), *(times for _, times in lists)]).astype(np.float32)
        self._words: Ints = np.arange(self._word_count).repeat(self.counts)

    def best(self, bm25: Bm25, allowed: Flags, size: int) -> tuple[Ints, Floats]:
        """Return the memories with the highest scores above zero, best first, and the scores."""
        many = len(self._slots) > MAX_DENSE_POSTINGS or self._view.memories > MAX_DENSE_SLOTS
        if len(self._slots) and many:
            slots, scores = self._best_of_many(bm25, allowed, size)
        else:
            lengths = self._table.column("length").take(self._slots)
            parts = bm25.parts(self._times, bm25.limits.take(self._words), lengths)
            scores = np.bincount(self._slots, parts, minlength=len(self._table))
            slots = (scores > 0).nonzero()[0]  # faster on flags than on numbers
        slots = slots[allowed.take(slots)]
        best = slots.take(highest(scores.take(slots), size)).astype(np.int32)
        return best, scores.take(best)

    def word_counts(self, place: Ints, count: int) -> Floats:
        """Return how often each word occurs in each of `count` memories. One more place at the end has no words.

        `place` is by slot: its place among the `count`; -1: none.
        """
        at = place.take(self._slots)
        there = (at >= 0).nonzero()[0]
        counted = np.zeros((self._word_count, count + 1), np.float32)
        counted.reshape(-1)[self._words.take(there) * (count + 1) + at.take(there)] = self._times.take(there)
        return counted

    def session_counts(self, place: Ints, count: int) -> tuple[Floats, list[int]]:
        """Return how often each word occurs in the readable memories of `count` sessions, and how many sessions contain it.

        `place` is by session: its place among the `count`; `count`: none, as in its last two places. One more place at the end
        has no words. A memory without a session counts as a session.
        """
        codes = self._view.session_codes.take(self._slots)
        document_counts = _count_distinct(self._words, codes, self._word_count, len(place))
        if self._view.has_memories_alone:
            document_counts += np.bincount(self._words[codes == -1], minlength=self._word_count)
        keys = self._words * (count + 1) + place.take(codes)
        counted = np.bincount(keys, self._times, minlength=(count + 1) * self._word_count).astype(np.float32)
        counted = counted.reshape(self._word_count, count + 1)
        counted[:, -1] = 0
        return counted, document_counts.tolist()

    def _best_of_many(self, bm25: Bm25, allowed: Flags, size: int) -> tuple[Ints, Floats]:
        """Return slots among which the best are, and scores by slot, without scoring every slot. Rare words come first; common
        ones add little, and are finally looked up only where they can still matter."""
        lengths, scores, ends = self._table.column("length"), np.zeros(len(self._table), np.float32), np.cumsum(self.counts)
        order = sorted((word for word, count in enumerate(self.counts) if count), key=lambda word: -bm25.weights[word])
        rest = np.cumsum(bm25.limits[order][::-1])[::-1]  # more than this and the following words can add
        scored: list[Ints] = []
        slots: Ints | None = None
        for at, word in enumerate(order):
            span = slice(int(ends[word]) - self.counts[word], int(ends[word]))
            containing, times = self._slots[span], self._times[span]
            if scored and slots is None and len(containing) > SHORT_LIST:
                matching = distinct(*scored)
                matching = matching[allowed[matching]]
                needed = nth_highest(scores[matching], size)
                if rest[at] < needed:  # a memory without any of the words so far cannot reach the best any more
                    slots = matching[scores[matching] >= needed - rest[at]]
            if slots is not None:
                where = containing.searchsorted(slots)
                there = containing.take(where, mode="clip") == slots
                containing, times = slots[there], times[where[there]]
            scores[containing] += bm25.parts(times, bm25.limits[word], lengths[containing])
            scored.append(containing)
        return distinct(*scored) if slots is None else slots, scores


def _count_distinct(groups: Ints, values: Ints, count: int, limit: int) -> Ints:
    """Return the number of different values, all below `limit` - 2, in each of `count` groups; -1 and -2 do not count."""
    keys = groups * limit + values
    if count * limit > MAX_FLAGS:
        keys = distinct(keys[values >= 0])
        return np.bincount(keys // limit, minlength=count)
    flags = np.zeros((count, limit), np.bool_)
    flags.reshape(-1)[keys] = True  # -1 and -2 fall into the last two places of some group
    return np.asarray(np.count_nonzero(flags[:, :-2], axis=1))


# --- candidates ---


@dataclass(frozen=True, slots=True)
class PartitionQuery:
    """A query against one partition."""

    table: Table
    view: View
    filtered: bool  # whether the caller gave a filter
    allowed: Flags  # by slot: whether it may become a candidate: readable, and allowed by the filter
    postings: QueryPostings
    similarity: Similarity | None  # None: the query has no vector, or the partition has none of its model

    @classmethod
    def of(cls, query: Query, words: Sequence[str], table: Table, view: View, flags: Flags | None) -> "PartitionQuery":
        allowed, similarity = view.readable if flags is None else view.readable & flags, None
        if query.vector and (space := table.spaces.get((query.vector.model, query.vector.dimension))):
            similarity = Similarity(view.vectors(space), None if flags is None else allowed, query.vector.data)
        return cls(table, view, flags is not None, allowed, QueryPostings(table, view, words), similarity)

    @property
    def documents(self) -> int:
        return int(np.count_nonzero(self.allowed)) if self.filtered else self.view.documents

    @property
    def excluded(self) -> Counter[str]:
        return Counter({**self.view.excluded(), "filter": self.view.documents - self.documents})

    @property
    def without_vector(self) -> int:
        return self.documents - (self.similarity.count(self.allowed if self.filtered else None) if self.similarity else 0)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of a partition, their sessions and their surroundings: their neighbours, and the neighbours of those.

    One more place at the end of the surroundings, without words and vector, stands for a missing neighbour.
    """

    part: PartitionQuery
    groups: Ints  # the slots of (in a row each) candidates, the previous, the next, the ones before the previous, after the next
    sessions: Ints  # codes, each once
    place: Ints  # by session, with two more places for none: its place in `sessions`; their number: it is not one of them
    session: Ints  # by candidate: the place of its session in `sessions`
    counts: Floats  # by word and place in the surroundings
    lengths: Floats  # keywords, by place in the surroundings
    places: Ints  # of `groups` in the surroundings

    @property
    def slots(self) -> Ints:
        slots: Ints = self.groups[0]
        return slots

    @classmethod
    def of(cls, part: PartitionQuery, slots: Ints) -> "Candidates":
        """Return the candidates in these slots."""
        codes = part.view.session_codes.take(slots)
        sessions = _without_none(distinct(codes))
        place = np.full(len(part.table.names.sessions) + 2, len(sessions), np.int32)
        place[sessions] = np.arange(len(sessions))
        groups, place_around = part.view.around(slots), part.view.scratch
        around = _without_none(distinct(groups.reshape(-1)))
        lengths = np.zeros(len(around) + 1, np.float32)
        lengths[:-1] = part.table.column("length").take(around)
        try:
            place_around[around] = np.arange(len(around))
            counts, places = part.postings.word_counts(place_around, len(around)), place_around.take(groups)
        finally:
            place_around[around] = -1
        return cls(part, groups, sessions, place, place.take(codes), counts, lengths, places)


def _without_none(values: Ints) -> Ints:
    """Return ascending values without the -1 at the start, if it is there."""
    return values[1:] if len(values) and values[0] < 0 else values


def _choose(parts: Sequence[PartitionQuery], bm25: Bm25, size: int) -> list[Ints]:
    """Return the slots of the candidates of each partition."""
    nothing = np.zeros(0, np.int32), np.zeros(0, np.float32)
    by_keywords = _best_of_all([part.postings.best(bm25, part.allowed, size) for part in parts], size)
    by_vectors = _best_of_all([part.similarity.best(size) if part.similarity else nothing for part in parts], size)
    room = _MAX_GROWTH * size
    chosen = []
    for part, matching, similar in zip(parts, by_keywords, by_vectors, strict=True):
        best = np.concatenate((matching[: size // 3], similar[: size // 3]))
        near = part.view.around(best)[1:3].reshape(-1)
        near = near[(near >= 0) & part.allowed.take(near)]
        slots = distinct(matching, similar, near)
        if len(slots) > room:
            found = distinct(matching, similar)
            near = near[places_in(found, near) == len(found)]
            slots = distinct(found, near[: max(0, room - len(found))])
        room -= len(slots)
        chosen.append(slots)
    return chosen


def _best_of_all(lists: Sequence[tuple[Ints, Floats]], size: int) -> list[Ints]:
    """Return the part of each list, best first, that belongs to the best of all lists."""
    if len(lists) == 1 and len(lists[0][0]) <= size:
        return [lists[0][0]]
    values = np.concatenate([np.zeros(0, np.float32), *(scores for _, scores in lists)])
    needed = nth_highest(values, size) if len(values) > size else -np.inf
    return [slots[scores >= needed] for slots, scores in lists]


# --- signals; `core.search.query.SIGNALS` says what each means ---


def _keyword_signals(candidates: Candidates, bm25: Bm25) -> dict[str, Signal]:
    counts = candidates.counts.take(candidates.places, axis=1)  # by word, group and candidate
    lengths = candidates.lengths.take(candidates.places[:4])
    # In place of the ones further away: the context, then everything.
    counts[:, 4] += counts[:, 3]
    counts[:, :3].sum(axis=1, out=counts[:, 3])
    counts[:, 4] += counts[:, 3]
    lengths[3] = (lengths[0] + lengths[1] + lengths[2]) / _CONTEXT
    scores, coverage = bm25.scores(counts[:, :4], lengths), bm25.coverage(counts)
    return {
        "keywords": scores[0],
        "keywords_before": scores[1],
        "keywords_behind": scores[2],
        "keywords_context": scores[3],
        "coverage": coverage[0],
        "coverage_context": coverage[3],
        "coverage_wide": coverage[4],
        "length": lengths[0],
    }


def _session_signals(candidates: Sequence[Candidates], query_counts: Sequence[float]) -> list[Signal]:
    counted = [each.part.postings.session_counts(each.place, len(each.sessions)) for each in candidates]
    corpus = sum((each.part.view.sessions for each in candidates), Corpus(0, 0))
    document_counts = [sum(each) for each in zip(*(counts for _, counts in counted), strict=True)]
    bm25 = Bm25.of(corpus, document_counts, query_counts)
    return [_session_signal(each, counts, bm25) for each, (counts, _) in zip(candidates, counted, strict=True)]


def _session_signal(candidates: Candidates, counts: Floats, bm25: Bm25) -> Signal:
    lengths = np.zeros(counts.shape[1], np.float32)
    lengths[:-1] = candidates.part.view.session_lengths.values.take(candidates.sessions)
    signal: Signal = bm25.scores(counts, lengths).take(candidates.session)
    alone = (candidates.session == len(candidates.sessions)).nonzero()[0]
    if len(alone):
        own = candidates.places[0][alone]
        signal[alone] = bm25.scores(candidates.counts[:, own], candidates.lengths[own])
    return signal


def _vector_signals(candidates: Candidates) -> dict[str, Signal]:
    part, similarity = candidates.part, candidates.part.similarity
    if similarity is None:
        return {name: np.zeros(len(candidates.slots), np.float32) for name in SIGNALS if name.startswith("vectors")}
    near, count = candidates.groups[:3], len(candidates.sessions)
    (own, before, after), (mixed, *mixed_in) = similarity.of(near)
    mixed = mixed + (mixed_in[0] + mixed_in[1]) / 2
    length = similarity.context_lengths(*near)
    if part.filtered and not similarity.knows_all:  # only allowed memories were compared so far, but all of a session count
        members, _ = part.table.members.of(candidates.sessions)
        similarity.compare(members[part.view.readable[members]][:MAX_MEMBERS])
    in_session = similarity.of_sessions(count, candidates.place).take(candidates.session)
    return {
        "vectors": own,
        "vectors_before": before,
        "vectors_behind": after,
        "vectors_context": np.divide(mixed, length, out=np.zeros_like(mixed), where=length > _TINY),
        "vectors_session": np.where(candidates.session < count, in_session, own),
    }


def _other_signals(query: Query, candidates: Candidates, named_speakers: Mapping[int, float]) -> dict[str, Signal]:
    table, (slots, before, *_) = candidates.part.table, candidates.groups
    questions, names = table.column("question"), table.names.speakers
    speakers = table.column("speaker")[slots]
    named, in_role = np.zeros((2, len(names) + 1), np.float32)  # by speaker; the last one: no speaker
    named[list(named_speakers)] = list(named_speakers.values())
    if query.roles:
        in_role[:-1] = [name.casefold() in query.roles for name in names]
    return {
        "question": questions[slots].astype(np.float32),
        "question_before": (questions[before] & (before >= 0)).astype(np.float32),
        "speaker": named[speakers],
        "speaker_known": (speakers >= 0).astype(np.float32),
        "role": in_role[speakers],
        "when": _when(query.spans, table.column("event")[slots]),
    }


def _when(spans: Sequence[tuple[float, float]], events: Array) -> Signal:
    days = events / _DAY
    fits = np.zeros(len(events), np.float32)
    for first, last in spans:
        outside = np.maximum(np.maximum(first - days, days - last), 0)
        fits = np.maximum(fits, np.exp(-outside / _FADE))
    return np.where(events == MISSING, 0, fits).astype(np.float32)
