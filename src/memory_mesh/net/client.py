"""The HTTP client of one endpoint: posts JSON objects, with retries, a rate limit and one deadline for each call.

It follows no redirects and ignores the proxy settings of the environment. The deadline covers everything: waiting for the rate
limit, connecting, retries and the response. The client is thread-safe; connections are kept open and shared.
"""

import json
import os
import re
from collections import deque
from collections.abc import Callable, Mapping
from math import isfinite
from threading import Lock
from typing import TYPE_CHECKING
from weakref import finalize

from memory_mesh.core.cancel import check_cancelled
from memory_mesh.core.errors import (
    CallError,
    CallTimedOut,
    MemoryMeshError,
    RateLimited,
    SettingsError,
    Unreachable,
    UnsafeAddress,
)
from memory_mesh.core.model import Json
from memory_mesh.core.ports import Secret
from memory_mesh.core.safety.addresses import Target, host_refusal, parse_path, parse_url
from memory_mesh.net.responses import Response, Retryable, parse_response, read_response
from memory_mesh.net.system import ALLOW_LOCAL_REMEDY, DeadlineExceeded, System

if TYPE_CHECKING:
    import httpcore2

_MAX_IDLE_CONNECTIONS, _MAX_IDLE_SECONDS = 10, 30.0
_FIRST_BACKOFF, _MAX_BACKOFF = 0.5, 20.0  # seconds
_MINUTE, _DAY = 60.0, 86_400.0
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_RESERVED = frozenset({"host", "content-length", "transfer-encoding", "accept-encoding", "connection", "expect", "te", "upgrade"})
_HEADERS = {"accept": "application/json", "content-type": "application/json", "user-agent": "memory-mesh"}


class HttpClient:
    """Posts to one endpoint. It connects at the first `post`; `close` may be called more than once.

    `allow_local` permits this computer and private networks, but no other forbidden address. `timeout` is the seconds for a
    whole call, retries included.
    """

    def __init__(
        self,
        base_url: str,
        *,
        allow_local: bool = False,
        headers: Mapping[str, str | Secret] | None = None,
        timeout: float = 60.0,
        per_minute: int | None = None,
        attempts: int = 4,
        system: System | None = None,
    ) -> None:
        self._target = _check_url(base_url, allow_local=allow_local)
        self._headers = _check_headers(headers or {})
        self._secrets = tuple(value for value in self._headers.values() if isinstance(value, Secret))
        _check_numbers(timeout, per_minute, attempts)
        self._timeout, self._attempts, self._allow_local = timeout, attempts, allow_local
        self._system = system or System()
        self._limiter = _RateLimiter(per_minute, self._system.now)
        self._lock = Lock()
        self._pool: httpcore2.ConnectionPool | None = None
        self._process, self._closed = 0, False

    @property
    def address(self) -> str:
        """The base URL, without secrets."""
        return str(self._target)

    def post(self, path: str, body: Mapping[str, Json]) -> Mapping[str, Json]:
        """Post a JSON object to a path below the base URL, and return the JSON object of the response."""
        target = f"{self._target.path}{parse_path('/' + path.lstrip('/'))}" or "/"
        content = json.dumps(dict(body), allow_nan=False).encode("ascii")
        deadline = self._system.now() + self._timeout
        try:
            return self._post_with_retries(target, content, deadline)
        except DeadlineExceeded:
            what = f"{self.address} gave no answer within {self._timeout:g} s"
            raise CallTimedOut(what, remedy="allow more time, or try again later") from None

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            pool, self._pool, self._closed = self._pool, None, True
        if pool is not None:
            pool.close()

    def _post_with_retries(self, path: str, content: bytes, deadline: float) -> Mapping[str, Json]:
        for attempt in range(self._attempts):
            check_cancelled()
            if (seconds := self._limiter.reserve(deadline)) > 0:
                self._system.pause(seconds)
            try:
                return parse_response(self._send(path, content, deadline), self.address, self._hide, self._system.clock())
            except Retryable as retryable:
                failure = retryable
            # Exponential backoff with full jitter, but never earlier than the server allows.
            backoff = min(_MAX_BACKOFF, _FIRST_BACKOFF * 2.0**attempt)
            delay = max(failure.after or 0.0, self._system.jitter(backoff))
            if attempt + 1 == self._attempts or self._system.now() + delay >= deadline:
                break
            self._system.pause(delay)
        raise failure.error

    def _send(self, path: str, content: bytes, deadline: float) -> Response:
        """Send one request and read its response."""
        import httpcore2

        url = httpcore2.URL(scheme=self._target.scheme, host=self._target.host, port=self._target.port, target=path)
        timeouts = {"timeout": {"connect": deadline, "read": deadline, "write": deadline}}  # moments: see `net.backend`
        # The headers are not bound to a name here: tools that report errors show the local variables of each frame.
        pool, headers = self._open_pool(), self._header_lines
        try:
            with pool.stream("POST", url, headers=headers(len(content)), content=content, extensions=timeouts) as response:
                return read_response(response.status, response.headers, response.iter_stream(), self.address)
        except (MemoryMeshError, DeadlineExceeded) as error:
            # The frames of the HTTP library hold the key.
            raise error.with_traceback(None) from None
        except (httpcore2.NetworkError, httpcore2.RemoteProtocolError) as error:
            what = f"{self.address} gave no answer: {self._hide(str(error))[:200]}"
            kind = Unreachable if isinstance(error, httpcore2.ConnectError) else CallError
            # Without the cause, which may quote the server's bytes, and those may quote our key.
            raise Retryable(kind(what, remedy="check that it is running and reachable")) from None

    def _header_lines(self, length: int) -> list[tuple[bytes, bytes]]:
        given = {name: value.reveal() if isinstance(value, Secret) else value for name, value in self._headers.items()}
        required = {"host": self._target.authority, "content-length": str(length), "accept-encoding": "identity"}
        return [(name.encode("ascii"), value.encode("latin-1")) for name, value in {**required, **_HEADERS, **given}.items()]

    def _open_pool(self) -> "httpcore2.ConnectionPool":
        with self._lock:
            if self._closed:
                raise CallError(f"the client for {self.address} is closed")
            # A forked child shares the sockets of its parent, and would read responses that belong to the parent.
            if self._pool is None or self._process != os.getpid():
                self._pool, self._process = self._new_pool(), os.getpid()
                finalize(self, self._pool.close)  # a client that is never closed leaves no sockets open
            return self._pool

    def _new_pool(self) -> "httpcore2.ConnectionPool":
        import httpcore2

        from memory_mesh.net.backend import GuardedBackend

        return httpcore2.ConnectionPool(
            ssl_context=self._system.tls() if self._target.scheme == "https" else None,
            # Without a limit no call waits for a free connection; that wait would ignore the deadline and cancellation.
            max_connections=None,
            max_keepalive_connections=_MAX_IDLE_CONNECTIONS,
            keepalive_expiry=_MAX_IDLE_SECONDS,
            network_backend=GuardedBackend(self._system, allow_local=self._allow_local),
        )

    def _hide(self, text: str) -> str:
        """Remove our secrets from a text of the server: whole header values, and the key within a value."""
        for secret in self._secrets:
            text = secret.hidden_in(text)
            for word in secret.reveal().split():
                text = Secret(word).hidden_in(text) if len(word) >= 8 else text
        return text


