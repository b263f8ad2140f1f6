"""Errors as `application/problem+json` (RFC 9457), with the status of the one table in `render`."""

from starlette.exceptions import HTTPException
from starlette.responses import Response

from memory_mesh.core.errors import CallError, MemoryMeshError, ModelMismatch, StoreError
from memory_mesh.interfaces.render import one_line, outcome, to_json

_MEDIA_TYPE = "application/problem+json"
_ABOUT_THE_SERVER = (StoreError, ModelMismatch, CallError)  # whatever their status
_UNAUTHORIZED, _TOO_MANY_REQUESTS, _SERVER_ERROR = 401, 429, 500

SCHEMA: dict[str, object] = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "urn:memory-mesh:error: and the name of the error"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "what": {"type": "string", "description": "what was wrong"},
        "expected": {"type": "string", "description": "what was expected"},
        "remedy": {"type": "string", "description": "what to do"},
    },
}


def problem_of(error: MemoryMeshError) -> dict[str, object]:
    """Return an error for a client. Of an error of the server only its kind: its text may name files of the server."""
    status = outcome(error).http_status
    title = one_line((type(error).__doc__ or "").partition("\n")[0])
    problem: dict[str, object] = {"type": f"urn:memory-mesh:error:{type(error).__name__}", "title": title, "status": status}
    if status >= _SERVER_ERROR or isinstance(error, _ABOUT_THE_SERVER):
        return {**problem, "detail": title}
    parts = {"what": error.what, "expected": error.expected, "remedy": error.remedy}
    return {**problem, "detail": one_line(str(error)), **{name: one_line(text) for name, text in parts.items() if text}}


def unexpected() -> dict[str, object]:
    """Return the problem of an error that is a mistake of ours."""
    title = "The server made a mistake; its log has the details."
    return {"type": "urn:memory-mesh:error:Unexpected", "title": title, "status": _SERVER_ERROR, "detail": title}


def from_http(error: HTTPException) -> dict[str, object]:
    """Return the problem of an unknown route or method, or of a body of another type."""
    title, why = str(HTTPException(error.status_code).detail), str(error.detail)  # the first is the phrase of the status
    detail = title if why == title else f"{title}: {why}"
    return {"type": "about:blank", "title": title, "status": error.status_code, "detail": f"{detail}; see /openapi.json"}


def response(problem: dict[str, object], headers: dict[str, str] | None = None) -> Response:
    """Return the response that carries a problem."""
    status = int(str(problem["status"]))
    extra = {"WWW-Authenticate": "Bearer"} if status == _UNAUTHORIZED else {}
    extra |= {"Retry-After": "60"} if status == _TOO_MANY_REQUESTS else {}
    return Response(to_json(problem), status, {**extra, **(headers or {})}, media_type=_MEDIA_TYPE)
