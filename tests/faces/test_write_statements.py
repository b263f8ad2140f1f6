"""How many SQL statements a write runs, and that what it does not read again is what the store
has."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh import MemoryMesh
from memory_mesh.core.audit import Sound
from memory_mesh.core.errors import ModelMismatch
from memory_mesh.core.model import Kind
from memory_mesh.stores.base import decode_json, dumped_texts

from .test_search_statements import opened, statements


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def mesh(file: Path) -> Iterator[MemoryMesh]:
    with opened(file) as mesh:
        mesh.add("The first memory.")
        mesh.add("The second memory.")
        yield mesh


def read(run: list[str]) -> list[str]:
    """The reads before the transaction."""
    return [text.split()[0] for text in run[: run.index("PRAGMA busy_timeout = 0")]]


def test_an_add_after_an_add_reads_only_whether_the_text_is_known(mesh: MemoryMesh) -> None:
    with statements(mesh) as run:
        mesh.add("A third memory.")
    assert read(run) == ["PRAGMA", "SELECT"]
    assert len(run) == 14  # inserts into tables with a trigger are traced twice


def test_an_update_after_a_write_reads_the_memory_once(mesh: MemoryMesh) -> None:
    stored = mesh.add("A third memory.")
    with statements(mesh) as run:
        mesh.update(stored.id, content="A changed memory.")
    assert sum("FROM memories" in text for text in run[: run.index("PRAGMA busy_timeout = 0")]) == 1


def test_many_memories_are_added_with_few_reads(mesh: MemoryMesh) -> None:
    with statements(mesh) as run:
        mesh.add_many([f"Note {n} on the harbour." for n in range(100)])
    assert read(run) == ["PRAGMA", "SELECT"]
    assert sum(text.startswith("SELECT") for text in run) == 1


def test_an_add_after_a_write_of_another_mesh_continues_its_chain(
    mesh: MemoryMesh, file: Path
) -> None:
    with opened(file) as other:
        other.add("A memory of another mesh.")
    mesh.add("A third memory.")
    with opened(file) as other:
        other.add("Another one of another mesh.")
    mesh.add("A fourth memory.")
    assert [row.number for row in mesh._context().store.find(Kind.BLOCK)] == [6, 5, 4, 3, 2, 1]
    assert all(isinstance(verdict, Sound) for verdict in mesh.verify())


def edited(file: Path, statement: str) -> None:
    """Run a statement in a connection of its own."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        assert connection.execute(statement).rowcount == 1


def test_an_add_does_not_sign_a_head_that_another_connection_changed(
    mesh: MemoryMesh, file: Path
) -> None:
    assert all(isinstance(verdict, Sound) for verdict in mesh.verify())
    edited(
        file, "UPDATE records SET extra = json_set(extra, '$.signature', 'ab') WHERE kind = 'head'"
    )
    mesh.add("A third memory.")
    assert not all(isinstance(verdict, Sound) for verdict in mesh.verify())


def test_an_add_is_refused_after_another_connection_changed_the_model(
    mesh: MemoryMesh, file: Path
) -> None:
    bob = mesh.scoped(user_id="bob")
    bob.add("With the model of the store.")
    edited(
        file,
        "UPDATE records SET extra = json_set(extra, '$.detail.model', 'other/64') WHERE kind = "
        "'meta' AND id = 'embedding'",
    )
    with pytest.raises(ModelMismatch, match=r"other/64"):
        bob.add("With another one.")


def test_an_add_after_another_connection_wrote_to_the_partition_is_decided_again(
    mesh: MemoryMesh, file: Path
) -> None:
    edited(file, "UPDATE partitions SET version = version + 7, nonce = 'x'")
    mesh.add("A third memory.")
    assert mesh._context().store.version("[null, null]") == 10


@given(
    st.lists(
        st.text(alphabet=st.characters(codec="utf-8") | st.sampled_from('"\\\n,\u2028é')),
        max_size=4,
    )
)
def test_a_list_of_texts_is_stored_as_json(texts: list[str]) -> None:
    assert dumped_texts(texts) == json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    for text in (
        dumped_texts(texts),
        json.dumps(texts),
        json.dumps([*texts, 1], indent=1),
        f" {json.dumps({'a': texts})}\n",
    ):
        assert decode_json(text) == json.loads(text)
        with pytest.raises(json.JSONDecodeError, match="Extra data"):
            decode_json(f"{text}]")
