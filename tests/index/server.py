"""A store that is searched in its engine, for tests: any store of ours, of which a search may
read few rows at once."""

from collections.abc import Iterator, Sequence
from typing import Any

from memory_mesh.core.model import ANYTHING, Hit, Kind, Row, Vector, Where
from memory_mesh.core.ports import Store
from memory_mesh.core.search.candidates import CandidateMemory, IndexedRows
from memory_mesh.index.local import rows_of
from memory_mesh.index.paged import PagedSource

MAX_ROWS, MAX_HITS = 500, 2000  # in one read


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

    def nearest(
        self, kind: Kind, vector: Vector, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]:
        assert limit <= MAX_HITS, "an unbounded search"
        return self._inner.nearest(kind, vector, where, limit=limit)

    def matching(
        self, tokens: Sequence[str], visible: Where, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]:
        assert limit <= MAX_HITS, "an unbounded search"
        return self._inner.matching(tokens, visible, where, limit=limit)

    def ids(self, kind: Kind, where: Where = ANYTHING) -> list[str]:
        found = self._inner.ids(kind, where)
        assert len(found) <= MAX_ROWS, "an unbounded list of ids"
        return found


class ServerStore(BoundedStore):
    """The same with an engine that answers what a search needs."""

    @property
    def candidate_source(self) -> PagedSource:
        return _CountingSource(self, self._inner)


class _CountingSource(PagedSource):
    """Counts the memories that a search reads to score them."""

    def __init__(self, counter: Any, inner: Store) -> None:
        super().__init__(inner)
        self._counter = counter

    def index_rows(self, kind: Kind, partition: str) -> Iterator[IndexedRows]:
        return rows_of(self._counter, kind, partition)

    def memories(self, *given: Any, **options: Any) -> Sequence[CandidateMemory]:
        found = super().memories(*given, **options)
        self._counter.rows += len(found)
        return found
