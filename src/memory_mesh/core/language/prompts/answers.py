"""Fence memories for a model, read the JSON object of its reply, and check that a model answers.

All replies pass through `read_object`; other code never handles the text of a model. A model may
put its answer into a code block or write a sentence before it. Any other reply that is not exactly
one object is refused: the text that the model was reading may have smuggled in a second, different
one.
"""

import json
import re
from collections.abc import Iterator, Sequence

from memory_mesh.core.errors import AnswerUnreadable
from memory_mesh.core.language.safety.fence import MEMORY_TAG, fence, unescape
from memory_mesh.core.model import Json
from memory_mesh.core.ports import Prompt, Reply
from memory_mesh.core.text import visible

LESS_TEXT = "allow more tokens, or give it less text at once"
MAX_LENGTH, MAX_DEPTH, MAX_DIGITS = 1_000_000, 32, 300

_STRUCTURE = re.compile(r'["\\{}\[\]]')
_THOUGHTS_END = "</think>"


def object_schema(properties: dict[str, Json]) -> dict[str, Json]:
    """Return the JSON schema of an object with exactly these properties."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def fenced_memories(texts: Sequence[str], boundary: str) -> list[str]:
    """Return memories between tags with their numbers, from 1."""
    return [
        fence(text, boundary, tag=MEMORY_TAG, attributes={"number": str(n)})
        for n, text in enumerate(texts, start=1)
    ]


def read_answer(reply: Reply, *, remedy: str = "allow more tokens") -> dict[str, Json]:
    """Return the JSON object of a complete reply, or raise `AnswerUnreadable`."""
    if not reply.complete:
        raise AnswerUnreadable("the model's answer was cut off", remedy=remedy)
    return read_object(reply.text)


def read_list(reply: Reply, name: str, *, remedy: str = "allow more tokens") -> list[Json]:
    """Return the list of that name in a complete reply, or raise `AnswerUnreadable`."""
    raw = read_answer(reply, remedy=remedy).get(name)
    if not isinstance(raw, list):
        raise AnswerUnreadable(
            f"the model's answer has no list of {name}",
            expected=f"an object with a list named `{name}`",
        )
    return raw


def clean_text(raw: Json) -> str:
    """Return a text of an answer without the marks of the fence; empty for another value."""
    return visible(unescape(raw)).strip() if isinstance(raw, str) else ""


def clean_line(raw: Json) -> str:
    """Return a text of an answer on one line; empty for another value."""
    return " ".join(clean_text(raw).split())


def read_object(text: str) -> dict[str, Json]:
    """Return the only JSON object of a reply, or raise `AnswerUnreadable`."""
    if len(text) > MAX_LENGTH:
        raise _unreadable(f"it has {len(text):,} characters")
    # Some models write their thoughts first. Drafts in them are not answers.
    before, _, after = text.partition(_THOUGHTS_END)
    thoughts = "{" in after and _THOUGHTS_END not in after and not before.lstrip().startswith("{")
    objects = {
        json.dumps(value, sort_keys=True): value for value in _objects(after if thoughts else text)
    }
    if len(objects) != 1:
        raise _unreadable(f"it contains {len(objects) or 'no'} JSON objects")
    return objects.popitem()[1]


def _objects(text: str) -> Iterator[dict[str, Json]]:
    for start, end in _groups(text):
        group = text[start:end]
        try:
            yield _DECODER.decode(group)
        except json.JSONDecodeError as error:
            if '"' in group:  # without a quote it is a brace in a sentence
                raise _unreadable("it contains broken JSON") from error


def _groups(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of outermost pairs of braces. Quotes count only inside them: a sentence
    may contain a single one."""
    depth = start = skip = 0
    quoted = False
    for match in _STRUCTURE.finditer(text):
        at, sign = match.start(), match.group()
        if at < skip or not (depth or sign == "{"):
            continue
        if quoted:
            skip = at + 2 if sign == "\\" else skip
            quoted = sign != '"'
        elif sign == '"':
            quoted = True
        elif sign in "{[":
            start = start if depth else at
            depth += 1
            if depth > MAX_DEPTH:
                raise _unreadable("it is nested too deeply")
        elif sign in "}]":
            depth -= 1
            if not depth:
                yield start, at + 1
    if depth:
        raise _unreadable("it breaks off")


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Build an object. A repeated key with two values is refused, because parsers differ in
    which one they take."""
    result: dict[str, Json] = {}
    for key, value in pairs:
        if key in result and json.dumps(result[key], sort_keys=True) != json.dumps(
            value, sort_keys=True
        ):
            raise _unreadable("it repeats a key with another value")
        result[key] = value
    return result


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise _unreadable("one of its numbers has too many digits")
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    return number if abs(number) != float("inf") else _not_finite(digits)


def _not_finite(word: str) -> float:
    raise _unreadable("one of its numbers is not finite")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_not_finite, parse_int=_integer, parse_float=_float
)


def _unreadable(what: str) -> AnswerUnreadable:
    # The message does not quote the reply, which may contain private text.
    return AnswerUnreadable(
        f"the model's answer cannot be read: {what}",
        expected="one JSON object of the requested schema",
    )


# --- the connection check ---


def build_check_prompt() -> Prompt:
    """Return a prompt that takes a few tokens, to check that a model answers in the requested
    form."""
    return Prompt(
        operation="check",
        system='You check a connection. Answer with JSON and nothing else: {"ready": true}',
        user="Are you ready?",
        schema=object_schema({"ready": {"type": "boolean"}}),
        max_tokens=256,  # a model that thinks first needs more than the answer
    )


def read_check_reply(reply: Reply) -> bool:
    """Return the `ready` of the reply."""
    ready = read_object(reply.text).get("ready")
    if not isinstance(ready, bool):
        raise AnswerUnreadable(
            "the model answered in another form than requested", expected='{"ready": true}'
        )
    return ready
