"""The PostgreSQL store: connections, errors and retries around the SQL functions.

A read sends one statement, and so does a write. A connection that the server closed is replaced: a
read is sent again, and a write too, if the log of moves shows whether the first one was done.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import chain, repeat
from pathlib import Path
from time import monotonic
from typing import Any, Never
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from memory_mesh.core.errors import (
    InvalidInput,
    StoreForeign,
    StoreMissing,
    StoreReadOnly,
    StoreTooNew,
    StoreTooOld,
    StoreUnavailable,
    shown,
)
from memory_mesh.core.model.background import wait
from memory_mesh.core.ports import Progress, Step, no_step
from memory_mesh.core.text import shown_url
from memory_mesh.stores.postgres import migrations
from memory_mesh.stores.postgres.calls import VERSION, FunctionStore
from memory_mesh.stores.postgres.connections import (
    Connection,
    Pool,
    is_lost,
    is_retried,
    translated,
)
from memory_mesh.stores.postgres.tables import ALL, TABLES, decode_json

_PAUSES = (0.001, 0.005, 0.02, 0.1)  # seconds before a change is tried again; the last one repeats
_MAX_REWRITTEN = 512 * 1024 * 1024  # bytes of tables that `compact` rewrites, while it locks them
_OPTIONS = ("schema", "mode")  # of the URL; the others are those of libpq
_URL = "such as postgresql://user:password@host/database?schema=name, with mode=ro to only read"
_VECTOR_SCHEMA = (
    "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE "
    "e.extname = 'vector'"
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
# What functions return before vectors, which are long as text.
_PACKED = {"mesh_memories": ("memories",), "mesh_around": ("neighbours", "sessions")}
_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class PostgresStore(FunctionStore):
    """Rows in the tables of a PostgreSQL schema."""

    def __init__(
        self, url: str, *, must_exist: bool = True, busy_seconds: float = 30.0, step: Step = no_step
    ) -> None:
        self.url = url
        options, conninfo = _parsed(url)
        self.schema, self._read_only = options.get("schema", "public"), options.get("mode") == "ro"
        self._must_exist, self._busy_seconds, self._step = must_exist, busy_seconds, step
        self._pool = Pool(conninfo, shown_url(url), busy_seconds, read_only=self._read_only)
        # Of the tables; None: there are none, or it is not known yet.
        self._version: int | None = None

    # --- calls ---

    def _call(self, function: str, payload: Mapping[str, object], empty: Any) -> Any:
        if not self.is_prepared():
            self._check_not_old()
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
        self, tenant: str | None, payload: Mapping[str, object], *, is_logged: bool
    ) -> dict[str, int]:
        self.check_writable()
        self.prepare()
        until, lost = monotonic() + self._busy_seconds, False
        for pause in chain(_PAUSES, repeat(_PAUSES[-1])):
            try:
                with self._pool.connection() as connection:
                    self._step("store.begun")
                    given = {**payload, "schema": VERSION, "retry": lost}
                    versions = _called(connection, self.schema, "mesh_apply", tenant, given)
            except StoreUnavailable as error:  # no connection, so nothing was sent
                if not lost:
                    raise
                if monotonic() >= until:
                    raise self._unknown() from error
            except psycopg.Error as error:
                if is_lost(error) and (lost or not is_logged):
                    raise self._unknown() from error
                lost = lost or is_lost(error)
                if not (lost or is_retried(error)) or monotonic() >= until:
                    raise translated(shown_url(self.url), error) from error
            else:
                self._step("store.committed")
                return versions or {}
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
        try:
            with self._pool.connection() as connection:
                given = (_MAX_REWRITTEN, [name.as_string() for name in names])
                full = connection.execute(_MAY_REWRITE, given).fetchone() == (True,)
                # Which skips the tables of others.
                statement = "VACUUM (FULL, ANALYZE) {}" if full else "VACUUM (ANALYZE) {}"
                connection.execute(sql.SQL(statement).format(sql.SQL(", ").join(names)))
                self._index_vectors(connection)
        except psycopg.errors.LockNotAvailable:
            return False
        except psycopg.Error as error:
            raise translated(shown_url(self.url), error) from error
        return full

    def _index_vectors(self, connection: Connection) -> None:
        """Create the index of each model with many vectors, if the role owns the tables."""
        (owns,) = connection.execute(
            _OWNS, (sql.Identifier(self.schema, "memories").as_string(),)
        ).fetchone() or (False,)
        if owns:
            (vector,) = connection.execute(_VECTOR_SCHEMA).fetchone() or ("public",)
            path = sql.Identifier(self.schema), sql.Identifier(vector)
            connection.execute(sql.SQL("SET search_path TO {}, {}, pg_temp").format(*path))
            try:
                for table, model, dimension, name in connection.execute(
                    migrations.LARGE.encode()
                ).fetchall():
                    # Its creation was interrupted.
                    if connection.execute(_INVALID, (self.schema, name)).fetchone():
                        connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
                    connection.execute(migrations.vector_index(table, model, dimension, name))
            finally:
                connection.execute("RESET search_path")

    def close(self) -> None:
        self._pool.close()

    @contextmanager
    def snapshot(self) -> Iterator["Snapshot"]:
        """Yield what the store contains now, whatever others write meanwhile."""
        self.require_file()
        with self._pool.connection() as connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield Snapshot(self, connection)

    def connection(self) -> AbstractContextManager[Connection]:
        """Return a connection, for the commands of the owner."""
        return self._pool.connection()

    # --- tables ---

    def is_prepared(self) -> bool:
        """Return whether the database has our tables of this version. A newer version raises
        `StoreTooNew`."""
        self._pool.check_open()
        if self._version != VERSION:
            try:
                with self._pool.connection() as connection:
                    self._version = self._schema(connection)
            except psycopg.Error as error:
                raise translated(shown_url(self.url), error) from error
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
        try:
            with self._pool.connection() as connection, connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (migrations.LOCK,))
                if (version := self._schema(connection)) != VERSION:
                    connection.execute(
                        sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(
                            sql.Identifier(self.schema)
                        )
                    )
                    connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
                    (vector,) = connection.execute(_VECTOR_SCHEMA).fetchone() or ("public",)
                    # Functions keep this path, so that a caller's own tables never stand in for
                    # ours.
                    names = sql.Identifier(self.schema), sql.Identifier(vector)
                    connection.execute(
                        sql.SQL("SET LOCAL search_path TO {}, {}, pg_temp").format(*names)
                    )
                    for statement in (
                        migrations.statements() if version is None else migrations.upgrade(version)
                    ):
                        connection.execute(statement.encode())
        except psycopg.errors.InsufficientPrivilege as error:
            remedy = "let a role that may create tables run `memory-mesh postgres prepare`"
            raise StoreReadOnly(
                f"{shown_url(self.url)}: {error.diag.message_primary}", remedy=remedy
            ) from error
        except psycopg.errors.DuplicateTable as error:
            what = (
                f"{shown_url(self.url)} has a table of another program: "
                f"{error.diag.message_primary}"
            )
            raise StoreForeign(
                what,
                remedy="name a schema of its own, such as ?schema=memory_mesh; nothing was changed",
            ) from error
        except psycopg.Error as error:
            raise translated(shown_url(self.url), error) from error

    # --- `StoreFile`: the tables are its file ---

    def require_file(self) -> None:
        """Raise `StoreMissing` if the database has no tables of ours, unless the store was
        opened with `must_exist=False`."""
        if self._must_exist and not self.is_prepared():
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
        try:
            with self._pool.connection() as connection:
                given = self.schema, [table.name for table in TABLES]
                return connection.execute(_DEAD_ROWS, given).fetchone() == (True,)
        except psycopg.Error as error:
            raise translated(shown_url(self.url), error) from error

    def damage(self) -> list[str]:
        return []


class Snapshot(FunctionStore):
    """The rows as one transaction sees them. It can only be read, by one thread."""

    def __init__(self, store: PostgresStore, connection: Connection) -> None:
        self.url, self._schema, self._connection = store.url, store.schema, connection

    def _call(self, function: str, payload: Mapping[str, object], empty: Any) -> Any:
        try:
            return _called(self._connection, self._schema, function, {**payload, "schema": VERSION})
        except psycopg.Error as error:
            raise translated(shown_url(self.url), error) from error

    def _write(
        self, tenant: str | None, payload: Mapping[str, object], *, is_logged: bool
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
    marks = sql.SQL(", ").join([sql.SQL("%s::text"), sql.SQL("%s::jsonb")][-len(given) :])
    query = sql.SQL("SELECT {}({})::text").format(sql.Identifier(schema, function), marks)
    if function in _PACKED:
        names = sql.SQL(", ").join(
            sql.SQL("{}::text").format(sql.Identifier(name)) for name in _PACKED[function]
        )
        query = sql.SQL("SELECT {}, vectors FROM {}({})").format(
            names, sql.Identifier(schema, function), marks
        )
        *parts, vectors = connection.execute(query, arguments, binary=True).fetchone() or (None,)
        read = (json.loads(part) if part else None for part in parts)
        return {**dict(zip(_PACKED[function], read, strict=False)), "vectors": vectors or b""}
    rows = [row[0] for row in connection.execute(query, arguments)]
    if function in ("mesh_ids", "mesh_data_version"):
        return rows if returns_set else rows[0]
    # Only rows have numbers of programs.
    decode = decode_json if function == "mesh_find" else json.loads
    return [decode(row) for row in rows] if returns_set else decode(rows[0]) if rows[0] else None


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


# --- roles and distribution ---
# What the owner of the tables does: let roles use them, and distribute them over several servers
# with Citus.

SCOPES = ("user", "server", "token")
# The limits of a role of one user, so that its program does not keep others waiting. A program may
# change the timeouts in its own session: they are against mistakes. It cannot change the number of
# its connections.
MAX_CONNECTIONS = 20
TIMEOUTS = {
    "statement_timeout": "10min",
    "lock_timeout": "1min",
    "idle_in_transaction_session_timeout": "1min",
}


def grant(
    store: PostgresStore, role: str, *, scope: str, user_id: str | None, agent_id: str | None
) -> list[str]:
    """Let a role use the tables; see `mesh_grant` in `security.sql`. The role must exist.

    A role of one user also gets limits, where it has none. Returns the statements for those that
    only an administrator may set.
    """
    if scope not in SCOPES or (scope != "user" and (user_id or agent_id)):
        what = (
            f"scope {scope} with a user or an agent"
            if scope in SCOPES
            else f"unknown scope {scope}"
        )
        raise InvalidInput(what, expected="user with --user and --agent, or server, or token")
    if user_id == "":
        raise InvalidInput(
            "the user is empty", expected="the name of a user, or no --user for rows without one"
        )
    store.prepare()
    call = sql.SQL("SELECT {}(%s, %s, %s, %s)").format(sql.Identifier(store.schema, "mesh_grant"))
    try:
        with store.connection() as connection:
            connection.execute(call, (role, scope, user_id, agent_id))
            return _limit(connection, role) if scope == "user" else []
    except psycopg.errors.UndefinedObject as error:
        raise InvalidInput(
            f"the server has no role {role}", remedy="create it with CREATE ROLE … LOGIN"
        ) from error
    except psycopg.Error as error:
        raise translated(shown_url(store.url), error) from error


def _limit(connection: Connection, role: str) -> list[str]:
    """Set the limits that a role lacks, and return the statements that were refused."""
    (connections,) = connection.execute(
        "SELECT rolconnlimit FROM pg_roles WHERE rolname = %s", (role,)
    ).fetchone() or (0,)
    query = (
        "SELECT unnest(setconfig) FROM pg_db_role_setting WHERE setrole = (SELECT oid FROM "
        "pg_roles WHERE rolname = %s) AND setdatabase IN (0, (SELECT oid FROM pg_database WHERE "
        "datname = current_database()))"
    )
    known = {row[0].partition("=")[0] for row in connection.execute(query, (role,))}
    name, database = sql.Identifier(role), sql.Identifier(connection.info.dbname)
    limits = (
        [sql.SQL("ALTER ROLE {} CONNECTION LIMIT {}").format(name, MAX_CONNECTIONS)]
        if connections == -1
        else []
    )
    limits += [
        sql.SQL("ALTER ROLE {} IN DATABASE {} SET {} TO {}").format(
            name, database, sql.Identifier(setting), value
        )
        for setting, value in TIMEOUTS.items()
        if setting not in known
    ]
    refused: list[str] = []
    for limit in limits:
        try:
            connection.execute(limit)
        except psycopg.errors.InsufficientPrivilege:
            refused.append(limit.as_string(connection))
    return refused


def distribute(store: PostgresStore) -> None:
    """Distribute the tables over the servers of Citus by user. Rows without a user share one
    shard."""
    store.prepare()
    try:
        with store.connection() as connection, connection.transaction():
            if (
                connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'citus'").fetchone()
                is None
            ):
                what = f"{shown_url(store.url)} has no extension citus"
                raise StoreUnavailable(
                    what, remedy="install Citus and run CREATE EXTENSION citus, or use one server"
                )
            connection.execute(
                sql.SQL("SET LOCAL search_path TO {}, public").format(sql.Identifier(store.schema))
            )
            for statement in distribution():
                connection.execute(statement.encode())
    except psycopg.Error as error:
        raise translated(shown_url(store.url), error) from error


def distribution() -> Iterator[str]:
    """Yield the statements that distribute the tables. Their keys begin with the tenant."""
    for table in TABLES:
        # Citus cannot keep an id unique over all users. An id is random, and unique for each user.
        yield f"DROP INDEX {table.name}_by_id"
        yield f"CREATE INDEX {table.name}_by_id ON {table.name} (id, kind)"
    first, *others = ALL
    yield f"SELECT create_distributed_table('{first}', 'tenant')"
    for name in others:
        yield f"SELECT create_distributed_table('{name}', 'tenant', colocate_with => '{first}')"
    for name in ("mesh_roles", "mesh_migrations"):
        yield f"SELECT create_reference_table('{name}')"
    yield (
        "SELECT create_distributed_function('mesh_apply(text, jsonb)', 'tenant', colocate_with => "
        f"'{first}')"
    )