class _RateLimiter:
    """Spreads calls so that at most `per_minute` start in any minute, first come, first served. Each process counts its own."""

    def __init__(self, per_minute: int | None, now: Callable[[], float]) -> None:
        self._per_minute, self._now = per_minute, now
        self._starts: deque[float] = deque(maxlen=per_minute)
        self._lock = Lock()

    def reserve(self, deadline: float) -> float:
        """Return the seconds to wait before the next call; raise `RateLimited` when that is after the deadline."""
        if self._per_minute is None:
            return 0.0
        with self._lock:
            now = self._now()
            start = now if len(self._starts) < self._per_minute else max(now, self._starts[0] + _MINUTE)
            if start >= deadline:
                raise RateLimited(
                    f"the limit of {self._per_minute} calls a minute is reached, and the next may start in {start - now:.0f} s",
                    remedy="try again then, or raise the limit",
                )
            self._starts.append(start)
        return start - now


def _check_url(url: str, *, allow_local: bool) -> Target:
    try:
        target = parse_url(url)
    except UnsafeAddress as error:
        raise SettingsError(error.what, expected=error.expected, remedy=error.remedy) from None
    reason = host_refusal(target, allow_local=allow_local)
    if reason is None:
        return target
    remedy = ALLOW_LOCAL_REMEDY if host_refusal(target, allow_local=True) is None else ""
    raise SettingsError(f"the URL leads to {reason}", expected="a public host", remedy=remedy)


def _check_headers(headers: Mapping[str, str | Secret]) -> dict[str, str | Secret]:
    for name, value in headers.items():
        text = value.reveal() if isinstance(value, Secret) else value
        if not _HEADER_NAME.fullmatch(name) or name.lower() in _RESERVED:
            raise SettingsError(f"the header {name!r:.60} cannot be sent")
        # The value may be a key, so it is not quoted. Without this check h11 would refuse it, and quote it.
        if not text.isascii() or not text.isprintable() or text != text.strip():
            raise SettingsError(f"the value of the header {name} cannot be sent", expected="printable ASCII without line breaks")
    return {name.lower(): value for name, value in headers.items()}


def _check_numbers(timeout: float, per_minute: int | None, attempts: int) -> None:
    # The operating system cannot wait for an arbitrary number of seconds.
    if not (isfinite(timeout) and 0 < timeout <= _DAY):
        raise SettingsError(f"the timeout is {timeout:g} s", expected=f"a number of seconds above 0, at most {_DAY:g}")
    if per_minute is not None and per_minute < 1:
        raise SettingsError(f"the limit is {per_minute} calls a minute", expected="at least 1, or no limit")
    if attempts < 1:
        raise SettingsError(f"the number of attempts is {attempts}", expected="at least 1")
