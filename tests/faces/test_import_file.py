"""Files of other programs: their memories and links are found, once, with their times; what
cannot be read is named."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from durability.test_json import NEOLATA
from memory_mesh import InvalidInput, MemoryMesh, StoreError
from memory_mesh.core.model import Kind
from memory_mesh.core.transfer import foreign
from memory_mesh.stores import imports
from memory_mesh.stores.ram import RamStore
from stores.files import foreign_file, lane_file, snapshot

MEM0: dict[str, Any] = {
    "count": 2, "next": None, "results": [
        {
            "id": "0a1b-uuid", "memory": "Ana drinks tea at the office", "hash": "ab",
            "user_id": "ana", "agent_id": "helper", "run_id": "r1", "actor_id": "Ana",
            "metadata": {"room": 4}, "categories": ["food", "work"],
            "created_at": "2024-07-26T08:48:41.039-07:00", "updated_at": "2024-08-01T00:00:00Z",
            "expiration_date": "2199-01-01",
        },
        {"id": "2", "memory": "Ana's phone is +49 30 901820", "user_id": "ana", "created_at": None,
         "score": 0.4},
    ],
    "relations": [{"source": "ana", "target": "tea"}],
}  # fmt: skip
MCP = [
    {
        "type": "entity",
        "name": "Ana",
        "entityType": "person",
        "observations": ["drinks tea", "works at Atlas"],
    },
    {"type": "entity", "name": "Atlas", "entityType": "company", "observations": []},
    {"type": "relation", "from": "Ana", "to": "Atlas", "relationType": "works at"},
    {"type": "relation", "from": "Ana", "to": "Nowhere", "relationType": "left"},
]


@pytest.fixture
def mesh() -> Iterator[MemoryMesh]:
    with MemoryMesh("memory://", user_id="ana", agent_id="planner", embedder="hash") as mesh:
        yield mesh


def put(folder: Path, name: str, *lines: object) -> Path:
    (folder / name).write_text(
        "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines)
    )
    return folder / name


# --- mem0 ---


@pytest.mark.req("MESH-007", "MESH-013")
@pytest.mark.parametrize("shape", ["get_all", "older get_all", "indented", "with a mark"])
def test_memories_of_mem0_are_imported_with_their_times_and_scope(
    mesh: MemoryMesh, tmp_path: Path, shape: str
) -> None:
    value = MEM0["results"] if shape == "older get_all" else MEM0
    text = json.dumps(value, indent=2 if shape == "indented" else None)
    done = mesh.import_file(
        put(tmp_path, "mem0.json", ("\ufeff" if shape == "with a mark" else "") + text)
    )
    assert (done.format, done.memories, done.failed, done.redactions) == (
        "mem0",
        2,
        (),
        {"phone": 1},
    )
    first, second = mesh.get("0a1b-uuid"), mesh.get("2")
    assert first
    assert second
    assert (first.content, first.created_at, first.updated_at, first.expires_at) == (
        "Ana drinks tea at the office", "2024-07-26T15:48:41.039Z", "2024-08-01T00:00:00.000Z",
        "2199-01-01T00:00:00.000Z",
    )  # fmt: skip
    assert (first.agent_id, first.session_id, first.speaker, first.tags) == (
        "helper",
        "r1",
        "Ana",
        ["food", "work"],
    )
    assert first.metadata == {"room": 4, "mem0": {"hash": "ab"}}
    assert (second.content, second.agent_id) == ("Ana's phone is [PHONE]", "planner")
    assert mesh.search("tea at the office")[0].id == "0a1b-uuid"
    again = mesh.import_file(tmp_path / "mem0.json")
    assert (again.memories, again.skipped) == (0, {"stored already": 2})


def test_memories_of_another_user_fail_and_name_the_user(tmp_path: Path) -> None:
    with MemoryMesh("memory://") as mesh:
        done = mesh.import_file(put(tmp_path, "mem0.json", MEM0))
        assert (done.memories, [one.line for one in done.failed]) == (0, [1, 2])
        assert "it belongs to user 'ana'" in done.failed[0].reason
        assert mesh.get_all() == []


def test_a_long_file_of_mem0_is_read_an_item_at_a_time() -> None:
    asked: list[int] = []
    whole = json.dumps([{"id": str(n), "memory": "x" * 900} for n in range(1000)])
    left = [whole]

    def read(size: int) -> str:
        asked.append(size)
        piece, left[0] = left[0][:size], left[0][size:]
        return piece

    items = foreign.read_mem0(read, "2026-01-01T00:00:00.000Z")
    next(items)
    assert (len(asked), max(asked) < len(whole) / 10) == (1, True)
    assert len([*items]) == 999
    assert max(asked) < len(whole) / 10


BROKEN = {
    "no id": ({"memory": "x"}, "id is None"),
    "no text": ({"id": "1", "memory": " "}, "memory is ' '"),
    "a text": ("x", "it is str"),
    "NaN": ('{"id": "1", "memory": "x", "metadata": {"n": NaN}}', "n"),
    "half a surrogate pair": ('{"id": "1", "memory": "x \\ud800"}', "half a surrogate pair at 2"),
    "half a surrogate pair as id": ('{"id": "\\ud800", "memory": "x"}', "without blanks"),
    "a time": ({"id": "1", "memory": "x", "created_at": "yesterday"}, "not a time"),
    "a number as user": ({"id": "1", "memory": "x", "user_id": 5}, "user 5"),
    "a number as agent": ({"id": "1", "memory": "x", "agent_id": 5}, "agent_id must be text"),
    "categories": ({"id": "1", "memory": "x", "categories": "food"}, "tags must be a list"),
    "a forbidden key": ({"id": "1", "memory": "x", "metadata": {"__proto__": 1}}, "forbidden key"),
    "a long id": ({"id": "x" * 501, "memory": "x"}, "id is"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_an_item_that_cannot_be_read_is_named_and_the_others_are_stored(
    mesh: MemoryMesh, tmp_path: Path, fault: str
) -> None:
    item, reason = BROKEN[fault]
    text = item if isinstance(item, str) and fault != "a text" else json.dumps(item)
    done = mesh.import_file(
        put(
            tmp_path,
            "mem0.json",
            f'[{{"id": "a", "memory": "Tea"}}, {text}, {{"id": "b", "memory": "Oil"}}]',
        )
    )
    assert (done.memories, [one.line for one in done.failed]) == (2, [2])
    assert reason in done.failed[0].reason


# --- ChatGPT ---


def said(role: str, *parts: object, **more: object) -> dict[str, Any]:
    """A message; its id is its text."""
    kind = "text" if all(isinstance(part, str) for part in parts) else "multimodal_text"
    return {
        "id": str(parts[0])[:20].replace(" ", "-"),
        "author": {"role": role, "name": None}, "create_time": 1.7e9,
        "content": {"content_type": kind, "parts": [*parts]}, "recipient": "all", "metadata": {},
        **more,
    }  # fmt: skip


def chat(*messages: object, **more: object) -> dict[str, Any]:
    """A conversation whose messages follow each other."""
    nodes = {
        str(n): {"id": str(n), "message": message, "parent": str(n - 1) if n else None}
        for n, message in enumerate(messages)
    }
    return {
        "title": "Tea", "create_time": 1.6e9, "mapping": nodes, "id": "c1",
        "current_node": str(len(messages) - 1), **more,
    }  # fmt: skip


def test_the_thread_that_was_shown_last_of_a_chatgpt_conversation_becomes_its_turns(
    mesh: MemoryMesh, tmp_path: Path
) -> None:
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}
    files = {"attachments": [{"id": "file-1", "name": "cup.png", "mimeType": "image/png"}]}
    talk = chat(
        None, said("system", "Be brief."),
        said("user", "Which tea is this?", image, metadata=files),
        said("assistant", "search('tea')", recipient="browser"), said("tool", "A page."),
        said("assistant", "It is oolong."), said("user", "", image),
        said("user", "Thanks", create_time=None),
        said("user", "Hidden", metadata={"is_visually_hidden_from_conversation": True}),
    )  # fmt: skip
    talk["mapping"]["branch"] = {"message": said("assistant", "It is rum."), "parent": "2"}
    done = mesh.import_file(put(tmp_path, "conversations.json", json.dumps([talk], indent=1)))
    assert (done.format, done.memories, done.failed) == ("chatgpt", 3, ())
    question, answer, thanks = sorted(mesh.get_all(), key=lambda one: one.turn or 0)
    assert [(one.speaker, one.turn, one.content) for one in (question, answer, thanks)] == [
        ("user", 1, "Which tea is this?"), ("assistant", 2, "It is oolong."), ("user", 3, "Thanks"),
    ]  # fmt: skip
    assert (question.session_id, question.event_time) == ("c1", "2023-11-14T22:13:20.000Z")
    assert thanks.created_at == "2020-09-13T12:26:40.000Z"
    assert question.metadata == {
        "role": "user", "provenance": {"source": "user_implicit"}, "title": "Tea",
        "attachments": ["cup.png"],
    }  # fmt: skip
    assert question.trust
    assert answer.trust
    assert question.trust > answer.trust
    again = mesh.import_file(tmp_path / "conversations.json")
    assert (again.memories, again.skipped) == (0, {"stored already": 3})


HOSTILE_CHATS = {
    "a circle": (chat(said("user", "x"), mapping={"0": {"parent": "0"}}), "its own parent"),
    "a missing node": (chat(mapping={"5": {"parent": "4"}}, current_node="5"), "no node '4'"),
    "no current node": (chat(said("user", "x"), current_node=None), "no node None"),
    "a list as node": (chat(said("user", "x"), current_node=[]), "no node []"),
    "nodes as text": (chat(said("user", "x"), mapping={"0": "x"}), "no node '0'"),
    "a message as text": (chat("x"), "it is str"),
    "parts as text": (
        chat(said("user", "x", content={"content_type": "text", "parts": "x"})), "parts is 'x'",
    ),
    "a time": (chat(said("user", "x", create_time="soon")), "create_time 'soon' is not a time"),
    "no id": (chat(said("user", "x", id=None)), "id is None"),
    "a role as list": (chat(said("user", "x", author=["user"])), "it is list"),
    "a number as session": (chat(said("user", "x"), conversation_id=5), "session_id must be text"),
}  # fmt: skip


@pytest.mark.parametrize("fault", HOSTILE_CHATS)
def test_a_broken_conversation_is_named_and_the_others_are_stored(
    mesh: MemoryMesh, tmp_path: Path, fault: str
) -> None:
    broken, reason = HOSTILE_CHATS[fault]
    talks = [chat(said("user", "Tea.")), broken, chat(said("user", "Oil."))]
    done = mesh.import_file(put(tmp_path, "conversations.json", json.dumps(talks)))
    assert (done.format, done.memories) == ("chatgpt", 2)
    ((line, text),) = [(one.line, one.reason) for one in done.failed]
    assert (line, reason in text) == (2, True)


# --- the MCP memory server ---


def test_entities_become_memories_and_relations_become_links(
    mesh: MemoryMesh, tmp_path: Path
) -> None:
    done = mesh.import_file(put(tmp_path, "memory.jsonl", *MCP))
    assert (done.format, done.memories, done.links) == ("mcp", 6, 3)
    assert done.skipped == {"an end of the link is not stored": 1}
    by_text = {one.content: one for one in mesh.get_all()}
    assert set(by_text) == {
        "Ana (person)", "Ana: drinks tea", "Ana: works at Atlas", "Atlas (company)",
        "Ana works at Atlas", "Ana left Nowhere",
    }  # fmt: skip
    assert by_text["Ana: drinks tea"].metadata["entity"] == "Ana"
    assert by_text["Ana (person)"].metadata["entity_type"] == "person"
    links = {
        (one.link_type, one.memory.content) for one in mesh.graph.links(by_text["Ana (person)"].id)
    }
    assert links == {
        ("works_at", "Atlas (company)"), ("observation_of", "Ana: drinks tea"),
        ("observation_of", "Ana: works at Atlas"),
    }  # fmt: skip
    again = mesh.import_file(tmp_path / "memory.jsonl")
    assert (again.memories, again.links) == (0, 0)
    assert again.skipped == {"stored already": 9, "an end of the link is not stored": 1}


def test_a_relation_may_stand_before_its_entities(mesh: MemoryMesh, tmp_path: Path) -> None:
    assert mesh.import_file(put(tmp_path, "memory.jsonl", *reversed(MCP))).links == 3


def test_lines_that_cannot_be_read_are_named(
    mesh: MemoryMesh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_mesh.stores.archive_file.MAX_LINE", 2000)
    bad = ["", "{", '{"type": "planet"}', "[" * 1500, '{"type": "entity", "name": 7}', "x" * 5000]
    bad += [
        '{"type": "entity", "name": "B", "observations": [7]}',
        '{"type": "relation", "from": "Ana"}',
    ]
    done = mesh.import_file(put(tmp_path, "memory.jsonl", *MCP, *bad))
    assert (done.memories, done.links, [one.line for one in done.failed]) == (
        6,
        3,
        [6, 7, 8, 9, 10, 11, 12],
    )
    assert "too long" in done.failed[4].reason


# --- Memory Lane and neolata-mem ---


def test_a_database_of_memory_lane_is_copied_in_and_not_changed(
    mesh: MemoryMesh, tmp_path: Path
) -> None:
    file = lane_file(tmp_path / "lane.db")
    before = snapshot(tmp_path)
    done = mesh.import_file(file)
    assert (done.format, done.memories, done.failed) == ("memory-lane", 2, ())
    assert {one.id: one.user_id for one in mesh.get_all()} == {"plain": "ana", "other": "ana"}
    assert snapshot(tmp_path) == before
    assert mesh.import_file(file).skipped == {"stored already": 2}


def test_a_folder_of_neolata_is_copied_in_with_its_links_and_not_changed(
    mesh: MemoryMesh, tmp_path: Path
) -> None:
    for name, contents in NEOLATA.items():
        (tmp_path / name).write_text(json.dumps(contents))
    before = snapshot(tmp_path)
    done = mesh.import_file(tmp_path)
    assert (done.format, done.memories, done.links, done.failed) == ("neolata", 4, 1, ())
    assert snapshot(tmp_path) == before
    assert mesh.scoped(agent_id="kuro").search("which port?")[0].id == "mem_a"
    assert (mesh.import_file(tmp_path).memories, mesh.import_file(tmp_path).links) == (0, 0)


# --- detection ---


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "begins with ''"),
        ("# A note", "has no format that can be imported"),
        ('{"a": 1}', "has no format that can be imported"),
        ('{"results": 5}', "no list of memories"),
        ("[1, 2", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_another_file_is_refused(mesh: MemoryMesh, tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        mesh.import_file(put(tmp_path, "file", text))


def test_a_value_that_is_too_long_is_refused(
    mesh: MemoryMesh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "MAX_ITEM", 1000)
    monkeypatch.setattr(foreign, "_CHUNK", 100)
    with pytest.raises(InvalidInput, match="too long"):
        mesh.import_file(put(tmp_path, "file", '[{"id": "1", "memory": "' + "x" * 5000))


def test_what_cannot_be_read_is_refused(mesh: MemoryMesh, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    foreign_file(tmp_path / "other.db", "its tables")
    for name, message in (
        ("none", "No such file"),
        ("folder", "not a folder of memories"),
        ("other.db", "another program"),
    ):
        with pytest.raises((InvalidInput, StoreError), match=message):
            mesh.import_file(tmp_path / name)
    with pytest.raises(InvalidInput, match="has the format mem0, not 'mcp'"):
        mesh.import_file(put(tmp_path, "mem0.json", MEM0), format="mcp")
    assert mesh.import_file(tmp_path / "mem0.json", format="mem0").memories == 2


def test_every_format_is_offered_by_the_command() -> None:
    from memory_mesh.interfaces.verbs import COMMANDS

    (choices,) = (one.choices for one in COMMANDS["import"][0].parameters if one.name == "format")
    assert (*choices,) == imports.FORMATS


def test_an_import_that_was_stopped_is_completed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_mesh.flows.transfer.transfer._AT_ONCE", 50)

    class Dies(RamStore):
        left = 0

        def apply(self, *args: Any, **options: Any) -> Any:
            if self.left == 0:
                raise StoreError("the process died")
            self.left -= 1
            return super().apply(*args, **options)

    items = [{"id": str(n), "memory": f"Number {n} of the list"} for n in range(120)]
    with closing(Dies()) as store, MemoryMesh(store) as mesh:
        file = put(tmp_path, "mem0.json", items)
        store.left = 2
        with pytest.raises(StoreError, match="died"):
            mesh.import_file(file)
        assert store.count(Kind.MEMORY) == 100
        assert store.count(Kind.BLOCK) == 100
        store.left = 100
        done = mesh.import_file(file)
        assert (done.memories, done.skipped) == (20, {"stored already": 100})
        assert all(verdict for verdict in mesh.verify())
