"""The calls of mem0 over a mesh: the methods, the results and their keys are those of mem0 2.2."""

import asyncio
from datetime import UTC, datetime
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import InvalidInput, SettingsError
from memory_mesh.integrations import extra
from memory_mesh.integrations.mem0 import AsyncMemory, Memory
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
    assert memory.history(id_) == []
    for call in (memory.delete, lambda id_: memory.update(id_, "x")):
        with pytest.raises(ValueError, match="there is no memory ana@"):  # as mem0
            call(id_)


def test_a_scope_is_required_and_a_user_sees_no_other_user(memory: Memory) -> None:
    for call in (
        lambda: memory.add("x", infer=False), lambda: memory.search("x"),
        lambda: memory.get_all(filters={"k": 1}), memory.delete_all,
        lambda: memory.get_all(filters={"OR": [{"user_id": "ana"}, {"user_id": "bob"}]}),
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
    # A condition only narrows what the user sees, and no name stands for every user.
    bobs: dict[str, Any] = {"OR": [{"user_id": "bob"}, {"user_id": {"ne": "ana"}}]}
    assert memory.get_all(user_id="ana", filters=bobs) == {"results": []}
    assert memory.get_all(user_id="bob", filters=bobs)["results"]
    for user, name in ((None, "*"), ("ana", "bob")):
        with pytest.raises(InvalidInput, match="user_id"):
            memory.search("tea", user_id=user, filters={"user_id": name})
    assert [
        one["memory"] for one in memory.search("tea", filters={"agent_id": "guide"})["results"]
    ] == ["The tea shop opens at nine."]


def test_a_wrong_argument_is_an_error_that_says_what_was_expected(memory: Memory) -> None:
    ana: dict[str, Any] = {"user_id": "ana"}
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("add", {"messages": None, **ana}, "messages"),
        ("add", {"messages": [5], **ana}, "messages"),
        ("add", {"messages": [*CHAT, {"role": "owl", "content": "x"}], **ana}, "role"),
        ("add", {"messages": "x", "user_id": ["ana"]}, "user_id"),
        ("add", {"messages": "x", "user_id": " "}, "user_id"),
        ("add", {"messages": "x", "user_id": "a b"}, "user_id"),
        ("add", {"messages": "x", **ana, "memory_type": "semantic"}, "procedural_memory"),
        ("add", {"messages": "x", **ana, "timestamp": 5}, "platform"),
        ("add", {"messages": "x", **ana, "expiration_date": "tomorrow"}, "YYYY-MM-DD"),
        ("get_all", {"filters": {"user_id": ["ana", "bob"]}}, "user_id"),
        ("get_all", {**ana, "show_expired": True}, "show_expired"),
        ("search", {"query": "x", "filters": {"user_id": {"$ne": "bob"}}}, "user_id"),
        ("search", {"query": "x", **ana, "top_k": -1}, "top_k"),
        ("search", {"query": "x", **ana, "top_k": True}, "top_k"),
        ("search", {"query": "x", **ana, "threshold": 1.5}, "threshold"),
        ("search", {"query": "x", **ana, "reference_date": "2026-01-01"}, "platform"),
        ("search", {"query": " ", **ana}, "query"),
        ("search", {"query": "x", **ana, "filters": {"year": {"near": 3}}}, "near"),
        ("search", {"query": "x", **ana, "filters": {"OR": []}}, "OR"),
        ("search", {"query": "x", **ana, "filters": 5}, "filters"),
        ("search", {"query": "x", **ana, "filters": {"AND": {"a": 1}}}, "AND"),
        ("get", {"memory_id": 5}, "memory_id"),
        ("update", {"memory_id": "x"}, "no memory x"),
        ("from_config", {"config_dict": "x"}, "config_dict"),
        ("from_config", {"config_dict": {"llm": {"provider": "owl"}}}, "llm_provider"),
        ("from_config", {"config_dict": {"vector_store": {"config": {"host": "h"}}}}, "a server"),
    ]
    for method, arguments, name in calls:
        with pytest.raises((InvalidInput, SettingsError), match=name) as caught:
            getattr(memory, method)(**arguments)
        assert isinstance(caught.value, ValueError)  # which programs for mem0 catch
    assert memory.get_all(**ana) == {"results": []}


