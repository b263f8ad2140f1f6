"""Run the REST server or the console until it is interrupted.

Requests that were accepted are finished, and the store is closed.
"""

import asyncio
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import ceil
from threading import Thread
from typing import Any, cast

import uvicorn

from memory_mesh.api.settings import load
from memory_mesh.core.errors import SettingsError
from memory_mesh.core.options import Options
from memory_mesh.interfaces.render.output import NAME, Answer, Form, show
from memory_mesh.interfaces.rest import connections
from memory_mesh.interfaces.rest.access import check_public
from memory_mesh.interfaces.rest.app import build
from memory_mesh.interfaces.rest.connections import Connection, Patience, limits_of
from memory_mesh.interfaces.rest.server import Server
from memory_mesh.interfaces.tokens import TokenFile
from memory_mesh.interfaces.values import Call
from memory_mesh.system import share_heaps

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_BACKLOG = 2048  # connections that wait until they are accepted
_EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104  (compared, not listened on)


def serve(call: Call) -> Answer:
    """Listen, and answer requests until a signal arrives."""
    from memory_mesh.api.mesh import MemoryMesh

    share_heaps()
    arguments = {**call.target.arguments, **call.arguments}
    settings = load(arguments)
    host, port = settings.options.server_host, settings.options.server_port
    tokens = TokenFile(settings.home)
    check_public(host, tokens.tokens())
    mesh = MemoryMesh(**arguments)  # type: ignore[arg-type]
    mesh.init()  # a store that cannot be used is an error now, not one of every request
    server = Server(mesh, settings.options, tokens)
    connections.write_json_lines()
    fields = {
        "event": "listening",
        "address": f"http://{host}:{port}",
        "tokens": len(tokens.tokens()),
    }
    with listen(host, port) as listening:
        connections.LOG.info("", extra={"fields": fields})
        # The lines above and below are for programs.
        if call.form is Form.TEXT and sys.stdout.isatty():
            show(Answer(text=console_line(host, listening.getsockname()[1]), data={}))
        run(build(server), listening, settings.options, server.stopping.set)
    connections.LOG.info("", extra={"fields": {"event": "stopped"}})
    return Answer(text="", data={})


def console_line(host: str, port: int) -> str:
    """Return the line that tells the person at the terminal where the console is."""
    name = "localhost" if host in _EVERYWHERE else f"[{host}]" if ":" in host else host
    return f"{NAME} Console: http://{name}:{port}/console/ (Ctrl-C ends the server)"


def run(
    app: Any, listening: socket.socket, options: Options, on_stop: Callable[[], object]
) -> None:
    """Serve an application until a signal arrives; then finish the requests that were accepted."""
    running = Running(app, options, on_stop)
    asyncio.run(running.serve(sockets=[listening]))
    if not running.started:
        raise SettingsError("the server could not start", remedy="see the lines above")


class Running(uvicorn.Server):
    """Uvicorn with limits of connections. After a signal it ends by itself instead of by the
    signal."""

    def __init__(self, app: Any, options: Options, on_stop: Callable[[], object]) -> None:
        limits = limits_of(options)
        config = uvicorn.Config(
            Patience(app, limits.seconds), http=cast(Any, partial(Connection, limits)), ws="none",
            lifespan="on", log_config=None, access_log=False, server_header=False,
            proxy_headers=False, timeout_graceful_shutdown=ceil(options.server_shutdown_seconds),
            # So many are accepted at once, before the first of them is counted.
            backlog=max(1, limits.max_connections // 8),
        )  # fmt: skip
        super().__init__(config)
        self._on_stop = on_stop

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        await super().startup(sockets)
        for listening in sockets or []:
            listening.listen(_BACKLOG)  # that of uvicorn is shorter, see above

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End by itself after a signal."""
        if sys.platform == "win32":  # it has no such handlers
            with super().capture_signals():
                yield
            return
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def _stop(self) -> None:
        self._on_stop()
        self.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises `SettingsError` if the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        what = f"cannot listen on {host}, port {port}: {error.strerror or error}"
        raise SettingsError(what, remedy="choose another --port or --host") from None
    # asyncio sends answers at once (TCP_NODELAY) only on sockets that name their protocol; else
    # each waits 40 ms for the client.
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=made.detach())


# --- memory-mesh console ---
# A server for the person at this machine, and the link that logs the browser in, once.

_HOST = "127.0.0.1"


def console(call: Call) -> Answer:
    """Listen on this machine, show the link, open the browser, and answer requests until Ctrl-C."""
    from memory_mesh.api.mesh import MemoryMesh

    share_heaps()
    settings = load(call.target.arguments)
    # Only looking at a memory runs no maintenance.
    options = replace(settings.options, server_host=_HOST, server_heartbeat_seconds=0.0)
    mesh = MemoryMesh(**call.target.arguments)  # type: ignore[arg-type]
    mesh.stats()  # a store that cannot be read is an error now, not one of every page
    server = Server(mesh, options, TokenFile(settings.home), private=True)
    with listen(_HOST, int(str(call.arguments["port"]))) as listening:
        # A fragment is not sent in a request, so that no log contains the secret.
        url = (
            f"http://{_HOST}:{listening.getsockname()[1]}/console/#once="
            f"{server.sessions.issue_once()}"
        )
        lines = (
            f"{NAME} Console: {url}",
            "The link logs one browser in, within five minutes. Ctrl-C ends the server.",
        )
        code = show(Answer(text="\n".join(lines), data={"url": url}), call.form)
        if code:  # nobody can read the link, such as when the reader of a pipe is gone
            return Answer(text="", data={}, code=code)
        if call.arguments["browser"]:
            # A browser in the terminal would not return.
            Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        run(build(server), listening, options, server.stopping.set)
    return Answer(text="", data={})
