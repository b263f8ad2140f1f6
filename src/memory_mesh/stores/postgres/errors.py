"""Errors of PostgreSQL as errors of a store."""

import psycopg

from memory_mesh.core.errors import (
    Conflict,
    IdTaken,
    InvalidInput,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
)

# The class of error, and the remedy, by SQLSTATE or its first two characters.
_CLASSES: dict[str, tuple[type[StoreError | InvalidInput], str]] = {
    "MM001": (IdTaken, ""),
    "MM002": (Conflict, ""),
    "MM003": (StoreTooNew, "upgrade memory-mesh"),
    "MM004": (InvalidInput, ""),
    "22": (InvalidInput, ""),
    "54": (InvalidInput, ""),
    "25006": (StoreReadOnly, "connect to the primary server to write"),
    "42501": (StoreReadOnly, "let the owner of the tables run `memory-mesh postgres grant`"),
    "28": (StoreUnavailable, "check the user and the password in the URL"),
    "3D": (StoreUnavailable, "check the name of the database, or create it"),
    "53300": (StoreBusy, "close other connections, or raise max_connections"),
    "53": (StoreFull, "free space on the server"),
    "55P03": (StoreBusy, "try again"),
    "57014": (StoreBusy, "try again"),
    "40": (StoreBusy, "try again"),
    "XX": (StoreCorrupt, "restore a backup"),
    "08": (StoreUnavailable, "check that the server is running"),
    "57P": (StoreUnavailable, "check that the server is running"),
}


def is_lost(error: psycopg.Error) -> bool:
    """Return whether the connection ended: the server may or may not have done what was sent."""
    state = error.sqlstate or ""
    return isinstance(error, psycopg.OperationalError) and (not state or state.startswith(("08", "57P")))


def is_retried(error: psycopg.Error) -> bool:
    """Return whether the server undid the change because of another one, or has no connection left for it."""
    return (error.sqlstate or "") in ("40001", "40P01", "53300")


def is_unprepared(error: psycopg.Error) -> bool:
    """Return whether the database lacks a table, function or schema of ours."""
    return (error.sqlstate or "") in ("42P01", "42883", "3F000")


def translated(where: str, error: psycopg.Error) -> StoreError | InvalidInput:
    """Return the error of a store, with the first line of the server's message."""
    state = error.sqlstate or "08"
    kind, remedy = next((_CLASSES[key] for key in (state, state[:3], state[:2]) if key in _CLASSES), (StoreError, ""))
    primary = error.diag.message_primary or str(error)
    what = f"{where}: {primary.strip().splitlines()[0] if primary.strip() else type(error).__name__}"
    if kind is StoreTooNew:
        return StoreTooNew(what, expected="at most the schema of this version", remedy=remedy)
    return kind(what, remedy=remedy) if remedy else kind(what)
