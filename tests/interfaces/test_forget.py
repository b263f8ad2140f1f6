"""`forget` over the command line, REST and MCP: what is refused, and what an answer may say."""

import re
import sys
from io import StringIO
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.interfaces.mcp.server import OperationTools
from memory_mesh.interfaces.operation import Extent

from .conftest import Cli
from .rest_server import running, token
from .test_mcp import call

EVERY_FORM = [
    {"id": "mem_1_ffffff"}, {"key": "k"}, {"user_id": "ana"}, {"agent_id": "planner"},
    {"session_id": "s1"}, {"project": "shop"},
]  # fmt: skip


def words(given: dict[str, str]) -> list[str]:
    """The flags of a scope, a key or an id."""
    (name, value), *_ = given.items()
    return [value] if name == "id" else [f"--{name.removesuffix('_id')}", value, "--yes"]


@pytest.mark.req("MESH-011")
@pytest.mark.parametrize("given", EVERY_FORM, ids=str)
def test_every_interface_says_that_the_store_is_missing_and_makes_none(
    cli: Cli, tmp_path: Path, given: dict[str, str]
) -> None:
    file = tmp_path / "missing.db"
    flags = [word for word in words(given) if word != "--yes" or not given.keys() & {"key"}]
    said = cli("forget", *flags, "--store", str(file))
    assert (said.code, "does not exist" in said.err) == (7, True)
    with running(tmp_path, f"sqlite:///{file}") as (client, _):
        assert client.post("/v1/forget", json=given).status_code == 404
    with MemoryMesh(f"sqlite:///{file}", embedder="hash") as mesh:
        text, failed = call(mesh, "forget", OperationTools(("all",)), **given)
        assert (failed, "does not exist" in text) == (True, True)
    assert not file.exists()


@pytest.mark.req("MESH-011")
@pytest.mark.parametrize("blank", ["", "  "])
def test_every_interface_refuses_an_empty_name_and_forgets_nothing(
    cli: Cli, tmp_path: Path, blank: str
) -> None:
    file = tmp_path / "memory.db"
    assert cli("store", "The umbrella stand", "--store", str(file)).code == 0
    with (
        running(tmp_path, f"sqlite:///{file}") as (client, server),
        MemoryMesh(f"sqlite:///{file}", embedder="hash") as mesh,
    ):
        toolbox = OperationTools(("all",))
        for name in (next(iter(given)) for given in EVERY_FORM):
            answer = client.post("/v1/forget", json={name: blank})
            assert (answer.status_code, f"{name} is empty" in answer.text) == (400, True)
            text, failed = call(mesh, "forget", toolbox, **{name: blank})
            assert (failed, f"{name} is empty" in text) == (True, True)
            flags = [word for word in words({name: blank}) if name != "key" or word != "--yes"]
            said = cli("forget", *flags, "--store", str(file))
            assert (said.code in (2, 3), "empty" in said.err) == (True, True)
        assert [memory.content for memory in server.mesh.get_all()] == ["The umbrella stand"]
        assert client.post("/v1/forget", json={"agent_id": "nobody"}).status_code == 200


# --- a token for one user ---

TEXT = "The locker number is 4711."


