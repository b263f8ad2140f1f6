"""The description of the server in OpenAPI: its routes, their arguments, and their answers.

Arguments are those of the table of operations. The schema of an answer is made from the type of
the record that the method of the operation returns, or from `_ANSWERS` if its view answers with
something else. A field that may be null is left out of an answer when it is.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from html import escape
from types import GenericAlias, NoneType, UnionType
from typing import Any, TypedDict, Union, get_args, get_origin, get_type_hints, is_typeddict

from fastapi import FastAPI
from starlette.responses import PlainTextResponse, Response

from memory_mesh.api.graph_methods import MemoryGraph
from memory_mesh.api.lane_methods import MemoryLane
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.api.notes_methods import MemoryNotes
from memory_mesh.api.traces_methods import MemoryTraces
from memory_mesh.core.audit import EXPORT_NAMES, Broken, Sound
from memory_mesh.core.claims import Trust
from memory_mesh.core.claims.claim import MAX_CHARS
from memory_mesh.core.claims.rules import MemoryExplanation
from memory_mesh.core.graph import MADE_BY_US, GraphContext
from memory_mesh.core.lane.entities import ENTITY_TYPES
from memory_mesh.core.model import Block, Extraction, MemoryRecord, SearchResult
from memory_mesh.core.notes import Fault, Relevance
from memory_mesh.core.options import Options
from memory_mesh.core.search import Explained, Explanation
from memory_mesh.core.traces.schema import Step as TraceStep
from memory_mesh.interfaces import remote
from memory_mesh.interfaces.operation import Effect, Interface, Kind, Operation
from memory_mesh.interfaces.remote import LOCAL_FIELDS, Schema
from memory_mesh.interfaces.render.output import RESULTS
from memory_mesh.interfaces.rest.access import SCOPE_HEADERS
from memory_mesh.interfaces.rest.requests import KEY_HEADER, SCHEMA, takes_key
from memory_mesh.interfaces.verbs import (
    CHANGE,
    DELETE,
    LEARN,
    MAINTAIN,
    READ,
    REVIEW,
    STORE,
)

# --- routes ---

_COMPONENTS = "#/components/schemas/"
_PROBLEM = {
    "description": "An error",
    "content": {"application/problem+json": {"schema": {"$ref": f"{_COMPONENTS}Problem"}}},
}
_STATUS: Schema = {
    "type": "object", "required": ["status"], "properties": {"status": {"type": "string"}},
    "additionalProperties": False,
}  # fmt: skip
_STATUS_ANSWER: Schema = {
    "description": "The answer",
    "content": {"application/json": {
        # FastAPI would say that it is a text.
        "schema": {"type": "object", "$ref": f"{_COMPONENTS}ServerStatus"},
    }},
}  # fmt: skip
_PLAIN_TEXT = {"schema": {"type": "string"}}
_NAME = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": r"\S"}
_ABOUT = {
    "Memory-User": "the user whose memory it is; by default that of the token",
    "Memory-Agent": "read and write as this agent",
    "Memory-Session": "the current session",
    "Memory-Project": "store in this project, and show its memories and those without a project",
}
_SCOPE = [
    {"name": name, "in": "header", "schema": _NAME, "description": _ABOUT[name]}
    for name in SCOPE_HEADERS
]
_KEY = {
    "name": KEY_HEADER,
    "in": "header",
    "schema": {"type": "string", "pattern": r"\S"},
    "description": "a repeated request with this key stores once",
}
# What `FastAPI` is told about all of it.
ABOUT: dict[str, Any] = {
    "title": "memory-mesh",
    "version": "1",
    "description": "Memory for AI agents. Every verb of the command line that is not about the "
    "machine of the server. A text that is stored has a character that is displayed: spaces, "
    "invisible characters, and accents without a letter are not enough.",
    "contact": {"name": "memory-mesh"},
    "servers": [{"url": "/", "description": "This server"}],
    "openapi_tags": [
        {"name": STORE, "description": "Store memories, learnings, notes and traces."},
        {"name": READ, "description": "Search memories, and read one or many."},
        {"name": LEARN, "description": "Draw lessons, reflections and skills from memories."},
        {"name": CHANGE, "description": "Change, link, pin and archive memories."},
        {"name": REVIEW, "description": "Decide about quarantined memories and conflicts."},
        {"name": DELETE, "description": "Erase memories for good."},
        {"name": MAINTAIN, "description": "Tidy up, and read the log and the audit chains."},
        {"name": "Server", "description": "Whether the server runs, and its metrics."},
    ],
}


def path_of(operation: Operation) -> str:
    """Return the path of an operation, such as `/v1/lane/store`."""
    return f"/v1/{remote.name_in(Interface.REST, operation).replace(' ', '/')}"


def methods_of(operation: Operation) -> tuple[str, ...]:
    """Return the methods of the route of an operation: a query has no objects."""
    takes_objects = any(one.kind is Kind.OBJECT for one in operation.parameters)
    return ("POST",) if takes_objects or operation.effect is not Effect.READ else ("GET", "POST")


def described(operation: Operation, method: str, options: Options) -> dict[str, Any]:
    """Return what FastAPI is told about the route of an operation, with the longest content that
    the options allow."""
    schema = _arguments_of(operation, options)
    if method == "GET":
        query = (
            {
                "name": name,
                "in": "query",
                "required": name in schema.get("required", ()),
                "schema": about,
                "description": about["description"],
            }
            for name, about in schema["properties"].items()
        )
        extra: dict[str, object] = {"parameters": [*query, *_SCOPE]}
    else:
        schema |= _TOGETHER.get(operation.name, {})
        extra = {
            "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
            "parameters": [*_SCOPE, *([_KEY] if takes_key(operation) else [])],
        }
    name = operation.name.replace(" ", "_").replace("-", "_")
    return {
        "summary": remote.summary(operation),
        "operation_id": name if method == "POST" else f"{name}_by_query",
        "tags": [remote.headings()[operation.name]],
        "response_class": Json,
        "responses": {"default": _PROBLEM},
        "openapi_extra": {
            **extra,
            "x-memory-mesh-effect": str(operation.effect),
            "x-memory-mesh-extent": operation.extent.name.lower(),
        },
    }


def plain(name: str, summary: str, *statuses: int) -> dict[str, Any]:
    """Return what FastAPI is told about a route without arguments that needs no token."""
    return {"summary": summary, "operation_id": name, "tags": ["Server"], "response_class": Json,
            "responses": {**dict.fromkeys(statuses, _STATUS_ANSWER), "default": _PROBLEM},
            "openapi_extra": {"security": []}}  # fmt: skip


def complete(app: FastAPI) -> None:
    """Add to the description what all routes share."""
    made = app.openapi

    def whole() -> dict[str, Any]:
        schema = made()  # FastAPI makes it once
        components: Schema = {"Problem": SCHEMA, "ServerStatus": _STATUS}
        for operation in remote.exposed(Interface.REST):
            answered = _json(answer(operation, components))
            for route in schema["paths"][path_of(operation)].values():
                route["responses"]["200"] = answered
        for route in schema["paths"].values():
            for one in route.values():
                one["description"] = one["summary"]
                one["summary"] = one["summary"].partition(". ")[0].removesuffix(".")
        return {
            **schema,
            "components": {
                "schemas": components,
                "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            },
        }

    app.openapi = cache(whole)  # type: ignore[method-assign]  # as FastAPI documents it


def _json(schema: dict[str, object]) -> dict[str, object]:
    return {"description": "The answer", "content": {"application/json": {"schema": schema}}}


class Json(Response):
    """An answer that is JSON text already."""

    media_type = "application/json"


class Events(Response):
    """An answer that is a stream of events."""

    media_type = "text/event-stream"


METRICS: dict[str, Any] = {
    "summary": "Metrics in the format of Prometheus.", "operation_id": "metrics",
    "tags": ["Server"], "response_class": PlainTextResponse,
    "responses": {200: {"description": "The metrics", "content": {"text/plain": _PLAIN_TEXT}},
                  "default": _PROBLEM},
}  # fmt: skip
# Client generators take a body without a media type of their own as a file only if it is binary.
_LINES = {"schema": {"type": "string", "format": "binary"}}
INGEST: dict[str, Any] = {
    ("summary"): "Store a stream of memories, one JSON value a line, and report progress as "
                 "server-sent events.",
    "operation_id": "ingest", "tags": [STORE], "response_class": Events,
    "responses": {
        200: {"description": "Events with JSON: progress after each durable batch, then done or "
                             "error",
              "content": {"text/event-stream": _PLAIN_TEXT}},
        "default": _PROBLEM,
    },
    "openapi_extra": {
        "parameters": [*_SCOPE, _KEY],
        "requestBody": {"required": True, "content": {"application/x-ndjson": _LINES}},
    },
}  # fmt: skip


# --- arguments ---
# What the core checks besides what the table of operations says. A rule of two arguments stands
# in `allOf`: a generator of clients makes one type of an object with it, and none with `oneOf`.

_TIME: Schema = {
    "type": ["string", "null"], "anyOf": [{"format": "date"}, {"format": "date-time"}]}  # fmt: skip
_TEXT: Schema = {"type": "string", "pattern": r"\S", "maxLength": MAX_CHARS}
_ITEM: Schema = {
    "type": "object", "additionalProperties": True,
    "if": {"required": ["role"]},  # a message, which may have further keys
    "then": {"required": ["content"], "properties": {
        "role": {"enum": ["user", "assistant", "system", "developer", "tool"]},
        "content": {"type": ["string", "null"]},
    }},
    "else": {
        "required": ["content"], "propertyNames": {"enum": ["content", "metadata", "key"]},
        "properties": {
            "content": {"type": "string", "pattern": r"\S"},
            "metadata": {"type": ["object", "null"]},
            "key": {"type": ["string", "null"], "maxLength": 500, "pattern": r"\S"},
        },
    },
}  # fmt: skip
# By the name of a parameter, or of its operation and it.
_RULES: Mapping[str, Schema] = {
    "claim": {
        "required": ["subject", "predicate", "value"], "additionalProperties": False,
        "properties": {
            "subject": _TEXT, "predicate": _TEXT,
            "value": {**_TEXT, "type": ["string", "boolean", "number"]},
            "exclusive": {"type": "boolean"}, "scope": {"enum": ["global", "session"]},
            "session_id": {"type": "string", "pattern": r"\S"},
            "valid_from": _TIME, "valid_until": _TIME,
        },
        "if": {"required": ["session_id"]},
        "then": {"properties": {"scope": {"const": "session"}}},
        "else": {"properties": {"scope": {"const": "global"}}},
    },
    **{name: {"items": {
        "type": "string",
        "pattern": f"^(({'|'.join(ENTITY_TYPES)}):){mark}[^:]*[A-Za-z0-9][^:]*$"}}
       for name, mark in (("entities", "?"), ("entity_slugs", ""))},
    "filter": {"format": "filter"},
    **{f"{name} type": {"pattern": "^[a-z][a-z0-9_]{0,63}$", "not": {"enum": [*MADE_BY_US]}}
       for name in ("graph link", "graph unlink")},
    "provenance": {"properties": {"source": {"type": "string"}}},
    **{name: {"items": _ITEM} for name in ("store messages", "store-many items")},
    "when_to_use": {"minItems": 1},
    "yamo_text": {"format": "skill"},
}  # fmt: skip
_CONTENTS = frozenset({"content", "text", "yamo_text"})
# By operation.
_TOGETHER: Mapping[str, Schema] = {
    **{name: {"allOf": [{"oneOf": [{"required": ["id"]}, {"required": ["key"]}]}]}
       for name in ("get", "delete")},
    "delete-all": {"minProperties": 1},
    "forget": {"allOf": [{"oneOf": [{"required": ["id"]}, {"required": ["key"]}, {"anyOf": [
        {"required": [name]}
        for name in ("user_id", "agent_id", "session_id", "project", "memory_type")]}]}]},
    "heritage": {"minProperties": 2},
    "update": {"allOf": [{"anyOf": [{"required": ["content"]}, {"required": ["metadata"]}]}]},
}  # fmt: skip


def _arguments_of(operation: Operation, options: Options) -> Any:
    """Return the schema of the arguments of an operation, each with its rules."""
    parameters = (
        replace(one, max_=options.max_content_chars) if one.name in _CONTENTS else one
        for one in operation.parameters
    )
    schema: Any = remote.schema(replace(operation, parameters=tuple(parameters)))
    return {
        **schema,
        "properties": {
            name: _named(about | _RULES.get(f"{operation.name} {name}", _RULES.get(name, {})))
            for name, about in schema["properties"].items()
        },
    }


def _named(about: Schema) -> Schema:
    """Return the schema of a parameter; that of any object has a name, so that clients have one
    type for all of them."""
    items: Any = about.get("items", about)
    if items.get("type") != "object" or items.keys() & {"properties", "if"}:
        return about
    named = {**items, "$ref": f"{_COMPONENTS}JsonObject"}
    return {**about, "items": named} if "items" in about else named


# --- answers ---

_FACES: Mapping[str, type] = {
    "": Mesh, "graph": MemoryGraph, "lane": MemoryLane, "notes": MemoryNotes,
    "traces": MemoryTraces,
}  # fmt: skip
_NAMES = {TraceStep: "TraceStep"}  # of two records with one name
_MAPS = {"any": "JsonObject", "integer": "Counts", "number": "Numbers", "string": "Texts"}
_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _fields(record: Any) -> dict[str, Any]:
    """Return the type of each field of a record."""
    hints = get_type_hints(record, localns={"Json": object})
    return {one.name: hints[one.name] for one in fields(record)} if is_dataclass(record) else hints


def _made(name: str, *bases: type, **more: Any) -> Any:
    """Return a record with the fields of others and further ones. None takes a field away."""
    found = {part: kind for base in bases for part, kind in _fields(base).items()} | more
    return TypedDict(name, {part: kind for part, kind in found.items() if kind is not None})  # type: ignore[operator]


def _each(item: Any) -> Any:
    return GenericAlias(list, (item,))


_OPTIONAL = str | None
_CHAIN = {"chain": str, "kind": str, "user_id": _OPTIONAL, "agent_id": _OPTIONAL}
_HEAD = {"number": int, "block_hash": str, "seal": _OPTIONAL, "key_id": _OPTIONAL,
         "signature": _OPTIONAL}  # fmt: skip
_BLOCK = {**_fields(Block), "timestamp": str}
_HIT = _made("ExplainedResult", SearchResult, Explained, result=None)
_SOUND = _made("SoundChain", Sound, **_CHAIN, ok=bool, signature=str, signature_checked=bool)
_BROKEN = _made("BrokenChain", Broken, **_CHAIN, ok=bool)

# The fields of the views that answer with something else than a record, or with more than a list.
_ANSWERS: Mapping[str, dict[str, Any]] = {
    "blocks": {RESULTS: _each(_made("AuditBlock", **{one: _BLOCK[one] for one in EXPORT_NAMES}))},
    "context": {**_fields(GraphContext), "text": str},
    "explained": {**_fields(Explanation), "answers": _each(_HIT), "nearly": _each(_HIT)},
    "explained_memory": {
        **_fields(MemoryExplanation), "trust": _made("TrustParts", Trust, value=float)},
    "extracted": {
        **_fields(Extraction), "memories": None, "count": int, RESULTS: _each(MemoryRecord)},
    "fenced": {"text": str},
    "graph_found": {"meta": dict[str, object]},
    "heads": {RESULTS: _each(_made("ChainHead", **_CHAIN, **_HEAD))},
    "heritage": {"memory_id": str},
    "history": {"id": str},
    "junk_found": {"archived": int},
    "lane_found": {"entities": list[str]},
    "listed": {"next": _OPTIONAL},
    "notes_injected": {"prompt": str},
    "notes_matched": {RESULTS: _each(_made("NoteMatch", Relevance, score=int, rank=float))},
    "sightings": {"id": str},
    "stats": {"total_memories": int, "total_skills": int, "status": str,
              "by_status": dict[str, int]},
    "traces_listed": {"faults": list[Fault]},
    "unlinked": {"removed": bool},
    "verdicts": {RESULTS: _each(_SOUND | _BROKEN), "ok": bool},
}  # fmt: skip


def answer(operation: Operation, components: Schema) -> Schema:
    """Return the schema of what an operation answers, and add the records in it to the
    components. A method that returns a list is answered as `render.output.items` makes it."""
    face, _, method = operation.method.rpartition(".")
    kind = get_type_hints(getattr(_FACES[face], method))["return"]
    record = _record(kind)
    is_list, *members = (
        issubclass(get_origin(one) or one, list) for one in (kind, *get_args(kind))
    )
    listed = {"count": int, RESULTS: _each(record)} if is_list or any(members) else {}
    if not (parts := listed | _ANSWERS.get(operation.view, {})):
        return _schema(record, components)
    whole = _schema(_made(f"{_camel(operation)}Answer", **parts), components)
    return {"anyOf": [_schema(record, components), whole]} if any(members) else whole


def _record(kind: Any) -> Any:
    """Return the first record in a type, such as that of a list or of a class of lists."""
    if is_dataclass(kind):
        return kind
    return next(
        filter(None, map(_record, (*get_args(kind), *getattr(kind, "__orig_bases__", ())))), None
    )


def _schema(kind: Any, components: Schema) -> Schema:
    """Return the schema of a type, without the null that answers leave out."""
    origin, inner = get_origin(kind) or kind, [one for one in get_args(kind) if one is not NoneType]
    if kind is object or list[object] in inner:  # any JSON
        return {}
    if origin in (Union, UnionType):
        parts = [_schema(one, components) for one in inner]
        return parts[0] if len(parts) == 1 else {"anyOf": parts}
    if is_dataclass(kind) or is_typeddict(kind):
        return _reference(kind, components)
    if issubclass(origin, Enum):
        return {"type": "string", "enum": [str(one.value) for one in origin]}
    if issubclass(origin, Mapping):
        return _map(_schema(inner[1], components), components)
    if origin in _SCALARS:
        return {"type": _SCALARS[origin]}
    is_pair = origin is tuple and Ellipsis not in inner  # such as of ids
    length = {"minItems": len(inner), "maxItems": len(inner)} if is_pair else {}
    return {"type": "array", "items": _schema(inner[0], components), **length}


def _map(values: Schema, components: Schema) -> Schema:
    """Return a reference to the schema of objects with any names, so that clients have one type
    for all of them."""
    kind = values.get("type") or str(values.get("$ref", "any")).rpartition("/")[2]
    name = _MAPS.get(str(kind), f"{kind}s")
    components[name] = {"type": "object", "additionalProperties": values}
    return {"$ref": f"{_COMPONENTS}{name}"}


def _reference(record: Any, components: Schema) -> Schema:
    name = _NAMES.get(record, record.__name__)
    if name not in components:
        components[name] = {}  # a record may contain others of its kind
        found = {one: kind for one, kind in _fields(record).items() if one not in LOCAL_FIELDS}
        about = (record.__doc__ or "") if is_dataclass(record) else ""
        components[name] = {
            "type": "object",
            **({"description": " ".join(about.partition("\n\n")[0].split())} if about else {}),
            "properties": {one: _schema(kind, components) for one, kind in found.items()},
            "required": [one for one, kind in found.items() if NoneType not in get_args(kind)],
            "additionalProperties": False,
        }
    return {"$ref": f"{_COMPONENTS}{name}"}


def _camel(operation: Operation) -> str:
    return operation.name.replace("-", " ").title().replace(" ", "")


# --- the page ---


def page(spec: Mapping[str, Any]) -> str:
    """Return the description as a page without scripts: routes by tag, and what they answer."""
    lines = [
        f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>{spec['info']['title']}</title>",
        "<link rel=stylesheet href=/console/style.css><main>",
        f"<h1>{spec['info']['title']}</h1><p>{escape(spec['info']['description'])} "
        "<a href=/openapi.json>openapi.json</a></p>",
    ]
    for tag in spec["tags"]:
        lines.append(f"<h2>{tag['name']}</h2><p>{escape(tag['description'])}</p>")
        for path, methods in spec["paths"].items():
            route = next(reversed(methods.values()))  # that with a body, if there is one
            if tag["name"] in route["tags"]:
                names = " ".join(sorted(map(str.upper, methods)))
                lines.append(f"<h3><code>{names} {path}</code></h3>{_arguments(route)}")
    lines += (
        f"<h3 id={name}>{name}</h3><p>{escape(schema.get('description', ''))}</p>{_listed(schema)}"
        for name, schema in spec["components"]["schemas"].items()
    )
    return "\n".join(lines)


def _arguments(route: Mapping[str, Any]) -> str:
    contents = route.get("requestBody", {}).get("content", {}), route["responses"]["200"]["content"]
    bodies, answers = ([one["schema"] for one in content.values()] for content in contents)
    listed, answered = "".join(map(_listed, bodies)), ", ".join(map(_type, answers))
    return f"<p>{escape(route['description'])}</p>{listed}<p>Answers {answered}.</p>"


def _listed(schema: Mapping[str, Any]) -> str:
    rows = (
        f"<li><b>{name}</b>{' (required)' if name in schema.get('required', ()) else ''}: "
        f"{_type(one)}. {escape(one.get('description', ''))}</li>"
        for name, one in schema.get("properties", {}).items()
    )
    return f"<ul>{''.join(rows)}</ul>"


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type of a value in words, with a link to each record."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"<a href=#{name}>{name}</a>"
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    if alternatives := schema.get("anyOf", ()):
        return " or ".join(map(_type, alternatives))
    if "enum" in schema:
        return escape(" or ".join(map(str, schema["enum"])))
    return str(schema.get("type", "any JSON"))
