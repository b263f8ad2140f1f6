"""The index of a store, made by the first search: it brings numpy, and a command pays for nothing that it does not use."""

from collections.abc import Iterable, Sequence
from threading import Lock

from memory_mesh.core.ports import Index, Store
from memory_mesh.core.search import Pool, Query
from memory_mesh.index import files as index_files


class LazyIndex:
    """An index that is not there until it is asked."""

    def __init__(self, store: Store, language: str) -> None:
        self._store, self._language = store, language
        self._made: Index | None = None
        self._lock = Lock()

    def candidates(self, query: Query, *, size: int) -> Pool:
        return self._index().candidates(query, size=size)

    def speakers(self, query: Query) -> frozenset[str]:
        return self._index().speakers(query)

    def marks(self, partitions: Sequence[str]) -> tuple[str, ...]:
        return tuple(self._store.changes(partition).mark for partition in partitions)

    def forget(self, partitions: Iterable[str]) -> None:
        index_files.forget(self._store.index_folder, partitions)

    def close(self) -> None:
        if self._made:
            self._made.close()

    def _index(self) -> Index:
        with self._lock:
            if self._made is None:
                from memory_mesh.index.local import StoreIndex

                self._made = StoreIndex(self._store, language=self._language)
            return self._made
