"""Several processes with one heartbeat: each job runs once, and another process takes over from
a killed one."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.learning import LEASE_MS
from memory_mesh.testing.fakes import NEW_YEAR, FakeClock

from . import children
from .children import Child, together, url
from .sound import assert_sound

JOBS = ("distillation", "decay", "retention", "reembedding", "compaction")
FAILED = {"status": "error", "preventative_rule": "Refresh the token first."}


@pytest.fixture(autouse=True)
def beating(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "PROGRAMS", Path(__file__).with_name("beats.py"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store with three failures to learn from."""
    file = tmp_path / "memory.db"
    with mesh_of(file) as mesh:
        for n in range(3):
            mesh.add(f"Deploy {n} failed.", {**FAILED, "error_pattern": f"p{n}"})
    return file


def mesh_of(file: Path) -> MemoryMesh:
    return MemoryMesh(store=url(file), agent_id="keeper", clock=FakeClock().seconds)


def once(file: Path, **options: object) -> dict[str, Any]:
    """One beat of a process of its own."""
    with Child("beat", store=url(file), agent="keeper", **{"ms": NEW_YEAR, **options}) as child:
        assert child.hear() == "ready"
        child.tell()
        heard: dict[str, Any] = child.hear()
        assert child.end() == 0
    return heard


@pytest.mark.deep
@pytest.mark.req("MESH-138")
def test_of_four_processes_that_beat_at_once_one_runs_each_job(file: Path) -> None:
    options = [{"store": url(file), "agent": f"agent{n}", "ms": NEW_YEAR + 1000} for n in range(4)]
    with ExitStack() as stack:
        heard = [child.hear() for child in together(stack, options, "beat")]
    for job in JOBS:
        outcomes = Counter(each[job] for each in heard)
        assert outcomes["done"] == 1, (job, outcomes)
        assert set(outcomes) <= {"done", "held by another", "not due"}
    assert [each["guard"] for each in heard] == ["done"] * 4
    with mesh_of(file) as mesh:
        assert Counter(run.job for run in mesh.heartbeat_log(limit=1000)) == {
            "guard": 4,
            **dict.fromkeys(JOBS, 1),
        }
        assert len(mesh.query_lessons()) == len(mesh.get_all(filter="memory_type = 'lesson'")) == 3
    assert_sound(file)


@pytest.mark.one_in_ci(3)
@pytest.mark.deep
@pytest.mark.sample(1)
@pytest.mark.req("MESH-138", "MESH-044")
@pytest.mark.parametrize(
    ("step", "nth", "learnt"),
    [
        ("flow.applied", 1, 0),
        ("flow.validated", 1, 0),
        ("store.put", 2, 0),
        ("flow.applied", 2, 1),
        ("flow.applied", 4, 3),
    ],
)
def test_what_a_killed_process_held_is_taken_over_when_its_lease_ends(
    file: Path, step: str, nth: int, learnt: int
) -> None:
    with Child("beat", store=url(file), agent="keeper", ms=NEW_YEAR, crash=(step, nth)) as child:
        assert child.hear() == "ready"
        child.tell()
        assert child.rest() == []
        assert child.end() == -SIGKILL
    assert_sound(file)
    with mesh_of(file) as mesh:
        assert len(mesh.query_lessons()) == learnt
    assert once(file, ms=NEW_YEAR + LEASE_MS - 1)["distillation"] == "held by another"
    assert once(file, ms=NEW_YEAR + LEASE_MS)["distillation"] == "done"
    assert once(file, ms=NEW_YEAR + LEASE_MS + 1)["distillation"] == "not due"
    with mesh_of(file) as mesh:
        assert len(mesh.query_lessons()) == len(mesh.get_all(filter="memory_type = 'lesson'")) == 3
    assert_sound(file)
