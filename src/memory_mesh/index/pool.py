"""A query against the pool of memories that the engine of a store found for it.

The pool forms a small table for each partition, from which `candidates` computes the signals as it
does for an index in memory. The counts of words come from the engine, which counts all memories.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from memory_mesh.core.model import (
    ANYTHING,
    In,
    Kind,
    Where,
    all_of,
    millis,
    not_expired,
    partitions,
    valid_in,
    visible_to,
)
from memory_mesh.core.search import Pool, Query, Signal
from memory_mesh.core.search.candidates import (
    CandidateSource,
    Conditions,
    FoundRows,
    SessionKey,
    SessionTotals,
    Statistics,
)
from memory_mesh.core.search.lexical import hidden_stems
from memory_mesh.index.arrays import Flags, Ints
from memory_mesh.index.candidates import (
    Bm25,
    Candidates,
    PartitionQuery,
    best_of_channels,
    ids_of,
    session_signal,
    signals_of,
    with_neighbours,
)
from memory_mesh.index.table import Table
from memory_mesh.index.view import OWN, View, find_corrections, find_people, with_corrections
from memory_mesh.index.words import one_typo_away

# How many memories of each channel the engine is asked for, for a pool of the usual size. With 60,
# 96 % of the best ten are those of comparing all memories; with 100, 99 %.
_BEST, _USUAL_SIZE = 80, 150
Speakers = Collection[tuple[str, str]]  # each partition and speaker of readable memories


def conditions_of(query: Query) -> Conditions:
    """Return the memories that a query concerns."""
    in_scope = visible_to(query.reader)
    with_status = all_of(in_scope, In("status", tuple(query.statuses)))
    readable = all_of(with_status, not_expired(query.at))
    allowed = all_of(readable, valid_in(query.periods), query.where)
    return Conditions(visible=in_scope, with_status=with_status, readable=readable, allowed=allowed)


def find_pool(
    query: Query, source: CandidateSource, speakers: Speakers, *, size: int, language: str
) -> Pool:
    """Return the pool of a query. The engine is asked once; and about the words that no memory
    contains, if the embedder does not know them, and again with their corrections."""
    conditions, corrections = conditions_of(query), dict[str, str]()
    words: dict[str, float] = dict(sorted(Counter(query.tokens).items()))
    limit = max(_BEST, size * _BEST // _USUAL_SIZE)
    found = source.search(conditions, words, query.names, query.vector, limit=limit)
    known = _EngineWords(source, conditions.readable, found.statistics.counts, language)
    unknown = [word for word in words if not known.count(word) and not query.is_word(word)]
    if corrections := find_corrections(unknown, known, query.is_word):
        words = with_corrections(words, corrections)
        found = source.search(conditions, words, query.names, query.vector, limit=limit)
    views = {
        name: _view_of(query, found.rows.get(name), language) for name in partitions(query.reader)
    }
    for partition, speaker in sorted(speakers):
        views[partition].table.add_speaker(speaker)
    weights, statistics = list(words.values()), found.statistics
    parts = [
        PartitionQuery.of(query, list(words), view.table, view, view.allowed)
        for view in views.values()
    ]
    bm25 = Bm25.of(statistics.corpus, _by_word(statistics.counts, words), weights)
    chosen = with_neighbours(parts, best_of_channels(parts, bm25, size), size)
    candidates = [Candidates.of(part, slots) for part, slots in zip(parts, chosen, strict=True)]
    of_sessions = Bm25.of(statistics.sessions, _by_word(statistics.session_counts, words), weights)
    both = [
        _with_sessions(each, name, words, found.sessions, of_sessions)
        for name, each in zip(views, candidates, strict=True)
    ]
    candidates, sessions = [each for each, _ in both], [signal for _, signal in both]
    people = find_people(query, [(one.table, one) for one in views.values()], known, corrections)
    return Pool(
        ids=ids_of(candidates),
        signals=signals_of(query, candidates, bm25, sessions, people),
        documents=statistics.allowed,
        excluded=_excluded(statistics),
        without_vector=statistics.allowed - statistics.with_vector if query.vector else 0,
        corrections=corrections,
    )


def _by_word(counts: Mapping[str, int], words: Iterable[str]) -> list[int]:
    return [counts.get(word, 0) for word in words]


def _with_sessions(
    candidates: Candidates,
    partition: str,
    words: Mapping[str, float],
    totals: Mapping[SessionKey, SessionTotals],
    bm25: Bm25,
) -> tuple[Candidates, Signal]:
    """Return the candidates of a partition with the best cosines of their sessions, and the signal
    `keywords_session`."""
    count, table = len(candidates.sessions), candidates.part.table
    lengths, cosines = np.zeros(count), np.full(count + 1, -1, np.float32)
    counts, cosines[-1] = np.zeros((len(words), count + 1), np.float32), 0
    for key, total in totals.items():
        code = table.session_code(key.session_id)
        at = candidates.place[code] if key.partition == partition and code >= 0 else count
        if at < count:
            lengths[at], counts[:, at] = total.length, _by_word(total.counts, words)
            cosines[at] = -1 if total.cosine is None else total.cosine
    signal = session_signal(candidates, counts, lengths, bm25)
    return replace(candidates, session_cosines=cosines), signal


class _PoolView(View):
    """What a reader sees of the pool of one partition. Other memories of its speakers are in the
    store."""

    table: Table
    allowed: Flags | None  # by slot: whether it meets the caller's filter; None: there is none

    def has_speaker(self, code: int) -> bool:
        """Return True: the engine returns the speakers of readable memories only."""
        return True


def _view_of(query: Query, rows: FoundRows | None, language: str) -> _PoolView:
    """Return the view of a partition, of which the engine found these rows."""
    table = Table(language)
    if rows:
        table.put(Kind.MEMORY, rows.memories)
        table.put(Kind.PASSAGE, rows.passages)
    view = _PoolView(table, query.reader, frozenset(query.statuses), float(millis(query.at)))
    view.table, view.allowed = table, None
    if rows:
        view.set_around(_around(table, rows.places))
        if query.where != ANYTHING or query.periods:
            view.allowed = np.zeros(len(table), np.bool_)
            view.allowed[: len(rows.allowed)] = rows.allowed
    return view


def _around(table: Table, places: Sequence[int | None]) -> Ints:
    """Return the neighbours of each slot, as `View.around` returns them by row; `places` has the
    places of the memories in their sessions."""
    around = np.full((len(table), OWN + 3), -1, np.int32)
    around[:, OWN] = np.arange(len(table))
    sessions = table.column("session")[: len(places)].tolist()
    pairs = zip(sessions, places, strict=True)
    slots = {pair: slot for slot, pair in enumerate(pairs)}
    for (session, place), slot in slots.items():
        if place is not None:
            for column, step in enumerate((-1, 1, 0, -2, 2)):
                around[slot, column] = slots.get((session, place + step), -1)
    return around


class _EngineWords:
    """The words of all readable memories, counted by the engine. Those of the query are counted
    among all visible ones."""

    def __init__(
        self, source: CandidateSource, readable: Where, counts: Mapping[str, int], language: str
    ) -> None:
        self._source, self._readable, self.language = source, readable, language
        self._counts = dict(counts)

    def near(self, word: str) -> Collection[str]:
        near = one_typo_away(word)
        others = [each for each in near | hidden_stems(word, language=self.language)
                  if each not in self._counts]  # fmt: skip
        counts = self._source.count_words(self._readable, others)
        self._counts |= {each: counts.get(each, 0) for each in others}
        return near

    def count(self, word: str) -> int:
        return self._counts.get(word, 0)


def _excluded(found: Statistics) -> dict[str, int]:
    """Return how many memories were excluded before scoring, by reason."""
    counts = {
        "status": found.visible - found.with_status,
        "expired": found.with_status - found.readable,
        "filter": found.readable - found.allowed,
    }
    return {reason: count for reason, count in counts.items() if count}
