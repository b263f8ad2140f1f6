"""Responses of a server: read within limits, and turned into a JSON object or an error."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import NoReturn

from memory_mesh.core.errors import CallError, CallRefused, RateLimited
from memory_mesh.core.model import Json

MAX_BYTES = 32 * 1024 * 1024
_MAX_DEPTH = 20  # of the JSON in an error response
_MAX_QUOTED = 200  # characters of a server's message in our errors
_RETRYABLE = frozenset({408, 429, 500, 502, 503, 504, 529})
_BUSY = frozenset({429, 503, 529})
_REMEDIES = {
    401: "check the API key",
    403: "check the API key and its permissions",
    404: "check the URL and the name of the model",
}
_COMPRESSIONS = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd", "compress"})
_REDIRECT_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//(?:[^/?#@]*@)?([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]+\])", re.IGNORECASE)

# Removes our secrets from a text of the server.
Hide = Callable[[str], str]


class Retryable(Exception):
    """A failed call that may succeed when it is repeated: the error to raise otherwise, and the seconds of `Retry-After`."""

    def __init__(self, error: CallError, after: float | None = None) -> None:
        super().__init__(str(error))
        self.error, self.after = error, after


@dataclass(frozen=True, slots=True)
class Response:
    """Status, headers by lower-case name, and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def read_response(status: int, headers: Iterable[tuple[bytes, bytes]], chunks: Iterable[bytes], address: str) -> Response:
    """Read a response of limited size. Compressed ones are refused: a few bytes could expand to gigabytes."""
    named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
    if (encoding := named.get("content-encoding", "identity").strip().lower()) not in ("", "identity"):
        # Only known names are quoted: the server chose this text, and may have put our key into it.
        known = f" ({encoding})" if encoding in _COMPRESSIONS else ""
        raise CallError(f"{address} sent a compressed response{known}", expected="an uncompressed response")
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > MAX_BYTES:
            raise CallError(f"the response of {address} is too large", expected=f"at most {MAX_BYTES // 2**20} MiB")
    return Response(status, named, bytes(body))


def parse_response(response: Response, address: str, hide: Hide, clock: float) -> dict[str, Json]:
    """Return the JSON object of a successful response; raise `Retryable` or the final error for any other."""
    if 200 <= response.status < 300:
        return _parse_object(response.body, address)
    if 300 <= response.status < 400:
        raise _redirect_error(response, address, hide)
    content = _without_secrets(_json_or_text(response.body), hide)
    message = _find_message(content)
    what = f"{address} answered {response.status}" + (f": {hide(message)[:_MAX_QUOTED]}" if message else "")
    if response.status in _RETRYABLE:
        raise _retryable(response.status, what, _retry_after(response.headers, clock))
    if 400 <= response.status < 500:
        raise CallRefused(what, remedy=_REMEDIES.get(response.status, ""), status=response.status, said=content)
    raise CallError(what)


def _retryable(status: int, what: str, after: float | None) -> Retryable:
    if status in _BUSY and (after is not None or status != 503):
        when = "later" if after is None else f"in {after:.0f} s"
        return Retryable(RateLimited(what, remedy=f"try again {when}"), after)
    return Retryable(CallError(what, remedy="try again later"), after)


def _retry_after(headers: Mapping[str, str], clock: float) -> float | None:
    """Return the seconds of `Retry-After`: a number, or a date, compared with the server's own clock when it sends one."""
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        date, server_time = _parse_date(text), _parse_date(headers.get("date", ""))
        return None if date is None else max(0.0, date - (clock if server_time is None else server_time))
    return seconds if isfinite(seconds) and seconds >= 0 else None


def _parse_date(text: str) -> float | None:
    from datetime import UTC  # both are rarely needed, and `email` imports a large part of the standard library
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(text)
    except (ValueError, IndexError, TypeError, OverflowError):  # all of these are raised for invalid dates
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _parse_object(body: bytes, address: str) -> dict[str, Json]:
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        # Without the cause, which holds the whole body.
        raise CallError(f"{address} answered with invalid JSON: {error!s:.80}", expected="a JSON object") from None
    if not isinstance(value, dict):
        raise CallError(f"{address} answered with JSON that is not an object", expected="a JSON object")
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not allowed")


def _redirect_error(response: Response, address: str, hide: Hide) -> CallRefused:
    found = _REDIRECT_HOST.match(response.headers.get("location", ""))
    target = hide(found[1]) if found else "another path"
    return CallRefused(
        f"{address} redirects to {target} ({response.status}), and redirects are not followed",
        remedy="set the URL that the redirect leads to",
        status=response.status,
    )


def _json_or_text(body: bytes) -> Json:
    try:
        value: Json = json.loads(body)
    except (ValueError, RecursionError):
        return body[:4096].decode("utf-8", "replace")
    return value


def _without_secrets(content: Json, hide: Hide, depth: int = _MAX_DEPTH) -> Json:
    """Return the content of an error response without our secrets, cut off below `depth` levels."""
    if isinstance(content, str):
        return hide(content)
    if isinstance(content, list | dict) and not depth:
        return None
    if isinstance(content, list):
        return [_without_secrets(part, hide, depth - 1) for part in content]
    if isinstance(content, dict):
        return {hide(name): _without_secrets(part, hide, depth - 1) for name, part in content.items()}
    return content


def _find_message(content: Json) -> str:
    """Return the message in an error response: providers nest it under `error`, `message` or `detail`."""
    for _ in range(4):
        if isinstance(content, list) and content:
            content = content[0]
        if isinstance(content, dict):
            content = next((content[name] for name in ("error", "message", "detail", "msg") if content.get(name)), None)
    if not isinstance(content, str) or content.lstrip().startswith("<"):  # an HTML page
        return ""
    return "".join(char if char.isprintable() else " " for char in " ".join(content.split()))
