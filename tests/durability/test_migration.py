"""Migrations of a LanceDB folder in processes that are killed, run at once, or have no space
left."""

from pathlib import Path
from signal import SIGKILL

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.stores.lance.migration import BACKUP
from stores.v1_tables import DAMAGED, SCHEMA, SOUND, make, tree, values

from .children import Child

ROWS = [*SOUND, *DAMAGED.values(), *(SOUND[0] | {"id": f"more {number}"} for number in range(2000))]
# Each step of a migration and of a rollback that a process may not survive, and how often it occurs
# before that.
STEPS = [
    ("begun", 1),
    ("copying", 1),
    ("copying", 2),
    ("copied", 1),
    ("compared", 1),
    ("recorded", 1),
    ("renamed", 1),
]
STEPS += [("renamed", 2), ("noted", 1), ("finished", 1)]
pytestmark = pytest.mark.deep


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path / "db", ROWS)


def run(folder: Path, **options: object) -> dict[str, object]:
    with Child("migrate", folder=str(folder), **options) as child:
        answer: dict[str, object] = child.hear()
        return answer


def killed(folder: Path, step: str, nth: int, **options: object) -> None:
    with Child("migrate", folder=str(folder), crash=[f"migration.{step}", nth], **options) as child:
        assert child.rest() == []
        assert child.end() == -SIGKILL


def v1_part(folder: Path, name: str = "memory_entries") -> list[dict[str, object]]:
    return [{column: row[column] for column in SCHEMA.names} for row in values(folder, name)]


@pytest.mark.one_in_ci(3)
@pytest.mark.req("MESH-168")
@pytest.mark.parametrize(("step", "nth"), STEPS)
def test_a_migration_that_is_killed_loses_nothing_and_the_next_run_completes_it(
    folder: Path, step: str, nth: int
) -> None:
    before = values(folder)
    killed(folder, step, nth)
    assert run(folder)["ok"]
    assert v1_part(folder) == before
    assert values(folder, BACKUP) == before
    with MemoryMesh(f"lancedb:///{folder}") as mesh:
        assert mesh.stats().total_memories == len(ROWS) - 2  # without an id, and of a session
        mesh.add("A memory of ours.")
    assert run(folder) == {"ok": True, "action": "none", "rows": len(ROWS) + 1}


@pytest.mark.req("MESH-169")
@pytest.mark.parametrize(("step", "nth"), STEPS[5:])
def test_a_rollback_that_is_killed_is_finished(folder: Path, step: str, nth: int) -> None:
    before = tree(folder)
    run(folder)
    killed(folder, step, nth, rollback=True)
    # There is nothing left to roll back then.
    assert run(folder, rollback=True)["ok"] == (step != "finished")
    assert {
        name: data for name, data in tree(folder).items() if name.startswith("memory_entries.lance")
    } == before


def test_a_second_process_is_refused_and_the_first_completes(folder: Path) -> None:
    with Child("migrate", folder=str(folder), halt="migration.copied") as first:
        assert first.hear() == "migration.copied"
        refused = run(folder)
        assert (refused["ok"], refused["error"]) == (False, "StoreBusy")
        first.tell()
        assert first.hear() == {"ok": True, "action": "migrate", "rows": len(ROWS)}
    assert run(folder)["action"] == "none"


@pytest.mark.parametrize("most_bytes", [64, 4096, 20_000])
def test_a_full_disk_is_a_clear_error_and_changes_nothing(folder: Path, most_bytes: int) -> None:
    before = tree(folder)
    answer = run(folder, most_bytes=most_bytes)
    assert (answer["ok"], answer["error"]) == (False, "StoreFull")
    assert "nothing was changed" in str(answer["text"])
    left = {
        name: data for name, data in tree(folder).items() if not name.startswith("memory_mesh/")
    }
    assert left == before
    assert run(folder)["action"] == "migrate"
