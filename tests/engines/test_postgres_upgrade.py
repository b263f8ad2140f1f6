"""Tables that an earlier version created: the upgrade keeps their rows, and brings the functions
and policies of today."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from engines.postgres import Server
from memory_mesh import MemoryMesh
from memory_mesh.core.errors import StoreTooOld
from memory_mesh.core.model import TOKEN_BYTES, Compare, Kind, Reader, visible_to
from memory_mesh.stores.postgres import PostgresStore
from memory_mesh.stores.postgres import roles as admin
from memory_mesh.stores.postgres.tables import ALL, VERSION, encoded
from memory_mesh.testing.rows import memory

pytestmark = pytest.mark.deep

SCHEMA_4 = Path(__file__).parents[1] / "data" / "postgres-schema-4.sql"
# What a role may see and do, and the functions, views and indexes, without the names of databases.
RULES = (
    (
        "SELECT tablename::text, policyname::text, cmd, qual, with_check FROM pg_policies WHERE "
        "schemaname = 'public'"
    ),
    "SELECT relname::text, relrowsecurity, relforcerowsecurity, relacl::text FROM pg_class "
    "WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'",
    "SELECT proname::text, prosrc, prosecdef, proconfig::text, proacl::text FROM pg_proc "
    "WHERE pronamespace = 'public'::regnamespace AND proname ~ '^(mesh_|search_memories)'",
    "SELECT c.relname::text, a.attname::text, a.attacl::text FROM pg_attribute a JOIN pg_class c "
    "ON c.oid = a.attrelid WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND "
    "a.attnum > 0 AND NOT a.attisdropped",
    "SELECT viewname::text, definition FROM pg_views WHERE schemaname = 'public'",
    "SELECT indexname::text, indexdef FROM pg_indexes WHERE schemaname = 'public'",
)


def rules(server: Server, database: str) -> list[list[str]]:
    return [sorted(map(str, server.execute(query, database=database))) for query in RULES]


@pytest.fixture
def early(server: Server) -> Iterator[str]:
    """A database with the tables of schema 4, rows of Ann and Bob that its functions wrote, and
    a role of Ann."""
    database = server.database()
    server.execute("CREATE ROLE ann_early LOGIN PASSWORD 'secret'")
    with psycopg.connect(server.keeper(database), autocommit=True) as owner:
        owner.execute("SET search_path TO public, pg_temp")
        owner.execute(SCHEMA_4.read_bytes())
        owner.execute("SELECT mesh_grant('ann_early', 'user', 'ann')")
        for user in ("ann", "bob"):
            rows = [
                memory(f"{user}{at}", partition=f'["{user}", null]', user_id=user,
                       content=f"red fence of {user}", keywords=["red", "fenc"], status="active",
                       vector=[1.0, at])
                for at in range(3)
            ]  # fmt: skip
            payload = {
                "schema": 4,
                "nonce": user,
                "puts": [encoded(row, place) for place, row in enumerate(rows)],
            }
            owner.execute("SELECT mesh_apply(%s, %s::jsonb)", (user, json.dumps(payload)))
    yield database
    server.execute("DROP OWNED BY ann_early", database=database)
    server.execute("DROP ROLE ann_early")


@pytest.mark.req("MESH-020", "GRAPH-93")
def test_an_upgrade_keeps_the_rows_and_brings_the_rules_of_today(
    server: Server, early: str
) -> None:
    # Someone weakened the rules of the early version; today's replace them.
    server.execute("DROP POLICY mesh_rows ON memories", database=early)
    server.execute("CREATE POLICY mesh_rows ON memories USING (true)", database=early)
    server.execute("ALTER TABLE records NO FORCE ROW LEVEL SECURITY", database=early)
    ann = server.url(early, user="ann_early")
    with psycopg.connect(ann) as connection:
        # before: the weak rule.
        assert connection.execute("SELECT count(*) FROM memories").fetchone() == (6,)
        # before: the rights to the whole table.
        connection.execute("LOCK TABLE memories IN ACCESS EXCLUSIVE MODE")
        connection.rollback()
    with closing(PostgresStore(ann)) as store, pytest.raises(StoreTooOld, match="postgres prepare"):
        store.find(Kind.MEMORY)
    with closing(PostgresStore(server.keeper(early))) as store:
        store.prepare()
        assert sorted(store.ids(Kind.MEMORY)) == ["ann0", "ann1", "ann2", "bob0", "bob1", "bob2"]
        assert store.version('["ann", null]') == 3
    with closing(PostgresStore(server.keeper(new := server.database()))) as fresh:
        admin.grant(fresh, "ann_early", scope="user", user_id="ann", agent_id=None)
    assert rules(server, early) == rules(server, new)
    server.execute("DROP OWNED BY ann_early", database=new)
    with psycopg.connect(ann) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("LOCK TABLE memories IN ACCESS EXCLUSIVE MODE")
    assert server.execute("SELECT max(version) FROM mesh_migrations", database=early) == [
        (VERSION,)
    ]
    vector = memory("query", vector=[1.0, 0.0]).vector
    assert vector
    with closing(PostgresStore(ann)) as store:
        assert sorted(store.ids(Kind.MEMORY)) == ["ann0", "ann1", "ann2"]
        assert len(store.matching(["red"], visible_to(Reader("ann")), limit=9)) == 3
        near = store.nearest(Kind.MEMORY, vector, visible_to(Reader("ann")), limit=9)
        assert [hit.id for hit in near] == ["ann0", "ann1", "ann2"]
    with MemoryMesh(store=ann, user_id="ann", embedder="none") as mesh:
        mesh.add("A blue gate")
        assert {hit.content for hit in mesh.search("red fence")} == {"red fence of ann"}
        mesh.update("ann0", content="red fence by the sea")
        mesh.delete("ann1")
        assert mesh.get("ann1") is None


@pytest.mark.req("GRAPH-89")
def test_an_upgrade_keeps_the_base_trust_and_computes_the_column_confidence_from_it(
    server: Server, early: str
) -> None:
    values = {
        "ann0": (0.6, 3, 1, 0),
        "ann1": (1.0, None, None, 2),
        "bob0": (None, None, None, None),
    }
    columns = ("confidence", "corroborations", "reinforcements", "disputes")
    for id_, row in values.items():  # as schema 4 stored them: the base trust in `confidence`
        sets = ", ".join(
            f"{name} = {'NULL' if value is None else value}"
            for name, value in zip(columns, row, strict=True)
        )
        server.execute(f"UPDATE memories SET {sets} WHERE id = '{id_}'", database=early)
    server.execute("UPDATE memories SET status = 'archived' WHERE id = 'ann1'", database=early)
    server.execute("GRANT SELECT ON memory_archive TO PUBLIC", database=early)
    with closing(PostgresStore(server.keeper(early))) as store:
        store.prepare()
        trusts = {row.id: row.value("trust") for row in store.find(Kind.MEMORY) if row.id in values}
        assert trusts == {"ann0": 0.6, "ann1": 1.0, "bob0": None}
        assert store.ids(Kind.MEMORY, Compare("trust", "=", 0.6)) == ["ann0"]
    query = (
        "SELECT id, base_trust, confidence FROM {} WHERE id IN ('ann0', 'ann1', 'bob0') ORDER BY id"
    )
    expected = [("ann0", 0.6, 0.6 + 0.1 + 0.15), ("ann1", 1.0, 0.85), ("bob0", None, 0.5)]
    assert server.execute(query.format("memories"), database=early) == expected
    assert server.execute(query.format("memory_archive"), database=early) == expected[1:2]
    granted = "SELECT has_table_privilege('pg_monitor', 'memory_archive', 'SELECT')"
    assert server.execute(granted, database=early) == [(True,)], (
        "the view was not dropped: rights that someone gave are there"
    )


def test_a_schema_without_tokens_gets_their_columns_and_keeps_its_rows(server: Server) -> None:
    database, row = server.database(), memory("old", vector=[1.0, 0.0], status="archived")
    url, role = server.keeper(database), f"ann_{database}"
    server.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
    with closing(PostgresStore(url)) as store:
        store.apply([row])
        admin.grant(store, role, scope="user", user_id="ann", agent_id=None)
    with psycopg.connect(url, autocommit=True) as owner:  # as schema 13 was
        owner.execute("DROP VIEW memory_archive")
        for table in ("memories", "synthesized_skills", "records"):
            owner.execute(f"ALTER TABLE {table} DROP COLUMN tokens")
        owner.execute("CREATE VIEW memory_archive AS SELECT * FROM memories")
        owner.execute("DROP TABLE keyword_lists")
        owner.execute("UPDATE mesh_migrations SET version = 13")
    with (
        closing(PostgresStore(server.url(database, user=role))) as store,
        pytest.raises(StoreTooOld, match="postgres prepare"),
    ):
        store.find(Kind.MEMORY)
    new = memory(
        "new", partition='["ann", null]', user_id="ann", vector=[0.0, 1.0],
        tokens=bytes(range(TOKEN_BYTES)),
    )  # fmt: skip
    with closing(PostgresStore(url)) as store:
        store.prepare()
        assert store.get(Kind.MEMORY, ["old"]) == {"old": row}
    with closing(PostgresStore(server.url(database, user=role))) as store:
        store.apply([new])
        assert store.find(Kind.MEMORY) == [new]
    with psycopg.connect(server.url(database, user=role)) as connection:
        assert connection.execute("SELECT tokens FROM memory_archive").fetchall() == []
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("UPDATE memories SET tokens = NULL")
    shown = server.execute("SELECT id, tokens FROM memory_archive", database=database)
    assert shown == [("old", None)]
    server.execute(f"DROP OWNED BY {role}", database=database)
    server.execute(f"DROP ROLE {role}")


def test_an_upgrade_distributes_the_tables_that_it_creates_as_the_others(
    server: Server, early: str
) -> None:
    """Citus itself is not installed: a table and a function with its names note what is
    distributed."""
    citus = (
        "SET allow_system_table_mods = on; CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid "
        "regclass, beside text); GRANT ALL ON pg_catalog.pg_dist_partition TO keeper; "
        "CREATE FUNCTION pg_catalog.create_distributed_table(regclass, text, colocate_with text) "
        "RETURNS void LANGUAGE sql AS 'INSERT INTO pg_catalog.pg_dist_partition VALUES ($1, $3)'"
    )
    tables = "SELECT logicalrelid::text FROM pg_dist_partition WHERE beside = 'memories' ORDER BY 1"
    server.execute(citus, database=early)
    with psycopg.connect(server.keeper(early), autocommit=True) as owner:
        before = owner.execute(
            "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall()
        names = {name for (name,) in before} & {*ALL}
        assert len(ALL) > len(names) > 7
        for name in names:
            owner.execute("INSERT INTO pg_dist_partition VALUES (%s::regclass, NULL)", (name,))
    with closing(PostgresStore(server.keeper(early))) as store:
        store.prepare()
        assert len(store.matching(["red"], visible_to(Reader("ann")), limit=9)) == 3
    new = {"keyword_lists", "keyword_segments"}
    assert [name for (name,) in server.execute(tables, database=early)] == sorted(new)
    with closing(PostgresStore(server.keeper(fresh := server.database()))) as store:
        store.prepare()  # without Citus there is nothing to distribute
    assert server.execute("SELECT to_regclass('pg_dist_partition')", database=fresh) == [(None,)]