def test_every_turn_of_a_conversation_is_kept_and_a_repeated_text_has_its_first_id(
    memory: Memory,
) -> None:
    for _ in range(2):
        results = memory.add([*CHAT, {"role": "user"}, CHAT[1]], user_id="ana")["results"]
        assert [(one["role"], one["event"]) for one in results] == [
            ("user", "ADD"), ("assistant", "ADD"), ("user", "ADD"),
        ]  # fmt: skip
    listed = memory.get_all(user_id="ana")["results"]
    assert [one["role"] for one in listed] == ["user", "assistant", "user"] * 2
    (first,), (again,) = (memory.add("Tea.", user_id="bob")["results"] for _ in range(2))
    assert (first["event"], again) == ("ADD", {**first, "event": "NONE"})
    assert len(memory.get_all(user_id="bob")["results"]) == 1


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"kind": "film"}, "a"), ({"kind": {"eq": "film"}}, "a"), ({"kind": {"ne": "film"}}, "bc"),
        ({"kind": {"in": ["film", "x"]}}, "a"), ({"kind": {"nin": ["film"]}}, "bc"),
        ({"year": {"gte": 2010, "lt": 2020}}, "a"), ({"year": {"$gte": 2010}}, "ab"),
        ({"year": {"gt": 2010}}, "b"), ({"year": {"lte": 2010}}, "a"),
        ({"title": {"contains": "100%_"}}, "a"), ({"title": {"contains": "SCI"}}, ""),
        ({"title": {"icontains": "SCI-fi"}}, "a"), ({"kind": "*"}, "ab"), ({"and": 1}, ""),
        ({"AND": [{"kind": "*"}, {"year": {"gt": 2015}}]}, "b"), ({"AND": []}, "abc"),
        ({"OR": [{"kind": "film"}, {"year": 2020}]}, "ab"),
        ({"NOT": [{"kind": "film"}, {"year": {"gt": 2015}}]}, "c"),
        ({"NOT": [{"kind": "*", "year": 2020}]}, "ac"), ({"NOT": [{"kind": {"ne": "film"}}]}, "a"),
        ({"NOT": [{"OR": [{"kind": "film"}, {"NOT": [{"year": 2020}]}]}]}, "b"),
        ({"NOT": [{"AND": [{"title": {"icontains": "sci"}}, {"kind": "film"}]}]}, "bc"),
        ({"agent_id": "cook"}, "b"), ({"actor_id": "Ana"}, "c"),
        ({"AND": [{"run_id": {"ne": "r1"}}]}, "ac"),
    ],
)  # fmt: skip
def test_a_filter_selects_what_mem0_documents(
    memory: Memory, filters: dict[str, Any], found: str
) -> None:
    ana = {"user_id": "ana", "infer": False}
    film = {"kind": "film", "year": 2010, "title": "Sci-Fi 100%_"}
    memory.add("a", metadata=film, **ana)
    memory.add("b", metadata={"kind": "game", "year": 2020}, agent_id="cook", run_id="r1", **ana)
    memory.add({"role": "user", "content": "c", "name": "Ana"}, **ana)
    listed = memory.get_all(filters={"user_id": "ana", **filters})["results"]
    assert "".join(sorted(one["memory"] for one in listed)) == found


def test_a_memory_is_shown_on_the_day_of_its_expiry_and_not_after_it(memory: Memory) -> None:
    day = datetime.now(UTC).date()
    (stored,) = memory.add("Ana is ill", user_id="ana", expiration_date=day)["results"]
    memory.add("old", user_id="ana", expiration_date="2020-01-01")
    (shown,) = memory.get_all(user_id="ana")["results"]
    assert (shown["id"], shown["expiration_date"]) == (stored["id"], day.isoformat())
    memory.update(stored["id"], expiration_date=None)
    assert "expiration_date" not in (memory.get(stored["id"]) or {})
    memory.update(stored["id"], expiration_date="2020-01-01")
    assert memory.get_all(user_id="ana") == {"results": []}


def test_metadata_sets_no_scope_and_a_scope_may_be_a_number(memory: Memory) -> None:
    memory.add("tea", user_id=7, metadata={"user_id": "bob", "k": 1})  # type: ignore[arg-type]
    (found,) = memory.search("tea", user_id=" 7 ", limit=1, explain=True)["results"]
    assert (found["user_id"], found["metadata"]) == ("7", {"k": 1})
    assert found["score_details"]["final_score"] == found["score"]
    assert memory.search("tea", user_id="7", top_k=0) == {"results": []}
    assert len(memory.get_all(user_id="7", top_k=100_000)["results"]) == 1


def test_a_configuration_of_mem0_opens_a_store_of_its_own_and_without_one_the_settings_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config: dict[str, Any] = {
        "vector_store": {"provider": "qdrant", "config": {"path": str(tmp_path)}},
        "llm": {"provider": "openai", "config": {"model": "m", "api_key": "k", "top_p": 0.1}},
        "embedder": "none",
        "version": "v1.1",
    }
    with Memory.from_config(config) as memory:
        memory.add("Ana likes tea.", user_id="ana", infer=False)
        assert memory.get_all(user_id="ana")["results"]
    assert (tmp_path / "mem0.db").exists()
    monkeypatch.setenv("MEMORY_MESH_STORE", str(tmp_path / "mem0.db"))
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "none")
    for memory in (Memory(), Memory.from_config({"embedder": "none"})):
        with memory:
            assert memory.get_all(user_id="ana")["results"]


# Of mem0 2.2; ours may take more.
_ARGUMENTS = {
    "add": "messages user_id agent_id run_id metadata timestamp expiration_date infer memory_type "
    "prompt",
    "search": "query top_k filters threshold rerank explain reference_date show_expired",
    "get": "memory_id",
    "get_all": "filters top_k show_expired",
    "update": "memory_id text metadata expiration_date data",
    "delete": "memory_id",
    "delete_all": "user_id agent_id run_id",
    "history": "memory_id",
    "reset": "",
    "close": "",
    "from_config": "config_dict",
}


def test_both_classes_have_the_methods_and_arguments_of_mem0() -> None:
    public = {name for name in vars(Memory) if not name.startswith("_")}
    assert public == {name for name in vars(AsyncMemory) if not name.startswith("_")}
    assert public == {*_ARGUMENTS}
    for name, arguments in _ARGUMENTS.items():
        method = signature(getattr(Memory, name))
        assert [one for one in method.parameters if one in arguments.split()] == arguments.split()
        assert method == signature(getattr(AsyncMemory, name))


def test_the_asynchronous_memory_does_what_the_other_one_does() -> None:
    async def run() -> list[str]:
        async with AsyncMemory.from_config({"store": "memory://", "embedder": "none"}) as memory:
            (stored,) = (await memory.add("Ana likes tea.", user_id="ana"))["results"]
            await memory.update(stored["id"], "Ana likes coffee.")
            events = [change["event"] for change in await memory.history(stored["id"])]
            (found,) = (await memory.search("coffee", user_id="ana"))["results"]
            await memory.delete_all(user_id="ana")
            return [*events, found["memory"], str(await memory.get(stored["id"]))]

    assert asyncio.run(run()) == ["ADD", "UPDATE", "Ana likes coffee.", "None"]


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
