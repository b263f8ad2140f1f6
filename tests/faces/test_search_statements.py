"""How many SQL statements a search runs. Each costs time, also if nothing has changed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores.sqlite import SqliteStore


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def mesh(file: Path) -> Iterator[MemoryMesh]:
    with opened(file) as mesh:
        mesh.add_many(
            [
                (f"Note {n} on the harbour.", {"turn": n, "session_id": f"s{n % 3}"})
                for n in range(40)
            ]
        )
        mesh.add("Ann likes tea.", {"memory_type": "agent"})  # in the partition of the agent
        mesh.search("tea")
        yield mesh


def opened(file: Path) -> MemoryMesh:
    return MemoryMesh(store=f"sqlite:///{file}", embedder=HashingEmbedder(), agent_id="ann")


@contextmanager
def statements(mesh: MemoryMesh) -> Iterator[list[str]]:
    """Collect the statements that the store of a mesh runs."""
    store, run = mesh._context().store, list[str]()
    assert isinstance(store, SqliteStore)
    with store._use() as connection:
        connection.set_trace_callback(run.append)
        yield run
        connection.set_trace_callback(None)


@pytest.mark.parametrize("session_id", [None, "s1"])
def test_a_warm_search_runs_two_statements(mesh: MemoryMesh, session_id: str | None) -> None:
    with statements(mesh) as run:
        found = mesh.search("harbour", 10, session_id=session_id)
    assert len(found) == 10
    assert [text.split()[0] for text in run] == ["PRAGMA", "SELECT"]


def test_a_repeated_search_of_an_unchanged_store_runs_one_statement(mesh: MemoryMesh) -> None:
    first = mesh.search("harbour")
    with statements(mesh) as run:
        again = mesh.search("harbour")
    assert ([one.id for one in again], run) == ([one.id for one in first], ["PRAGMA data_version"])


def test_a_search_after_a_write_of_another_connection_finds_it(
    mesh: MemoryMesh, file: Path
) -> None:
    assert [one.content for one in mesh.search("zeppelin", min_score=0.1)] == []
    with opened(file) as other:
        other.add("A zeppelin flew by.")
    with statements(mesh) as run:
        assert [one.content for one in mesh.search("zeppelin", min_score=0.1)] == [
            "A zeppelin flew by."
        ]
    assert len(run) > 2


def test_a_search_after_an_edit_by_hand_withholds_the_memory(mesh: MemoryMesh, file: Path) -> None:
    """The edit raises no version of a partition: only the rows that are read tell."""
    import sqlite3

    assert mesh.search("tea")[0].content == "Ann likes tea."
    with sqlite3.connect(file) as connection:
        connection.execute(
            "UPDATE memories SET content = 'Ann likes tea and gin.' WHERE content = 'Ann "
            "likes tea.'"
        )
    connection.close()
    assert "tea" not in " ".join(one.content for one in mesh.search("tea", use_cache=False))
