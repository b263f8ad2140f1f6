"""`forget` over the command line, REST and MCP: what is refused, and what an answer may say."""

from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.interfaces.mcp.server import OperationTools

from .conftest import Cli
from .rest_server import running
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
