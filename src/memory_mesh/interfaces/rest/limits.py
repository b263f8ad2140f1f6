"""Limits of the server: the size of a body, requests in a minute, and writes of an agent in a day.

The counts are those of this process, and start anew when the server is started again.
"""

import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from threading import Lock

from starlette.requests import Request

from memory_mesh.core.errors import InvalidInput, TooLarge, TooManyRequests
from memory_mesh.core.options import Options

_MAX_KEYS = 10_000  # callers whose counts are kept


class Limiter:
    """Count events by caller in windows of time, and refuse what is above the limit."""

    def __init__(self, limit: int | None, seconds: int, what: str, clock: Callable[[], float] = time.time) -> None:
        self._limit, self._seconds, self._what, self._clock = limit, seconds, what, clock
        self._counts: OrderedDict[str, tuple[int, int]] = OrderedDict()
        self._lock = Lock()

    def count(self, key: str, events: int = 1) -> None:
        """Count events of a caller. Raises `TooManyRequests` if there are too many in the current window."""
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
            raise TooManyRequests(f"more than {self._limit:,} {self._what}", remedy="wait, and try again")


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
    """Yield the body of a request in pieces. Raises `TooLarge` as soon as it is larger than allowed."""
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
