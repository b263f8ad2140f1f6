"""The nine tools of the official MCP memory server, with its arguments and results, and its file
of JSON lines."""

import asyncio
import json
from collections.abc import Iterator

import pytest
from mcp import Client

from memory_mesh import MemoryMesh
from memory_mesh.interfaces.mcp.compat import GraphTools
from memory_mesh.interfaces.mcp.server import Caller, MemoryServer

ANA = {"name": "Ana", "entityType": "person", "observations": ["likes tea", "speaks Norwegian"]}
ACME = {"name": "Acme", "entityType": "company", "observations": []}
WORKS = {"from": "Ana", "to": "Acme", "relationType": "works at"}
NOTHING_OF_BOB: dict[str, object] = {"entityName": "Bob", "observations": []}
KNOWS = {"from": "Ana", "to": "Bob", "relationType": "knows"}
OWNS = {"from": "Acme", "to": "Ana", "relationType": "employs"}


@pytest.fixture
def mesh() -> Iterator[MemoryMesh]:
    with MemoryMesh("memory://", embedder="none") as opened:
        yield opened


def steps(
    mesh: MemoryMesh, *calls: tuple[str, dict[str, object]]
) -> list[tuple[str, object, bool]]:
    """Call tools in order; of each the text, the data, and whether it is an error."""

    async def run() -> list[tuple[str, object, bool]]:
        done = []
        async with Client(
            MemoryServer(GraphTools(), lambda _: Caller(mesh=mesh)).build()
        ) as client:
            for name, arguments in calls:
                result = await client.call_tool(name, arguments)
                done.append((result.content[0].text, result.structured_content, result.is_error))
        return done

    return asyncio.run(run())


def created(
    mesh: MemoryMesh, *more: tuple[str, dict[str, object]]
) -> list[tuple[str, object, bool]]:
    first = (
        ("create_entities", {"entities": [ANA, ACME]}),
        ("create_relations", {"relations": [WORKS]}),
    )
    return steps(mesh, *first, *more)[2:]


def test_the_tools_are_the_nine_of_the_official_server() -> None:
    tools = {tool.name: tool for tool in GraphTools().listed()}
    assert list(tools) == [
        "create_entities", "create_relations", "add_observations", "delete_entities",
        "delete_observations", "delete_relations", "read_graph", "search_nodes", "open_nodes",
    ]  # fmt: skip
    assert {name for name, tool in tools.items() if tool.annotations.destructive_hint} == {
        "delete_entities", "delete_observations", "delete_relations",
    }  # fmt: skip
    reading = {name for name, tool in tools.items() if tool.annotations.read_only_hint}
    assert (
        reading
        == {"read_graph", "search_nodes", "open_nodes"}
        == {tool.name for tool in GraphTools(read_only=True).listed()}
    )
    assert tools["create_entities"].input_schema["properties"]["entities"]["items"]["required"] == [
        "name", "entityType", "observations",
    ]  # fmt: skip
    assert tools["read_graph"].output_schema["required"] == ["entities", "relations"]


def test_what_is_created_is_read_searched_and_opened(mesh) -> None:
    again, related, read, searched, opened, none = created(
        mesh,
        (
            "create_entities",
            {
                "entities": [
                    {**ANA, "observations": ["other"]},
                    {**ACME, "name": "New"},
                    {**ACME, "name": "New"},
                ]
            },
        ),
        ("create_relations", {"relations": [WORKS, OWNS, OWNS]}),
        ("read_graph", {}),
        ("search_nodes", {"query": "NORWEG"}),
        ("open_nodes", {"names": ["Acme", "nobody"]}),
        ("search_nodes", {"query": "zebra"}),
    )
    new = {**ACME, "name": "New"}
    assert again == (json.dumps([new], indent=2), {"entities": [new]}, False)
    assert related[1] == {"relations": [OWNS]}
    graph = {"entities": [ANA, ACME, new], "relations": [WORKS, OWNS]}
    assert read == (json.dumps(graph, indent=2), graph, False)
    assert searched[1] == {"entities": [ANA], "relations": [WORKS, OWNS]}
    assert opened[1] == {"entities": [ACME], "relations": [WORKS, OWNS]}
    assert none[1] == {"entities": [], "relations": []}


def test_observations_are_added_once_and_deleted(mesh) -> None:
    added, missing, deleted, some, read = created(
        mesh,
        ("add_observations",
         {"observations": [
             {"entityName": "Ana", "contents": ["likes tea", "has a cat", "has a cat"]}
         ]}),
        ("add_observations", {"observations": [{"entityName": "Bob", "contents": ["x"]}]}),
        ("delete_observations",
         {"deletions": [{"entityName": "Ana", "observations": ["likes tea"]}]}),
        ("delete_observations",
         {"deletions": [{"entityName": "Ana", "observations": ["no"]}, NOTHING_OF_BOB]}),
        ("read_graph", {}),
    )  # fmt: skip
    assert added[1] == {"results": [{"entityName": "Ana", "addedObservations": ["has a cat"]}]}
    assert missing[0::2] == ("Entity with name Bob not found", True)
    assert deleted == (
        "Observations deleted successfully",
        {"success": True, "message": "Observations deleted successfully"},
        False,
    )
    assert some[0] == "Deleted 0 of 1 observations. Entities not found: Bob"
    assert read[1]["entities"][0]["observations"] == ["speaks Norwegian", "has a cat"]


