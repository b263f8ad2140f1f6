"""The door to one endpoint: JSON goes out and JSON comes back, past the guard, in time, and again where that helps.

It follows no redirects and knows no proxies, whatever the environment says. A call has one time for everything: waiting for its
turn, connecting, retries and the answer. Each thread can call; connections are kept and shared.
"""

import json
import os
import re
from collections.abc import Mapping
from math import isfinite
from threading import Lock
from typing import TYPE_CHECKING
from weakref import finalize

from memory_mesh.core.cancel import check_cancelled
from memory_mesh.core.errors import CallError, CallTimedOut, MemoryMeshError, SettingsError, Unreachable, UnsafeAddress
from memory_mesh.core.model.columns import Json
from memory_mesh.core.safety.addresses import Target, read_path, read_url, refusal
from memory_mesh.core.secret import Secret
from memory_mesh.net.limiter import Limiter
from memory_mesh.net.responses import Answer, received, understood
from memory_mesh.net.retrying import Later, backoff
from memory_mesh.net.system import System, TimeIsUp

if TYPE_CHECKING:
    import httpcore2

__all__ = ["OPENS_LOCAL", "HttpClient", "System"]

_KEPT, _KEPT_SECONDS = 10, 30.0  # idle connections
_A_DAY = 86_400.0
OPENS_LOCAL = "allow local addresses for this endpoint if it is meant"
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS = frozenset({"host", "content-length", "transfer-encoding", "accept-encoding", "connection", "expect", "te", "upgrade"})
_PLAIN = {"accept": "application/json", "content-type": "application/json", "user-agent": "memory-mesh"}


