"""A small local server with scripted answers and faults, which records its requests."""

import json
import socket
import ssl
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self

from memory_mesh.core.model import Json


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One scripted answer, and its fault."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    # Anything but bytes and text is sent as JSON.
    body: bytes | str | Json = field(default_factory=dict)
    delay: float = 0.0  # seconds before it starts
    drip: float = 0.0  # seconds between any two bytes, headers included
    chunked: bool = False
    cut: int | None = None  # the connection ends after so many bytes of the body
    drop: bool = False  # the connection ends without an answer
    reset: bool = False  # the same, with a TCP reset
    hang: bool = False  # no answer until the server is closed
    raw: bytes | None = None  # exactly these bytes, then the end

    def content(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


@dataclass(frozen=True, kw_only=True)
class Request:
    """One received request; header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    connection: int  # requests with the same number came over the same connection

    @property
    def json(self) -> Json:
        value: Json = json.loads(self.body)
        return value


class FaultServer:
    """Sends the answers in order, the last one repeatedly. `with FaultServer([...]) as server: …
    server.url`."""

    def __init__(
        self,
        answers: Sequence[Answer] = (Answer(),),
        *,
        tls: ssl.SSLContext | None = None,
        greeting: bytes = b"",
    ) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self._answers, self._tls, self._greeting = list(answers), tls, greeting
        self._lock, self._stop = Lock(), Event()
        self._threads: list[Thread] = []
        self._sockets: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listening.close()
        for thread in list(self._threads):
            for open_socket in list(self._sockets):
                with suppress(OSError):
                    open_socket.shutdown(socket.SHUT_RDWR)
            thread.join(10)
        for open_socket in self._sockets:
            open_socket.close()

    def _spawn(self, work: object, *args: object) -> None:
        thread = Thread(target=work, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._stop.is_set():
                connected, _ = self._listening.accept()
                self._sockets.append(connected)
                self.connections += 1
                self._spawn(self._serve, connected, self.connections)

    def _serve(self, connected: socket.socket, number: int) -> None:
        with suppress(OSError, ValueError):
            if self._tls is not None:
                connected = self._tls.wrap_socket(connected, server_side=True)
                self._sockets.append(connected)
            connected.sendall(self._greeting)
            while not self._stop.is_set() and self._exchange(connected, number):
                pass
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)
        connected.close()

    def _exchange(self, connected: socket.socket, number: int) -> bool:
        """Serve one request; return whether the connection stays open."""
        request = _read(connected, number)
        if request is None:
            return False
        with self._lock:
            answer = self._answers[min(len(self.requests), len(self._answers) - 1)]
            self.requests.append(request)
        if answer.hang:
            self._stop.wait()
        self._stop.wait(answer.delay)
        if answer.reset:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connected.close()
        if answer.drop or answer.hang or answer.reset:
            return False
        whole = answer.raw is None and answer.cut is None
        self._send(connected, answer.raw if answer.raw is not None else _bytes(answer), answer.drip)
        return whole and answer.headers.get("Connection", "") != "close"

    def _send(self, connected: socket.socket, data: bytes, drip: float) -> None:
        if not drip:
            connected.sendall(data)
            return
        for at in range(len(data)):
            connected.sendall(data[at : at + 1])
            if self._stop.wait(drip):
                return


def _bytes(answer: Answer) -> bytes:
    content = answer.content()
    length = (
        {"Transfer-Encoding": "chunked"}
        if answer.chunked
        else {"Content-Length": str(len(content))}
    )
    headers = {"Content-Type": "application/json", **length, **answer.headers}
    lines = [
        f"HTTP/1.1 {answer.status} Scripted",
        *(f"{name}: {value}" for name, value in headers.items()),
        "",
        "",
    ]
    body = _chunks(content) if answer.chunked else content
    return "\r\n".join(lines).encode("latin-1") + body[: answer.cut]


def _chunks(content: bytes, size: int = 16) -> bytes:
    parts = (content[at : at + size] for at in range(0, len(content), size))
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def _read(connected: socket.socket, number: int) -> Request | None:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connected.recv(65536)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    length = int(headers.get("content-length", "0"))
    while len(body) < length:
        more = connected.recv(65536)
        if not more:
            return None
        body += more
    return Request(method=method, path=path, headers=headers, body=body, connection=number)
