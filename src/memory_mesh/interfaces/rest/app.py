"""The application: a route for each operation of the table, health, metrics and OpenAPI."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory_mesh.api.aio import to_thread
from memory_mesh.api.overview import overview_of
from memory_mesh.core.errors import AccessDenied, MemoryMeshError
from memory_mesh.interfaces import remote
from memory_mesh.interfaces.console import routes as console
from memory_mesh.interfaces.operation import Effect, Extent, Interface, Operation
from memory_mesh.interfaces.render.output import outcome, to_json
from memory_mesh.interfaces.rest import connections, requests
from memory_mesh.interfaces.rest.access import check_origin
from memory_mesh.interfaces.rest.openapi import (
    ABOUT,
    INGEST,
    METRICS,
    Json,
    complete,
    described,
    methods_of,
    page,
    path_of,
    plain,
)
from memory_mesh.interfaces.rest.server import CONTENT_TYPE, Server

# --- the application ---

# Of every response, unless it has one of its own. A browser runs no script that is not a file of
# the console.
_HEADERS = {
    b"cache-control": b"no-store",
    b"x-content-type-options": b"nosniff",
    b"content-security-policy": (
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
        b"frame-ancestors 'none'"
    ),
    b"referrer-policy": b"no-referrer",
    b"x-frame-options": b"DENY",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}
_IDLE_SECONDS = 1.0
_NOT_ALLOWED = 405
Endpoint = Callable[[Request], Awaitable[Response]]


def build(server: Server) -> FastAPI:
    """Return the application of a server."""
    app = FastAPI(
        **ABOUT,
        docs_url=None,  # it would load scripts of another site; `_docs` does not
        redoc_url=None,
        openapi_url=None,  # `_openapi` serves it
        lifespan=lambda _: _lifespan(server),
        exception_handlers={MemoryMeshError: _on_error, HTTPException: _on_http_error},
    )
    ready = plain("ready", "Whether the store can be read.", 200, 503)
    routes: list[tuple[str, str, Endpoint, dict[str, Any]]] = [
        *(
            (
                method,
                path_of(one),
                partial(_call, server, one),
                described(one, method, server.options),
            )
            for one in remote.exposed(Interface.REST)
            for method in methods_of(one)
        ),
        ("POST", "/v1/ingest", partial(requests.ingest, server), INGEST),
        ("GET", "/health", _health, plain("health", "Whether the server runs.", 200)),
        ("GET", "/ready", partial(_ready, server), ready),
        ("GET", "/metrics", partial(_metrics, server), METRICS),
        ("GET", "/openapi.json", partial(_openapi, server, app), {"include_in_schema": False}),
        (
            "GET",
            "/docs",
            partial(_docs, server, cache(lambda: page(app.openapi()))),
            {"include_in_schema": False},
        ),
    ]
    for method, path, endpoint, about in routes:
        endpoint.__doc__ = None  # FastAPI would publish that of `partial` as a description
        app.add_api_route(path, endpoint, methods=[method], **about)
    console.install(app, server)
    app.add_middleware(Gate, server=server)
    complete(app)
    return app


# --- routes ---


async def _call(server: Server, operation: Operation, request: Request) -> Response:
    caller, mesh = server.reader(request, operation)
    arguments = await requests.arguments(request, operation, server.options.server_max_body)
    caller.check(operation, server.mesh, arguments)
    if operation.effect is not Effect.READ:
        items = arguments.get("items", arguments.get("messages"))
        server.count_writes(mesh, len(items) if isinstance(items, list) and items else 1)
    data = await to_thread(remote.call, mesh, operation, arguments)
    return Json(to_json(data), headers=requests.next_page(request, data))


async def _health(request: Request) -> Response:
    return Json('{"status": "ok"}')


async def _ready(server: Server, request: Request) -> Response:
    if server.stopping.is_set():
        return Json('{"status": "stopping"}', 503)
    await to_thread(server.mesh.get, "ready")  # reads the store; there is no such memory
    return Json('{"status": "ready"}')


async def _openapi(server: Server, app: FastAPI, request: Request) -> Response:
    if server.private:
        server.admit(request)
    bearer: dict[str, list[str]] = {"bearer": []}
    security = [bearer] if server.needs_login() else [{}, bearer]
    return JSONResponse({**app.openapi(), "security": security})


async def _docs(server: Server, rendered: Callable[[], str], request: Request) -> Response:
    if server.private:
        server.admit(request)
    return HTMLResponse(rendered())


async def _metrics(server: Server, request: Request) -> Response:
    caller = server.admit(request)
    if caller.extent(server.mesh) is not Extent.SERVER:
        raise AccessDenied(
            "the metrics are about all users", remedy="use a token of the user of the server"
        )
    return Response(server.metrics.text(), media_type=CONTENT_TYPE)


# --- errors ---


async def _on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, MemoryMeshError)  # noqa: S101  (registered for it)
    if outcome(error).http_status >= 500:
        connections.LOG.warning("%s: %s", type(error).__name__, error)
    return requests.response(requests.problem_of(error))


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  (registered for it)
    headers = dict(error.headers or {})
    if error.status_code == _NOT_ALLOWED:  # Starlette names the methods of one route of the path
        app: FastAPI = request.app
        routes = (one for one in app.routes if one.matches(request.scope)[0] is not Match.NONE)
        allowed = (getattr(one, "methods", None) or () for one in routes)
        headers["Allow"] = ", ".join(sorted({method for one in allowed for method in one}))
    return requests.response(requests.from_http(error), headers)


class Gate:
    """Around every request: check host and origin, count, log and trace it, and answer for
    mistakes of ours."""

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app, self._server = app, server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        server, began, request_id, status = (
            self._server,
            time.perf_counter(),
            secrets.token_hex(8),
            0,
        )

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = dict(message.get("headers", ()))
                extra = [(name, value) for name, value in _HEADERS.items() if name not in own]
                message["headers"] = [
                    *message.get("headers", ()),
                    *extra,
                    (b"x-request-id", request_id.encode()),
                ]
            await send(message)

        with (
            server.metrics.in_flight(),
            server.telemetry.span(scope["method"], request_id) as attributes,
        ):
            try:
                check_origin(
                    Request(scope).headers,
                    server.names,
                    without_data=console.is_shell(scope["method"], scope["path"]),
                )
                await self._app(scope, receive, answer)
            except MemoryMeshError as error:
                await requests.response(requests.problem_of(error))(scope, receive, answer)
            except ClientDisconnect:
                status = status or 499
            except Exception:  # noqa: BLE001  (a mistake of ours must not end the server, nor show its text to a client)
                connections.LOG.exception("unexpected")
                if not status:
                    await requests.response(requests.unexpected())(scope, receive, answer)
            route = getattr(scope.get("route"), "path", "unknown")
            seconds = time.perf_counter() - began
            attributes |= {
                "http.route": route,
                "http.response.status_code": status,
                "seconds": seconds,
            }
        server.metrics.request(route, status, seconds)
        connections.request_line(
            request_id,
            scope["method"],
            route,
            status,
            scope.get("state", {}).get("caller", "unknown"),
            began,
        )


# --- the life of the server ---


@asynccontextmanager
async def _lifespan(server: Server) -> AsyncIterator[None]:
    """Open the store and run the heartbeat in the background; close when every request has
    ended."""
    threads = ThreadPoolExecutor(server.options.server_threads, thread_name_prefix="memory-mesh")
    asyncio.get_running_loop().set_default_executor(threads)
    await to_thread(server.mesh.__enter__)
    every = server.options.server_heartbeat_seconds
    tasks = [
        asyncio.create_task(_prepare(server)),
        *([asyncio.create_task(_beat(server, every))] if every else []),
    ]
    try:
        yield
    finally:
        server.stopping.set()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await to_thread(server.mesh.close)


async def _prepare(server: Server) -> None:
    """Build the search index after the first request, when none is worked on: the first page is
    not to wait for it."""
    while server.metrics.idle_seconds() < _IDLE_SECONDS:
        await asyncio.sleep(_IDLE_SECONDS / 4)
    try:
        await to_thread(overview_of(server.mesh).prepare_search)
    except MemoryMeshError as error:  # the first search reports it, too
        connections.LOG.warning("search index: %s", error)


async def _beat(server: Server, every: float) -> None:
    """Run the jobs that are due, of the user of the server and of every user with a token, again
    and again."""
    while True:
        users: set[str | None] = {server.mesh.reader.user_id}
        try:
            users |= {token.user_id for token in server.tokens.tokens().values()}
        except MemoryMeshError as error:
            _failed(server, "heartbeat: %s", error)
        for user in users:
            try:
                await _beat_for(server, user)
            except MemoryMeshError as error:
                _failed(server, "heartbeat: %s", error)
            except Exception:  # noqa: BLE001  (a mistake of ours must not end the heartbeat of the others)
                server.metrics.add("heartbeat_failures")
                connections.LOG.exception("heartbeat")
        await asyncio.sleep(every)


async def _beat_for(server: Server, user: str | None) -> None:
    beat = await to_thread(server.mesh.scoped(user_id=user).heartbeat)
    server.metrics.add("heartbeats")
    for run in beat.runs:
        if not run.ok:
            _failed(server, "heartbeat: %s failed: %s", run.job, run.detail)


def _failed(server: Server, message: str, *parts: object) -> None:
    server.metrics.add("heartbeat_failures")
    connections.LOG.warning(message, *parts)
