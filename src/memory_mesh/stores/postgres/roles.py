"""What the owner of the tables does: let roles use them, and distribute them over several servers
with Citus."""

from collections.abc import Iterator

import psycopg
from psycopg import sql

from memory_mesh.core.errors import InvalidInput, StoreUnavailable
from memory_mesh.core.text import shown_url
from memory_mesh.stores.postgres.store import Connection, PostgresStore
from memory_mesh.stores.postgres.tables import ALL, TABLES

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
    with store.connection() as connection:
        try:
            connection.execute(call, (role, scope, user_id, agent_id))
        except psycopg.errors.UndefinedObject as error:
            raise InvalidInput(
                f"the server has no role {role}", remedy="create it with CREATE ROLE … LOGIN"
            ) from error
        return _limit(connection, role) if scope == "user" else []


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
    with store.connection() as connection, connection.transaction():
        citus = "SELECT 1 FROM pg_extension WHERE extname = 'citus'"
        if connection.execute(citus).fetchone() is None:
            raise StoreUnavailable(
                f"{shown_url(store.url)} has no extension citus",
                remedy="install Citus and run CREATE EXTENSION citus, or use one server",
            )
        store.search_tables(connection, "SET LOCAL")
        for statement in distribution():
            connection.execute(statement.encode())


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
        "SELECT create_distributed_function('mesh_apply(text, jsonb, vector[])', 'tenant', "
        f"colocate_with => '{first}')"
    )
