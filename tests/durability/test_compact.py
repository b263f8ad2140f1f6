"""Freeing bytes: at once in a small file, by `compact` in a large one."""

from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.stores.sqlite import store as sqlite

SECRET = "The heron nests behind the boathouse."


def mesh_in(folder: Path) -> MemoryMesh:
    return MemoryMesh(store=f"sqlite:///{folder / 'memory.db'}")


def is_in_files(folder: Path) -> bool:
    return any(b"heron" in path.read_bytes() for path in folder.glob("memory.db*"))


@pytest.mark.req("MESH-011")
def test_a_large_store_frees_bytes_when_it_is_compacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mesh_in(tmp_path) as mesh:
        kept = [mesh.add(f"filler number {n} " + "x" * 300) for n in range(60)]
        secret = mesh.add(SECRET)
        assert is_in_files(tmp_path)
        monkeypatch.setattr(sqlite, "_MAX_REWRITTEN", 0)
        assert mesh.erase(secret.id).bytes_freed is False
        assert mesh.get(secret.id) is None
        assert b"heron" not in (tmp_path / "memory.db-wal").read_bytes()
    with mesh_in(tmp_path) as mesh:  # a large file is not rewritten by being opened
        assert mesh._context().store.has_deleted_bytes()
        assert mesh.compact() is True
        assert not mesh._context().store.has_deleted_bytes()
        assert not is_in_files(tmp_path)
        assert {record.id for record in mesh.get_all()} == {record.id for record in kept}


def test_a_small_store_has_nothing_left_to_compact(tmp_path: Path) -> None:
    with mesh_in(tmp_path) as mesh:
        assert mesh.erase(mesh.add(SECRET).id).bytes_freed is True
        assert not is_in_files(tmp_path)
        assert mesh.compact() is True
