"""Open the file of a SQLite store, for reading or for writing.

A read neither creates nor upgrades it: `open_for_reading`; a write does: `open_for_writing`. A file
that is missing, empty, of an older version, or of Memory Lane is read from a copy in memory that
has our tables. So all queries are the same, and the file stays as it is until the first write.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from stat import S_ISREG

from memory_mesh.core.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreReadOnly,
    StoreReplaced,
    StoreUnavailable,
    shown,
)
from memory_mesh.core.model.background import check_cancelled
from memory_mesh.stores import files
from memory_mesh.stores.files import create_file, missing, stat_of
from memory_mesh.stores.sqlite import lane, tables
from memory_mesh.stores.sqlite.queries import exactly_like

# A row with its vector is longer than such a page and continues on others, which it fills. Two rows
# do not fit on a page of 4,096 bytes, the default, so that half of the file would be empty. A file
# keeps the size with which it was created.
_PAGE_SIZE = 1024
_MAX_LOG = 4 * 1024 * 1024  # bytes after which the pages of the log are moved into the file
_WAL_ATTEMPTS = 100  # each may fail because another process opens the file at the same time
_COPIED_AT_ONCE = 1000  # pages
LOGS = ("-wal", "-journal")  # their pages belong to the database

_CHECK = "check the path and its permissions"
_OURS, _ANOTHER = (
    "a memory-mesh store or a file of Memory Lane",
    "name another file; nothing was changed",
)

FileId = tuple[int, int]  # device and inode


class Contents(Enum):
    """Whose tables a file has."""

    NONE = auto()
    OURS = auto()
    LANE = auto()  # Memory Lane's own table, without ours


@dataclass(frozen=True, slots=True)
class Opened:
    """A connection to the contents of a file."""

    connection: sqlite3.Connection
    file: FileId | None = None  # None: there is no file
    prepared: bool = False  # the file has our tables of this version
    source: sqlite3.Connection | None = None  # the file, if `connection` is to a copy in memory
    source_version: int = 0
    # Path, time and size of a file that is read without locks.
    unlocked: tuple[Path, int, int] | None = None

    @property
    def writable(self) -> bool:
        """Whether `connection` is to the file itself, and the file needs no upgrade."""
        return self.prepared and self.source is None

    @property
    def is_stale(self) -> bool:
        """Whether another process has changed the file since this connection read it."""
        if self.unlocked:
            return has_log(self.unlocked[0]) or _state(self.unlocked[0]) != self.unlocked
        return self.source is not None and _data_version(self.source) != self.source_version

    def close(self) -> None:
        self.connection.close()
        if self.source:
            self.source.close()


def file_id(path: Path) -> FileId | None:
    """Return the identity of the file at a path, or None if there is none. Raise `StoreForeign`
    for a pipe or a device."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreUnavailable(
            f"{path} cannot be opened: {error.strerror}", remedy=_CHECK
        ) from error
    if not S_ISREG(found.st_mode):  # SQLite takes /dev/zero for an empty database
        raise StoreForeign(f"{path} is not a regular file", expected=_OURS, remedy=_ANOTHER)
    return found.st_dev, found.st_ino


def has_log(path: Path) -> bool:
    """Return whether a part of the database is in a log beside its file."""
    logs = (stat_of(path.with_name(path.name + suffix)) for suffix in LOGS)
    return any(log is not None and log.st_size > 0 for log in logs)


def open_for_reading(path: Path, *, read_only: bool, busy_seconds: float) -> Opened:
    """Open a file without changing what it says. One without our tables of this version is read
    from a copy in memory."""
    file = file_id(path)
    if file is None:
        if read_only:
            raise missing(path)
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        _configure(connection)
        with transaction(connection):
            tables.prepare(connection)
        return Opened(connection)
    state = _state(path)
    connection, locked = _connect_as_it_is(path, read_only=read_only, busy_seconds=busy_seconds)
    with _closed_on_error(connection):
        _check_same(path, file)
        prepared = contents_of(connection, path) is Contents.OURS and tables.check_version(
            connection
        )
        unlocked = None if locked else state
        if prepared and (
            not lane.has_foreign_rows(connection)
            or (locked and not read_only and take_up(connection))
        ):
            return Opened(connection, file, prepared=True, unlocked=unlocked)
        copy, version = _copied(connection)
        return Opened(copy, file, prepared, connection, version, unlocked)


def open_for_writing(path: Path, *, busy_seconds: float) -> Opened:
    """Open a file. Create it if it is missing, and upgrade its tables if they are of an older
    version."""
    try:
        create_file(path)
    except OSError as error:
        raise StoreUnavailable(
            f"{path} cannot be created: {error.strerror}", remedy=_CHECK
        ) from error
    file = file_id(path)
    connection = _connect(path, "mode=rw", busy_seconds)
    with _closed_on_error(connection):
        _check_same(path, file)
        contents_of(connection, path)  # refuse a file of another program before anything is changed
        tables.check_version(connection)
        connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")  # of a file without tables
        _switch_to_wal(connection)
        with transaction(connection):
            contents_of(connection, path)
            _upgrade(connection)
        return Opened(connection, file, prepared=True)


