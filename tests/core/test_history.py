"""Revisions of a memory and the changes that record them."""

import pytest

from memory_mesh.core.model import Memory, Vector, change_id, creation, revise

AT, LATER = "2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z"
MEMORY = Memory(
    id="m",
    content="old",
    metadata={"a": 1},
    created_at=AT,
    updated_at=AT,
    user_id="u",
    agent_id="writer",
    revision=3,
)


def test_a_revision_is_a_new_value_and_the_old_one_stays() -> None:
    newer, _ = revise(MEMORY, at=LATER, by="other", action="update", content="new")
    assert (newer.content, newer.revision) == ("new", 4)
    assert (MEMORY.content, MEMORY.revision) == ("old", 3)


def test_a_change_tells_when_what_by_whom_and_why() -> None:
    _, change = revise(
        MEMORY,
        at=LATER,
        by="other",
        action="update",
        why="it was wrong",
        detail={"seen": "twice"},
        content="new",
    )
    assert (change.created_at, change.action, change.agent_id, change.why) == (
        LATER,
        "update",
        "other",
        "it was wrong",
    )
    assert (change.ref, change.number, change.user_id, change.detail) == (
        "m",
        4,
        "u",
        {"seen": "twice"},
    )


def test_a_change_keeps_what_it_replaced_and_nothing_else() -> None:
    _, change = revise(
        MEMORY,
        at=LATER,
        by=None,
        action="update",
        content="new",
        metadata={"a": 1},
        pinned=True,
        tags=[],
    )
    assert change.before == {"content": "old", "pinned": False}


@pytest.mark.parametrize("derived", ["keywords", "fingerprint", "updated_at", "vector"])
def test_what_is_worked_out_from_the_rest_is_not_kept_twice(derived: str) -> None:
    value = {
        "keywords": ["k"],
        "fingerprint": "f",
        "updated_at": LATER,
        "vector": Vector.of("m", [1.0]),
    }[derived]
    newer, change = revise(MEMORY, at=LATER, by=None, action="update", **{derived: value})
    assert getattr(newer, derived) == value
    assert change.before == {}


def test_the_revisions_of_a_memory_have_ids_that_never_repeat() -> None:
    ids = []
    memory = MEMORY
    for _ in range(3):
        memory, change = revise(memory, at=LATER, by=None, action="pin", pinned=not memory.pinned)
        ids.append(change.id)
    assert ids == [change_id("m", number) for number in (4, 5, 6)]
    assert len({change_id("m", 11), change_id("m1", 1), *ids}) == 5


def test_a_history_begins_with_the_adding() -> None:
    first = creation(MEMORY)
    assert (first.action, first.number, first.created_at, first.agent_id) == (
        "add",
        1,
        AT,
        "writer",
    )
    assert first.before == {}
