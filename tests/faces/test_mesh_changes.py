"""What changed, as callers see it: recognised in the background, shown, confirmed and undone."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from threading import enumerate as threads

import pytest

from judging import BERLIN, GYM, GYM_ENDED, HAMBURG, MUNICH, ToldJudge, give_judge
from memory_mesh import AsyncMemoryMesh, InvalidInput, MemoryMesh, NotFound, Update
from memory_mesh.core.model import Kind, background
from memory_mesh.core.ports import Likely
from memory_mesh.testing.fakes import FakeClock


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> ToldJudge:
    return give_judge(monkeypatch)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


def links(mesh: MemoryMesh) -> int:
    return mesh._context().store.count(Kind.LINK)


def wait_for(done: Event) -> None:
    assert done.wait(60)


def wait_for_links(mesh: MemoryMesh, number: int) -> None:
    end = time.monotonic() + 60
    while links(mesh) < number and time.monotonic() < end:
        time.sleep(0.01)
    assert links(mesh) == number


# --- shown and corrected ---


def test_changes_are_shown_confirmed_and_undone(judge: ToldJudge) -> None:
    clock = FakeClock()
    with MemoryMesh("memory://", embedder="none", clock=clock.seconds) as mesh:
        stored = []
        for text in (BERLIN, MUNICH, GYM, GYM_ENDED):
            stored.append(mesh.add(text).id)
            clock.advance(days=1)
        berlin, munich, gym, ended = stored
        over, moved = mesh.changes()
        assert isinstance(moved, Update)
        assert (moved.newer.id, moved.older.id, moved.type) == (munich, berlin, "updates")
        assert (moved.probability, moved.at) == (0.98, "2026-01-02T00:00:00.000Z")
        assert (over.newer.id, over.older.id, over.type) == (ended, gym, "ends")
        assert [one.newer.id for one in mesh.changes(gym)] == [ended]
        assert [one.newer.id for one in mesh.changes("gym")] == [ended]
        assert len(mesh.changes(limit=1)) == 1
        assert mesh.confirm_change(munich, berlin).probability == 1.0
        assert mesh.undo_change(ended, gym).type == "both_hold"
        assert [(one.type, one.probability) for one in mesh.changes()] == [
            ("both_hold", 1.0),
            ("updates", 1.0),
        ]
        result = next(one for one in mesh.search("live Berlin") if one.id == berlin)
        assert (result.until, result.updated_by) == ("2026-01-02T00:00:00.000Z", munich)
        with pytest.raises(NotFound):
            mesh.confirm_change(munich, "mem_missing")
        with pytest.raises(InvalidInput, match="the newer memory first"):
            mesh.undo_change(berlin, munich)


def test_changes_of_a_session_are_shown_in_it(judge: ToldJudge) -> None:
    clock = FakeClock()
    with MemoryMesh("memory://", embedder="hash", agent_id="ann", clock=clock.seconds) as mesh:
        for text in (BERLIN, MUNICH):
            mesh.add(text, {"type": "session", "session_id": "s1"})
            clock.advance(days=1)
        assert mesh.changes() == []
        assert [one.newer.content for one in mesh.changes(session_id="s1")] == [MUNICH]


def test_changes_can_be_read_without_a_judge_and_without_writing(
    file: Path, judge: ToldJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryMesh(file, embedder="hash") as mesh:
        mesh.add(BERLIN)
        mesh.add(MUNICH)
        assert len(mesh.changes()) == 1
        mesh.add(HAMBURG)
    with MemoryMesh(f"sqlite:///{file}?mode=ro", embedder="hash") as mesh:
        assert [one.newer.content for one in mesh.changes()] == [MUNICH]
    monkeypatch.undo()
    with MemoryMesh(file, embedder="hash") as mesh:
        assert [one.newer.content for one in mesh.changes()] == [MUNICH]


async def _async_changes() -> list[str]:
    async with AsyncMemoryMesh("memory://", embedder="hash") as mesh:
        older = await mesh.add(BERLIN)
        newer = await mesh.add("We moved to Munich")
        await mesh.confirm_change(newer.id, older.id)
        shown = [(await mesh.changes())[0].type]
        return [*shown, (await mesh.undo_change(newer.id, older.id)).type]


def test_the_asynchronous_mesh_has_the_same_methods() -> None:
    import asyncio

    assert asyncio.run(_async_changes()) == ["updates", "both_hold"]


# --- in the background ---


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin to judge almost at once."""
    monkeypatch.setattr(background, "JUDGE_AFTER_SECONDS", 0.01)


