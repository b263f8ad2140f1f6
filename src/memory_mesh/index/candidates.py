"""The candidates for a query and their signals: by keywords, by vectors, and their neighbours.

All partitions that a reader sees form one corpus and give one pool; a session lies within one
partition.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import log
from typing import overload

import numpy as np

from memory_mesh.core.search import K1, SIGNALS, B, Corpus, Pool, Query, Signal
from memory_mesh.core.search.mentions import role_of
from memory_mesh.index.arrays import (
    Array,
    Flags,
    Floats,
    Ints,
    Texts,
    distinct,
    highest,
    nth_highest,
    places_in,
)
from memory_mesh.index.similarity import Similarity
from memory_mesh.index.table import MISSING, Table
from memory_mesh.index.view import (
    OWN,
    People,
    View,
    ViewWords,
    find_corrections,
    find_people,
    with_corrections,
)

# Scoring all postings is faster than selecting some, up to this number of postings and up to this
# number of visible memories. A list of up to `SHORT_LIST` postings is always scored.
MAX_DENSE_POSTINGS, MAX_DENSE_SLOTS, SHORT_LIST = 100_000, 200_000, 2000
MAX_FLAGS = 4_000_000  # in a table of flags; beyond this, sorting is faster
# Memories of the candidates' sessions that are compared although the filter excludes them.
MAX_MEMBERS = 4000
_MAX_GROWTH = 3  # a pool has at most this many times the requested size
_CONTEXT = 3  # memories in a context: one and its two neighbours
_TINY = 1e-3  # the vectors of a memory and its neighbours can add up to zero, except for rounding
_DAY = 86_400_000.0  # milliseconds
_FADE = 2.0  # days outside of a named time that divide the signal by e
_NO_SLOTS = np.zeros(0, np.int32)
_MAX_FACTOR, _MIN_DAMPING = np.float32(K1 + 1), np.float32(K1 * (1 - B))  # of BM25
_AT = {name: at for at, name in enumerate(SIGNALS)}
# Signals that are computed together: of the previous, the next and the memory itself, and for words
# of all three.
_KEYWORDS = slice(_AT["keywords_before"], _AT["keywords_context"] + 1)
_COVERAGE = slice(_AT["coverage"], _AT["coverage_wide"] + 1)
_VECTORS = slice(_AT["vectors_before"], _AT["vectors"] + 1)
_TOKENS = slice(_AT["tokens"], _AT["tokens_context"] + 1)
_ROLES = slice(_AT["by_user"], _AT["by_assistant"] + 1)


def find_candidates(
    query: Query, partitions: Iterable[tuple[Table, View, Flags | None]], *, size: int
) -> Pool:
    """Return about `size` candidates by keywords, as many by vectors, and neighbours of the best.

    The flags of a partition are by slot: whether the caller's filter allows it; None: there is no
    filter.
    """
    words: dict[str, float] = dict(sorted(Counter(query.tokens).items()))
    parts = [
        PartitionQuery.of(query, list(words), table, view, flags)
        for table, view, flags in partitions
        if len(table)
    ]
    counts = _document_counts(parts)
    views = [(part.table, part.view) for part in parts]
    unknown = [word for word, count in zip(words, counts, strict=False) if not count]
    known = ViewWords(views)
    if corrections := find_corrections(unknown, known, query.is_word):
        words = with_corrections(words, corrections)
        parts = [
            replace(part, postings=QueryPostings(part.table, part.view, list(words)))
            for part in parts
        ]
        counts = _document_counts(parts)
    corpus = sum((part.view.corpus for part in parts), Corpus(0, 0))
    bm25 = Bm25.of(corpus, counts, list(words.values()))
    chosen = with_neighbours(parts, best_of_channels(parts, bm25, size), size)
    candidates = [Candidates.of(part, slots) for part, slots in zip(parts, chosen, strict=True)]
    people = find_people(query, views, known, corrections)
    return Pool(
        ids=ids_of(candidates),
        signals=signals_of(
            query, candidates, bm25, _session_signals(candidates, list(words.values())), people
        ),
        documents=sum(part.documents for part in parts),
        excluded=_excluded(parts),
        without_vector=sum(part.without_vector for part in parts) if query.vector else 0,
        corrections=corrections,
    )


def signals_of(
    query: Query,
    candidates: Sequence["Candidates"],
    bm25: "Bm25",
    sessions: Sequence[Signal],
    people: People,
) -> dict[str, Signal]:
    """Return the signals of all candidates by name; `sessions` has `keywords_session` of each
    partition's candidates."""
    signals = np.zeros((len(SIGNALS), sum(len(each.slots) for each in candidates)), np.float32)
    signals[_AT["stranger"]] = people.stranger
    end = 0
    for each, session, speakers in zip(candidates, sessions, people.speakers, strict=True):
        start, end = end, end + len(each.slots)
        own = signals[:, start:end]
        own[_AT["keywords_session"]] = session
        _write_keyword_signals(each, bm25, own)
        _write_vector_signals(each, own)
        _write_other_signals(query, each, speakers, own)
    return dict(zip(SIGNALS, signals, strict=True))


