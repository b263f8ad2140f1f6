"""`POST /v1/ingest`: store memories from lines of JSON in batches, while they arrive.

Progress is sent as server-sent events. A `progress` event is sent when its batch is durable. After
an error, or when the server stops, the client continues behind the last line of the last such
event; with the same `Idempotency-Key` it may also send all lines again.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memory_mesh.api.aio import to_thread
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.errors import InvalidInput, MemoryMeshError, StoreUnavailable, TooLarge
from memory_mesh.interfaces.remote import OPERATIONS
from memory_mesh.interfaces.render.output import to_json
from memory_mesh.interfaces.rest.connections import check_declared, pieces
from memory_mesh.interfaces.rest.requests import (
    KEY_HEADER,
    from_http,
    media_type,
    problem_of,
    read_json,
)
from memory_mesh.interfaces.rest.server import Server

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


def ingest(server: Server) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint."""

    async def ingest(request: Request) -> Response:
        mesh = server.reader(request, _STORE_MANY)
        check_declared(request, server.options.server_max_stream)
        if media_type(request) != "application/x-ndjson":
            raise HTTPException(
                415, "send lines of JSON with the header Content-Type: application/x-ndjson"
            )
        return EventStream(_events(server, mesh, request))

    return ingest


async def _events(server: Server, mesh: Mesh, request: Request) -> AsyncIterator[Event]:
    key, stored, last = request.headers.get(KEY_HEADER), 0, 0
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
