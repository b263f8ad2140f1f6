"""The first answer of the MCP server over standard input, which is written before the SDK is
imported."""

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from time import sleep

import pytest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from memory_mesh import MemoryMesh
from memory_mesh.interfaces.mcp.compat import GraphTools
from memory_mesh.interfaces.mcp.handshake import VERSIONS, Wire, answer_to
from memory_mesh.interfaces.mcp.server import (
    Caller,
    MemoryServer,
    OperationTools,
    Toolbox,
    over_stdio,
)

CLIENT = {"name": "t", "version": "1"}


def hello(version: object = "2025-06-18", **changed: object) -> dict[str, object]:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
    return {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params} | changed


class Client(StringIO):
    """Standard input, which stays open until the last message was answered."""

    def __init__(self, messages: str, output: StringIO, last: object) -> None:
        super().__init__(messages)
        self.is_answered = lambda: f'"id":{last}' in output.getvalue()

    def readline(self, size: int = -1, /) -> str:
        line = super().readline(size)
        for _ in range(6000):
            if line or self.is_answered():
                return line
            sleep(0.01)
        raise AssertionError("no answer within a minute")


def by_the_sdk(
    *messages: dict, answered: int | None = None, toolbox: Toolbox | None = None
) -> list[dict]:
    """What the SDK answers to messages, the first of which was read already."""
    first, *rest = (json.dumps(one) + "\n" for one in messages)
    output = StringIO()
    with MemoryMesh("memory://", embedder="none") as mesh:
        server = MemoryServer(toolbox or OperationTools(), lambda _: Caller(mesh=mesh)).build()
        client = Client("".join(rest), output, messages[-1]["id"])
        over_stdio(server, Wire(client, output, first, answered))
    return [json.loads(line) for line in output.getvalue().splitlines()]


@pytest.mark.parametrize("toolbox", [OperationTools(("all",)), GraphTools(read_only=True)])
@pytest.mark.parametrize("version", [*HANDSHAKE_PROTOCOL_VERSIONS, "2026-07-28", "1999-01-01"])
def test_the_first_answer_is_that_of_the_sdk(toolbox: Toolbox, version: str) -> None:
    assert [answer_to(json.dumps(hello(version)))] == by_the_sdk(hello(version), toolbox=toolbox)
    assert VERSIONS == HANDSHAKE_PROTOCOL_VERSIONS


def test_a_client_gets_one_answer_to_its_first_message_and_then_those_of_the_sdk() -> None:
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    tools = {"jsonrpc": "2.0", "id": 8, "method": "tools/list"}
    answers = by_the_sdk(hello(), ready, tools, answered=7)
    assert [answer["id"] for answer in answers] == [8]
    assert answers[0]["result"]["tools"][0]["name"] == "remember"


@pytest.mark.parametrize(
    "message",
    [
        hello(3), hello(None), hello(params={}), hello(params=[]), hello(jsonrpc="1.0"),
        hello(id=None), hello(id=True), hello(method="ping"), hello(method="server/discover"),
        [hello()], None, 3,
    ],
)  # fmt: skip
def test_what_is_not_a_valid_first_message_is_left_to_the_sdk(message: object) -> None:
    assert answer_to(json.dumps(message)) is None


def test_what_is_not_json_is_left_to_the_sdk() -> None:
    for line in ("", "\n", "not JSON", "[" * 100_000, '"\\ud800"'):
        assert answer_to(line) is None
    ping = {"jsonrpc": "2.0", "id": 9, "method": "ping"}
    assert by_the_sdk(ping) == [{"jsonrpc": "2.0", "id": 9, "result": {}}]


# The SDK reads another first message than the client's, which may be more than the SDK takes.
@pytest.mark.deep
@pytest.mark.parametrize("odd", [{}, {"clientInfo": {"name": "\ud800", "version": "1"}},
                                 {"capabilities": {"roots": 5}}])  # fmt: skip
def test_a_later_message_with_the_id_of_the_first_one_is_answered_too(
    tmp_path: Path, odd: dict[str, object]
) -> None:
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}
    messages = [
        hello(params=params | odd), {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 7, "method": "tools/list"},
    ]  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "memory_mesh", "mcp"], text=True,
        env={**os.environ, "MEMORY_MESH_HOME": str(tmp_path), "MEMORY_MESH_EMBEDDER": "none"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(json.dumps(one) + "\n" for one in messages))
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in range(2)]
        server.stdin.close()
    assert [one["id"] for one in answers] == [7, 7]
    assert answers[0] == answer_to(json.dumps(hello()))
    assert answers[1]["result"]["tools"]


# It stands in for the server, and says what was imported when the first answer was written.
STUB = """
import sys, types
stub = types.ModuleType("memory_mesh.interfaces.mcp.server")
def serve(call, wire):
    sys.stderr.write(" ".join(sys.modules))
    raise SystemExit
stub.serve = serve
sys.modules[stub.__name__] = stub
from memory_mesh.interfaces.cli.main import main
main()
"""


def test_the_first_answer_needs_neither_the_sdk_nor_a_store_nor_a_model(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STUB, "mcp"],
        input=json.dumps(hello()) + "\n",
        env={**os.environ, "MEMORY_MESH_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == answer_to(json.dumps(hello()))
    imported = set(done.stderr.split())
    assert "memory_mesh.interfaces.mcp.handshake" in imported
    heavy = {
        "mcp", "mcp_types", "pydantic", "starlette", "anyio", "asyncio", "numpy", "onnxruntime",
        "tokenizers", "sqlite3", "httpx2", "rich", "sqlglot", "memory_mesh.api",
        "memory_mesh.flows", "memory_mesh.stores", "memory_mesh.models", "memory_mesh.index",
    }  # fmt: skip
    assert not heavy & imported
    assert len(imported) < 250
