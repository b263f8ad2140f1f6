"""SQLite's errors as the tree's own: what is wrong with the file, and what to do."""

import sqlite3
from pathlib import Path

from memory_mesh.core.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

_TROUBLE: dict[int, tuple[type[StoreError], str, str]] = {
    sqlite3.SQLITE_BUSY: (StoreBusy, "is locked by another process", "try again, or look for what holds it"),
    sqlite3.SQLITE_LOCKED: (StoreBusy, "is locked", "try again"),
    sqlite3.SQLITE_FULL: (StoreFull, "cannot grow: the disk is full", "free some space; nothing was changed"),
    sqlite3.SQLITE_IOERR: (StoreUnavailable, "could not be read or written", "check the disk and its free space"),
    sqlite3.SQLITE_CORRUPT: (StoreCorrupt, "is damaged", "restore a backup; `memory-mesh doctor` tells more"),
    sqlite3.SQLITE_NOTADB: (StoreCorrupt, "is no SQLite database", "name another file, or restore a backup"),
    sqlite3.SQLITE_READONLY: (StoreReadOnly, "can only be read", "check its permissions"),
    sqlite3.SQLITE_CANTOPEN: (StoreUnavailable, "cannot be opened", "check the path and its permissions"),
    sqlite3.SQLITE_PERM: (StoreUnavailable, "may not be opened", "check its permissions"),
}


def trouble(path: Path, error: Exception) -> StoreError:
    """The error to raise for a file."""
    kind, what, remedy = _TROUBLE.get(code_of(error), (StoreUnavailable, f"failed: {error}", "see `memory-mesh doctor`"))
    return kind(f"{path} {what}", remedy=remedy)


def code_of(error: Exception) -> int:
    """SQLite's code for an error. A text or JSON that cannot be read back has none: it was whole when it was written."""
    misused = isinstance(error, sqlite3.InterfaceError | sqlite3.ProgrammingError)
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR if misused else sqlite3.SQLITE_CORRUPT)
    return code & 0xFF  # the rest tells more than we make of it
