"""Text that a reader may not see: of a hidden status, expired, or of another user, agent, session
or project.

The world is that of `tests/faces/test_hidden_memories.py`: memories, lessons and skills that all
fit one query, linked to each other, of which one of each kind may be shown. Every read method,
every REST route, every MCP tool that reads, and the pages of the console are asked.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bench.hygiene.places import kinds, place_of
from bench.hygiene.record import OURS, Row, Run, Tally, folder
from bench.hygiene.shared import tests
from memory_mesh import MemoryMesh
from memory_mesh.core.errors import MemoryMeshError
from memory_mesh.interfaces import remote
from memory_mesh.interfaces.operation import Effect, Interface
from memory_mesh.stores import open_store

NAME = "hidden"
_WHAT = "hidden or foreign texts in an answer"
# These show what waits for a review, and what was stored, because the caller asked for it by name.
_ASKED_FOR = ("quarantined", "explain-memory", "audit log")
_PAGES = (
    "numbers",
    "timeline",
    "timeline?known_at=2026-01-01",
    "graph",
    "graph?seed={}",
    "memory?id={}",
    "erase-preview?id={}",
)
_PAST = "2025-06-01T00:00:00.000Z"
EXPIRED = "isexpired"


def check(run: Run) -> Iterator[Row]:
    if OURS not in run.systems:
        return
    for kind in ["memory", *kinds(quick=False)] if not run.quick else ["memory"]:
        for asked in (methods, routes, tools, pages):
            with new_store(kind) as url, folder() as place:
                yield asked(kind, world(url), str(place))


@contextmanager
def new_store(kind: str) -> Iterator[str]:
    if kind == "memory":
        yield "memory://"
        return
    with place_of(kind) as place:
        yield place.url


def world(url: str) -> tuple[Any, MemoryMesh]:
    """Return a house, and the mesh of a reader who sees one memory, one lesson and one skill of
    it."""
    hidden, house = tests("faces.test_hidden_memories"), tests("faces.house").House(open_store(url))
    mesh = hidden.build(house)
    for kind, id_ in hidden.contents(mesh, EXPIRED, "global"):
        hidden.put(house, kind, id_, expires_at=_PAST)
    return house, mesh


def markers() -> list[str]:
    return [*sorted(tests("faces.test_hidden_memories").HIDDEN), EXPIRED]


def methods(kind: str, made: tuple[Any, MemoryMesh], place: str = "") -> Row:
    """Call every method that reads."""
    hidden, (house, mesh) = tests("faces.test_hidden_memories"), made
    tally = Tally(
        NAME, _WHAT, note=f"{kind}: {len(hidden.READS)} ways to read by method, prompts included"
    )
    controls(tally, house, mesh)
    for name, read in hidden.READS.items():
        text = tests("faces.house").whole(read(mesh))
        tally.expect(hidden.SHOWN in text)
        _look(tally, name, text)
    mesh.close()
    return tally.row()


def controls(tally: Tally, house: Any, mesh: MemoryMesh) -> None:
    """Find each hidden text where it is: by its status, or as its own reader."""
    hidden = tests("faces.test_hidden_memories")
    for status in hidden.HIDDEN_STATUSES:
        found = mesh.search(hidden.QUERY, limit=50, status=(status,))
        tally.expect(any(f"is{status}" in one.content for one in found))
    for marker, (writer, _, _) in hidden.FOREIGN.items():
        found = hidden.at(house, **writer).search(hidden.QUERY, limit=50)
        tally.expect(any(marker in one.content for one in found))
    tally.expect(any(EXPIRED in memory.content for memory in house.memories()))


def routes(kind: str, made: tuple[Any, MemoryMesh], place: str) -> Row:
    """Ask every REST route that reads."""
    hidden, server, (house, mesh) = (
        tests("faces.test_hidden_memories"),
        tests("interfaces.rest_server"),
        made,
    )
    scope, shown = {"Memory-Agent": "ann", "Memory-Session": "s1"}, 0
    tally = Tally(NAME, _WHAT)
    folders = {"notes_dir": f"{place}/notes", "traces_dir": f"{place}/traces"}
    with (
        folder() as home,
        server.running(home, house.store, clock=house.clock.seconds, ids=house.ids, **folders) as (
            client,
            _,
        ),
    ):
        asked = [
            one
            for one in remote.exposed(Interface.REST)
            if one.effect is Effect.READ and one.name not in _ASKED_FOR
        ]
        for operation in asked:
            path = "/v1/" + operation.aliases.get(Interface.REST, operation.name).replace(" ", "/")
            text = client.post(
                path, json=arguments(operation, hidden.shown_id(mesh)), headers=scope
            ).text
            shown += hidden.SHOWN in text
            _look(tally, path, text)
        found = client.get("/v1/list", params={"status": ["quarantined"]}, headers=scope)
        tally.expect("isquarantined" in found.text)
    tally.expect(shown >= 9)
    tally.note = f"{kind}: {len(asked)} REST routes that read"
    return tally.row()


def pages(kind: str, made: tuple[Any, MemoryMesh], place: str) -> Row:
    """Read what the pages of the console show. That of a memory names what is linked to it with
    its status, for people."""
    hidden, server, (house, mesh) = (
        tests("faces.test_hidden_memories"),
        tests("interfaces.rest_server"),
        made,
    )
    tally = Tally(NAME, _WHAT, note=f"{kind}: {len(_PAGES)} pages of the console")
    scope, shown = {"Memory-Agent": "ann", "Memory-Session": "s1"}, 0
    with (
        folder() as home,
        server.running(home, house.store, clock=house.clock.seconds, ids=house.ids) as (client, _),
    ):
        for page in _PAGES:
            text = client.get(
                f"/console/api/{page.format(hidden.shown_id(mesh))}", headers=scope
            ).text
            shown += hidden.SHOWN in text
            _look(
                tally,
                page,
                text,
                [*hidden.FOREIGN, EXPIRED] if page.startswith("memory?") else markers(),
            )
            tally.expect(not page.startswith("memory?") or "isquarantined" in text)
    tally.expect(shown >= 6)
    return tally.row()


def arguments(operation: Any, id_: str) -> dict[str, object]:
    """Return arguments with which a read finds as much as it can."""
    query = tests("faces.test_hidden_memories").QUERY
    given: dict[str, object] = {
        name: id_ if "id" in name else query
        for name in tests("interfaces.test_remote").minimal(operation)
    }
    given |= {"id": id_} if operation.name == "get" else {}
    given |= (
        {"messages": [{"role": "user", "content": query}]} if operation.name == "lane judge" else {}
    )
    given |= {"mode": "recall"} if any(one.name == "mode" for one in operation.parameters) else {}
    return given


def tools(kind: str, made: tuple[Any, MemoryMesh], place: str) -> Row:
    """Call every MCP tool that reads, and read every resource."""
    from memory_mesh.interfaces.mcp.server import TOOLSETS, OperationTools

    hidden, (_, mesh) = tests("faces.test_hidden_memories"), made
    toolbox = OperationTools(tuple(TOOLSETS), read_only=True)
    tally = Tally(NAME, _WHAT)
    by_name = {operation.name: operation for operation in remote.exposed(Interface.MCP)}
    shown = 0
    offers = {name: by_name[offer.operation] for name, (offer, _) in toolbox._offers.items()}
    asked = {
        name: operation for name, operation in offers.items() if operation.name not in _ASKED_FOR
    }
    for name, operation in asked.items():
        given = {
            key: value
            for key, value in arguments(operation, hidden.shown_id(mesh)).items()
            if key != "mode"
        }
        try:
            text = "\n".join(str(part) for part in toolbox.call(mesh, name, given).content)
        except MemoryMeshError as error:
            text = str(error)
        shown += hidden.SHOWN in text
        _look(tally, name, text)
    resources = asyncio.run(_resources(mesh))
    _look(tally, "resources", resources)
    tally.expect(hidden.SHOWN in resources)
    tally.expect(shown >= 4)
    tally.note = f"{kind}: {len(asked)} MCP tools that read, and the resources"
    mesh.close()
    return tally.row()


async def _resources(mesh: MemoryMesh) -> str:
    """Return the text of every resource that the MCP server lists."""
    from mcp import Client

    from memory_mesh.interfaces.mcp.server import Caller, MemoryServer, OperationTools

    server = MemoryServer(OperationTools(), lambda _: Caller(mesh=mesh)).build()
    async with Client(server) as client:
        listed = (await client.list_resources()).resources
        return "\n".join([str(await client.read_resource(str(one.uri))) for one in listed])


def _look(tally: Tally, name: str, text: str, wanted: Sequence[str] | None = None) -> None:
    for marker in markers() if wanted is None else wanted:
        tally.trial(good=marker not in text, example=f"{name} shows {marker}")
