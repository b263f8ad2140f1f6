"""The commands of the owner of a PostgreSQL store."""

from contextlib import closing
from time import monotonic, sleep

import psycopg
import pytest

from engines.postgres import Server
from memory_mesh.core.model import Kind
from memory_mesh.interfaces.cli.main import run
from memory_mesh.stores.postgres import PostgresStore
from memory_mesh.stores.postgres.roles import distribution
from memory_mesh.testing.rows import memory

pytestmark = pytest.mark.deep


def test_the_owner_prepares_the_tables_and_lets_a_role_use_them(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    database = server.database()
    store = ["--store", server.keeper(database)]
    assert run(["postgres", "prepare", *store]) == 0
    assert "secret" not in capsys.readouterr().out
    assert run(["postgres", "grant", "carol_program", "--user", "carol", *store]) == 2
    assert "the server has no role carol_program" in capsys.readouterr().err
    server.execute("CREATE ROLE carol_program LOGIN PASSWORD 'secret'")
    assert run(["postgres", "grant", "carol_program", "--user", "carol", *store]) == 0
    assert (
        'administrator run:\n  ALTER ROLE "carol_program" CONNECTION LIMIT 20;\n'
        in capsys.readouterr().out
    )
    assert (
        run(["postgres", "grant", "carol_program", "--scope", "server", "--user", "carol", *store])
        == 2
    )
    with closing(PostgresStore(server.url(database, user="carol_program"))) as own:
        own.apply([memory("m1", partition='["carol", null]', user_id="carol")])
        assert own.count(Kind.MEMORY) == 1
    assert run(["postgres", "grant", "carol_program", "--user", "dave", *store]) == 0
    with closing(PostgresStore(server.url(database, user="carol_program"))) as own:
        assert own.count(Kind.MEMORY) == 0
    assert (
        run(
            [
                "postgres",
                "grant",
                "keeper",
                "--user",
                "eve",
                "--store",
                server.url(database, user="carol_program"),
            ]
        )
        != 0
    )


def test_a_store_without_citus_says_so_and_one_that_is_not_postgres_too(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["postgres", "distribute", "--store", server.keeper(server.database())]) == 7
    assert "has no extension citus; install Citus" in capsys.readouterr().err
    assert run(["postgres", "prepare", "--store", "sqlite:///memory.db"]) == 2
    assert "is not a PostgreSQL store" in capsys.readouterr().err


def test_every_key_of_a_distributed_table_begins_with_the_tenant(server: Server) -> None:
    database = server.database()
    with closing(PostgresStore(server.keeper(database))) as store:
        store.prepare()
    local = "'mesh_roles'::regclass, 'mesh_migrations'::regclass"
    query = (
        "SELECT indexrelid::regclass::text, (SELECT attname FROM pg_attribute WHERE attrelid = "
        "indrelid AND attnum = indkey[0]) FROM pg_index WHERE indisunique AND indrelid NOT IN "
        f"({local}) "
        "AND indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)"
    )
    with psycopg.connect(server.keeper(database)) as connection:
        before = dict(connection.execute(query.encode()).fetchall())
        for statement in distribution():
            if "create_" not in statement:  # what plain PostgreSQL understands
                connection.execute(statement.encode())
        after = dict(connection.execute(query.encode()).fetchall())
        connection.rollback()
    assert {*after.values()} == {"tenant"}
    assert before.keys() - after.keys() == {
        name for name, column in before.items() if column != "tenant"
    }
    assert len(after) >= 9


def test_doctor_says_what_the_server_knows_of_deleted_bytes(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    database = server.database()

    def bytes_line() -> str:
        assert run(["doctor", "--store", server.keeper(database)]) == 0
        (line,) = [
            line for line in capsys.readouterr().out.splitlines() if "write-ahead log" in line
        ]
        return line

    with closing(PostgresStore(server.keeper(database))) as store:
        store.apply([memory("m1", content="the quetzal nests")])
        assert "the server counts no deleted rows" in bytes_line()
        server.execute("ALTER TABLE memories SET (autovacuum_enabled = false)", database=database)
        store.apply(deletes=[memory("m1").key])
        until = monotonic() + 20
        while not store.has_deleted_bytes():  # the server counts a little later
            assert monotonic() < until
            sleep(0.1)
        assert "until the server vacuums them, or memory-mesh compact" in bytes_line()
        assert store.compact()
        while store.has_deleted_bytes():
            assert monotonic() < until
            sleep(0.1)
        assert "the server counts no deleted rows" in bytes_line()
