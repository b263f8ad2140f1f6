"""`memory-mesh migrate`: a LanceDB folder of schema V1 becomes V2, and back."""

import json
import re
from pathlib import Path

import pytest

from memory_mesh import InvalidInput, migrate
from memory_mesh.stores.files import locked
from memory_mesh.stores.lance.journal import LOCK, OWN
from memory_mesh.stores.lance.migration import BACKUP
from stores.v1_tables import DAMAGED, SOUND, make, read, tree

from .conftest import Cli


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path / "yamo")


def test_a_dry_run_shows_what_would_be_done_and_changes_no_byte(cli: Cli, folder: Path) -> None:
    make(folder, list(DAMAGED.values()))
    before = tree(folder)
    said = cli("migrate", "--store", "lancedb:///yamo", "--dry-run")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[:2] == [
        "[MemoryMesh] Would migrate 13 memories to V2",
        "10 damaged rows, copied as they are:",
    ]
    assert lines[2:5] == [
        "row 4 (no id): no id",
        f"row 5 ({SOUND[0]['id']}): the same id as row 1",
        f"row 6 ({DAMAGED['no content']['id']}): no content",
    ]
    assert tree(folder) == before


@pytest.mark.req("MESH-169", "MESH-163")
def test_a_folder_is_migrated_once_and_rolled_back_once(cli: Cli, folder: Path) -> None:
    where = ("--store", "lancedb:///yamo")
    kept = (
        r"\nThe V1 table is kept as \w+ until 20\d\d-\d\d-\d\d; .*\n.* until memory-mesh "
        r"reembed .*\n"
    )
    done = cli("migrate", *where)
    assert re.fullmatch(r"\[MemoryMesh\] Migrated 3 memories to V2" + kept, done.out)
    again = cli("migrate", *where)
    assert again.out.startswith(
        "[MemoryMesh] Nothing to migrate: the table has schema V2, with 3 memories\n"
    )
    back = cli("migrate", *where, "--rollback", "--json")
    assert (back.code, json.loads(back.out)["action"], json.loads(back.out)["rows"]) == (
        0,
        "roll back",
        3,
    )
    assert read(folder).schema.names[-1] == "updated_at"
    none = cli("migrate", *where, "--rollback")
    assert (none.code, none.out) == (7, "")
    assert none.err.startswith(f"[MemoryMesh Error] {folder} has no table {BACKUP}; ")


@pytest.mark.parametrize("store", ["./yamo", "lancedb:///yamo", None])
def test_a_folder_is_named_by_its_path_or_its_url(
    home: Path, folder: Path, store: str | None
) -> None:
    assert migrate(folder if store is None else store, dry_run=True).rows == 3


def test_what_is_no_folder_of_lancedb_is_refused(cli: Cli, tmp_path: Path) -> None:
    said = cli("migrate", "--store", "sqlite:///memory.db")
    assert (said.code, said.out) == (2, "")
    assert (
        "is not a LanceDB folder; expected lancedb:///FOLDER; a SQLite file is upgraded by its "
        "first write"
    ) in said.err
    (tmp_path / "empty").mkdir()
    for store in ("./empty", "lancedb:///absent"):
        missing = cli("migrate", "--store", store)
        assert (missing.code, missing.out) == (7, "")
        assert "has no table memory_entries" in missing.err
    with pytest.raises(InvalidInput):
        migrate("memory://")
    assert not (tmp_path / "absent").exists()
    assert tree(tmp_path / "empty") == {}


def test_a_second_process_is_told_that_the_folder_is_in_use(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_MESH_BUSY_SECONDS", "0.01")
    (folder / OWN).mkdir()
    with locked(folder, folder / OWN / LOCK, busy_seconds=0):
        said = cli("migrate", "--store", "lancedb:///yamo")
    assert said.code == 9
    assert "locked by another process" in said.err
    assert read(folder).schema.names[-1] == "updated_at"


def test_progress_is_a_bar_on_a_terminal_and_lines_in_a_pipe(cli: Cli, folder: Path) -> None:
    make(folder, [SOUND[0] | {"id": str(number)} for number in range(2500)])
    piped = cli("migrate", "--store", "lancedb:///yamo", "--dry-run")
    assert piped.err.splitlines()[0] == "[MemoryMesh] 1027 of 2503 memories checked"
    assert "\x1b" not in piped.err
    drawn = cli("migrate", "--store", "lancedb:///yamo", terminal=True)
    assert "memories compared" in drawn.err
    assert "\x1b" in drawn.err


def test_an_id_cannot_control_the_terminal(cli: Cli, folder: Path) -> None:
    make(folder, [SOUND[0] | {"id": "\x1b[2J\nrow 1 (x): fine", "content": None}])
    said = cli("migrate", "--store", "lancedb:///yamo", "--dry-run", terminal=True)
    assert "\x1b[2J" not in said.out
    assert said.out.count("\n") == 4
