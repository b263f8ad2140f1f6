"""Who may use the MCP server over HTTP: the tokens, hosts and origins of the REST server decide, for every request."""

import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import Response

from memory_mesh.core.errors import AccessDenied, MemoryMeshError
from memory_mesh.core.model import iso
from memory_mesh.core.options import Options
from memory_mesh.faces.mesh import Mesh
from memory_mesh.interfaces.mcp.server import Caller
from memory_mesh.interfaces.rest.access import caller_of, check_origin, server_names
from memory_mesh.interfaces.rest.limits import requests_limiter
from memory_mesh.interfaces.rest.problems import problem_of, response
from memory_mesh.interfaces.tokens import TokenFile

CALLER = "memory_mesh.caller"  # the key of the caller in the scope of a request
_Messages = MutableMapping[str, Any]


class Guard:
    """An ASGI application in front of another: it answers a request without a valid token itself."""

    def __init__(self, app: Any, mesh: Mesh, tokens: TokenFile, options: Options, *, read_only: bool) -> None:
        self._app, self._mesh, self._tokens, self._read_only = app, mesh, tokens, read_only
        self._names = server_names(options)
        self._rate = requests_limiter(options)

    async def __call__(
        self, scope: _Messages, receive: Callable[[], Awaitable[_Messages]], send: Callable[[_Messages], Awaitable[None]]
    ) -> None:
        if scope["type"] == "http":
            try:
                scope[CALLER] = self._caller(Headers(scope=scope), str((scope.get("client") or ("",))[0]))
            except MemoryMeshError as error:
                await response(problem_of(error))(scope, receive, send)
                return
            if (
                scope["method"] == "GET"
            ):  # a stream for messages of the server; without sessions there are none, and it never ends
                await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _caller(self, headers: Headers, client: str) -> Caller:
        check_origin(headers, self._names)
        now = iso(time.time_ns() // 1_000_000)
        try:
            who = caller_of(self._tokens, headers, client, now)
        except AccessDenied:
            self._rate.count(f"unknown:{client}")
            raise
        self._rate.count(who.name)
        read_only = self._read_only or (who.token is not None and who.token.read_only)
        return Caller(mesh=who.mesh(self._mesh, headers), read_only=read_only, limit=who.extent(self._mesh), is_local=False)
