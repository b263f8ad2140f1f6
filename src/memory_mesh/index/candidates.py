"""The candidates for a query and their signals: the best by keywords, the best by vectors, and neighbours of the best of both.

All partitions that a reader sees form one corpus and give one pool; a session lies within one partition.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from memory_mesh.core.model import Kind
from memory_mesh.core.search import K1, SIGNALS, B, Corpus, Pool, Query, Signal
from memory_mesh.index.arrays import Array, Flags, Floats, Ints, distinct, places_in
from memory_mesh.index.table import MISSING, Table, View, key_of
from memory_mesh.index.vectors import Similarity

# Scoring all postings is faster than selecting some, up to this number of postings in a table of up to this number of slots. A
# list of up to `SHORT_LIST` postings is always scored.
MAX_DENSE_POSTINGS, MAX_DENSE_SLOTS, SHORT_LIST = 100_000, 200_000, 2000
MAX_FLAGS = 4_000_000  # in a table of flags; beyond this, sorting is faster
MAX_MEMBERS = 4000  # memories of the candidates' sessions that are compared although the filter excludes them
_MAX_GROWTH = 3  # a pool has at most this many times the requested size
_CONTEXT = 3  # memories in a context: one and its two neighbours
_TINY = 1e-3  # the vectors of a memory and its neighbours can add up to zero, except for rounding
_DAY = 86_400_000.0  # milliseconds
_FADE = 2.0  # days outside of a named time that divide the signal by e


def find_candidates(query: Query, partitions: Iterable[tuple[Table, View]], *, size: int) -> Pool:
    """Return about `size` candidates by keywords, as many by vectors, and neighbours of the best."""
    words = dict(sorted(Counter(query.tokens).items()))
    parts = [PartitionQuery.of(query, list(words), table, view) for table, view in partitions if len(table)]
    corpus = sum((Corpus(part.table.documents, part.table.length) for part in parts), Corpus(0, 0))
    counts = [sum(each) for each in zip(*(part.postings.counts for part in parts), strict=True)]
    bm25 = Bm25.of(corpus, counts, list(words.values()))
    chosen = _choose(parts, bm25, size)
    near = [Neighbourhood.of(Candidates.of(part, slots)) for part, slots in zip(parts, chosen, strict=True)]
    by_session = _session_signals(near, list(words.values()))
    unknown = _unknown_names(query, parts)
    signals = [
        {
            **_keyword_signals(each, bm25),
            **_vector_signals(each),
            **_other_signals(query, each.candidates),
            "keywords_session": session,
            "stranger": np.full(len(each.candidates.slots), unknown, np.float32),
        }
        for each, session in zip(near, by_session, strict=True)
    ]
    return Pool(
        ids=[id_ for part, slots in zip(parts, chosen, strict=True) for id_ in part.table.ids.at(slots)],
        signals={name: _joined([each[name] for each in signals]) for name in SIGNALS},
        documents=sum(part.documents for part in parts),
        excluded=dict(sum((part.excluded for part in parts), Counter())),  # without zero counts
        without_vector=sum(part.without_vector for part in parts) if query.vector else 0,
    )


# --- keywords ---


@dataclass(frozen=True, slots=True)
class Bm25:
    """The weights of a query's words among some documents; the scores are those of `core.search.bm25`."""

    weights: Floats  # by word: its count in the query · its rarity
    average: float  # keywords in a document

    @classmethod
    def of(cls, corpus: Corpus, document_counts: Sequence[int], query_counts: Sequence[int]) -> "Bm25":
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
        """Return the scores of documents; `counts` has a row for each."""
        scores: Floats = np.vecdot(counts / (counts + self._damping(lengths)[:, None]), self.limits)
        return scores

    def coverage(self, counts: Floats) -> Floats:
        """Return the fraction of the query's weight whose words occur."""
        total = float(self.weights.sum())
        covered: Floats = np.vecdot((counts > 0).astype(np.float32), self.weights)
        return covered / np.float32(total) if total > 0 else np.zeros(len(counts), np.float32)

    def _damping(self, lengths: Array) -> Floats:
        damping: Floats = lengths * np.float32(K1 * B / self.average)
        damping += np.float32(K1 * (1 - B))
        return damping


