"""The routes of the console: its files, the session of a browser, and what its pages read.

`GET /console/api/…` is what the pages read beside the verbs of `/v1`, with the same tokens and
scopes. Each takes few named arguments, and answers with JSON of a bounded size.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

import memory_mesh
from memory_mesh.api.aio import to_thread
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.api.overview import Overview, overview_of
from memory_mesh.core.errors import AccessDenied, InvalidInput, NotFound, TokenInvalid, shown
from memory_mesh.core.model import Memory, UserCount
from memory_mesh.flows.search import overview as _loaded  # noqa: F401  (with the server, so that the first page need not wait for it)
from memory_mesh.interfaces import remote
from memory_mesh.interfaces.operation import Extent
from memory_mesh.interfaces.render.output import RESULTS, Answer, to_json
from memory_mesh.interfaces.rest import requests
from memory_mesh.interfaces.rest.access import Caller, caller_in, cookie_name, is_name
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
    # The files are read once: no path of a request reaches the file system.
    known = {name: _read(name, one) for name, one in _walk(files(__package__) / "web", "")}
    routes: list[tuple[str, str, Endpoint]] = [
        ("GET", "/", _to_console),
        ("GET", "/console", _to_console),
        ("GET", "/console/session", partial(_session, server)),
        ("POST", "/console/login", partial(_login, server)),
        ("POST", "/console/logout", partial(_logout, server)),
        *(("GET", f"/console/api/{name}", partial(_read_page, server, name)) for name in _PAGES),
        ("GET", "/console/{file:path}", partial(_file, known)),
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


async def _file(known: Mapping[str, _File], request: Request) -> Response:
    file = known.get(request.path_params["file"] or _INDEX)
    if file is None:
        raise HTTPException(404)
    headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
    if file.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.media_type)


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    """Yield each file below a folder with its path there."""
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


async def _session(server: Server, request: Request) -> Response:
    """Answer who is logged in. On a server without tokens it begins a session."""
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


async def _login(server: Server, request: Request) -> Response:
    given = requests.read_json(await requests.json_body(request, _MAX_LOGIN))
    if (
        not isinstance(given, dict)
        or given.keys() not in ({"token"}, {"once"})
        or not all(isinstance(one, str) for one in given.values())
    ):
        raise InvalidInput(
            "the body names no token", expected='an object such as {"token": "mm_…"}'
        )
    secret, session, caller = server.log_in(request, **given)
    # The earlier one of this browser.
    server.sessions.end(request.cookies.get(cookie_name(request.headers), ""))
    return _with_cookie(request, _described(server, caller, session.csrf), secret)


async def _logout(server: Server, request: Request) -> Response:
    server.admit(request)
    name = cookie_name(request.headers)
    server.sessions.end(request.cookies.get(name, ""))
    response = _json({"needs_login": server.needs_login(), "version": memory_mesh.__version__})
    response.delete_cookie(name, path="/", httponly=True, samesite="strict")
    return response


def _described(server: Server, caller: Caller, csrf: str) -> dict[str, object]:
    token, reader, overview = caller.token, server.mesh.reader, overview_of(server.mesh)
    return {
        "needs_login": False,
        "name": token.name if token else "this computer",
        "user": token.user_id if token else reader.user_id,
        "agent": (token and token.agent_id) or reader.agent_id,
        "project": (token and token.project) or reader.project,
        "read_only": bool(token and token.read_only) or overview.is_read_only(),
        "may_switch": _may_switch(server, caller),
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


# --- what the pages read: GET /console/api/… ---

Data = dict[str, object]
_SEARCHES = (
    "/v1/search",
    "/v1/explain",
    "/v1/search-for-model",
    "/v1/graph/search",
    "/v1/lane/find",
    "/v1/context",
)
_MAX_DIGITS = 9
_MAX_USERS = 200


class _Asked(NamedTuple):
    """What a page is read with: the server, the caller with its mesh and overview, and how far
    the caller may reach."""

    server: Server
    caller: Caller
    mesh: Mesh
    overview: Overview
    extent: Extent


async def _read_page(server: Server, name: str, request: Request) -> Response:
    page, known = _PAGES[name]
    caller = server.admit(request)
    mesh, extent = caller.mesh(server.mesh, request.headers), caller.extent(server.mesh)
    arguments = _arguments(request, known)
    data = await to_thread(
        lambda: page(_Asked(server, caller, mesh, overview_of(mesh), extent), **arguments)
    )
    return _json(remote.data_of(Answer(text="", data=data)))


def _arguments(request: Request, known: Mapping[str, type]) -> dict[str, Any]:
    """Return the arguments of the query. Raises `InvalidInput` for an unknown or repeated one,
    and for a wrong number."""
    found: dict[str, Any] = {}
    for name, text in request.query_params.multi_items():
        if name not in known or name in found:
            raise InvalidInput(
                f"unknown or repeated argument {shown(name)}",
                expected=", ".join(known) or "no arguments",
            )
        if known[name] is int and not (
            text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS
        ):
            raise InvalidInput(f"{name} is {shown(text)}", expected="a whole number")
        found[name] = known[name](text)
    return found


def _numbers(asked: _Asked) -> Data:
    found, stats = asked.overview.numbers(), asked.mesh.stats()
    types = {**found.by_type, **({"skill": found.skills} if found.skills else {})}
    data: Data = {
        "by_day": found.days.counts, "step_days": found.days.step, "first": found.days.first,
        "last": found.days.last, "total": sum(found.by_status.values()), "skills": found.skills,
        "kinds": types, "status": found.by_status, "trust": found.trust, "trust_of": found.trust_of,
        "store": {"kind": asked.overview.store_kind},
    }  # fmt: skip
    if asked.extent is Extent.SERVER:  # of all users
        data["latency_ms"] = asked.server.metrics.latency(_SEARCHES)
        data["spending"] = {
            "today": [asdict(one) for one in stats.spent_today],
            "in_all": [asdict(one) for one in stats.spent_in_all],
        }
    return data


def _users(asked: _Asked) -> Data:
    """Answer whose memories there are, as far as the caller may know it."""
    every, user = _may_switch(asked.server, asked.caller), asked.mesh.reader.user_id
    found = asked.overview.visible_count(any_agent=asked.extent >= Extent.USER)
    counts = (
        asked.server.mesh.users() if every else [UserCount(user_id=user, memories=found.of_user)]
    )
    return {
        RESULTS: [
            {**asdict(one), "readable": one.user_id is None or is_name(one.user_id)}
            for one in counts[:_MAX_USERS]
        ],
        "users": len(counts), "memories": sum(one.memories for one in counts), "every": every,
        "user": user, "of_user": found.of_user, "visible": found.shown,
    }  # fmt: skip


def _may_switch(server: Server, caller: Caller) -> bool:
    """Return whether the caller may read as any user: neither its token nor the server is of
    one."""
    return caller.token is None and server.mesh.reader.user_id is None


def _timeline(asked: _Asked, **arguments: Any) -> Data:
    found = asked.overview.timeline(**arguments)
    shown_columns = ("valid_from", "valid_until")
    memories = [
        {**brief, **{name: getattr(one, name) for name in shown_columns}}
        for one, brief in zip(
            found.memories, _brief(asked, found.memories, arguments.get("known_at")), strict=True
        )
    ]
    days = found.days
    return {
        "days": days.counts, "step_days": days.step, "first": days.first, "last": days.last,
        "count": found.count, RESULTS: memories, "next": found.next,
    }  # fmt: skip


def _graph(asked: _Asked, **arguments: Any) -> Data:
    found = asked.overview.picture(**arguments)
    nodes = [
        {
            **brief,
            "kind": "cluster" if node.count > 1 else brief["kind"],
            "size": node.links,
            "count": node.count,
            "cluster": node.group,
        }
        for node, brief in zip(
            found.nodes, _brief(asked, [node.memory for node in found.nodes]), strict=True
        )
    ]
    edges = [
        {"from": one.source, "to": one.target, "type": one.type, "strength": one.strength}
        for one in found.edges
    ]
    return {"nodes": nodes, "edges": edges, "aggregated": found.aggregated, "newest": found.newest}


def _memory(asked: _Asked, id: str = "") -> Data:
    found = asked.overview.memory(id, any_agent=asked.extent >= Extent.USER)
    why, content = found.explanation, found.explanation.memory.content
    passages = []
    for row in found.passages:
        start, end = (int(str(row.value(name) or 0)) for name in ("text_start", "text_end"))
        passages.append(
            {
                "start": start,
                "end": end,
                "text": content[start:end],
                "section": row.value("section"),
            }
        )
    blocks = [
        {
            "id": one.id, "chain": one.chain, "number": one.number,
            "operation_type": one.operation_type, "agent_id": one.agent_id,
            "timestamp": one.created_at, "action": (one.metadata or {}).get("action"),
            "memory_revision": one.memory_revision, "block_hash": one.block_hash, "seal": one.seal,
        }
        for one in found.blocks
    ]  # fmt: skip
    return {
        **asdict(why), "trust": {**asdict(why.trust), "value": why.trust.value},
        "passages": passages, "blocks": blocks, "history": [asdict(one) for one in found.history],
        "sightings": [asdict(one) for one in found.sightings],
        "links": [asdict(one) for one in found.links],
    }  # fmt: skip


def _erase_preview(asked: _Asked, id: str = "") -> Data:
    found = asked.overview.erase_preview(id, any_agent=asked.extent >= Extent.USER)
    if not found.erased:
        raise NotFound(
            f"no memory {shown(id)} that may be erased",
            remedy="check the id, the agent and the session",
        )
    proof = found.proof
    return {
        "erased": _brief(asked, found.erased), "changed": _brief(asked, found.changed),
        "kept": proof.kept, "hidden": found.hidden,
        "rows": proof.rows, "tombstones": len(proof.tombstones), "notes": len(proof.notes),
        "traces": len(proof.traces),
    }  # fmt: skip


def _anchors(asked: _Asked) -> Data:
    if asked.extent is not Extent.SERVER:
        raise AccessDenied(
            "the anchors are those of the server", remedy="use a token of the user of the server"
        )
    found = asked.overview.anchored()
    return {
        "configured": found.configured,
        "time": found.time,
        "heads": [{"chain": chain, "block_hash": hash_} for chain, hash_ in found.heads.items()],
    }


def _brief(asked: _Asked, memories: Sequence[Memory], known_at: str | None = None) -> list[Data]:
    trust, title = asked.overview.trust(memories, known_at=known_at), asked.overview.title
    return [
        {
            "id": one.id,
            "title": title(one),
            "kind": one.memory_type,
            "status": one.status,
            "trust": trust[one.id],
            "created_at": one.created_at,
            "event_time": one.event_time,
            "session": one.session_id,
        }
        for one in memories
    ]


# Each page, and the types of its arguments.
_PAGES: dict[str, tuple[Callable[..., Data], dict[str, type]]] = {
    "numbers": (_numbers, {}),
    "timeline": (
        _timeline,
        {"happened": str, "as_of": str, "known_at": str, "limit": int, "after": str},
    ),
    "users": (_users, {}),
    "graph": (_graph, {"seed": str, "limit": int, "depth": int}),
    "memory": (_memory, {"id": str}),
    "erase-preview": (_erase_preview, {"id": str}),
    "anchors": (_anchors, {}),
}
