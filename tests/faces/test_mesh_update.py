"""Updates: given values change, others stay, and the history keeps the old ones."""

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import InvalidInput, NotFound
from memory_mesh.core.model import partition

from .house import House, texts, whole

TIMES = (
    "created_at",
    "updated_at",
    "event_time",
    "valid_from",
    "valid_until",
    "expires_at",
    "last_observed",
)


def times(record: object) -> dict[str, str | None]:
    return {name: getattr(record, name) for name in TIMES}


def test_content_and_metadata_change_and_a_new_revision_is_made(
    house: House, mesh: MemoryMesh
) -> None:
    first = mesh.add("old text", {"a": 1, "b": 2, "c": None})
    house.clock.advance(days=1)
    second = mesh.update(
        first.id, content="new words", metadata={"b": None, "d": [4]}, why="it was wrong"
    )
    assert (second.id, second.content, second.metadata, second.revision) == (
        first.id, "new words", {"a": 1, "c": None, "d": [4]}, 2,
    )  # fmt: skip
    assert mesh.get(first.id) == second
    assert [hit.id for hit in mesh.search("words")] == [first.id]
    assert mesh.search("old") == []


def test_the_history_tells_every_step_with_what_was_before(house: House) -> None:
    ann, bob = house.mesh("ann"), house.mesh("bob")
    id_ = ann.add("one", {"a": 1}).id
    house.clock.advance(days=1)
    ann.update(id_, content="two")
    house.clock.advance(days=1)
    bob.update(id_, content="three", metadata={"a": 2}, why="better")
    bob.pin(id_)
    added, second, third, pinned = bob.history(id_)
    assert (added.action, added.number, added.agent_id) == ("add", 1, "ann")
    assert (second.before, second.created_at, second.agent_id) == (
        {"content": "one"},
        "2026-01-02T00:00:00.000Z",
        "ann",
    )
    assert (third.before, third.agent_id, third.why, third.number) == (
        {"content": "two", "metadata": {"a": 1}}, "bob", "better", 3,
    )  # fmt: skip
    assert (pinned.action, pinned.before, pinned.number) == ("pin", {"pinned": False}, 4)
    assert ann.history(id_) == bob.history(id_)


@pytest.mark.req("MESH-080")
def test_get_returns_none_for_an_unknown_id_and_other_methods_raise(mesh: MemoryMesh) -> None:
    assert mesh.get("mem_1_ffffff") is None
    for call in (
        lambda: mesh.update("mem_1_ffffff", content="x"),
        lambda: mesh.pin("mem_1_ffffff"),
        lambda: mesh.history("mem_1_ffffff"),
    ):
        with pytest.raises(NotFound, match="mem_1_ffffff"):
            call()


@pytest.mark.parametrize(
    "id_",
    [None, 5, ["a"], b"a", "half \ud800", "nul \0", 10**5000, {}],
    ids=lambda id_: type(id_).__name__,
)
def test_an_id_is_text(mesh: MemoryMesh, id_: object) -> None:
    for call in (
        lambda: mesh.get(id_),
        lambda: mesh.history(id_),
        lambda: mesh.update(id_, content="x"),
        lambda: mesh.pin(id_),
        lambda: mesh.delete(id_),
        lambda: mesh.erase(id_),
    ):
        with pytest.raises(
            InvalidInput, match=r"id must be text|no id is given|no id, key or scope"
        ):
            call()


def test_nothing_to_update_is_an_error_and_nothing_changed_is_none(
    house: House, mesh: MemoryMesh
) -> None:
    first = mesh.add("text", {"a": 1})
    with pytest.raises(InvalidInput, match="nothing to update"):
        mesh.update(first.id)
    house.clock.advance(days=1)
    for same in (
        {"content": "text"},
        {"metadata": {}},
        {"metadata": {"a": 1}},
        {"metadata": {"gone": None}},
        {"content": "text", "metadata": {"a": 1}},
    ):
        assert mesh.update(first.id, **same) == first.changed(trust=0.499726)  # of a day later
    assert len(house.blocks()) == len(mesh.history(first.id)) == 1


CYCLE: dict[str, object] = {}
CYCLE["again"] = CYCLE


