"""One query against a store that finds candidates in its engine.

Candidates and their neighbours form a small table for each partition, from which `candidates`
computes the signals. What depends on other memories comes from the store: counts of words,
neighbours, and the totals of sessions.
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
    not_expired,
    partitions,
    valid_in,
    visible_to,
)
from memory_mesh.core.ports import Store
from memory_mesh.core.search import Pool, Query, Signal, completed
from memory_mesh.core.search.candidates import (
    CandidateMemory,
    CandidateSource,
    Conditions,
    SessionKey,
    SessionTotals,
    Statistics,
)
from memory_mesh.core.search.lexical import hidden_stems
from memory_mesh.core.search.mentions import addressee
from memory_mesh.index.arrays import Ints, Model
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
from memory_mesh.index.paged import PartialTables
from memory_mesh.index.view import (
    MAX_UNKNOWN,
    People,
    Views,
    find_corrections,
    find_people,
    with_corrections,
)
from memory_mesh.index.words import one_typo_away

# Memories that contain a name, short ones first, in which someone may be addressed by it.
MAX_GREETINGS = 200
_NEAR = 2  # neighbours on each side of a candidate
# Of each word of a corrected query, so that the weights of its corrections are whole numbers.
_REPEATS = 5


class RemoteSearch:
    """A query, and what has been read for it. Rows that changed meanwhile are left out."""

    def __init__(self, query: Query, store: Store, source: CandidateSource, language: str) -> None:
        self._store, self._source = store, source
        self._conditions = _conditions(query)
        self._words = _SourceWords(source, self._conditions.readable, language)
        self._partitions, self._speakers = (
            sorted(partitions(query.reader)),
            source.speakers(self._conditions.readable),
        )
        self._greetings = self._tables()  # memories that address someone, and their neighbours
        self._addressees: dict[str, str] = {}  # by id: the name
        self._names: set[str] = set()  # whose greetings have been read

    @property
    def views(self) -> Views:
        return self._greetings.views

    def _tables(self) -> PartialTables:
        return PartialTables(self._partitions, self._speakers, self._words.language)

    # --- people ---

    def people(self, query: Query, corrections: Mapping[str, str] | None = None) -> People:
        """Return the people that the query names."""
        views = self.views
        unknown = (
            name
            for name in query.names
            if not any(table.speakers_by_word.get(name) for table, _ in views)
        )
        names = sorted(unknown)[:MAX_UNKNOWN]
        self._words.look_up(names)
        for name in names:
            if name not in self._names:
                self._names.add(name)
                self._read_greetings(name)
        self._greetings.link()
        return find_people(query, views, self._words, corrections)

    def _read_greetings(self, name: str) -> None:
        """Read the memories that address someone by a name, and their neighbours."""
        conditions, language, tables = self._conditions, self._words.language, self._greetings
        hits = self._store.matching(
            [name], conditions.visible, conditions.readable, limit=MAX_GREETINGS
        )
        rows = self._store.get(Kind.MEMORY, [hit.id for hit in hits])
        spoken = [row for row in rows.values() if row.value("speaker") is not None]
        greetings = [
            row.id
            for row in spoken
            if addressee(str(row.value("content") or ""), language=language) == name
        ]
        if greetings:
            self._addressees |= dict.fromkeys(greetings, name)
            tables.add_neighbours(
                self._source.around(conditions.readable, greetings, steps=1).neighbours
            )
            ids = [id_ for id_ in tables.near(greetings, steps=1) if id_ not in tables.memories]
            read = self._source.memories(conditions, ids, (), None, with_vectors=())
            tables.add(read, None, self._addressees)

    # --- candidates ---

    def candidates(self, query: Query, *, size: int) -> Pool:
        """Return about `size` candidates by keywords, as many by vectors, and neighbours of the
        best."""
        words: dict[str, float] = dict(sorted(Counter(query.tokens).items()))
        statistics = self._statistics(query, words)
        unknown = [word for word in words if not statistics.counts.get(word)]
        if corrections := find_corrections(unknown, self._words, query.is_word):
            words = with_corrections(words, corrections)
            statistics = self._statistics(query, words)
        bm25 = Bm25.of(
            statistics.corpus,
            [statistics.counts.get(word, 0) for word in words],
            list(words.values()),
        )
        people = self.people(query, corrections)
        tables = self._tables()
        hits = self._hits(query, words if corrections else None, statistics, size)
        self._read(tables, query, words, hits, with_vectors=hits)
        channels = best_of_channels(_parts(tables, query, words), bm25, size)
        totals = self._read_neighbours(tables, query, words, channels, size)
        parts = _parts(tables, query, words)
        chosen = with_neighbours(parts, channels, size)
        candidates = [Candidates.of(part, slots) for part, slots in zip(parts, chosen, strict=True)]
        candidates, sessions = _with_sessions(tables, candidates, words, statistics, totals)
        return Pool(
            ids=ids_of(candidates),
            signals=signals_of(query, candidates, bm25, sessions, people),
            documents=statistics.allowed,
            excluded=_excluded(statistics),
            without_vector=statistics.allowed - statistics.with_vector if query.vector else 0,
            corrections=corrections,
        )

    def _statistics(self, query: Query, words: Mapping[str, float]) -> Statistics:
        return self._source.statistics(self._conditions, list(words), _model(query))

    def _hits(
        self, query: Query, corrected: Mapping[str, float] | None, statistics: Statistics, size: int
    ) -> list[str]:
        """Return the ids of the best by keywords and by vectors; more than `size`, because the
        index rounds both scores."""
        conditions, tokens = self._conditions, query.tokens
        if corrected:
            tokens = [
                word for word, weight in corrected.items() for _ in range(round(weight * _REPEATS))
            ]
        hits = self._store.matching(
            tokens, conditions.visible, conditions.allowed, limit=size + size // 10 + 10
        )
        ids = [hit.id for hit in hits]
        if query.vector:
            count, limit = statistics.with_vector, size + size // 2 + 20
            ids += self._source.nearest(conditions.allowed, query.vector, count=count, limit=limit)
        return list(dict.fromkeys(ids))

    def _read(
        self,
        tables: PartialTables,
        query: Query,
        words: Collection[str],
        ids: Sequence[str],
        *,
        with_vectors: Collection[str],
    ) -> None:
        if ids:
            model = _model(query)
            found = self._source.memories(
                self._conditions,
                ids,
                words,
                model,
                with_vectors=with_vectors if model else (),
                with_tokens=bool(query.vector and query.vector.tokens),
            )
            tables.add([completed_memory(one, words, self._words.language) for one in found], model)

    def _read_neighbours(
        self,
        tables: PartialTables,
        query: Query,
        words: Collection[str],
        channels: Sequence[tuple[Ints, Ints]],
        size: int,
    ) -> Mapping[SessionKey, SessionTotals]:
        """Read the neighbours of the best. Those of the very best may become candidates, which have
        neighbours themselves.

        The vectors of direct neighbours count, and the words of those behind them. Return the
        totals of their sessions.
        """
        found = tables.ids_at(np.concatenate(both) for both in channels)
        if not found:
            return {}
        first = tables.ids_at(
            np.concatenate([slots[: size // 3] for slots in both]) for both in channels
        )
        readable, ids = self._conditions.readable, list(dict.fromkeys(found))
        around = self._source.around(
            readable, ids, steps=_NEAR + 1, words=words, vector=query.vector
        )
        tables.add_neighbours(around.neighbours)
        near = {*tables.near(found, steps=_NEAR), *tables.near(first, steps=_NEAR + 1)}
        compared = {*tables.near(found, steps=1), *tables.near(first, steps=2)}
        unread = [id_ for id_ in near if id_ not in tables.memories]
        self._read(tables, query, words, unread, with_vectors=compared.intersection(unread))
        return around.sessions


def _with_sessions(
    tables: PartialTables,
    candidates: Sequence[Candidates],
    words: Mapping[str, float],
    statistics: Statistics,
    totals: Mapping[SessionKey, SessionTotals],
) -> tuple[list[Candidates], list[Signal]]:
    """Return the candidates with the best cosines of their sessions, and the signal
    `keywords_session` of each partition."""
    read = (tables.memories[id_] for id_ in tables.ids_at(each.slots for each in candidates))
    keys = {SessionKey(one.partition, one.session_id) for one in read if one.session_id is not None}
    weights, documents = (
        list(words.values()),
        [statistics.session_counts.get(word, 0) for word in words],
    )
    bm25, with_cosines, signals = (
        Bm25.of(statistics.sessions, documents, weights),
        list[Candidates](),
        list[Signal](),
    )
    for name, each in zip(tables.tables, candidates, strict=True):
        own = [SessionTotals()] * len(each.sessions)
        for key in keys:
            if key.partition == name:
                own[each.place[each.part.table.session_code(key.session_id)]] = totals.get(
                    key, SessionTotals()
                )
        counts = np.zeros((len(words), len(own) + 1), np.float32)
        for at, one in enumerate(own):
            if one.counts:
                counts[:, at] = [one.counts.get(word, 0) for word in words]
        signals.append(session_signal(each, counts, np.array([one.length for one in own]), bm25))
        with_cosines.append(
            replace(
                each, session_cosines=np.array([*(one.cosine or 0 for one in own), 0], np.float32)
            )
        )
    return with_cosines, signals


def _model(query: Query) -> Model | None:
    return (query.vector.model, query.vector.dimension) if query.vector else None


def completed_memory(
    memory: CandidateMemory, words: Collection[str], language: str
) -> CandidateMemory:
    """Return a memory with the words that an earlier version left out of its keywords."""
    if memory.text is None:
        return memory
    keywords = completed(list(memory.words), memory.text, language=language)
    return memory._replace(
        length=len(keywords), words=[word for word in keywords if word in words], text=None
    )


def _parts(tables: PartialTables, query: Query, words: Mapping[str, float]) -> list[PartitionQuery]:
    """Return the query against what has been read of each partition."""
    tables.link()
    parts, model = [], _model(query)
    for table, (_, view) in zip(tables.tables.values(), tables.views, strict=True):
        if model:
            table.add_space(model)
        allowed = None if query.where == ANYTHING and not query.periods else table.allowed
        parts.append(PartitionQuery.of(query, list(words), table, view, allowed))
    return parts


class _SourceWords:
    """The words of all readable memories, counted by the store."""

    def __init__(self, source: CandidateSource, readable: Where, language: str) -> None:
        self._source, self._readable, self.language = source, readable, language
        self._counts: dict[str, int] = {}

    def near(self, word: str) -> set[str]:
        near = one_typo_away(word)
        self.look_up(near | hidden_stems(word, language=self.language))
        return near

    def count(self, word: str) -> int:
        self.look_up([word])
        return self._counts[word]

    def look_up(self, words: Iterable[str]) -> None:
        """Count the memories that contain each of these words, in one query."""
        if unknown := {word for word in words if word not in self._counts}:
            counts = self._source.count_words(self._readable, unknown)
            self._counts |= {word: counts.get(word, 0) for word in unknown}


def _conditions(query: Query) -> Conditions:
    in_scope = visible_to(query.reader)
    with_status = all_of(in_scope, In("status", tuple(query.statuses)))
    readable = all_of(with_status, not_expired(query.at))
    allowed = all_of(readable, valid_in(query.periods), query.where)
    return Conditions(visible=in_scope, with_status=with_status, readable=readable, allowed=allowed)


def _excluded(found: Statistics) -> dict[str, int]:
    """Return how many memories were excluded before scoring, by reason."""
    counts = {
        "status": found.visible - found.with_status,
        "expired": found.with_status - found.readable,
        "filter": found.readable - found.allowed,
    }
    return {reason: count for reason, count in counts.items() if count}
