"""The PostgreSQL store when something fails: clear errors without the password, nothing
half-written, nothing lost."""

import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep

import psycopg
import pytest

from engines.postgres import Server
from memory_mesh import MemoryMesh, Sound
from memory_mesh.core.errors import (
    InvalidInput,
    StoreBusy,
    StoreError,
    StoreForeign,
    StoreMissing,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
)
from memory_mesh.core.model import Kind
from memory_mesh.stores import open_store
from memory_mesh.stores.postgres import PostgresStore
from memory_mesh.stores.postgres.tables import VERSION, encoded
from memory_mesh.testing.rows import memory, plain, query

pytestmark = pytest.mark.deep


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that the test may kill."""
    server = Server()
    yield server
    server.remove()


WRONG: dict[str, tuple[str, type[StoreError | InvalidInput], str]] = {
    "password": (
        "postgresql://keeper:hunter2@127.0.0.1:{port}/postgres",
        StoreUnavailable,
        "password authentication failed",
    ),
    "unescaped @": ("postgresql://keeper:x@hunter2@127.0.0.1:{port}/postgres", InvalidInput, "%40"),
    "unescaped /": ("postgresql://keeper:hunter2/x@127.0.0.1:{port}/postgres", InvalidInput, "%2F"),
    "unescaped %": (
        "postgresql://keeper:%hunter2@127.0.0.1:{port}/postgres",
        InvalidInput,
        "not a URL",
    ),
    "user": (
        "postgres://mallory:hunter2@127.0.0.1:{port}/postgres",
        StoreUnavailable,
        "password authentication failed",
    ),
    "database": (
        "postgresql://keeper:secret@127.0.0.1:{port}/nowhere",
        StoreUnavailable,
        'database "nowhere" does not exist',
    ),
    "port": (
        "postgresql://keeper:hunter2@127.0.0.1:1/postgres",
        StoreUnavailable,
        "Connection refused",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_url_is_a_clear_error_without_the_password(server: Server, what: str) -> None:
    url, kind, message = WRONG[what]
    with (
        pytest.raises(kind, match=message) as raised,
        closing(open_store(url.format(port=server.port))) as store,
    ):
        store.count(Kind.MEMORY)
    chained = raised.value
    while chained:
        assert "hunter2" not in str(chained)
        assert "secret" not in str(chained)
        chained = chained.__cause__


@pytest.mark.parametrize(
    "url", ["postgresql://h/d?schema=", "postgresql://h/d?mode=x", "postgresql://h/d?what=x"]
)
def test_a_url_that_cannot_be_read_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="expected"):
        open_store(url)


def test_a_table_of_another_program_is_refused_and_a_vector_of_zeros_is_not_the_most_similar(
    server: Server,
) -> None:
    database = server.database()
    server.execute("CREATE TABLE public.memories (id int)", database=database)
    with (
        closing(PostgresStore(server.keeper(database))) as store,
        pytest.raises(StoreForeign, match="schema"),
    ):
        store.apply([memory("m1")])
    assert server.execute("SELECT * FROM public.memories", database=database) == []
    with closing(PostgresStore(f"{server.keeper(database)}?schema=own")) as store:
        store.apply(
            [
                memory(name, vector=vector, status="active")
                for name, vector in (("zero", [0, 0]), ("near", [1, 0]))
            ]
        )
    with psycopg.connect(server.keeper(database)) as connection:
        for function in ("own.search_memories_semantic", "own.search_memories_global"):
            found = connection.execute(
                f"SELECT id, similarity FROM {function}('[1,0]')".encode()
            ).fetchall()
            assert found == [("near", 1.0), ("zero", 0.0)]


def test_tables_of_a_second_schema_leave_those_of_the_first_alone(server: Server) -> None:
    """A name without its schema would mean a table or an index of the first one: that is in the
    search path too."""
    database = server.database()
    there = (
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' "
        "UNION SELECT indexname FROM pg_indexes WHERE schemaname = 'public'"
    )
    with closing(PostgresStore(server.keeper(database))) as store:
        store.prepare()
    before = server.execute(there, database=database)
    assert {("keyword_lists",), ("keyword_segments",), ("memories_by_id",)} <= {*before}
    with closing(PostgresStore(f"{server.keeper(database)}?schema=elsewhere")) as store:
        store.prepare()
    assert {*server.execute(there, database=database)} == {*before}


def test_reads_do_not_create_tables_and_a_role_that_may_not_says_what_to_do(
    server: Server, tmp_path: Path
) -> None:
    database = server.database()
    url = server.keeper(database)
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    for strict in ({"store": url, "must_exist": True}, {"store": f"{url}?mode=ro"}):
        with (
            pytest.raises(StoreMissing, match="postgres prepare"),
            MemoryMesh(**strict, embedder="none") as mesh,  # type: ignore[arg-type]
        ):
            mesh.search("tea")
    with MemoryMesh(store=url, embedder="none") as mesh:
        assert mesh.search("tea") == mesh.get_all() == mesh.lane.find("tea") == []
        assert mesh.stats().total_memories == 0
        assert [json.loads(line) for line in mesh.export_store()][-1]["end"]["rows"] == {}
        for use in (lambda: mesh.forget(user_id="ana"), lambda: mesh.backup(tmp_path / "copy")):
            with pytest.raises(StoreMissing, match="postgres prepare"):
                use()
    assert server.execute(tables, database=database) == []
    server.execute("CREATE ROLE guest LOGIN PASSWORD 'secret'")
    guest = server.url(database, user="guest")
    with closing(open_store(guest)) as store:
        assert store.find(Kind.MEMORY) == []
        with pytest.raises(StoreReadOnly, match="postgres prepare"):
            store.apply([memory("m1")])
    with closing(open_store(url)) as store:
        store.apply([memory("m1")])
    with closing(open_store(guest)) as store, pytest.raises(StoreReadOnly, match="postgres grant"):
        store.find(Kind.MEMORY)
    with closing(open_store(f"{url}?mode=ro")) as store:
        assert store.count(Kind.MEMORY) == 1
        with pytest.raises(StoreReadOnly, match="mode=ro"):
            store.apply([memory("m2")])


def test_two_versions_of_the_program_do_not_mix(server: Server) -> None:
    """An open store of this version notices the tables of a newer one at its next call."""
    database = server.database()
    with closing(PostgresStore(server.keeper(database))) as store:
        store.apply([memory("m1")])
        number = VERSION + 1
        newer = server.execute(
            "SELECT pg_get_functiondef('mesh_check'::regproc)", database=database
        )[0][0]
        server.execute(str(newer).replace(f"'{VERSION}'", f"'{number}'"), database=database)
        server.execute(f"INSERT INTO mesh_migrations VALUES ({number})", database=database)
        for use in (lambda: store.apply([memory("m2")]), lambda: store.find(Kind.MEMORY)):
            with pytest.raises(StoreTooNew, match="upgrade memory-mesh"):
                use()
    with (
        closing(PostgresStore(server.keeper(database))) as store,
        pytest.raises(StoreTooNew, match=f"has schema {VERSION + 1}"),
    ):
        store.find(Kind.MEMORY)
    assert server.execute("SELECT count(*) FROM memories", database=database) == [(1,)]


def test_vectors_of_two_dimensions_and_models_live_side_by_side(server: Server) -> None:
    with closing(PostgresStore(server.keeper(server.database()))) as store:
        store.apply([memory("two", vector=[1, 0]), memory("three", vector=[1, 0, 0])])
        assert [hit.id for hit in store.nearest(Kind.MEMORY, query(1, 0), limit=9)] == ["two"]
        store.apply([memory("two", vector=[0, 0, 1], revision=2, replaces=1)])
        assert [hit.id for hit in store.nearest(Kind.MEMORY, query(0, 0, 1), limit=9)] == [
            "two",
            "three",
        ]
        with pytest.raises(InvalidInput, match="dimensions"):
            store.apply([memory("large", vector=[1.0] * 16_001)])
        assert store.count(Kind.MEMORY) == 2


def test_a_server_without_free_connections_is_busy(server: Server) -> None:
    database = server.database()
    with closing(PostgresStore(server.keeper(database))) as store:
        store.apply([memory("m1")])
    server.execute("ALTER ROLE keeper CONNECTION LIMIT 1")
    try:
        store = PostgresStore(server.keeper(database), busy_seconds=0.2)
        with (
            psycopg.connect(server.keeper(database)),
            pytest.raises(StoreBusy, match="too many connections"),
        ):
            store.apply([memory("m2")])
        with closing(PostgresStore(server.keeper(database))) as store:
            store.apply([memory("m2")])
    finally:
        server.execute("ALTER ROLE keeper CONNECTION LIMIT -1")


def test_a_store_goes_on_after_a_restart_of_the_server(own_server: Server) -> None:
    with closing(PostgresStore(own_server.keeper(own_server.database()))) as store:
        store.apply([memory("m1")])
        own_server.stop()
        with pytest.raises(StoreUnavailable, match="check that the server is running"):
            store.find(Kind.MEMORY)
        own_server.start()
        assert store.count(Kind.MEMORY) == 1
        before = store.data_version()
        assert store.data_version() == before
        own_server.stop()
        own_server.start()
        with suppress(StoreUnavailable):  # the connection is gone
            store.data_version()
        assert store.data_version() != before  # it may give numbers again that it gave before
        store.apply([memory("m2")])
        assert store.version("p") == 2


def test_a_write_whose_connection_is_lost_is_done_once(server: Server) -> None:
    """The server ends the connection right after the commit: the log shows the retry that it was
    done."""
    database = server.database()
    with closing(PostgresStore(server.keeper(database))) as store:
        store.apply([memory("m1")])
        commits = _lost_after_commit(store)
        store.apply([memory("m2")], seen={"p": 1})
        assert commits == ["mesh_apply", "mesh_apply"]
        assert (store.version("p"), store.count(Kind.MEMORY)) == (2, 2)
        _lost_after_commit(store)
        with pytest.raises(StoreUnavailable, match="may have been done or not"):
            store.apply([plain(Kind.META, "m")])  # the log has no bookkeeping


@pytest.mark.parametrize("call", ["search", "add"])
def test_a_call_whose_connection_is_killed_while_the_server_works_is_done_once(
    server: Server, call: str
) -> None:
    database = server.database()
    url = server.keeper(database)
    waiting = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name "
        "= 'memory-mesh' AND wait_event_type = 'Lock'"
    )
    with MemoryMesh(store=url, embedder="hash") as mesh, psycopg.connect(url) as other:
        mesh.add("The harbour opens at nine.")
        calls = {
            "search": lambda: mesh.search("harbour", use_cache=False)[0].content,
            "add": lambda: mesh.add("The harbour closes at ten.").content,
        }
        other.execute("LOCK TABLE memories")  # the call waits in the middle of its work
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(calls[call])
            until = monotonic() + 60
            while not (pids := server.execute(waiting, database=database)):
                assert monotonic() < until
                sleep(0.01)
            server.execute(f"SELECT pg_terminate_backend({pids[0][0]})", database=database)
            other.rollback()
            assert answer.result(60).startswith("The harbour")
        stored = server.execute("SELECT count(*) FROM memories", database=database)
        assert stored == [(2 if call == "add" else 1,)]
        assert [type(chain) for chain in mesh.verify()] == [Sound]


def test_eight_threads_search_while_a_long_write_is_not_committed(server: Server) -> None:
    database = server.database()
    url = server.keeper(database)
    rows = [
        encoded(memory(f"m{at}", partition="[null, null]", keywords=["harbour"]), at)
        for at in range(500)
    ]
    payload = {"schema": VERSION, "nonce": "long", "puts": rows}
    with MemoryMesh(store=url, embedder="hash") as mesh, psycopg.connect(url) as other:
        mesh.add_many([(f"Ship {at} reached the harbour.", {}) for at in range(20)])
        other.execute("SELECT mesh_apply('', %s::jsonb)", (json.dumps(payload),))

        texts = [f"Ship {at} reached the harbour." for at in range(20)] * 4
        with ThreadPoolExecutor(8) as pool:
            found = [*pool.map(lambda text: mesh.search(text, use_cache=False)[0].content, texts)]
        assert found == texts
        other.commit()
        assert server.execute("SELECT count(*) FROM memories", database=database) == [(520,)]


def _lost_after_commit(store: PostgresStore) -> list[str]:
    """Let the next write of a store lose its connection after the commit. Return the list of
    writes, which grows."""
    from memory_mesh.stores.postgres import store as module

    calls, real = list[str](), module._called

    def called(connection, schema, function, *given):  # type: ignore[no-untyped-def]
        answer = real(connection, schema, function, *given)
        if function == "mesh_apply":
            calls.append(function)
            if len(calls) == 1:
                connection.close()
                raise psycopg.OperationalError("the connection is lost")
            module._called = real
        return answer

    module._called = called
    return calls


def test_what_was_acknowledged_before_the_server_was_killed_is_there_and_nothing_is_half_written(
    own_server: Server,
) -> None:
    url = own_server.keeper(own_server.database())
    acknowledged, over = list[int](), Event()

    def write() -> None:
        with closing(PostgresStore(url, busy_seconds=0.5)) as store:
            for turn in range(10_000):
                try:
                    store.apply([memory(f"t{turn}", ["word"]), memory(f"u{turn}", ["word"])])
                except StoreUnavailable:
                    break
                acknowledged.append(turn)
                if len(acknowledged) > 30:
                    over.set()

    writer = Thread(target=write)
    writer.start()
    assert over.wait(60)
    own_server.stop(signal.SIGQUIT)
    writer.join(60)
    own_server.start()
    with closing(PostgresStore(url)) as store:
        ids = {*store.ids(Kind.MEMORY)}
        assert {f"{half}{turn}" for turn in acknowledged for half in "tu"} <= ids
        assert {id_[1:] for id_ in ids if id_[0] == "t"} == {
            id_[1:] for id_ in ids if id_[0] == "u"
        }
        assert store.version("p") == len(ids)
        store.apply([memory("after")])


def _remember(url: str, name: str, count: int) -> None:
    with MemoryMesh(store=url, agent_id=name, embedder="none") as mesh:
        for turn in range(count):
            mesh.add(f"{name} saw number {turn}")


def test_four_processes_write_and_one_is_killed(server: Server) -> None:
    url, spawn = server.keeper(server.database()), get_context("spawn")
    with MemoryMesh(store=url, agent_id="first", embedder="none") as mesh:
        mesh.add("the first")
    children = [
        spawn.Process(target=_remember, args=(url, f"agent{n}", 10_000 if n == 3 else 12))
        for n in range(4)
    ]
    for child in children:
        child.start()
    try:
        for child in children[:3]:
            child.join(120)
            assert child.exitcode == 0
    finally:
        children[3].kill()
        children[3].join()
    with MemoryMesh(store=url, agent_id="first", embedder="none") as mesh:
        assert {type(chain) for chain in mesh.verify()} == {Sound}
    with closing(PostgresStore(url)) as store:
        by_agent = [str(row.fields["agent_id"]) for row in store.find(Kind.MEMORY)]
        assert [by_agent.count(f"agent{n}") for n in range(3)] == [12] * 3
        assert sum(
            store.version(name) for name in {row.partition for row in store.find(Kind.MEMORY)}
        ) >= len(by_agent)
