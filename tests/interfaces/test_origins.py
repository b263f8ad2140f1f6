"""What the headers Host and Origin may say, at the REST server, the MCP server and the console
alike."""

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from memory_mesh import MemoryMesh
from memory_mesh.core.options import Options
from memory_mesh.interfaces.mcp.server import Guard
from memory_mesh.interfaces.rest.access import host_name, server_names
from memory_mesh.interfaces.tokens import TokenFile

from .rest_server import running

HERE, OWN = "localhost:8710", "http://localhost:8710"
FINE: list[list[tuple[str, str]]] = [
    [("Host", HERE)],
    [("Host", "LOCALHOST:8710")],
    [("Host", "[::1]:8710")],
    [("Host", "[::1]")],
    [("Host", "memory.example.org")],
    [("Host", HERE), ("Origin", OWN)],
    [("Host", HERE), ("Origin", "HTTP://LocalHost:8710")],
    [("Host", "[::1]:8710"), ("Origin", "http://[::1]:8710")],
    [("Host", "localhost:80"), ("Origin", "http://localhost")],
    [("Host", "memory.example.org"), ("Origin", "https://memory.example.org")],
    [("Host", HERE), ("Origin", OWN), ("Sec-Fetch-Site", "same-origin")],
    # A proxy with TLS passes its own name of the server on; the browser says that the page is of
    # the same origin.
    [
        ("Host", "127.0.0.1:8710"),
        ("Origin", "https://memory.example.org"),
        ("Sec-Fetch-Site", "same-origin"),
    ],
]
DENIED: list[list[tuple[str, str]]] = [
    *[[("Host", host)] for host in (
        "[::1]evil.example", "[::1]:8710evil.example", "[::1].evil.example:8710", "[::1",
        "[localhost]", "localhost:8710:8710", "localhost:evil.example", "localhost@evil.example",
        "localhost, evil.example", "localhost evil.example", "localhost/evil",
        "evil.example#localhost", "localhost:-1", ":8710", "",
    )],
    [("Host", HERE), ("Host", "evil.example")],
    [("Host", "evil.example"), ("Host", HERE)],
    *[[("Host", HERE), ("Origin", origin)] for origin in (
        "http://localhost:8711", "http://localhost", "https://localhost:8710/",
        "http://127.0.0.1:8710", "http://[::1]evil.example:8710",
        "http://localhost:8710.evil.example", "http://localhost:8710@evil.example", "null", "",
        "localhost:8710", "://localhost:8710", "file://localhost:8710",
        "chrome-extension://localhost:8710", f"{OWN}, http://evil.example",
        f"{OWN} http://evil.example",
    )],
    [("Host", HERE), ("Origin", OWN), ("Origin", "http://evil.example")],
    [("Host", HERE), ("Origin", "http://evil.example"), ("Origin", OWN)],
    [("Host", HERE), ("origin", OWN), ("ORIGIN", "http://evil.example")],
    [("Host", HERE), ("Origin", "http://localhost:8711"), ("Sec-Fetch-Site", "same-site")],
    [("Host", HERE), ("Origin", "http://evil.example"), ("Sec-Fetch-Site", "same-origin")],
    [("Host", HERE), ("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "cross-site")],
    [("Host", HERE), ("Sec-Fetch-Site", "same-origin, cross-site")],
]  # fmt: skip


def statuses(
    client: TestClient, path: str, cases: list[list[tuple[str, str]]], method: str = "GET"
) -> set[tuple[int, str]]:
    answers = [
        (client.request(method, path, headers=headers).status_code, headers) for headers in cases
    ]
    return {(status, "" if cases is FINE else str(headers)) for status, headers in answers}


@pytest.mark.req("MESH-009")
@pytest.mark.parametrize("path", ["/v1/stats", "/console/", "/health"])
def test_rest_and_console_answer_only_those_that_name_the_server_and_its_own_pages(
    tmp_path: Path, path: str
) -> None:
    with running(tmp_path, server_names=["memory.example.org"]) as (client, _):
        assert statuses(client, path, FINE) == {(200, "")}
        assert {one for one in statuses(client, path, DENIED) if one[0] != 403} == set()


def test_the_mcp_server_answers_the_same_ones(tmp_path: Path) -> None:
    inner = Starlette(
        routes=[Route("/mcp", lambda _: PlainTextResponse("inside"), methods=["POST"])]
    )
    options = Options(server_names=["memory.example.org"])
    with MemoryMesh("memory://", embedder="none") as mesh:
        client = TestClient(Guard(inner, mesh, TokenFile(tmp_path), options, read_only=False))
        assert statuses(client, "/mcp", FINE, "POST") == {(200, "")}
        assert {one for one in statuses(client, "/mcp", DENIED, "POST") if one[0] != 403} == set()


def test_a_configured_name_that_is_no_host_opens_nothing() -> None:
    assert host_name("[::1]:80") == "[::1]"
    assert host_name("Memory.Example.org:8443") == "memory.example.org"
    assert host_name("a b") == ""
    assert "" not in server_names(Options(server_names=["a b", "memory.example.org"]))