def test_the_results_are_those_of_their_schemas_and_name_what_is_new_once(mesh) -> None:
    twice = [
        {"entityName": "Bob", "contents": ["likes tea"]},
        {"entityName": "Bob", "contents": ["likes tea", "has a cat"]},
    ]
    bob: dict[str, object] = {"name": "Bob", "entityType": "person", "observations": []}
    knows = {"from": "Bob", "to": "Bob", "relationType": "knows"}
    entities, relations, added = steps(
        mesh,
        ("create_entities", {"entities": [{**bob, "id": 5}]}),
        ("create_relations", {"relations": [{**knows, "id": 5}]}),
        ("add_observations", {"observations": twice}),
    )
    assert (entities[1], relations[1]) == ({"entities": [bob]}, {"relations": [knows]})
    assert [one["addedObservations"] for one in added[1]["results"]] == [
        ["likes tea"],
        ["has a cat"],
    ]


def test_an_entity_goes_with_its_observations_and_relations(mesh) -> None:
    gone, some, relations, read = created(
        mesh,
        ("delete_entities", {"entityNames": ["Ana"]}),
        ("delete_entities", {"entityNames": ["Ana", "Acme"]}),
        ("delete_relations", {"relations": [WORKS]}),
        ("read_graph", {}),
    )
    assert gone[0] == "Entities deleted successfully"
    assert some[0] == "Deleted 1 of 2 entities. Not found: Ana"
    assert relations[0] == "Deleted 0 of 1 relations. The rest matched nothing."
    assert read[1] == {"entities": [], "relations": []}
    assert mesh.get_all() == []
    # What was deleted can be created again.
    assert created(mesh, ("read_graph", {}))[0][1] == {
        "entities": [ANA, ACME],
        "relations": [WORKS],
    }


def test_other_faces_find_what_the_graph_says_and_the_graph_shows_no_other_memory(mesh) -> None:
    mesh.add("An ordinary memory about Norwegian.")
    (read,) = created(mesh, ("read_graph", {}))
    assert read[1] == {"entities": [ANA, ACME], "relations": [WORKS]}
    assert "Ana: speaks Norwegian" in {hit.content for hit in mesh.search("Norwegian")}
    assert steps(mesh.scoped(user_id="eve"), ("read_graph", {}))[0][1] == {
        "entities": [],
        "relations": [],
    }


def test_what_is_masked_is_found_by_what_was_given_and_by_what_is_shown(mesh) -> None:
    mail = {
        "name": "ana@example.org",
        "entityType": "address",
        "observations": ["call +1 650 253 0000"],
    }
    _, shown, by_given, by_shown, gone, empty, opened = steps(
        mesh,
        ("create_entities", {"entities": [mail]}),
        ("read_graph", {}),
        (
            "add_observations",
            {"observations": [{"entityName": "ana@example.org", "contents": ["one"]}]},
        ),
        ("add_observations", {"observations": [{"entityName": "[EMAIL]", "contents": ["two"]}]}),
        (
            "delete_observations",
            {"deletions": [{"entityName": "[EMAIL]", "observations": ["call [PHONE]"]}]},
        ),
        ("read_graph", {}),
        ("open_nodes", {"names": ["ana@example.org"]}),
    )
    assert opened[1] == empty[1]
    assert shown[1]["entities"] == [
        {"name": "[EMAIL]", "entityType": "address", "observations": ["call [PHONE]"]}
    ]
    assert not by_given[2]
    assert not by_shown[2]
    assert gone[0] == "Observations deleted successfully"
    assert empty[1]["entities"][0]["observations"] == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("create_entities", {"entities": "Ana"}, "entities is 'Ana'; expected a list"),
        ("create_entities", {"entities": [{"name": "Ana"}]},
         "entities[0].entityType is None; expected a text"),
        ("create_entities", {"entities": [{**ANA, "observations": [1]}]},
         "entities[0].observations[0] is 1"),
        ("create_entities", {}, "entities is None"),
        ("create_relations", {"relations": [KNOWS]}, "Entity with name Bob not found"),
        ("search_nodes", {"query": "x" * 2049}, "at most 2,048"),
        ("read_graph", {"all": True}, "unknown argument 'all'"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_an_error_and_stores_nothing(mesh, name, arguments, expected) -> None:
    wrong, read = created(mesh, (name, arguments), ("read_graph", {}))
    assert wrong[2]
    assert expected in wrong[0]
    assert read[1] == {"entities": [ANA, ACME], "relations": [WORKS]}


def test_the_file_of_the_official_server_is_imported_and_exported(cli, tmp_path) -> None:
    lines = [{"type": "entity", **ANA}, {"type": "entity", **ACME}, {"type": "relation", **WORKS}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    file = tmp_path / "memory.jsonl"
    file.write_text(text)
    assert cli("import", str(file)).code == 0
    assert cli("export", "--server-memory").out == text
    with MemoryMesh() as mesh:  # what is imported and what the tools create are one graph
        tea = {"entityName": "Ana", "contents": ["likes tea", "has a cat"]}
        added, deleted, read = steps(
            mesh,
            ("add_observations", {"observations": [tea]}),
            ("delete_relations", {"relations": [WORKS]}),
            ("read_graph", {}),
        )
    assert added[1] == {"results": [{"entityName": "Ana", "addedObservations": ["has a cat"]}]}
    assert deleted[0] == "Relations deleted successfully"
    assert read[1] == {
        "entities": [{**ANA, "observations": [*ANA["observations"], "has a cat"]}, ACME],
        "relations": [],
    }
    assert cli("export", "--server-memory", "--out", "copy.jsonl").code == 0
    again = cli("import", "copy.jsonl")  # nothing is stored twice, whichever way it came
    assert again.code == 0, again
    assert cli("export", "--server-memory").out == (tmp_path / "copy.jsonl").read_text()
