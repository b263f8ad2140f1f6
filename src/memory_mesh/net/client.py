"""The HTTP client of one endpoint: post JSON, with retries, a rate limit and one deadline.

It follows no redirects and ignores the proxy settings of the environment. The deadline covers
everything: waiting for the rate limit, connecting, retries and the response. The client is
thread-safe; connections are kept open and shared. Responses are read within limits, and turned into
a JSON object or an error.
"""

import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from threading import Lock
from typing import TYPE_CHECKING, NoReturn
from weakref import finalize

from memory_mesh.core.errors import (
    CallError,
    CallRefused,
    CallTimedOut,
    MemoryMeshError,
    RateLimited,
    SettingsError,
    Unreachable,
    UnsafeAddress,
    shown,
)
from memory_mesh.core.language.safety.addresses import Target, host_refusal, parse_path, parse_url
from memory_mesh.core.model import Json
from memory_mesh.core.model.background import check_cancelled
from memory_mesh.core.ports import Secret
from memory_mesh.net.system import ALLOW_LOCAL_REMEDY, UNREACHED, DeadlineExceeded, System
from memory_mesh.system import fork_safe

if TYPE_CHECKING:
    import httpcore2

_MAX_IDLE_CONNECTIONS, _MAX_IDLE_SECONDS = 10, 30.0
_FIRST_BACKOFF, _MAX_BACKOFF = 0.5, 20.0  # seconds
_MINUTE, _DAY = 60.0, 86_400.0
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_RESERVED = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "accept-encoding",
        "connection",
        "expect",
        "te",
        "upgrade",
    }
)
_HEADERS = {
    "accept": "application/json",
    "content-type": "application/json",
    "user-agent": "memory-mesh",
}
MAX_BYTES = 32 * 1024 * 1024
_MAX_DEPTH = 20  # of the JSON in an error response
_MAX_QUOTED = 200  # characters of a server's message in our errors
_RETRYABLE = frozenset({408, 429, 500, 502, 503, 504, 529})
_BUSY = frozenset({429, 503, 529})
_REMEDIES = {
    401: "check the API key",
    403: "check the API key and its permissions",
    404: "check the URL and the name of the model",
}
_COMPRESSIONS = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd", "compress"})
_REDIRECT_HOST = re.compile(
    r"(?:[a-z][a-z0-9+.-]*:)?//(?:[^/?#@]*@)?([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]+\])",
    re.IGNORECASE,
)

# Removes our secrets from a text of the server.
Hide = Callable[[str], str]


