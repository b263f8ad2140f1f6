"""The SQLite store: one file, several processes, every change one transaction.

WAL with synchronous=FULL: what `apply` acknowledged survives a power cut. `secure_delete`, a rewrite of the file and a cut of
its log after each deletion: what was erased is no longer in the files. There is no table of keywords: an index in memory
follows `changes`, and `matching` reads the memories themselves. It is over 300 lines because the port and the care of the one
connection belong together; rows are in `sqlite_rows`, queries in `sqlite_query`, tables in `sqlite_schema`.
"""

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from pathlib import Path
from threading import RLock

from memory_mesh.core.errors import Conflict, StoreClosed, StoreReadOnly, StoreUnavailable
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.rows import Hit, Key, Row, Vector, batches
from memory_mesh.core.model.where import ANYTHING, Where, all_of
from memory_mesh.core.model.where import In as OneOf
from memory_mesh.core.ports import Applied, Changes, Step, no_step
from memory_mesh.stores.keywords import scored
from memory_mesh.stores.sql import exactly_like
from memory_mesh.stores.sqlite.changes import changes_of, version_of
from memory_mesh.stores.sqlite.errors import code_of, trouble
from memory_mesh.stores.sqlite.forks import watch
from memory_mesh.stores.sqlite.query import condition_on, near, page
from memory_mesh.stores.sqlite.rows import Writing, documents, rows_of
from memory_mesh.stores.sqlite.schema import (
    check_version,
    mark_freed,
    mark_unfreed,
    prepare,
    table_of,
    take_up,
    unfreed,
    untaken,
)
from memory_mesh.stores.vectors import cosines, ranked
from memory_mesh.stores.writes import once_each

_SWITCHES = 100  # each lost to another process that opened the file in the same moment
# Freeing bytes rewrites the file. Up to this size that takes a moment and is part of the deletion; beyond, it is `compact`'s.
_QUICKLY_REWRITTEN = 64 * 1024 * 1024
_PAUSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05)  # seconds between two attempts to write; the last again and again
_BATCH = 500  # ids in one query; SQLite takes 32,766 parameters, older ones 999


