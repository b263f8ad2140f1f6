"""The index of a store that is searched in its own engine.

Candidates come from there, and nothing is kept but marks of states and the names of speakers. A
query reads the rows of its candidates and of their neighbours, never a partition. The signals are
computed by the same code as those of `LocalIndex`. numpy is loaded by the first query.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence
from threading import Lock
from typing import TYPE_CHECKING

from memory_mesh.core.model import (
    Compare,
    In,
    Key,
    Kind,
    Reader,
    Row,
    Where,
    all_of,
    iso,
    millis,
    not_expired,
    partitions,
    visible_to,
)
from memory_mesh.core.ports import Store
from memory_mesh.core.search import Pool, Query, tokens
from memory_mesh.core.search.mentions import closeness
from memory_mesh.core.search.query import TTL_MS
from memory_mesh.system import fork_safe

if TYPE_CHECKING:
    from memory_mesh.core.search.candidates import CandidateSource
    from memory_mesh.index.table import Scope

MAX_PARTITIONS = 4096  # whose marks are kept
# Between two queries, whose scopes are looked up; after more, every reader gets a new mark.
MAX_CHANGES = 500
_MAX_SCOPES = 1000  # of a partition
_MAX_READERS = 256  # whose speakers are kept
_MAX_NAMES = 16  # of a query that are compared with those of all speakers


class CandidateIndex:
    """The index of a server store."""

    def __init__(
        self, store: Store, source: "CandidateSource", *, language: str = "english"
    ) -> None:
        self.store, self.source, self.language = store, source, language
        self._lock = fork_safe(Lock())
        self._partitions: dict[str, _PartitionMarks] = {}
        # By reader and statuses: the mark of the state, and the speakers.
        self._speakers: dict[
            tuple[Reader, tuple[str, ...]], tuple[Hashable, Collection[tuple[str, str]]]
        ] = {}

    def snapshot(self, reader: Reader, data_version: Hashable | None = None) -> "CandidateSnapshot":
        """Note the state of the partitions of a reader. The caller may know the data version of the
        store."""
        data_version = data_version or self.store.data_version()
        with self._lock:
            marks = tuple(
                self._partition(name).mark(reader, data_version)
                for name in sorted(partitions(reader))
            )
        return CandidateSnapshot(self, data_version, marks)

    def speakers(self, query: Query, mark: Hashable) -> Collection[tuple[str, str]]:
        """Return each partition and speaker of the memories that the reader of a query can see,
        with its statuses. The engine is asked again after each change of these."""
        key = query.reader, tuple(query.statuses)
        known = self._speakers.get(key)
        if known is None or known[0] != mark:
            where = all_of(visible_to(query.reader), In("status", key[1]))
            known = mark, self.source.speakers(where)
            if len(self._speakers) >= _MAX_READERS:
                self._speakers.clear()
            self._speakers[key] = known
        return known[1]

    def forget(self, partitions: Iterable[str]) -> None:
        """Do nothing: there are no files."""

    def close(self) -> None:
        """Forget all marks."""
        with self._lock:
            self._clear()

    def reset_after_fork(self) -> None:
        """Forget all marks: a thread of the parent may have been changing them."""
        self._clear()

    def _clear(self) -> None:
        self._partitions.clear()
        self._speakers.clear()

    def _partition(self, name: str) -> "_PartitionMarks":
        marks = self._partitions.pop(name, None) or _PartitionMarks(name, self.store)
        self._partitions[name] = marks  # at the end: a dict keeps the order of insertion
        if len(self._partitions) > MAX_PARTITIONS:
            del self._partitions[next(iter(self._partitions))]
        return marks


class CandidateSnapshot:
    """What one reader sees, for one search. Each query of it reads the current state."""

    def __init__(self, index: CandidateIndex, data_version: Hashable, mark: Hashable) -> None:
        self._index, self.data_version, self.mark = index, data_version, mark

    def candidates(self, query: Query, *, size: int) -> Pool:
        """Return the best memories by keywords and by vectors, and neighbours of the very best."""
        from memory_mesh.index.pool import find_pool

        index = self._index
        return find_pool(
            query,
            index.source,
            index.speakers(query, self.mark),
            size=size,
            language=index.language,
        )

    def next_valid(self, query: Query) -> int | None:
        """Return when the next memory that the reader can see becomes valid, if that is within
        the life of a cached answer."""
        soon = Compare("valid_from", "<=", iso(millis(query.at) + TTL_MS))
        rows = self._index.store.find(
            Kind.MEMORY,
            all_of(visible_to(query.reader), Compare("valid_from", ">", query.at), soon),
        )
        return min((millis(str(row.value("valid_from"))) for row in rows), default=None)

    def speakers(self, query: Query) -> frozenset[str]:
        """Return the speakers of readable memories that the query names, and the tokens that it
        names them by. Of a name that is close to a speaker's, the engine is asked whether it is a
        word of some memory."""
        index, language = self._index, self._index.language
        speakers = {name for _, name in index.speakers(query, self.mark)}
        words = {name: {*tokens(name, language=language)} for name in speakers}
        named = {name for name, own in words.items() if not own.isdisjoint(query.tokens)}
        close: dict[str, set[str]] = {}
        for name in sorted(query.names.difference(*words.values()))[:_MAX_NAMES]:
            for speaker, own in words.items():
                if any(closeness(name, word, language=language) for word in own):
                    close.setdefault(name, set()).add(speaker)
        counts = index.source.count_words(_readable(query), close) if close else {}
        for name, others in close.items():
            if not counts.get(name):
                named |= {name, *others}
        return frozenset(named)


def _readable(query: Query) -> Where:
    return all_of(
        visible_to(query.reader), In("status", tuple(query.statuses)), not_expired(query.at)
    )


class _PartitionMarks:
    """When the memories of a partition last changed, by scope.

    The scope of a row that is gone, or that was changed, is not known any more. So such a change
    gives every reader of the partition a new mark; a new memory gives one to the readers who see
    it.
    """

    def __init__(self, name: str, store: Store) -> None:
        self._name, self._store = name, store
        self._data_version: Hashable = None
        self._mark: str | None = None
        self._start: str | None = None  # the mark of the last change that concerns every reader
        self._changed: dict[Scope, str] = {}  # by scope: the mark of its last change since then

    def mark(self, reader: Reader, data_version: Hashable) -> Hashable:
        """Return a value that changes with the memories of the partition that a reader can see."""
        if data_version != self._data_version:
            self._refresh()
            self._data_version = data_version
        return self._start, *(
            (scope, mark) for scope, mark in self._changed.items() if scope.visible_to(reader)
        )

    def _refresh(self) -> None:
        changes = self._store.changes(self._name, self._mark)
        if changes.mark == self._mark:
            return
        self._mark = None  # an error below must not hide the changes
        scopes = (
            None if changes.keys is None else self._scopes_of(list(dict.fromkeys(changes.keys)))
        )
        if scopes is None or len(self._changed) + len(scopes) > _MAX_SCOPES:
            self._start, scopes = changes.mark, set()
            self._changed.clear()
        for scope in scopes:
            self._changed.pop(scope, None)
            self._changed[scope] = changes.mark
        self._mark = changes.mark

    def _scopes_of(self, keys: Sequence[Key]) -> "set[Scope] | None":
        """Return the scopes of new rows; None if others are among them, or they are too many."""
        from memory_mesh.index.table import Scope

        rows: list[Row] = []
        for kind in (Kind.MEMORY, Kind.PASSAGE):
            ids = [key.id for key in keys if key.kind is kind]
            if len(ids) > MAX_CHANGES:
                return None
            found = self._store.get(kind, ids) if ids else {}
            if len(found) < len(ids):
                return None
            rows += found.values()
        are_new = all(row.revision == 1 and row.partition == self._name for row in rows)
        return {Scope.of(row) for row in rows} if are_new else None