class HttpClient:
    """Calls one endpoint. Nothing is connected before the first `post`; **close** may be called twice.

    `allow_local` opens this machine and private networks, and nothing else. `timeout` is for a whole call, in seconds.
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
        machine: System | None = None,
    ) -> None:
        self._target = _checked(base_url, allow_local=allow_local)
        self._headers = _checked_headers(headers or {})
        self._hidden = tuple(value for value in self._headers.values() if isinstance(value, Secret))
        _check_numbers(timeout, per_minute, attempts)
        self._timeout, self._attempts, self._allow_local = timeout, attempts, allow_local
        self._machine = machine or System()
        self._limiter = Limiter(per_minute, self._machine.now)
        self._lock = Lock()
        self._pool: httpcore2.ConnectionPool | None = None
        self._process, self._closed = 0, False

    @property
    def address(self) -> str:
        """Where it leads, fit for messages."""
        return str(self._target)

    def post(self, path: str, body: Mapping[str, Json]) -> Mapping[str, Json]:
        """Send a JSON object to a path under the base URL, and give the JSON object that comes back."""
        target = f"{self._target.path}{read_path('/' + path.lstrip('/'))}" or "/"
        content = json.dumps(dict(body), allow_nan=False).encode("ascii")
        until = self._machine.now() + self._timeout
        try:
            return self._posted(target, content, until)
        except TimeIsUp:
            raise self._too_late() from None

    def close(self) -> None:
        """Let go of all connections."""
        with self._lock:
            pool, self._pool, self._closed = self._pool, None, True
        if pool is not None:
            pool.close()

    def _posted(self, path: str, content: bytes, until: float) -> Mapping[str, Json]:
        for attempt in range(self._attempts):
            check_cancelled()
            self._pause(self._limiter.turn(until))
            try:
                return understood(self._sent(path, content, until), self.address, self._hide, self._machine.clock())
            except Later as later:
                failed = later
            delay = max(failed.after or 0.0, self._machine.jitter(backoff(attempt)))
            if attempt + 1 == self._attempts or self._machine.now() + delay >= until:
                break
            self._pause(delay)
        raise failed.error

    def _pause(self, seconds: float) -> None:
        if seconds > 0:
            self._machine.pause(seconds)

    def _sent(self, path: str, content: bytes, until: float) -> Answer:
        """One request and its answer."""
        import httpcore2

        there = httpcore2.URL(scheme=self._target.scheme, host=self._target.host, port=self._target.port, target=path)
        until_then = {"timeout": {"connect": until, "read": until, "write": until}}  # moments: see `net.guard`
        pool, lines = self._connections(), self._lines  # not what they are: tools that report errors show what a frame holds
        try:
            with pool.stream("POST", there, headers=lines(len(content)), content=content, extensions=until_then) as answer:
                return received(answer.status, answer.headers, answer.iter_stream(), self.address)
        except (MemoryMeshError, TimeIsUp) as error:
            # The frames of the HTTP library hold the key.
            raise error.with_traceback(None) from None
        except (httpcore2.NetworkError, httpcore2.RemoteProtocolError) as error:
            what = f"{self.address} gave no answer: {self._hide(str(error))[:200]}"
            # Without its cause, which may quote bytes of theirs that quote a key of ours.
            kind = Unreachable if isinstance(error, httpcore2.ConnectError) else CallError
            raise Later(kind(what, remedy="check that it runs and can be reached")) from None

    def _lines(self, length: int) -> list[tuple[bytes, bytes]]:
        given = {name: value.reveal() if isinstance(value, Secret) else value for name, value in self._headers.items()}
        ours = {"host": self._target.authority, "content-length": str(length), "accept-encoding": "identity"}
        return [(name.encode("ascii"), value.encode("latin-1")) for name, value in {**ours, **_PLAIN, **given}.items()]

    def _connections(self) -> "httpcore2.ConnectionPool":
        with self._lock:
            if self._closed:
                raise CallError(f"the door to {self.address} is closed")
            # A forked child shares the sockets of its parent, and would read answers that are not its own.
            if self._pool is None or self._process != os.getpid():
                self._pool, self._process = self._new_pool(), os.getpid()
                # Whoever forgets to close a door, or closes the mesh that holds it, leaves no sockets behind.
                finalize(self, self._pool.close)
            return self._pool

    def _new_pool(self) -> "httpcore2.ConnectionPool":
        import httpcore2

        from memory_mesh.net.guard import Guard

        return httpcore2.ConnectionPool(
            ssl_context=self._machine.tls() if self._target.scheme == "https" else None,
            # Without a limit nobody waits for a connection, where neither the deadline nor a cancellation would be looked at.
            max_connections=None,
            max_keepalive_connections=_KEPT,
            keepalive_expiry=_KEPT_SECONDS,
            network_backend=Guard(self._machine, allow_local=self._allow_local),
        )

    def _too_late(self) -> CallTimedOut:
        return CallTimedOut(f"{self.address} gave no answer within {self._timeout:g} s", remedy="allow more time, or try later")

    def _hide(self, text: str) -> str:
        """A text of theirs without secrets of ours: the whole header, and the key in it by itself."""
        for secret in self._hidden:
            text = secret.hidden_in(text)
            for word in secret.reveal().split():
                text = Secret(word).hidden_in(text) if len(word) >= 8 else text
        return text


def _checked(url: str, *, allow_local: bool) -> Target:
    try:
        target = read_url(url)
    except UnsafeAddress as error:
        raise SettingsError(error.what, expected=error.expected, remedy=error.remedy) from None
    reason = refusal(target, allow_local=allow_local)
    if reason is None:
        return target
    opens = refusal(target, allow_local=True) is None
    remedy = OPENS_LOCAL if opens else ""
    raise SettingsError(f"the URL leads to {reason}", expected="a public host", remedy=remedy)


def _checked_headers(headers: Mapping[str, str | Secret]) -> dict[str, str | Secret]:
    for name, value in headers.items():
        text = value.reveal() if isinstance(value, Secret) else value
        if not _HEADER.fullmatch(name) or name.lower() in _OURS:
            raise SettingsError(f"the header {name!r:.60} cannot be sent")
        # The value may be a key, and is not shown here; what h11 does not take it would show.
        if not text.isascii() or not text.isprintable() or text != text.strip():
            raise SettingsError(f"the value of the header {name} holds what cannot be sent", expected="ASCII without line ends")
    return {name.lower(): value for name, value in headers.items()}


def _check_numbers(timeout: float, per_minute: int | None, attempts: int) -> None:
    # Systems cannot wait for any number of seconds.
    if not (isfinite(timeout) and 0 < timeout <= _A_DAY):
        raise SettingsError(f"a timeout of {timeout:g} s", expected=f"a number of seconds above 0, at most {_A_DAY:g}")
    if per_minute is not None and per_minute < 1:
        raise SettingsError(f"{per_minute} calls a minute", expected="at least 1, or no limit")
    if attempts < 1:
        raise SettingsError(f"{attempts} attempts", expected="at least 1")
