"""Adding memories: one text, many texts, the same text again."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import Ids, Kind, Memory, millis
from memory_mesh.testing.fakes import NEW_YEAR, FakeClock, seeded_ids

from .house import House

RICH = {
    "type": "event",
    "source": "cli",
    "tags": ["a"],
    "importance": "high",
    "confidence": 0.4,
    "session_id": "s1",
}


@pytest.mark.req("MESH-075", "MESH-023")
def test_add_returns_the_record_as_it_is_kept(house: House, mesh: MemoryMesh) -> None:
    record = mesh.add("Some text", RICH)
    assert record.content == "Some text"
    assert record.metadata == RICH
    assert re.fullmatch(rf"mem_{NEW_YEAR}_[0-9a-f]{{6}}", record.id)
    assert record.created_at == record.updated_at == "2026-01-01T00:00:00.000Z"
    assert datetime.fromisoformat(record.created_at).timestamp() * 1000 == NEW_YEAR
    assert (record.importance, record.confidence, record.trust) == (0.75, 0.4, 0.5)
    assert (record.session_id, record.tags, record.agent_id, record.times_observed) == (
        "s1",
        ["a"],
        "ann",
        1,
    )
    assert mesh.get(record.id) == record


@pytest.mark.req("MESH-077")
def test_ingest_is_add_by_another_name(house: House) -> None:
    one = house.mesh("ann", ids=seeded_ids(1)).add("Some text", RICH, idempotency_key="k")
    other = house.mesh("ann", user_id="u", ids=seeded_ids(1)).ingest(
        "Some text", RICH, idempotency_key="k"
    )
    assert replace(other, user_id=None) == replace(one, id=other.id)


@pytest.mark.req("MESH-067")
def test_the_writer_is_the_documents_own_without_a_name(house: House) -> None:
    mesh = MemoryMesh(store=house.store)
    assert mesh.add("Some text").agent_id == "YAMO_AGENT"


def test_records_are_the_callers_own_and_changing_them_changes_nothing_kept(
    mesh: MemoryMesh,
) -> None:
    given = {"list": [1], "tags": ["a"]}
    record = mesh.add("Some text", given)
    given["list"].append(2)
    for seen in (record, mesh.get(record.id), mesh.get_all()[0], mesh.search("text")[0]):
        seen.metadata["list"].append("mine")
        seen.metadata["new"] = True
        seen.tags.append("mine")
    kept = mesh.get(record.id)
    assert kept.metadata == {"list": [1], "tags": ["a"]}
    assert kept.tags == ["a"]


def test_the_mesh_reads_every_shape_of_metadata_it_is_given(mesh: MemoryMesh) -> None:
    assert mesh.add("one", None).metadata == {}
    assert mesh.add("two", {}).metadata == {}


@pytest.mark.parametrize(
    ("content", "metadata"),
    [
        ("", None),
        (None, None),
        ("text", "no object"),
        ("text", {"importance": 2}),
        ("text", {"__proto__": 1}),
        ("a\0", None),
    ],
)
def test_what_cannot_be_used_is_refused_and_nothing_is_kept(
    house: House, mesh: MemoryMesh, content: object, metadata: object
) -> None:
    with pytest.raises(InvalidInput):
        mesh.add(content, metadata)
    assert house.memories() == []
    assert house.blocks() == []


# --- many at once ---


@pytest.mark.req("MESH-076")
def test_many_at_once_are_the_same_as_one_by_one() -> None:
    items = [
        ("first", RICH),
        ("second", None),
        ("First ", RICH),  # the first again
        ("second", {"source": "twice"}),
        ("third", {"type": "agent"}),
        ("second", None),
        ("a lesson", {"type": "lesson"}),
        ("a lesson", {"type": "lesson"}),
    ]

    def left_by(add: Callable[[MemoryMesh], object]) -> tuple[object, ...]:
        mesh = MemoryMesh(store="memory://", clock=FakeClock().seconds, ids=seeded_ids())
        answers = add(mesh)
        store = mesh._context().store
        # Numbers only order equal moments.
        memories = [replace(Memory.of(row), number=0) for row in store.find(Kind.MEMORY)]
        rest = [store.find(kind) for kind in (Kind.CHANGE, Kind.BLOCK, Kind.RECEIPT)]
        heads = [(row.id, row.number, row.value("block_hash")) for row in store.find(Kind.HEAD)]
        return answers, memories, rest, heads

    assert left_by(lambda mesh: mesh.add_many(items)) == left_by(
        lambda mesh: [mesh.add(*item) for item in items]
    )


@pytest.mark.req("MESH-076")
def test_duplicates_within_a_batch_are_counted_like_any_other(
    house: House, mesh: MemoryMesh
) -> None:
    mesh.add("known")
    records = mesh.add_many(
        [("new", None), ("known", None), ("New", None), ("Known ", None), ("new", None)]
    )
    assert len(house.memories()) == 2
    assert [(record.content, record.times_observed) for record in records] == [
        ("new", 1),
        ("known", 2),
        ("new", 2),
        ("known", 3),
        ("new", 3),
    ]
    assert {memory.content: memory.times_observed for memory in house.memories()} == {
        "new": 3,
        "known": 3,
    }
    assert len(house.blocks()) == 6
    assert house.sound()


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize(
    "bad",
    [
        ("", None),
        ("x", {"tags": 5}),
        ("x", 5),
        (None, None),
        b"text",
        ("only",),
        5,
        ("a", None, "b"),
        None,
    ],
)
def test_nothing_is_stored_when_one_of_many_cannot_be(
    house: House, mesh: MemoryMesh, bad: object, at: int
) -> None:
    items = [("one", None), ("two", None)]
    items.insert(at, bad)
    with pytest.raises(InvalidInput, match=f"^item {at}: "):
        mesh.add_many(items)
    assert house.memories() == []
    assert house.blocks() == []


def test_the_error_of_a_single_item_names_no_position(mesh: MemoryMesh) -> None:
    with pytest.raises(InvalidInput, match=r"^content is blank"):
        mesh.add_many([("", None)])


def test_an_empty_batch_is_an_empty_answer(house: House, mesh: MemoryMesh) -> None:
    assert mesh.add_many([]) == []
    assert house.blocks() == []


def test_any_iterable_is_a_batch(mesh: MemoryMesh) -> None:
    assert [record.content for record in mesh.add_many((text, {}) for text in ("a", "b"))] == [
        "a",
        "b",
    ]
    assert [record.content for record in mesh.add_many([["c", None]])] == ["c"]


# --- the same again ---


@pytest.mark.req("MESH-078")
@pytest.mark.parametrize("again", ["Some text", "some TEXT", "  Some\n text ", "Ｓｏｍｅ text"])
def test_the_same_text_is_counted_and_not_stored_again(
    house: House, mesh: MemoryMesh, again: str
) -> None:
    first = mesh.add("Some text", {"source": "one"})
    house.clock.advance(days=1)
    second = mesh.add(again, {"source": "two"})
    assert (second.id, second.content, second.times_observed) == (first.id, "Some text", 2)
    assert second.last_observed == "2026-01-02T00:00:00.000Z"
    assert second.metadata == {"source": "one"}
    assert len(house.memories()) == 1
    observed = mesh.history(first.id)[-1]
    assert (observed.action, observed.detail) == ("observe", {"source": "two"})
    assert [block.metadata["action"] for block in house.blocks()] == ["add", "observe"]


DIFFERENT = {
    "event time": ({"event_time": "2026-01-01"}, {"event_time": "2026-01-02"}),
    "event time or none": ({}, {"event_time": "2026-01-02"}),
    "speaker": ({"speaker": "ann"}, {"speaker": "bob"}),
    "turn": ({"turn": 1}, {"turn": 2}),
    "turn or none": ({}, {"turn": 2}),
    "session of a turn": ({"session_id": "s1", "turn": 1}, {"session_id": "s2", "turn": 1}),
    "session of a speaker": (
        {"session_id": "s1", "speaker": "ann"},
        {"session_id": "s2", "speaker": "ann"},
    ),
    "session of a session memory": (
        {"session_id": "s1", "type": "session"},
        {"session_id": "s2", "type": "session"},
    ),
    "project": ({"project": "p"}, {"project": "q"}),
    "type": ({"type": "global"}, {"type": "agent"}),
}


@pytest.mark.req("MESH-078")
@pytest.mark.parametrize("what", DIFFERENT)
def test_a_second_thanks_is_a_second_turn(house: House, mesh: MemoryMesh, what: str) -> None:
    one, other = DIFFERENT[what]
    first, second = mesh.add("Thanks", one), mesh.add("Thanks", other)
    assert first.id != second.id
    assert (mesh.add("thanks", one).times_observed, mesh.add("THANKS", other).times_observed) == (
        2,
        2,
    )
    assert len(house.memories()) == 2


@pytest.mark.req("MESH-079")
def test_lessons_are_never_counted_as_one(house: House, mesh: MemoryMesh) -> None:
    for _ in range(2):
        mesh.add("Check the disk", {"type": "lesson"})
    assert [memory.times_observed for memory in house.memories()] == [1, 1]
    mesh.add("Check the disk")
    assert len(house.memories()) == 3


@pytest.mark.parametrize("status", ["archived", "superseded", "quarantined", "disputed"])
def test_only_an_active_memory_is_counted(house: House, mesh: MemoryMesh, status: str) -> None:
    first = mesh.add("Some text")
    house.change(first.id, status=status)
    assert mesh.add("Some text").id != first.id
    assert house.memory(first.id).times_observed == 1


def test_a_text_that_expired_is_stored_anew(house: House, mesh: MemoryMesh) -> None:
    first = mesh.add("Some text", {"expires_at": "2026-01-02"})
    assert mesh.add("Some text").id == first.id
    house.clock.advance(days=1)
    second = mesh.add("Some text")
    assert second.id != first.id
    assert [record.id for record in mesh.get_all()] == [second.id]


@pytest.mark.req("MESH-005")
def test_a_sighting_changes_no_other_time(house: House, mesh: MemoryMesh) -> None:
    times = {
        "event_time": "2025-01-01",
        "valid_from": "2025-02-01",
        "valid_until": "2027-01-01",
        "expires_at": "2028-01-01",
    }
    first = mesh.add("Some text", times)
    house.clock.advance(days=3)
    second = mesh.add("Some text", {"event_time": "2025-01-01"})
    unchanged = {
        "created_at",
        "updated_at",
        "event_time",
        "valid_from",
        "valid_until",
        "expires_at",
    }
    assert {name: getattr(second, name) for name in unchanged} == {
        name: getattr(first, name) for name in unchanged
    }
    assert second.last_observed == "2026-01-04T00:00:00.000Z"


# --- ids and fakes ---


class Stuttering:
    """Ids that give each one several times, as two processes might."""

    def __init__(self, times: int) -> None:
        self._ids, self._times, self._given = Ids(), times, {}

    def new(self, prefix: str, ms: int) -> str:
        left, id_ = self._given.get(prefix, (0, ""))
        left, id_ = (left - 1, id_) if left else (self._times - 1, self._ids.new(prefix, ms))
        self._given[prefix] = left, id_
        return id_

    def salt(self) -> str:
        return self._ids.salt()


@pytest.mark.req("MESH-007")
def test_an_id_that_is_taken_is_rolled_again(house: House) -> None:
    mesh = house.mesh(ids=Stuttering(3))
    records = [mesh.add(f"text {n}") for n in range(5)]
    assert len({record.id for record in records}) == 5
    assert len({block.id for block in house.blocks()}) == 5
    assert house.sound()


@pytest.mark.req("MESH-006")
def test_the_same_calls_under_the_same_fakes_leave_equal_records() -> None:
    def run() -> list[object]:
        clock = FakeClock()
        mesh = MemoryMesh(store="memory://", clock=clock.seconds, ids=seeded_ids(7))
        one = mesh.add("one", RICH)
        clock.advance(seconds=5)
        mesh.add_many([("two", None), ("one", RICH)])
        mesh.update(one.id, content="uno")
        mesh.pin(one.id)
        mesh.delete(mesh.add("three").id)
        store = mesh._context().store
        return [store.find(kind) for kind in Kind]

    assert run() == run()


def test_imported_ids_of_another_shape_are_read_like_any_other(
    house: House, mesh: MemoryMesh
) -> None:
    kept = house.memory(mesh.add("Some text").id)
    odd = ["0b6f3c1e-5d0e-4a53-8a55-1d5a0d7f7a11", "k3x9", "a slug/with: odd;characters"]
    house.store.apply([replace(kept, id=id_, fingerprint=None, salt=None).row() for id_ in odd])
    assert [mesh.get(id_).id for id_ in odd] == odd
    assert mesh.update(odd[2], content="changed").content == "changed"
    mesh.delete(odd[2])
    assert mesh.get(odd[2]) is None
    assert house.sound()


# --- the audit chain of adding ---


@pytest.mark.req("MESH-024", "MESH-038", "MESH-041", "MESH-141")
def test_every_write_is_a_block_of_its_writers_chain(house: House) -> None:
    ann, bob = house.mesh("ann"), house.mesh("bob", user_id="u")
    kept = ann.add(
        "Some text", {"status": "error", "tags": ["#x"], "error_pattern": "p", "other": 1}
    )
    ann.pin(kept.id)
    bob.add("Other text")
    first, second = house.blocks("ann")
    assert first.metadata == {
        "action": "add",
        "status": "error",
        "tags": ["#x"],
        "error_pattern": "p",
    }
    assert second.metadata["action"] == "pin"
    assert {block.operation_type for block in (first, second)} == {"retain"}
    assert all(re.fullmatch(r"yamo_retain_\d+_[0-9a-f]{6}", block.id) for block in (first, second))
    assert [block.number for block in house.blocks("bob", "u")] == [1]
    assert second.prev_hash == first.block_hash


@pytest.mark.req("MESH-024")
def test_the_id_of_a_block_names_its_operation_and_moment_and_not_its_place(
    house: House, mesh: MemoryMesh
) -> None:
    lesson = {
        "situation": "s",
        "error_pattern": "p",
        "oversight": "o",
        "fix": "f",
        "preventative_rule": "r",
    }
    kept = mesh.add("Some text")
    house.clock.advance(seconds=1)
    mesh.search("text")
    mesh.distill_lesson({**lesson, "severity": "high", "applicable_scope": "a"})
    mesh.delete(kept.id)
    blocks = mesh.audit_log(limit=100)
    assert {block.operation_type for block in blocks} == {"retain", "recall", "lesson"}
    shapes = {
        block.id: rf"yamo_{block.operation_type}_{millis(block.created_at)}_[0-9a-f]{{6}}"
        for block in blocks
    }
    assert [id_ for id_, shape in shapes.items() if not re.fullmatch(shape, id_)] == []
    assert sorted(block.number for block in blocks) == [1, 1, 2, 3]


@pytest.mark.req("MESH-055")
def test_a_hypothesis_of_nothing_is_none(house: House, mesh: MemoryMesh) -> None:
    mesh.add("one", {"hypothesis": None})
    mesh.add("two", {"hypothesis": "it helps; always"})
    mesh.add("three")
    said = [re.search(r"hypothesis;(.*);", block.yamo_text).group(1) for block in house.blocks()]
    assert said == ["none", "it helps, always", "none"]
    assert mesh.search("two")[0].metadata["hypothesis"] == "it helps; always"


@pytest.mark.req("MESH-043")
def test_a_clock_set_back_does_not_reorder_the_chain(house: House, mesh: MemoryMesh) -> None:
    for step in (5, -100, 3, -1):
        mesh.add(f"text {step}")
        house.clock.advance(days=step)
    assert [block.number for block in house.blocks()] == [1, 2, 3, 4]
    assert [block.created_at for block in house.blocks()] != sorted(
        block.created_at for block in house.blocks()
    )
    assert house.sound()
