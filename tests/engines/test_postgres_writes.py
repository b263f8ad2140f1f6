"""What a write sends to PostgreSQL, and what it learns from the answer."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from engines.postgres import Server
from memory_mesh import MemoryMesh, Sound
from memory_mesh.core.model import In, Kind
from memory_mesh.stores.postgres import PostgresStore
from memory_mesh.stores.postgres import store as module
from memory_mesh.testing.rows import memory

pytestmark = pytest.mark.deep


@pytest.fixture
def quiet() -> Iterator[Server]:
    """A server without the transactions of its own housekeeping."""
    server = Server(settings="autovacuum = off\n")
    yield server
    server.remove()


def test_an_add_asks_for_the_version_and_the_same_text_and_then_writes(
    quiet: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, real = list[str](), module._called

    def called(connection, schema, function, *given):  # type: ignore[no-untyped-def]
        calls.append(function)
        return real(connection, schema, function, *given)

    with MemoryMesh(store=quiet.keeper(quiet.database())) as mesh:
        mesh.add("The first text.")  # creates the tables
        mesh.add("The second text.")
        monkeypatch.setattr(module, "_called", called)
        mesh.add("The third text.")
        assert calls == ["mesh_data_version", "mesh_find", "mesh_apply"]
        assert [type(chain) for chain in mesh.verify()] == [Sound]


def test_a_write_knows_the_data_version_that_it_leads_to(quiet: Server) -> None:
    database = quiet.database()
    with (
        closing(PostgresStore(quiet.keeper(database))) as store,
        closing(PostgresStore(quiet.keeper(database))) as other,
    ):
        store.prepare()
        known = store.data_version()
        applied = store.apply([memory("m1")])
        assert (applied.before, applied.after) == (known, store.data_version())
        other.apply([memory("m2", partition="q")])
        assert store.data_version() != applied.after
        assert store.apply([memory("m3")]).before != applied.after


def test_a_transaction_that_is_still_open_changes_the_data_version_when_it_ends(
    quiet: Server,
) -> None:
    database = quiet.database()
    with (
        closing(PostgresStore(quiet.keeper(database))) as store,
        psycopg.connect(quiet.keeper(database)) as open_,
    ):
        store.prepare()
        open_.execute("SELECT pg_current_xact_id()")
        # It began after the last one that ended.
        assert store.apply([memory("m1")]).after is None
        known = store.data_version()
        applied = store.apply([memory("m2")])
        later = store.apply([memory("m3")])
        assert (known, applied.after) == (applied.before, later.before)
        assert store.data_version() == later.after
        open_.commit()
        assert store.data_version() != later.after


def test_a_later_transaction_that_ends_first_leaves_the_data_version_unknown(
    quiet: Server,
) -> None:
    database = quiet.database()
    url = quiet.keeper(database)
    with closing(PostgresStore(url)) as store:
        store.prepare()
        with psycopg.connect(url) as early:
            early.execute("SELECT pg_current_xact_id()")
            store.apply([memory("m1")])
            found = early.execute("SELECT before, after FROM mesh_data_versions()").fetchone()
        assert found == (None, None)


def test_vectors_of_some_rows_of_a_change_come_back_as_they_were(quiet: Server) -> None:
    rows = [
        memory("m1", vector=[0.1, -2.5, 1e-30]),
        memory("m2"),
        memory("m3", vector=[3.0], model="another"),
    ]
    with closing(PostgresStore(quiet.keeper(quiet.database()))) as store:
        store.apply(rows)
        found = store.get(Kind.MEMORY, ["m1", "m2", "m3"])
        assert [row.vector for row in found.values()] == [row.vector for row in rows]


def test_memories_with_one_of_some_fingerprints_are_found_as_by_any_other_condition(
    quiet: Server,
) -> None:
    rows = [
        memory(f"m{at}", partition="pq"[at % 2], number=at, fingerprint=name)
        for at, name in enumerate(["one", "one", "two", "three", None, "one"])
    ]
    where = In("fingerprint", ("one", "three", "one", "none"))
    with closing(PostgresStore(quiet.keeper(quiet.database()))) as store:
        store.apply(rows)
        found = store.find(Kind.MEMORY, where)
        assert {row.id for row in found} == {"m0", "m1", "m3", "m5"}
        assert found == store.find(Kind.MEMORY, where, limit=9)
        assert found[2:] == store.find(Kind.MEMORY, where, after=found[1])
