"""A file that is removed or replaced while it is open is noticed: nothing written to the old one
is acknowledged."""

import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import StoreReplaced
from memory_mesh.stores.sqlite import SqliteStore
from memory_mesh.testing.rows import memory

from .children import Child, url
from .sound import assert_sound


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store with one memory, and a backup of it."""
    file = tmp_path / "memory.db"
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        mesh.add("The lantern needs oil")
    shutil.copyfile(file, tmp_path / "backup.db")
    return file


def removed(file: Path) -> None:
    subprocess.run(["rm", str(file)], check=True)


def moved_away(file: Path) -> None:
    subprocess.run(["mv", str(file), f"{file}.old"], check=True)


def restored(file: Path) -> None:
    """As the documentation says, but the program was not stopped."""
    subprocess.run(["rm", "-f", f"{file}-wal", f"{file}-shm"], check=True)
    subprocess.run(["mv", str(file.with_name("backup.db")), str(file)], check=True)


def restored_in_two_steps(file: Path) -> None:
    removed(file)
    restored(file)


WAYS: list[Callable[[Path], None]] = [removed, moved_away, restored, restored_in_two_steps]
by_every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)


@by_every_way
def test_a_write_after_the_file_was_removed_or_replaced_is_an_error(
    file: Path, way: Callable[[Path], None]
) -> None:
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        known = mesh.add("The wick is short").id
        way(file)
        exists = file.exists()
        for write in (
            lambda: mesh.add("lost"),
            lambda: mesh.update(known, content="lost"),
            lambda: mesh.erase(known),
        ):
            with pytest.raises(
                StoreReplaced, match="replaced by another file" if exists else "removed"
            ) as raised:
                write()
            assert str(file) in str(raised.value)
        for read in (mesh.get_all, mesh.stats, lambda: mesh.search("wick")):
            with pytest.raises(StoreReplaced):
                read()
        assert file.exists() == exists
        mesh.close()
        mesh.add("The glass is clean")  # opened again: what is there now
        assert len(mesh.get_all()) == (2 if exists else 1)
    assert_sound(file)


def test_a_file_that_is_removed_during_a_write_does_not_acknowledge_it(file: Path) -> None:
    def remove(step: str) -> None:
        if step == "store.put":
            removed(file)

    with closing(SqliteStore(file, step=remove)) as store, pytest.raises(StoreReplaced):
        store.apply([memory("new")])
    assert not file.exists()


def test_closing_the_old_file_takes_nothing_from_those_who_use_the_new_one(file: Path) -> None:
    with MemoryMesh(store=url(file), agent_id="one") as old:
        old.add("The wick is short")
        restored(file)
        with Child(
            "calls",
            store=url(file),
            agent="two",
            calls=[("add", {"content": "The glass is clean"})],
            hold=True,
        ) as other:
            assert other.hear()
            with pytest.raises(StoreReplaced):
                old.add("lost")
            old.close()
            assert file.with_name("memory.db-wal").exists()
            with closing(sqlite3.connect(file)) as third:
                assert third.execute("SELECT count(*) FROM memories").fetchone() == (2,)
            other.tell()
            assert other.end() == 0
    assert_sound(file)


def test_a_file_that_another_process_creates_first_is_used(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        assert not file.exists()
        with Child(
            "calls",
            store=url(file),
            agent="two",
            calls=[("add", {"content": "The glass is clean"})],
        ) as other:
            assert other.hear()
            assert other.end() == 0
        assert [record.content for record in mesh.get_all()] == ["The glass is clean"]
        mesh.add("The wick is short")
        assert len(mesh.get_all()) == 2
