"""The tables of the SQLite store are those of the documents, with our columns behind."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.model import Kind, Skill, Vector
from memory_mesh.stores.sqlite import SqliteStore

# Name and whether it may not be null, in the order of RFC-0011 §2.3. All are texts; SQLite has no
# type for times.
BLOCKS = [
    ("id", False), ("agent_id", False), ("operation_type", True), ("yamo_text", True),
    ("timestamp", True), ("block_hash", True), ("prev_hash", False), ("metadata", False),
]  # fmt: skip

# The columns of RFC-0011 §2.4, likewise.
SKILLS = [
    ("id", False), ("name", True), ("intent", True), ("yamo_text", True), ("vector", False),
    ("metadata", False), ("created_at", True),
]  # fmt: skip


@pytest.mark.req("MESH-037")
def test_the_table_of_blocks_is_the_documents_with_our_columns_behind(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with MemoryMesh(store=str(file)) as mesh:
        kept = mesh.add("Some text", {"status": "error"})
    with closing(sqlite3.connect(file)) as connection:
        table = connection.execute("PRAGMA table_info(yamo_blocks)").fetchall()
        (row,) = connection.execute(
            "SELECT agent_id, operation_type, timestamp, prev_hash, metadata FROM yamo_blocks"
        )
    assert [(name, bool(required)) for _, name, _, required, _, _ in table[: len(BLOCKS)]] == BLOCKS
    assert {kind for _, _, kind, *_ in table[: len(BLOCKS)]} == {"TEXT"}
    assert {(required, default) for _, _, _, required, default, _ in table[len(BLOCKS) :]} == {
        (0, None)
    }
    assert row == (
        "YAMO_AGENT",
        "retain",
        kept.created_at,
        None,
        '{"action":"add","status":"error"}',
    )


@pytest.mark.req("MESH-045")
def test_the_table_of_skills_is_the_documents_with_our_columns_behind(tmp_path: Path) -> None:
    file, at, vector = (
        tmp_path / "memory.db",
        "2026-01-01T00:00:00.000Z",
        Vector.of("unit", [1.0, 0.0]),
    )
    skill = Skill(
        id="skill_1767225600000_0a1b2c", name="deploy", intent="Deploy the site.",
        content="name;deploy;", created_at=at, updated_at=at,
        metadata={"reliability": 0.5, "use_count": 0}, tags=["ops"], sources=["mem_1"],
        vector=vector,
    )  # fmt: skip
    with closing(SqliteStore(file)) as store:
        store.apply([skill.row()])
        assert Skill.of(store.get(Kind.SKILL, [skill.id])[skill.id]) == skill
    with closing(sqlite3.connect(file)) as connection:
        table = connection.execute("PRAGMA table_info(synthesized_skills)").fetchall()
        names = ", ".join(name for name, _ in SKILLS)
        (row,) = connection.execute(f"SELECT {names} FROM synthesized_skills")
    assert [(name, bool(required)) for _, name, _, required, _, _ in table[: len(SKILLS)]] == SKILLS
    assert {(required, default) for _, _, _, required, default, _ in table[len(SKILLS) :]} == {
        (0, None)
    }
    assert row == (
        skill.id,
        "deploy",
        "Deploy the site.",
        "name;deploy;",
        vector.data,
        '{"reliability":0.5,"use_count":0}',
        at,
    )
