"""Hostile and unlucky writes: no turn, key or erasure is lost, and no part of a secret is
stored."""

import json
from typing import Any

import pytest

from memory_mesh import InvalidInput, MemoryMesh

from .house import House, texts

AT = "2026-01-01T00:00:00.000Z"


# --- turns ---


def test_a_message_after_the_largest_turn_is_refused_and_not_lost(mesh: MemoryMesh) -> None:
    mesh.add("An export of another program.", {"turn": 2**53, "session_id": "s1"})
    hello = {"role": "user", "content": "hello"}
    for write in (
        lambda: mesh.add(hello, {"session_id": "s1"}),
        lambda: mesh.add([hello], {"session_id": "s1"}),
    ):
        with pytest.raises(InvalidInput, match="the last turn has number 9007199254740992"):
            write()
    assert [one.content for one in mesh.add([hello], {"session_id": "s2"})] == ["hello"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ("y " * 1_983 + "ghp_Tt2nllZpKKgOAxMi63jOZgW82kWd6abcD0xY and more", "ghp_Tt"),
        ({"note": "y " * 1_980, "card": "4111 1111 1111 1111"}, "4111"),
        (json.dumps({"note": "y " * 1_980, "password": "correct horse battery"}), "correct"),
    ],
    ids=["text", "object", "JSON"],
)
def test_no_part_of_a_secret_in_long_arguments_is_stored(
    house: House, mesh: MemoryMesh, arguments: object, part: str
) -> None:
    call = {"id": "c1", "function": {"name": "write", "arguments": arguments}}
    mesh.add({"role": "assistant", "content": "I write it.", "tool_calls": [call]})
    stored = json.dumps(house.memories()[0].metadata)
    assert "write" in stored
    assert part in str(arguments)
    assert part not in stored


# --- keys ---


@pytest.mark.parametrize("change", [{"project": "q"}, {"type": "agent"}])
def test_an_update_does_not_move_a_key_onto_another(
    mesh: MemoryMesh, change: dict[str, str]
) -> None:
    first, second = mesh.add("v1", key="profile"), mesh.add("v2", change, key="profile")
    with pytest.raises(InvalidInput, match="another memory has the key 'profile' there"):
        mesh.update(first.id, metadata=change)
    assert mesh.get(first.id) == first
    mesh.delete(second.id)
    assert mesh.update(first.id, metadata=change).revision == 2
    assert mesh.add("v3", change, key="profile").id == first.id


@pytest.mark.parametrize("by", ["ann", "bob"])
@pytest.mark.parametrize("others", [[], ["bob", "bob"], ["bob", "cleo"]])
def test_what_replaces_a_text_was_stored_once(house: House, by: str, others: list[str]) -> None:
    for agent in ["ann", "ann", *others]:
        before = house.mesh(agent).add("v1", key="profile")
    assert (
        before.times_observed
        == sum(one.times_observed for one in house.mesh().sightings(before.id))
        == 2 + len(others)
    )
    after = house.mesh(by).add("v2", key="profile")
    assert (after.id, after.times_observed) == (before.id, 1)
    assert [(one.agent_id, one.times_observed) for one in house.mesh().sightings(after.id)] == [
        (by, 1)
    ]
    assert house.mesh(by).add("v2", key="profile").times_observed == 2
    assert house.sound()


@pytest.mark.parametrize(
    ("before", "after", "stored"),
    [
        ({"redaction": "off"}, {"redaction": "mask"}, "profile of Ana Roe, [EMAIL]"),
        ({"redaction": "mask"}, {"redaction": "off"}, "profile of Ana Roe, ana@example.org"),
        ({}, {"redact_names": {"Ana Roe": "P1"}}, "profile of P1, [EMAIL]"),
    ],
)
def test_a_key_is_the_same_under_other_settings_of_masking(
    house: House, before: dict[str, Any], after: dict[str, Any], stored: str
) -> None:
    key = "profile of Ana Roe, ana@example.org"
    first = house.mesh(**before).add("v1", key=key)
    second = house.mesh(**after).add("v2", key=key)
    assert (second.id, second.revision, second.key) == (first.id, 2, stored)
    assert [one.content for one in house.memories()] == ["v2"]


