"""The routes of the console: its files, the session of a browser, login and logout."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

import memory_mesh
from memory_mesh.api.overview import overview_of
from memory_mesh.core.errors import InvalidInput, TokenInvalid
from memory_mesh.interfaces.console import pages
from memory_mesh.interfaces.render.output import to_json
from memory_mesh.interfaces.rest import requests
from memory_mesh.interfaces.rest.access import Caller, caller_in, cookie_name
from memory_mesh.interfaces.rest.server import Server, client_of

_INDEX = "index.html"
# Not from the system's table: it may name another type for .js, which a browser would then not run.
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css",
          ".svg": "image/svg+xml", ".json": "application/json", ".txt": "text/plain",
          ".png": "image/png"}  # fmt: skip
_SHELL = ("/", "/console", "/console/", f"/console/{_INDEX}")
_MAX_LOGIN = 4096  # bytes
Endpoint = Callable[[Request], Awaitable[Response]]


def install(app: FastAPI, server: Server) -> None:
    """Add the routes of the console to an application."""
    routes: list[tuple[str, str, Endpoint]] = [
        ("GET", "/", _to_console),
        ("GET", "/console", _to_console),
        ("GET", "/console/session", _session(server)),
        ("POST", "/console/login", _login(server)),
        ("POST", "/console/logout", _logout(server)),
        *pages.routes(server),
        ("GET", "/console/{file:path}", _file()),
    ]
    for method, path, endpoint in routes:
        app.add_api_route(path, endpoint, methods=[method], include_in_schema=False)


def is_shell(method: str, path: str) -> bool:
    """Return whether a request reads the HTML page into which the console loads everything else;
    it has no data itself."""
    return method == "GET" and path in _SHELL


# --- files ---


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    media_type: str
    etag: str


def _file() -> Endpoint:
    """Return the endpoint of the files. They are read once: no path of a request reaches the
    file system."""
    known = {name: _read(name, one) for name, one in _walk(files(__package__) / "web", "")}

    async def file(request: Request) -> Response:
        found = known.get(request.path_params["file"] or _INDEX)
        if found is None:
            raise HTTPException(404)
        headers = {"ETag": found.etag, "Cache-Control": "no-cache"}
        if found.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(found.content, headers=headers, media_type=found.media_type)

    return file


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for one in folder.iterdir():
        if one.is_dir():
            yield from _walk(one, f"{prefix}{one.name}/")
        elif one.name.endswith(tuple(_TYPES)):
            yield f"{prefix}{one.name}", one


def _read(name: str, file: Traversable) -> _File:
    content = file.read_bytes()
    return _File(
        content, _TYPES[f".{name.rpartition('.')[2]}"], f'"{sha256(content).hexdigest()[:32]}"'
    )


async def _to_console(request: Request) -> Response:
    return RedirectResponse("/console/", 303)


# --- sessions ---


def _session(server: Server) -> Endpoint:
    """Return the endpoint that says who is logged in. On a server without tokens it begins a
    session."""

    async def session(request: Request) -> Response:
        try:
            caller = server.admit(request)  # first: it also counts a request with a wrong cookie
            known = server.session_of(request)
        except TokenInvalid:
            known = None
        if known is None and server.needs_login():
            return _json({"needs_login": True, "version": memory_mesh.__version__})
        if known is None:
            secret, known = server.sessions.begin()
            caller = caller_in(known, server.tokens, client_of(request), "")
            return _with_cookie(request, _described(server, caller, known.csrf), secret)
        return _json(_described(server, caller, known.csrf))

    return session


def _login(server: Server) -> Endpoint:
    async def login(request: Request) -> Response:
        given = requests.read_json(await requests.json_body(request, _MAX_LOGIN))
        names = given.keys() if isinstance(given, dict) else set()
        if (
            not isinstance(given, dict)
            or names not in ({"token"}, {"once"})
            or not all(isinstance(one, str) for one in given.values())
        ):
            raise InvalidInput(
                "the body names no token", expected='an object such as {"token": "mm_…"}'
            )
        begun = server.log_in(request, **given)
        # The earlier one of this browser.
        server.sessions.end(request.cookies.get(cookie_name(request.headers), ""))
        return _with_cookie(
            request, _described(server, begun.caller, begun.session.csrf), begun.secret
        )

    return login


def _logout(server: Server) -> Endpoint:
    async def logout(request: Request) -> Response:
        server.admit(request)
        name = cookie_name(request.headers)
        server.sessions.end(request.cookies.get(name, ""))
        response = _json({"needs_login": server.needs_login(), "version": memory_mesh.__version__})
        response.delete_cookie(name, path="/", httponly=True, samesite="strict")
        return response

    return logout


def _described(server: Server, caller: Caller, csrf: str) -> dict[str, object]:
    token, reader, overview = caller.token, server.mesh.reader, overview_of(server.mesh)
    return {
        "needs_login": False,
        "name": token.name if token else "this computer",
        "user": token.user_id if token else reader.user_id,
        "agent": (token and token.agent_id) or reader.agent_id,
        "project": (token and token.project) or reader.project,
        "read_only": bool(token and token.read_only) or overview.is_read_only(),
        "extent": caller.extent(server.mesh).name.lower(),
        "csrf": csrf,
        "version": memory_mesh.__version__,
        "store": overview.store_kind,
    }


def _with_cookie(request: Request, data: dict[str, object], secret: str) -> Response:
    response = _json(data)
    # A proxy that speaks TLS to the browser is seen only by the origin that the browser names.
    secure = request.url.scheme == "https" or request.headers.get("origin", "").startswith(
        "https://"
    )
    response.set_cookie(
        cookie_name(request.headers),
        secret,
        path="/",
        secure=secure,
        httponly=True,
        samesite="strict",
    )
    return response


def _json(data: dict[str, object]) -> Response:
    return Response(to_json(data), media_type="application/json")
