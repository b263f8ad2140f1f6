"""The description of the server in OpenAPI: the arguments of each route are those of the table of operations."""

from typing import Any

from fastapi import FastAPI
from starlette.responses import Response

from memory_mesh.interfaces import remote
from memory_mesh.interfaces.operation import Effect, Interface, Operation
from memory_mesh.interfaces.rest.access import SCOPE_HEADERS
from memory_mesh.interfaces.rest.problems import SCHEMA
from memory_mesh.interfaces.rest.requests import KEY_HEADER, takes_key

_SHAPE = {"$ref": "#/components/schemas/Problem"}
_PROBLEM = {"description": "An error", "content": {"application/problem+json": {"schema": _SHAPE}}}
_PLAIN_TEXT = {"schema": {"type": "string"}}
_NAME = {"type": "string", "minLength": 1, "maxLength": 200}
_ABOUT = {
    "Memory-User": "the user whose memory it is; by default that of the token",
    "Memory-Agent": "read and write as this agent",
    "Memory-Session": "the current session",
    "Memory-Project": "store in this project, and show its memories and those without a project",
}
_SCOPE = [{"name": name, "in": "header", "schema": _NAME, "description": _ABOUT[name]} for name in SCOPE_HEADERS]
_KEY = {"name": KEY_HEADER, "in": "header", "schema": _NAME, "description": "a repeated request with this key stores once"}
_SECURITY: list[dict[str, list[str]]] = [{"bearer": []}]


def path_of(operation: Operation) -> str:
    """Return the path of an operation, such as `/v1/lane/store`."""
    return f"/v1/{remote.name_in(Interface.REST, operation).replace(' ', '/')}"


def described(operation: Operation, method: str) -> dict[str, Any]:
    """Return what FastAPI is told about the route of an operation."""
    schema: Any = remote.schema(operation)
    extra: dict[str, object]
    if method == "GET":
        required = schema.get("required", [])
        query = [
            {"name": name, "in": "query", "required": name in required, "schema": about, "description": about["description"]}
            for name, about in schema["properties"].items()
        ]
        extra = {"parameters": [*query, *_SCOPE]}
    else:
        body = {"required": True, "content": {"application/json": {"schema": schema}}}
        extra = {"requestBody": body, "parameters": [*_SCOPE, *([_KEY] if takes_key(operation) else [])]}
    name = operation.name.replace(" ", "_").replace("-", "_")
    marks = {"x-memory-mesh-effect": str(operation.effect), "x-memory-mesh-extent": operation.extent.name.lower()}
    return {
        "summary": remote.summary(operation),
        "operation_id": name if method == "POST" or operation.effect is not Effect.READ else f"{name}_by_query",
        "tags": [operation.heading or "More"],
        "response_class": _Json,
        "responses": {200: _json({"type": "object"}), "default": _PROBLEM},
        "openapi_extra": {**extra, **marks, "security": _SECURITY},
    }


def plain(name: str, summary: str) -> dict[str, Any]:
    """Return what FastAPI is told about a route without arguments that needs no token."""
    return {"summary": summary, "operation_id": name, "tags": ["Server"], "response_class": _Json,
            "responses": {200: _json({"type": "object"}), "default": _PROBLEM}}  # fmt: skip


def complete(app: FastAPI) -> None:
    """Add to the description what all routes share."""
    made = app.openapi

    def whole() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = made()
            parts = schema.setdefault("components", {})
            parts.setdefault("schemas", {})["Problem"] = SCHEMA
            parts["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = whole  # type: ignore[method-assign]  # as FastAPI documents it


def _json(schema: dict[str, object]) -> dict[str, object]:
    return {"description": "The answer", "content": {"application/json": {"schema": schema}}}


class _Json(Response):
    media_type = "application/json"


class _Text(Response):
    media_type = "text/plain"


class _Events(Response):
    media_type = "text/event-stream"


METRICS: dict[str, Any] = {
    "summary": "Metrics in the format of Prometheus.", "operation_id": "metrics", "tags": ["Server"], "response_class": _Text,
    "responses": {200: {"description": "The metrics", "content": {"text/plain": _PLAIN_TEXT}}, "default": _PROBLEM},
    "openapi_extra": {"security": _SECURITY},
}  # fmt: skip
INGEST: dict[str, Any] = {
    "summary": "Store a stream of memories, one JSON value a line, and report progress as server-sent events.",
    "operation_id": "ingest", "tags": ["Store"], "response_class": _Events,
    "responses": {
        200: {"description": "Events: progress after each durable batch, then done or error",
              "content": {"text/event-stream": _PLAIN_TEXT}},
        "default": _PROBLEM,
    },
    "openapi_extra": {
        "parameters": [*_SCOPE, _KEY], "security": _SECURITY,
        "requestBody": {"required": True, "content": {"application/x-ndjson": _PLAIN_TEXT}},
    },
}  # fmt: skip
