"""The SQLite store: one file, several processes, one transaction for each change.

WAL with synchronous=FULL: a change that `apply` acknowledged survives a power cut. Deleted bytes
stay in the files until the file is rewritten and its log truncated, for many deletions at once: by
`compact`, on closing, or by the next opening. There is no table of keywords: the index in memory
follows `changes`, and `matching` reads the memories themselves.

A fork must not inherit a SQLite connection. The child would inherit the count of locks that only
the parent holds; when the parent closes, it removes the log under the writes of the child, and they
are lost without an error. So every open store closes its connection before a fork, and both
processes connect again at the next use.

Reads leave the file as it is, and create none; `apply` creates it or upgrades its tables. See
`opening`.
"""

import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, repeat
from operator import attrgetter
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from memory_mesh.core.errors import Conflict, InvalidInput, StoreClosed, StoreReadOnly
from memory_mesh.core.model import ANYTHING, Hit, In, Key, Kind, Row, Vector, Where, all_of, batches
from memory_mesh.core.model.background import wait
from memory_mesh.core.ports import Applied, Changes, Progress, Step, no_step
from memory_mesh.core.search.lexical import best_cosines, keyword_scores
from memory_mesh.stores.base import check_unique, erases
from memory_mesh.stores.files import (
    check_permission,
    files_under,
    find_bytes,
    missing,
    remove_parts,
    whole_file,
)
from memory_mesh.stores.sqlite import queries, tables
from memory_mesh.stores.sqlite.lane import adopt, has_foreign_rows
from memory_mesh.stores.sqlite.opening import (
    LOGS,
    FileId,
    Opened,
    code_of,
    copy_file,
    descriptor_of,
    file_id,
    open_for_reading,
    open_for_writing,
    replaced,
    take_up,
    transaction,
    translated,
)
from memory_mesh.stores.sqlite.queries import (
    condition_on,
    documents_of,
    near,
    page,
    tally_of,
    with_ids,
)
from memory_mesh.system import release_memory

# Freeing bytes rewrites the file. Larger files are rewritten by `compact` only, so that opening and
# closing stay quick.
_MAX_REWRITTEN_ON_OPENING, _MAX_REWRITTEN_ON_CLOSING = 64 * 1024 * 1024, 512 * 1024 * 1024
# Seconds between attempts to write; the last one repeats.
_PAUSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
# Seconds during which reads do not look again whether the file was replaced; every write does.
_CHECKED_FOR = 0.1
# Seconds during which lists do not look for rows of Memory Lane; every search does, and every
# write.
_LOOKED_FOR = 1.0
# Moves of a partition; a smaller one is read from the store as fast as from the files of an index.
_INDEXED_FROM = 1_000
Part = TypeVar("Part")  # of an open file

_BATCH = 500  # ids in one query; SQLite accepts 32,766 parameters, older versions 999

DataVersion = tuple[sqlite3.Connection, int, int]


