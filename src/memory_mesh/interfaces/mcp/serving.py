"""Run the MCP server, over standard input and output or over HTTP."""

import os
import signal
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from memory_mesh.core.errors import InvalidInput, SettingsError, not_installed
from memory_mesh.faces.mesh import Mesh
from memory_mesh.faces.warming import warming
from memory_mesh.heaps import share_heaps
from memory_mesh.interfaces.render import NAME, Answer
from memory_mesh.interfaces.values import Call

if TYPE_CHECKING:
    from memory_mesh.interfaces.mcp.server import Toolbox

_INTERRUPTED = 130  # what shells expect


def serve(call: Call) -> Answer:
    """Serve until the client closes the connection, or until interrupted."""
    options = dict(call.arguments)
    compat, toolsets = options.get("compat"), tuple(str(name) for name in _listed(options.get("toolset")))
    if compat and toolsets:
        raise InvalidInput("both --compat and --toolset are given", expected="one of them: --compat offers nine tools only")
    try:
        from memory_mesh.interfaces.mcp import compat as graph
        from memory_mesh.interfaces.mcp import server, tools
    except ModuleNotFoundError as error:
        raise not_installed(SettingsError, error.name, "server") from error
    read_only = bool(options.get("read_only"))
    toolbox = graph.GraphTools(read_only=read_only) if compat else tools.OperationTools(toolsets, read_only=read_only)
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
                _over_stdio(server.MemoryServer(toolbox, lambda _: server.Caller(mesh=mesh, read_only=read_only)).build())
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
    """Tell the person at a terminal what the server waits for. Ctrl-C ends the process: such a read cannot be cancelled."""

    def end(number: int, frame: object) -> None:
        mesh.close()
        os._exit(_INTERRUPTED)

    signal.signal(signal.SIGINT, end)
    sys.stderr.write(f"{NAME} MCP server: waiting for a client on standard input; clients start it themselves; Ctrl-C ends it\n")


def _over_http(toolbox: "Toolbox", mesh: Mesh, options: Mapping[str, object]) -> None:
    from memory_mesh.interfaces.mcp.guard import CALLER, Guard
    from memory_mesh.interfaces.mcp.server import MemoryServer
    from memory_mesh.interfaces.rest.access import check_public
    from memory_mesh.interfaces.rest.serve import listen, run
    from memory_mesh.interfaces.tokens import TokenFile
    from memory_mesh.settings import load

    host, port = str(options["host"]), int(str(options["port"]))
    settings = load({})
    tokens = TokenFile(settings.home)
    check_public(host, tokens.tokens())
    built = MemoryServer(toolbox, lambda request: cast(Any, request.request).scope[CALLER]).build()
    # Without sessions: they would be kept for half an hour, and a client that opens thousands would keep others out.
    inner = built.streamable_http_app(host=host, stateless_http=True)
    app = Guard(inner, mesh, tokens, settings.options, read_only=bool(options.get("read_only")))
    shown = f"[{host}]" if ":" in host else host
    with listen(host, port) as listening:
        sys.stderr.write(f"{NAME} MCP server at http://{shown}:{port}/mcp; Ctrl-C ends it\n")
        sys.stderr.flush()
        run(app, listening, settings.options, lambda: None)