def ids_of(candidates: Iterable["Candidates"]) -> Sequence[str]:
    """Return the ids of all candidates, in the order of their signals."""
    return _Ids([(each.part.table.ids, each.slots) for each in candidates])


def _excluded(parts: Iterable["PartitionQuery"]) -> dict[str, int]:
    """Return how many memories were excluded before scoring, by reason."""
    counts: dict[str, int] = {}
    for part in parts:
        for reason, count in (
            *part.view.excluded.items(),
            ("filter", part.view.documents - part.documents),
        ):
            if count:
                counts[reason] = counts.get(reason, 0) + count
    return counts


class _Ids(Sequence[str]):
    """The ids of the candidates. They are decoded when they are read: of hundreds, a search
    returns ten."""

    def __init__(self, parts: Sequence[tuple[Texts, Ints]]) -> None:
        self._parts, self._size = parts, sum(len(slots) for _, slots in parts)

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]  # like a list

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(texts.at(slots) for texts, slots in self._parts)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return list(self)[at]
        for texts, slots in self._parts:
            if 0 <= at < len(slots):
                return texts[int(slots[at])]
            at -= len(slots)
        raise IndexError(at)


# --- keywords ---


def _document_counts(parts: Sequence["PartitionQuery"]) -> list[int]:
    """Return how many memories contain each word, in all partitions."""
    return [sum(each) for each in zip(*(part.postings.counts for part in parts), strict=True)]


@dataclass(frozen=True, slots=True)
class Bm25:
    """The weights of a query's words among some documents; the scores are those of
    `core.search.bm25`."""

    weights: Floats  # by word: its count in the query · its rarity
    limits: Floats  # by word: what a document's score for it stays below
    per_length: np.float32  # what each keyword of a document adds to the damping of its counts

    @classmethod
    def of(
        cls, corpus: Corpus, document_counts: Sequence[int], query_counts: Sequence[float]
    ) -> "Bm25":
        """Return the weights; `document_counts` is by word, and empty without a partition."""
        rarities = [
            log(1 + (corpus.documents - count + 0.5) / (count + 0.5)) for count in document_counts
        ]
        weights = np.array(
            [count * rarity for count, rarity in zip(query_counts, rarities, strict=False)],
            np.float32,
        )
        # Keywords in a document.
        average = corpus.length / corpus.documents if corpus.documents else 1.0
        return cls(weights, weights * _MAX_FACTOR, np.float32(K1 * B / average))

    def parts(self, counts: Floats, limits: Array, lengths: Array) -> Floats:
        """Return the scores of documents for one word each."""
        part: Floats = counts * limits
        part /= counts + self._damping(lengths)
        return part

    def scores(self, counts: Floats, lengths: Array, out: Floats | None = None) -> Floats:
        """Return the scores of documents; `counts` is by word and document."""
        parts = counts + self._damping(lengths)
        np.divide(counts, parts, out=parts)
        parts *= _by_word(self.limits, counts)
        return np.add.reduce(parts, axis=0, out=out)

    def coverage(self, counts: Floats, out: Floats) -> None:
        """Write the fraction of the query's weight whose words occur in each document; `counts`
        is by word and document."""
        if (total := float(np.add.reduce(self.weights))) > 0:
            np.add.reduce((counts > 0) * _by_word(self.weights, counts), axis=0, out=out)
            out /= np.float32(total)

    def _damping(self, lengths: Array) -> Floats:
        damping: Floats = lengths * self.per_length
        damping += _MIN_DAMPING
        return damping


def _by_word(values: Floats, counts: Floats) -> Floats:
    return values.reshape(-1, *(1,) * (counts.ndim - 1))


