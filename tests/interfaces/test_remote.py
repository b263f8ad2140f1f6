"""What REST and MCP share: schemas from the table of operations, checked arguments, and answers
as `--json` prints them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_mesh import InvalidInput, MemoryMesh, StoreReadOnly
from memory_mesh.core.errors import NotFound
from memory_mesh.interfaces import remote
from memory_mesh.interfaces.operation import (
    LOCAL_KINDS,
    Effect,
    Extent,
    Interface,
    Kind,
    Operation,
    Parameter,
)
from memory_mesh.interfaces.remote import OPERATIONS

BY_NAME = {one.name: one for one in OPERATIONS}
REMOTE = [variant for one in remote.exposed(Interface.REST) for variant in one.variants]
# What only the machine of the server may do, although it takes no path: audits of every scope,
# maintenance of the whole store.
LOCAL_ONLY = {
    "sync-skills", "audit rekey", "audit log-all", "heartbeat", "reembed", "compact",
    "hooks status", "hooks retry", "model check", "users",
}  # fmt: skip
# What the pages of the console show to people; no tool of an agent.
# Other names of `forget`.
ALIASES = {"delete", "delete-all"}
FOR_PEOPLE = {"audit head", "audit log", "audit-verify", "heartbeat-log", "junk-list"}
# Commands that do more than one call; each has an entry for servers.
REPLACED = {
    "store-messages": "store-many", "ingest-skill-file": "ingest-skill", "review": "quarantined",
    "trace record": "trace-record", "trace similar": "trace-similar",
    "audit verify": "audit-verify",
}  # fmt: skip


@pytest.fixture
def mesh() -> Iterator[MemoryMesh]:
    with MemoryMesh("memory://", agent_id="planner", embedder="none") as mesh:
        yield mesh


def value_for(parameter: Parameter) -> object:
    """A valid value of a parameter."""
    if parameter.choices:
        value = next(iter(parameter.choices.values()))
    else:
        value = {
            Kind.INTEGER: 3,
            Kind.FRACTION: 0.5,
            Kind.OBJECT: {"content": "x"},
            Kind.SWITCH: True,
        }.get(parameter.kind, "mem_1_a")
    return [value] if parameter.repeated else value


def minimal(operation: Operation) -> dict[str, object]:
    return {one.name: value_for(one) for one in operation.parameters if one.required}


def test_every_operation_is_remote_or_belongs_to_the_machine_of_the_server() -> None:
    names = {one.name for one in REMOTE}
    assert names - FOR_PEOPLE - ALIASES == {one.name for one in remote.exposed(Interface.MCP)}
    assert {BY_NAME[name].effect for name in FOR_PEOPLE} == {Effect.READ}
    assert {one.extent for one in REMOTE if one.name.startswith("audit")} == {Extent.SERVER}
    local = {
        one.name
        for one in OPERATIONS
        if one.handler or any(parameter.kind in LOCAL_KINDS for parameter in one.parameters)
    }
    assert names == BY_NAME.keys() - local - LOCAL_ONLY
    assert BY_NAME.keys() - local >= LOCAL_ONLY
    assert local >= REPLACED.keys()
    assert set(REPLACED.values()) <= names
    assert not any(
        one.kind in LOCAL_KINDS or one.name == "auditor" for op in REMOTE for one in op.parameters
    )


@pytest.mark.parametrize("operation", REMOTE, ids=lambda one: one.name)
def test_a_schema_names_every_argument_and_the_check_agrees_with_it(operation: Operation) -> None:
    schema = remote.schema(operation)
    json.dumps(schema)
    assert schema["properties"].keys() == {one.name for one in operation.parameters}  # type: ignore[attr-defined]
    given = minimal(operation)
    assert schema.get("required", []) == list(given)
    if operation.name != "heritage":  # it needs one of its lists
        remote.prepare(operation, given)
    with pytest.raises(InvalidInput, match="unknown argument 'colour'"):
        remote.prepare(operation, {**given, "colour": "red"})
    for parameter in operation.parameters:
        for wrong in (None, ["x", {}], object()):
            with pytest.raises(InvalidInput, match=parameter.name):
                remote.prepare(operation, {**given, parameter.name: wrong})


def test_a_whole_number_may_be_written_with_a_point(mesh: MemoryMesh) -> None:
    mesh.add("The deploy key rotates.")
    assert remote.call(mesh, BY_NAME["list"], {"limit": 1.0})["count"] == 1
    for wrong in (1.5, float("inf"), 1e300):
        with pytest.raises(InvalidInput, match="limit is"):
            remote.call(mesh, BY_NAME["list"], {"limit": wrong})


@pytest.mark.parametrize(
    ("name", "arguments", "wrong"),
    [
        ("search", {}, "query is missing"),
        ("search", {"query": "x", "limit": True}, "whole number"),
        ("search", {"query": "x", "limit": 10**20}, "whole number"),
        ("search", {"query": "x", "min_score": 1.5}, "0 to 1"),
        ("search", {"query": "x", "ranker": "deep"}, "one of learnt, rrf"),
        ("search", {"query": "x", "min_score": float("nan")}, "0 to 1"),
        ("search", {"query": "x", "status": "active"}, "a list"),
        ("search", {"query": "x", "status": ["asleep"]}, "one of active"),
        ("store", {"content": "x", "deduplicate": "yes"}, "true or false"),
        ("store", {}, "content and messages are missing; expected one of them"),
        ("store", {"content": "x", "messages": []}, "are both given; expected one of them"),
        ("store", {"messages": [], "key": "x"}, "unknown argument 'key'; expected messages"),
        ("store", {"messages": "x"}, "messages is 'x'; expected a list"),
        (
            "store",
            {"content": "x", "type": "agent", "metadata": {"type": "global"}},
            "different values",
        ),
        ("episodes", {"gap": "soon"}, "a duration"),
        ("heritage", {"memory_id": "x"}, "one of intent_chain, hypotheses, rationales"),
    ],
)
def test_a_wrong_argument_is_refused_with_what_was_expected(
    name: str, arguments: dict[str, object], wrong: str
) -> None:
    with pytest.raises(InvalidInput, match=wrong):
        remote.prepare(BY_NAME[name], arguments)


def test_a_remote_call_answers_as_the_command_line_prints(
    mesh: MemoryMesh, cli, tmp_path: Path
) -> None:
    stored = remote.call(
        mesh,
        BY_NAME["store"],
        {"content": "The key rotates on Mondays.", "tags": ["ops"], "type": "agent"},
    )
    assert (stored["memory_type"], stored["tags"]) == ("agent", ["ops"])
    found = remote.call(mesh, BY_NAME["search"], {"query": "when does the key rotate?"})
    printed = cli(
        "store", "The key rotates on Mondays.", "--tag", "ops", "--type", "agent", "--json"
    )
    assert printed.code == 0
    again = cli("search", "when does the key rotate?", "--json")
    assert found.keys() == json.loads(again.out).keys()
    (one,), (other,) = found["results"], json.loads(again.out)["results"]  # type: ignore[misc]
    assert one["content"] == other["content"]
    assert one.keys() | {"similarity"} == other.keys()  # this mesh has no embedder


def test_the_reader_of_the_mesh_is_the_agent_of_a_context(mesh: MemoryMesh) -> None:
    remote.call(mesh, BY_NAME["store"], {"content": "The key rotates on Mondays.", "type": "agent"})
    asked = {"query": "when does the key rotate?"}
    assert "Mondays" in str(remote.call(mesh, BY_NAME["context"], asked)["text"])
    assert "Mondays" not in str(
        remote.call(mesh.scoped(agent_id="other"), BY_NAME["context"], asked)["text"]
    )


def test_an_answer_says_nothing_about_the_machine_of_the_server(mesh: MemoryMesh) -> None:
    mesh.add("One.", {"db_path": "mine"})
    told = remote.call(mesh, BY_NAME["stats"], {})
    assert told["total_memories"] == 1
    assert not {"db_path", "spent_today", "spent_in_all"} & told.keys()
    (listed,) = remote.call(mesh, BY_NAME["list"], {})["results"]  # type: ignore[misc]
    assert listed["metadata"]["db_path"] == "mine"  # what a caller stored is its own


@pytest.mark.parametrize(
    ("limit", "read_only", "refused"),
    [
        (Extent.SERVER, False, set()),
        (
            Extent.SERVER,
            True,
            {"store", "delete", "graph store", "review-activate", "trace-record"},
        ),
        (
            Extent.PROJECTS,
            False,
            {"links", "quarantined", "review-activate", "delete-all", "trace-record"},
        ),
        (
            Extent.READER,
            True,
            {
                "store",
                "delete",
                "graph store",
                "links",
                "quarantined",
                "review-activate",
                "delete-all",
                "trace-record",
            },
        ),
    ],
)
def test_a_limited_caller_is_refused_what_reaches_further(
    limit: Extent, read_only: bool, refused: set[str]
) -> None:
    some = [
        "store",
        "search",
        "delete",
        "graph store",
        "links",
        "quarantined",
        "review-activate",
        "delete-all",
        "trace-record",
    ]
    why = {name: remote.refusal(BY_NAME[name], read_only=read_only, limit=limit) for name in some}
    expected = refused | ({"delete-all", "review-activate"} if read_only else set())
    assert {name for name, text in why.items() if text} == expected


@pytest.mark.parametrize("limit", [Extent.READER, Extent.PROJECTS])
def test_a_limited_caller_forgets_a_memory_and_no_scope(limit: Extent) -> None:
    forget = BY_NAME["forget"]
    assert remote.refusal(forget, {"id", "verify"}, read_only=False, limit=limit) == ""
    for name in ("user_id", "agent_id", "session_id", "project", "memory_type"):
        assert remote.refusal(forget, {"id", name}, read_only=False, limit=limit)
        assert not remote.refusal(forget, {name}, read_only=False, limit=Extent.USER)


@pytest.mark.req("MESH-011")
@pytest.mark.parametrize("name", ["forget", "delete"])
def test_taking_notes_out_of_the_files_of_a_server_needs_the_rights_of_the_server(
    name: str,
) -> None:
    for limit in (Extent.READER, Extent.PROJECTS, Extent.USER, Extent.SERVER):
        for given, refused in (
            ({"id": "x", "files": True}, limit < Extent.SERVER),
            ({"id": "x", "files": False, "verify": True}, False),
        ):
            why = remote.refusal(BY_NAME[name], given, read_only=False, limit=limit)
            assert ("files that the users of the server share" in why) is refused


def test_what_is_marked_as_reading_needs_no_right_to_write(tmp_path: Path) -> None:
    """So a token for reading only can call it."""
    options = {
        "embedder": "none",
        "traces_dir": str(tmp_path / "traces"),
        "notes_dir": str(tmp_path / "notes"),
    }
    file = tmp_path / "memory.db"
    with MemoryMesh(file, **options) as mesh:
        id_ = mesh.add("The key rotates on Mondays.").id
    with MemoryMesh(f"sqlite:///{file}?mode=ro", **options) as mesh:
        for operation in REMOTE:
            if operation.effect is Effect.READ:
                given = {
                    name: id_ if "id" in name else value
                    for name, value in minimal(operation).items()
                }
                given |= {"id": id_} if operation.name == "get" else {}
                try:
                    remote.call(mesh, operation, given)
                except NotFound:
                    assert operation.name in ("trace show", "episode-summary"), operation.name
        with pytest.raises(StoreReadOnly):
            remote.call(mesh, BY_NAME["store"], {"content": "x"})
