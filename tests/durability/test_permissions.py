"""Permissions: read-only media open, and what is created is for its owner only, whatever the umask.

Permissions do not bind root, so a child that gives up its rights makes the calls.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from stat import S_IMODE

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import SettingsError, StoreUnavailable
from memory_mesh.stores.files import KEY_FILE, make_key
from memory_mesh.stores.sqlite import SqliteStore
from stores.files import lane_file, older_file, snapshot

from .children import Child, url

READS = [("get_all", {}), ("search", {"query": "lantern oil"}), ("stats", {}), ("verify", {})]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can reach; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700)
    shutil.rmtree(folder)


def close_to_writers(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)


def called(address: str, calls: list[tuple[str, dict]], warm: Path) -> list[dict]:
    """The answers of a process without rights."""
    name = f"warm{Path(address.partition('?')[0]).suffix}"
    with Child("unprivileged", store=address, warm=url(warm / name), calls=calls) as child:
        answers = child.rest()
        assert child.end() == 0
    return answers


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "kind",
    [
        "ours",
        "lane",
        "lane-wal",
        "older",
        *(pytest.param(kind, marks=pytest.mark.deep) for kind in ("lance", "json")),
    ],
)
@pytest.mark.parametrize("mode", ["", "?mode=ro"])
def test_a_file_in_a_folder_that_is_not_writable_is_read_and_not_written(
    folder: Path, tmp_path: Path, kind: str, mode: str
) -> None:
    file = folder / (f"memory.{kind}" if kind in ("lance", "json") else "memory.db")
    if kind in ("ours", "lance", "json"):
        with MemoryMesh(store=url(file)) as mesh:
            mesh.add("The lantern needs oil")
    elif kind == "older":
        older_file(file, "0.1-foundation.db")
    else:
        lane_file(file, wal=kind == "lane-wal")
    close_to_writers(folder)
    before = snapshot(folder)
    *reads, write = called(url(file) + mode, [*READS, ("add", {"content": "new"})], tmp_path)
    assert [read["ok"] for read in reads] == [True] * len(READS), reads
    if kind != "older":
        assert reads[1]["found"] == 1
    assert write["error"] == "StoreReadOnly", write
    assert snapshot(folder) == before


@pytest.mark.parametrize("mode", ["", "?mode=ro"])
def test_a_log_that_cannot_be_read_is_an_error_and_never_an_older_state(
    folder: Path, tmp_path: Path, mode: str
) -> None:
    with MemoryMesh(store=url(tmp_path / "memory.db")) as mesh:
        mesh.add("The lantern needs oil")
        for suffix in ("", "-wal"):  # as a crash leaves them; the rows are in the log only
            shutil.copyfile(tmp_path / f"memory.db{suffix}", folder / f"memory.db{suffix}")
    close_to_writers(folder)
    before = snapshot(folder)
    (read,) = called(url(folder / "memory.db") + mode, [("get_all", {})], tmp_path)
    assert read["error"] == "StoreUnavailable"
    assert "copy" in read["text"]
    assert snapshot(folder) == before
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.chmod(0o644)
    # Where it may be written to, the log is read.
    with MemoryMesh(store=url(folder / "memory.db")) as mesh:
        assert len(mesh.get_all()) == 1


def test_a_file_on_read_only_media_that_changes_all_the_same_is_read_again(
    folder: Path, tmp_path: Path
) -> None:
    file = folder / "memory.db"
    with MemoryMesh(store=url(file)) as mesh:
        mesh.add("The lantern needs oil")
    close_to_writers(folder)
    with Child(
        "unprivileged",
        store=url(file),
        warm=url(tmp_path / "warm.db"),
        calls=[*READS[:1]] * 2,
        slowly=True,
    ) as child:
        assert child.hear()["found"] == 1
        for path in folder.iterdir():
            path.chmod(0o644)
        folder.chmod(0o755)
        with MemoryMesh(store=url(file)) as mesh:
            mesh.add("The wick is short")
        close_to_writers(folder)
        child.tell()
        assert child.hear()["found"] == 2
        child.tell()
        assert child.end() == 0


def test_what_cannot_be_created_is_an_error(folder: Path, tmp_path: Path) -> None:
    close_to_writers(folder)
    read, write = called(
        url(folder / "memory.db"), [("stats", {}), ("add", {"content": "new"})], tmp_path
    )
    assert "error" not in read
    assert write["error"] == "StoreUnavailable"
    assert "cannot be created" in write["text"]
    assert snapshot(folder) == {}


# --- what is created ---


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): S_IMODE(path.lstat().st_mode) for path in folder.rglob("*")
    }


@pytest.mark.sample(1)
def test_files_and_folders_are_for_their_owner_only(
    tmp_path: Path, umask: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "deep"
    monkeypatch.setenv("MEMORY_MESH_HOME", str(place / "home" / "of" / "mine"))
    with MemoryMesh(store=url(place / "a" / "b" / "memory.db"), redaction="pseudonym") as mesh:
        mesh.add_many([(f"The shelf holds book{n}", None) for n in range(1000)])
        mesh.erase(mesh.add("gone").id)
        mesh.search("book7")
        found = modes(tmp_path)
    found |= modes(tmp_path)
    files = {"memory.db", "memory.db-wal", "memory.db-shm", KEY_FILE}
    assert {Path(name).name for name in found} >= files | {"memory.db-index"}
    assert any(name.endswith(".index") for name in found)
    assert {name: mode for name, mode in found.items() if mode & 0o077} == {}


def test_a_link_that_leads_nowhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "memory.db").symlink_to(tmp_path / "elsewhere.db")
    with (
        pytest.raises(StoreUnavailable, match="link that leads nowhere"),
        MemoryMesh(store=url(tmp_path / "memory.db")) as mesh,
    ):
        mesh.add("new")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / KEY_FILE).symlink_to(tmp_path / "elsewhere.key")
    with pytest.raises(SettingsError, match="link that leads nowhere"):
        make_key(tmp_path / "home")
    (tmp_path / "folder").symlink_to(tmp_path / "nowhere")
    with (
        pytest.raises(StoreUnavailable, match="in the way"),
        MemoryMesh(store=url(tmp_path / "folder" / "m.db")) as mesh,
    ):
        mesh.add("new")
    assert {path.name for path in tmp_path.iterdir()} == {"memory.db", "home", "folder"}
    assert [path.name for path in (tmp_path / "home").iterdir()] == [KEY_FILE]


def test_a_link_to_a_store_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    with closing(SqliteStore(tmp_path / "real" / "memory.db")) as store:
        store.prepare()
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "memory.db")
    with MemoryMesh(store=url(tmp_path / "link.db")) as mesh:
        mesh.add("The lantern needs oil")
    with closing(sqlite3.connect(tmp_path / "real" / "memory.db")) as connection:
        assert connection.execute("SELECT count(*) FROM memories").fetchone() == (1,)