@pytest.mark.req("MESH-011")
@pytest.mark.parametrize("form", ["id", "user_id", "agent_id"])
def test_a_token_for_one_user_learns_nothing_of_others_by_forgetting(
    tmp_path: Path, form: str
) -> None:
    answers = {}
    for others in ([], ["bob"]):
        with running(tmp_path / str(len(others)), f"sqlite:///{tmp_path}/{len(others)}.db") as (
            client,
            server,
        ):
            ana, owner = token(server, "ana", user_id="ana"), token(server, "owner")
            server.mesh.init()
            for user_id in others:
                server.mesh.scoped(user_id=user_id).add(TEXT, key="locker")
            bobs = server.mesh.scoped(user_id="bob").get_all()
            for asked in (
                {"user_id": "bob"}, {"user_id": "carl"}, {"user_id": "bob", "session_id": "s"},
                {"id": bobs[0].id if bobs else "mem_1_ffffff"}, {"key": "locker"},
            ):  # fmt: skip
                refused = client.post("/v1/forget", json={**asked, "verify": True}, headers=ana)
                assert refused.status_code in (400, 404)
                assert not {"bob", "carl"} & {*re.findall(r"\w+", refused.text)}
            id_ = client.post("/v1/store", json={"content": TEXT}, headers=ana).json()["id"]
            given = {"id": id_, "user_id": "ana", "agent_id": "server"}[form]
            body = {form: given, "verify": True}
            answer = client.post("/v1/forget", json=body, headers=ana)
            assert answer.status_code == 200
            answers[len(others)] = re.sub(r"[a-z]+_\d+_[0-9a-f]+|\d\.db", "ID", answer.text)
            assert answer.json()["check"].get("shared", 0) == 0
            if others:  # the owner of the server sees that the text stays
                server.mesh.scoped(user_id="ana").add(TEXT)
                body = {"user_id": "ana", "verify": True}
                told = client.post("/v1/forget", json=body, headers=owner).json()
                assert told["check"]["shared"] == 1
                assert len(server.mesh.scoped(user_id="bob").get_all()) == 1
    assert answers[0] == answers[1]


@pytest.mark.req("MESH-011")
def test_a_token_for_one_user_changes_no_file_of_the_server(tmp_path: Path) -> None:
    note = (
        "---\ntitle: Locker\nwhenToUse: locker\ntags: []\nimportance: high\n"
        "discoveredAt: 2026-01-23T10:30:00Z\ndiscoveredBy: ann\n---\n\nIt is in the hall.\n"
    )
    (tmp_path / "notes").mkdir()
    path = tmp_path / "notes" / "locker.md"
    path.write_text(note)
    with running(tmp_path, notes_dir=str(path.parent)) as (client, server):
        ana, owner = token(server, "ana", user_id="ana"), token(server, "owner")
        asked = {"query": "where is the locker, in the hall?"}
        (found,) = client.post("/v1/search", json=asked, headers=ana).json()["results"]
        for body in ({"id": found["id"]}, {"user_id": "ana"}, {"agent_id": "server"}):
            answer = client.post("/v1/forget", json={**body, "files": True}, headers=ana)
            assert answer.status_code == 403
            toolbox = OperationTools(("all",))
            assert toolbox.refusal(
                "forget", {**body, "files": True}, read_only=False, limit=Extent.USER
            )
        assert path.read_text() == note
        assert client.post("/v1/forget", json={"id": found["id"]}, headers=ana).status_code == 200
        body = {"user_id": "ana", "files": True}
        assert client.post("/v1/forget", json=body, headers=owner).status_code == 200
        assert not path.exists()


# --- what people and models are told ---


def test_delete_without_an_id_names_the_command_that_forgets_a_scope(cli: Cli) -> None:
    cli("store", "The umbrella stand", "--agent", "planner")
    said = cli("delete", "--agent", "planner")
    assert (said.code, said.out) == (2, "")
    assert "delete has no ID; expected ID, or --key KEY; memory-mesh forget --agent planner" in (
        said.err
    )
    assert "umbrella" in cli("list", "--agent", "planner").out


@pytest.mark.parametrize(
    ("flags", "question"),
    [
        (["--user", "ana"], "Erase all memories, searches and traces of user ana for good?"),
        (["--agent", "planner"], "Erase all memories of agent planner for good?"),
        (["--user", "ana", "--agent", "a"], "Erase all memories of user ana, agent a for good?"),
    ],
)
@pytest.mark.parametrize("command", ["forget", "delete-all"])
def test_the_question_before_a_scope_is_forgotten_says_what_goes(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: str, flags: list[str], question: str
) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO("no\n"))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    said = cli(command, *flags)
    assert (question in said.err, "nothing was changed" in said.err) == (True, True)


def test_the_tool_that_forgets_a_scope_says_when_to_use_it() -> None:
    (tool,) = [one for one in OperationTools(("all",)).listed() if one.name == "forget"]
    for words in ("only when the user asks", "only when the user names it", "searches and traces"):
        assert words in str(tool.description)
    assert "user_id" in tool.input_schema["properties"]
    (default,) = [one for one in OperationTools().listed() if one.name == "forget"]
    assert "user_id" not in str(default.description)