def take_up(connection: sqlite3.Connection) -> bool:
    """Take up the rows that Memory Lane has written since the last time. Return False if another
    process writes now."""
    (timeout,) = connection.execute("PRAGMA busy_timeout").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        with transaction(connection):
            lane.adopt(connection, logged=True)
    except sqlite3.OperationalError as error:
        if code_of(error) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY):
            raise
        return False
    finally:
        connection.execute(f"PRAGMA busy_timeout = {timeout}")
    return True


def contents_of(connection: sqlite3.Connection, path: Path) -> Contents:
    """Return whose tables a file has, or raise `StoreForeign` if they belong to another program.

    Raise `StoreCorrupt` for a trigger of another program: it could drop the audit blocks of a
    write, which would still succeed.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    found = dict(connection.execute("SELECT name, type FROM sqlite_master"))
    if application in (0, tables.APPLICATION_ID):
        if not found:
            return Contents.NONE
        ours = found.get("mesh_meta") == "table" and tables.schema_of(connection) is not None
        if ours or (
            found.get("memories") == "table"
            and tables.columns_of(connection, "memories") >= lane.COLUMNS
        ):
            _check_triggers(connection, path)
            return Contents.OURS if ours else Contents.LANE
    what = (
        f"application id {application:#x}" if application else f"tables such as {shown(min(found))}"
    )
    raise StoreForeign(
        f"{path} is a database of another program, with {what}",
        expected=_OURS,
        remedy=_ANOTHER,
    )


def _check_triggers(connection: sqlite3.Connection, path: Path) -> None:
    ours = ", ".join("?" * len(tables.TRIGGERS))
    query = (
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND (sql IS NULL OR sql NOT "
        f"IN ({ours}))"
    )
    if found := connection.execute(query, tables.TRIGGERS).fetchone():
        what = f"{path} has the trigger {shown(found[0])}, which memory-mesh did not create"
        raise StoreCorrupt(
            what,
            remedy="restore a backup, or drop the trigger with sqlite3 and run memory-mesh "
            "audit verify",
        )


def copy_file(
    path: Path, target: Path, *, busy_seconds: float, progress: Callable[[int, int], None]
) -> None:
    """Copy the database to an empty file. Its own connection leaves that of the store to other
    threads."""

    def copied(_: int, left: int, total: int) -> None:
        check_cancelled()
        progress(total - left, total)

    source, _ = _connect_as_it_is(path, read_only=True, busy_seconds=busy_seconds)
    with (
        closing(source),
        closing(sqlite3.connect(target, isolation_level=None)) as copy,
        transaction(source, "BEGIN"),
    ):
        # The transaction keeps the state, so that a write of another connection does not make the
        # copy start again.
        source.execute("SELECT 1 FROM sqlite_master").fetchone()
        copy.execute("PRAGMA journal_mode = OFF")  # half a copy is thrown away
        copy.execute("PRAGMA synchronous = OFF")  # the caller makes it durable
        source.backup(copy, pages=_COPIED_AT_ONCE, progress=copied)


_descriptors: dict[FileId, int] = {}


def descriptor_of(path: Path) -> int | None:
    """Return a descriptor of the file for reading its bytes; None without a file. It stays open,
    and is used again.

    When a process closes any descriptor of a file, POSIX drops all its locks on the file, those of
    SQLite too.
    """
    if (file := file_id(path)) is None:
        return None
    if file not in _descriptors:
        _descriptors[file] = os.open(path, os.O_RDONLY)
    return _descriptors[file]


def replaced(path: Path) -> StoreReplaced:
    """Return the error for a file that is not the one that was opened."""
    return files.replaced(path, "replaced by another file" if path.exists() else "removed")


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Commit at the end, or roll back on an error. With a plain BEGIN, several reads see the
    same state."""
    try:
        if not connection.in_transaction:
            connection.execute(begin)
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some errors end the transaction
            connection.execute("ROLLBACK")
        raise


def code_of(error: Exception) -> int:
    """Return the primary result code. An unreadable text or JSON has none and counts as
    corruption: it was valid when written."""
    misused = isinstance(error, sqlite3.InterfaceError | sqlite3.ProgrammingError)
    code: int = getattr(
        error, "sqlite_errorcode", sqlite3.SQLITE_ERROR if misused else sqlite3.SQLITE_CORRUPT
    )
    return code & 0xFF


