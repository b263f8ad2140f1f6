"""Memories that other programs wrote into a LanceDB table become rows of ours."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_mesh.core.model import Kind, Row, checked
from memory_mesh.stores.lance.schema import adopted, memories_v2

from .v1_tables import CREATED, DAMAGED, SCHEMA, SOUND

V2 = pa.schema([field.with_nullable(True) for field in memories_v2(4)])


def rows(*given: dict[str, Any], schema: pa.Schema = V2, **known: Any) -> list[Row]:
    return list(adopted(pa.Table.from_pylist(list(given), schema), **known))


@pytest.mark.req("MESH-031")
def test_what_v1_has_in_its_metadata_becomes_the_columns_of_v2() -> None:
    event, session, lesson = rows(*SOUND, schema=SCHEMA)
    assert (event.fields["memory_type"], event.fields["tags"], event.fields["status"]) == (
        "global",
        ["coast"],
        "active",
    )
    assert event.fields["metadata"] == json.loads(SOUND[0]["metadata"])
    assert (session.fields["memory_type"], session.fields["session_id"]) == ("session", "s1")
    assert session.fields["agent_id"] == "YAMO_AGENT"  # else no reader could see it
    assert lesson.fields["memory_type"] == "lesson"
    assert [row.created_at for row in (event, session)] == [
        "2026-01-01T00:00:00.000Z",
        "2026-01-01T00:00:00.001Z",
    ]
    assert [row.fields["updated_at"][-5:] for row in (event, session)] == [".000Z", ".000Z"]
    assert event.vector
    assert event.vector.model == "unknown/4"


def test_the_columns_of_v2_win_over_the_metadata() -> None:
    heritage = {"intentChain": ["a"], "hypotheses": [], "rationales": []}
    columns = {
        "session_id": "s2", "agent_id": "pilot", "memory_type": "session", "importance_score": 0.7,
        "access_count": 3, "last_accessed": CREATED, "heritage_chain": json.dumps(heritage),
        "lesson_pattern_id": "p", "source_skill_id": "k",
    }  # fmt: skip
    memory, usage = rows(SOUND[1] | columns)
    assert {name: memory.fields[name] for name in columns if name in memory.fields} == {
        "session_id": "s2", "agent_id": "pilot", "memory_type": "session",
        "heritage_chain": heritage, "lesson_pattern_id": "p", "source_skill_id": "k",
    }  # fmt: skip
    assert memory.fields["importance"] == 0.7
    assert (usage.kind, usage.id, usage.fields["access_count"]) == (Kind.USAGE, memory.id, 3)


def test_no_text_of_a_damaged_row_is_lost() -> None:
    given = list(DAMAGED.values())
    found = rows(*SOUND, *given, schema=SCHEMA)[len(SOUND) :]
    assert [row.fields["content"] for row in found] == [
        row["content"] or "" for row in given if row["id"]
    ]
    assert len({row.id for row in found}) == len(found)
    same = next(row for row in found if "original_id" in row.fields["metadata"])
    assert (same.fields["metadata"]["original_id"], same.fields["content"]) == (
        SOUND[0]["id"],
        "Another text under the same id.",
    )
    broken = [
        row.fields["metadata"]["unread"] for row in found if "unread" in row.fields["metadata"]
    ]
    assert broken == ['{"type": "eve', "[1]"]
    assert [row.id for row in rows(*SOUND, *given, schema=SCHEMA)[len(SOUND) :]] == [
        row.id for row in found
    ]


def test_ids_and_revisions_that_are_known_are_respected() -> None:
    (row,) = rows(SOUND[0], revisions={SOUND[0]["id"]: 5})
    assert row.revision == 5
    (other,) = rows(SOUND[0], taken={SOUND[0]["id"]})
    assert other.id != SOUND[0]["id"]
    assert other.fields["metadata"]["original_id"] == SOUND[0]["id"]


def test_a_session_that_is_not_known_is_seen_by_its_agent() -> None:
    (row,) = rows(SOUND[1] | {"metadata": '{"type": "session"}'})
    assert (row.fields["memory_type"], row.fields["agent_id"]) == ("agent", "YAMO_AGENT")


@given(
    st.text(max_size=40)
    | st.recursive(st.floats() | st.integers() | st.text(), st.lists).map(
        lambda x: json.dumps({"a": x})
    )
)
@example('{"a": 1e999, "b": NaN, "c": 123456789012345678901234567890}')
@example('{"a": "\\u0000 \\ud800"}')
@example(
    '{"\\u0000": {"tags": 1}, "tags": ["x", 5], "type": 7, "session_id": {}, "importance": true}'
)
@example('{"a":' * 300 + "1" + "}" * 300)
@example('{"a":' * 100_000)
def test_any_metadata_and_content_make_a_row_that_a_store_can_keep(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    (row,) = rows(
        SOUND[0] | {"metadata": text, "content": text, "heritage_chain": text, "agent_id": text}
    )
    assert checked(row) == row
    assert row.fields["content"] == text.replace("\0", "\ufffd")