@pytest.mark.parametrize(
    "wrong",
    [
        {"content": ""},
        {"content": 5},
        {"content": "a\0"},
        {"content": {1: 2, "a": 3}},
        {"content": "x" * 1_000_001},
        {"metadata": "text"},
        {"metadata": [("a", 1)]},
        {"metadata": {1: "a", "b": 2}},
        {"metadata": {("a", "b"): 1}},
        {"metadata": {"a": {1, 2}}},
        {"metadata": {"a": 10**5000}},
        {"metadata": {"a": float("nan")}},
        {"metadata": CYCLE},
        {"metadata": {"deep": {"__proto__": 1}}},
        {"metadata": {"importance": 5}},
        {"metadata": {"tags": "a"}},
        {"metadata": {"event_time": "never"}},
        {"metadata": {"type": "session"}},
        {"content": "fine", "why": 5},
        {"content": "fine", "why": "half \ud800"},
        {"content": "fine", "idempotency_key": " "},
        {"content": "fine", "idempotency_key": 5},
    ],
    ids=lambda wrong: "-".join(wrong),
)  # fmt: skip
def test_what_cannot_be_used_is_refused_and_nothing_changes(
    house: House, mesh: MemoryMesh, wrong: dict[str, object]
) -> None:
    first = mesh.add("text", {"a": 1})
    with pytest.raises(InvalidInput):
        mesh.update(first.id, **wrong)
    assert mesh.get(first.id) == first
    assert len(house.blocks()) == 1


# --- columns ---


@pytest.mark.parametrize(
    ("name", "value", "column"),
    [
        ("importance", "high", 0.75),
        ("confidence", 0.5, 0.5),
        ("project", "p", "p"),
        ("category", "fact", "fact"),
        ("speaker", "ann", "ann"),
        ("turn", 3, 3),
        ("tags", ["a"], ["a"]),
        ("session_id", "s", "s"),
        ("event_time", "2026-02-01", "2026-02-01T00:00:00.000Z"),
        ("valid_from", "2026-02-01", "2026-02-01T00:00:00.000Z"),
        ("valid_until", "2026-02-01", "2026-02-01T00:00:00.000Z"),
        ("expires_at", "2026-02-01", "2026-02-01T00:00:00.000Z"),
    ],
)
def test_a_column_is_set_by_its_key_and_emptied_by_none(
    mesh: MemoryMesh, name: str, value: object, column: object
) -> None:
    empty = getattr(mesh.add("other text"), name)
    id_ = mesh.add("text").id
    assert getattr(mesh.update(id_, metadata={name: value}), name) == column
    # An update of something else leaves it.
    assert getattr(mesh.update(id_, content="text, changed"), name) == column
    emptied = mesh.update(id_, metadata={name: None})
    assert getattr(emptied, name) == empty
    assert name not in emptied.metadata


@pytest.mark.req("MESH-005")
@pytest.mark.parametrize("name", ["event_time", "valid_from", "valid_until", "expires_at"])
def test_changing_one_time_changes_no_other(house: House, mesh: MemoryMesh, name: str) -> None:
    given = {
        "event_time": "2025-01-01",
        "valid_from": "2025-02-01",
        "valid_until": "2027-01-01",
        "expires_at": "2028-01-01",
    }
    before = mesh.add("text", given)
    house.clock.advance(days=1)
    after = mesh.update(before.id, metadata={name: "2026-06-01"})
    assert times(after) == {
        **times(before),
        name: "2026-06-01T00:00:00.000Z",
        "updated_at": "2026-01-02T00:00:00.000Z",
    }


@pytest.mark.req("MESH-005")
def test_pinning_changes_no_time_and_an_update_only_its_own(house: House, mesh: MemoryMesh) -> None:
    before = mesh.add("text", {"event_time": "2025-01-01", "expires_at": "2028-01-01"})
    house.clock.advance(days=1)
    assert times(mesh.pin(before.id)) == times(before)
    assert times(mesh.update(before.id, content="new")) == {
        **times(before),
        "updated_at": "2026-01-02T00:00:00.000Z",
    }
    house.clock.advance(days=1)
    mesh.search("new")
    mesh.get_all()
    assert times(mesh.get(before.id)) == {**times(before), "updated_at": "2026-01-02T00:00:00.000Z"}