class QueryPostings:
    """The postings of a query's words among the memories in the reader's scope, concatenated."""

    def __init__(self, table: Table, view: View, words: Sequence[str]) -> None:
        lists = [view.postings(word) for word in words]
        self._table, self._view, self._word_count = table, view, len(words)
        self.counts = [len(slots) for slots, _ in lists]  # by word: memories that contain it
        self._slots: Ints = np.concatenate(
            [_NO_SLOTS, *(slots for slots, _ in lists)], dtype=np.intp
        )
        self._times: Floats = np.concatenate(
            [_NO_SLOTS, *(times for _, times in lists)], dtype=np.float32
        )
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

    def word_counts(self, slots: Ints) -> Floats:
        """Return how often each word occurs in these memories; -1: in none."""
        place, flat = self._view.scratch, slots.reshape(-1)
        try:
            # A memory that is there several times is counted in one of its places.
            place[flat] = np.arange(len(flat), dtype=place.dtype)
            at, places = place.take(self._slots), place.take(flat)
        finally:
            place[flat] = -1
        there = (at >= 0).nonzero()[0]
        counted = np.zeros((self._word_count, len(flat)), np.float32)
        counted.reshape(-1)[self._words.take(there) * len(flat) + at.take(there)] = (
            self._times.take(there)
        )
        return counted.take(places, axis=1).reshape(self._word_count, *slots.shape)

    def session_counts(self, place: Ints, count: int) -> tuple[Floats, list[int]]:
        """Return how often each word occurs in the readable memories of `count` sessions, and how
        many sessions contain it.

        `place` is by session: its place among the `count`; `count`: none, as in its last two
        places. One more place at the end has no words. A memory without a session counts as a
        session.
        """
        codes = self._view.session_codes.take(self._slots)
        document_counts = _count_distinct(self._words, codes, self._word_count, len(place))
        if self._view.has_memories_alone:
            document_counts += np.bincount(self._words[codes == -1], minlength=self._word_count)
        keys = self._words * (count + 1) + place.take(codes)
        counted = np.bincount(keys, self._times, minlength=(count + 1) * self._word_count).astype(
            np.float32
        )
        counted = counted.reshape(self._word_count, count + 1)
        counted[:, -1] = 0
        return counted, document_counts.tolist()

    def _best_of_many(self, bm25: Bm25, allowed: Flags, size: int) -> tuple[Ints, Floats]:
        """Return slots among which the best are, and scores by slot, without scoring every slot.
        Rare words come first; common ones add little, and are finally looked up only where they
        can still matter."""
        lengths, scores, ends = (
            self._table.column("length"),
            np.zeros(len(self._table), np.float32),
            np.cumsum(self.counts),
        )
        order = sorted(
            (word for word, count in enumerate(self.counts) if count),
            key=lambda word: -bm25.weights[word],
        )
        # More than this and the following words can add.
        rest = np.cumsum(bm25.limits[order][::-1])[::-1]
        scored: list[Ints] = []
        slots: Ints | None = None
        for at, word in enumerate(order):
            span = slice(int(ends[word]) - self.counts[word], int(ends[word]))
            containing, times = self._slots[span], self._times[span]
            if scored and slots is None and len(containing) > SHORT_LIST:
                matching = distinct(*scored)
                matching = matching[allowed[matching]]
                needed = nth_highest(scores[matching], size)
                # A memory without any of the words so far cannot reach the best any more.
                if rest[at] < needed:
                    slots = matching[scores[matching] >= needed - rest[at]]
            if slots is not None:
                where = containing.searchsorted(slots)
                there = containing.take(where, mode="clip") == slots
                containing, times = slots[there], times[where[there]]
            scores[containing] += bm25.parts(times, bm25.limits[word], lengths[containing])
            scored.append(containing)
        return distinct(*scored) if slots is None else slots, scores


