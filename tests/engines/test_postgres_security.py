"""Row-level security of the PostgreSQL store, as real roles: what one user's program writes and
reads stays with that user."""

import json
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from engines.postgres import Server
from memory_mesh import MemoryMesh, Sound
from memory_mesh.core.errors import IdTaken, StoreBusy, StoreReadOnly
from memory_mesh.core.model import In, Kind, Row, Vector, iso
from memory_mesh.stores.base import KEPT_MOVES
from memory_mesh.stores.postgres import PostgresStore, tables
from memory_mesh.stores.postgres import roles as admin
from memory_mesh.stores.postgres.tables import ALL, VERSION
from memory_mesh.testing.fakes import NEW_YEAR
from memory_mesh.testing.rows import MODEL, memory

pytestmark = pytest.mark.deep

ROLES = {
    "ann_program": ("user", "ann", None),
    "bob_program": ("user", "bob", None),
    "planner": ("user", "ann", "planner"),
    "service": ("server", None, None),
    "rest": ("token", None, None),
    "chain_program": ("user", "chain", None),
    "recalls_program": ("user", "recalls", None),
}


@pytest.fixture(scope="module")
def urls(server: Server) -> Iterator[dict[str, str]]:
    """The URL of each role on a database in which Ann and Bob have memories."""
    database = server.database()
    with psycopg.connect(server.keeper(database), autocommit=True) as owner:
        with closing(PostgresStore(server.keeper(database))) as store:
            store.prepare()
        for role, given in ROLES.items():
            server.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'")
            owner.execute("SELECT mesh_grant(%s, %s, %s, %s)", (role, *given))
    urls = {role: server.url(database, user=role) for role in ROLES} | {
        "keeper": server.keeper(database)
    }
    for user in ("ann", "bob"):
        with MemoryMesh(
            store=urls[f"{user}_program"], user_id=user, agent_id="planner", embedder="hash"
        ) as mesh:
            mesh.add(f"{user} likes green tea")
            mesh.add(f"{user} keeps a secret", {"type": "agent"})
        with MemoryMesh(
            store=urls[f"{user}_program"], user_id=user, agent_id="coder", embedder="hash"
        ) as mesh:
            mesh.add(f"{user} writes code", {"type": "agent"})
    yield urls
    for role in ROLES:
        server.execute(f"DROP OWNED BY {role}", database=database)
        server.execute(f"DROP ROLE {role}")


def seen(
    url: str, *before: str, query: str = "SELECT content FROM memories ORDER BY content"
) -> list[object]:
    with psycopg.connect(url) as connection:
        for statement in before:
            connection.execute(statement.encode())
        return [row[0] for row in connection.execute(query.encode())]


ANNS = ["ann keeps a secret", "ann likes green tea", "ann writes code"]
BOBS = [text.replace("ann", "bob") for text in ANNS]


@pytest.mark.req("GRAPH-93")
def test_a_program_of_a_user_sees_the_rows_of_that_user_only(urls: dict[str, str]) -> None:
    assert seen(urls["ann_program"]) == ANNS
    assert seen(urls["bob_program"]) == BOBS
    assert seen(urls["service"]) == seen(urls["keeper"]) == [*ANNS, *BOBS]
    assert seen(urls["planner"]) == ANNS[:2]
    for name in ALL:
        tenants = f"SELECT DISTINCT tenant FROM {name}"
        assert seen(urls["ann_program"], query=tenants) in ([], ["ann"])
        assert {*seen(urls["service"], query=tenants)} in (
            set(),
            {"ann", "bob"},
            {"", "ann", "bob"},
        )
    for name in (
        "memories",
        "yamo_blocks",
        "records",
        "partitions",
        "moves",
        "keyword_segments",
        "keyword_lists",
    ):  # these have rows of both
        assert seen(urls["ann_program"], query=f"SELECT DISTINCT tenant FROM {name}") == ["ann"]


@pytest.mark.req("GRAPH-93")
def test_the_index_of_a_program_is_built_from_the_rows_of_its_user_only(
    urls: dict[str, str],
) -> None:
    def contents(role: str, user: str) -> list[object]:
        with closing(PostgresStore(urls[role])) as store:
            pages = store.candidate_source.index_rows(Kind.MEMORY, f'["{user}", null]')
            return [text for page in pages for text in page.columns["content"]]

    assert contents("ann_program", "ann") == contents("service", "ann") == ["ann likes green tea"]
    assert contents("service", "bob") == contents("bob_program", "bob") == ["bob likes green tea"]
    assert contents("ann_program", "bob") == contents("bob_program", "ann") == []


@pytest.mark.req("GRAPH-93")
def test_row_level_security_is_enabled_on_every_table_and_forced_where_rows_are(
    urls: dict[str, str],
) -> None:
    tables = (
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
    )
    assert {*seen(urls["keeper"], query=tables)} == {*ALL, "mesh_roles", "mesh_migrations"}
    assert {*seen(urls["keeper"], query=f"{tables} AND relrowsecurity")} == {
        *ALL,
        "mesh_roles",
        "mesh_migrations",
    }
    assert {*seen(urls["keeper"], query=f"{tables} AND relforcerowsecurity")} == {*ALL}


