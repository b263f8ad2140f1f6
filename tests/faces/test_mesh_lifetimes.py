"""Meshes that are dropped, closed, forked or moved in the wrong moment: nothing is lost, and
none gets the file of another."""

import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh, SettingsError
from memory_mesh.core.errors import StoreClosed
from memory_mesh.core.model import Kind

from .house import texts


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def searches(file: Path) -> tuple[int, int]:
    """Return how many searches are in the audit log, and how often the first memory was found."""
    with MemoryMesh(file, embedder="hash") as mesh:
        return len(mesh.audit_log(recalls=True)), mesh.get_all()[0].access_count


# --- dropped without close ---


def search_and_drop(file: Path, **options: object) -> object:
    mesh = MemoryMesh(file, embedder="hash", **options)
    mesh.add("tea in the morning")
    assert texts(mesh.search("tea")) == ["tea in the morning"]
    return mesh._context().store


def test_a_mesh_that_is_dropped_without_close_loses_no_search(file: Path) -> None:
    search_and_drop(file)
    search_and_drop(file, ranker="rrf")
    gc.collect()
    assert searches(file) == (2, 2)


def test_a_dropped_mesh_in_a_cycle_loses_no_search_and_its_store_is_closed_by_the_next_opening(
    file: Path,
) -> None:
    class Agent:
        def __init__(self) -> None:
            self.mesh, self.me = MemoryMesh(file, embedder="hash"), self

    agent = Agent()
    agent.mesh.add("tea in the morning")
    agent.mesh.search("tea")
    store = agent.mesh._context().store
    del agent
    gc.collect()
    assert store.count(Kind.MEMORY) == 1
    MemoryMesh(file.with_name("other.db")).init()
    with pytest.raises(StoreClosed):
        store.count(Kind.MEMORY)
    assert searches(file) == (1, 1)


def test_a_dropped_mesh_does_not_forbid_another_embedder(file: Path) -> None:
    search_and_drop(file)
    mesh = MemoryMesh(file, embedder="none")
    assert texts(mesh.search("tea")) == ["tea in the morning"]
    with pytest.raises(SettingsError, match="with embedder none"):
        MemoryMesh(file, embedder="hash").get_all()
    mesh.close()


def test_a_mesh_for_each_call_uses_the_store_and_the_embedder_of_the_last_one(file: Path) -> None:
    def call(user: str) -> tuple[object, object]:
        mesh = MemoryMesh(file, user_id=user, embedder="hash")
        mesh.add("text")
        return mesh._context().store, mesh._context().models.embedder

    assert call("ann") == call("bob")


UNCLOSED = """
import sys
from memory_mesh import MemoryMesh
mesh = MemoryMesh(sys.argv[1], embedder="hash")
mesh.add("tea in the morning")
mesh.search("tea")
"""


def test_a_program_that_ends_without_close_loses_no_search(file: Path) -> None:
    run(UNCLOSED, file)
    assert searches(file) == (1, 1)


def test_a_child_that_ends_without_close_writes_its_own_searches_only(file: Path) -> None:
    run(
        UNCLOSED + "import os\nif os.fork():\n    os.wait()\nelse:\n    mesh.search('morning')\n",
        file,
    )
    assert searches(file) == (2, 2)


def test_a_program_that_removes_its_store_ends_without_a_word(file: Path) -> None:
    run(UNCLOSED + "import os\nos.remove(sys.argv[1])\n", file)
    assert not file.exists()


def run(program: str, *arguments: object) -> None:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


# --- handles and their mesh ---


def test_closing_a_handle_leaves_the_store_open_for_its_mesh(file: Path) -> None:
    mesh = MemoryMesh(file, embedder="hash")
    seen = set()
    for user in ("ann", "bob"):
        with mesh.scoped(user_id=user).scoped(session_id="s") as handle:
            handle.add("text")
            seen.add((handle._context().store, handle._context().models.embedder))
    ((store, _),) = seen
    assert store.count(Kind.MEMORY) == 2
    mesh.close()
    with pytest.raises(StoreClosed):
        store.count(Kind.MEMORY)
    # The mesh is closed, so it closes again what it opens.
    with mesh.scoped(user_id="ann") as handle:
        assert texts(handle.get_all()) == ["text"]
        store = handle._context().store
    with pytest.raises(StoreClosed):
        store.count(Kind.MEMORY)


def test_a_handle_whose_mesh_is_gone_closes_the_store(file: Path) -> None:
    with MemoryMesh(file).scoped(user_id="ann") as handle:
        handle.add("text")
        store = handle._context().store
    with pytest.raises(StoreClosed):
        store.count(Kind.MEMORY)


