"""A run of retention that is killed at any step: the next one completes it, a third changes
nothing, and nothing is lost."""

import gzip
import shutil
from collections import Counter
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from memory_mesh.testing.fakes import Recorder

from . import children
from .children import Child, url
from .sound import assert_sound, contents_of
from .traces import fill, opened

STEPS = {
    "traces.archived": 5,
    "traces.cut": 3,
    "traces.consolidated": 2,
    "store.begun": 6,
    "store.committed": 6,
}
KILLED = [(step, nth) for step, count in STEPS.items() for nth in range(1, count + 1)]


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "PROGRAMS", Path(__file__).with_name("traces.py"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, and beside it a folder of traces, in which each policy has something to do."""
    file = tmp_path_factory.mktemp("filled") / "memory.db"
    fill(url(file), str(file.parent / "traces"))
    return file


@pytest.fixture
def file(filled: Path, tmp_path: Path) -> Path:
    """A copy of that store and its folder."""
    return Path(shutil.copytree(filled.parent, tmp_path / "copy")) / filled.name


@pytest.fixture(scope="module")
def whole(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The files and the memories after a run that is not killed."""
    copy = tmp_path_factory.mktemp("whole") / "copy"
    file = Path(shutil.copytree(filled.parent, copy)) / filled.name
    retain(file)
    return files(file), memories(file)


def retain(file: Path, step: Any = lambda _: None) -> int:
    with opened(url(file), str(file.parent / "traces"), step=step) as mesh:
        return len(mesh.traces.retention().moves)


def files(file: Path) -> dict[str, str]:
    """The texts of all files, archives uncompressed."""
    root = file.parent / "traces"
    found = [path for path in root.rglob("*") if path.is_file() and path.name != ".lock"]
    texts = {
        path: gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for path in found
    }
    return {str(path.relative_to(root)): text.decode() for path, text in texts.items()}


def memories(file: Path) -> Counter[tuple[str, str, str]]:
    return Counter(
        (row["content"], row["status"], row["category"]) for row in contents_of(file).memories
    )


@pytest.mark.deep
def test_the_steps_are_those_at_which_a_run_is_killed(file: Path) -> None:
    recorder = Recorder()
    assert retain(file, recorder) == 3
    seen = Counter(recorder.names)
    assert {step: seen[step] for step in seen if step.startswith("traces.")} == {
        step: count for step, count in STEPS.items() if step.startswith("traces.")
    }
    assert all(seen[step] >= count for step, count in STEPS.items()), (
        "files that changed just now are indexed again, too"
    )


@pytest.mark.deep
@pytest.mark.req("TRACE-30", "TRACE-32")
@pytest.mark.parametrize(("step", "nth"), KILLED)
def test_a_killed_run_is_completed_by_the_next_and_a_third_changes_nothing(
    file: Path, whole: Any, step: str, nth: int
) -> None:
    before = files(file)
    with Child(
        "run", store=url(file), folder=str(file.parent / "traces"), crash=(step, nth)
    ) as child:
        assert (child.rest(), child.end()) == ([], -SIGKILL)
    assert_sound(file)
    every = "".join(files(file).values())
    assert all(f"built {number}" in every for number in range(2))
    assert every.count("trace_id:") >= "".join(before.values()).count("trace_id:"), (
        "no trace is lost in between"
    )
    retain(file)
    assert_sound(file)
    assert (files(file), memories(file)) == whole
    assert files(file) != before
    assert retain(file) == 0
    assert (files(file), memories(file)) == whole