@pytest.mark.parametrize(
    "attempt",
    [
        'SET request.jwt.claims = \'{"sub": "bob"}\'',
        'SET request.jwt.claims = \'{"role": "service_role"}\'',
        "CREATE TEMP TABLE mesh_roles AS SELECT 'ann_program'::text AS role, 'server'::text AS "
        "scope, null::text AS user_id, null::text AS agent_id",
        "SET search_path TO pg_temp, public",
        "SET row_security TO off",
    ],
)
@pytest.mark.req("GRAPH-93")
def test_nothing_that_a_program_can_set_changes_who_it_is(
    urls: dict[str, str], attempt: str
) -> None:
    try:
        assert seen(urls["ann_program"], attempt) == ANNS
    except psycopg.errors.InsufficientPrivilege as refused:
        assert "row_security" in attempt or "TEMP" in attempt, refused  # noqa: PT017


@pytest.mark.req("GRAPH-93")
def test_the_verified_token_of_a_rest_server_names_the_user(urls: dict[str, str]) -> None:
    assert seen(urls["rest"]) == []
    assert seen(urls["rest"], 'SET request.jwt.claims = \'{"sub": "bob"}\'') == BOBS
    assert (
        seen(urls["rest"], 'SET request.jwt.claims = \'{"sub": "bob", "agent_id": "coder"}\'')
        == BOBS[1:]
    )
    assert seen(urls["rest"], 'SET request.jwt.claims = \'{"role": "service_role"}\'') == [
        *ANNS,
        *BOBS,
    ]
    for name in ("*", "", "server"):
        assert seen(urls["rest"], f'SET request.jwt.claims = \'{{"sub": "{name}"}}\'') == []


