"""Fixtures: a house for each store, without settings from the environment."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.stores import open_store
from memory_mesh.stores.sqlite import SqliteStore

from .house import House


@pytest.fixture(autouse=True)
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No setting from outside: an empty home, an empty working folder."""
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("MEMORY_MESH_HOME", str(home))
    return tmp_path


@pytest.fixture(params=["memory", pytest.param("sqlite", marks=pytest.mark.one_in(4))])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'memory.db'}"
    store = open_store(url)
    if isinstance(store, SqliteStore):
        store.prepare()  # tests of reads find an empty store; without a file they would be refused
    yield House(store)
    store.close()


@pytest.fixture
def mesh(house: House) -> MemoryMesh:
    return house.mesh()
