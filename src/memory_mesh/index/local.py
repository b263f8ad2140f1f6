"""The search index: keywords, vectors and sessions of each partition, in memory, derived from any store by its port alone.

It is right after every write of whatever process, for it asks the store before each answer what has moved. Correctness never
depends on its files: they may be deleted at any time, and whatever is odd about one, it is made anew.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Lock

from memory_mesh.core.model.scope import partitions
from memory_mesh.core.model.times import millis
from memory_mesh.core.ports import Store
from memory_mesh.core.search import Pool, Query
from memory_mesh.index import files as index_files
from memory_mesh.index.partition import Partition
from memory_mesh.index.pool import pool_of
from memory_mesh.index.table import Table
from memory_mesh.index.view import View

MOST = 4096  # partitions in memory; who was not asked for the longest time is read again when asked for


class StoreIndex:
    """The index of a store."""

    def __init__(self, store: Store, *, language: str = "english") -> None:
        self._store, self._language = store, language
        self._lock = Lock()
        self._partitions: dict[str, Partition] = {}

    def candidates(self, query: Query, *, size: int) -> Pool:
        """The candidates for a query: about `size` by keywords, as many by vectors, and neighbours of the best."""
        with self._seen(query) as seen:
            return pool_of(query, seen, size=size)

    def speakers(self, query: Query) -> frozenset[str]:
        """The speakers of readable memories whose names share a word with the query."""
        with self._seen(query) as seen:
            return frozenset(name for table, view in seen for name in view.speaking(table.called_by(query.tokens)))

    def marks(self, partitions: Sequence[str]) -> tuple[str, ...]:
        """The states that these partitions are in."""
        return tuple(self._store.changes(partition).mark for partition in partitions)

    def forget(self, partitions: Iterable[str]) -> None:
        """Remove what lies in files of these partitions."""
        index_files.forget(self._store.index_folder, partitions)

    def close(self) -> None:
        """Leave files for the next run, where they are worth it."""
        with self._lock:
            held, self._partitions = self._partitions, {}
        for partition in held.values():
            with partition.lock:
                partition.close()

    @contextmanager
    def _seen(self, asked: Query) -> Iterator[list[tuple[Table, View]]]:
        """The partitions that a reader sees, as they are now."""
        at = float(millis(asked.at))
        with self._held(partitions(asked.reader)) as held:
            for partition in held:
                partition.follow()
            yield [(each.table, each.view(asked.reader, asked.statuses, at)) for each in held if len(each.table)]

    @contextmanager
    def _held(self, names: Sequence[str]) -> Iterator[list[Partition]]:
        with self._lock:
            held = [self._partition(name) for name in sorted(set(names))]
        with ExitStack() as locks:
            for partition in held:  # always in the order of their names, so that two who ask never wait for each other
                locks.enter_context(partition.lock)
            yield held

    def _partition(self, name: str) -> Partition:
        held = self._partitions.pop(name, None) or Partition(name, self._store, self._language)
        self._partitions[name] = held  # a dict keeps the order in which it was filled
        if len(self._partitions) > MOST:
            del self._partitions[next(iter(self._partitions))]
        return held