def test_the_session_a_mesh_wrote_in_stays_through_an_update(house: House) -> None:
    mesh = house.mesh(session_id="s1")
    id_ = mesh.add("text", {"type": "session"}).id
    assert mesh.update(id_, content="new").session_id == "s1"
    assert mesh.update(id_, metadata={"session_id": "s1", "a": 1}).session_id == "s1"
    with pytest.raises(InvalidInput, match="no session_id"):
        mesh.update(id_, metadata={"session_id": None})


# --- moving between scopes ---


@pytest.mark.req("MESH-025")
def test_a_memory_that_moves_to_another_scope_is_seen_by_others(house: House) -> None:
    ann, bob, session = house.mesh("ann"), house.mesh("bob"), house.mesh("ann", session_id="s1")
    id_ = ann.add("moving text").id

    def visible_to() -> list[str]:
        readers = {"ann": ann, "bob": bob, "session": session}
        seen = [name for name, reader in readers.items() if reader.get(id_)]
        for name, reader in readers.items():
            assert (texts(reader.get_all()) == ["moving text"]) == (name in seen)
            assert (texts(reader.search("moving")) == ["moving text"]) == (name in seen)
        return seen

    assert visible_to() == ["ann", "bob", "session"]
    ann.update(id_, metadata={"type": "agent"})
    assert visible_to() == ["ann", "session"]
    assert house.memory(id_).partition == partition(None, "ann")
    ann.update(id_, metadata={"type": "session", "session_id": "s1"})
    assert visible_to() == ["session"]
    with pytest.raises(NotFound):
        ann.update(id_, content="no longer there")
    session.update(id_, metadata={"type": None})
    assert visible_to() == ["ann", "bob", "session"]
    assert house.memory(id_).partition == partition(None, None)
    assert house.sound()


def test_a_memory_stays_its_writers_whoever_changes_it(house: House) -> None:
    ann, bob = house.mesh("ann"), house.mesh("bob")
    id_ = ann.add("text").id
    assert bob.update(id_, content="changed").agent_id == "ann"
    bob.update(id_, metadata={"type": "agent"})
    assert bob.get(id_) is None
    assert ann.get(id_).content == "changed"
    assert [block.metadata["action"] for block in house.blocks("bob")] == ["update", "update"]


def test_a_memory_is_counted_under_its_new_text_and_scope(house: House, mesh: MemoryMesh) -> None:
    id_ = mesh.add("old").id
    mesh.update(id_, content="new", metadata={"project": "p", "turn": 2})
    assert mesh.add("old").id != id_
    assert mesh.add("new").id != id_
    assert mesh.add("New ", {"project": "p", "turn": 2}).id == id_


def test_a_memory_that_another_one_was_made_equal_to_is_counted_once(
    house: House, mesh: MemoryMesh
) -> None:
    one, other = mesh.add("one").id, mesh.add("other").id
    mesh.update(other, content="one")
    again = mesh.add("One")
    assert again.id in (one, other)
    assert sorted(memory.times_observed for memory in house.memories()) == [1, 2]


# --- pinning ---


def test_pinning_is_done_once_and_undone_once(house: House, mesh: MemoryMesh) -> None:
    id_ = mesh.add("text").id
    assert mesh.pin(id_).pinned
    assert mesh.pin(id_).revision == 2
    assert not mesh.pin(id_, pinned=False).pinned
    assert mesh.pin(id_, pinned=False).revision == 3
    assert [change.action for change in mesh.history(id_)] == ["add", "pin", "unpin"]
    assert [block.metadata["action"] for block in house.blocks()] == ["add", "pin", "unpin"]
    with pytest.raises(InvalidInput):
        mesh.pin(id_, pinned="yes")


def test_what_a_memory_said_while_it_was_private_stays_private_when_it_is_shared(house):
    ann, bob = house.mesh("ann"), house.mesh("bob")
    memory = ann.add("The code is 4711.", {"type": "agent"})
    ann.update(memory.id, content="The door has a code.", why="too private")
    ann.update(memory.id, metadata={"type": "global"})
    ann.update(memory.id, content="The door has a keypad.")
    assert "4711" in whole(ann.history(memory.id))
    changes = bob.history(memory.id)
    assert [change.action for change in changes] == ["add", "update", "update", "update"]
    assert changes[-1].before == {"content": "The door has a code."}
    assert "4711" not in whole(changes)
    assert "too private" not in whole(changes)