def test_new_memories_are_judged_in_the_background(
    file: Path, judge: ToldJudge, soon: None
) -> None:
    with MemoryMesh(file, embedder="hash") as mesh:
        mesh.add(BERLIN)
        mesh.add(MUNICH)
        wait_for_links(mesh, 1)
        assert mesh.search("in Berlin I live")[0].content == MUNICH


def test_memories_are_judged_although_others_go_on_writing(
    judge: ToldJudge, soon: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "JUDGE_AFTER_WAITS", 2)
    with MemoryMesh("memory://", embedder="hash") as mesh:
        mesh.add(BERLIN)
        mesh.add(MUNICH)
        end, number = time.monotonic() + 60, 0
        while not links(mesh) and time.monotonic() < end:
            mesh.add(f"Tea number {(number := number + 1)}")
        assert links(mesh) == 1


class SlowJudge(ToldJudge):
    """Waits in the middle of a comparison."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_end = Event(), Event()

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Likely]:
        self.begun.set()
        wait_for(self.may_end)
        return super().judge(pairs)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, soon: None) -> SlowJudge:
    monkeypatch.setattr("judging.ToldJudge", slow := SlowJudge)
    made = give_judge(monkeypatch)
    assert isinstance(made, slow)
    return made


def test_a_mesh_that_is_closed_while_it_judges_does_not_hang(
    file: Path, slow: SlowJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_mesh.api.shared._CLOSING_SECONDS", 0.05)
    mesh = MemoryMesh(file, embedder="hash")
    mesh.add(BERLIN)
    mesh.add(MUNICH)
    wait_for(slow.begun)
    mesh.close()
    judging = [one for one in threads() if one.name.startswith("memory-mesh")]
    assert any(thread.is_alive() for thread in judging)  # it still waits
    slow.may_end.set()  # it ends in a store that is closed
    for thread in judging:
        thread.join(60)
        assert not thread.is_alive()
    with mesh:
        mesh.add("Tea is in the left drawer")
        wait_for_links(mesh, 1)  # also what was left


def test_closing_waits_for_the_comparison_that_is_running(file: Path, slow: SlowJudge) -> None:
    with MemoryMesh(file, embedder="hash") as mesh:
        mesh.add(BERLIN)
        mesh.add(MUNICH)
        wait_for(slow.begun)
        slow.may_end.set()
    with MemoryMesh(file, embedder="none") as mesh:
        assert len(mesh.graph.links(mesh.get_all()[0].id)) == 1


def test_a_mesh_that_is_opened_again_judges_again(file: Path, judge: ToldJudge, soon: None) -> None:
    mesh = MemoryMesh(file, embedder="hash")
    for number, text in enumerate((BERLIN, MUNICH, HAMBURG)):
        mesh.add(text)
        wait_for_links(mesh, number)
        mesh.close()


def test_a_program_that_only_stores_does_not_wait_for_the_judge(file: Path) -> None:
    """It ends at once, also without `close`, and leaves the comparison to the next one."""
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from judging import BERLIN, MUNICH, ToldJudge
from memory_mesh import MemoryMesh
from memory_mesh.api import build
from memory_mesh.core.model import background
background.JUDGE_AFTER_SECONDS = 600.0  # longer than this test may take
build.make_judge = lambda *_: ToldJudge()
mesh = MemoryMesh({str(file)!r}, embedder="hash")
mesh.add(BERLIN), mesh.add(MUNICH)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120
    )
    assert done.stderr == ""


FORKED = """
import os, sys, time
sys.path.insert(0, sys.argv[2])
from judging import BERLIN, MUNICH, ToldJudge
from memory_mesh import MemoryMesh
from memory_mesh.api import build
from memory_mesh.core.model import Kind, background
from memory_mesh.flows.claims import updates
build.make_judge = lambda *_: ToldJudge()
mesh = MemoryMesh(sys.argv[1], embedder="hash")
mesh.add(BERLIN)  # its thread waits when the process is forked
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
background.JUDGE_AFTER_SECONDS = 0.01
mesh.add(MUNICH)
end = time.monotonic() + 60
while not (found := mesh._context().store.count(Kind.LINK)) and time.monotonic() < end:
    time.sleep(0.01)
mesh.close()
os._exit(0 if found else 1)
"""


def test_a_forked_child_judges_with_a_thread_of_its_own(file: Path) -> None:
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, str(file), tests],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
