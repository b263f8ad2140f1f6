"""What `CandidateIndex` asks of a store, from the plain port: rows are read page by page and added up, never kept.

It reads every memory that a query concerns. Server stores answer in their engine instead; this is their definition, and what
tests compare them with.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from memory_mesh.core.candidate_ports import (
    Around,
    CandidateMemory,
    Conditions,
    SessionKey,
    SessionTotals,
    Statistics,
    Surroundings,
)
from memory_mesh.core.model import In, Kind, Or, Row, Vector, Where, all_of, batches, equals
from memory_mesh.core.ports import Store
from memory_mesh.core.search import Corpus, completed
from memory_mesh.core.search.lexical import is_question
from memory_mesh.index.space import QueryVector, Space
from memory_mesh.index.table import session_columns
from memory_mesh.index.view import session_order

PAGE = 1000  # rows read together
_SESSIONS = 100  # in one condition


class PagedSource:
    """A `CandidateSource` over any store."""

    def __init__(self, store: Store, *, language: str = "english") -> None:
        self._store, self._language = store, language

    def statistics(self, conditions: Conditions, words: Collection[str], model: tuple[str, int] | None) -> Statistics:
        """Return the counts of memories for a query of these words."""
        of_memories, of_sessions = _Documents(), dict[object, Counter[str]]()
        lengths, numbers = Counter[object](), Counter[str]()
        for rows in self._pages(Kind.MEMORY, conditions.visible):
            allowed = [row for row in rows if conditions.allowed.matches(row)]
            numbers["with_vector"] += len(self._with_vector(allowed, model))
            numbers["allowed"] += len(allowed)
            for row in rows:
                keywords = self._keywords(row)
                found = {word for word in words if word in keywords}
                of_memories.add(len(keywords), found)
                numbers["visible"] += 1
                numbers["with_status"] += conditions.with_status.matches(row)
                if conditions.readable.matches(row):
                    numbers["readable"] += 1
                    key = SessionKey.of(row) or row.id
                    lengths[key] += len(keywords)
                    of_sessions.setdefault(key, Counter()).update(found)
        together = _Documents()
        for session, length in lengths.items():
            together.add(length, of_sessions[session])
        return Statistics(
            **numbers, corpus=of_memories.corpus, counts=of_memories.counts, sessions=together.corpus,
            session_counts=together.counts,
        )  # fmt: skip

    def count_words(self, where: Where, words: Collection[str]) -> Mapping[str, int]:
        """Return how many of the memories that meet a condition contain each word."""
        counts, wanted = Counter[str](), set(words)
        for rows in self._pages(Kind.MEMORY, where):
            for row in rows:
                counts.update(wanted.intersection(self._keywords(row)))
        return counts

    def speakers(self, where: Where) -> Collection[tuple[str, str]]:
        """Return each partition and speaker of the memories that meet a condition."""
        rows = (row for rows in self._pages(Kind.MEMORY, where) for row in rows)
        return {(row.partition, speaker) for row in rows if isinstance(speaker := row.value("speaker"), str)}

    def nearest(self, where: Where, vector: Vector, *, count: int, limit: int) -> Sequence[str]:
        """Return the ids of the memories that meet a condition with the nearest vectors, however many there are."""
        return [hit.id for hit in self._store.nearest(Kind.MEMORY, vector, where, limit=limit)]

    def memories(
        self, conditions: Conditions, ids: Sequence[str], words: Collection[str], model: tuple[str, int] | None,
        *, with_vectors: Collection[str],
    ) -> Sequence[CandidateMemory]:  # fmt: skip
        """Return what scoring needs of these memories, newest first."""
        read = [row for batch in batches(ids, PAGE) for row in self._store.get(Kind.MEMORY, batch).values()]
        rows = sorted((row for row in read if conditions.readable.matches(row)), key=lambda row: row.age_key, reverse=True)
        own, passages, wanted = dict[str, bytes](), dict[str, list[bytes]](), {*with_vectors}
        for row, vector in self._with_passages([row for row in rows if row.id in wanted]) if model else ():
            if (vector.model, vector.dimension) == model and vector is row.vector:
                own[row.id] = vector.data
            elif (vector.model, vector.dimension) == model:
                passages.setdefault(row.id, []).append(vector.data)
        return [
            candidate_of(row, conditions, self._keywords(row), words, vector=own.get(row.id), passages=passages.get(row.id, []))
            for row in rows
        ]

    def around(
        self, where: Where, ids: Sequence[str], *, steps: int, words: Collection[str] = (), vector: Vector | None = None
    ) -> Surroundings:
        """Return up to `steps` memories on each side of each of these in its session, and the totals of these sessions."""
        read = (row for batch in batches(ids, PAGE) for row in self._store.get(Kind.MEMORY, batch).values())
        members: list[tuple[SessionKey, str, Sequence[int]]] = []
        totals: dict[SessionKey, _Totals] = {}
        for rows in self._members(where, {key for row in read if (key := SessionKey.of(row))}):
            for row in rows:
                if key := SessionKey.of(row):
                    members.append((key, row.id, session_columns(row)))
                    totals.setdefault(key, _Totals()).add(self._keywords(row), words)
            for row, cosine in self._cosines(rows, vector) if vector else ():
                if key := SessionKey.of(row):
                    totals[key].cosine = max(cosine, cosine if (best := totals[key].cosine) is None else best)
        return Surroundings(
            neighbours=_neighbours(members, ids, steps),
            sessions={key: SessionTotals(length=one.length, counts=one.counts, cosine=one.cosine) for key, one in totals.items()},
        )

    def _pages(self, kind: Kind, where: Where) -> Iterator[list[Row]]:
        last = None
        while rows := self._store.find(kind, where, limit=PAGE, after=last):
            yield rows
            last = rows[-1]

    def _members(self, where: Where, keys: Iterable[SessionKey]) -> Iterator[list[Row]]:
        """Yield the rows of sessions, page by page."""
        for batch in batches(sorted(keys), _SESSIONS):
            each = (all_of(equals("partition", key.partition), equals("session_id", key.session_id)) for key in batch)
            yield from self._pages(Kind.MEMORY, all_of(where, Or(tuple(each))))

    def _keywords(self, row: Row) -> list[str]:
        return completed(row.keywords, str(row.value("content") or ""), language=self._language)

    def _with_passages(self, rows: Sequence[Row]) -> Iterator[tuple[Row, Vector]]:
        """Yield each vector of these memories, with the memory."""
        owners = {row.id: row for row in rows}
        yield from ((row, row.vector) for row in rows if row.vector)
        for passages in self._pages(Kind.PASSAGE, In("ref", tuple(owners))):
            for passage in passages:
                owner = owners[str(passage.value("ref"))]
                if passage.vector and passage.partition == owner.partition:
                    yield owner, passage.vector

    def _with_vector(self, rows: Sequence[Row], model: tuple[str, int] | None) -> set[str]:
        vectors = self._with_passages(rows) if rows and model else ()
        return {row.id for row, vector in vectors if (vector.model, vector.dimension) == model}

    def _cosines(self, rows: Sequence[Row], query: Vector) -> Iterator[tuple[Row, float]]:
        model = query.model, query.dimension
        found = [(row, vector.data) for row, vector in self._with_passages(rows) if (vector.model, vector.dimension) == model]
        if found:
            space = Space(model)
            space.add({at: data for at, (_, data) in enumerate(found)})
            cosines = space.cosines(np.arange(len(found)), QueryVector.of(query.data)).tolist()
            yield from zip((row for row, _ in found), cosines, strict=True)


def candidate_of(
    row: Row, conditions: Conditions, keywords: Sequence[str], words: Collection[str],
    *, vector: bytes | None, passages: Sequence[bytes],
) -> CandidateMemory:  # fmt: skip
    """Return what scoring needs of a memory."""
    session_id, speaker, event_time = (
        value if isinstance(value := row.value(name), str) else None for name in ("session_id", "speaker", "event_time")
    )
    return CandidateMemory(
        id=row.id, partition=row.partition, session_id=session_id, speaker=speaker, event_time=event_time,
        created_at=row.created_at, is_question=is_question(str(row.value("content") or "")),
        is_allowed=conditions.allowed.matches(row),
        length=len(keywords), words=[word for word in keywords if word in words], vector=vector, passages=passages,
    )  # fmt: skip


@dataclass(slots=True)
class _Documents:
    corpus: Corpus = Corpus(0, 0)  # noqa: RUF009  (it is frozen)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, length: int, words: Iterable[str]) -> None:
        self.corpus += Corpus(int(length > 0), length)
        self.counts.update(set(words))


@dataclass(slots=True)
class _Totals:
    length: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    cosine: float | None = None

    def add(self, keywords: Sequence[str], words: Collection[str]) -> None:
        self.length += len(keywords)
        self.counts.update({word: keywords.count(word) for word in words})


def _neighbours(members: Sequence[tuple[SessionKey, str, Sequence[int]]], ids: Collection[str], steps: int) -> dict[str, Around]:
    """Return up to `steps` members on each side of each of these ids in its session."""
    wanted, found = set(ids), dict[str, Around]()
    for _, group in groupby(_ordered(members), key=lambda member: member[0]):
        session = [id_ for _, id_, _ in group]
        for at, id_ in enumerate(session):
            if id_ in wanted:
                found[id_] = Around(session[max(0, at - steps) : at][::-1], session[at + 1 : at + 1 + steps])
    return found


def _ordered(members: Sequence[tuple[SessionKey, str, Sequence[int]]]) -> list[tuple[SessionKey, str, Sequence[int]]]:
    """Return the members of sessions, session by session, each in its order."""
    if not members:
        return []
    codes: dict[SessionKey, int] = {}
    groups = np.array([codes.setdefault(key, len(codes)) for key, *_ in members])
    columns = np.array([values for *_, values in members], np.int64).T
    order = session_order(groups, list(columns), lambda places: [members[at][1] for at in places.tolist()])
    return [members[at] for at in order.tolist()]
