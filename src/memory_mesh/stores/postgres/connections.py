"""The connections of a PostgreSQL store, each used by one thread at a time, and their errors."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import BoundedSemaphore, Lock
from typing import Any

import psycopg

from memory_mesh.core.errors import (
    Conflict,
    IdTaken,
    InvalidInput,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
)

Connection = psycopg.Connection[tuple[Any, ...]]
_MAX_CONNECTIONS = 8
_CONNECT_SECONDS = 10
_CHECK, _LIMIT = (
    "check that the server is running",
    "close other connections, or raise the limit of the server",
)
_REFUSALS: tuple[tuple[str, type[StoreError], str], ...] = (
    ("authentication failed", StoreUnavailable, "check the user and the password in the URL"),
    ("no password supplied", StoreUnavailable, "check the user and the password in the URL"),
    ("does not exist", StoreUnavailable, "check the name of the database, or create it"),
    ("too many", StoreBusy, _LIMIT),
    ("connection slots", StoreBusy, _LIMIT),
)


class Pool:
    """Idle connections, and how to make one. `psycopg_pool` needs threads of its own and hides
    why it cannot connect."""

    def __init__(self, conninfo: str, shown: str, busy_seconds: float, *, read_only: bool) -> None:
        self._conninfo, self._shown, self._seconds = conninfo, shown, busy_seconds
        self._options = f"-c lock_timeout={max(1, round(busy_seconds * 1000))} -c timezone=UTC"
        self._options += " -c default_transaction_read_only=on" if read_only else ""
        self._idle: list[Connection] = []
        self._lock, self._places, self._process = (
            Lock(),
            BoundedSemaphore(_MAX_CONNECTIONS),
            os.getpid(),
        )
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Yield a connection. One that failed is closed, so that the next call makes another."""
        self._after_fork()
        if not self._places.acquire(timeout=self._seconds):
            raise StoreBusy(
                f"{self._shown}: all connections of this process are in use", remedy="try again"
            )
        try:
            connection = self._taken()
            try:
                yield connection
            except BaseException:
                if (
                    connection.closed
                    or connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE
                ):
                    connection.close()
                raise
            finally:
                with self._lock:
                    if self._closed:
                        connection.close()
                    elif not connection.closed:
                        self._idle.append(connection)
        finally:
            self._places.release()

    def check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"{self._shown} is closed", remedy="open it again")

    def close(self) -> None:
        """Close the idle connections; the others close after their use."""
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop().close()

    def _taken(self) -> Connection:
        with self._lock:
            self.check_open()
            if self._idle:
                return self._idle.pop()
        try:
            connection = psycopg.connect(
                self._conninfo, autocommit=True, connect_timeout=_CONNECT_SECONDS,
                application_name="memory-mesh",
                # Fail after a minute if the other end is gone without a word: a pulled cable, a
                # firewall that forgot us.
                keepalives_idle=30, keepalives_interval=10, keepalives_count=3,
                tcp_user_timeout=60_000,
                # A pooler between us and the server may not keep statements.
                options=self._options, prepare_threshold=None,
            )  # fmt: skip
            connection.execute("SET client_min_messages TO error")
        except psycopg.Error as error:
            raise self._refused(error) from None  # the cause may quote the connection string
        return connection

    def _refused(self, error: psycopg.Error) -> StoreError:
        """Return the error of a connection that was not made. It has no SQLSTATE, only the words
        of the server."""
        text = " ".join(str(error).split())
        kind, remedy = next(
            ((kind, remedy) for words, kind, remedy in _REFUSALS if words in text),
            (StoreUnavailable, _CHECK),
        )
        return kind(f"{self._shown}: {text[:300]}", remedy=remedy)

    def _after_fork(self) -> None:
        """Forget the connections of the parent process, without closing them: it still uses
        them."""
        if self._process != os.getpid():
            self._process, self._lock, self._places = (
                os.getpid(),
                Lock(),
                BoundedSemaphore(_MAX_CONNECTIONS),
            )
            for connection in self._idle:
                with suppress(OSError):
                    os.close(connection.fileno())
            _inherited.extend(self._idle)
            self._idle = []


# Never collected, since that would end the sessions of the parent.
_inherited: list[Connection] = []


# --- errors ---

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
    return isinstance(error, psycopg.OperationalError) and (
        not state or state.startswith(("08", "57P"))
    )


def is_retried(error: psycopg.Error) -> bool:
    """Return whether the server undid the change because of another one, or has no connection
    left for it."""
    return (error.sqlstate or "") in ("40001", "40P01", "53300")


def is_unprepared(error: psycopg.Error) -> bool:
    """Return whether the database lacks a table, function or schema of ours."""
    return (error.sqlstate or "") in ("42P01", "42883", "3F000")


def translated(where: str, error: psycopg.Error) -> StoreError | InvalidInput:
    """Return the error of a store, with the first line of the server's message."""
    state = error.sqlstate or "08"
    kind, remedy = next(
        (_CLASSES[key] for key in (state, state[:3], state[:2]) if key in _CLASSES),
        (StoreError, ""),
    )
    primary = error.diag.message_primary or str(error)
    what = (
        f"{where}: {primary.strip().splitlines()[0] if primary.strip() else type(error).__name__}"
    )
    if kind is StoreTooNew:
        return StoreTooNew(what, expected="at most the schema of this version", remedy=remedy)
    return kind(what, remedy=remedy) if remedy else kind(what)