class HttpClient:
    """Posts to one endpoint. It connects at the first `post`; `close` may be called more than once.

    `allow_local` permits this computer and private networks, but no other forbidden address.
    `timeout` is the seconds for a whole call, retries included.
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
        self._secrets = tuple(
            value for value in self._headers.values() if isinstance(value, Secret)
        )
        _check_numbers(timeout, per_minute, attempts)
        self._timeout, self._attempts, self._allow_local = timeout, attempts, allow_local
        self._system = system or System()
        self._limiter = _RateLimiter(per_minute, self._system.now)
        self._lock = fork_safe(Lock())
        self._pool: httpcore2.ConnectionPool | None = None
        self._process, self._closed = 0, False

    @property
    def address(self) -> str:
        """The base URL, without secrets."""
        return str(self._target)

    def post(self, path: str, body: Mapping[str, Json]) -> Mapping[str, Json]:
        """Post a JSON object to a path below the base URL, and return the JSON object of the
        response."""
        response = self._post(path, body)
        return _parse_object(response.body, self.address)

    def send(self, body: Mapping[str, Json]) -> None:
        """Post a JSON object to the base URL. Any response with a status of 200 to 299 will do."""
        self._post("", body)

    def exchange(self, path: str, content: bytes, *, max_bytes: int | None = None) -> "Response":
        """Post JSON to a path below the base URL, once, and return the response, whatever its
        status: for callers with rules of their own for retries. Raises `CallError` if there is
        none; it is `Unreachable` if nothing was sent.
        """
        target = f"{self._target.path}{parse_path('/' + path.lstrip('/'))}"
        try:
            return self._send(target, content, self._system.now() + self._timeout, max_bytes)
        except DeadlineExceeded:
            raise CallTimedOut(
                f"{self.address} gave no answer within {self._timeout:g} s",
                remedy="try again later",
            ) from None
        except _Retryable as failure:
            raise failure.error from None

    def retry_after(self, response: "Response") -> float | None:
        """Return the seconds after which the server asks to be called again."""
        return _retry_after(response.headers, self._system.clock())

    def _post(self, path: str, body: Mapping[str, Json]) -> "Response":
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

    def _post_with_retries(self, path: str, content: bytes, deadline: float) -> "Response":
        for attempt in range(self._attempts):
            check_cancelled()
            if (seconds := self._limiter.reserve(deadline)) > 0:
                self._system.pause(seconds)
            try:
                return _check_response(
                    self._send(path, content, deadline),
                    self.address,
                    self._hide,
                    self._system.clock(),
                )
            except _Retryable as retryable:
                failure = retryable
            # Exponential backoff with full jitter, but never earlier than the server allows.
            backoff = min(_MAX_BACKOFF, _FIRST_BACKOFF * 2.0**attempt)
            delay = max(failure.after or 0.0, self._system.jitter(backoff))
            if attempt + 1 == self._attempts or self._system.now() + delay >= deadline:
                break
            self._system.pause(delay)
        raise failure.error

    def _send(
        self, path: str, content: bytes, deadline: float, max_bytes: int | None = None
    ) -> "Response":
        """Send one request and read its response."""
        import httpcore2

        url = httpcore2.URL(
            scheme=self._target.scheme, host=self._target.host, port=self._target.port, target=path
        )
        # moments: see `net.backend`.
        timeouts = {"timeout": {"connect": deadline, "read": deadline, "write": deadline}}
        # The headers are not bound to a name here: tools that report errors show the local
        # variables of each frame.
        pool, headers = self._open_pool(), self._header_lines
        try:
            with pool.stream(
                "POST", url, headers=headers(len(content)), content=content, extensions=timeouts
            ) as response:
                return _read_response(
                    response.status,
                    response.headers,
                    response.iter_stream(),
                    self.address,
                    max_bytes,
                )
        except (MemoryMeshError, DeadlineExceeded) as error:
            # The frames of the HTTP library hold the key.
            raise error.with_traceback(None) from None
        except (httpcore2.NetworkError, httpcore2.RemoteProtocolError) as error:
            reason = self._hide(str(error))[:200]
            what = (
                f"{self.address} "
                f"{reason if reason.startswith(UNREACHED) else f'gave no answer: {reason}'}"
            )
            kind = Unreachable if isinstance(error, httpcore2.ConnectError) else CallError
            # Without the cause, which may quote the server's bytes, and those may quote our key.
            raise _Retryable(kind(what, remedy="check that it is running and reachable")) from None

    def _header_lines(self, length: int) -> list[tuple[bytes, bytes]]:
        given = {
            name: value.reveal() if isinstance(value, Secret) else value
            for name, value in self._headers.items()
        }
        required = {
            "host": self._target.authority,
            "content-length": str(length),
            "accept-encoding": "identity",
        }
        return [
            (name.encode("ascii"), value.encode("latin-1"))
            for name, value in {**required, **_HEADERS, **given}.items()
        ]

    def _open_pool(self) -> "httpcore2.ConnectionPool":
        import httpcore2

        from memory_mesh.net.backend import GuardedBackend

        with self._lock:
            if self._closed:
                raise CallError(f"the client for {self.address} is closed")
            # A forked child shares the sockets of its parent, and would read responses that belong
            # to the parent.
            if self._pool is None or self._process != os.getpid():
                self._pool = httpcore2.ConnectionPool(
                    ssl_context=self._system.tls() if self._target.scheme == "https" else None,
                    # Without a limit no call waits for a free connection; that wait would ignore
                    # the deadline and cancellation.
                    max_connections=None,
                    max_keepalive_connections=_MAX_IDLE_CONNECTIONS,
                    keepalive_expiry=_MAX_IDLE_SECONDS,
                    network_backend=GuardedBackend(self._system, allow_local=self._allow_local),
                )
                self._process = os.getpid()
                # A client that is never closed leaves no sockets open.
                finalize(self, self._pool.close)
            return self._pool

    def _hide(self, text: str) -> str:
        """Remove our secrets from a text of the server: whole header values, and the key within
        a value."""
        for secret in self._secrets:
            text = secret.hidden_in(text)
            for word in secret.reveal().split():
                text = Secret(word).hidden_in(text) if len(word) >= 8 else text
        return text


class _RateLimiter:
    """Spreads calls so that at most `per_minute` start in any minute, first come, first served.
    Each process counts its own."""

    def __init__(self, per_minute: int | None, now: Callable[[], float]) -> None:
        self._per_minute, self._now = per_minute, now
        self._starts: deque[float] = deque(maxlen=per_minute)
        self._lock = fork_safe(Lock())

    def reserve(self, deadline: float) -> float:
        """Return the seconds to wait before the next call; raise `RateLimited` when that is
        after the deadline."""
        if self._per_minute is None:
            return 0.0
        with self._lock:
            now = self._now()
            start = (
                now if len(self._starts) < self._per_minute else max(now, self._starts[0] + _MINUTE)
            )
            if start >= deadline:
                raise RateLimited(
                    f"the limit of {self._per_minute} calls a minute is reached, and the next may "
                    f"start in {start - now:.0f} s",
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
            raise SettingsError(f"the header {shown(name)} cannot be sent")
        # The value may be a key, so it is not quoted. Without this check h11 would refuse it, and
        # quote it.
        if not text.isascii() or not text.isprintable() or text != text.strip():
            raise SettingsError(
                f"the value of the header {name} cannot be sent",
                expected="printable ASCII without line breaks",
            )
    return {name.lower(): value for name, value in headers.items()}


def _check_numbers(timeout: float, per_minute: int | None, attempts: int) -> None:
    # The operating system cannot wait for an arbitrary number of seconds.
    if not (isfinite(timeout) and 0 < timeout <= _DAY):
        raise SettingsError(
            f"the timeout is {timeout:g} s",
            expected=f"a number of seconds above 0, at most {_DAY:g}",
        )
    if per_minute is not None and per_minute < 1:
        raise SettingsError(
            f"the limit is {per_minute} calls a minute", expected="at least 1, or no limit"
        )
    if attempts < 1:
        raise SettingsError(f"the number of attempts is {attempts}", expected="at least 1")


# --- responses ---


class _Retryable(Exception):
    """A failed call that may succeed when it is repeated: the error to raise otherwise, and the
    seconds of `Retry-After`."""

    def __init__(self, error: CallError, after: float | None = None) -> None:
        super().__init__(str(error))
        self.error, self.after = error, after


@dataclass(frozen=True, slots=True)
class Response:
    """Status, headers by lower-case name, and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def _read_response(
    status: int,
    headers: Iterable[tuple[bytes, bytes]],
    chunks: Iterable[bytes],
    address: str,
    max_bytes: int | None = None,
) -> Response:
    """Read a response of limited size. Compressed ones are refused: a few bytes could expand to
    gigabytes."""
    named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
    if (encoding := named.get("content-encoding", "identity").strip().lower()) not in (
        "",
        "identity",
    ):
        # Only known names are quoted: the server chose this text, and may have put our key into it.
        known = f" ({encoding})" if encoding in _COMPRESSIONS else ""
        raise CallError(
            f"{address} sent a compressed response{known}", expected="an uncompressed response"
        )
    body, max_bytes = bytearray(), max_bytes or MAX_BYTES
    for chunk in chunks:
        body += chunk
        if len(body) > max_bytes:
            raise CallError(
                f"the response of {address} is too large",
                expected=f"at most {max_bytes // 2**20} MiB",
            )
    return Response(status, named, bytes(body))


