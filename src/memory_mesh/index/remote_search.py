"""One query against a store that finds candidates in its engine.

The rows of candidates and of their neighbours form a small table for each partition, from which `candidates` computes the
signals. What depends on other memories comes from the store: counts of words, neighbours, and the totals of sessions.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from memory_mesh.core.candidate_ports import CandidateSource, Conditions, SessionKey, SessionTotals, Statistics
from memory_mesh.core.model import (
    ANYTHING,
    In,
    Kind,
    Reader,
    Row,
    Where,
    all_of,
    batches,
    millis,
    not_expired,
    partitions,
    visible_to,
)
from memory_mesh.core.ports import Store
from memory_mesh.core.search import Pool, Query, Signal
from memory_mesh.core.search.people import addressee
from memory_mesh.core.search.spelling import hidden_stems
from memory_mesh.index.arrays import Ints
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
from memory_mesh.index.readings import MAX_UNKNOWN, People, Views, find_corrections, find_people, with_corrections
from memory_mesh.index.table import Table
from memory_mesh.index.view import OWN, View
from memory_mesh.index.words import one_typo_away

BATCH = 500  # rows read together
MAX_GREETINGS = 200  # memories that contain a name, short ones first, in which someone may be addressed by it
_STEPS = 3  # on each side of a hit: its neighbour may become a candidate, which has two neighbours on each side
_NEAR = 2
_REPEATS = 5  # of each word of a corrected query, so that the weights of its corrections are whole numbers


class RemoteSearch:
    """A query, and what has been read for it. Rows that changed meanwhile are left out."""

    def __init__(self, query: Query, store: Store, source: CandidateSource, language: str) -> None:
        self._store, self._source = store, source
        self._conditions = _conditions(query)
        self._words = _SourceWords(source, self._conditions.readable, language)
        self._tables = {name: Table(language) for name in sorted(partitions(query.reader))}
        for partition, speaker in sorted(source.speakers(self._conditions.readable)):
            self._tables[partition].add_speaker(speaker)
        statuses, now = frozenset(query.statuses), float(millis(query.at))
        self.views: Views = [(table, _PartialView(table, query.reader, statuses, now)) for table in self._tables.values()]
        self._rows: dict[str, Row] = {}
        self._slots: dict[str, int] = {}
        self._before, self._behind = dict[str, str](), dict[str, str]()  # by id: the neighbour in its session
        self._names: set[str] = set()  # whose greetings have been read

    # --- people ---

    def people(self, query: Query, corrections: Mapping[str, str] | None = None) -> People:
        """Return the people that the query names."""
        unknown = (name for name in query.names if not any(table.speakers_by_word.get(name) for table, _ in self.views))
        names = sorted(unknown)[:MAX_UNKNOWN]
        self._words.look_up(names)
        for name in names:
            if name not in self._names:
                self._names.add(name)
                self._read_greetings(name)
        self._link()
        return find_people(query, self.views, self._words, corrections)

    def _read_greetings(self, name: str) -> None:
        """Read the memories that address someone by a name, and their neighbours."""
        conditions, language = self._conditions, self._words.language
        hits = self._store.matching([name], conditions.visible, conditions.readable, limit=MAX_GREETINGS)
        rows = self._get([hit.id for hit in hits])
        spoken = [row for row in rows if row.value("speaker") is not None]
        greetings = [row.id for row in spoken if addressee(str(row.value("content") or ""), language=language) == name]
        self._read(self._around(greetings, steps=1))

    # --- candidates ---

    def candidates(self, query: Query, *, size: int) -> Pool:
        """Return about `size` candidates by keywords, as many by vectors, and neighbours of the best."""
        words: dict[str, float] = dict(sorted(Counter(query.tokens).items()))
        statistics = self._statistics(query, words)
        unknown = [word for word in words if not statistics.counts.get(word)]
        if corrections := find_corrections(unknown, self._words, query.is_word):
            words = with_corrections(words, corrections)
            statistics = self._statistics(query, words)
        bm25 = Bm25.of(statistics.corpus, [statistics.counts.get(word, 0) for word in words], list(words.values()))
        people = self.people(query, corrections)
        self._read(self._hits(query, words if corrections else None, size))
        channels = best_of_channels(self._parts(query, words), bm25, size)
        self._read(self._around(self._ids_at(found for both in channels for found in [np.concatenate(both)]), steps=_STEPS))
        chosen = with_neighbours(self._parts(query, words), channels, size)
        self._read(self._near(self._ids_at(chosen)))
        candidates = [Candidates.of(part, slots) for part, slots in zip(self._parts(query, words), chosen, strict=True)]
        candidates, sessions = self._with_sessions(query, candidates, words, statistics)
        return Pool(
            ids=ids_of(candidates),
            signals=signals_of(query, candidates, bm25, sessions, people),
            documents=statistics.allowed,
            excluded=_excluded(statistics),
            without_vector=statistics.allowed - statistics.with_vector if query.vector else 0,
            corrections=corrections,
        )

    def _statistics(self, query: Query, words: Mapping[str, float]) -> Statistics:
        model = (query.vector.model, query.vector.dimension) if query.vector else None
        return self._source.statistics(self._conditions, list(words), model)

    def _hits(self, query: Query, corrected: Mapping[str, float] | None, size: int) -> list[str]:
        """Return the ids of the best by keywords and by vectors; more than `size`, because the index rounds both scores."""
        conditions, tokens = self._conditions, query.tokens
        if corrected:
            tokens = [word for word, weight in corrected.items() for _ in range(round(weight * _REPEATS))]
        hits = self._store.matching(tokens, conditions.visible, conditions.allowed, limit=size + size // 10 + 10)
        if query.vector:
            hits += self._store.nearest(Kind.MEMORY, query.vector, conditions.allowed, limit=size + size // 2 + 20)
        return [hit.id for hit in hits]

    def _parts(self, query: Query, words: Mapping[str, float]) -> list[PartitionQuery]:
        """Return the query against what has been read of each partition."""
        self._link()
        parts = []
        for table, view in self.views:
            flags = None
            if query.where != ANYTHING:
                flags = np.zeros(len(table), np.bool_)
                own = [row for row in self._rows.values() if self._tables[row.partition] is table and query.where.matches(row)]
                flags[[self._slots[row.id] for row in own]] = True
            if query.vector:
                table.add_space((query.vector.model, query.vector.dimension))
            parts.append(PartitionQuery.of(query, list(words), table, view, flags))
        return parts

    def _with_sessions(
        self, query: Query, candidates: Sequence[Candidates], words: Mapping[str, float], statistics: Statistics
    ) -> tuple[list[Candidates], list[Signal]]:
        """Return the candidates with the best cosines of their sessions, and the signal `keywords_session` of each partition."""
        rows = (self._rows[id_] for id_ in self._ids_at(each.slots for each in candidates))
        keys = {key for row in rows if (key := SessionKey.of(row))}
        totals = self._source.sessions(self._conditions.readable, keys, list(words), query.vector) if keys else {}
        weights, documents = list(words.values()), [statistics.session_counts.get(word, 0) for word in words]
        bm25, completed, signals = Bm25.of(statistics.sessions, documents, weights), list[Candidates](), list[Signal]()
        for name, each in zip(self._tables, candidates, strict=True):
            own = [SessionTotals()] * len(each.sessions)
            for key in keys:
                if key.partition == name:
                    own[each.place[each.part.table.session_code(key.session_id)]] = totals.get(key, SessionTotals())
            counts = np.zeros((len(words), len(own) + 1), np.float32)
            for at, one in enumerate(own):
                counts[:, at] = [one.counts.get(word, 0) for word in words]
            signals.append(session_signal(each, counts, np.array([one.length for one in own]), bm25))
            completed.append(replace(each, session_cosines=np.array([*(one.cosine or 0 for one in own), 0], np.float32)))
        return completed, signals

    # --- rows ---

    def _get(self, ids: Iterable[str]) -> list[Row]:
        found = (self._store.get(Kind.MEMORY, batch) for batch in batches(list(dict.fromkeys(ids)), BATCH))
        return [row for rows in found for row in rows.values() if row.partition in self._tables]

    def _read(self, ids: Iterable[str]) -> None:
        """Read memories with their passages into the tables, newest first, as an index is built."""
        rows = sorted(self._get(id_ for id_ in ids if id_ not in self._rows), key=lambda row: row.age_key, reverse=True)
        passages = list(self._passages([row.id for row in rows]))
        for name, (table, view) in zip(self._tables, self.views, strict=True):
            own = [row for row in rows if row.partition == name]
            if own:
                slots = table.put(Kind.MEMORY, own)
                self._slots |= {row.id: slot for row, slot in zip(own, slots, strict=True)}
                changed = {*slots, *table.put(Kind.PASSAGE, [row for row in passages if row.partition == name])}
                view.update(sorted(changed))
        self._rows |= {row.id: row for row in rows}

    def _passages(self, ids: Sequence[str]) -> Iterator[Row]:
        for batch in batches(ids, BATCH):
            last = None
            while rows := self._store.find(Kind.PASSAGE, In("ref", tuple(batch)), limit=BATCH, after=last):
                yield from rows
                last = rows[-1]

    # --- neighbours ---

    def _around(self, ids: Sequence[str], *, steps: int) -> list[str]:
        """Find the neighbours of memories; return the ids of the memories and of those up to two steps away."""
        for id_, around in self._source.around(self._conditions.readable, ids, steps=steps).items() if ids else ():
            for before, behind in pairwise([*reversed(around.before), id_, *around.behind]):
                self._before[behind], self._behind[before] = before, behind
        return self._near(ids)

    def _near(self, ids: Iterable[str]) -> list[str]:
        near = dict.fromkeys(ids)
        for side in (self._before, self._behind):
            step: Collection[str] = list(near)
            for _ in range(_NEAR):
                step = [side[id_] for id_ in step if id_ in side]
                near |= dict.fromkeys(step)
        return list(near)

    def _link(self) -> None:
        """Tell the views which of the memories that have been read are neighbours."""
        for name, (table, view) in zip(self._tables, self.views, strict=True):
            slots = {id_: slot for id_, slot in self._slots.items() if self._rows[id_].partition == name and view.readable[slot]}
            around = [[-1, -1, slot, -1, -1] for slot in range(len(table))]
            for id_, slot in slots.items():
                for column, side in enumerate((self._before, self._behind)):
                    first = side.get(id_, "")
                    around[slot][column] = slots.get(first, -1)
                    around[slot][OWN + 1 + column] = slots.get(side.get(first, ""), -1)
            view.set_around(np.array(around, np.int32).reshape(-1, OWN + 3))

    def _ids_at(self, slots: Iterable[Ints]) -> list[str]:
        """Return the ids of the memories in these slots, given for each partition."""
        return [id_ for (table, _), own in zip(self.views, slots, strict=True) for id_ in table.ids.at(own)]


class _PartialView(View):
    """A view of a table that has a part of the memories, and the names of all speakers."""

    def __init__(self, table: Table, reader: Reader, statuses: frozenset[str], now: float) -> None:
        super().__init__(table, reader, statuses, now)
        self._speakers = len(table.names.speakers)

    def has_speaker(self, code: int) -> bool:
        """Return whether a readable memory has this speaker."""
        return code < self._speakers or super().has_speaker(code)


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
    return Conditions(visible=in_scope, with_status=with_status, readable=readable, allowed=all_of(readable, query.where))


def _excluded(found: Statistics) -> dict[str, int]:
    """Return how many memories were excluded before scoring, by reason."""
    counts = {
        "status": found.visible - found.with_status,
        "expired": found.with_status - found.readable,
        "filter": found.readable - found.allowed,
    }
    return {reason: count for reason, count in counts.items() if count}