def test_a_key_that_another_agent_uses_for_all_neither_hides_nor_replaces_the_own_one(
    house: House,
) -> None:
    ann, bob = house.mesh("ann"), house.mesh("bob")
    own = ann.add("Ann reviews on Mondays.", {"type": "agent"}, key="rule")
    house.clock.advance(seconds=1)
    shared = bob.add("Nobody reviews.", key="rule")
    assert ann.get(key="rule") == own
    assert bob.get(key="rule") == shared
    ann.delete(key="rule")
    assert [one.id for one in house.memories()] == [shared.id]
    assert ann.get(key="rule") == shared


# --- sightings ---

SOON, LATER = "2027-01-01T00:00:00.000Z", "2028-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("stored", "erased", "left"),
    [
        ({"ann": SOON, "bob": None}, "bob", SOON),
        ({"ann": SOON, "bob": LATER}, "bob", SOON),
        ({"ann": SOON, "bob": SOON, "cleo": LATER}, "ann", LATER),
        ({"ann": SOON, "bob": SOON, "cleo": None}, "ann", None),
        ({"ann": None, "bob": SOON}, "ann", SOON),
    ],
)
def test_a_memory_expires_with_the_last_of_those_who_are_left(
    house: House, stored: dict[str, str | None], erased: str, left: str | None
) -> None:
    for agent, expires in stored.items():
        house.clock.advance(seconds=1)
        id_ = (
            house.mesh(agent)
            .add("The door code is on the fridge.", {"expires_at": expires} if expires else None)
            .id
        )
    assert house.memory(id_).expires_at == (
        None if None in stored.values() else max(map(str, stored.values()))
    )
    house.mesh().delete_all(agent_id=erased)
    assert house.memory(id_).expires_at == left
    assert house.sound()


# --- import ---


def lines(**values: object) -> list[str]:
    memory = {
        "id": "mem_1",
        "content": "The lantern",
        "created_at": AT,
        "updated_at": AT,
        "agent_id": "ann",
        **values,
    }
    other = {**memory, "id": "mem_2", "sightings": []}
    return [
        '{"format": "memory-mesh memories", "version": 1}',
        json.dumps(memory),
        json.dumps(other),
    ]


SEEN: dict[str, Any] = {"agent_id": "bob", "created_at": AT, "last_observed": AT}


@pytest.mark.parametrize(
    "metadata",
    [
        {"tags": 5},
        {"importance": "x"},
        {"user_id": "eve"},
        {"agent_id": "eve"},
        {"expires_at": "x"},
        {"__proto__": 1},
    ],
    ids=lambda metadata: next(iter(metadata)),
)
def test_an_imported_sighting_never_prevents_an_erasure(
    house: House, mesh: MemoryMesh, metadata: dict[str, object]
) -> None:
    done = mesh.import_memories(lines(sightings=[{**SEEN, "metadata": metadata}]))
    assert [one.line for one in done.failed] == [2]
    mesh.import_memories(lines(sightings=[{**SEEN, "metadata": {"tags": ["ops"]}}]))
    assert mesh.delete_all(agent_id="ann").kept == ("mem_1",)
    assert house.memory("mem_1").tags == ["ops"]


def test_a_line_with_a_sighting_twice_loses_no_other_line(mesh: MemoryMesh) -> None:
    done = mesh.import_memories(lines(sightings=[SEEN, SEEN]))
    assert [one.line for one in done.failed] == [2]
    assert texts(mesh.get_all()) == ["The lantern"]


def test_a_memory_passes_to_a_sighting_without_a_last_time(house: House, mesh: MemoryMesh) -> None:
    mesh.import_memories(lines(sightings=[{"agent_id": "bob", "created_at": AT}]))
    mesh.delete_all(agent_id="ann")
    assert house.memory("mem_1").last_observed == AT


@pytest.mark.parametrize(
    "scope",
    [{"memory_type": "session"}, {"memory_type": "agent", "agent_id": None}, {"reach": "session"}],
)
def test_a_memory_that_nobody_could_see_is_not_imported(
    house: House, mesh: MemoryMesh, scope: dict[str, object]
) -> None:
    done = mesh.import_memories(lines(**scope)[:2])
    assert "no agent could see it" in done.failed[0].reason
    assert not house.memories()