@pytest.mark.req("GRAPH-93")
@pytest.mark.parametrize("role", ["chain_program", "recalls_program"])
def test_a_user_whose_name_begins_the_names_of_chains_sees_no_chain_of_others(
    urls: dict[str, str], role: str
) -> None:
    for name in ALL:
        assert seen(urls[role], query=f"SELECT tenant FROM {name}") == []
    with MemoryMesh(store=urls[role], user_id=role.split("_")[0], embedder="hash") as mesh:
        added = mesh.add("mine")
        assert seen(urls[role]) == ["mine"]
        assert seen(urls[role], query="SELECT DISTINCT tenant FROM yamo_blocks") == [
            role.split("_")[0]
        ]
        mesh.delete(added.id)
    with (
        psycopg.connect(urls[role]) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(
            "INSERT INTO records (tenant, partition, kind, id, revision, number, created_at) "
            """VALUES ('ann', '["chain", "ann", "x"]', 'head', '["chain", "ann", "x"]', 1, 0, \
'2026')"""
        )


# Conditions of a REST client that continue as SQL and change its identity.
CLAIM = "set_config('request.jwt.claims', '{\"role\": \"service_role\"}', false)"
INJECTED: dict[str, object] = {
    "an operator": [f"= '' OR {CLAIM} <> '' OR '' =", "id", ["x"]],
    "a field": ["=", f"id = '' OR {CLAIM} <> '' OR t.id", ["x"]],
    "a key of metadata": ["=", f"metadata.x' = '' OR {CLAIM} <> '' OR '' = '", ["x"]],
    "a literal": ["=", "id", [f"x' OR {CLAIM} <> '' OR '' = '"]],
    "a number": ["=", "number", [{"real": f"1 OR {CLAIM} <> ''"}]],
    "a connective": [f"and true) OR {CLAIM} <> '' OR (", [["=", "id", ["x"]]]],
    "a pattern": ["like", "id", [f"x' OR {CLAIM} <> '' OR '' LIKE '"]],
}


@pytest.mark.req("GRAPH-93")
@pytest.mark.parametrize("place", INJECTED)
def test_no_text_in_a_condition_runs_as_sql(urls: dict[str, str], place: str) -> None:
    payload = json.dumps({"schema": VERSION, "kind": "memory", "where": INJECTED[place]})
    with psycopg.connect(urls["rest"], autocommit=True) as connection:
        connection.execute('SET request.jwt.claims = \'{"sub": "eve"}\'')
        try:
            assert connection.execute(
                "SELECT mesh_read('mesh_find', %s)", (payload,)
            ).fetchone() == ("[]",)
        except psycopg.Error as error:
            assert error.sqlstate == "PT422", error  # noqa: PT017
        assert connection.execute("SELECT current_setting('request.jwt.claims')").fetchone() == (
            '{"sub": "eve"}',
        )
        assert connection.execute("SELECT count(*) FROM memories").fetchone() == (0,)


def test_no_function_that_a_client_can_call_runs_a_text_that_it_is_given(
    urls: dict[str, str],
) -> None:
    """A client over HTTP could otherwise set the claims of its token, and be another user."""
    query = (
        "SELECT proname, 'text'::regtype::oid = ANY (proargtypes::oid[]) FROM pg_proc "
        "WHERE pronamespace = 'public'::regnamespace AND proname ^@ 'mesh_' AND prosrc ~ 'EXECUTE' "
        "AND has_function_privilege('ann_program', oid, 'EXECUTE')"
    )
    with psycopg.connect(urls["keeper"]) as connection:
        found = dict(connection.execute(query).fetchall())
    assert found.keys() >= {"mesh_find", "mesh_nearest", "mesh_search", "mesh_has_passages"}
    assert [name for name, takes_text in found.items() if takes_text] == []


@pytest.mark.req("GRAPH-93")
def test_a_passage_of_one_user_does_not_count_for_the_memory_of_another(
    urls: dict[str, str],
) -> None:
    vector, where = Vector.of(MODEL, [1.0, 0.0]), In("id", ("target",))
    forged = Row(
        kind=Kind.PASSAGE, id="p1", partition=OWN, created_at=iso(NEW_YEAR), revision=1, number=0,
        replaces=0, fields={"ref": "target"}, vector=vector,
    )  # fmt: skip
    with (
        closing(PostgresStore(urls["ann_program"])) as ann,
        closing(PostgresStore(urls["service"])) as service,
    ):
        service.apply([memory("target", partition=OTHER, user_id="bob", vector=[0.0, 1.0])])
        ann.apply([forged])
        (found,) = service.nearest(Kind.MEMORY, vector, where, limit=1)
        service.apply(deletes=[memory("target").key, forged.key])
    assert found.score == pytest.approx(0.0, abs=1e-6)


INSERT = (
    "INSERT INTO memories (tenant, partition, kind, id, revision, number, created_at, "
    "user_id, content) "
    "VALUES ('{tenant}', '{partition}', 'memory', 'forged', 1, 0, '2026', {user}, 'forged')"
)
HEAD = (
    "INSERT INTO records (tenant, partition, kind, id, revision, number, created_at) "
    "VALUES ('ann', '[\"ann\", null]', 'head', '{head}', 1, 0, '2026')"
)
OWN, OTHER = '["ann", null]', '["bob", null]'

SEGMENT = (
    "INSERT INTO keyword_segments (tenant, partition, segment, number, memories, documents, "
    "length) VALUES ('{}', '{}', '{}', 1, 0, 0, 0)"
)
LIST = (
    "INSERT INTO keyword_lists (tenant, partition, word, chunk, ids, segments) VALUES ('{}', '{}', "
    "'hush', 0, '{{forged}}', '{{1}}')"
)
ANY_SEGMENT = "00000000-0000-0000-0000-000000000000"

# Each writes to the rows of Bob. After it, the same with Ann's own rows, or None if that is refused
# too.
ATTACKS: dict[str, tuple[str, str | None]] = {
    "insert": (
        INSERT.format(tenant="bob", partition=OTHER, user="'bob'"),
        INSERT.format(tenant="ann", partition=OWN, user="'ann'"),
    ),
    "insert under another tenant": (INSERT.format(tenant="bob", partition=OWN, user="'ann'"), None),
    "insert into another partition": (
        INSERT.format(tenant="ann", partition=OTHER, user="'ann'"), None,
    ),
    "insert for another user": (INSERT.format(tenant="ann", partition=OWN, user="'bob'"), None),
    "update": (
        "UPDATE memories SET content = 'forged' WHERE tenant = 'bob'",
        "UPDATE memories SET content = 'forged' WHERE tenant = 'ann'",
    ),
    "give away": (
        "UPDATE memories SET tenant = 'bob', partition = '[\"bob\", null]', user_id = 'bob'", None,
    ),
    "update a counter": (
        "UPDATE memories SET access_count = 7 WHERE tenant = 'bob'",
        "UPDATE memories SET access_count = 7 WHERE tenant = 'ann'",
    ),
    "delete": ("DELETE FROM memories WHERE tenant = 'bob'",
               "DELETE FROM memories WHERE tenant = 'ann'"),
    "block a chain": (HEAD.format(head='["chain", "bob", "new"]'), None),
    "become a server": ("INSERT INTO mesh_roles VALUES ('ann_program', 'server')", None),
    "change a role": ("UPDATE mesh_roles SET scope = 'server'", None),
    "read the roles": ("SELECT * FROM mesh_roles", None),
    "grant": ("SELECT mesh_grant('ann_program', 'server')", None),
    "switch it off": ("ALTER TABLE memories DISABLE ROW LEVEL SECURITY", None),
    "another role": ("SET ROLE bob_program", None),
    "another session": ("SET SESSION AUTHORIZATION bob_program", None),
    "empty the table": ("TRUNCATE memories", None),
    "insert a segment": (SEGMENT.format("bob", OTHER, ANY_SEGMENT),
                         SEGMENT.format("ann", OWN, ANY_SEGMENT)),
    "insert a list": (LIST.format("bob", OTHER), LIST.format("ann", OWN)),
    "insert a list into another partition": (LIST.format("ann", OTHER), None),
    "insert a list under another tenant": (LIST.format("bob", OWN), None),
    "update a segment": (
        "UPDATE keyword_segments SET length = 0 WHERE tenant = 'bob'",
        "UPDATE keyword_segments SET length = 0 WHERE tenant = 'ann'",
    ),
    "update a list": (
        "UPDATE keyword_lists SET ids = '{}' WHERE tenant = 'bob'",
        "UPDATE keyword_lists SET ids = '{}' WHERE tenant = 'ann'",
    ),
    "give a list away": (
        "UPDATE keyword_lists SET tenant = 'bob', partition = '[\"bob\", null]'", None,
    ),
    "delete lists": (
        "DELETE FROM keyword_lists WHERE tenant = 'bob'",
        "DELETE FROM keyword_lists WHERE tenant = 'ann'",
    ),
}  # fmt: skip
# A role of one user has no rights to whole tables, with which it could lock them. It deletes by
# function; see below.
OF_WHOLE_TABLES = ("update", "delete", "delete lists")


@pytest.mark.req("GRAPH-93")
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("role", ["ann_program", "rest"])
def test_no_statement_of_a_program_reaches_the_rows_of_another_user(
    urls: dict[str, str], role: str, attack: str
) -> None:
    statement, control = ATTACKS[attack]
    before = seen(
        urls["service"], query="SELECT md5(string_agg(m::text, ',' ORDER BY id)) FROM memories m"
    )
    with psycopg.connect(urls[role]) as connection:
        # Which counts for a REST server.
        connection.execute('SET request.jwt.claims = \'{"sub": "ann"}\'')
        connection.commit()
        try:
            assert connection.execute(statement.encode()).rowcount == 0
        except psycopg.errors.InsufficientPrivilege:
            connection.rollback()
        if control and role == "ann_program" and attack in OF_WHOLE_TABLES:
            with pytest.raises(
                psycopg.errors.InsufficientPrivilege, match="permission denied for table"
            ):
                connection.execute(control.encode())
        elif control:
            assert connection.execute(control.encode()).rowcount > 0
        connection.rollback()
    assert (
        seen(
            urls["service"],
            query="SELECT md5(string_agg(m::text, ',' ORDER BY id)) FROM memories m",
        )
        == before
    )
    assert seen(urls["bob_program"]) == BOBS


@pytest.mark.req("GRAPH-93")
def test_an_agent_that_guesses_a_segment_does_not_get_the_counts_of_another_agent(
    urls: dict[str, str],
) -> None:
    private = memory(
        "private", partition='["ann", "coder"]', user_id="ann", agent_id="coder", keywords=["hush"]
    )
    segments = (
        "SELECT segment::text FROM keyword_segments s JOIN keyword_lists l ON l.partition = "
        "s.partition AND l.segments = ARRAY[s.number] WHERE word = 'hush'"
    )
    lists = "SELECT ids[1] FROM keyword_lists WHERE word = 'hush'"
    with (
        closing(PostgresStore(urls["ann_program"])) as store,
        psycopg.connect(urls["planner"], autocommit=True) as planner,
        psycopg.connect(urls["keeper"], autocommit=True) as keeper,
    ):
        store.apply([private])
        (segment,) = seen(urls["service"], query=segments)
        assert seen(urls["planner"], query=lists) == []
        store.apply(deletes=[private.key])  # the planner is the first to name the segment
        for statement in (SEGMENT, LIST):
            planner.execute(statement.format("ann", '["ann", "planner"]', segment).encode())
        store.apply([private])
        assert seen(urls["planner"], query=lists) == ["forged"]
        assert sorted(seen(urls["service"], query=lists)) == ["forged", "private"]  # type: ignore[type-var]
        store.apply(deletes=[private.key])
        for name, which in (("segments", f"segment = '{segment}'"), ("lists", "word = 'hush'")):
            keeper.execute(f"DELETE FROM keyword_{name} WHERE {which}".encode())


@pytest.mark.req("GRAPH-93")
def test_a_change_of_the_store_is_held_to_the_user_of_its_role(urls: dict[str, str]) -> None:
    with (
        closing(PostgresStore(urls["ann_program"])) as store,
        closing(PostgresStore(urls["service"])) as service,
    ):
        with pytest.raises(StoreReadOnly, match="row-level security"):
            store.apply([memory("m1", partition=OTHER, user_id="bob")])
        (bobs,) = (row for row in service.find(Kind.MEMORY) if row.fields["content"] == BOBS[1])
        store.apply(deletes=[bobs.key])  # for Ann there is no such row
        assert seen(urls["bob_program"]) == BOBS
        store.apply([memory("m1", partition=OWN, user_id="ann")])
        assert store.count(Kind.MEMORY) == 4
        with pytest.raises(IdTaken):
            service.apply([memory("m1", partition=OTHER, user_id="bob")])
        service.apply(deletes=[memory("m1").key])
        assert store.count(Kind.MEMORY) == 3


@pytest.mark.req("GRAPH-92", "GRAPH-93")
def test_the_functions_of_the_document_rank_by_similarity_and_obey_count_and_threshold(
    urls: dict[str, str],
) -> None:
    vector = seen(
        urls["service"],
        query="SELECT embedding::text FROM memories WHERE content = 'ann likes green tea'",
    )[0]

    def found(role: str, call: str) -> list[object]:
        return seen(urls[role], query=f"SELECT content FROM {call.format(vector=vector)}")

    assert found("ann_program", "search_memories_semantic('{vector}', 'planner', 1, 0)") == [
        "ann likes green tea"
    ]
    assert {*found("ann_program", "search_memories_semantic('{vector}', 'planner', 9, -1)")} == {
        *ANNS[:2]
    }
    assert found("ann_program", "search_memories_semantic('{vector}', 'coder', 9, -1)") == ANNS[2:]
    assert found("ann_program", "search_memories_semantic('{vector}', 'planner', 9, 0.99)") == [
        "ann likes green tea"
    ]
    assert found("ann_program", "search_memories_global('{vector}', 9, -1)") == [
        "ann likes green tea"
    ]
    assert found("service", "search_memories_global('{vector}', 9, -1)") == [
        "ann likes green tea",
        "bob likes green tea",
    ]
    assert found("service", "search_memories_global('{vector}', 1, -1)") == ["ann likes green tea"]
    assert found("service", "search_memories_global('{vector}', 9, 0.999)") == [
        "ann likes green tea"
    ]
    with psycopg.connect(urls["service"]) as connection:
        for column, time in (
            ("valid_until", "2020-01-01T00:00:00.000Z"),
            ("valid_from", "2999-01-01T00:00:00.000Z"),
        ):
            connection.execute(
                (
                    f"UPDATE memories SET {column} = '{time}' WHERE content = 'ann likes green tea'"
                ).encode()
            )
            for call in (
                f"search_memories_semantic('{vector}', 'planner', 9, -1)",
                f"search_memories_global('{vector}', 9, -1)",
            ):
                names = [
                    row[0] for row in connection.execute(f"SELECT content FROM {call}".encode())
                ]
                assert names
                assert "ann likes green tea" not in names, "it is not valid now"
            connection.rollback()
        connection.execute(
            "UPDATE memories SET status = 'archived' WHERE content = 'ann likes green tea'"
        )
        for call in (
            f"search_memories_semantic('{vector}', 'planner', 9, -1)",
            f"search_memories_global('{vector}', 9, -1)",
        ):
            names = [row[0] for row in connection.execute(f"SELECT content FROM {call}".encode())]
            assert names
            assert "ann likes green tea" not in names
        assert connection.execute("SELECT content FROM memory_archive").fetchall() == [
            ("ann likes green tea",)
        ]
        connection.rollback()


DOCUMENT = {
    *(
        "id",
        "agent_id",
        "content",
        "category",
        "tags",
        "embedding",
        "importance",
        "access_count",
        "created_at",
        "updated_at",
    ),
    *(
        "claim",
        "provenance",
        "confidence",
        "status",
        "quarantine",
        "reinforcements",
        "disputes",
        "superseded_by",
        "supersedes",
    ),
}


@pytest.mark.req("GRAPH-89", "GRAPH-90", "GRAPH-91")
def test_the_tables_of_the_document_exist_with_its_columns(urls: dict[str, str]) -> None:
    def columns(name: str) -> set[object]:
        return {
            *seen(
                urls["keeper"],
                query="SELECT column_name::text FROM information_schema.columns WHERE table_name "
                f"= '{name}'",
            )
        }

    assert columns("memories") >= DOCUMENT
    with closing(PostgresStore(urls["service"])) as store:
        store.apply([memory("trusted", trust=0.25, confidence=0.75, reinforcements=1)])
    # Its readers expect the trust in `confidence`.
    for name, value in (("confidence", 0.4), ("base_trust", 0.25), ("author_confidence", 0.75)):
        assert seen(urls["service"], query=f"SELECT {name} FROM memories WHERE id = 'trusted'") == [
            value
        ]
    assert columns("memory_archive") == columns("memories")
    assert columns("memory_links") >= {"source_id", "target_id", "similarity", "created_at"}
    for name in ("pending_conflicts", "episodes", "memory_clusters"):
        assert columns(name), name


# --- deletions ---


@pytest.fixture(params=["keeper", "owner"])
def shared(server: Server, urls: dict[str, str], request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with rows of Ann and Bob. Its tables belong to `keeper`, or to a superuser: no
    policy holds for that one."""
    database, roles = server.database(), ("ann_program", "bob_program", "planner", "rest")
    url = server.url(database, user=request.param)
    with closing(PostgresStore(url)) as store, psycopg.connect(url, autocommit=True) as owner:
        store.prepare()
        for role in roles:
            owner.execute("SELECT mesh_grant(%s, %s, %s, %s)", (role, *ROLES[role]))
    for user in ("ann", "bob"):
        with closing(PostgresStore(server.url(database, user=f"{user}_program"))) as store:
            whole = Row(
                kind=Kind.META,
                id="state",
                partition="",
                created_at=iso(NEW_YEAR),
                revision=1,
                number=0,
                replaces=0,
                fields={},
            )
            own = memory(
                f"{user}1",
                partition=f'["{user}", "coder"]',
                user_id=user,
                agent_id="coder",
                keywords=["hush"],
            )
            store.apply([own, whole])
    # Segments of nothing, which a program may delete.
    server.execute(
        "UPDATE keyword_segments SET memories = 0",
        database=database,
    )
    yield database
    for role in roles:
        server.execute(f"DROP OWNED BY {role}", database=database)


# The tables from which each call deletes the rows of a user, and the arguments.
DELETIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "mesh_delete": (
        ("memories", "records"),
        (
            """[{"kind": "memory", "id": "USER1", "tenant": "USER", "source": "memories"},
                {"kind": "meta", "id": "state", "tenant": "USER", "source": "records"}]""",
            """[{"kind": "memory", "id": "USER1", "replaces": 1}, {"kind": "meta", "id": "state", \
"replaces": 1}]""",
        ),
    ),
    "mesh_delete_moves": (("moves",), (f"""{{"[\\"USER\\", \\"coder\\"]": {KEPT_MOVES + 1}}}""",)),
    "mesh_delete_words": (
        ("keyword_lists", "keyword_segments"),
        (
            """[{"tenant": "USER", "partition": "[\\"USER\\", \\"coder\\"]", "id": "USER1", \
"words": ["hush"]}]""",
            """[{"tenant": "USER", "partition": "[\\"USER\\", \\"coder\\"]", "segment": \
"SEGMENT"}]""",
        ),
    ),
}


@pytest.mark.parametrize("function", DELETIONS)
def test_a_program_deletes_rows_of_its_own_by_function_and_none_of_another(
    server: Server, shared: str, function: str
) -> None:
    tables, arguments = DELETIONS[function]

    def deleted(role: str, user: str, *before: str) -> object:
        ((segment,),) = server.execute(
            f"SELECT segment FROM keyword_segments WHERE tenant = '{user}'", database=shared
        )
        given = [text.replace("USER", user).replace("SEGMENT", str(segment)) for text in arguments]
        with psycopg.connect(server.url(shared, user=role), autocommit=True) as connection:
            for statement in before:
                connection.execute(statement.encode())
            call = f"SELECT {function}({', '.join(['%s::jsonb'] * len(given))})"
            return (connection.execute(call.encode(), given).fetchone() or (None,))[0]

    def rows(user: str) -> list[object]:
        counts = ", ".join(
            f"(SELECT count(*) FROM {name} WHERE tenant = '{user}')" for name in tables
        )
        return [*server.execute(f"SELECT {counts}", database=shared)[0]]

    claim = 'SET request.jwt.claims = \'{"sub": "bob"}\''
    whole = [1] * len(tables)
    assert rows("ann") == rows("bob") == whole
    for role, *before in (("ann_program",), ("ann_program", claim), ("planner",), ("rest",)):
        assert deleted(role, "bob", *before) in (0, "")
    assert rows("bob") == whole
    deleted("planner", "ann")  # another agent of Ann: it sees what belongs to no partition
    assert rows("ann") == [1, 0] if function == "mesh_delete" else whole
    assert deleted("ann_program", "ann") in (1, "")
    assert rows("ann") == [0] * len(tables)
    assert rows("bob") == whole
    assert deleted("rest", "bob", claim) in (2, "")
    assert rows("bob") == [0] * len(tables)


def test_functions_with_the_rights_of_the_owner_are_few_and_only_granted_roles_may_delete(
    urls: dict[str, str],
) -> None:
    query = (
        "SELECT proname, proconfig::text ~ 'pg_temp\\W*$', has_function_privilege('pg_monitor', "
        "oid, 'EXECUTE'), has_function_privilege('ann_program', oid, 'EXECUTE') FROM pg_proc "
        "WHERE pronamespace = 'public'::regnamespace AND prosecdef ORDER BY 1"
    )
    with psycopg.connect(urls["keeper"]) as connection:
        found = connection.execute(query.encode()).fetchall()
    assert found == [
        ("mesh_caller", True, True, True),
        *((name, True, False, True) for name in sorted(DELETIONS)),
    ]


def test_a_program_of_a_user_does_everything_with_its_own_memories(
    server: Server, tenant: str
) -> None:
    url = server.url(tenant, user="greedy")

    def left(*names: str) -> set[object]:
        return {
            name
            for name in names
            if server.execute(
                f"SELECT 1 FROM {name} WHERE tenant = 'greedy' LIMIT 1", database=tenant
            )
        }

    with MemoryMesh(store=url, user_id="greedy", agent_id="planner", embedder="hash") as mesh:
        tea, port, city = mesh.add_many(
            [("Ann drinks green tea", {}), ("The port is 5432", {}), ("Ann lives in Oslo", {})]
        )
        mesh.update(tea.id, content="Ann drinks black tea")
        assert [hit.id for hit in mesh.search("black tea", limit=1)] == [tea.id]
        mesh.graph.store(
            "planner",
            "Ann moved to Bergen",
            claim={"subject": "ann", "predicate": "city", "value": "Bergen"},
        )
        mesh.graph.reinforce(tea.id)
        mesh.graph.archive(port.id)
        mesh.lane.feedback(
            mesh.lane.store("Never deploy on a Friday", memory_type="decision").id, "helpful"
        )
        mesh.delete(city.id)
        assert mesh.erase(tea.id, verify=True)
        assert mesh.get(tea.id) is None
        assert not mesh.compact()  # only the owner may
        assert {type(chain) for chain in mesh.verify()} == {Sound}
        mesh.forget(user_id="greedy", verify=True)
    assert left("memories", "memory_links", "keyword_segments", "keyword_lists") == set()
    own = [
        memory(f"g{at}", partition='["greedy", null]', user_id="greedy", keywords=["hush"])
        for at in range(2)
    ]
    with closing(PostgresStore(url)) as store:
        store.apply(own[:1])
        server.execute(
            f"UPDATE partitions SET version = {2 * KEPT_MOVES - 1} WHERE tenant = 'greedy'",
            database=tenant,
        )
        store.apply(own[1:])
        assert server.execute(
            "SELECT id FROM moves WHERE partition = '[\"greedy\", null]'", database=tenant
        ) == [("g1",)]
        store.apply(deletes=[row.key for row in own])
    assert left("memories", "keyword_segments", "keyword_lists") == set()


def test_a_role_that_was_a_server_loses_the_rights_with_which_it_could_lock_tables(
    server: Server, tenant: str
) -> None:
    lock = b"LOCK TABLE memories IN ACCESS EXCLUSIVE MODE"
    with closing(PostgresStore(server.keeper(tenant))) as store:
        admin.grant(store, "other", scope="server", user_id=None, agent_id=None)
        server.execute("GRANT TRUNCATE ON memories TO other", database=tenant)
        with psycopg.connect(server.url(tenant, user="other")) as other:
            other.execute(lock)
        admin.grant(store, "other", scope="user", user_id="other", agent_id=None)
        with (
            psycopg.connect(server.url(tenant, user="other")) as other,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            other.execute(lock)


def test_an_owner_that_acts_for_one_user_keeps_the_rights_that_the_functions_need(
    server: Server,
) -> None:
    database = server.database()
    own = memory("m1", partition='["ann", null]', user_id="ann")
    with closing(PostgresStore(server.keeper(database))) as store:
        admin.grant(store, "keeper", scope="user", user_id="ann", agent_id=None)
        store.apply([own])
        store.apply(deletes=[own.key])
        assert store.count(Kind.MEMORY) == 0


def test_where_a_server_has_no_rights_for_columns_a_role_keeps_those_to_tables(
    server: Server, urls: dict[str, str]
) -> None:
    """As Citus before 13.1, which refuses them: a trigger does so here."""
    database = server.database()
    own = memory("m1", partition='["ann", null]', user_id="ann")
    with closing(PostgresStore(server.keeper(database))) as store:
        store.prepare()
        refusal = (
            "CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN IF EXISTS "
            "(SELECT 1 FROM pg_attribute WHERE attrelid = 'memories'::regclass AND attacl IS NOT "
            "NULL) THEN RAISE feature_not_supported; END IF; END $$; CREATE EVENT TRIGGER refuse "
            "ON ddl_command_end WHEN TAG IN ('GRANT') EXECUTE FUNCTION refuse()"
        )
        server.execute(refusal, database=database)
        admin.grant(store, "ann_program", scope="user", user_id="ann", agent_id=None)
    with closing(PostgresStore(server.url(database, user="ann_program"))) as store:
        store.apply([own])
        store.apply(deletes=[own.key])
        assert store.count(Kind.MEMORY) == 0
    with psycopg.connect(server.url(database, user="ann_program")) as connection:
        # What docs/postgres.md says of it.
        connection.execute("LOCK TABLE memories IN ACCESS EXCLUSIVE MODE")
    server.execute("DROP OWNED BY ann_program", database=database)


# --- what one program can take from the others ---


def test_a_program_that_takes_connections_without_end_leaves_those_of_others(
    server: Server, tenant: str
) -> None:
    database, taken = tenant, list[psycopg.Connection[tuple[object, ...]]]()
    try:
        taken += [
            psycopg.connect(server.url(database, user="greedy"))
            for _ in range(admin.MAX_CONNECTIONS)
        ]
        with pytest.raises(psycopg.OperationalError, match="too many connections for role"):
            psycopg.connect(server.url(database, user="greedy"))
        with closing(PostgresStore(server.keeper(database))) as store:
            store.apply([memory("m1")])
        with (
            psycopg.connect(server.url(database, user="other")) as other,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            other.execute("ALTER ROLE other CONNECTION LIMIT 50")
    finally:
        for connection in taken:
            connection.close()


STRONG = ("SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE")


@pytest.mark.parametrize("mode", STRONG)
def test_a_program_of_a_user_locks_no_table_against_others(urls: dict[str, str], mode: str) -> None:
    for name in (*ALL, "mesh_migrations", "mesh_roles", "memory_archive"):
        lock = f"LOCK TABLE {name} IN {mode} MODE".encode()
        for role in ("ann_program", "planner"):
            with (
                psycopg.connect(urls[role]) as connection,
                pytest.raises(psycopg.errors.InsufficientPrivilege),
            ):
                connection.execute(lock)
        with psycopg.connect(urls["keeper"]) as owner:
            owner.execute(lock)
    # Every program may lock as its own writes do.
    with psycopg.connect(urls["ann_program"]) as connection:
        connection.execute(f"LOCK TABLE {', '.join(ALL)} IN ROW EXCLUSIVE MODE".encode())


# What a program of one user can hold, in a transaction that it does not end.
LOCKS = {
    "its rows": "SELECT 1 FROM partitions FOR UPDATE",
    "rows that it writes": INSERT.format(
        tenant="greedy", partition='["greedy", null]', user="'greedy'"
    ),
    "the tables as a write does": f"LOCK TABLE {', '.join(ALL)} IN ROW EXCLUSIVE MODE",
    "the lock under which tables are created": f"SELECT pg_advisory_lock({tables.LOCK})",
}


@pytest.mark.parametrize("lock", LOCKS)
def test_no_lock_that_a_program_can_hold_keeps_others_from_reading_and_writing(
    server: Server, tenant: str, lock: str
) -> None:
    with closing(PostgresStore(server.keeper(tenant), busy_seconds=0.2)) as store:
        store.apply([memory("m2")])
        with psycopg.connect(server.url(tenant, user="greedy")) as greedy:
            greedy.execute(LOCKS[lock].encode())
            store.apply([memory("m3")])
            assert {*store.ids(Kind.MEMORY)} >= {"m2", "m3"}
            store.apply(deletes=[row.key for row in store.find(Kind.MEMORY)])
            greedy.rollback()
        assert store.count(Kind.MEMORY) == 0


def test_a_lock_of_the_owner_keeps_others_no_longer_than_they_wait_for_a_busy_store(
    server: Server, tenant: str
) -> None:
    with closing(PostgresStore(server.url(tenant, user="other"), busy_seconds=0.2)) as store:
        own = memory("m2", partition='["other", null]', user_id="other")
        with psycopg.connect(server.keeper(tenant)) as keeper:
            keeper.execute("LOCK TABLE memories IN ACCESS EXCLUSIVE MODE")
            for use in (lambda: store.apply([own]), lambda: store.find(Kind.MEMORY)):
                with pytest.raises(StoreBusy):
                    use()
        store.apply([own])
        store.apply(deletes=[own.key])


def test_an_open_transaction_of_a_program_makes_only_the_owner_wait_who_rewrites_or_creates_tables(
    server: Server, tenant: str
) -> None:
    elsewhere = f"{server.keeper(tenant)}?schema=elsewhere"
    with (
        closing(PostgresStore(server.keeper(tenant), busy_seconds=0.2)) as store,
        closing(PostgresStore(elsewhere, busy_seconds=0.2)) as new,
    ):
        with psycopg.connect(server.url(tenant, user="greedy")) as greedy:
            greedy.execute("SELECT count(*) FROM memories")
            assert not store.compact()
            greedy.execute("SELECT pg_advisory_lock(%s)", (tables.LOCK,))
            with pytest.raises(StoreBusy):
                new.prepare()
        assert store.compact()
        new.prepare()


def test_a_transaction_that_its_program_leaves_open_ends(server: Server, tenant: str) -> None:
    with psycopg.connect(server.url(tenant, user="greedy"), autocommit=True) as greedy:
        found = {name: greedy.execute(f"SHOW {name}").fetchone() for name in admin.TIMEOUTS}
        assert found == {name: (value,) for name, value in admin.TIMEOUTS.items()}
        # Not to wait as long as the limit is.
        greedy.execute("SET idle_in_transaction_session_timeout = '50ms'")
        greedy.execute("BEGIN")
        greedy.execute("SELECT count(*) FROM memories")
        with closing(PostgresStore(server.keeper(tenant), busy_seconds=60)) as store:
            assert store.compact(), "it waited for the transaction"
        with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
            greedy.execute("SELECT 1")


def test_the_times_of_a_role_are_limited_in_the_database_of_the_memory_only(
    server: Server, tenant: str
) -> None:
    """The same role may run long reports elsewhere."""
    elsewhere = server.database()
    with psycopg.connect(server.url(elsewhere, user="greedy"), autocommit=True) as greedy:
        assert {greedy.execute(f"SHOW {name}").fetchone() for name in admin.TIMEOUTS} == {("0",)}
    server.execute(f"ALTER ROLE other IN DATABASE {elsewhere} SET lock_timeout = '5s'")
    server.execute(f"ALTER ROLE other IN DATABASE {tenant} RESET lock_timeout")
    with closing(PostgresStore(server.keeper(tenant))) as store:
        assert admin.grant(store, "other", scope="user", user_id="other", agent_id=None) == []
    with psycopg.connect(server.url(tenant, user="other"), autocommit=True) as other:
        assert other.execute("SHOW lock_timeout").fetchone() == (admin.TIMEOUTS["lock_timeout"],)


@pytest.fixture(scope="module")
def tenant(server: Server) -> Iterator[str]:
    """A database with roles of two users, to which its owner, who administers roles, has let
    them."""
    database = server.database()
    server.execute("ALTER ROLE keeper CREATEROLE")
    with psycopg.connect(server.keeper(database), autocommit=True) as keeper:
        for role in ("greedy", "other"):
            keeper.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'".encode())
    with closing(PostgresStore(server.keeper(database))) as store:
        for role in ("greedy", "other"):
            assert admin.grant(store, role, scope="user", user_id=role, agent_id=None) == []
    yield database
    server.execute("ALTER ROLE keeper NOCREATEROLE")
    for role in ("greedy", "other"):
        server.execute(f"DROP OWNED BY {role}", database=database)
        server.execute(f"DROP ROLE {role}")


def test_limits_that_an_operator_has_set_stay_and_those_that_the_owner_may_not_set_are_returned(
    server: Server,
) -> None:
    database = server.database()
    server.execute("CREATE ROLE limited LOGIN CONNECTION LIMIT 3")
    server.execute("ALTER ROLE limited SET lock_timeout = '5s'")
    with closing(PostgresStore(server.keeper(database))) as store:
        left = admin.grant(store, "limited", scope="user", user_id="l", agent_id=None)
        assert [*map(str.split, left)] == [
            [
                "ALTER",
                "ROLE",
                '"limited"',
                "IN",
                "DATABASE",
                f'"{database}"',
                "SET",
                f'"{name}"',
                "TO",
                f"'{value}'",
            ]
            for name, value in admin.TIMEOUTS.items()
            if name != "lock_timeout"
        ]
        assert admin.grant(store, "limited", scope="server", user_id=None, agent_id=None) == []
    for statement in left:
        server.execute(statement)
    with closing(PostgresStore(server.keeper(database))) as store:
        assert admin.grant(store, "limited", scope="user", user_id="l", agent_id=None) == []
    assert server.execute("SELECT rolconnlimit FROM pg_roles WHERE rolname = 'limited'") == [(3,)]
    server.execute("DROP OWNED BY limited", database=database)
    server.execute("DROP ROLE limited")
