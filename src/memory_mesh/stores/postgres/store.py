"""The PostgreSQL store: connections, errors and retries around the SQL functions.

A read sends one statement, and so does a write. A connection that the server closed is replaced: a
read is sent again, and a write too, if the log of moves shows whether the first one was done.
"""

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from threading import BoundedSemaphore, Lock
from time import monotonic
from typing import Any, Never
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import sql
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict
from psycopg.types import TypeInfo

from memory_mesh.core.errors import (
    Conflict,
    IdTaken,
    InvalidInput,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreMissing,
    StoreReadOnly,
    StoreTooNew,
    StoreTooOld,
    StoreUnavailable,
    shown,
)
from memory_mesh.core.model import Row
from memory_mesh.core.model.background import wait
from memory_mesh.core.ports import Progress, Step, no_step
from memory_mesh.core.text import shown_url
from memory_mesh.stores.postgres.calls import FunctionStore, is_logged, packed_vectors
from memory_mesh.stores.postgres.tables import (
    ALL,
    LARGE,
    LOCK,
    TABLES,
    VERSION,
    decode_json,
    encoded,
    statements,
    upgrade,
)

Connection = psycopg.Connection[tuple[Any, ...]]
_MAX_CONNECTIONS = 8
_CONNECT_SECONDS = 10
_LIMIT = "close other connections, or raise the limit of the server"
_REFUSALS: tuple[tuple[str, type[StoreError], str], ...] = (
    ("authentication failed", StoreUnavailable, "check the user and the password in the URL"),
    ("no password supplied", StoreUnavailable, "check the user and the password in the URL"),
    ("does not exist", StoreUnavailable, "check the name of the database, or create it"),
    ("too many", StoreBusy, _LIMIT),
    ("connection slots", StoreBusy, _LIMIT),
)
_MIN_SERVER = 160_000  # as libpq counts versions
_PAUSES = (0.001, 0.005, 0.02, 0.1)  # seconds before a change is tried again; the last one repeats
_MAX_REWRITTEN = 512 * 1024 * 1024  # bytes of tables that `compact` rewrites, while it locks them
_OPTIONS = ("schema", "mode")  # of the URL; the others are those of libpq
_URL = "such as postgresql://user:password@host/database?schema=name, with mode=ro to only read"
_VECTOR_SCHEMA = (
    "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE "
    "e.extname = 'vector'"
)
_VECTOR_TYPE = (
    "SELECT t.oid, t.typarray FROM pg_extension e JOIN pg_type t ON t.typnamespace = e.extnamespace"
    " WHERE e.extname = 'vector' AND t.typname = 'vector'"
)
_MAY_REWRITE = (
    "SELECT sum(pg_total_relation_size(oid)) <= %s AND bool_and(pg_has_role(relowner, 'USAGE')) "
    "FROM pg_class WHERE oid = ANY (%s::regclass[])"
)
_DEAD_ROWS = (
    "SELECT coalesce(sum(n_dead_tup), 0) > 0 FROM pg_stat_user_tables WHERE schemaname = %s AND "
    "relname = ANY (%s)"
)
_OWNS = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = %s::regclass"
_INVALID = (
    "SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid "
    "= c.relnamespace WHERE NOT i.indisvalid AND n.nspname = %s AND c.relname = %s"
)
_TABLES = ("mesh_indexed", "mesh_search")  # functions that return columns
_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class PostgresStore(FunctionStore):
    """Rows in the tables of a PostgreSQL schema."""

    def __init__(self, url: str, *, busy_seconds: float = 30.0, step: Step = no_step) -> None:
        self.url = url
        options, conninfo = _parsed(url)
        self.schema, self._read_only = options.get("schema", "public"), options.get("mode") == "ro"
        self._busy_seconds, self._step = busy_seconds, step
        self._pool = Pool(conninfo, shown_url(url), busy_seconds, read_only=self._read_only)
        # Of the tables; None: there are none, or it is not known yet.
        self._version: int | None = None

    # --- calls ---

    def _call(self, function: str, payload: Mapping[str, object], empty: Any) -> Any:
        if not self.is_prepared():
            self._check_not_old()
            if self._read_only:
                self.require_file()
            return empty
        for last in (False, True):
            try:
                with self._pool.connection() as connection:
                    return _called(
                        connection, self.schema, function, {**payload, "schema": VERSION}
                    )
            except psycopg.Error as error:
                if last or not is_lost(error):  # the server closes idle connections when it stops
                    raise translated(shown_url(self.url), error) from error
        raise AssertionError

    def _write(
        self, tenant: str | None, payload: Mapping[str, object], puts: Sequence[Row]
    ) -> dict[str, Any]:
        self.check_writable()
        self.prepare()
        rows = [encoded(row, place, with_numbers=False) for place, row in enumerate(puts)]
        until, lost = monotonic() + self._busy_seconds, False
        for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
            try:
                with self._pool.connection() as connection:
                    self._step("store.begun")
                    given = {**payload, "puts": rows, "schema": VERSION, "retry": lost}
                    vectors = _packed(connection, puts)
                    answer: dict[str, Any] = _called(
                        connection, self.schema, "mesh_apply", tenant, given, vectors
                    )
            except StoreUnavailable as error:  # no connection, so nothing was sent
                if not lost:
                    raise
                if monotonic() >= until:
                    raise self._unknown() from error
            except psycopg.Error as error:
                if is_lost(error) and (lost or not is_logged(puts)):
                    raise self._unknown() from error
                lost = lost or is_lost(error)
                if not (lost or is_retried(error)) or monotonic() >= until:
                    raise translated(shown_url(self.url), error) from error
            else:
                self._step("store.committed")
                return answer
            wait(pause)
        raise AssertionError

    def _unknown(self) -> StoreUnavailable:
        what = (
            f"{shown_url(self.url)}: the connection was lost during a write, which may have been "
            "done or not"
        )
        return StoreUnavailable(what, remedy="read what is stored before you write it again")

    def compact(self) -> bool:
        """Rewrite the tables, and index the vectors of models that have many. If the tables are
        large or belong to another role, only mark the space of deleted rows as free."""
        self.check_writable()
        if not self.is_prepared():
            return True
        names = [sql.Identifier(self.schema, name) for name in ALL]
        with self.connection() as connection, suppress(psycopg.errors.LockNotAvailable):
            limits = (_MAX_REWRITTEN, [name.as_string() for name in names])
            full = connection.execute(_MAY_REWRITE, limits).fetchone() == (True,)
            # Which skips the tables of others.
            statement = "VACUUM (FULL, ANALYZE) {}" if full else "VACUUM (ANALYZE) {}"
            connection.execute(sql.SQL(statement).format(sql.SQL(", ").join(names)))
            self._index_vectors(connection)
            return full
        return False

    def _index_vectors(self, connection: Connection) -> None:
        """Create the index of each model with many vectors, if the role owns the tables."""
        (owns,) = connection.execute(
            _OWNS, (sql.Identifier(self.schema, "memories").as_string(),)
        ).fetchone() or (False,)
        if owns:
            self.search_tables(connection, "SET")
            try:
                for name, definition in connection.execute(LARGE.encode()).fetchall():
                    named = sql.Identifier(name)
                    # Its creation was interrupted.
                    if connection.execute(_INVALID, (self.schema, name)).fetchone():
                        connection.execute(sql.SQL("DROP INDEX {}").format(named))
                    # Others can write meanwhile; it runs outside of a transaction.
                    create = "CREATE INDEX CONCURRENTLY IF NOT EXISTS {} {}"
                    connection.execute(sql.SQL(create).format(named, sql.SQL(definition)))
            finally:
                connection.execute("RESET search_path")

    def close(self) -> None:
        self._pool.close()

    @contextmanager
    def snapshot(self) -> Iterator["PostgresStore | Snapshot"]:
        """Yield what the store contains now, whatever others write meanwhile."""
        if not self.is_prepared():
            yield self  # without tables: it reads as empty
            return
        with self.connection() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield Snapshot(self, connection)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Yield a connection, and raise errors of the server as those of the store."""
        try:
            with self._pool.connection() as connection:
                yield connection
        except psycopg.Error as error:
            raise translated(shown_url(self.url), error) from error

    # --- tables ---

    def is_prepared(self) -> bool:
        """Return whether the database has our tables of this version. A newer version raises
        `StoreTooNew`."""
        self._pool.check_open()
        if self._version != VERSION:
            with self.connection() as connection:
                self._version = self._schema(connection)
        return self._version == VERSION

    def _check_not_old(self) -> None:
        """Raise `StoreTooOld` if the tables are those of an earlier version: a read does not
        change them."""
        if self._version is not None:
            what = f"{shown_url(self.url)} has schema {self._version}"
            raise StoreTooOld(
                what,
                expected=str(VERSION),
                remedy="let the owner of the tables run `memory-mesh postgres prepare`",
            )

    def _schema(self, connection: Connection) -> int | None:
        """Return the version of the tables; None without tables."""
        table = sql.Identifier(self.schema, "mesh_migrations")
        # Not `to_regclass`, which may answer from before the caller waited for the lock.
        query = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'mesh_migrations'"
        if connection.execute(query, (self.schema,)).fetchone() is None:
            return None
        (version,) = connection.execute(
            sql.SQL("SELECT max(version) FROM {}").format(table)
        ).fetchone() or (None,)
        if version is not None and version > VERSION:
            what = f"{shown_url(self.url)} has schema {version}"
            raise StoreTooNew(what, expected=f"at most {VERSION}", remedy="upgrade memory-mesh")
        return None if version is None else int(version)

    def prepare(self) -> None:
        """Create the tables if they are missing, or upgrade them. Every write does that."""
        self.check_writable()
        if self.is_prepared():
            return
        with self.connection() as connection:
            try:
                with connection.transaction():
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
                    self._upgrade(connection)
            except psycopg.errors.InsufficientPrivilege as error:
                raise StoreReadOnly(
                    f"{shown_url(self.url)}: {error.diag.message_primary}",
                    remedy="let a role that may create tables run `memory-mesh postgres prepare`",
                ) from error
            except psycopg.errors.DuplicateTable as error:
                what = f"has a table of another program: {error.diag.message_primary}"
                raise StoreForeign(
                    f"{shown_url(self.url)} {what}",
                    remedy="name a schema of its own, such as ?schema=memory_mesh; nothing was "
                    "changed",
                ) from error

    def _upgrade(self, connection: Connection) -> None:
        """Create or upgrade the tables in the transaction of the caller."""
        if (version := self._schema(connection)) == VERSION:
            return
        schema, where = sql.Identifier(self.schema), shown_url(self.url)
        check_server(where, connection.info.server_version)
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        except psycopg.Error as error:
            raise no_pgvector(where, connection.info.server_version, error) from error
        # Functions keep this path, so that a caller's own tables never stand in for ours.
        self.search_tables(connection, "SET LOCAL")
        steps = statements() if version is None else upgrade(version)
        for statement in steps:
            connection.execute(statement.encode())

    def search_tables(self, connection: Connection, how: str) -> None:
        """Set the search path to our tables and the vectors."""
        (vector,) = connection.execute(_VECTOR_SCHEMA).fetchone() or ("public",)
        names = sql.Identifier(self.schema), sql.Identifier(vector)
        path = sql.SQL("{} search_path TO {}, {}, pg_temp")
        connection.execute(path.format(sql.SQL(how), *names))

    # --- `StoreFile`: the tables are its file ---

    def require_file(self) -> None:
        """Raise `StoreMissing` if the database has no tables of ours."""
        if not self.is_prepared():
            self._check_not_old()
            what = f"{shown_url(self.url)} has no tables of memory-mesh"
            raise StoreMissing(
                what,
                remedy="check the URL; `memory-mesh postgres prepare` or the first write "
                "creates them",
            )

    def create_file(self) -> None:
        """Create the tables if there are none and the store may be written to."""
        if not self._read_only:
            self.prepare()

    def check_writable(self) -> None:
        """Raise `StoreReadOnly` if the store was opened for reading only."""
        self._pool.check_open()
        if self._read_only:
            raise StoreReadOnly(
                f"{shown_url(self.url)} is opened read-only",
                remedy="open it without mode=ro to write",
            )

    def was_replaced(self) -> bool:
        return False

    def backup(self, target: Path, progress: Progress) -> int:
        """Write all rows as an archive. `pg_dump` is faster, and copies the roles too."""
        from memory_mesh.stores.archive_file import ArchivedStore

        with self.snapshot() as state:
            return ArchivedStore(state).backup(target, progress)

    def find_bytes(self, samples: Collection[bytes]) -> dict[bytes, str]:
        return {}

    def has_deleted_bytes(self) -> bool:
        """Return whether the server counts deleted or replaced rows that VACUUM has not removed.
        It counts a little late."""
        if not self.is_prepared():
            return False
        with self.connection() as connection:
            tables = self.schema, [table.name for table in TABLES]
            return connection.execute(_DEAD_ROWS, tables).fetchone() == (True,)

    def damage(self) -> list[str]:
        return []


class Snapshot(FunctionStore):
    """The rows as one transaction sees them. It can only be read, by one thread."""

    def __init__(self, store: PostgresStore, connection: Connection) -> None:
        self.url, self._schema, self._connection = store.url, store.schema, connection

    def _call(self, function: str, payload: Mapping[str, object], empty: Any) -> Any:
        return _called(self._connection, self._schema, function, {**payload, "schema": VERSION})

    def _write(
        self, tenant: str | None, payload: Mapping[str, object], puts: Sequence[Row]
    ) -> Never:
        raise StoreReadOnly(
            f"{shown_url(self.url)} is being copied", remedy="write to the store itself"
        )

    def compact(self) -> bool:
        return True

    def close(self) -> None:
        """Do nothing; the transaction ends with `snapshot`."""


def _called(connection: Connection, schema: str, function: str, *given: object) -> Any:
    """Call a function and return its answer."""
    returns_set = function in ("mesh_find", "mesh_ids", "mesh_nearest")
    arguments = [_dumps(one) if isinstance(one, dict) else one for one in given]
    query = _query(schema, function)
    if function in _TABLES:
        return connection.execute(query, arguments, binary=True).fetchall()
    rows = [row[0] for row in connection.execute(query, arguments)]
    if function in ("mesh_ids", "mesh_data_version"):
        return rows if returns_set else rows[0]
    # Only rows have numbers of programs.
    decode = decode_json if function == "mesh_find" else json.loads
    return [decode(row) for row in rows] if returns_set else decode(rows[0]) if rows[0] else None


@cache
def _query(schema: str, function: str) -> bytes:
    """Return the statement that calls a function. Composing it takes longer than sending it."""
    marks = sql.SQL("%s::text, %s::jsonb, %s" if function == "mesh_apply" else "%s::jsonb")
    name = sql.Identifier(schema, function)
    if function in _TABLES:
        return sql.SQL("SELECT * FROM {}({})").format(name, marks).as_bytes()
    return sql.SQL("SELECT {}({})::text").format(name, marks).as_bytes()


class Packed(bytes):
    """A parameter in the binary format of its type, which the server infers."""


class _PackedDumper(Dumper):
    format = psycopg.pq.Format.BINARY

    def dump(self, obj: Packed) -> Packed:
        return obj


psycopg.adapters.register_dumper(Packed, _PackedDumper)


def _packed(connection: Connection, rows: Sequence[Row]) -> Packed | None:
    """Return the vectors of rows; None if there are none."""
    if not any(row.vector for row in rows):
        return None
    types = connection.adapters.types
    if types.get("vector") is None:
        found = connection.execute(_VECTOR_TYPE).fetchone() or (0, 0)
        TypeInfo("vector", *found).register(connection)
    return Packed(packed_vectors(rows, types.get_oid("vector")))


def _parsed(url: str) -> tuple[dict[str, str], str]:
    """Return the options of ours in a URL, and the URL for libpq."""
    try:
        parts = urlsplit(url)
        given = parse_qsl(parts.query, keep_blank_values=True)
        options = {name: value for name, value in given if name in _OPTIONS}
        rest = urlunsplit(
            parts._replace(query=urlencode([one for one in given if one[0] not in _OPTIONS]))
        )
        conninfo_to_dict(rest)
    except (psycopg.ProgrammingError, ValueError):  # which may quote the password
        what = f"store {shown(shown_url(url), max_length=120)} is not a URL of PostgreSQL"
        raise InvalidInput(what, expected=_URL) from None
    # Libpq would take the rest of a password for the host.
    if parts.netloc.count("@") > 1 or "@" in parts.path + parts.fragment:
        what = (
            f"store {shown(shown_url(url), max_length=120)} has a password with characters "
            "that end it"
        )
        raise InvalidInput(
            what, expected=_URL, remedy="write @ as %40, / as %2F and # as %23 in it"
        )
    if options.get("mode", "rw") not in ("ro", "rw") or options.get("schema") == "":
        raise InvalidInput(
            f"store {shown(shown_url(url), max_length=120)} has unknown options", expected=_URL
        )
    return options, rest


# --- connections ---
# Each is used by one thread at a time.


class Pool:
    """Idle connections, and how to make one. `psycopg_pool` needs threads of its own and hides
    why it cannot connect."""

    def __init__(self, conninfo: str, shown: str, busy_seconds: float, *, read_only: bool) -> None:
        self._conninfo, self._shown, self._seconds = conninfo, shown, busy_seconds
        self._options = f"-c lock_timeout={max(1, round(busy_seconds * 1000))} -c timezone=UTC"
        self._options += " -c default_transaction_read_only=on" if read_only else ""
        self._idle: list[Connection] = []
        self._lock, self._process = Lock(), os.getpid()
        self._places = BoundedSemaphore(_MAX_CONNECTIONS)
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
            (StoreUnavailable, "check that the server is running"),
        )
        return kind(f"{self._shown}: {text[:300]}", remedy=remedy)

    def _after_fork(self) -> None:
        """Forget the connections of the parent process, without closing them: it still uses
        them."""
        if self._process != os.getpid():
            self._lock, self._process = Lock(), os.getpid()
            self._places = BoundedSemaphore(_MAX_CONNECTIONS)
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
    "23505": (IdTaken, ""),
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


def check_server(where: str, version: int) -> None:
    """Raise `StoreUnavailable` for a server that is too old for the tables."""
    if version < _MIN_SERVER:
        raise StoreUnavailable(
            f"{where} is PostgreSQL {version // 10_000}",
            expected=f"{_MIN_SERVER // 10_000} or later",
            remedy="upgrade the server with `pg_upgrade`, or name another one",
        )


def no_pgvector(where: str, version: int, error: psycopg.Error) -> StoreError | InvalidInput:
    """Return the error of a database in which the extension of vectors cannot be created."""
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return StoreReadOnly(
            f"{where} has no pgvector, and this role may not add it",
            remedy='let a superuser run `psql DATABASE -c "CREATE EXTENSION vector"`',
        )
    if isinstance(error, psycopg.errors.FeatureNotSupported | psycopg.errors.UndefinedFile):
        return StoreUnavailable(
            f"{where}: pgvector is not installed on the server",
            remedy=f"install it there, such as with `apt install postgresql-{version // 10_000}"
            "-pgvector`, and try again",
        )
    return translated(where, error)


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
