"""The search index of a store: keywords, vectors and sessions of each partition, in memory, derived through the port alone.

Before each query it asks the store for changes, so it reflects every write of every process. Correctness never depends on its
files: they may be deleted at any time, and a damaged one is built again. numpy is loaded by the first query.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from memory_mesh.core.model import millis, partitions
from memory_mesh.core.ports import Store
from memory_mesh.core.search import Pool, Query
from memory_mesh.index import files

if TYPE_CHECKING:
    from memory_mesh.index.partition import Partition
    from memory_mesh.index.table import Table, View

MAX_PARTITIONS = 4096  # in memory; the least recently used one is dropped, and read again when it is needed


class LocalIndex:
    """The index of an embedded store."""

    def __init__(self, store: Store, *, language: str = "english") -> None:
        self._store, self._language = store, language
        self._lock = Lock()
        self._partitions: dict[str, Partition] = {}

    def candidates(self, query: Query, *, size: int) -> Pool:
        """Return about `size` candidates by keywords, as many by vectors, and neighbours of the best."""
        from memory_mesh.index.candidates import find_candidates

        with self._views(query) as views:
            return find_candidates(query, views, size=size)

    def speakers(self, query: Query) -> frozenset[str]:
        """Return the speakers of readable memories whose names share a word with the query."""
        with self._views(query) as views:
            return frozenset(name for _, view in views for name in view.speakers(query.tokens))

    def marks(self, partitions: Sequence[str]) -> tuple[str, ...]:
        """Return the current states of these partitions."""
        return tuple(self._store.changes(partition).mark for partition in partitions)

    def forget(self, partitions: Iterable[str]) -> None:
        """Delete the files of these partitions."""
        files.forget(self._store.index_folder, partitions)

    def close(self) -> None:
        """Write files for the next process, where they are worth it."""
        with self._lock:
            closing, self._partitions = self._partitions, {}
        for partition in closing.values():
            with partition.lock:
                partition.close()

    @contextmanager
    def _views(self, query: Query) -> Iterator[list[tuple["Table", "View"]]]:
        """Lock the partitions that the reader sees, bring them up to date, and yield what the reader sees of each."""
        at = float(millis(query.at))
        with self._lock:
            locked = [self._partition(name) for name in sorted(set(partitions(query.reader)))]
        with ExitStack() as locks:
            for partition in locked:  # always in the order of their names, so that two queries never wait for each other
                locks.enter_context(partition.lock)
            for partition in locked:
                partition.refresh()
            yield [(each.table, each.view(query.reader, query.statuses, at)) for each in locked if len(each.table)]

    def _partition(self, name: str) -> "Partition":
        from memory_mesh.index.partition import Partition

        partition = self._partitions.pop(name, None) or Partition(name, self._store, self._language)
        self._partitions[name] = partition  # at the end: a dict keeps the order of insertion
        if len(self._partitions) > MAX_PARTITIONS:
            del self._partitions[next(iter(self._partitions))]
        return partition
