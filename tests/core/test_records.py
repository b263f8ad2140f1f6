"""Records and rows: every field is restored, and internal fields are not shown."""

from dataclasses import asdict, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import (
    Block,
    Change,
    Head,
    Kind,
    Memory,
    MemoryRecord,
    Receipt,
    SearchResult,
    Status,
    Vector,
    partition,
)

AT = "2026-01-01T00:00:00.000Z"
FULL = Memory(
    id="mem_1_00000a",
    content="text",
    metadata={"k": [1, {"a": None}]},
    created_at=AT,
    updated_at="2026-01-02T00:00:00.000Z",
    user_id="u",
    agent_id="a",
    session_id="s",
    project="p",
    memory_type="agent",
    category="fact",
    tags=["t"],
    status="archived",
    importance=0.1,
    trust=0.2,
    confidence=0.3,
    event_time="2026-01-03T00:00:00.000Z",
    valid_from="2026-01-04T00:00:00.000Z",
    valid_until="2026-01-05T00:00:00.000Z",
    expires_at="2026-01-06T00:00:00.000Z",
    last_observed="2026-01-07T00:00:00.000Z",
    times_observed=3,
    pinned=True,
    pending=True,
    speaker="ann",
    turn=4,
    superseded_by="mem_2_00000a",
    supersedes=["mem_3_00000a"],
    sources=["mem_4_00000a"],
    heritage_chain={"intentChain": ["a"]},
    claim={"subject": "ana"},
    claim_key="k",
    corroborations=2,
    reinforcements=3,
    disputes=1,
    entities=["project:atlas"],
    feedback_score=1.1,
    feedback_count=1,
    lesson_pattern_id="0123456789abcdef",
    source_skill_id="skill_1_00000a",
    key="profile",
    revision=5,
    reach="session",
    number=6,
    fingerprint="f" * 64,
    salt="5" * 32,
    keywords=["text"],
    vector=Vector.of("model", [1.0, 0.5]),
)
SECRET = {"salt", "fingerprint", "keywords", "vector", "reach", "number"}


def test_every_field_of_a_memory_comes_back_from_its_row() -> None:
    unset = {f.name for f in fields(Memory) if getattr(FULL, f.name) == f.default}
    # So that no field is left out of this test; counts and blocks are rows of their own.
    assert unset == {"access_count", "last_accessed", "sealed"}
    assert Memory.of(FULL.row()) == FULL
    bare = Memory(id="m", content="c", created_at=AT, updated_at=AT)
    assert Memory.of(bare.row()) == bare


@pytest.mark.parametrize(
    "record",
    [
        Change(id="m#2", created_at=AT, ref="m", number=2, action="update", why="so",
               before={"content": "old"}, detail={"a": 1}),
        Change(id="m#2", created_at=AT, ref="m", number=2, action="pin"),
        Block(
            id="b", created_at=AT, chain="c", number=1, operation_type="retain", yamo_text="t",
            block_hash="h", prev_hash="p", user_id="u", agent_id="a", ref="m",
            metadata={"action": "add"},
        ),
        Block(id="b", created_at=AT, chain="c", number=1, operation_type="retain", yamo_text="t",
              block_hash="h"),
        Head(id="c", created_at=AT, number=3, block_hash="h", revision=3),
        Receipt(id="r", created_at=AT, ref="m", request="q"),
        Receipt(id="r", created_at=AT, ref="m", request=None, revision=2),
    ],
    ids=lambda record: type(record).__name__,
)  # fmt: skip
def test_other_records_come_back_from_their_rows_too(record: object) -> None:
    row = record.row("somewhere") if isinstance(record, Change | Receipt) else record.row()
    assert type(record).of(row) == record


def test_a_row_says_which_revision_it_replaces() -> None:
    assert FULL.row().replaces == 0
    assert FULL.row(replaces=4).replaces == 4
    assert Head(id="c", created_at=AT, number=3, block_hash="h", revision=3).row().replaces == 2


def test_a_memory_lives_where_its_scope_says() -> None:
    assert FULL.row().partition == partition("u", "a")
    assert replace(FULL, memory_type="global", reach=None).partition == partition("u", None)
    assert replace(FULL, memory_type="lesson", reach="agent").partition == partition("u", "a")


def test_records_for_callers_have_no_internal_fields() -> None:
    assert {f.name for f in fields(Memory)} >= SECRET
    for seen in (FULL.record(0.2), SearchResult.of(FULL.row(), 0.5)):
        stored = asdict(seen)
        assert not SECRET & stored.keys()
        assert FULL.content in str(stored)
        assert FULL.salt not in str(stored)
        assert FULL.fingerprint not in str(stored)
        shared = stored.keys() & {f.name for f in fields(MemoryRecord)}
        assert {name: getattr(FULL, name) for name in shared} == {
            name: stored[name] for name in shared
        }
    assert type(FULL.record(0.2)) is MemoryRecord
    assert (type(SearchResult.of(FULL.row(), 0.5)), SearchResult.of(FULL.row(), 0.5).score) == (
        SearchResult,
        0.5,
    )


def test_a_record_is_a_frozen_value() -> None:
    with pytest.raises(AttributeError):
        FULL.record(0.2).content = "other"
    with pytest.raises(AttributeError):
        FULL.content = "other"


@pytest.mark.parametrize("name", ["importance", "trust", "confidence"])
def test_the_numbers_are_kept_apart(name: str) -> None:
    one = replace(FULL, importance=None, trust=None, confidence=None)
    back = Memory.of(replace(one, **{name: 0.5}).row())
    assert {
        other: getattr(back, other)
        for other in ("importance", "trust", "confidence")
        if getattr(back, other)
    } == {name: 0.5}


@pytest.mark.parametrize(
    "wrong",
    [
        {"content": None},
        {"content": 5},
        {"content": "a\0"},
        {"tags": "a"},
        {"tags": [1]},
        {"turn": 1.5},
        {"turn": True},
        {"turn": 2**53 + 1},
        {"importance": "high"},
        {"importance": float("nan")},
        {"importance": float("inf")},
        {"pinned": 1},
        {"metadata": ["a"]},
        {"metadata": {"a": b"x"}},
        {"metadata": {1: "x"}},
        {"metadata": {"a": [float("nan")]}},
        {"id": 5},
        {"id": "\ud800"},
        {"revision": "1"},
        {"updated_at": None},
        {"turn": 10**5000},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_row_that_no_store_could_keep_is_refused(wrong: dict[str, object]) -> None:
    assert FULL.row()
    with pytest.raises(InvalidInput):
        replace(FULL, **wrong).row()


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
    st.dictionaries(
        st.text("abc\U0001f600", max_size=3),
        st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False),
    ),
    st.lists(st.text("xyz", max_size=3)),
)
def test_any_memory_comes_back(content: str, metadata: dict[str, object], tags: list[str]) -> None:
    memory = replace(FULL, content=content, metadata=metadata, tags=tags)
    assert Memory.of(memory.row()) == memory
    assert memory.row().kind is Kind.MEMORY


@pytest.mark.req("MESH-008")
def test_there_are_five_statuses() -> None:
    assert [status.value for status in Status] == [
        "active",
        "superseded",
        "disputed",
        "quarantined",
        "archived",
    ]
    assert MemoryRecord(id="m", content="c", created_at=AT, updated_at=AT).status == "active"
