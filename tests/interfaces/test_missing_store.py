"""Commands and servers over a store that does not exist yet: an empty answer, and one line."""

import json
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.interfaces.mcp.server import OperationTools

from .conftest import Cli
from .rest_server import running
from .test_mcp import call

COMMANDS = (
    "stats", "search tea", "list", "lane find tea", "list-skills", "notes list", "export",
    "trace list", "audit verify", "audit log", "eval",
)  # fmt: skip


@pytest.mark.sample(12)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_reads_says_in_one_line_that_nothing_is_stored_yet(
    cli: Cli, tmp_path: Path, command: str
) -> None:
    words = [*command.split(), "--store", "new/memory.db"]
    line = f"nothing is stored yet: the store {tmp_path / 'new' / 'memory.db'} does not exist"
    said = cli(*words)
    assert (said.code, said.err.count(line)) == (0, 1)
    assert line not in said.out
    shown = cli(*words, terminal=True)
    assert (shown.code, shown.err.count(line)) == (0, 1)
    if command != "export":
        answer = cli(*words, "--json")
        assert (answer.code, json.loads(answer.err)) == (0, {"warning": line})
    assert not (tmp_path / "new").exists()
    assert cli("store", "Ana likes tea", "--store", "new/memory.db").err == ""
    written = cli(*words)
    assert (line in written.err, written.code) == (False, 0)
    assert (tmp_path / "new" / "memory.db").exists()
    if command != "export":  # the empty answer has the usual names
        assert json.loads(answer.out).keys() <= json.loads(cli(*words, "--json").out).keys()


def test_an_empty_home_is_said_too_and_a_store_in_memory_is_not(cli: Cli, home: Path) -> None:
    assert str(home / "memory.db") in cli("list").err
    assert not home.exists()
    assert cli("list", "--store", "memory://").err == ""


def test_a_command_that_needs_the_store_fails_with_one_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in ("backup copy.db", "forget mem_1_ffffff", "audit rekey", "copy --to new.db"):
        said = cli(*words.split(), "--store", "./none.db")
        assert (said.code, said.err.count("\n")) == (7, 1)
        assert "none.db does not exist; check the name" in said.err
    unknown = cli("get", "mem_1_ffffff", "--store", "./none.db")
    assert (unknown.code, unknown.err.count("\n")) == (4, 1)
    monkeypatch.setenv("MEMORY_MESH_MUST_EXIST", "1")
    assert cli("stats", "--store", "./none.db").code == 7
    assert [*tmp_path.iterdir()] == []


def test_servers_over_a_missing_store_answer_empty_and_see_the_first_write(tmp_path: Path) -> None:
    file = tmp_path / "store" / "memory.db"
    with running(tmp_path, f"sqlite:///{file}") as (client, _):
        for path in ("search?query=tea", "list", "stats", "lessons?query=tea"):
            assert client.get(f"/v1/{path}").status_code == 200
        assert client.get("/v1/search?query=tea").json()["results"] == []
        assert not file.parent.exists()
        assert client.post("/v1/store", json={"content": "Ana likes tea"}).status_code == 200
        (hit,) = client.get("/v1/search?query=tea").json()["results"]
        assert hit["content"] == "Ana likes tea"
    other = tmp_path / "other" / "memory.db"
    with MemoryMesh(f"sqlite:///{other}", embedder="hash") as mesh:
        for name, given in (("recall", {"query": "tea"}), ("stats", {})):
            text, failed = call(mesh, name, OperationTools(("all",)), **given)
            assert (failed, "does not exist" in text) == (False, False)
        assert not other.parent.exists()
