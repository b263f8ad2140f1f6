"""Requests that are made to exhaust the server, and secrets that are not in its files."""

import asyncio
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.requests import Request

from memory_mesh.interfaces.rest.requests import _batches
from memory_mesh.interfaces.tokens import FILE, TokenFile, find_token

from .conftest import Cli

JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {},
               "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip


def test_the_file_of_tokens_has_no_secret(cli: Cli, home: Path) -> None:
    token = json.loads(cli("token", "create", "ci", "--json").out)["token"]
    stored = (home / FILE).read_text()
    assert (
        find_token(TokenFile(home).tokens(), f"Bearer {token}", "2026-01-01T00:00:00.000Z").name
        == "ci"
    )
    id_, secret = token.removeprefix("mm_").split("_", 1)
    assert id_ in stored
    assert secret not in stored
    assert secret not in cli("token", "list", "--json").out


@contextmanager
def server(home: Path, *words: str) -> Iterator[tuple[int, int]]:
    """A server process; yields its port and its process id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "MEMORY_MESH_HOME": str(home), "MEMORY_MESH_EMBEDDER": "none"}
    command = [sys.executable, "-m", "memory_mesh", *words, "--port", str(port)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as running:
        try:
            while running.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield port, running.pid
        finally:
            running.terminate()
            rest = running.communicate(timeout=60)[1]
        assert ("Traceback" in rest, running.returncode) == (False, 0)


def status(port: int, path: str, body: str, **headers: str) -> int:
    """Return the status of a request, or 0 if the server closed the connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", path, body, {**JSON, **headers})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def resident(pid: int) -> int:
    """Return the memory of a process in bytes, of Linux."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("words", "path", "body"),
    [(["serve"], "/v1/search", {"query": "x"}), (["mcp", "--http"], "/mcp", HELLO)],
)
def test_giant_requests_are_refused_and_others_are_served(
    tmp_path: Path, words: list[str], path: str, body: dict[str, object]
) -> None:
    assert subprocess.run(
        [sys.executable, "-m", "memory_mesh", "store", "x"], check=True, stdout=subprocess.DEVNULL,
        env={**os.environ, "MEMORY_MESH_HOME": str(tmp_path), "MEMORY_MESH_EMBEDDER": "none"},
    )  # fmt: skip
    text = json.dumps(body)
    with server(tmp_path, *words) as (port, pid):
        assert status(port, path, text) == 200
        before = resident(pid)
        assert status(port, path, json.dumps({**body, "x": "a" * 30_000_000})) in (0, 413)
        assert status(port, path, text, **{"X-Long": "a" * 5_000_000}) in (0, 400, 431)
        assert status(port, path, "[" * 200_000 + "]" * 200_000) == 400
        open_ = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
        for one in open_:
            one.sendall(
                f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n".encode()
            )
        assert status(port, path, text) == 200
        for one in open_:
            one.close()
        assert status(port, path, text) == 200
        assert resident(pid) - before < 50_000_000


@pytest.mark.deep
def test_a_line_that_arrives_byte_by_byte_is_read_in_a_time_that_grows_with_its_length() -> None:
    """Copying what is there with each byte would move 500 gigabytes; ten times the time that is
    needed is allowed."""
    waiting = 1_000_000

    async def receive() -> dict[str, object]:
        nonlocal waiting
        waiting -= 1
        return {
            "type": "http.request",
            "body": b"a" if waiting else b"\nsecond",
            "more_body": bool(waiting),
        }

    async def read() -> list[list[tuple[int, bytes]]]:
        request = Request({"type": "http", "method": "POST", "headers": []}, receive)  # type: ignore[arg-type]
        return [batch async for batch in _batches(request, 2_000_000, 1_000_000)]

    began = time.process_time()
    assert asyncio.run(read()) == [[(1, b"a" * 999_999), (2, b"second")]]
    assert time.process_time() - began < 30


@pytest.mark.deep
def test_lines_that_stop_arriving_end_with_an_event_that_says_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_MESH_SERVER_WAIT_SECONDS", "1")
    lines = b"".join(
        b'{"content": "The deploy key number %d rotates."}\n' % number for number in range(150)
    )
    head = (
        b"POST /v1/ingest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
        b"Content-Length: 99999\r\n\r\n"
    )
    with (
        server(tmp_path, "serve") as (port, _),
        socket.create_connection(("127.0.0.1", port), timeout=120) as connection,
    ):
        connection.sendall(head + lines)
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    progress, error = re.findall(rb"event: ([a-z]+)\ndata: ([^\n]+)", answer)
    assert (progress[0], json.loads(progress[1])["lines"]) == (b"progress", 100)
    assert (error[0], json.loads(error[1])["status"], json.loads(error[1])["lines"]) == (
        b"error",
        408,
        100,
    )
