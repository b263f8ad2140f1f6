"""Freeing bytes: a deletion leaves them to a rewrite of the file for many deletions at once, and
a crash forgets none of them."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from signal import SIGKILL

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.model import Key, Kind
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores.sqlite import SqliteStore
from memory_mesh.stores.sqlite import store as sqlite

from .children import Child, bytes_of, together, url
from .sound import assert_sound

pytestmark = pytest.mark.req("MESH-011")

SECRET = "The heron nests behind the boathouse."


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store with the secret as its memory "heron", and others."""
    file = tmp_path / "memory.db"
    with open_mesh(file) as mesh:
        mesh.add_many(
            [(f"The boat number {n} is moored at pier {n} " + "x" * 300, None) for n in range(60)]
        )
        mesh.add(SECRET, {"tags": ["ardea"]}, key="heron")
    assert is_in_files(file)
    return file


@pytest.fixture
def mesh(file: Path) -> Iterator[MemoryMesh]:
    with open_mesh(file) as mesh:
        yield mesh


def open_mesh(file: Path) -> MemoryMesh:
    return MemoryMesh(store=url(file), agent_id="one")


def is_in_files(file: Path) -> bool:
    stored = bytes_of(file)
    return any(word in stored for word in (b"heron", b"ardea"))


def texts_of(mesh: MemoryMesh) -> str:
    """Everything that the read calls return."""
    found = [
        mesh.get(key="heron"),
        mesh.get_all(),
        mesh.search("behind the boathouse"),
        mesh.search("boat", limit=80),
    ]
    return "\n".join(
        map(str, [*found, mesh.explain("boathouse"), [*mesh.export()], mesh.audit_log(limit=200)])
    )


def test_a_deleted_memory_is_found_by_no_call_while_its_bytes_wait_for_the_close(
    file: Path, mesh: MemoryMesh
) -> None:
    record = mesh.get(key="heron")
    assert record
    assert SECRET in texts_of(mesh)
    mesh.clear_cache()
    mesh.delete(record.id)
    with MemoryMesh(store=f"{url(file)}?mode=ro", agent_id="one") as other:
        for reader in (mesh, other):
            assert SECRET not in texts_of(reader)
            assert reader.get(record.id) is None
    assert is_in_files(file)
    mesh.close()
    assert not is_in_files(file)
    with closing(SqliteStore(file, read_only=True)) as store:
        assert not store.has_deleted_bytes()
    assert_sound(file)


REWRITES: dict[str, Callable[[MemoryMesh, Path], object]] = {
    "compact": lambda mesh, _: mesh.compact(),
    "the heartbeat": lambda mesh, _: mesh.heartbeat(jobs=["compaction"], force=True),
    "an erasure": lambda mesh, _: mesh.erase(mesh.get_all(limit=1)[0].id),
    "the next opening": lambda _, file: SqliteStore(file)._disconnect(),
}


@pytest.mark.parametrize("way", REWRITES)
def test_the_bytes_of_all_deletions_go_with_one_rewrite(
    file: Path, mesh: MemoryMesh, way: str
) -> None:
    gone = mesh.add("A second heron was seen on pier seven.").id
    mesh.delete(key="heron")
    mesh.delete(gone)
    assert is_in_files(file)
    assert mesh._context().store.has_deleted_bytes()
    REWRITES[way](mesh, file)
    assert not is_in_files(file)
    assert not mesh._context().store.has_deleted_bytes()


@pytest.mark.req("MESH-044")
@pytest.mark.parametrize("step", ["store.committed", "flow.applied"])
def test_a_process_killed_after_a_deletion_leaves_the_bytes_to_the_next_opening(
    file: Path, step: str
) -> None:
    with Child(
        "calls", store=url(file), agent="one", calls=[("delete", {"key": "heron"})], crash=(step, 1)
    ) as child:
        assert child.end() == -SIGKILL
    assert is_in_files(file)
    with open_mesh(file) as mesh:
        assert not is_in_files(file)
        assert mesh.get(key="heron") is None
    assert_sound(file)


