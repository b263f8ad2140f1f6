"""What the requests of a server share: the mesh, the tokens, limits and metrics.

The metrics are in the text format of Prometheus, and by OpenTelemetry if it is installed. Labels
are the names of routes and statuses, never a user, an agent or a text.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from threading import Event, Lock
from typing import Any

from starlette.requests import Request

from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.errors import TokenInvalid
from memory_mesh.core.model import iso
from memory_mesh.core.options import Options
from memory_mesh.interfaces.console.sessions import Session, Sessions
from memory_mesh.interfaces.operation import Operation
from memory_mesh.interfaces.rest.access import (
    Caller,
    caller_in,
    caller_of,
    check_csrf,
    cookie_name,
    server_names,
)
from memory_mesh.interfaces.rest.connections import Limiter, requests_limiter
from memory_mesh.interfaces.tokens import TokenFile, find_token

_DAY = 86_400
_SAFE = ("GET", "HEAD")


# --- metrics ---

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Count requests by route and status, and how long they took."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._gauges: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._last_end: float | None = None  # of a request

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that has ended."""
        with self._lock:
            self._requests[route, status] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]  # a Counter of floats
            for limit in (*_BUCKETS, float("inf")):
                if seconds <= limit:
                    self._buckets[route, limit] += 1

    def add(self, name: str, number: int = 1) -> None:
        """Add to a count, such as `heartbeats`."""
        with self._lock:
            self._counts[name] += number

    @contextmanager
    def in_flight(self) -> Iterator[None]:
        """Count a request while it is worked on."""
        with self._lock:
            self._gauges["requests_in_flight"] += 1
        try:
            yield
        finally:
            with self._lock:
                self._gauges["requests_in_flight"] -= 1
                self._last_end = time.monotonic()

    def idle_seconds(self) -> float:
        """Return for how long no request has been worked on; 0 before the first one."""
        with self._lock:
            busy = self._last_end is None or self._gauges["requests_in_flight"] > 0
            return 0.0 if busy or self._last_end is None else time.monotonic() - self._last_end

    def text(self) -> str:
        """Return all metrics in the format of Prometheus."""
        with self._lock:
            return "".join(f"{line}\n" for line in self._lines())

    def latency(self, routes: Sequence[str]) -> dict[str, object]:
        """Return how long requests to some routes took, in milliseconds: counts by upper limit, the
        median and the 95 % mark.

        A limit of None has no end. The two figures are the limits of the buckets that they fall
        into.
        """
        limits = (*_BUCKETS, float("inf"))
        with self._lock:
            below = [sum(self._buckets[route, limit] for route in routes) for limit in limits]
        count = below[-1]
        shown = [None if limit == float("inf") else limit * 1000 for limit in limits]
        if not count:
            return {"count": 0}
        p50, p95 = (
            next(
                ms or _BUCKETS[-1] * 1000
                for ms, n in zip(shown, below, strict=True)
                if n >= part * count
            )
            for part in (0.5, 0.95)
        )
        each = [n - before for n, before in zip(below, [0, *below], strict=False)]
        return {
            "count": count,
            "p50": p50,
            "p95": p95,
            "buckets": [list(one) for one in zip(shown, each, strict=True)],
        }

    def _lines(self) -> Iterator[str]:
        name = "memory_mesh_requests"
        yield f"# HELP {name}_total Requests by route and status."
        yield f"# TYPE {name}_total counter"
        for (route, status), number in sorted(self._requests.items()):
            yield f'{name}_total{{route="{route}",status="{status}"}} {number}'
        name = "memory_mesh_request_seconds"
        yield f"# HELP {name} How long requests took."
        yield f"# TYPE {name} histogram"
        for route, total in sorted(self._seconds.items()):
            for limit in (*_BUCKETS, float("inf")):
                le = "+Inf" if limit == float("inf") else f"{limit:g}"
                yield f'{name}_bucket{{route="{route}",le="{le}"}} {self._buckets[route, limit]}'
            yield f'{name}_sum{{route="{route}"}} {total:.6f}'
            yield f'{name}_count{{route="{route}"}} {self._buckets[route, float("inf")]}'
        for kind, numbers in (("gauge", self._gauges), ("counter", self._counts)):
            for name, number in sorted(numbers.items()):
                full = f"memory_mesh_{name}{'_total' if kind == 'counter' else ''}"
                yield f"# TYPE {full} {kind}"
                yield f"{full} {number}"