def _check_response(response: Response, address: str, hide: Hide, clock: float) -> Response:
    """Return a successful response; raise `_Retryable` or the final error for any other."""
    if 200 <= response.status < 300:
        return response
    if 300 <= response.status < 400:
        host = _REDIRECT_HOST.match(response.headers.get("location", ""))
        target = hide(host[1]) if host else "another path"
        raise CallRefused(
            f"{address} redirects to {target} ({response.status}), and redirects are not followed",
            remedy="set the URL that the redirect leads to",
            status=response.status,
        )
    try:
        content: Json = json.loads(response.body)
    except (ValueError, RecursionError):
        content = response.body[:4096].decode("utf-8", "replace")
    content = _without_secrets(content, hide)
    message = _find_message(content)
    what = f"{address} answered {response.status}" + (
        f": {hide(message)[:_MAX_QUOTED]}" if message else ""
    )
    if response.status in _RETRYABLE:
        after = _retry_after(response.headers, clock)
        if response.status in _BUSY and (after is not None or response.status != 503):
            when = "later" if after is None else f"in {after:.0f} s"
            raise _Retryable(RateLimited(what, remedy=f"try again {when}"), after)
        raise _Retryable(CallError(what, remedy="try again later"), after)
    if 400 <= response.status < 500:
        raise CallRefused(
            what, remedy=_REMEDIES.get(response.status, ""), status=response.status, body=content
        )
    raise CallError(what)