def translated(path: Path, error: Exception) -> StoreError:
    """Return our error for one of SQLite."""
    unknown = (StoreUnavailable, f"failed: {error}", "see `memory-mesh doctor`")
    kind, what, remedy = _ERRORS.get(code_of(error), unknown)
    return kind(f"{path} {what}", remedy=remedy)


_ERRORS: dict[int, tuple[type[StoreError], str, str]] = {
    sqlite3.SQLITE_BUSY: (
        StoreBusy,
        "is locked by another process",
        "try again, or stop the process that holds it",
    ),
    sqlite3.SQLITE_LOCKED: (StoreBusy, "is locked", "try again"),
    sqlite3.SQLITE_FULL: (
        StoreFull,
        "cannot grow: the disk is full",
        "free some space; nothing was changed",
    ),
    sqlite3.SQLITE_IOERR: (
        StoreUnavailable,
        "could not be read or written",
        "check the disk and its free space",
    ),
    sqlite3.SQLITE_CORRUPT: (
        StoreCorrupt,
        "is damaged",
        "restore a backup; `memory-mesh doctor` shows details",
    ),
    sqlite3.SQLITE_NOTADB: (
        StoreCorrupt,
        "is not a SQLite database",
        "name another file, or restore a backup",
    ),
    sqlite3.SQLITE_READONLY: (StoreReadOnly, "is not writable", "check its permissions"),
    sqlite3.SQLITE_CANTOPEN: (
        StoreUnavailable,
        "cannot be opened",
        "check the path and its permissions",
    ),
    sqlite3.SQLITE_PERM: (StoreUnavailable, "may not be opened", "check its permissions"),
}


# --- connections ---


def _connect_as_it_is(
    path: Path, *, read_only: bool, busy_seconds: float
) -> tuple[sqlite3.Connection, bool]:
    """Connect without changing anything, and return whether the connection uses locks.

    A connection that may write removes at its end what WAL mode put beside the file; with
    `mode=ro`, SQLite leaves it there. But it would also move the pages of a log that a crash left
    into the file. So `mode=ro` is for that case only.
    """
    log = has_log(path)
    try:
        connection = _connect(path, "mode=ro" if read_only and log else "mode=rw", busy_seconds)
    except sqlite3.OperationalError as error:
        if (
            code_of(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            or not path.is_file()
        ):
            raise
        if log:
            what = f"{path} has a log beside it that can only be read in a folder that is writable"
            raise StoreUnavailable(
                what, remedy="copy the file and its log to another folder"
            ) from error
        # The folder is not writable, so there can be no shared memory for locks; nor can another
        # process write to the file.
        return _connect(path, "mode=ro&immutable=1", busy_seconds), False
    if read_only:
        connection.execute("PRAGMA query_only = ON")
    return connection, True


def _connect(path: Path, options: str, busy_seconds: float) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{options}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=busy_seconds, isolation_level=None, check_same_thread=False
    )
    with _closed_on_error(connection):
        _configure(connection)
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # SQLite opens the file now
        (page_size,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute(f"PRAGMA wal_autocheckpoint = {_MAX_LOG // page_size}")
    return connection


def _configure(connection: sqlite3.Connection) -> None:
    # Compare text as `Where` does, overwrite deleted bytes, and write nothing to temporary files.
    for pragma in (
        "case_sensitive_like = ON",
        "secure_delete = ON",
        "temp_store = MEMORY",
        "synchronous = FULL",
    ):
        connection.execute(f"PRAGMA {pragma}")
    connection.create_function("exactly_like", 2, exactly_like, deterministic=True)
    connection.create_function(tables.UPGRADE, 0, lambda: None)


def _copied(source: sqlite3.Connection) -> tuple[sqlite3.Connection, int]:
    """Return a copy in memory with our tables, and the version of the source that it has."""
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    with _closed_on_error(copy):
        with transaction(source, "BEGIN"):
            # Takes the lock, so that the copy need not wait for it.
            source.execute("SELECT 1 FROM sqlite_master").fetchone()
            version = _data_version(source)
            source.backup(copy)
        _configure(copy)
        with transaction(copy):
            _upgrade(copy)
    return copy, version


def _upgrade(connection: sqlite3.Connection) -> None:
    """Create or complete our tables, and adopt rows of Memory Lane, in the transaction of the
    caller."""
    if not (logged := tables.check_version(connection)):
        tables.prepare(connection)
    lane.adopt(connection, logged=logged)


def _data_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def _state(path: Path) -> tuple[Path, int, int]:
    found = stat_of(path)
    return (path, found.st_mtime_ns, found.st_size) if found else (path, 0, 0)


def _check_same(path: Path, file: FileId | None) -> None:
    if file_id(path) != file:
        raise replaced(path)


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL. SQLite does not wait for a lock here, so take an exclusive lock, for which
    it waits, and try again."""
    for last in (*[False] * _WAL_ATTEMPTS, True):
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


@contextmanager
def _closed_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise
