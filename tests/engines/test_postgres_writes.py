"""What a write sends to PostgreSQL, and what it learns from the answer."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import psycopg
import pytest

from engines.postgres import Server
from memory_mesh import MemoryMesh, Sound
from memory_mesh.core.errors import Conflict, KeyReused, ModelMismatch
from memory_mesh.core.model import In, Kind, Meta, Row
from memory_mesh.core.ports import Assumed
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


@dataclass
class Letters:
    """An embedder, and perhaps the one of the version before."""

    model: str
    older: "Letters | None" = None
    window = 512

    def count(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, float(len(text)), float(len(self.model))] for text in texts]

    def of_model(self, model: str) -> "Letters | None":
        return self.older if self.older and self.older.model == model else None


def test_an_add_is_one_statement(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, real = list[str](), module._called

    def called(connection, schema, function, *given):  # type: ignore[no-untyped-def]
        calls.append(function)
        return real(connection, schema, function, *given)

    url = server.keeper(server.database())
    with MemoryMesh(store=url, embedder=Letters("letters")) as mesh:
        mesh.add("The first text.")  # creates the tables, and sets the model
        mesh.add("The second text.")
        mesh.search("the first text")
        monkeypatch.setattr(module, "_called", called)
        mesh.add("The third text.")
        mesh.add("The fourth text.", idempotency_key="fourth")
        assert calls == ["mesh_apply", "mesh_apply"]
        assert [type(chain) for chain in mesh.verify()] == [Sound]


def test_what_another_program_stored_meanwhile_is_read_after_all(server: Server) -> None:
    url = server.keeper(server.database())
    # Meshes with equal options would share what they know.
    with MemoryMesh(store=url) as one, MemoryMesh(store=url, max_content_chars=999) as other:
        first = one.add("The first text.", idempotency_key="first")
        other.add("The second text.")
        assert one.add("The second text.").times_observed == 2
        one.add("The third text.")
        assert other.add("The first text.", idempotency_key="first").id == first.id
        with pytest.raises(KeyReused):
            other.add("Another text.", idempotency_key="first")
        other.add("The fourth text.")
        one.add("The fifth text.")
        assert len(one.get_all()) == 5
        assert [type(chain) for chain in other.verify()] == [Sound]


def test_a_program_that_knows_an_outdated_model_writes_vectors_of_the_new_one(
    server: Server,
) -> None:
    url, old = server.keeper(server.database()), Letters("old")
    with (
        MemoryMesh(store=url, embedder=old) as earlier,
        MemoryMesh(store=url, embedder=Letters("new", old)) as either,
        MemoryMesh(store=url, embedder=Letters("new")) as later,
        closing(PostgresStore(url)) as store,
    ):
        earlier.add("The first text.")
        for text in ("The second text.", "The third text."):
            either.add(text)
        with pytest.raises(ModelMismatch):
            later.add("The fourth text.")
        later.reembed()
        ids = [either.add("The fourth text.").id, later.add("The fifth text.").id]
        with pytest.raises(ModelMismatch):
            earlier.add("The sixth text.")
        found = store.get(Kind.MEMORY, ids).values()
        assert [row.vector and row.vector.model for row in found] == ["new", "new"]


def test_a_write_that_assumes_what_is_not_so_is_refused(server: Server) -> None:
    entry = Meta(id="model", created_at="2026-01-01T00:00:00.000Z")
    with closing(PostgresStore(server.keeper(server.database()))) as store:
        archived = memory("m2", fingerprint="f2", status="archived")
        row = entry.row({"model": "one", "size": 3}, at=entry.created_at)
        store.apply([memory("m1", fingerprint="f1", status="active"), archived, row])
        stored = Meta.read(store, "model")
        # Equal numbers of another history, as after a backup was restored.
        another, missing = replace(stored, detail={"model": "two"}), replace(stored, id="none")
        for wrong in (["f0", "f1"], [another.stored], [stored.stored, missing.stored]):
            is_rows = isinstance(wrong[0], Row)
            assumed = Assumed(rows=wrong) if is_rows else Assumed(wrong)  # type: ignore[arg-type]
            with pytest.raises(Conflict):
                store.apply([memory("m3")], assumed=assumed)
        store.apply([memory("m3")], assumed=Assumed(["f0", "f2"], [stored.stored]))
        assert sorted(store.ids(Kind.MEMORY)) == ["m1", "m2", "m3"]


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
