"""A call that names a user, an agent or a session means what a scoped handle means."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory_mesh import AsyncMemoryMesh, InvalidInput, MemoryMesh, SettingsError, UserCount

from .house import House

READS: dict[str, Callable[..., object]] = {
    "search": lambda mesh, **names: [hit.content for hit in mesh.search("tea", **names)],
    "explain": lambda mesh, **names: len(mesh.explain("tea", **names).answers),
    "get_all": lambda mesh, **names: [one.content for one in mesh.get_all(**names)],
}


def test_a_call_stores_for_the_user_agent_and_session_that_it_names(mesh: MemoryMesh) -> None:
    named = {"user_id": "ana", "agent_id": "cook", "session_id": "s1"}
    tea = mesh.add("Ana likes tea.", **named)
    assert (tea.user_id, tea.agent_id, tea.session_id) == ("ana", "cook", "s1")
    (turn,) = mesh.add([{"role": "user", "content": "Green tea, please."}], **named)
    assert (turn.user_id, turn.session_id, turn.turn) == ("ana", "s1", 1)
    (one,) = mesh.add_many(["Ana drinks tea at four."], **named)
    assert (one.user_id, one.agent_id) == ("ana", "cook")
    assert mesh.add("Ana likes tea.", user_id="ana", agent_id="cook").id == tea.id
    assert mesh.get_all() == []


@pytest.mark.parametrize("name", READS)
def test_a_read_that_names_a_user_or_an_agent_is_that_of_the_scoped_handle(
    mesh: MemoryMesh, name: str
) -> None:
    read = READS[name]
    mesh.scoped(user_id="ana").add("Ana likes tea.")
    mesh.scoped(agent_id="cook").add("The cook hides the tea.", {"type": "agent"})
    mesh.add("Everyone may have tea.")
    everyone = read(mesh)
    for names in ({"user_id": "ana"}, {"user_id": "bob"}, {"agent_id": "cook"}):
        assert read(mesh, **names) == read(mesh.scoped(**names))
    assert read(mesh) == everyone
    assert read(mesh, user_id="ana") != read(mesh, user_id="bob")


def test_a_memory_is_read_back_by_its_id_in_the_same_name(mesh: MemoryMesh) -> None:
    tea = mesh.add("Ana likes tea.", user_id="ana", key="drink")
    assert mesh.get(tea.id, user_id="ana") == mesh.get(key="drink", user_id="ana") == tea
    assert mesh.get(tea.id) is mesh.get(tea.id, user_id="bob") is None


def test_a_mesh_of_one_user_serves_no_other_user(house: House) -> None:
    ana = house.mesh(user_id="ana")
    house.mesh(user_id="bob").add("Bob likes tea.")
    calls: list[Callable[..., object]] = [
        *(lambda read=read, **names: read(ana, **names) for read in READS.values()),
        lambda **names: ana.add("x", **names),
        lambda **names: ana.add_many(["x"], **names),
        lambda **names: ana.get("mem_1_ffffff", **names),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match=r"handle is of the user 'ana'; expected no other"):
            call(user_id="bob")
        with pytest.raises(SettingsError, match="agent_id"):
            call(agent_id=" ")
    assert ana.add("Ana likes tea.", user_id="ana").user_id == "ana"
    assert [hit.content for hit in ana.search("tea", user_id="ana")] == ["Ana likes tea."]


def test_a_call_in_a_name_reads_only_the_project_of_its_handle(mesh: MemoryMesh) -> None:
    mesh.add("Tea of the house.", {"project": "house"}, user_id="ana")
    mesh.add("Tea of the ship.", {"project": "ship"}, user_id="ana")
    ship = mesh.scoped(project="ship", only_project=True)
    assert [one.content for one in ship.get_all(user_id="ana")] == ["Tea of the ship."]


@pytest.mark.parametrize("session_id", ["", " ", 5, ["s1"]])
def test_a_session_of_one_call_is_checked_as_that_of_a_handle(
    mesh: MemoryMesh, session_id: Any
) -> None:
    calls: list[Callable[..., object]] = [
        mesh.scoped, lambda **names: mesh.add("x", **names),
        lambda **names: mesh.search("x", **names), mesh.get_all,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises((InvalidInput, SettingsError), match="session_id"):
            call(session_id=session_id)
    assert mesh.get_all() == []


def test_a_handle_of_one_project_learns_nothing_by_the_keys_of_another_one(
    mesh: MemoryMesh,
) -> None:
    other = mesh.scoped(project="Q").add("Ship it.", idempotency_key="j", deduplicate=False)
    own = mesh.scoped(project="P", only_project=True)
    first = own.add("Ship it.", idempotency_key="j", deduplicate=False)
    assert own.add("Ship it.", idempotency_key="j", deduplicate=False).id == first.id != other.id
    assert own.get(first.id) == first
    own.add("Another text.", idempotency_key="k")
    assert mesh.scoped(project="Q").add("Mine.", idempotency_key="k").content == "Mine."


def test_an_asynchronous_mesh_takes_the_same_names(tmp_path: Path) -> None:
    async def use() -> tuple[int, int]:
        async with AsyncMemoryMesh(tmp_path / "memory.db") as mesh:
            await mesh.add("Ana likes tea.", user_id="ana")
            ana, bob = [await mesh.search("tea", user_id=user) for user in ("ana", "bob")]
            return len(ana), len(bob)

    assert asyncio.run(use()) == (1, 0)


def test_users_are_listed_with_their_memories_and_a_mesh_of_one_user_sees_only_that_one(
    mesh: MemoryMesh,
) -> None:
    assert mesh.users() == []
    ana = mesh.scoped(user_id="ana")
    ana.add("Ana likes tea.")
    archived = ana.scoped(agent_id="cook").add("The cook hides the tea.", {"type": "agent"})
    ana.scoped(agent_id="cook").graph.archive(archived.id)
    mesh.add("Everyone may have tea.")
    two, one = UserCount(user_id="ana", memories=2), UserCount(user_id=None, memories=1)
    assert mesh.users() == [two, one]
    assert ana.users() == [two]
    assert mesh.scoped(user_id="bob").users() == []
    limited = mesh.scoped(project="shop", only_project=True)
    limited.add("The shop opens at nine.")
    mesh.scoped(project="bank").add("A secret of the bank.")
    assert limited.users() == [UserCount(user_id=None, memories=2)]
    mesh.forget(user_id="ana")
    assert [(user.user_id, user.memories) for user in mesh.users()] == [(None, 3)]
