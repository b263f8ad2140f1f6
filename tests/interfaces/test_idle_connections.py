"""Clients that open connections and then say little or nothing: at the limit of open files, and
with a server in this process."""

import asyncio
import http.client
import os
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from memory_mesh.core.options import Options
from memory_mesh.interfaces.rest.connections import Patience, limits_of
from memory_mesh.interfaces.rest.serve import Running, listen

MAX_FILES, IDLE = 256, 600
SERVERS = {"serve": ["serve"], "mcp": ["mcp", "--http"], "console": ["console", "--no-browser"]}
BEGUN = b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
KINDS = {
    "silent": b"",
    "half of the headers": BEGUN,
    "half of the body": BEGUN + b"Content-Length: 100\r\n\r\n{",
    "a stream of events": (
        b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nAccept: text/event-stream\r\n\r\n"
    ),
    "kept alive": b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@contextmanager
def server(home: Path, *words: str) -> Iterator[tuple[int, int]]:
    """A server that may open few files; yields its port and its process id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    names = {
        name: value for name, value in os.environ.items() if not name.startswith("MEMORY_MESH_")
    }
    environment = {**names, "MEMORY_MESH_HOME": str(home), "MEMORY_MESH_EMBEDDER": "none"}
    limited = [
        "/bin/sh",
        "-c",
        f'ulimit -n {MAX_FILES}; exec "$@"',
        "sh",
        sys.executable,
        "-m",
        "memory_mesh",
    ]
    with (
        (home / "log").open("w") as log,
        subprocess.Popen(
            [*limited, *words, "--port", str(port)], env=environment, stdout=log, stderr=log
        ) as running,
    ):
        try:
            while running.poll() is None and not answered(port, 1):
                pass
            yield port, running.pid
        finally:
            running.terminate()
            assert running.wait(60) == 0
    assert "Traceback" not in (home / "log").read_text()


def answered(port: int, seconds: float) -> bool:
    """Return whether a client that behaves gets an answer."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        client.request("GET", "/health")
        return client.getresponse().status in (200, 404, 405)  # the MCP server has no such page
    except (OSError, http.client.HTTPException):
        return False
    finally:
        client.close()


def opened(stack: ExitStack, port: int, data: bytes) -> socket.socket:
    connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
    with suppress(OSError):  # the server may have closed it
        connection.sendall(data.replace(b"PORT", b"%d" % port))
    return connection


@pytest.mark.deep
@pytest.mark.parametrize("words", SERVERS.values(), ids=SERVERS)
def test_more_idle_connections_than_the_server_may_open_keep_nobody_out(
    tmp_path: Path, words: list[str]
) -> None:
    with server(tmp_path, *words) as (port, pid):
        most = 0
        for data in KINDS.values():
            with ExitStack() as stack:
                for _ in range(IDLE):
                    opened(stack, port, data)
                assert all(answered(port, 30) for _ in range(5))
                most = max(most, len(list(Path(f"/proc/{pid}/fd").iterdir())))
        assert MAX_FILES // 3 < most < MAX_FILES  # many are open, and files are left for the store


# --- a server in this process ---

WAIT = 0.5  # seconds that the server waits
POST = b"POST /echo HTTP/1.1\r\nHost: localhost\r\n"
GET = b"GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def echo(request: Request) -> Response:
    return PlainTextResponse(f"{len(await request.body())} bytes")


async def early(request: Request) -> Response:
    return PlainTextResponse("early")


async def pieces(request: Request) -> Response:
    """Answer slowly: for three times as long as the server waits for a client."""

    async def slowly() -> AsyncIterator[bytes]:
        for _ in range(6):
            await asyncio.sleep(WAIT / 2)
            yield b"piece\n"

    return StreamingResponse(slowly(), media_type="text/event-stream")


async def endless(request: Request) -> Response:
    async def much() -> AsyncIterator[bytes]:
        while True:
            yield bytes(100_000)
            await asyncio.sleep(0)  # lets the server see that the connection is closed

    return StreamingResponse(much())


Talk = Callable[[int, Running], Awaitable[None]]


def served(talk: Talk, **options: float) -> None:
    """Run a server and a conversation with it in one event loop."""
    released = asyncio.Event()

    async def work(request: Request) -> Response:
        await released.wait()
        return PlainTextResponse("done")

    async def release(request: Request) -> Response:
        released.set()
        return PlainTextResponse("released")

    async def both() -> None:
        pages = {
            "/echo": echo,
            "/early": early,
            "/pieces": pieces,
            "/endless": endless,
            "/busy": work,
            "/release": release,
        }
        app = Starlette(
            routes=[Route(path, page, methods=["GET", "POST"]) for path, page in pages.items()]
        )
        running = Running(app, Options(**{"server_shutdown_seconds": 5.0, **options}), released.set)  # type: ignore[arg-type]
        listening = listen("127.0.0.1", 0)
        port = listening.getsockname()[1]
        serving = asyncio.create_task(running.serve(sockets=[listening]))
        while not running.started:
            await asyncio.sleep(0.01)
        try:
            await asyncio.wait_for(talk(port, running), 120)
        finally:
            released.set()
            running.should_exit = True
            await serving

    asyncio.run(both())


async def said(port: int, first: bytes, slowly: bytes = b"") -> bytes:
    """Send bytes, then others one by one, until the server closes the connection; return what it
    said."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = bytearray()

    async def listen() -> None:
        with suppress(ConnectionError):  # it closes the connection although more was sent
            while piece := await reader.read(65_536):
                answer.extend(piece)

    listening = asyncio.create_task(listen())
    try:
        writer.write(first)
        for byte in slowly:
            if listening.done():
                break
            writer.write(bytes([byte]))
            await asyncio.sleep(WAIT / 23)  # not at the very moment when the time is over
        await listening
        return bytes(answer)
    finally:
        listening.cancel()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def asked(port: int, path: str = "/echo") -> bytes:
    return await said(
        port, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    )


SLOW = {
    "silent": (b"", b"", b""),
    "headers that stop": (POST, b"", b"408"),
    "headers byte by byte": (POST, b"X-Long: " + b"a" * 5000, b"408"),
    "blank lines byte by byte": (b"", b"\r\n" * 2500, b"400"),
    "a body that stops": (POST + b"Content-Length: 9\r\n\r\nabc", b"", b"408"),
    "a body byte by byte": (POST + b"Content-Length: 5000\r\n\r\n", b"a" * 5000, b"408"),
    "chunks byte by byte": (
        POST + b"Transfer-Encoding: chunked\r\n\r\n",
        b"1\r\na\r\n" * 900,
        b"408",
    ),
    "a second request that stops": (GET + POST, b"", b"408"),
    "a second request byte by byte": (GET, POST + b"X-Long: " + b"a" * 5000, b"408"),
    "a body after its answer": (
        POST.replace(b"echo", b"early") + b"Content-Length: 5000\r\n\r\n",
        b"a" * 5000,
        b"200",
    ),
    "a connection that is kept alive": (GET, b"", b"200"),
}


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.sample(99)
def test_a_client_that_is_too_slow_is_told_so_and_its_connection_is_closed(name: str) -> None:
    first, slowly, status = SLOW[name]

    async def talk(port: int, running: Running) -> None:
        answer = await said(port, first, slowly)
        statuses = re.findall(rb"HTTP/1.1 ([0-9]+) ", answer)
        assert statuses[-1:] == ([status] if status else [])
        while running.server_state.connections:
            await asyncio.sleep(0.01)

    served(talk, server_wait_seconds=WAIT)


def test_a_long_answer_and_long_work_are_not_cut() -> None:
    async def talk(port: int, running: Running) -> None:
        work = asyncio.create_task(asked(port, "/busy"))
        assert (await asked(port, "/pieces")).count(b"piece") == 6
        assert not work.done()
        await asked(port, "/release")
        assert (await work).endswith(b"done")

    served(talk, server_wait_seconds=WAIT)


def test_an_answer_that_is_never_read_is_given_up() -> None:
    async def talk(port: int, running: Running) -> None:
        # It reads next to nothing.
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(GET.replace(b"echo", b"endless"))
        await reader.readexactly(1)
        assert running.server_state.connections
        while running.server_state.connections:
            await asyncio.sleep(0.01)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    served(talk, server_wait_seconds=0.1)


def test_a_new_connection_takes_the_place_of_the_one_that_was_silent_for_longest() -> None:
    async def talk(port: int, running: Running) -> None:
        silent = [asyncio.create_task(said(port, b"" if n % 2 else POST)) for n in range(20)]
        while sum(one.done() for one in silent) < 15:
            await asyncio.sleep(0.01)
        assert (await asked(port)).endswith(b"0 bytes")
        assert {one.result()[:12] for one in silent if one.done()} == {b"", b"HTTP/1.1 503"}
        assert len(running.server_state.connections) <= 5
        for one in silent:
            one.cancel()
        await asyncio.gather(*silent, return_exceptions=True)

    served(talk, server_max_connections=5)


def test_when_every_connection_is_worked_on_a_new_one_is_refused_until_one_ends() -> None:
    async def talk(port: int, running: Running) -> None:
        working = [asyncio.create_task(asked(port, "/busy")) for _ in range(4)]
        while len(running.server_state.tasks) < 4:
            await asyncio.sleep(0.01)
        idle = asyncio.create_task(said(port, b""))
        while len(running.server_state.connections) < 5:
            await asyncio.sleep(0.01)
        last = asyncio.create_task(asked(port, "/busy"))  # in the place of the idle one
        assert await idle == b""
        while len(running.server_state.tasks) < 5:
            await asyncio.sleep(0.01)
        assert (await asked(port, "/release")).startswith(b"HTTP/1.1 503 ")
        running._on_stop()
        assert {one[-4:] for one in await asyncio.gather(last, *working)} == {b"done"}
        while running.server_state.connections:
            await asyncio.sleep(0.01)
        assert (await asked(port)).endswith(b"0 bytes")

    served(talk, server_max_connections=5)


def test_half_of_the_files_of_the_process_are_left_for_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for files, most in ((100, 50), (1024, 512), (1_000_000, 1000), (-1, 1000), (1, 1)):
        monkeypatch.setattr("resource.getrlimit", lambda _, files=files: (files, files))
        assert limits_of(Options()).max_connections == most


# --- the rate of a body, by a clock that runs ahead ---


class Ahead(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer instead of waiting."""

    ahead = 0.0

    def time(self) -> float:
        return self.ahead

    def _run_once(self) -> None:
        timers = [timer.when() for timer in self._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
        if timers and not self._ready:  # type: ignore[attr-defined]
            self.ahead = max(self.ahead, min(timers))
        super()._run_once()  # type: ignore[misc]


def body_read(*sent: tuple[float, int]) -> int:
    """Return the bytes of a body that arrives in pieces, each a pause and a size. The server
    waits for 30 seconds."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal size
        more = True
        while more:
            message = await receive()
            size, more = size + len(message["body"]), message["more_body"]
            # What the server does with it takes its time, which is not the client's.
            await asyncio.sleep(100)
        assert (await receive())["type"] == "http.disconnect"

    async def receive() -> Message:
        if not waiting:
            await asyncio.sleep(10_000)  # an answer may be long
            return {"type": "http.disconnect"}
        pause, length = waiting.pop(0)
        await asyncio.sleep(pause)
        return {"type": "http.request", "body": bytes(length), "more_body": bool(waiting)}

    size, waiting = 0, list(sent)
    with asyncio.Runner(loop_factory=Ahead) as runner:
        runner.run(Patience(app, 30.0)({"type": "http"}, receive, None))  # type: ignore[arg-type]
    return size


def test_a_body_may_take_any_time_if_it_is_not_slower_than_1_kib_a_second() -> None:
    assert body_read((29, 0)) == 0
    assert body_read(*[(1, 1024)] * 1000) == 1000 * 1024
    assert body_read(*[(29, 29 * 1024)] * 100) == 100 * 29 * 1024
    for slow in ([(31, 1)], [(1, 1000)] * 2000, [(0, 100_000_000), (31, 1)], [(29, 1), (2, 1)]):
        with pytest.raises(
            HTTPException, match="slower than 1,024 bytes a second for 30 seconds"
        ) as error:
            body_read(*slow)
        assert error.value.status_code == 408
