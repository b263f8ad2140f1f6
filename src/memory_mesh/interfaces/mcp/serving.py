"""Run the MCP server, over standard input and output or over HTTP."""

import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, cast

from starlette.datastructures import Headers
from starlette.responses import Response

from memory_mesh.api.handle import warming
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.errors import (
    AccessDenied,
    InvalidInput,
    MemoryMeshError,
    SettingsError,
    not_installed,
)
from memory_mesh.core.model import iso
from memory_mesh.core.options import Options
from memory_mesh.interfaces.mcp.server import Caller
from memory_mesh.interfaces.render.output import NAME, Answer
from memory_mesh.interfaces.rest.access import caller_of, check_origin, server_names
from memory_mesh.interfaces.rest.connections import requests_limiter
from memory_mesh.interfaces.rest.requests import problem_of, response
from memory_mesh.interfaces.tokens import TokenFile
from memory_mesh.interfaces.values import Call
from memory_mesh.system import share_heaps

if TYPE_CHECKING:
    from memory_mesh.interfaces.mcp.server import Toolbox


_INTERRUPTED = 130  # what shells expect


def serve(call: Call) -> Answer:
    """Serve until the client closes the connection, or until interrupted."""
    options = dict(call.arguments)
    compat, toolsets = (
        options.get("compat"),
        tuple(str(name) for name in _listed(options.get("toolset"))),
    )
    if compat and toolsets:
        raise InvalidInput(
            "both --compat and --toolset are given",
            expected="one of them: --compat offers nine tools only",
        )
    try:
        from memory_mesh.interfaces.mcp import server
        from memory_mesh.interfaces.mcp.compat import GraphTools
    except ModuleNotFoundError as error:
        raise not_installed(SettingsError, error.name, "server") from error
    read_only = bool(options.get("read_only"))
    toolbox = (
        GraphTools(read_only=read_only)
        if compat
        else server.OperationTools(toolsets, read_only=read_only)
    )
    share_heaps()
    with call.target.mesh() as mesh:
        if not read_only:
            mesh.init()
        with warming(mesh):
            if options.get("http"):
                _over_http(toolbox, mesh, options)
            else:
                if sys.stdin.isatty():
                    _greet(mesh)
                _over_stdio(
                    server.MemoryServer(
                        toolbox, lambda _: server.Caller(mesh=mesh, read_only=read_only)
                    ).build()
                )
    return Answer(text="", data={})


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def _over_stdio(built: Any) -> None:
    import asyncio

    from mcp.server.stdio import stdio_server

    async def run() -> None:
        async with stdio_server() as (read, write):
            await built.run(read, write, built.create_initialization_options())

    asyncio.run(run())


def _greet(mesh: Mesh) -> None:
    """Tell the person at a terminal what the server waits for. Ctrl-C ends the process: such a
    read cannot be cancelled."""

    def end(number: int, frame: object) -> None:
        mesh.close()
        os._exit(_INTERRUPTED)

    signal.signal(signal.SIGINT, end)
    sys.stderr.write(
        f"{NAME} MCP server: waiting for a client on standard input; clients start it themselves; "
        "Ctrl-C ends it\n"
    )


def _over_http(toolbox: "Toolbox", mesh: Mesh, options: Mapping[str, object]) -> None:
    from memory_mesh.api.settings import load
    from memory_mesh.interfaces.mcp.server import MemoryServer
    from memory_mesh.interfaces.rest.access import check_public
    from memory_mesh.interfaces.rest.serve import listen, run
    from memory_mesh.interfaces.tokens import TokenFile

    host, port = str(options["host"]), int(str(options["port"]))
    settings = load({})
    tokens = TokenFile(settings.home)
    check_public(host, tokens.tokens())
    built = MemoryServer(toolbox, lambda request: cast(Any, request.request).scope[CALLER]).build()
    # Without sessions: they would be kept for half an hour, and a client that opens thousands would
    # keep others out.
    inner = built.streamable_http_app(host=host, stateless_http=True)
    app = Guard(inner, mesh, tokens, settings.options, read_only=bool(options.get("read_only")))
    shown = f"[{host}]" if ":" in host else host
    with listen(host, port) as listening:
        sys.stderr.write(f"{NAME} MCP server at http://{shown}:{port}/mcp; Ctrl-C ends it\n")
        sys.stderr.flush()
        run(app, listening, settings.options, lambda: None)


# --- access over HTTP ---
# The tokens, hosts and origins of the REST server decide, for every request.

CALLER = "memory_mesh.caller"  # the key of the caller in the scope of a request
_Messages = MutableMapping[str, Any]


class Guard:
    """An ASGI application in front of another: it answers a request without a valid token
    itself."""

    def __init__(
        self, app: Any, mesh: Mesh, tokens: TokenFile, options: Options, *, read_only: bool
    ) -> None:
        self._app, self._mesh, self._tokens, self._read_only = app, mesh, tokens, read_only
        self._names = server_names(options)
        self._rate = requests_limiter(options)

    async def __call__(
        self,
        scope: _Messages,
        receive: Callable[[], Awaitable[_Messages]],
        send: Callable[[_Messages], Awaitable[None]],
    ) -> None:
        if scope["type"] == "http":
            try:
                scope[CALLER] = self._caller(
                    Headers(scope=scope), str((scope.get("client") or ("",))[0])
                )
            except MemoryMeshError as error:
                await response(problem_of(error))(scope, receive, send)
                return
            # A stream for messages of the server; without sessions there are none, and it never
            # ends.
            if scope["method"] == "GET":
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
        return Caller(
            mesh=who.mesh(self._mesh, headers),
            read_only=read_only,
            limit=who.extent(self._mesh),
            is_local=False,
        )
