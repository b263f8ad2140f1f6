"""Read the arguments of a request, and answer errors as `application/problem+json`.

Arguments come from the query of a GET, the JSON of a POST, and the header Idempotency-Key.
`POST /v1/ingest` stores memories from lines of JSON in batches, while they arrive. Progress is sent
as server-sent events. A `progress` event is sent when its batch is durable. After an error, or when
the server stops, the client continues behind the last line of the last such event; with the same
`Idempotency-Key` it may also send all lines again.
"""

import json
import re
from collections.abc import AsyncIterator
from functools import partial
from typing import Never
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memory_mesh.api.aio import to_thread
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.errors import (
    CallError,
    InvalidInput,
    MemoryMeshError,
    ModelMismatch,
    StoreError,
    StoreUnavailable,
    TooLarge,
)
from memory_mesh.interfaces.operation import Kind, Operation, Parameter
from memory_mesh.interfaces.remote import OPERATIONS
from memory_mesh.interfaces.render.output import one_line, outcome, to_json
from memory_mesh.interfaces.rest.connections import check_declared, pieces, read_body
from memory_mesh.interfaces.rest.server import Server

# --- arguments ---

KEY_HEADER = "Idempotency-Key"
_WORDS = {"true": True, "false": False}
_NUMBER = re.compile(r"-?[0-9]{1,19}(\.[0-9]{1,19})?([eE][+-]?[0-9]{1,3})?", re.ASCII)  # of JSON


async def arguments(request: Request, operation: Operation, max_body: int) -> dict[str, object]:
    """Return the arguments of a request. Raises `InvalidInput` and `TooLarge`."""
    if request.method == "GET":
        return _from_query(request, operation)
    given = read_json(await json_body(request, max_body))
    if not isinstance(given, dict):
        raise InvalidInput("the body is not a JSON object", expected="an object with the arguments")
    return with_key(request, operation, given)


def read_json(text: bytes) -> object:
    """Return the value of a JSON text. Raises `InvalidInput` if it is not valid."""
    try:
        return json.loads(
            text.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_object
        )
    except InvalidInput:
        raise
    except (ValueError, RecursionError) as error:
        place = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidInput(f"the JSON is not valid{place}", expected="JSON in UTF-8") from None


def with_key(request: Request, operation: Operation, given: dict[str, object]) -> dict[str, object]:
    """Return the arguments with the key of the header `Idempotency-Key`."""
    key = _key(request)
    if key is None:
        return given
    if not takes_key(operation):
        raise InvalidInput(f"{operation.name} takes no {KEY_HEADER}", remedy="leave it out")
    if given.get("idempotency_key", key) != key:
        raise InvalidInput(f"{KEY_HEADER} and idempotency_key differ", expected="one of them")
    return {**given, "idempotency_key": key}


def _key(request: Request) -> str | None:
    key = request.headers.get(KEY_HEADER)
    if key is not None and not key.strip():
        raise InvalidInput(f"{KEY_HEADER} is blank", expected="a text, or no such header")
    return key


def takes_key(operation: Operation) -> bool:
    return any(one.name == "idempotency_key" for one in operation.parameters)


def next_page(request: Request, data: dict[str, object]) -> dict[str, str]:
    """Return the header that links to the next page of a list; empty if there is none."""
    after = data.get("next")
    if request.method != "GET" or not isinstance(after, str):
        return {}
    query = [(name, value) for name, value in request.query_params.multi_items() if name != "after"]
    return {"Link": f'<{request.url.path}?{urlencode([*query, ("after", after)])}>; rel="next"'}


async def json_body(request: Request, max_body: int) -> bytes:
    """Return the body of a request with JSON. Raises `TooLarge`."""
    body = await read_body(request, max_body)
    # A form or plain text could be sent by a page of any site without asking first.
    if media_type(request) != "application/json":
        raise HTTPException(415, "send JSON with the header Content-Type: application/json")
    return body


