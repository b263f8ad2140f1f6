"""The Arrow schemas of the LanceDB store are those of RFC-0011, and any row survives the
conversion to Arrow and back."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis.strategies import sampled_from

from memory_mesh.core.model import Kind, Row, Vector
from memory_mesh.stores.lance.schema import (
    BLOCKS,
    MEMORIES,
    SKILLS,
    TABLES,
    from_arrow,
    is_schema_v1,
    is_schema_v2,
    kinds_of,
    memories_v1,
    memories_v2,
    table_of,
    to_arrow,
)
from memory_mesh.testing.rows import batches, full, memory, property_test

TEXT, TIME, VECTOR = pa.utf8(), pa.timestamp("ms"), pa.list_(pa.float32(), 384)
V1 = [
    pa.field("id", TEXT, nullable=False),
    pa.field("vector", VECTOR, nullable=False),
    pa.field("content", TEXT, nullable=False),
    pa.field("metadata", TEXT, nullable=False),
    pa.field("created_at", TIME, nullable=False),
    pa.field("updated_at", TIME),
]
ADDED = [
    pa.field("session_id", TEXT),
    pa.field("agent_id", TEXT),
    pa.field("memory_type", TEXT),
    pa.field("importance_score", pa.float32()),
    pa.field("access_count", pa.int32()),
    pa.field("last_accessed", TIME),
    pa.field("heritage_chain", TEXT),
    pa.field("lesson_pattern_id", TEXT),
    pa.field("source_skill_id", TEXT),
]
BLOCK = [
    "id",
    "agent_id",
    "operation_type",
    "yamo_text",
    "timestamp",
    "block_hash",
    "prev_hash",
    "metadata",
]
SKILL = ["id", "name", "intent", "yamo_text", "vector", "metadata", "created_at"]


@pytest.mark.req("MESH-029", "MESH-032")
def test_the_schemas_of_memories_are_those_of_the_document() -> None:
    assert memories_v1().equals(pa.schema(V1))
    assert memories_v2().equals(pa.schema([*V1, *ADDED]))


@pytest.mark.req("MESH-035")
def test_the_version_of_a_schema_is_told_by_the_session_id() -> None:
    assert [is_schema_v1(memories_v1()), is_schema_v2(memories_v1())] == [True, False]
    assert [is_schema_v1(memories_v2()), is_schema_v2(memories_v2())] == [False, True]
    assert is_schema_v2(MEMORIES.schema(384))
    assert is_schema_v2(pa.schema([pa.field("session_id", TEXT)]))
    assert is_schema_v1(pa.schema([pa.field("id", TEXT)]))


@pytest.mark.req("MESH-036")
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_our_columns_are_nullable_and_come_after_those_of_the_document(table) -> None:
    document, whole = table.document(384), table.schema(384)
    assert whole.names[: len(document)] == document.names
    assert len(whole) > len(document)
    assert all(field.nullable for field in list(whole)[len(document) :])
    changed = [field.name for field in document if not field.equals(whole.field(field.name))]
    assert set(changed) <= {"vector"}  # a memory may wait for its vector


@pytest.mark.req("MESH-037")
def test_blocks_have_the_columns_of_the_document() -> None:
    schema = BLOCKS.document(384)
    assert schema.names == BLOCK
    assert [field.name for field in schema if field.nullable] == [
        "agent_id",
        "block_hash",
        "prev_hash",
        "metadata",
    ]
    assert {field.name: field.type for field in schema if field.type != TEXT} == {"timestamp": TIME}


@pytest.mark.req("MESH-045")
def test_skills_have_the_columns_of_the_document() -> None:
    schema = SKILLS.document(384)
    assert schema.names == SKILL
    assert {field.name: field.type for field in schema if field.type != TEXT} == {
        "vector": VECTOR,
        "created_at": TIME,
    }


def test_every_kind_has_one_table() -> None:
    assert sorted(kind for table in TABLES for kind in kinds_of(table)) == sorted(Kind)
    assert [table_of(Kind.MEMORY).name, table_of(Kind.BLOCK).name] == [
        "memory_entries",
        "yamo_blocks",
    ]


@property_test
@given(rows=batches(), dimension=sampled_from((1, 2, 3)))
def test_any_row_comes_back_equal_from_arrow(rows: list[Row], dimension: int) -> None:
    for table in {table_of(row.kind) for row in rows}:
        some = [row for row in rows if table_of(row.kind) is table]
        assert from_arrow(table, to_arrow(table, some, dimension)) == some


@pytest.mark.parametrize("kind", Kind)
def test_a_row_with_every_field_comes_back_equal_from_a_slice(kind: Kind) -> None:
    table, row = table_of(kind), full(kind)
    rows = [row] * 3
    assert from_arrow(table, to_arrow(table, rows, 4).slice(1, 1)) == [row]


def test_vectors_keep_every_bit_beside_rows_without_one() -> None:
    vectors = [
        Vector.of("one", [0.1, -0.0]),
        None,
        Vector.of("two", [1.0, 2.0]),
        Vector.of("two", [3.0]),
    ]
    rows = [
        Row(kind=Kind.MEMORY, id=str(at), partition="p", created_at="", fields={}, vector=v)
        for at, v in enumerate(vectors)
    ]
    data = to_arrow(MEMORIES, rows, 2)
    assert data["vector"].to_pylist()[1:] == [None, [1.0, 2.0], None]
    assert [row.vector for row in from_arrow(MEMORIES, data.slice(1))] == vectors[1:]
    assert [row.vector for row in from_arrow(MEMORIES, data)] == vectors


@pytest.mark.req("MESH-030", "MESH-033")
def test_the_columns_of_the_document_show_the_fields() -> None:
    heritage = {"intentChain": ["a"], "hypotheses": [], "rationales": []}
    row = memory(
        "m1", metadata={"type": "event"}, importance=0.7, heritage_chain=heritage, session_id="s1"
    )
    shown = (
        to_arrow(MEMORIES, [row, memory("m2", importance=7.0)], 2)
        .select(memories_v2().names)
        .to_pylist()
    )
    assert shown[0]["metadata"] == '{"type":"event"}'
    assert shown[0]["heritage_chain"] == '{"intentChain":["a"],"hypotheses":[],"rationales":[]}'
    assert [one["importance_score"] for one in shown] == [pytest.approx(0.7), 1.0]
    assert shown[0]["created_at"].isoformat() == "2026-01-01T00:00:00"
    assert [shown[0]["session_id"], shown[1]["session_id"], shown[1]["metadata"]] == [
        "s1",
        None,
        "{}",
    ]