def test_a_large_file_is_rewritten_by_compact_and_by_erase_only(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_MAX_REWRITTEN_ON_OPENING", "_MAX_REWRITTEN_ON_CLOSING"):
        monkeypatch.setattr(sqlite, name, 0)
    with open_mesh(file) as mesh:
        kept = {record.id for record in mesh.get_all(limit=100) if record.content != SECRET}
        mesh.delete(key="heron")
    with open_mesh(file) as mesh:
        assert mesh._context().store.has_deleted_bytes()
        assert mesh.compact() is True
        assert not is_in_files(file)
        assert {record.id for record in mesh.get_all(limit=100)} == kept
        secret = mesh.add(SECRET).id
        assert mesh.erase(secret).bytes_freed is True
        assert not is_in_files(file)


def test_closing_a_store_that_another_process_reads_leaves_the_bytes_to_the_next_user_at_once(
    file: Path,
) -> None:
    with Child("hold", file=str(file), begin="BEGIN") as reader:
        assert reader.hear() == "held"
        with MemoryMesh(store=url(file), agent_id="one", busy_seconds=60) as mesh:
            mesh.delete(key="heron")
            began = time.monotonic()
        assert time.monotonic() - began < 30
        assert is_in_files(file)
        reader.tell()
        assert reader.hear() == "let go"
    with open_mesh(file):
        assert not is_in_files(file)


def test_opening_a_store_that_another_process_writes_to_does_not_wait_to_free_bytes(
    file: Path,
) -> None:
    with closing(SqliteStore(file)) as store:
        delete_heron(store)
        store._disconnect()  # as after a kill
        with Child("hold", file=str(file), begin="BEGIN IMMEDIATE") as writer:
            assert writer.hear() == "held"
            began = time.monotonic()
            with closing(SqliteStore(file, busy_seconds=60)) as other:
                assert other.count(Kind.MEMORY) == 60
                assert other.has_deleted_bytes()
            assert time.monotonic() - began < 30
    with open_mesh(file) as mesh:
        assert not mesh._context().store.has_deleted_bytes()
        assert not is_in_files(file)


def delete_heron(store: SqliteStore) -> None:
    (id_,) = [row.id for row in store.find(Kind.MEMORY) if row.value("content") == SECRET]
    blocks = [row.id for row in store.find(Kind.BLOCK) if row.value("ref") == id_]
    store.apply(deletes=[Key(Kind.MEMORY, id_), *(Key(Kind.BLOCK, block) for block in blocks)])


class Interrupted(SqliteStore):
    """A store in which something happens between the rewrite of the file and its end."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def _truncate_log(self, connection: sqlite3.Connection, wait_seconds: float) -> bool:
        self.meanwhile()
        return super()._truncate_log(connection, wait_seconds)


def test_a_deletion_that_meets_a_rewrite_is_freed_by_the_next_one(file: Path) -> None:
    with closing(Interrupted(file)) as store, closing(SqliteStore(file)) as other:
        store.apply(deletes=[store.find(Kind.MEMORY)[-1].key])
        store.meanwhile = lambda: delete_heron(other)
        assert store.compact()
        store.meanwhile = lambda: None
        assert store.has_deleted_bytes()
        assert store.compact()
        assert not is_in_files(file)
        assert not store.has_deleted_bytes()


@pytest.mark.deep
def test_processes_that_delete_and_close_at_the_same_time_lose_nothing(
    file: Path, mesh: MemoryMesh
) -> None:
    ids = [record.id for record in mesh.get_all(limit=100) if record.content != SECRET]
    mesh.close()
    options = [
        {
            "store": url(file),
            "agent": "one",
            "together": True,
            "calls": [("delete", {"id": id_}) for id_ in some],
        }
        for some in (ids[:5], ids[5:10], ids[10:15])
    ]
    with ExitStack() as stack:
        children = together(stack, options, "calls")
        assert [len(child.rest()) for child in children] == [5, 5, 5]
        assert [child.end() for child in children] == [0, 0, 0]
    with open_mesh(file) as mesh:
        assert {record.id for record in mesh.get_all(limit=100)} == {
            *ids[15:],
            mesh.get(key="heron").id,
        }  # type: ignore[union-attr]
        assert not mesh._context().store.has_deleted_bytes()
    assert_sound(file)


def test_a_deletion_reads_no_table_whole(tmp_path: Path) -> None:
    with MemoryMesh(
        store=url(tmp_path / "memory.db"), embedder=HashingEmbedder(), step=lambda _: None
    ) as mesh:
        ids = [
            record.id for record in mesh.add_many([(f"boat number {n}", None) for n in range(20)])
        ]
        statements: list[str] = []
        connection = mesh._context().store._opened.connection
        connection.set_trace_callback(statements.append)
        mesh.delete(ids[7])
        connection.set_trace_callback(None)
        asked = [text for text in statements if text.startswith(("SELECT", "UPDATE", "DELETE"))]
        plans = {
            text: [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}")]
            for text in asked
        }
    assert len(plans) > 10
    lines = [line for plan in plans.values() for line in plan if "json_each" not in line]
    assert not [line for line in lines if line.startswith("SCAN")]
    assert [line for line in lines if "memories_with_sources" in line]
