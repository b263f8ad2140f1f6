"""What the pages of the console read beside the verbs of `/v1`: `GET /console/api/…`.

Tokens and scopes are those of `/v1`. Each takes few named arguments, and answers with JSON of a
bounded size.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fastapi import Request
from starlette.responses import Response

from memory_mesh.api.aio import to_thread
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.api.overview import Overview, overview_of
from memory_mesh.core.errors import AccessDenied, InvalidInput, NotFound, shown
from memory_mesh.core.model import Memory
from memory_mesh.flows.search import overview as _loaded  # noqa: F401  (with the server, so that the first page need not wait for it)
from memory_mesh.interfaces import remote
from memory_mesh.interfaces.operation import Extent
from memory_mesh.interfaces.render.output import Answer, to_json
from memory_mesh.interfaces.rest.server import Server

Endpoint = Callable[[Request], Awaitable[Response]]
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


def routes(server: Server) -> list[tuple[str, str, Endpoint]]:
    """Return the method, the path and the endpoint of each."""
    pages: dict[str, tuple[Callable[..., Data], dict[str, type]]] = {
        "numbers": (_numbers, {}),
        "timeline": (_timeline, {"as_of": str, "known_at": str, "limit": int, "after": str}),
        "graph": (_graph, {"seed": str, "limit": int, "depth": int}),
        "memory": (_memory, {"id": str}),
        "erase-preview": (_erase_preview, {"id": str}),
        "anchors": (_anchors, {}),
    }
    return [
        ("GET", f"/console/api/{name}", _endpoint(server, *page)) for name, page in pages.items()
    ]


def _endpoint(server: Server, page: Callable[..., Data], known: Mapping[str, type]) -> Endpoint:
    async def read(request: Request) -> Response:
        caller = server.admit(request)
        mesh, extent = caller.mesh(server.mesh, request.headers), caller.extent(server.mesh)
        arguments = _arguments(request, known)
        data = await to_thread(
            lambda: page(_Asked(server, mesh, overview_of(mesh), extent), **arguments)
        )
        return Response(
            to_json(remote.data_of(Answer(text="", data=data))), media_type="application/json"
        )

    return read


class _Asked:
    """What a page is read with: the server, the mesh and the overview of the caller, and how far
    the caller may reach."""

    def __init__(self, server: Server, mesh: Mesh, overview: Overview, extent: Extent) -> None:
        self.server, self.mesh, self.overview, self.extent = server, mesh, overview, extent


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


# --- pages ---


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


def _timeline(asked: _Asked, **arguments: Any) -> Data:
    found = asked.overview.timeline(**arguments)
    shown_columns = ("created_at", "valid_from", "valid_until")
    memories = [
        {**brief, **{name: getattr(one, name) for name in shown_columns}}
        for one, brief in zip(
            found.memories, _brief(asked, found.memories, arguments.get("known_at")), strict=True
        )
    ]
    days = found.days
    return {
        "days": days.counts, "step_days": days.step, "first": days.first, "last": days.last,
        "count": found.count, "memories": memories, "next": found.next,
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
        }
        for one in memories
    ]
