"""The tables of the SQLite store are those of the documents, with our columns behind."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh

# Name and whether it may not be null, in the order of RFC-0011 §2.3. All are texts; SQLite has no type for times.
BLOCKS = [
    ("id", False), ("agent_id", False), ("operation_type", True), ("yamo_text", True), ("timestamp", True), ("block_hash", True),
    ("prev_hash", False), ("metadata", False),
]  # fmt: skip


@pytest.mark.req("MESH-037")
def test_the_table_of_blocks_is_the_documents_with_our_columns_behind(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with MemoryMesh(store=str(file)) as mesh:
        kept = mesh.add("Some text", {"status": "error"})
    with closing(sqlite3.connect(file)) as connection:
        table = connection.execute("PRAGMA table_info(yamo_blocks)").fetchall()
        (row,) = connection.execute("SELECT agent_id, operation_type, timestamp, prev_hash, metadata FROM yamo_blocks")
    assert [(name, bool(required)) for _, name, _, required, _, _ in table[: len(BLOCKS)]] == BLOCKS
    assert {kind for _, _, kind, *_ in table[: len(BLOCKS)]} == {"TEXT"}
    assert {(required, default) for _, _, _, required, default, _ in table[len(BLOCKS) :]} == {(0, None)}
    assert row == ("YAMO_AGENT", "retain", kept.created_at, None, '{"action":"add","status":"error"}')
