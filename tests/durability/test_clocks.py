"""Clocks that jump: nothing is lost or hidden for ever, the order of changes holds, and no lock,
job or session hangs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh, Sound
from memory_mesh.core.errors import TokenInvalid
from memory_mesh.core.model import Kind
from memory_mesh.interfaces.console.sessions import Sessions
from memory_mesh.stores import open_store

from .children import url
from .sound import assert_sound

DAY, YEAR = 86_400, 365 * 86_400
NOW = 1_770_000_000.0


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory.db", "memory.json"])
def file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return tmp_path / str(request.param)


@pytest.fixture
def mesh(file: Path, clock: Clock) -> Iterator[MemoryMesh]:
    with MemoryMesh(url(file), agent_id="keeper", clock=clock, embedder="hash") as mesh:
        yield mesh


def texts(mesh: MemoryMesh) -> set[str]:
    return {memory.content for memory in mesh.get_all()}


@pytest.mark.parametrize("jump", [-DAY, YEAR])
def test_changes_keep_their_order_by_revision_whatever_the_clock_says(
    mesh: MemoryMesh, clock: Clock, file: Path, jump: float
) -> None:
    id_ = mesh.add("The pump is red.").id
    other = mesh.add("The lamp is green.").id
    clock.now += jump
    assert mesh.update(id_, content="The pump is blue.").revision == 2
    mesh.add("The key is under the mat.")
    clock.now -= jump
    assert mesh.update(id_, content="The pump is black.").revision == 3
    mesh.add("The lamp is green.")
    assert texts(mesh) == {"The pump is black.", "The lamp is green.", "The key is under the mat."}
    assert [change.action for change in mesh.history(id_)] == ["add", "update", "update"]
    assert [change.action for change in mesh.history(other)] == ["add", "observe"]
    assert mesh.search("which colour is the pump?")[0].content == "The pump is black."
    assert [verdict for verdict in mesh.verify() if not isinstance(verdict, Sound)] == []
    mesh.close()
    assert_sound(file)


def test_what_expires_does_so_by_the_clock_and_comes_back_when_the_clock_was_wrong(
    mesh: MemoryMesh, clock: Clock
) -> None:
    mesh.add("The code of today is seven.", {"expires_at": "2026-02-03T00:00:00Z"})
    mesh.add("The pump is red.")
    found = {hit.content for hit in mesh.search("code of today, pump")}
    assert found == {"The code of today is seven.", "The pump is red."}
    clock.now += YEAR
    assert {hit.content for hit in mesh.search("code of today, pump")} == {"The pump is red."}
    clock.now -= YEAR
    assert {hit.content for hit in mesh.search("code of today, pump")} == found


def test_a_heartbeat_with_a_wrong_clock_loses_no_memory_and_the_next_one_runs(
    mesh: MemoryMesh, clock: Clock, file: Path
) -> None:
    for n in range(5):
        mesh.add(f"Room {n} has {n * 7} chairs.")
    known = rows(file)
    mesh.heartbeat()
    clock.now += YEAR
    assert mesh.heartbeat().ok
    clock.now -= YEAR + DAY
    later = mesh.heartbeat()
    assert later.ok
    assert {str(run.outcome) for run in later.runs} & {"done"}
    assert known <= rows(file)
    mesh.add("Stored after the jumps.")
    assert "Stored after the jumps." in texts(mesh)
    assert [verdict for verdict in mesh.verify() if not isinstance(verdict, Sound)] == []


def rows(file: Path) -> set[str]:
    """The texts of all memories, of any status."""
    store = open_store(f"{url(file)}?mode=ro")
    try:
        return {str(row.value("content")) for row in store.find(Kind.MEMORY)}
    finally:
        store.close()


def test_a_capture_and_a_session_survive_a_jump(mesh: MemoryMesh, clock: Clock) -> None:
    said = [
        {
            "role": "user",
            "content": (
                "From now on I want you to always run the linter before you tell me you're done."
            ),
        }
    ]
    assert len(mesh.lane.on_session_event("session.idle", said, session_id="s").kept) == 1
    clock.now -= DAY
    assert mesh.lane.on_session_event("session.idle", said, session_id="s").new_messages == 0
    clock.now += YEAR
    more = [
        *said,
        {"role": "user", "content": "Remember: I always deploy on Tuesdays, never on Fridays."},
    ]
    assert mesh.lane.on_session_event("session.idle", more, session_id="s").new_messages == 1


@pytest.mark.req("MESH-009")
@pytest.mark.parametrize("jump", [-DAY, YEAR])
def test_no_login_lives_longer_because_the_clock_was_set_back(clock: Clock, jump: float) -> None:
    sessions = Sessions(clock)
    secret, _ = sessions.begin()
    once = sessions.issue_once()
    assert sessions.find(secret)
    clock.now += jump
    with pytest.raises(TokenInvalid):
        sessions.find(secret)
    with pytest.raises(TokenInvalid):
        sessions.use_once(once)
    secret, _ = sessions.begin()
    assert sessions.find(secret)
