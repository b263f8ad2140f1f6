"""A backup is a whole store of one moment, made while others write, or it is not there."""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from memory_mesh import InvalidInput, MemoryMesh, StoreMissing

from .children import Child, url
from .sound import assert_sound


def test_a_backup_has_the_memories_and_chains_of_the_store(tmp_path: Path) -> None:
    with MemoryMesh(store=url(tmp_path / "memory.db"), agent_id="planner") as mesh:
        record = mesh.add("The lantern needs oil")
        mesh.search("lantern")
        steps: list[tuple[str, int, int]] = []
        done = mesh.backup(
            tmp_path / "copies" / "copy.db", progress=lambda *step: steps.append(step)
        )
        mesh.add("Later than the copy")
        heads = mesh.audit_heads(recalls=True)
    assert done.file == str(tmp_path / "copies" / "copy.db")
    assert done.bytes == Path(done.file).stat().st_size > 0
    assert steps[-1] == ("backing up", steps[-1][2], steps[-1][2])
    if os.name == "posix":
        assert stat.S_IMODE(Path(done.file).stat().st_mode) == 0o600
    assert [file.name for file in (tmp_path / "copies").iterdir()] == ["copy.db"]
    with MemoryMesh(store=url(Path(done.file)), agent_id="planner") as copy:
        assert [one.id for one in copy.get_all()] == [record.id]
        assert copy.audit_heads(recalls=True) == heads  # the block of the search was written first
    assert_sound(Path(done.file))


def test_backups_of_a_store_that_is_written_to_are_each_of_one_moment(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with Child("stream", store=url(file), agent="writer") as child:
        for _ in range(6):
            child.hear()
        with MemoryMesh(store=url(file), agent_id="keeper") as mesh:
            for n in range(3):
                child.hear()
                mesh.backup(tmp_path / f"copy{n}.db")
            assert mesh.add("The keeper writes too").revision == 1
        child.kill()
    for n in range(3):
        assert_sound(tmp_path / f"copy{n}.db")
        with MemoryMesh(store=url(tmp_path / f"copy{n}.db")) as copy:
            assert copy.stats().total_memories > 0
    assert_sound(file)


def test_a_backup_killed_half_way_leaves_no_file_under_its_name(tmp_path: Path) -> None:
    with MemoryMesh(store=url(tmp_path / "memory.db")) as mesh:
        mesh.add("The lantern needs oil")
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:  # a copy of several steps
        connection.execute("CREATE TABLE padding AS SELECT zeroblob(8000000)")
    with Child(
        "backup", store=url(tmp_path / "memory.db"), target=str(tmp_path / "copy.db")
    ) as child:
        _, done, of = child.hear()
        assert 0 < done < of
        child.kill()
        child.end()
    assert not (tmp_path / "copy.db").exists()
    assert len(list(tmp_path.glob(".copy.db.*"))) == 1
    (tmp_path / ".copy.db.gz").write_text("mine")
    with MemoryMesh(store=url(tmp_path / "memory.db")) as mesh:
        mesh.backup(tmp_path / "copy.db")
    assert_sound(tmp_path / "copy.db")
    assert [file.name for file in tmp_path.glob(".copy.db.*")] == [".copy.db.gz"]


def test_a_backup_replaces_no_file(tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("mine")
    (tmp_path / "link.db").symlink_to(tmp_path / "nowhere")
    with MemoryMesh(store=url(tmp_path / "memory.db")) as mesh:
        mesh.add("The lantern needs oil")
        for name in ("copy.db", "link.db", "memory.db"):
            with pytest.raises(InvalidInput, match="exists"):
                mesh.backup(tmp_path / name)
        with pytest.raises(InvalidInput, match="cannot be written"):
            mesh.backup(tmp_path / "copy.db" / "below a file")
        assert mesh.stats().total_memories == 1
    assert (tmp_path / "copy.db").read_text() == "mine"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["copy.db", "link.db", "memory.db"]


def test_a_store_that_is_not_there_is_not_backed_up(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing):
        MemoryMesh(store=url(tmp_path / "memory.db")).backup(tmp_path / "copy.db")
    assert list(tmp_path.iterdir()) == []


def test_a_store_opened_read_only_is_backed_up(tmp_path: Path) -> None:
    with MemoryMesh(store=url(tmp_path / "memory.db")) as mesh:
        mesh.add("The lantern needs oil")
    with MemoryMesh(store=f"{url(tmp_path / 'memory.db')}?mode=ro") as mesh:
        mesh.backup(tmp_path / "copy.db")
    assert_sound(tmp_path / "copy.db")
