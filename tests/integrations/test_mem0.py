"""The calls of mem0 over a mesh: the methods, the results and their keys are those of mem0 2.2."""

from typing import Any

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import InvalidInput, NotFound, SettingsError
from memory_mesh.integrations import extra
from memory_mesh.integrations.mem0 import Memory
from memory_mesh.testing import ScriptedChat

CHAT = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "I love tea", "name": "Ana"},
    {"role": "assistant", "content": "Noted."},
]


@pytest.fixture
def memory():
    with MemoryMesh("memory://", embedder="none") as mesh:
        yield Memory(mesh)


def test_messages_are_stored_one_by_one_without_inference(memory: Memory) -> None:
    results = memory.add(
        CHAT, user_id="ana@home", run_id="r1", metadata={"app": "chat"}, infer=False
    )["results"]
    assert [{**one, "id": ""} for one in results] == [
        {"id": "", "memory": "I love tea", "event": "ADD", "actor_id": "Ana", "role": "user"},
        {"id": "", "memory": "Noted.", "event": "ADD", "actor_id": None, "role": "assistant"},
    ]
    found = memory.search("tea", filters={"user_id": "ana@home"}, top_k=1)["results"]
    assert [one["id"] for one in found] == [results[0]["id"]]
    assert found[0].keys() == {
        "id", "memory", "hash", "metadata", "score", "created_at", "updated_at", "user_id",
        "run_id", "actor_id", "role",
    }  # fmt: skip
    assert (found[0]["user_id"], found[0]["run_id"], found[0]["metadata"]) == (
        "ana@home",
        "r1",
        {"app": "chat"},
    )
    listed = memory.get_all(filters={"user_id": "ana@home", "run_id": "r1", "app": "chat"})[
        "results"
    ]
    assert [one["memory"] for one in listed] == ["Noted.", "I love tea"]
    assert memory.get_all(filters={"user_id": "ana@home", "run_id": "r2"}) == {"results": []}


def test_a_memory_is_read_changed_and_deleted_by_its_id_alone(memory: Memory) -> None:
    (stored,) = memory.add("Ana likes tea.", user_id="ana", agent_id="cook", infer=False)["results"]
    id_ = stored["id"]
    assert memory.update(id_, text="Ana likes coffee.", metadata={"k": 1}) == {
        "message": "Memory updated successfully!"
    }
    got = memory.get(id_)
    assert got is not None
    assert (got["memory"], got["agent_id"], got["metadata"], got["score"]) == (
        "Ana likes coffee.",
        "cook",
        {"k": 1},
        None,
    )
    first, second = memory.history(id_)
    assert (first["event"], first["old_memory"], first["new_memory"]) == (
        "ADD",
        None,
        "Ana likes tea.",
    )
    assert (second["event"], second["old_memory"], second["new_memory"]) == (
        "UPDATE",
        "Ana likes tea.",
        "Ana likes coffee.",
    )
    assert second.keys() == {
        "id", "memory_id", "old_memory", "new_memory", "event", "created_at", "updated_at",
        "is_deleted", "actor_id", "role",
    }  # fmt: skip
    assert memory.delete(id_) == {"message": "Memory deleted successfully!"}
    assert memory.get(id_) is None
    with pytest.raises(NotFound):
        memory.delete(id_)


def test_a_scope_is_required_and_a_user_sees_no_other_user(memory: Memory) -> None:
    for call in (
        lambda: memory.add("x", infer=False), lambda: memory.search("x"),
        lambda: memory.get_all(filters={"k": 1}), memory.delete_all,
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match="user_id, agent_id and run_id"):
            call()
    (own,) = memory.add("Ana likes tea.", user_id="ana", infer=False)["results"]
    memory.add("Bob likes tea.", user_id="bob", infer=False)
    memory.add("The tea shop opens at nine.", agent_id="guide", infer=False)
    by_user = {
        user: memory.search("tea", filters={"user_id": user})["results"] for user in ("ana", "bob")
    }
    assert {user: [one["memory"] for one in found] for user, found in by_user.items()} == {
        "ana": ["Ana likes tea."], "bob": ["Bob likes tea."],
    }  # fmt: skip
    assert memory.get(own["id"].replace("ana@", "bob@")) is None
    assert [
        one["memory"] for one in memory.search("tea", filters={"agent_id": "guide"})["results"]
    ] == ["The tea shop opens at nine."]


def test_a_wrong_argument_is_an_error_that_says_what_was_expected(memory: Memory) -> None:
    wrong: list[tuple[Any, str]] = [
        (lambda: memory.add(None, user_id="ana"), "messages"),  # type: ignore[arg-type]
        (lambda: memory.add([5], user_id="ana"), "messages"),  # type: ignore[list-item]
        (lambda: memory.add("x", user_id=["ana"], infer=False), "user_id"),  # type: ignore[arg-type]
        (lambda: memory.get_all(filters={"user_id": ["ana", "bob"]}), "user_id"),
        (lambda: memory.search("x", filters={"user_id": {"$ne": "bob"}}), "user_id"),
        (lambda: memory.get(5), "memory_id"),  # type: ignore[arg-type]
    ]
    for call, name in wrong:
        with pytest.raises((InvalidInput, SettingsError), match=name):
            call()


def test_all_of_a_scope_is_deleted_and_reset_deletes_everything_that_was_used(
    memory: Memory,
) -> None:
    for run in ("r1", "r2"):
        memory.add(f"in {run}", user_id="ana", run_id=run, infer=False)
    memory.add("of an agent", agent_id="guide", infer=False)
    memory.delete_all(user_id="ana", run_id="r1")
    assert [one["memory"] for one in memory.get_all(filters={"user_id": "ana"})["results"]] == [
        "in r2"
    ]
    memory.reset()
    assert (
        memory.get_all(filters={"user_id": "ana"})
        == memory.get_all(filters={"agent_id": "guide"})
        == {"results": []}
    )


def test_inference_asks_the_language_model_of_the_mesh() -> None:
    answer = '{"memories": [{"text": "Ana loves tea", "importance": 0.9}]}'
    with MemoryMesh("memory://", embedder="none", chat=(chat := ScriptedChat(answer))) as mesh:
        (stored,) = Memory(mesh).add(CHAT, user_id="ana", expiration_date="2999-01-01")["results"]
        assert (stored["memory"], stored["event"]) == ("Ana loves tea", "ADD")
        assert "Ana: I love tea" in chat.asks[0].user
        assert "Be kind" not in chat.asks[0].user
        shown = Memory(mesh).get(stored["id"])
        assert shown is not None
        assert shown["expiration_date"].startswith("2999-01-01")


def test_a_missing_library_is_named_with_what_to_install() -> None:
    with (
        pytest.raises(
            SettingsError, match=r"no_such_library is not installed; .*'memory-mesh\[x\]'"
        ),
        extra("x"),
    ):
        import no_such_library  # noqa: F401