def _count_distinct(groups: Ints, values: Ints, count: int, limit: int) -> Ints:
    """Return the number of different values, all below `limit` - 2, in each of `count` groups;
    -1 and -2 do not count."""
    keys = groups * limit + values
    if count * limit > MAX_FLAGS:
        keys = distinct(keys[values >= 0])
        return np.bincount(keys // limit, minlength=count)
    flags = np.zeros((count, limit), np.bool_)
    flags.reshape(-1)[keys] = True  # -1 and -2 fall into the last two places of some group
    return np.array([np.count_nonzero(row) for row in flags[:, :-2]], np.intp)


# --- candidates ---


@dataclass(frozen=True, slots=True)
class PartitionQuery:
    """A query against one partition."""

    table: Table
    view: View
    filtered: bool  # whether the caller gave a filter
    # By slot: whether it may become a candidate: readable, and allowed by the filter.
    allowed: Flags
    postings: QueryPostings
    # None: the query has no vector, or the partition has none of its model.
    similarity: Similarity | None

    @classmethod
    def of(
        cls, query: Query, words: Sequence[str], table: Table, view: View, flags: Flags | None
    ) -> "PartitionQuery":
        allowed, similarity = view.readable if flags is None else view.readable & flags, None
        if query.vector and (
            space := table.spaces.get((query.vector.model, query.vector.dimension))
        ):
            similarity = Similarity(
                view.vectors(space), None if flags is None else allowed, query.vector
            )
        return cls(
            table, view, flags is not None, allowed, QueryPostings(table, view, words), similarity
        )

    @property
    def documents(self) -> int:
        return int(np.count_nonzero(self.allowed)) if self.filtered else self.view.documents

    @property
    def without_vector(self) -> int:
        return self.documents - (
            self.similarity.count(self.allowed if self.filtered else None) if self.similarity else 0
        )


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of a partition, their sessions and their surroundings: their neighbours,
    and the neighbours of those."""

    part: PartitionQuery
    groups: Ints  # as `View.around` returns them
    sessions: Ints  # codes, each once
    # By session, with two more places for none: its place in `sessions`; their number: it is not
    # one of them.
    place: Ints
    session: Ints  # by candidate: the place of its session in `sessions`
    counts: Floats  # by word, group and candidate
    # Keywords, by group and candidate, of the previous, the next and the candidate itself.
    lengths: Floats
    # The best cosine of each session, as far as it is known, with a 0 at the end; None: the
    # partition has all vectors of the sessions.
    session_cosines: Floats | None = None

    @property
    def slots(self) -> Ints:
        slots: Ints = self.groups[OWN]
        return slots

    @classmethod
    def of(cls, part: PartitionQuery, slots: Ints) -> "Candidates":
        """Return the candidates in these slots."""
        codes = part.view.session_codes.take(slots)
        among = np.zeros(len(part.table.names.sessions) + 2, np.bool_)
        among[codes] = True
        sessions = among[:-2].nonzero()[0]
        place = np.empty(len(among), np.int32)
        place.fill(len(sessions))
        place[sessions] = np.arange(len(sessions))
        groups = part.view.around(slots)
        lengths = part.table.column("length").take(groups[:3]).astype(np.float32)
        lengths *= groups[:3] >= 0
        return cls(
            part,
            groups,
            sessions,
            place,
            place.take(codes),
            part.postings.word_counts(groups),
            lengths,
        )


def best_of_channels(
    parts: Sequence[PartitionQuery], bm25: Bm25, size: int
) -> list[tuple[Ints, Ints]]:
    """Return for each partition the slots of its best by keywords and by vectors, best first."""
    nothing = _NO_SLOTS, np.zeros(0, np.float32)
    by_keywords = _best_of_all(
        [part.postings.best(bm25, part.allowed, size) for part in parts], size
    )
    by_vectors = _best_of_all(
        [part.similarity.best(size) if part.similarity else nothing for part in parts], size
    )
    return list(zip(by_keywords, by_vectors, strict=True))


def with_neighbours(
    parts: Sequence[PartitionQuery], channels: Sequence[tuple[Ints, Ints]], size: int
) -> list[Ints]:
    """Return the slots of the candidates of each partition: those found by either channel, and
    neighbours of the best."""
    room = _MAX_GROWTH * size
    chosen = []
    for part, (matching, similar) in zip(parts, channels, strict=True):
        best = np.concatenate((matching[: size // 3], similar[: size // 3]))
        near = part.view.around(best)[:OWN].reshape(-1)
        # As the others: it is sorted faster.
        near = near[(near >= 0) & part.allowed.take(near)].astype(np.int32)
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


def _write_keyword_signals(candidates: Candidates, bm25: Bm25, out: Floats) -> None:
    counts, lengths = candidates.counts.copy(), np.empty((4, len(candidates.slots)), np.float32)
    # In place of the ones further away: the context, then everything.
    counts[:, 4] += counts[:, 3]
    np.add.reduce(counts[:, :3], axis=1, out=counts[:, 3])
    counts[:, 4] += counts[:, 3]
    lengths[:3] = candidates.lengths
    np.add.reduce(candidates.lengths, out=lengths[3])
    lengths[3] /= _CONTEXT
    bm25.scores(counts[:, :4], lengths, out[_KEYWORDS])
    bm25.coverage(counts[:, OWN:], out[_COVERAGE])
    out[_AT["length"]] = lengths[OWN]


def _session_signals(
    candidates: Sequence[Candidates], query_counts: Sequence[float]
) -> list[Signal]:
    counted = [
        each.part.postings.session_counts(each.place, len(each.sessions)) for each in candidates
    ]
    corpus = sum((each.part.view.sessions for each in candidates), Corpus(0, 0))
    document_counts = [sum(each) for each in zip(*(counts for _, counts in counted), strict=True)]
    bm25 = Bm25.of(corpus, document_counts, query_counts)
    lengths = (each.part.view.session_lengths.values.take(each.sessions) for each in candidates)
    return [
        session_signal(*each, bm25)
        for each in zip(candidates, (counts for counts, _ in counted), lengths, strict=True)
    ]


def session_signal(
    candidates: Candidates, counts: Floats, session_lengths: Array, bm25: Bm25
) -> Signal:
    """Return `keywords_session`: `counts` is by word and session, `session_lengths` by session;
    both as in `Candidates`."""
    lengths = np.zeros(counts.shape[1], np.float32)
    lengths[:-1] = session_lengths
    signal: Signal = bm25.scores(counts, lengths).take(candidates.session)
    alone = (candidates.session == len(candidates.sessions)).nonzero()[0]
    if len(alone):
        signal[alone] = bm25.scores(
            candidates.counts[:, OWN, alone], candidates.lengths[OWN, alone]
        )
    return signal


def _write_vector_signals(candidates: Candidates, out: Floats) -> None:
    part, similarity = candidates.part, candidates.part.similarity
    if similarity is None:
        return
    near, count = candidates.groups[:3], len(candidates.sessions)
    best, (before, after, own) = similarity.of(near)
    out[_VECTORS] = best
    mixed, length = own + (before + after) / 2, similarity.context_lengths(near)
    np.divide(mixed, length, out=out[_AT["vectors_context"]], where=length > _TINY)
    if (matches := similarity.by_tokens(near[OWN], near[0])) is not None:
        out[_TOKENS] = matches
    # Only allowed memories were compared so far, but all of a session count.
    if part.filtered and not similarity.knows_all:
        members, _ = part.table.members.of(candidates.sessions)
        similarity.compare(members[part.view.readable[members]][:MAX_MEMBERS])
    of_sessions = similarity.of_sessions(count, candidates.place)
    if candidates.session_cosines is not None:
        of_sessions = np.maximum(of_sessions, candidates.session_cosines)
    out[_AT["vectors_session"]] = np.where(
        candidates.session < count, of_sessions.take(candidates.session), best[OWN]
    )


def _write_other_signals(
    query: Query, candidates: Candidates, named_speakers: Mapping[int, float], out: Floats
) -> None:
    table, before, slots = candidates.part.table, candidates.groups[0], candidates.slots
    events = table.column("event").take(slots)
    questions, names = table.column("question"), table.names.speakers
    speakers = table.column("speaker").take(slots)
    out[_AT["question"]] = questions.take(slots)
    out[_AT["question_before"]] = questions.take(before) & (before >= 0)
    out[_AT["speaker_known"]] = speakers >= 0
    if named_speakers:
        named = np.zeros(len(names) + 1, np.float32)  # by speaker; the last one: no speaker
        named[list(named_speakers)] = list(named_speakers.values())
        out[_AT["speaker"]] = named.take(speakers)
    if query.roles:
        in_role = np.array(
            [*(query.roles.get(name.casefold(), 0.0) for name in names), 0.0], np.float32
        )
        out[_AT["role"]] = in_role.take(speakers)
    if query.spans:
        out[_AT["when"]] = _when(query.spans, events)
    by_role = np.zeros((len(names) + 1, 2), np.float32)  # the last one: no speaker
    for code in {*speakers.tolist()} - {-1}:
        by_role[code] = role_of(names[code])
    out[_ROLES] = by_role.take(speakers, axis=0).T
    out[_AT["day"]] = (
        np.where(events == MISSING, table.column("created").take(slots), events) / _DAY
    )
    out[_AT["personal"]], out[_AT["general"]] = query.personal, query.general


def _when(spans: Sequence[tuple[float, float]], events: Array) -> Signal:
    days = events / _DAY
    fits = np.zeros(len(events), np.float32)
    for first, last in spans:
        outside = np.maximum(np.maximum(first - days, days - last), 0)
        fits = np.maximum(fits, np.exp(-outside / _FADE))
    return np.where(events == MISSING, 0, fits).astype(np.float32)
