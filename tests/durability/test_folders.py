"""A folder is ingested once, however often the run was killed and however many run at the same
time."""

import shutil
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from signal import SIGKILL
from tempfile import TemporaryDirectory

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.testing.fakes import Recorder

from .children import Child, together, url
from .sound import assert_sound

FILES = 70  # two batches


def fill(folder: Path) -> None:
    folder.mkdir()
    for n in range(FILES):
        (folder / f"{n:02}.md").write_text(f"The drawer{n} holds buttons")


def edit(folder: Path) -> None:
    """One file changed in each batch, one new, one gone."""
    for name in ("03.md", "68.md"):
        (folder / name).write_text(f"The drawer {name} is empty")
    (folder / "new.md").write_text("A new drawer holds string")
    (folder / "10.md").unlink()


def steps(mesh: MemoryMesh, recorder: Recorder, folder: Path) -> list[str]:
    before = len(recorder.names)
    mesh.ingest_dir(folder)
    return recorder.names[before:]


@cache
def steps_of_runs() -> tuple[list[str], list[str]]:
    """The steps of a first run, and of a second one over the edited folder."""
    with TemporaryDirectory() as place:
        folder, recorder = Path(place) / "notes", Recorder()
        fill(folder)
        with MemoryMesh(
            store=url(Path(place) / "memory.db"), agent_id="keeper", step=recorder
        ) as mesh:
            first = steps(mesh, recorder, folder)
            edit(folder)
            return first, steps(mesh, recorder, folder)


def points(names: list[str]) -> list[tuple[str, int]]:
    """Each step with the number of times that it was reached up to there."""
    return [(name, names[: at + 1].count(name)) for at, name in enumerate(names)]


def stored(file: Path) -> dict[str, tuple[str, int, int]]:
    with MemoryMesh(store=url(file), agent_id="keeper") as mesh:
        records = mesh.get_all() if file.exists() else []
    found = {
        str(record.metadata["source"]): (record.content, record.revision, record.times_observed)
        for record in records
    }
    assert len(found) == len(records)
    return found


def killed(file: Path, folder: Path, step: str, nth: int) -> None:
    call = ("ingest_dir", {"path": str(folder)})
    with Child("calls", store=url(file), agent="keeper", calls=[call], crash=(step, nth)) as child:
        assert (child.rest(), child.end()) == ([], -SIGKILL)
    if file.exists():  # the first write creates it
        assert_sound(file)


def again(file: Path, folder: Path) -> tuple[int, int, int]:
    with MemoryMesh(store=url(file), agent_id="keeper") as mesh:
        done = mesh.ingest_dir(folder)
        assert done.failed == []
        repeated = mesh.ingest_dir(folder)
    assert (repeated.added, repeated.updated) == (0, 0)
    assert_sound(file)
    return done.added, done.updated, done.unchanged


@pytest.mark.one_in_ci(3)
@pytest.mark.sample(1)
@pytest.mark.req("MESH-152", "MESH-015")
@pytest.mark.parametrize(("step", "nth"), points(steps_of_runs()[0]))
def test_a_first_run_killed_at_any_step_is_finished_by_the_next_and_stores_nothing_twice(
    tmp_path: Path, step: str, nth: int
) -> None:
    file, folder = tmp_path / "memory.db", tmp_path / "notes"
    fill(folder)
    killed(file, folder, step, nth)
    before = stored(file)
    assert len(before) in (0, 64, FILES)
    assert again(file, folder) == (FILES - len(before), 0, len(before))
    assert stored(file) == {
        f"{n:02}.md": (f"The drawer{n} holds buttons", 1, 1) for n in range(FILES)
    }


@pytest.mark.one_in_ci(3)
@pytest.mark.sample(1)
@pytest.mark.req("MESH-152", "MESH-015")
@pytest.mark.parametrize(("step", "nth"), points(steps_of_runs()[1]))
def test_a_later_run_killed_at_any_step_is_finished_by_the_next_and_changes_nothing_twice(
    tmp_path: Path, step: str, nth: int
) -> None:
    file, folder = tmp_path / "memory.db", tmp_path / "notes"
    fill(folder)
    with MemoryMesh(store=url(file), agent_id="keeper") as mesh:
        mesh.ingest_dir(folder)
    edit(folder)
    killed(file, folder, step, nth)
    again(file, folder)
    after = stored(file)
    assert after.keys() == {f"{n:02}.md" for n in range(FILES)} | {"new.md"}
    assert {source for source, (_, revision, _) in after.items() if revision == 2} == {
        "03.md",
        "68.md",
    }
    assert {(revision, observed) for _, revision, observed in after.values()} == {(1, 1), (2, 1)}


@pytest.mark.deep
def test_processes_that_ingest_one_folder_at_once_store_each_file_once(tmp_path: Path) -> None:
    file, folder = tmp_path / "memory.db", tmp_path / "notes"
    fill(folder)
    call = ("ingest_dir", {"path": str(folder)})
    options = {"store": url(file), "agent": "keeper", "calls": [call], "together": True}
    with ExitStack() as stack:
        children = together(stack, [options] * 3, "calls")
        reported = [child.hear() for child in children]
        assert [child.end() for child in children] == [0] * 3
    assert sum(added for added, _, _ in reported) == FILES
    assert {sum(counts) for counts in reported} == {FILES}
    assert {counts[1:] for counts in stored(file).values()} == {(1, 1)}
    assert_sound(file)


def test_a_folder_that_is_gone_takes_no_memory_with_it(tmp_path: Path) -> None:
    file, folder = tmp_path / "memory.db", tmp_path / "notes"
    fill(folder)
    with MemoryMesh(store=url(file), agent_id="keeper") as mesh:
        mesh.ingest_dir(folder)
        shutil.rmtree(folder)
        folder.mkdir()
        assert len(mesh.ingest_dir(folder).gone) == FILES
    assert len(stored(file)) == FILES