class SqliteStore:
    """Rows in one SQLite file."""

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        busy_seconds: float = 30.0,
        step: Step = no_step,
        url: str = "",
    ) -> None:
        self.url = url or f"sqlite:///{path}"
        self._path, self._read_only = path.absolute(), read_only
        self._busy_seconds, self._step = busy_seconds, step
        self._lock = RLock()
        self._closed = self._indexed = False
        self._checked_until = 0.0
        self._looked_until = 0.0
        # Connection and data version at which no row of Memory Lane waited.
        self._looked_at: tuple[object, ...] = ()
        # The data version and versions after our last write.
        self._written: tuple[Hashable, dict[str, int]] = (None, {})
        self._opened: Opened | None = None
        # The file that was opened first; another one at the path is an error.
        self._file: FileId | None = None
        with self._use(), _fork_lock:
            _open_stores.add(self)

    # --- the port ---

    @property
    def index_folder(self) -> Path | None:
        folder = self._index_path()
        return folder if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK) else None

    def apply(
        self,
        puts: Sequence[Row] = (),
        deletes: Sequence[Key] = (),
        *,
        seen: Mapping[str, int] | None = None,
    ) -> Applied:
        check_unique(puts, deletes)
        self.check_writable()
        with self._write_transaction() as (connection, before):
            with transaction(connection):
                self._step("store.begun")
                known = self._written[1] if self._written[0] == before else {}
                for partition, version in (seen or {}).items():
                    if (
                        known.get(partition) or tables.state_of(connection, partition)[0]
                    ) != version:
                        raise Conflict(f"partition {partition} has changed")
                change = queries.Writing(connection)
                for key in deletes:
                    change.delete(key)
                self._step("store.deleted")
                change.put(puts)
                change.finish()
                self._step("store.put")
                versions = tables.record_moves(connection, change.moved, seen)
                if erases(puts, deletes):
                    tables.mark_unfreed(connection)
                self._step("store.counted")
                after = (connection, connection.total_changes, before[2])
            self._check_file()
            self._written = after, versions
            self._step("store.committed")
            # Once. A search creates none, and keeps its index in memory where there is none.
            if not self._indexed and max(versions.values(), default=0) >= _INDEXED_FROM:
                self._indexed = True
                with suppress(OSError):
                    self._index_path().mkdir(mode=0o700)
            freed = not (deletes or any(row.replaces for row in puts))
            return Applied(freed, before, after, versions)

    def version(self, partition: str) -> int:
        with self._use() as connection:
            return tables.state_of(connection, partition)[0]

    def data_version(self) -> Hashable:
        with self._using() as opened:
            return self._take_up(opened)[1]

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]:
        if not ids:
            return {}
        query = with_ids(kind, ids)
        with self._using() as opened:
            rows = queries.rows_of(kind, opened.connection.execute(query.text, query.params))
            looked_at = self._looked_at
            if (
                kind is Kind.MEMORY
                and len(rows) < len({*ids})
                and self._take_up(opened)
                and self._looked_at != looked_at
            ):
                rows = queries.rows_of(kind, opened.connection.execute(query.text, query.params))
        found = {row.id: row for row in rows}
        return {id_: found[id_] for id_ in ids if id_ in found}

    def find(
        self,
        kind: Kind,
        where: Where = ANYTHING,
        *,
        limit: int | None = None,
        after: Row | None = None,
    ) -> list[Row]:
        query = page(kind, where, limit=limit, after=after)
        with self._listing() as connection:
            return queries.rows_of(kind, connection.execute(query.text, query.params))

    def count(self, kind: Kind, where: Where = ANYTHING) -> int:
        return int(self._select("count(*)", kind, where)[0])

    def ids(self, kind: Kind, where: Where = ANYTHING) -> list[str]:
        return self._select("id", kind, where)

    def tally(
        self,
        kind: Kind,
        columns: Sequence[str],
        where: Where = ANYTHING,
        *,
        length: int | None = None,
    ) -> dict[str | None, int]:
        query = tally_of(kind, columns, where, length)
        with self._listing() as connection:
            return dict(connection.execute(query.text, query.params).fetchall())

    def changes(self, partition: str, since: str | None = None) -> Changes:
        with self._use() as connection:
            return tables.changes_of(connection, partition, since)

    def nearest(
        self, kind: Kind, vector: Vector, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]:
        if kind is Kind.BLOCK:
            return []
        query = near(kind, vector, where)
        with self._use() as connection:
            rows = connection.execute(query.text, query.params).fetchall()
        return best_cosines(vector.data, rows, limit)

    def matching(
        self, tokens: Sequence[str], visible: Where, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]:
        with self._use() as connection, transaction(connection, "BEGIN"):
            documents = documents_of(visible)
            rows = connection.execute(documents.text, documents.params)
            scored = keyword_scores(((id_, json.loads(words)) for id_, words in rows), tokens)
            hits: list[Hit] = []
            # Most of the best pass the condition.
            for batch in batches(scored, min(_BATCH, 2 * limit + 1)):
                condition = condition_on(
                    Kind.MEMORY, all_of(In("id", tuple(id_ for id_, _ in batch)), where)
                )
                # Without the hint SQLite would scan all active memories of the user instead of
                # these few ids.
                query = (
                    "SELECT id FROM memories INDEXED BY sqlite_autoindex_memories_1 WHERE "
                    f"{condition.text}"
                )
                allowed = {row[0] for row in connection.execute(query, condition.params)}
                hits.extend(Hit(id_, score) for id_, score in batch if id_ in allowed)
                if len(hits) >= limit:
                    break
        return hits[:limit]

    def compact(self) -> bool:
        self.check_writable()
        with self._using() as opened:
            if opened.file is None:
                return True
        with self._use(writing=True) as connection:
            return self._free(connection, wait_seconds=self._busy_seconds)

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._free_pending(_MAX_REWRITTEN_ON_CLOSING)
                self._disconnect()

    def _index_path(self) -> Path:
        return self._path.with_name(f"{self._path.name}-index")

    # --- the file ---

    def damage(self) -> list[str]:
        """Return the faults that the integrity check of SQLite finds."""
        with self._using() as opened:
            file = opened.source or opened.connection
            faults = [str(row[0]) for row in file.execute("PRAGMA integrity_check(10)")]
        return [] if faults == ["ok"] else faults

    def has_deleted_bytes(self) -> bool:
        """Return whether bytes of deleted rows are still in the files."""
        with self._using() as opened:
            return opened.prepared and tables.unfreed(opened.connection) is not None

    def backup(self, target: Path, progress: Progress) -> int:
        """Copy the file while others read and write. The copy has the state of the moment at
        which it began."""
        with self._using() as opened:
            if opened.file is None:
                raise missing(self._path)
        try:
            remove_parts(target)
            with whole_file(target) as part:
                copy_file(
                    self._path,
                    part,
                    busy_seconds=self._busy_seconds,
                    progress=partial(progress, "backing up"),
                )
            return target.stat().st_size
        except sqlite3.Error as error:
            raise translated(self._path, error) from error
        except FileExistsError:
            raise InvalidInput(
                f"{target} exists", expected="a file that does not exist yet"
            ) from None
        except OSError as error:
            raise InvalidInput(
                f"{target} cannot be written: {error.strerror}",
                expected="a folder with enough space",
            ) from error

    def find_bytes(self, samples: Collection[bytes]) -> dict[bytes, str]:
        """Return the samples that are in the database, its log or the files of its index, each
        with the name of a file."""
        descriptor, found = descriptor_of(self._path) if samples else None, dict[bytes, str]()
        if descriptor is None:
            return found
        logs = [self._path.with_name(self._path.name + suffix) for suffix in LOGS]
        for file in (*logs, *(path for path, _ in files_under(self._index_path()))):
            with suppress(FileNotFoundError), file.open("rb") as opened:
                found |= dict.fromkeys(find_bytes(opened.fileno(), samples), file.name)
        return found | dict.fromkeys(find_bytes(descriptor, samples), self._path.name)

    def is_prepared(self) -> bool:
        """Return whether the file exists and has our tables of this version, so that nothing
        must be created or upgraded."""
        with self._using() as opened:
            return opened.prepared

    def require_file(self) -> None:
        """Raise `StoreMissing` if there is no file."""
        if self._file is None and file_id(self._path) is None:
            raise missing(self._path)

    def create_file(self) -> None:
        """Create the file if there is none and the store may be written to."""
        if not self._read_only and file_id(self._path) is None:
            self.prepare()

    def was_replaced(self) -> bool:
        """Return whether another file, or none, is now at the path of the file that was opened."""
        return self._file is not None and file_id(self._path) != self._file

    def prepare(self) -> None:
        """Create the file if it is missing, and upgrade its tables if they are older. Every
        write does that."""
        self.check_writable()
        with self._using(writing=True):
            pass

    def _current(self, *, writing: bool) -> Opened:
        """Return the open file. Open it first, or again if another process changed what it is."""
        if self._closed:
            raise StoreClosed(f"{self._path} is closed", remedy="open it again")
        opened = self._opened
        # The rest of it must read and write the same.
        if opened and opened.connection.in_transaction:
            return opened
        now = time.monotonic()
        if (
            opened
            and opened.writable
            and not (writing or opened.unlocked)
            and now < self._checked_until
        ):
            return opened
        self._checked_until = 0.0
        found = self._check_file()
        self._checked_until = now + _CHECKED_FOR
        if opened and (found != opened.file or opened.is_stale):
            self._disconnect()
            opened = None
        if opened is None:
            opened = self._adopt(
                open_for_reading(
                    self._path, read_only=self._read_only, busy_seconds=self._busy_seconds
                )
            )
        if writing and not opened.writable:
            self._disconnect()
            opened = self._adopt(open_for_writing(self._path, busy_seconds=self._busy_seconds))
        return opened

    def _take_up(self, opened: Opened) -> tuple[Opened, DataVersion]:
        """Take up the rows that Memory Lane has written since the last look. Return the open
        file and its data version."""
        version = _data_version(opened.connection)
        self._looked_until = time.monotonic() + _LOOKED_FOR
        if (
            not opened.writable
            or opened.connection.in_transaction
            or self._looked_at == version[::2]
        ):
            return opened, version
        if has_foreign_rows(opened.connection) and (
            self._read_only or not take_up(opened.connection)
        ):
            self._disconnect()  # to read a copy instead
            opened = self._current(writing=False)
        else:
            self._looked_at = version[::2]
        return opened, _data_version(opened.connection)

    def _adopt(self, opened: Opened) -> Opened:
        """Use a file that was opened, and free the bytes that its last user did not free."""
        self._opened, self._file = opened, opened.file
        self._free_pending(_MAX_REWRITTEN_ON_OPENING)
        return opened

    def _check_file(self) -> FileId | None:
        """Raise `StoreReplaced` if the file at the path is not the one that was opened: what is
        written there would be lost."""
        found = file_id(self._path)
        if self._file and found != self._file:
            raise replaced(self._path)
        return found

    def _disconnect(self) -> None:
        opened, self._opened = self._opened, None
        if opened:
            opened.close()

    def check_writable(self) -> None:
        """Raise `StoreReadOnly` if the store was opened for reading only, or has no permission
        to write."""
        if self._read_only:
            raise StoreReadOnly(
                f"{self._path} is opened read-only", remedy="open it without ?mode=ro to write"
            )
        check_permission(self._path)

    def _select(self, expression: str, kind: Kind, where: Where) -> list[Any]:
        condition = condition_on(kind, where)
        query = f"SELECT {expression} FROM {tables.table_of(kind).name} WHERE {condition.text}"
        with self._listing() as connection:
            return [row[0] for row in connection.execute(query, condition.params)]

    def _free_pending(self, max_size: int) -> None:
        """Free deleted bytes, unless the file is larger or others use it now: then a later user
        frees them."""
        opened = self._opened
        if opened is None or not opened.writable or self._read_only:
            return
        with suppress(sqlite3.Error, OSError):  # neither opening nor closing fails because of it
            if (
                tables.unfreed(opened.connection)
                and not self.was_replaced()
                and self._path.stat().st_size <= max_size
            ):
                self._free(opened.connection, wait_seconds=0)

    def _free(self, connection: sqlite3.Connection, *, wait_seconds: float) -> bool:
        """Remove all deleted bytes. Return False if that must be done later."""
        connection.execute(f"PRAGMA busy_timeout = {round(wait_seconds * 1000)}")
        try:
            pending = tables.unfreed(connection)
            # Pages that SQLite rebuilt keep stray copies of rows that moved away, even with
            # secure_delete. Only rewriting the file removes them, and truncating the log removes
            # the old pages.
            connection.execute("VACUUM")
            release_memory()  # it made the new file in memory, as no temporary file may have it
            self._step("store.rewritten")
            if not self._truncate_log(connection, wait_seconds):
                return False
            self._step("store.truncated")
            tables.mark_freed(connection, pending)
        except sqlite3.OperationalError:
            return False  # no space, or others use the file; the change itself is durable
        finally:
            connection.execute(f"PRAGMA busy_timeout = {round(self._busy_seconds * 1000)}")
        self._step("store.freed")
        return True

    def _truncate_log(self, connection: sqlite3.Connection, wait_seconds: float) -> bool:
        """Move all pages of the log into the file and empty it. SQLite waits for readers, but
        not for another checkpoint."""
        until = time.monotonic() + wait_seconds
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() >= until:
                return False
            time.sleep(0.01)
        return True

    def _use(self, *, writing: bool = False) -> "_Use[sqlite3.Connection]":
        return _Use(self, attrgetter("connection"), writing)

    def _using(self, *, writing: bool = False) -> "_Use[Opened]":
        return _Use(self, lambda opened: opened, writing)

    def _listing(self) -> "_Use[sqlite3.Connection]":
        """Use the file, after a look for rows of Memory Lane if the last one was some time ago."""

        def recent(opened: Opened) -> sqlite3.Connection:
            is_recent = time.monotonic() < self._looked_until
            return (opened if is_recent else self._take_up(opened)[0]).connection

        return _Use(self, recent, writing=False)

    @contextmanager
    def _write_transaction(self) -> Iterator[tuple[sqlite3.Connection, DataVersion]]:
        """Yield the connection with a transaction begun, once no other process writes, and the data
        version.

        If SQLite waited, it would block the connection for all threads that only read. So try,
        release the lock, and try again.
        """
        until = time.monotonic() + self._busy_seconds
        for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
            with self._use(writing=True) as connection:
                if self._begin(connection, last=time.monotonic() >= until):
                    version = _data_version(connection)
                    if self._looked_at == version[::2] or not has_foreign_rows(connection):
                        yield connection, version
                        return
                    # What the caller has read is outdated now, which is a conflict.
                    with transaction(connection):
                        adopt(connection, logged=True)
            wait(pause)

    def _begin(self, connection: sqlite3.Connection, *, last: bool) -> bool:
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if last or code_of(error) != sqlite3.SQLITE_BUSY:
                raise
            return False
        finally:
            connection.execute(f"PRAGMA busy_timeout = {round(self._busy_seconds * 1000)}")
        return True


