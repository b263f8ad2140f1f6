"""Rows of the audit trail that were edited by hand are reported as damage, and verification never hangs."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh, Sound
from memory_mesh.core.errors import StoreCorrupt
from memory_mesh.interfaces.doctor import _chains
from memory_mesh.stores import open_store

_COPIED = "agent_id, operation_type, yamo_text, timestamp, block_hash, partition, revision, {0}"
ANOTHER = f"INSERT INTO yamo_blocks (id, {_COPIED}) SELECT 'more', {_COPIED} FROM yamo_blocks LIMIT 1"
ODD = {
    "a chain that is no text": "UPDATE yamo_blocks SET chain = x'fffe' WHERE number = 2",
    "an id that is no text": "UPDATE yamo_blocks SET id = x'fffe' WHERE number = 2",
    "no id": "UPDATE yamo_blocks SET id = NULL WHERE number = 2",
    "a text that is none": "UPDATE yamo_blocks SET yamo_text = x'fffe' WHERE number = 2",
    "an agent that is no text": "UPDATE yamo_blocks SET agent_id = x'fffe' WHERE number = 2",
    "metadata that is no object": "UPDATE yamo_blocks SET metadata = '7' WHERE number = 2",
    "a number that is none": "UPDATE yamo_blocks SET number = 'x' WHERE number = 3",
    "a block of no chain": ANOTHER.format("number"),
    "a block without a number": ANOTHER.format("chain"),
    "a head whose number is none": "UPDATE records SET number = 'x' WHERE kind = 'head'",
    "a head without a hash": "UPDATE records SET extra = NULL WHERE kind = 'head'",
    "a head whose hash is no text": """UPDATE records SET extra = '{"block_hash": 5}' WHERE kind = 'head'""",
    "a head of a user": "UPDATE records SET user_id = 'u' WHERE kind = 'head'",
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with MemoryMesh(store=f"sqlite:///{tmp_path / 'memory.db'}", agent_id="ann", embedder="none") as mesh:
        mesh.add_many([("one", None), ("two", None), ("three", None)])
        assert [type(verdict) for verdict in mesh.verify()] == [Sound]
    return tmp_path / "memory.db"


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("odd", ODD)
def test_a_row_that_none_of_ours_wrote_is_told_as_damage(file: Path, odd: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute(ODD[odd]).rowcount == 1
    with (
        MemoryMesh(store=f"sqlite:///{file}", agent_id="ann", embedder="none") as mesh,
        pytest.raises(StoreCorrupt, match="cannot be"),
    ):
        mesh.verify()
    with closing(open_store(f"sqlite:///{file}")) as store, pytest.raises(StoreCorrupt, match="cannot be"):
        _chains(store)
