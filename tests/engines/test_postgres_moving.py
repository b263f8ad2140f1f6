"""Whole stores move to PostgreSQL and back, also while others write."""

from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest

from engines.postgres import Server
from memory_mesh import InvalidInput, MemoryMesh, Sound, copy_store
from memory_mesh.core.ports import no_progress
from memory_mesh.core.transfer.archive import archive_lines
from memory_mesh.stores import open_store

pytestmark = pytest.mark.deep


def lines(url: str) -> list[str]:
    with closing(open_store(url)) as store:
        return [*archive_lines(store, vectors=True, progress=no_progress)]


@pytest.fixture
def url(server: Server) -> str:
    return server.url(server.database())


def fill(url: str) -> None:
    with MemoryMesh(url, agent_id="planner", embedder="hash") as mesh:
        first = mesh.add(
            "The lantern needs oil", {"importance": 1, "any": {"n": [1, 1.5, 1e-7, None]}}
        )
        mesh.update(first.id, content="The lantern needs lamp oil")
        mesh.graph.link(first.id, mesh.add("The wick is trimmed").id, "cause")
        for user in ("ana", "bob"):
            mesh.scoped(user_id=user).add(f"{user} likes tea", idempotency_key="once")
        mesh.search("lantern")


def test_a_store_moves_to_postgresql_and_back_as_the_same_bytes(url: str, tmp_path: Path) -> None:
    file = f"sqlite:///{tmp_path}/a.db"
    fill(file)
    done = copy_store(file, url)
    assert (done.broken, lines(url)) == ((), lines(file))
    assert copy_store(file, url).written == 0
    copy_store(url, f"json:///{tmp_path}/back")
    assert lines(f"json:///{tmp_path}/back") == lines(file)
    with MemoryMesh(url, agent_id="planner", embedder="hash") as mesh:
        assert mesh.search("lamp oil")
        mesh.add("Stored after the copy")
        with pytest.raises(InvalidInput, match="changed since"):
            copy_store(file, url)


def test_a_backup_and_a_copy_have_one_moment_while_others_write(url: str, tmp_path: Path) -> None:
    fill(url)
    stop, written = Event(), []

    def write() -> None:
        with MemoryMesh(url, agent_id="writer", embedder="hash") as mesh:
            while not stop.is_set():
                written.append(mesh.add(f"Number {len(written)}").id)

    thread = Thread(target=write)
    thread.start()
    try:
        with MemoryMesh(url, agent_id="planner", embedder="hash") as mesh:
            for n in range(3):
                mesh.backup(tmp_path / f"{n}.jsonl")
                copy_store(url, f"sqlite:///{tmp_path}/{n}.db")
    finally:
        stop.set()
        thread.join()
    assert len(written) > 10
    for n in range(3):
        with MemoryMesh(f"sqlite:///{tmp_path}/{n}.db", agent_id="writer") as copy:
            assert all(isinstance(verdict, Sound) for verdict in copy.verify())
        with MemoryMesh("memory://", agent_id="writer", embedder="hash") as restored:
            assert restored.restore(tmp_path / f"{n}.jsonl").broken == ()
