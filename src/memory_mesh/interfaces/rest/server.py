"""What the requests of a server share: the mesh, the tokens, limits and metrics."""

import time
from dataclasses import dataclass, field
from threading import Event
from typing import NamedTuple

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
from memory_mesh.interfaces.rest.metrics import Metrics, Telemetry
from memory_mesh.interfaces.tokens import TokenFile, find_token

_DAY = 86_400
_SAFE = ("GET", "HEAD")


class Login(NamedTuple):
    """A session that has begun: the secret for the cookie, the session, and who it is."""

    secret: str
    session: Session
    caller: Caller


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
    ) -> Login:
        """Begin a session with a token, or with the one-time secret. Raises `TokenInvalid` for a
        wrong one."""
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
        return Login(secret, session, caller)

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

    def reader(self, request: Request, operation: Operation) -> Mesh:
        """Return the mesh that a request may call an operation of. Raises `AccessDenied`,
        `TooManyRequests`."""
        caller = self.admit(request)
        caller.check(operation, self.mesh)
        return caller.mesh(self.mesh, request.headers)

    def count_writes(self, mesh: Mesh, number: int) -> None:
        """Count writes of an agent. Raises `TooManyRequests` if they are too many."""
        self.quota.count(f"{mesh.reader.user_id!r} {mesh.reader.agent_id!r}", number)


def client_of(request: Request) -> str:
    """Return the address that a request comes from."""
    return request.client.host if request.client else "unknown"


def _now() -> str:
    return iso(time.time_ns() // 1_000_000)