class Telemetry:
    """Spans and metrics of OpenTelemetry; nothing without the extra `otel`. The program's
    providers decide where they go."""

    def __init__(self) -> None:
        self._tracer: Any = None
        self._duration: Any = None
        if find_spec("opentelemetry") is not None:
            from opentelemetry import metrics, trace

            self._tracer = trace.get_tracer("memory_mesh")
            meter = metrics.get_meter("memory_mesh")
            self._duration = meter.create_histogram("http.server.request.duration", unit="s")

    @contextmanager
    def span(self, method: str, request_id: str) -> Iterator[dict[str, object]]:
        """Make a span around a request; what is put into the yielded mapping becomes its
        attributes."""
        attributes: dict[str, object] = {}
        if self._tracer is None:
            yield attributes
            return
        with self._tracer.start_as_current_span(method) as span:
            yield attributes
            route = attributes.get("http.route", "unknown")
            span.update_name(f"{method} {route}")
            named = {"http.request.method": method, **attributes}
            span.set_attributes({**named, "memory_mesh.request_id": request_id})
            self._duration.record(
                attributes.pop("seconds", 0.0),
                {name: named[name] for name in named if name != "seconds"},
            )


# --- the server ---


@dataclass(slots=True)
class Server:
    """What the requests of a server share."""

    mesh: Mesh
    options: Options
    tokens: TokenFile
    metrics: Metrics = field(default_factory=Metrics)
    telemetry: Telemetry = field(default_factory=Telemetry)
    stopping: Event = field(default_factory=Event)
    sessions: Sessions = field(default_factory=Sessions)
    private: bool = False  # every request needs a session or a token, also if there are no tokens
    rate: Limiter = field(init=False)
    quota: Limiter = field(init=False)
    names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.rate = requests_limiter(self.options)
        self.quota = Limiter(
            self.options.server_agent_writes_per_day, _DAY, "writes of this agent today"
        )
        self.names = server_names(self.options)

    def needs_login(self) -> bool:
        """Return whether a browser needs a token or the one-time secret."""
        return self.private or self.tokens.is_required()

    def admit(self, request: Request) -> Caller:
        """Return who makes a request, after the limits and the token or the session are checked."""
        client = client_of(request)
        request.state.caller = f"unknown:{client}"
        try:
            caller = self._caller(request, client)
        except TokenInvalid:
            self.rate.count(request.state.caller)
            raise
        request.state.caller = caller.name
        self.rate.count(caller.name)
        return caller

    def log_in(
        self, request: Request, *, token: str | None = None, once: str | None = None
    ) -> tuple[str, Session, Caller]:
        """Begin a session with a token, or with the one-time secret, and return the secret for its
        cookie, the session, and who it is. Raises `TokenInvalid` for a wrong one."""
        try:
            if once is not None:
                self.sessions.use_once(once)
                secret, session = self.sessions.begin(owner=True)
            else:
                # A lone surrogate cannot be hashed.
                presented = token if token is not None and token.isascii() else ""
                found = find_token(self.tokens.tokens(), f"Bearer {presented}", _now())
                secret, session = self.sessions.begin(token_id=found.id)
        except TokenInvalid:
            self.rate.count(f"unknown:{client_of(request)}")
            raise
        caller = caller_in(session, self.tokens, client_of(request), _now())
        self.rate.count(caller.name)
        return secret, session, caller

    def session_of(self, request: Request) -> Session | None:
        """Return the session whose cookie a request has; None without a cookie. Raises
        `TokenInvalid` if it has ended."""
        secret = request.cookies.get(cookie_name(request.headers))
        return self.sessions.find(secret) if secret is not None else None

    def _caller(self, request: Request, client: str) -> Caller:
        session = None if "authorization" in request.headers else self.session_of(request)
        if session is None:
            return caller_of(self.tokens, request.headers, client, _now(), private=self.private)
        caller = caller_in(session, self.tokens, client, _now())
        if request.method not in _SAFE:
            check_csrf(request.headers, session)
        return caller

    def reader(self, request: Request, operation: Operation) -> tuple[Caller, Mesh]:
        """Return who makes a request, and the mesh that it may call an operation of. Raises
        `AccessDenied`, `TooManyRequests`."""
        caller = self.admit(request)
        caller.check(operation, self.mesh)
        return caller, caller.mesh(self.mesh, request.headers)

    def count_writes(self, mesh: Mesh, number: int) -> None:
        """Count writes of an agent. Raises `TooManyRequests` if they are too many."""
        self.quota.count(f"{mesh.reader.user_id!r} {mesh.reader.agent_id!r}", number)


def client_of(request: Request) -> str:
    """Return the address that a request comes from."""
    return request.client.host if request.client else "unknown"


def _now() -> str:
    return iso(time.time_ns() // 1_000_000)