class SqliteStore:
    """Rows in one file."""

    def __init__(
        self, path: Path, *, read_only: bool = False, busy_seconds: float = 30.0, step: Step = no_step, url: str = ""
    ) -> None:
        self.url = url or f"sqlite:///{path}"
        self._path, self._read_only, self._busy_seconds, self._step = path, read_only, busy_seconds, step
        self._lock = RLock()
        self._closed = False
        self._connection: sqlite3.Connection | None = self._connect()
        watch(self)

    # --- the port ---

    @property
    def index_folder(self) -> Path | None:
        folder = self._path.absolute().with_name(f"{self._path.name}-index")
        place = folder if self._read_only or folder.exists() else folder.parent
        return folder if place.is_dir() and os.access(place, os.W_OK | os.X_OK) else None

    def apply(self, puts: Sequence[Row] = (), deletes: Sequence[Key] = (), *, seen: Mapping[str, int] | None = None) -> Applied:
        once_each(puts, deletes)
        if self._read_only:
            raise StoreReadOnly(f"{self._path} was opened for reading only")
        with self._turn() as connection:
            with self._begun(connection):
                self._step("store.begun")
                self._check(connection, seen or {})
                change = Writing(connection)
                for key in deletes:
                    change.delete(key)
                self._step("store.deleted")
                for row in puts:
                    change.put(row)
                self._step("store.put")
                change.log()
                replaced = any(row.replaces and row.kind is Kind.BLOCK for row in puts)
                if deletes or replaced:
                    mark_unfreed(connection)
                self._step("store.counted")
            self._step("store.committed")
            if deletes or replaced:
                return Applied(bytes_freed=self._tidied(connection))
            return Applied(bytes_freed=not any(row.replaces for row in puts))

    def version(self, partition: str) -> int:
        with self._use() as connection:
            return version_of(connection, partition)

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]:
        if len(ids) <= _BATCH:  # one query is of one moment anyway
            return {row.id: row for row in self.find(kind, OneOf("id", tuple(ids)))} if ids else {}
        with self._use() as connection, self._snapshot(connection):
            return {row.id: row for batch in batches(ids, _BATCH) for row in self.find(kind, OneOf("id", tuple(batch)))}

    def find(self, kind: Kind, where: Where = ANYTHING, *, limit: int | None = None, after: Row | None = None) -> list[Row]:
        query = page(kind, where, limit=limit, after=after)
        with self._use() as connection:
            return rows_of(kind, connection.execute(query.text, query.params))

    def count(self, kind: Kind, where: Where = ANYTHING) -> int:
        condition = condition_on(kind, where)
        with self._use() as connection:
            query = f"SELECT count(*) FROM {table_of(kind).name} WHERE {condition.text}"
            return int(connection.execute(query, condition.params).fetchone()[0])

    def ids(self, kind: Kind, where: Where = ANYTHING) -> list[str]:
        condition = condition_on(kind, where)
        with self._use() as connection:
            query = f"SELECT id FROM {table_of(kind).name} WHERE {condition.text}"
            return [row[0] for row in connection.execute(query, condition.params)]

    def changes(self, partition: str, since: str | None = None) -> Changes:
        with self._use() as connection:
            return changes_of(connection, partition, since)

    def nearest(self, kind: Kind, vector: Vector, where: Where = ANYTHING, *, limit: int) -> list[Hit]:
        if kind is Kind.BLOCK:
            return []
        query = near(kind, vector, where)
        with self._use() as connection:
            rows = connection.execute(query.text, query.params).fetchall()
        return ranked(cosines(vector.data, rows), limit)

    def matching(self, tokens: Sequence[str], partitions: Sequence[str], where: Where = ANYTHING, *, limit: int) -> list[Hit]:
        with self._use() as connection, self._snapshot(connection):
            every = scored(documents(connection, partitions), tokens)
            found: list[Hit] = []
            for batch in batches(every, min(_BATCH, 2 * limit + 1)):  # the best of them nearly always pass
                condition = condition_on(Kind.MEMORY, all_of(OneOf("id", tuple(id_ for id_, _ in batch)), where))
                # Left to itself, SQLite would walk through all active memories of the user instead of these few ids.
                query = f"SELECT id FROM memories INDEXED BY sqlite_autoindex_memories_1 WHERE {condition.text}"
                rows = connection.execute(query, condition.params)
                allowed = {row[0] for row in rows}
                found.extend(Hit(id_, score) for id_, score in batch if id_ in allowed)
                if len(found) >= limit:
                    break
        return found[:limit]

    def compact(self) -> bool:
        with self._use() as connection:
            if self._read_only:
                raise StoreReadOnly(f"{self._path} was opened for reading only")
            return self._free(connection)

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._disconnect()

    # --- the file ---

    def damage(self) -> list[str]:
        """What SQLite's own check finds wrong; empty for a sound file."""
        with self._use() as connection:
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(10)")]
        return [] if found == ["ok"] else found

    def untidy(self) -> bool:
        """Whether bytes of deleted rows are still in the files."""
        with self._use() as connection:
            return unfreed(connection)

    def before_fork(self) -> None:
        """Hold still, unconnected, until `after_fork`; `forks` says why."""
        self._lock.acquire()
        self._disconnect()

    def after_fork(self) -> None:
        """Go on; the next use connects again, on either side."""
        self._lock.release()

    def _connect(self) -> sqlite3.Connection:
        with self._translated():
            if not self._read_only:
                self._make_private()
            mode = "ro" if self._read_only else "rwc"
            uri = f"{self._path.absolute().as_uri()}?mode={mode}"
            connection = sqlite3.connect(uri, uri=True, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            return connection

    def _disconnect(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    def _make_private(self) -> None:
        """A new file is its owner's alone: memories are nobody else's business. SQLite's own files follow it."""
        with suppress(OSError):  # what is wrong with the folder, opening the file will say
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL, 0o600))

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # Text is compared as `Where` says; deleted bytes are overwritten; nothing of ours goes to temporary files.
        for pragma in ("case_sensitive_like = ON", "secure_delete = ON", "temp_store = MEMORY", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}")
        connection.create_function("exactly_like", 2, exactly_like, deterministic=True)
        ready = check_version(connection)
        if self._read_only:
            if not ready:
                raise StoreUnavailable(f"{self._path} is not prepared", remedy="open it once for writing")
            return
        self._log_ahead(connection)
        if not ready:
            with self._transaction(connection):
                prepare(connection)
        elif untaken(connection):
            with self._transaction(connection):
                take_up(connection)
        if unfreed(connection) and self._is_small():
            self._free(connection)

    def _log_ahead(self, connection: sqlite3.Connection) -> None:
        """Switch to WAL. SQLite waits for no lock here, so we wait for one that it does wait for, and try again."""
        for last in (*[False] * _SWITCHES, True):
            try:
                if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                    connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if last or code_of(error) != sqlite3.SQLITE_BUSY:
                    raise
                connection.execute("BEGIN EXCLUSIVE")
                connection.execute("COMMIT")
            else:
                return

    def _check(self, connection: sqlite3.Connection, seen: Mapping[str, int]) -> None:
        for partition, version in seen.items():
            if version_of(connection, partition) != version:
                raise Conflict(f"partition {partition} has moved on")

    def _is_small(self) -> bool:
        return self._path.stat().st_size <= _QUICKLY_REWRITTEN

    def _tidied(self, connection: sqlite3.Connection) -> bool:
        """What a deletion frees by itself: all of it in a small file; in a large one the log, and `compact` frees the rest."""
        if self._is_small():
            return self._free(connection)
        with suppress(sqlite3.OperationalError):  # the change itself is durable
            self._cut_log(connection)
        return False

    def _free(self, connection: sqlite3.Connection) -> bool:
        """Leave no byte of what was deleted; False if that has to wait for the next deletion or opening."""
        try:
            # A page that SQLite rebuilt keeps stray copies of rows that moved away, secure_delete or not. Only a rewrite of
            # the file drops them, and cutting the log drops the pages that were rewritten.
            connection.execute("VACUUM")
            if not self._cut_log(connection):
                return False
            mark_freed(connection)
        except sqlite3.OperationalError:
            return False  # no room or no quiet moment to tidy up: the change itself is durable
        self._step("store.freed")
        return True

    def _cut_log(self, connection: sqlite3.Connection) -> bool:
        """Bring all pages of the log into the file and empty it. SQLite waits for readers, but not for another's checkpoint."""
        until = time.monotonic() + self._busy_seconds
        while connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True

    @contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._translated():
            if self._closed:
                raise StoreClosed(f"{self._path} is closed", remedy="open it again")
            self._connection = self._connection or self._connect()
            yield self._connection

    @contextmanager
    def _turn(self) -> Iterator[sqlite3.Connection]:
        """The connection with a transaction begun, once no other process writes. SQLite would wait with the connection in its
        hands, and every thread of ours that only wants to read would wait too; so we ask, let go, and ask again."""
        until = time.monotonic() + self._busy_seconds
        for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
            with self._use() as connection:
                if self._begins(connection, last=time.monotonic() >= until):
                    yield connection
                    return
            time.sleep(pause)

    def _begins(self, connection: sqlite3.Connection, *, last: bool) -> bool:
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

    @contextmanager
    def _transaction(self, connection: sqlite3.Connection) -> Iterator[None]:
        connection.execute("BEGIN IMMEDIATE")
        with self._begun(connection):
            yield

    @contextmanager
    def _begun(self, connection: sqlite3.Connection) -> Iterator[None]:
        """A transaction that has begun: all of it, or nothing."""
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _snapshot(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Several reads of one moment."""
        connection.execute("BEGIN")
        try:
            yield
        finally:
            if connection.in_transaction:  # some errors end it, and are to be told themselves
                connection.execute("COMMIT")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise trouble(self._path, error) from error
