"""Limits of a server: how long it waits for a client, how much it accepts, and what it logs.

They are the same for REST, MCP and the console. A client that owes something (the rest of a
request, or the reading of a response) has a deadline. When all connections are in use, a new one
replaces the one whose client has been silent for longest, so that idle connections keep nobody out.
A response may take any time.
"""

import asyncio
import json
import logging
import sys
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import h11
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from memory_mesh.core.errors import InvalidInput, TooLarge, TooManyRequests
from memory_mesh.core.model import iso
from memory_mesh.core.options import Options

# --- connections ---

_TOO_SLOW, _NO_PLACE = b"408 Request Timeout", b"503 Service Unavailable"
_BYTES_PER_SECOND = 1024  # of a body; it may be slower for as long as the server waits
# A response may be read so many times slower: how much of it the client has is not known here.
_READING = 4


@dataclass(slots=True)
class Limits:
    """The limits of a server, and its connections that wait for their client; the first one has
    waited for longest."""

    seconds: float
    max_connections: int
    waiting: dict["Connection", None] = field(default_factory=dict)


def limits_of(options: Options) -> Limits:
    """Return the limits. Half of the files that the process may open are left for the store."""
    most = options.server_max_connections
    if sys.platform != "win32":
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit

        files = getrlimit(RLIMIT_NOFILE)[0]
        most = most if files == RLIM_INFINITY else min(most, files // 2)
    return Limits(options.server_wait_seconds, max(1, most))


class Connection(H11Protocol):
    """A connection of uvicorn. It ends when its client makes the server wait for too long, or
    when another needs its place."""

    def __init__(self, limits: Limits, **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._limits.max_connections:
            longest = next(iter(self._limits.waiting), self)
            longest._end(_NO_PLACE, is_answer=longest is self)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop()  # its time begins now
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not a request, such as one whose URL is too long."""
        body = json.dumps(
            {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": msg}
        ).encode()
        self.transport.write(
            b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\n"
            b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        self.transport.close()

    def timeout_keep_alive_handler(self) -> None:
        self._end(_TOO_SLOW)

    def _watch(self) -> None:
        """Note whether the client owes something. Its time goes on while it sends; the body of a
        request is `Patience`'s."""
        if self.transport.is_closing():
            self._stop()
            return
        is_answered = self.cycle is None or self.cycle.response_complete
        if not (is_answered or self.flow.write_paused):
            self._stop()
        elif self._timer is None:
            seconds = self._limits.seconds * (_READING if self.flow.write_paused else 1)
            self._timer = self.loop.call_later(seconds, self._end, _TOO_SLOW)
        self._limits.waiting.pop(self, None)
        if self._timer is not None or self.conn.their_state is h11.SEND_BODY:
            self._limits.waiting[self] = None

    def _stop(self) -> None:
        self._limits.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self, status: bytes, *, is_answer: bool = False) -> None:
        """Close the connection, with an answer to a request that has begun. Nobody waits for the
        client to read it."""
        self._stop()
        if self.transport.is_closing():
            return
        if self.conn.our_state is h11.IDLE and (is_answer or self.conn.trailing_data[0]):
            self.transport.write(
                b"HTTP/1.1 %b\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" % status
            )
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        self.transport.close()


class Patience:
    """An ASGI application around another, in which a body that arrives too slowly is the error 408.

    Only the time counts in which the application waits for it.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        left, is_complete, now = (
            self._seconds,
            scope["type"] != "http",
            asyncio.get_running_loop().time,
        )

        async def patient() -> Message:
            nonlocal left, is_complete
            if is_complete:  # what follows is the end of the connection, which may be far away
                return await receive()
            began = now()
            try:
                async with asyncio.timeout(left):
                    message = await receive()
            except TimeoutError:
                why = (
                    f"the body is slower than {_BYTES_PER_SECOND:,} bytes a second for "
                    f"{self._seconds:g} seconds"
                )
                raise HTTPException(408, why, {"Connection": "close"}) from None
            left = min(
                self._seconds,
                left - (now() - began) + len(message.get("body", b"")) / _BYTES_PER_SECOND,
            )
            is_complete = not message.get("more_body", False)
            return message

        await self._app(scope, patient, send)


# --- requests ---
# The size of a body, requests in a minute, and writes of an agent in a day. The counts are those of
# this process, and start anew when the server is started again.

_MAX_KEYS = 10_000  # callers whose counts are kept


class Limiter:
    """Count events by caller in windows of time, and refuse what is above the limit."""

    def __init__(
        self, limit: int | None, seconds: int, what: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._limit, self._seconds, self._what, self._clock = limit, seconds, what, clock
        self._counts: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._lock = Lock()

    def count(self, key: str, events: int = 1) -> None:
        """Count events of a caller. Raises `TooManyRequests` if there are too many in the
        current window."""
        if self._limit is None:
            return
        window = int(self._clock() // self._seconds)
        with self._lock:
            earlier, number = self._counts.pop(key, (window, 0))
            number = number if earlier == window else 0
            allowed = number + events <= self._limit
            self._counts[key] = (window, number + events if allowed else number)
            while len(self._counts) > _MAX_KEYS:
                self._counts.popitem(last=False)
        if not allowed:
            raise TooManyRequests(
                f"more than {self._limit:,} {self._what}", remedy="wait, and try again"
            )


def requests_limiter(options: Options) -> Limiter:
    """Return what limits the requests of a caller."""
    return Limiter(options.server_requests_per_minute, 60, "requests in this minute")


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Return the body of a request. Raises `TooLarge` as soon as it is larger than allowed."""
    body = bytearray()
    async for piece in pieces(request, max_bytes):
        body += piece
    return bytes(body)


async def pieces(request: Request, max_bytes: int) -> AsyncIterator[bytes]:
    """Yield the body of a request in pieces. Raises `TooLarge` as soon as it is larger than
    allowed."""
    check_declared(request, max_bytes)
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > max_bytes:
            raise _too_large(max_bytes)
        yield piece


def check_declared(request: Request, max_bytes: int) -> None:
    """Raise `TooLarge` if the header says that the body is larger than allowed."""
    declared = request.headers.get("content-length", "0")
    if not (declared.isascii() and declared.isdecimal()):
        raise InvalidInput("the header Content-Length is not a number")
    if int(declared[:20]) > max_bytes:
        raise _too_large(max_bytes)


def _too_large(max_bytes: int) -> TooLarge:
    return TooLarge(f"the body has more than {max_bytes:,} bytes", remedy="send it in parts")


# --- logs ---
# Lines of JSON. A line names a route, a status and a token by its id; never a query, a text, a
# header or a secret.

LOG = logging.getLogger("memory_mesh.server")
_MAX_MESSAGE = 2000


class JsonLines(logging.Formatter):
    """Format a record as one line of JSON, with its message masked as memories are."""

    def format(self, record: logging.LogRecord) -> str:
        from memory_mesh.core.language.redaction import masked

        line: dict[str, object] = {
            "time": iso(int(record.created * 1000)),
            "level": record.levelname.lower(),
        }
        line |= getattr(record, "fields", {})
        if message := record.getMessage():
            line["message"] = masked(message[:_MAX_MESSAGE])
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__name__  # its text may quote a memory
            line["at"] = _places(record.exc_info[1])
        return json.dumps(line, ensure_ascii=True)


def write_json_lines() -> logging.Handler:
    """Write the logs of the server and of memory-mesh to standard error, one object a line.
    Returns the handler."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name, level in (("memory_mesh", logging.INFO), ("uvicorn", logging.WARNING)):
        log = logging.getLogger(name)
        log.addHandler(handler)
        log.setLevel(level)
    return handler


def request_line(
    request_id: str, method: str, route: str, status: int, caller: str, began: float
) -> None:
    """Log a request that has ended."""
    ms = round((time.perf_counter() - began) * 1000, 2)
    fields = {
        "request_id": request_id,
        "method": method,
        "route": route,
        "status": status,
        "caller": caller,
        "ms": ms,
    }
    LOG.info("", extra={"fields": fields})


def _places(error: BaseException | None) -> list[str]:
    """Return the functions in which an error was raised, outermost first."""
    places, trace = [], error.__traceback__ if error else None
    while trace:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return places[-10:]