def media_type(request: Request) -> str:
    """Return the type of the body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _from_query(request: Request, operation: Operation) -> dict[str, object]:
    known = {one.name: one for one in operation.parameters}
    given: dict[str, object] = {}
    for name in request.query_params:
        texts = request.query_params.getlist(name)
        parameter = known.get(name)
        if parameter is None:
            given[name] = texts  # the check says that it is unknown
        elif parameter.repeated:
            given[name] = [_read(parameter, text) for text in texts]
        elif len(texts) > 1:
            raise InvalidInput(f"{name} is given {len(texts)} times", expected="one value")
        else:
            given[name] = _read(parameter, texts[0])
    return given


def _read(parameter: Parameter, text: str) -> object:
    """Return the JSON value that a text stands for; the text itself if it stands for none, which
    the check refuses."""
    if parameter.is_yes_no:
        return _WORDS.get(text, text)
    if _NUMBER.fullmatch(text) and parameter.kind in (Kind.INTEGER, Kind.FRACTION):
        is_whole = parameter.kind is Kind.INTEGER and text.lstrip("-").isdigit()
        return int(text) if is_whole else float(text)
    return text


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidInput(
            "a name stands twice in an object of the JSON", expected="each name once"
        )
    return found


def _refuse_constant(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")


# --- problems ---
# RFC 9457, with the status of the one table in `render.output`.

_MEDIA_TYPE = "application/problem+json"
_ABOUT_THE_SERVER = (StoreError, ModelMismatch, CallError)  # whatever their status
_UNAUTHORIZED, _TOO_MANY_REQUESTS, _SERVER_ERROR = 401, 429, 500

SCHEMA: dict[str, object] = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {
            "type": "string",
            "description": "urn:memory-mesh:error: and the name of the error",
        },
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "what": {"type": "string", "description": "what was wrong"},
        "expected": {"type": "string", "description": "what was expected"},
        "remedy": {"type": "string", "description": "what to do"},
    },
}


def problem_of(error: MemoryMeshError) -> dict[str, object]:
    """Return an error for a client. Of an error of the server only its kind: its text may name
    files of the server."""
    status = outcome(error).http_status
    title = one_line((type(error).__doc__ or "").partition("\n")[0])
    problem: dict[str, object] = {
        "type": f"urn:memory-mesh:error:{type(error).__name__}",
        "title": title,
        "status": status,
    }
    if status >= _SERVER_ERROR or isinstance(error, _ABOUT_THE_SERVER):
        return {**problem, "detail": title}
    parts = {"what": error.what, "expected": error.expected, "remedy": error.remedy}
    return {
        **problem,
        "detail": one_line(str(error)),
        **{name: one_line(text) for name, text in parts.items() if text},
    }


def unexpected() -> dict[str, object]:
    """Return the problem of an error that is a mistake of ours."""
    title = "The server made a mistake; its log has the details."
    return {
        "type": "urn:memory-mesh:error:Unexpected",
        "title": title,
        "status": _SERVER_ERROR,
        "detail": title,
    }


def from_http(error: HTTPException) -> dict[str, object]:
    """Return the problem of an unknown route or method, or of a body of another type."""
    # The first is the phrase of the status.
    title, why = str(HTTPException(error.status_code).detail), str(error.detail)
    detail = title if why == title else f"{title}: {why}"
    return {
        "type": "about:blank",
        "title": title,
        "status": error.status_code,
        "detail": f"{detail}; see /openapi.json",
    }


def response(problem: dict[str, object], headers: dict[str, str] | None = None) -> Response:
    """Return the response that carries a problem."""
    status = int(str(problem["status"]))
    extra = {"WWW-Authenticate": "Bearer"} if status == _UNAUTHORIZED else {}
    extra |= {"Retry-After": "60"} if status == _TOO_MANY_REQUESTS else {}
    return Response(to_json(problem), status, {**extra, **(headers or {})}, media_type=_MEDIA_TYPE)


# --- POST /v1/ingest ---

_BATCH = 100  # lines that are stored at once
_STORE_MANY = next(one for one in OPERATIONS if one.name == "store-many")
_Line = tuple[int, bytes]
Event = tuple[str, dict[str, object]]


class EventStream(Response):
    """Server-sent events. Unlike a streaming response it leaves the body of the request to who
    makes the events."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[Event]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for name, data in self._events:
            text = f"event: {name}\ndata: {to_json(data)}\n\n"
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def ingest(server: Server, request: Request) -> Response:
    """Answer a request with the events of its lines."""
    _, mesh = server.reader(request, _STORE_MANY)
    check_declared(request, server.options.server_max_stream)
    if media_type(request) != "application/x-ndjson":
        raise HTTPException(
            415, "send lines of JSON with the header Content-Type: application/x-ndjson"
        )
    return EventStream(_events(server, mesh, request, _key(request)))


async def _events(
    server: Server, mesh: Mesh, request: Request, key: str | None
) -> AsyncIterator[Event]:
    stored, last = 0, 0
    try:
        async for batch in _batches(
            request, server.options.server_max_stream, server.options.server_max_body
        ):
            if server.stopping.is_set():
                raise StoreUnavailable("the server is stopping")
            items = [_item(number, text) for number, text in batch]
            server.count_writes(mesh, len(items))
            first, last_line = batch[0][0], batch[-1][0]
            add = partial(mesh.add_many, items, idempotency_key=key and f"{key}:{first}")  # type: ignore[arg-type]
            memories = await to_thread(add)
            stored, last = stored + len(memories), last_line
            yield (
                "progress",
                {"lines": last, "stored": stored, "ids": [memory.id for memory in memories]},
            )
    except (MemoryMeshError, HTTPException) as error:
        problem = problem_of(error) if isinstance(error, MemoryMeshError) else from_http(error)
        yield "error", {**problem, "lines": last, "stored": stored}
        return
    yield "done", {"lines": last, "stored": stored}


async def _batches(request: Request, max_bytes: int, max_line: int) -> AsyncIterator[list[_Line]]:
    """Yield the lines of the body with their numbers, without blank ones, in batches."""
    batch = list[_Line]()
    async for number, line in _lines(request, max_bytes, max_line):
        batch += [(number, line)] if line.strip() else []
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


async def _lines(request: Request, max_bytes: int, max_line: int) -> AsyncIterator[_Line]:
    number, line = 1, bytearray()  # what is there of a line is not copied with each piece
    async for piece in pieces(request, max_bytes):
        for n, part in enumerate(piece.split(b"\n")):
            if n:  # a line ends before every part but the first
                yield number, bytes(line)
                number, line = number + 1, bytearray()
            line += part
            if len(line) > max_line:
                raise TooLarge(
                    f"line {number} has more than {max_line:,} bytes", remedy="send it in parts"
                )
    yield number, bytes(line)


def _item(number: int, text: bytes) -> object:
    try:
        item = read_json(text)
    except InvalidInput as error:
        raise InvalidInput(f"line {number}: {error.what}", expected=error.expected) from None
    if not isinstance(item, dict | str):
        raise InvalidInput(
            f"line {number} is neither a text nor an object",
            expected='a line such as {"content": "…"}',
        )
    return item
