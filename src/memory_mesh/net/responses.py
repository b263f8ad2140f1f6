"""What a server answered: read within limits, and turned into a JSON object or the error that it is."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from memory_mesh.core.errors import CallError, CallRefused, RateLimited
from memory_mesh.core.model.columns import Json
from memory_mesh.net.retrying import Later, asked_for

MOST_BYTES = 32 * 1024 * 1024
_LEVELS = 20  # of what a server says
_QUOTED = 200  # characters of what a server says
_AGAIN = frozenset({408, 429, 500, 502, 503, 504, 529})
_BUSY = frozenset({429, 503, 529})
_REMEDIES = {
    401: "check the API key",
    403: "check the API key and what it may do",
    404: "check the URL and the name of the model",
}
_PACKINGS = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd", "compress"})
_POINTED_TO = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//(?:[^/?#@]*@)?([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]+\])", re.IGNORECASE)

# Takes secrets of ours out of a text of theirs.
Hide = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers by their names in lower case, and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def received(status: int, headers: Iterable[tuple[bytes, bytes]], chunks: Iterable[bytes], address: str) -> Answer:
    """Take an answer in, but not without end, and packed in no way: a small packet can hold a very large one."""
    named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
    if (packed := named.get("content-encoding", "identity").strip().lower()) not in ("", "identity"):
        # A word that is none of these is the server's own, and may quote a key of ours.
        known = f" as {packed!r}" if packed in _PACKINGS else ""
        raise CallError(f"{address} answered packed{known}", expected="an answer that is not packed")
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > MOST_BYTES:
            raise CallError(f"{address} answered without end", expected=f"at most {MOST_BYTES // 2**20} MiB")
    return Answer(status, named, bytes(body))


def understood(answer: Answer, address: str, hide: Hide, clock: float) -> dict[str, Json]:
    """The JSON object that was asked for, or the error that came in its place; `Later` where another try may help."""
    if 200 <= answer.status < 300:
        return _object(answer.body, address)
    if 300 <= answer.status < 400:
        raise _redirect(answer, address, hide)
    said = _hidden(_json_or_text(answer.body), hide)
    message = _message(said)
    what = f"{address} answered {answer.status}" + (f": {hide(message)[:_QUOTED]}" if message else "")
    if answer.status in _AGAIN:
        _later(answer, what, asked_for(answer.headers, clock))
    if 400 <= answer.status < 500:
        raise CallRefused(what, remedy=_REMEDIES.get(answer.status, ""), status=answer.status, said=said)
    raise CallError(what)


def _later(answer: Answer, what: str, after: float | None) -> NoReturn:
    if answer.status in _BUSY and (after is not None or answer.status != 503):
        when = "later" if after is None else f"in {after:.0f} s"
        raise Later(RateLimited(what, remedy=f"try again {when}"), after)
    raise Later(CallError(what, remedy="try again later"), after)


def _object(body: bytes, address: str) -> dict[str, Json]:
    try:
        value = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        # Without its cause, which holds the whole answer.
        raise CallError(f"{address} answered what is no JSON: {error!s:.80}", expected="a JSON object") from None
    if not isinstance(value, dict):
        raise CallError(f"{address} answered JSON of another kind", expected="a JSON object")
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def _redirect(answer: Answer, address: str, hide: Hide) -> CallRefused:
    found = _POINTED_TO.match(answer.headers.get("location", ""))
    where = f"to {hide(found[1])}" if found else "to another path"
    return CallRefused(
        f"{address} points {where} ({answer.status}), and that is not followed",
        remedy="give the URL that it really has",
        status=answer.status,
    )


def _json_or_text(body: bytes) -> Json:
    try:
        value: Json = json.loads(body)
    except (ValueError, RecursionError):
        return body[:4096].decode("utf-8", "replace")
    return value


def _hidden(said: Json, hide: Hide, levels: int = _LEVELS) -> Json:
    """What was said without secrets of ours, and not deeper than anybody looks."""
    if isinstance(said, str):
        return hide(said)
    if isinstance(said, list | dict) and not levels:
        return None
    if isinstance(said, list):
        return [_hidden(part, hide, levels - 1) for part in said]
    if isinstance(said, dict):
        return {hide(name): _hidden(part, hide, levels - 1) for name, part in said.items()}
    return said


def _message(said: Json) -> str:
    """The sentence in it: providers put it under `error`, `message` or `detail`, one within another."""
    for _ in range(4):
        if isinstance(said, list) and said:
            said = said[0]
        if isinstance(said, dict):
            said = next((said[name] for name in ("error", "message", "detail", "msg") if said.get(name)), None)
    if not isinstance(said, str) or said.lstrip().startswith("<"):  # a page for people
        return ""
    return "".join(char if char.isprintable() else " " for char in " ".join(said.split()))
