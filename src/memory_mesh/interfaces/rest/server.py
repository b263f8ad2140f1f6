"""What the requests of a server share: the mesh, the tokens, limits, metrics, and whether it is about to end."""

import time
from dataclasses import dataclass, field
from threading import Event

from starlette.requests import Request

from memory_mesh.core.errors import AccessDenied
from memory_mesh.core.model import iso
from memory_mesh.core.options import Options
from memory_mesh.faces.mesh import Mesh
from memory_mesh.interfaces.operation import Operation
from memory_mesh.interfaces.rest.access import Caller, caller_of, server_names
from memory_mesh.interfaces.rest.limits import Limiter, requests_limiter
from memory_mesh.interfaces.rest.metrics import Metrics, Telemetry
from memory_mesh.interfaces.tokens import TokenFile

_DAY = 86_400


@dataclass(slots=True)
class Server:
    """What the requests of a server share."""

    mesh: Mesh
    options: Options
    tokens: TokenFile
    metrics: Metrics = field(default_factory=Metrics)
    telemetry: Telemetry = field(default_factory=Telemetry)
    stopping: Event = field(default_factory=Event)
    rate: Limiter = field(init=False)
    quota: Limiter = field(init=False)
    names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.rate = requests_limiter(self.options)
        self.quota = Limiter(self.options.server_agent_writes_per_day, _DAY, "writes of this agent today")
        self.names = server_names(self.options)

    def admit(self, request: Request) -> Caller:
        """Return who makes a request, after the limits and the token are checked."""
        client = request.client.host if request.client else "unknown"
        request.state.caller = f"unknown:{client}"
        try:
            caller = caller_of(self.tokens, request.headers, client, iso(time.time_ns() // 1_000_000))
        except AccessDenied:
            self.rate.count(request.state.caller)
            raise
        request.state.caller = caller.name
        self.rate.count(caller.name)
        return caller

    def reader(self, request: Request, operation: Operation) -> Mesh:
        """Return the mesh that a request may call an operation of. Raises `AccessDenied`, `TooManyRequests`."""
        caller = self.admit(request)
        caller.check(operation, self.mesh)
        return caller.mesh(self.mesh, request.headers)

    def count_writes(self, mesh: Mesh, number: int) -> None:
        """Count writes of an agent. Raises `TooManyRequests` if they are too many."""
        self.quota.count(f"{mesh.reader.user_id!r} {mesh.reader.agent_id!r}", number)