def test_memories_in_memory_live_as_long_as_the_mesh_is_open() -> None:
    mesh = MemoryMesh("memory://")
    with mesh.scoped(user_id="ann") as handle:
        handle.add("text")
    assert texts(mesh.scoped(user_id="ann").get_all()) == ["text"]
    mesh.close()
    assert mesh.scoped(user_id="ann").get_all() == []


# --- one place, another file ---


def test_a_link_that_is_pointed_elsewhere_leads_no_mesh_to_the_wrong_file(tmp_path: Path) -> None:
    files = [tmp_path / "a.db", tmp_path / "b.db"]
    for path in files:
        with MemoryMesh(path) as mesh:
            mesh.add(f"in {path.name}")
    link = tmp_path / "link.db"
    link.symlink_to(files[0])
    by_link = MemoryMesh(link)
    assert texts(by_link.get_all()) == ["in a.db"]
    by_link.close()
    link.unlink()
    link.symlink_to(files[1])
    assert texts(by_link.get_all()) == ["in b.db"]
    assert texts(MemoryMesh(files[0]).get_all()) == ["in a.db"]
    by_link.close()


def test_a_relative_home_is_that_of_the_folder_where_the_mesh_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_MESH_HOME", "home")
    meshes = []
    for name in ("x", "y"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        meshes.append(MemoryMesh())
        meshes[-1].add(f"in {name}")
        meshes[-1].close()
    for mesh, name in zip(meshes, ("x", "y"), strict=True):
        assert texts(mesh.get_all()) == [f"in {name}"]
        assert str(tmp_path / name) in repr(mesh)
        mesh.close()


# --- forks ---

FORKED = """
import os, sys, warnings
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)  # that \
is what is tried here
from threading import Event, Thread
from memory_mesh import MemoryMesh
from memory_mesh.api import shared

mesh = MemoryMesh(sys.argv[1], embedder=sys.argv[2])
mesh.add("tea in the morning")
mesh.search("tea")
private = MemoryMesh("memory://")
private.add("only here")
context = mesh._context()
embedder = context.models.embedder
locks = [shared._lock, mesh._shared._lock, mesh._shared._store._lock, context.index._lock, \
private._context().store._lock,
         embedder._lock, context.state.queues.search_log.writing, \
context.state.queues.usage.writing, context.state.cache._lock]
if sys.argv[2] == "local":
    locks.append(embedder._inner._lock)
locked, go_on = Event(), Event()

def hold():
    for lock in locks:
        lock.acquire()
    locked.set()
    go_on.wait()
    for lock in locks:
        lock.release()

thread = Thread(target=hold)
thread.start()
locked.wait()
if os.fork() == 0:
    assert len(mesh.search("something about tea")) == len(private.get_all()) == 1
    mesh.close()
    os._exit(0)
code = os.wait()[1]
go_on.set()
thread.join()
mesh.close()
sys.exit(code)
"""


@pytest.mark.parametrize("embedder", ["hash", pytest.param("local", marks=pytest.mark.deep)])
def test_a_child_waits_for_no_lock_of_a_thread_of_its_parent(file: Path, embedder: str) -> None:
    run(FORKED, file, embedder)


# --- threads ---


@pytest.mark.deep
def test_threads_open_drop_and_close_meshes_many_times(file: Path, deep: bool) -> None:
    number = 1000 if deep else 150
    with MemoryMesh(file, embedder="none") as mesh:
        mesh.add("tea in the morning")

    def visit(n: int) -> list[str]:
        mesh = MemoryMesh(file, embedder="none", ranker=("learnt", "rrf")[n % 2])
        handle = mesh.scoped(agent_id=f"agent{n % 3}")
        found = texts(handle.search("tea"))
        if n % 4:
            handle.close()
        if n % 5:
            mesh.close()
        return found

    with ThreadPoolExecutor(8) as pool:
        assert set(map(tuple, pool.map(visit, range(number)))) == {("tea in the morning",)}
    gc.collect()
    with MemoryMesh(file, embedder="none") as mesh:
        assert mesh.get_all()[0].access_count == number
        assert len(mesh.audit_log(2000, recalls=True)) == number


def test_what_meshes_with_other_options_searched_is_in_the_log_and_forgotten(file: Path) -> None:
    one, other = MemoryMesh(file, user_id="ann", ranker="rrf"), MemoryMesh(file, user_id="ann")
    one.add("tea in the morning")
    one.search("tea for zebras")
    assert len(other.audit_log(recalls=True)) == 1
    one.search("tea for lions")
    assert any(b"zebras" in path.read_bytes() for path in file.parent.glob("memory.db*"))
    other.forget(user_id="ann")
    one.close()
    other.close()
    written = b"".join(path.read_bytes() for path in file.parent.glob("memory.db*"))
    assert b"zebras" not in written
    assert b"lions" not in written
