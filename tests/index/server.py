"""A store that is searched in its engine, for tests: any store of ours, which finds every memory
that the reader sees."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from memory_mesh.core.model import (
    ANYTHING,
    In,
    Kind,
    Row,
    Vector,
    Where,
    equals,
)
from memory_mesh.core.ports import Store
from memory_mesh.core.search import Corpus, completed
from memory_mesh.core.search.candidates import (
    Conditions,
    Found,
    FoundRows,
    IndexedRows,
    SessionKey,
    SessionTotals,
    Statistics,
)
from memory_mesh.index import CandidateIndex
from memory_mesh.index.local import rows_of

MAX_ROWS = 500  # in one read


class BoundedStore:
    """Passes calls on to another store, and raises `AssertionError` if a read returns many rows.
    It counts rows."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self.rows = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]:
        assert len(ids) <= MAX_ROWS, f"{len(ids)} rows at once"
        found = self._inner.get(kind, ids)
        self.rows += len(found)
        return found

    def find(
        self,
        kind: Kind,
        where: Where = ANYTHING,
        *,
        limit: int | None = None,
        after: Row | None = None,
    ) -> list[Row]:
        found = self._inner.find(kind, where, limit=limit, after=after)
        assert len(found) <= MAX_ROWS, "an unbounded read"
        self.rows += len(found)
        return found


class ServerStore(BoundedStore):
    """The same with an engine that answers what a search needs."""

    @property
    def candidate_source(self) -> "PlainSource":
        return PlainSource(self._inner, self)


class PlainSource:
    """A `CandidateSource` that reads all rows, and finds every readable memory: what an engine
    answers, in plain Python."""

    def __init__(self, store: Store, reads: Any = None) -> None:
        self._store, self._reads = store, reads or store

    def search(
        self,
        conditions: Conditions,
        words: Mapping[str, float],
        names: Collection[str],
        vector: Vector | None,
        *,
        limit: int,
    ) -> Found:
        visible = self._store.find(Kind.MEMORY, conditions.visible)
        readable = [row for row in visible if conditions.readable.matches(row)]
        ids = tuple(row.id for row in readable)
        passages = self._store.find(Kind.PASSAGE, In("ref", ids)) if ids else []
        sessions: dict[object, list[Row]] = {}
        for row in readable:
            sessions.setdefault(SessionKey.of(row) or row.id, []).append(row)
        places = {
            row.id: place
            for key, rows in sessions.items()
            if isinstance(key, SessionKey)
            for place, row in enumerate(in_order(rows), start=1)
        }
        return Found(
            statistics=self.statistics(conditions, {*words, *names}, vector),
            rows={
                name: FoundRows(
                    IndexedRows.of(own),
                    IndexedRows.of([row for row in passages if row.partition == name]),
                    [places.get(row.id) for row in own],
                    [conditions.allowed.matches(row) for row in own],
                )
                for name in {row.partition for row in readable}
                for own in [[row for row in readable if row.partition == name]]
            },
            sessions={
                key: SessionTotals(sum(counts.values()), counts)
                for key, rows in sessions.items()
                if isinstance(key, SessionKey)
                for counts in [Counter(word for row in rows for word in keywords(row))]
            },
        )

    def statistics(
        self, conditions: Conditions, words: Collection[str], vector: Vector | None
    ) -> Statistics:
        visible = self._store.find(Kind.MEMORY, conditions.visible)
        readable = [row for row in visible if conditions.readable.matches(row)]
        allowed = [row for row in readable if conditions.allowed.matches(row)]
        sessions: dict[object, list[str]] = {}
        for row in readable:
            sessions.setdefault(SessionKey.of(row) or row.id, []).extend(keywords(row))
        memories = [keywords(row) for row in visible]
        return Statistics(
            visible=len(visible),
            with_status=sum(map(conditions.with_status.matches, visible)),
            readable=len(readable),
            allowed=len(allowed),
            with_vector=sum(1 for row in allowed if vector and self._has_vector(row, vector)),
            corpus=corpus(memories),
            counts=frequencies(memories, words),
            sessions=corpus(sessions.values()),
            session_counts=frequencies(sessions.values(), words),
        )

    def _has_vector(self, row: Row, query: Vector) -> bool:
        passages = self._store.find(Kind.PASSAGE, equals("ref", row.id))
        vectors = [row.vector, *(one.vector for one in passages if one.partition == row.partition)]
        return any(
            (one.model, one.dimension) == (query.model, query.dimension) for one in vectors if one
        )

    def count_words(self, where: Where, words: Collection[str]) -> Mapping[str, int]:
        return frequencies(map(keywords, self._store.find(Kind.MEMORY, where)), words)

    def speakers(self, where: Where) -> Collection[tuple[str, str]]:
        rows = self._store.find(Kind.MEMORY, where)
        return {
            (row.partition, speaker)
            for row in rows
            if isinstance(speaker := row.value("speaker"), str)
        }

    def index_rows(self, kind: Kind, partition: str) -> Iterator[IndexedRows]:
        return rows_of(self._reads, kind, partition)


def engine_index(store: Store) -> CandidateIndex:
    """Return the index of a store that is searched in its engine."""
    return CandidateIndex(store, PlainSource(store))


def keywords(row: Row) -> list[str]:
    return completed(row.keywords, str(row.value("content") or ""), language="english")


def corpus(documents: Collection[Sequence[str]]) -> Corpus:
    return Corpus(sum(1 for each in documents if each), sum(map(len, documents)))


def frequencies(documents: Any, words: Collection[str]) -> dict[str, int]:
    counts = Counter(word for each in documents for word in {*words}.intersection(each))
    return dict(counts)


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Return the memories of a session in its order."""
    names = [
        name for name in ("turn", "event_time") if all(row.value(name) is not None for row in rows)
    ][:1]
    return sorted(
        rows,
        key=lambda row: (*(row.value(name) for name in names), row.created_at, row.number, row.id),  # type: ignore[return-value,arg-type]
    )