def _retry_after(headers: Mapping[str, str], clock: float) -> float | None:
    """Return the seconds of `Retry-After`: a number, or a date, compared with the server's own
    clock when it sends one."""
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        date, server_time = _parse_date(text), _parse_date(headers.get("date", ""))
        return (
            None
            if date is None
            else max(0.0, date - (clock if server_time is None else server_time))
        )
    return seconds if isfinite(seconds) and seconds >= 0 else None


def _parse_date(text: str) -> float | None:
    # Both are rarely needed, and `email` imports a large part of the standard library.
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(text)
    except (ValueError, IndexError, TypeError, OverflowError):
        # All of these are raised for invalid dates.
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _parse_object(body: bytes, address: str) -> dict[str, Json]:
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        # Without the cause, which holds the whole body.
        raise CallError(
            f"{address} answered with invalid JSON: {error!s:.80}", expected="a JSON object"
        ) from None
    if not isinstance(value, dict):
        raise CallError(
            f"{address} answered with JSON that is not an object", expected="a JSON object"
        )
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not allowed")


def _without_secrets(content: Json, hide: Hide, depth: int = _MAX_DEPTH) -> Json:
    """Return the content of an error response without our secrets, cut off below `depth` levels."""
    if isinstance(content, str):
        return hide(content)
    if isinstance(content, list | dict) and not depth:
        return None
    if isinstance(content, list):
        return [_without_secrets(part, hide, depth - 1) for part in content]
    if isinstance(content, dict):
        return {
            hide(name): _without_secrets(part, hide, depth - 1) for name, part in content.items()
        }
    return content


def _find_message(content: Json) -> str:
    """Return the message in an error response: providers nest it under `error`, `message` or
    `detail`."""
    for _ in range(4):
        if isinstance(content, list) and content:
            content = content[0]
        if isinstance(content, dict):
            content = next(
                (
                    content[name]
                    for name in ("error", "message", "detail", "msg")
                    if content.get(name)
                ),
                None,
            )
    if not isinstance(content, str) or content.lstrip().startswith("<"):  # an HTML page
        return ""
    return "".join(char if char.isprintable() else " " for char in " ".join(content.split()))