class QueryPostings:
    """The postings of a query's words in a table, concatenated."""

    def __init__(self, table: Table, words: Sequence[str]) -> None:
        lists = [table.postings(word) for word in words]
        self._table, self._word_count = table, len(words)
        self.counts = [len(slots) for slots, _ in lists]  # by word: memories that contain it
        self._slots: Ints = np.concatenate([np.zeros(0, np.int32), *(slots for slots, _ in lists)])
        self._times: Floats = np.concatenate([np.zeros(0, np.uint16), *(times for _, times in lists)]).astype(np.float32)
        self._words: Ints = np.arange(self._word_count).repeat(self.counts)

    def best(self, bm25: Bm25, allowed: Flags, size: int) -> tuple[Ints, Floats]:
        """Return the memories with the highest scores above zero, best first, and the scores."""
        if len(self._slots) and (len(self._slots) > MAX_DENSE_POSTINGS or len(self._table) > MAX_DENSE_SLOTS):
            return self._best_of_many(bm25, allowed, size)
        lengths = self._table.column("length").take(self._slots)
        parts = bm25.parts(self._times, bm25.limits.take(self._words), lengths)
        scores = np.bincount(self._slots, parts, minlength=len(self._table))
        matching = (scores > 0).nonzero()[0]  # faster on flags than on numbers
        return _best(matching[allowed[matching]], scores, size)

    def word_counts(self, place: Ints, count: int) -> Floats:
        """Return how often each of `count` memories contains each word; `place` is by slot: its place among them, or `count`."""
        counted = np.zeros((count + 1, self._word_count), np.float32)
        at = place.take(self._slots)
        there = (at < count).nonzero()[0]
        counted[at[there], self._words[there]] = self._times[there]
        return counted

    def session_counts(self, readable: Flags, place: Ints, count: int) -> tuple[Floats, list[int]]:
        """Return how often the readable memories of each of `count` sessions contain each word, and how many sessions contain it.

        `place` is by session: its place among the `count`; -1: none. A memory without a session counts as a session.
        """
        codes, visible = self._table.column("session").take(self._slots), readable.take(self._slots)
        alone = np.bincount(self._words[visible & (codes < 0)], minlength=self._word_count)
        together = (visible & (codes >= 0)).nonzero()[0]
        codes, words = codes[together], self._words[together]
        document_counts = alone + _count_distinct(words, codes, self._word_count, len(place))
        at = place.take(codes)
        listed = (at >= 0).nonzero()[0]
        times = self._times[together[listed]]
        counted = np.bincount(at[listed] * self._word_count + words[listed], times, minlength=count * self._word_count)
        return counted.astype(np.float32).reshape(count, self._word_count), document_counts.tolist()

    def _best_of_many(self, bm25: Bm25, allowed: Flags, size: int) -> tuple[Ints, Floats]:
        """Return the same without scoring every slot. Rare words come first; common ones add little, and are finally looked up
        only where they can still matter."""
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
                needed = _nth_highest(scores[matching], size)
                if rest[at] < needed:  # a memory without any of the words so far cannot reach the best any more
                    slots = matching[scores[matching] >= needed - rest[at]]
            if slots is not None:
                where = containing.searchsorted(slots)
                there = containing.take(where, mode="clip") == slots
                containing, times = slots[there], times[where[there]]
            scores[containing] += bm25.parts(times, bm25.limits[word], lengths[containing])
            scored.append(containing)
        if slots is None:
            slots = distinct(*scored)
            slots = slots[allowed[slots]]
        return _best(slots, scores, size)