class _Use(Generic[Part]):
    """Locks a store, opens its file if needed, and translates errors; a `contextmanager` takes
    three times as long."""

    __slots__ = ("_part", "_store", "_writing")

    def __init__(self, store: SqliteStore, part: Callable[[Opened], Part], writing: bool) -> None:  # noqa: FBT001
        self._store, self._part, self._writing = store, part, writing

    def __enter__(self) -> Part:
        self._store._lock.acquire()
        try:
            return self._part(self._store._current(writing=self._writing))
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._store._lock.release()
        if isinstance(error, sqlite3.Error | UnicodeDecodeError | json.JSONDecodeError):
            raise translated(self._store._path, error) from error


def _data_version(connection: sqlite3.Connection) -> DataVersion:
    # The pragma changes with the writes of other connections, the counter with those of this one.
    return (
        connection,
        connection.total_changes,
        connection.execute("PRAGMA data_version").fetchone()[0],
    )


# --- forks ---

_open_stores: WeakSet[SqliteStore] = WeakSet()
_blocked: list[SqliteStore] = []
_fork_lock = RLock()


def _before_fork() -> None:
    """Close the connections and block all use until `_after_fork`; the next call connects again."""
    _fork_lock.acquire()
    _blocked.extend(_open_stores)
    for store in _blocked:
        store._lock.acquire()
        store._disconnect()


def _after_fork() -> None:
    while _blocked:
        _blocked.pop()._lock.release()
    _fork_lock.release()


if sys.platform != "win32":  # Windows has no fork
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
