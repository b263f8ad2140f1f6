"""Hooks of several processes, of processes that are killed, and of servers that are slow or
down."""

from contextlib import ExitStack
from pathlib import Path
from threading import Event

import pytest

from memory_mesh import HookEvent, MemoryMesh, webhook_writethrough
from memory_mesh.core.model import Kind
from memory_mesh.stores import open_store
from net.servers import Answer, FaultServer

from .children import Child, url

STEPS = ("flow.decided", "store.begun", "store.put", "store.committed", "flow.applied")


def events_in(server: FaultServer) -> list[tuple[str, str]]:
    """Return the event and the content of each request, without repetitions of the same event."""
    found = {request.json["id"]: request.json for request in server.requests}  # type: ignore[index,call-overload]
    return [(one["event"], one["memory"].get("content", "")) for one in found.values()]  # type: ignore[index,call-overload,union-attr]


def waiting(file: Path) -> int:
    store = open_store(url(file))
    try:
        return store.count(Kind.EVENT)
    finally:
        store.close()


@pytest.mark.deep
@pytest.mark.req("GRAPH-88")
@pytest.mark.parametrize("step", STEPS)
def test_a_process_that_dies_during_a_write_leaves_the_memory_with_its_event_or_neither(
    tmp_path: Path, step: str
) -> None:
    file = tmp_path / "memory.db"
    texts = [f"text {n}" for n in range(4)]
    with (
        FaultServer([Answer(hang=True)]) as slow,
        Child(
            "hooked", store=url(file), agent="ann", hook=slow.url, texts=texts, crash=[step, 3]
        ) as child,
    ):
        said = child.rest()
        assert child.end() < 0
    store = open_store(url(file))
    stored = sorted(str(row.value("content")) for row in store.find(Kind.MEMORY))
    queued = sorted(row.value("detail")["content"] for row in store.find(Kind.EVENT))  # type: ignore[index,call-overload]
    store.close()
    assert len(said) <= len(stored) < len(texts)
    assert queued == stored


@pytest.mark.deep
@pytest.mark.req("GRAPH-88")
def test_a_killed_process_loses_no_event_and_the_next_one_delivers_all_in_order(
    tmp_path: Path,
) -> None:
    file, texts = tmp_path / "memory.db", [f"text {n}" for n in range(20)]
    with FaultServer([Answer(delay=0.01)]) as server:
        options = {"store": url(file), "agent": "ann", "hook": server.url}
        with Child("hooked", **options, texts=texts, die=True) as child:
            assert len(child.rest()) == len(texts)
            assert child.end() < 0
        assert waiting(file) > 0
        with MemoryMesh(
            url(file), agent_id="ann", writethrough=server.url, writethrough_allow_local=True
        ) as mesh:
            mesh.retry_hooks()
        assert events_in(server) == [("store", text) for text in texts]
        assert waiting(file) == 0


@pytest.mark.deep
@pytest.mark.req("GRAPH-86", "GRAPH-88")
def test_processes_append_whole_entries_to_one_markdown_file(tmp_path: Path) -> None:
    file, folder = tmp_path / "memory.db", tmp_path / "log"
    texts = {
        agent: [f"{agent} line {n}\nsecond of {agent} {n}" for n in range(30)]
        for agent in ("ann", "bob", "cat")
    }
    with ExitStack() as stack:
        children = [
            stack.enter_context(
                Child("hooked", store=url(file), agent=agent, hook=str(folder), texts=mine)
            )
            for agent, mine in texts.items()
        ]
        for child in children:
            child.rest()
            assert child.end() == 0
    with MemoryMesh(url(file), writethrough=str(folder)) as mesh:
        mesh.retry_hooks()
    text = "".join(path.read_text() for path in sorted(folder.glob("*.md")))
    for mine in texts.values():
        places = [text.index("\n  ".join(entry.split("\n")) + "\n") for entry in mine]
        assert places == sorted(places)
    assert text.count("**store**") == 90


@pytest.mark.deep
@pytest.mark.req("GRAPH-86", "MESH-011")
def test_an_erasure_that_is_killed_before_it_reaches_the_files_is_completed_by_the_next_mesh(
    tmp_path: Path,
) -> None:
    file, folder = tmp_path / "memory.db", tmp_path / "log"
    options = {"store": url(file), "agent": "ann", "hook": str(folder)}

    def found(word: str) -> bool:
        return any(word in path.read_text() for path in folder.glob("*.md"))

    with Child("hooked", **options, texts=["A zebra.", "A lion."]) as child:
        gone, _ = child.rest()
        assert child.end() == 0
    with Child("hooked", **options, texts=[], erase=gone) as child:
        assert child.end() < 0
    assert found("A zebra.")
    with MemoryMesh(url(file), agent_id="ann", writethrough=str(folder)) as mesh:
        assert mesh.get(gone) is None
        mesh.retry_hooks()
    assert not found("A zebra.")
    assert found("A lion.")


@pytest.mark.deep
@pytest.mark.req("GRAPH-88")
def test_writes_do_not_wait_for_a_server_that_never_answers(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with FaultServer([Answer(hang=True)]) as server:
        mesh = MemoryMesh(url(file), writethrough=server.url, writethrough_allow_local=True)
        for n in range(50):
            mesh.add(f"text {n}")
        assert len(server.requests) <= 1  # the others wait behind the first one
        mesh.close()
        (status,) = mesh.hooks_status()
        mesh.close()
    assert (status.waiting, status.failures) == (50, 1)


@pytest.mark.deep
@pytest.mark.req("GRAPH-88")
def test_a_server_that_recovers_is_told_by_the_open_mesh_without_a_retry(tmp_path: Path) -> None:
    file, told, store_again = tmp_path / "memory.db", Event(), Event()

    def done(event: HookEvent) -> None:
        told.set()

    with FaultServer([Answer(status=503), Answer(drop=True), Answer()]) as server:
        # The second hook is not held up by the first.
        with MemoryMesh(
            url(file), writethrough=[webhook_writethrough(server.url, allow_local=True), done]
        ) as mesh:
            mesh.add("first")
            assert told.wait(60)
            mesh.add("second")
            while mesh._context().store.count(Kind.EVENT):  # pauses of 1 and 5 s
                store_again.wait(0.05)
        assert [event for event, _ in events_in(server)] == ["store", "store"]
        assert len(server.requests) == 4