def _count_distinct(groups: Ints, values: Ints, count: int, limit: int) -> Ints:
    """Return the number of different values, all below `limit`, in each of `count` groups."""
    keys = groups * limit + values
    if count * limit > MAX_FLAGS:
        return np.bincount(distinct(keys) // limit, minlength=count)
    flags = np.zeros((count, limit), np.bool_)
    flags.reshape(-1)[keys] = True
    counted: Ints = np.count_nonzero(flags, axis=1)
    return counted


def _nth_highest(values: Floats, n: int) -> float:
    return float(-np.partition(-values, n - 1)[n - 1]) if len(values) >= n else 0.0


def _best(slots: Ints, scores: Floats, size: int) -> tuple[Ints, Floats]:
    values = -scores[slots]
    if size < len(values):
        at = values.argpartition(size)[:size]
        slots, values = slots[at], values[at]
    order = values.argsort(kind="stable")
    return slots[order], -values[order]


# --- candidates ---


@dataclass(frozen=True, slots=True)
class PartitionQuery:
    """A query against one partition."""

    table: Table
    view: View
    filtered: Flags | None  # by slot: readable, and allowed by the caller's filter; None: no filter
    postings: QueryPostings
    similarity: Similarity | None  # None: the query has no vector, or the partition has none of its model

    @classmethod
    def of(cls, query: Query, words: Sequence[str], table: Table, view: View) -> "PartitionQuery":
        similarity, filtered = None, None
        if query.vector and (space := table.spaces.get((query.vector.model, query.vector.dimension))):
            similarity = Similarity(view.vectors(space), view.readable, query.vector.data)
        if query.only is not None:
            filtered = np.zeros(len(table), np.bool_)
            filtered[table.slots_of([key_of(Kind.MEMORY, id_) for id_ in query.only])] = True
            filtered &= view.readable
        return cls(table, view, filtered, QueryPostings(table, words), similarity)

    @property
    def allowed(self) -> Flags:
        """By slot: whether it may become a candidate."""
        return self.view.readable if self.filtered is None else self.filtered

    @property
    def documents(self) -> int:
        return self.view.documents if self.filtered is None else int(np.count_nonzero(self.filtered))

    @property
    def excluded(self) -> Counter[str]:
        return Counter({**self.view.excluded(), "filter": self.view.documents - self.documents})

    @property
    def without_vector(self) -> int:
        return self.documents - (0 if self.similarity is None else self.similarity.comparable(self.filtered))

    def most_similar(self, size: int) -> tuple[Ints, Floats]:
        """Return the best memories by vectors, best first, and their cosines."""
        if self.similarity is None:
            return np.zeros(0, np.int32), np.zeros(0, np.float32)
        return self.similarity.best(self.filtered, size)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of a partition, with their neighbours (-1: none) and sessions."""

    part: PartitionQuery
    slots: Ints
    before: Ints
    after: Ints
    sessions: Ints  # codes, each once
    place: Ints  # by session: its place in `sessions`; -1: none
    session: Ints  # by candidate: the place of its session in `sessions`; -1: none

    @classmethod
    def of(cls, part: PartitionQuery, slots: Ints) -> "Candidates":
        codes = part.table.column("session")[slots]
        there = codes >= 0
        sessions = distinct(codes[there])
        place = np.full(len(part.table.names.sessions), -1, np.int32)
        place[sessions] = np.arange(len(sessions))
        session = np.full(len(slots), -1, np.int32)
        session[there] = place[codes[there]]
        return cls(part, slots, *part.view.neighbours(slots), sessions, place, session)


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The candidates, their neighbours, and the neighbours of those, each once, with their word counts.

    One more place at the end, without words and vector, stands for a missing neighbour.
    """

    candidates: Candidates
    slots: Ints
    counts: Floats  # by place and word
    lengths: Floats  # keywords
    own: Ints  # by candidate: its place, and those of its neighbours
    before: Ints
    after: Ints
    beyond: tuple[Ints, Ints]

    @classmethod
    def of(cls, candidates: Candidates) -> "Neighbourhood":
        part = candidates.part
        beyond = part.view.beyond(candidates.before, candidates.after)
        groups = (candidates.slots, candidates.before, candidates.after, *beyond)
        slots = distinct(*groups)
        slots = slots[slots.searchsorted(0) :]
        place = np.full(len(part.table) + 1, len(slots), np.int32)  # -1, a missing neighbour, is the last place
        place[slots] = np.arange(len(slots))
        lengths = np.zeros(len(slots) + 1, np.float32)
        lengths[:-1] = part.table.column("length")[slots]
        own, before, after, first, last = (place[group] for group in groups)
        return cls(candidates, slots, part.postings.word_counts(place, len(slots)), lengths, own, before, after, (first, last))


def _choose(parts: Sequence[PartitionQuery], bm25: Bm25, size: int) -> list[Ints]:
    """Return the slots of the candidates of each partition."""
    by_keywords = _best_of_all([part.postings.best(bm25, part.allowed, size) for part in parts], size)
    by_vectors = _best_of_all([part.most_similar(size) for part in parts], size)
    room = _MAX_GROWTH * size
    chosen = []
    for part, matching, similar in zip(parts, by_keywords, by_vectors, strict=True):
        best = np.concatenate((matching[: size // 3], similar[: size // 3]))
        near = np.concatenate(part.view.neighbours(best))
        near = near[near >= 0]
        near = near[part.allowed[near]]
        found = distinct(matching, similar)
        near = near[places_in(found, near) == len(found)]
        slots = distinct(found, near)
        if len(slots) > room:
            slots = distinct(found, near[: max(0, room - len(found))])
        room -= len(slots)
        chosen.append(slots)
    return chosen


def _best_of_all(lists: Sequence[tuple[Ints, Floats]], size: int) -> list[Ints]:
    """Return the part of each list, best first, that belongs to the best of all lists."""
    values = np.concatenate([np.zeros(0, np.float32), *(scores for _, scores in lists)])
    if len(values) <= size:
        return [slots for slots, _ in lists]
    needed = -np.partition(-values, size - 1)[size - 1]
    return [slots[scores >= needed] for slots, scores in lists]


# --- signals; `core.search.query.SIGNALS` says what each means ---


def _keyword_signals(near: Neighbourhood, bm25: Bm25) -> dict[str, Signal]:
    counts, lengths = near.counts, near.lengths
    scores = bm25.scores(counts, lengths)
    own, before, after, first, last = (counts.take(at, axis=0) for at in (near.own, near.before, near.after, *near.beyond))
    context = own + before + after
    length = lengths[near.own] + lengths[near.before] + lengths[near.after]
    return {
        "keywords": scores[near.own],
        "keywords_before": scores[near.before],
        "keywords_behind": scores[near.after],
        "keywords_context": bm25.scores(context, length / _CONTEXT),
        "coverage": bm25.coverage(own),
        "coverage_context": bm25.coverage(context),
        "coverage_wide": bm25.coverage(context + first + last),
        "length": lengths[near.own],
    }


def _session_signals(near: Sequence[Neighbourhood], query_counts: Sequence[int]) -> list[Signal]:
    found = [each.candidates for each in near]
    counted = [each.part.postings.session_counts(each.part.view.readable, each.place, len(each.sessions)) for each in found]
    corpus = sum((each.part.view.sessions for each in found), Corpus(0, 0))
    document_counts = [sum(each) for each in zip(*(counts for _, counts in counted), strict=True)]
    bm25 = Bm25.of(corpus, document_counts, query_counts)
    return [_session_signal(each, counts, bm25) for each, (counts, _) in zip(near, counted, strict=True)]


def _session_signal(near: Neighbourhood, counts: Floats, bm25: Bm25) -> Signal:
    candidates = near.candidates
    scores = bm25.scores(counts, candidates.part.view.session_lengths[candidates.sessions])
    signal = _with_zero(scores)[candidates.session]
    alone = (candidates.session < 0).nonzero()[0]
    if len(alone):
        own = near.own[alone]
        signal[alone] = bm25.scores(near.counts[own], near.lengths[own])
    return signal


def _vector_signals(near: Neighbourhood) -> dict[str, Signal]:
    candidates, part, similarity = near.candidates, near.candidates.part, near.candidates.part.similarity
    if similarity is None:
        return {name: np.zeros(len(candidates.slots), np.float32) for name in SIGNALS if name.startswith("vectors")}
    best, plain = similarity.of(near.slots, (near.own, near.before, near.after))
    mixed = plain[near.own] + (plain[near.before] + plain[near.after]) / 2
    length = similarity.context_lengths(candidates.slots, candidates.before, candidates.after)
    if part.filtered is not None:  # only allowed memories were compared so far, but all of a session count
        members, _ = part.table.members.of(candidates.sessions)
        members = members[part.view.readable[members]][:MAX_MEMBERS]
        similarity.of(members, [np.arange(len(members))])
    by_session = similarity.of_sessions(len(candidates.sessions), candidates.place, part.table.column("session"))
    cosines = best[near.own]
    return {
        "vectors": cosines,
        "vectors_before": best[near.before],
        "vectors_behind": best[near.after],
        "vectors_context": np.divide(mixed, length, out=np.zeros_like(mixed), where=length > _TINY),
        "vectors_session": np.where(candidates.session >= 0, _with_zero(by_session)[candidates.session], cosines),
    }


def _other_signals(query: Query, candidates: Candidates) -> dict[str, Signal]:
    table, before = candidates.part.table, candidates.before
    questions = table.column("question")
    speakers = table.column("speaker")[candidates.slots]
    return {
        "question": questions[candidates.slots].astype(np.float32),
        "question_before": (questions[before] & (before >= 0)).astype(np.float32),
        "speaker": _named(table.speakers_by_word, query.tokens, len(table.names.speakers))[speakers],
        "speaker_known": (speakers >= 0).astype(np.float32),
        "role": _with_role(table.names.speakers, query.roles)[speakers],
        "when": _when(query.spans, table.column("event")[candidates.slots]),
        "when_asked": np.full(len(candidates.slots), bool(query.spans), np.float32),
    }


def _named(speakers_by_word: Mapping[str, Sequence[int]], words: Sequence[str], count: int) -> Signal:
    """By speaker: 1 if the name contains one of these words; and one more 0 for no speaker."""
    flags = np.zeros(count + 1, np.float32)
    for word in words:
        if speakers := speakers_by_word.get(word):
            flags[speakers] = 1
    return flags


def _with_role(speakers: Sequence[str], roles: frozenset[str]) -> Signal:
    """By speaker: 1 if it is one of these roles; and one more 0 for no speaker."""
    flags = np.zeros(len(speakers) + 1, np.float32)
    if roles:
        flags[:-1] = [speaker.casefold() in roles for speaker in speakers]
    return flags


def _when(spans: Sequence[tuple[float, float]], events: Array) -> Signal:
    days = events / _DAY
    fits = np.zeros(len(events), np.float32)
    for first, last in spans:
        outside = np.maximum(np.maximum(first - days, days - last), 0)
        fits = np.maximum(fits, np.exp(-outside / _FADE))
    return np.where(events == MISSING, 0, fits).astype(np.float32)


def _unknown_names(query: Query, parts: Sequence[PartitionQuery]) -> float:
    """Return the fraction of the query's names that no readable memory contains."""
    unknown = [
        name for name in query.names if not any(part.view.readable[part.table.postings(name)[0]].any() for part in parts)
    ]  # fmt: skip
    return len(unknown) / len(query.names) if query.names else 0.0


def _joined(parts: Sequence[Signal]) -> Signal:
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.float32), *parts])


def _with_zero(values: Array) -> Array:
    """Append a 0 for candidates without a session, whose place is -1."""
    return np.concatenate((values, np.zeros((1, *values.shape[1:]), values.dtype)))
