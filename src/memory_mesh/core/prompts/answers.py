"""The one reader of JSON out of what a language model says. Behind it nobody handles a model's own words.

A model may put its answer into a code block or say a sentence before it. Everything else that is not exactly one object is
refused: a second, different one may have been smuggled in by the text that the model was reading.
"""

import json
import re
from collections.abc import Iterator

from memory_mesh.core.errors import AnswerUnreadable
from memory_mesh.core.model.columns import Json

MOST_CHARS, MOST_DEPTH, MOST_DIGITS = 1_000_000, 32, 300

_SIGN = re.compile(r'["\\{}\[\]]')
_THOUGHT = "</think>"


def read_object(text: str) -> dict[str, Json]:
    """The one JSON object of an answer, or `AnswerUnreadable`."""
    if len(text) > MOST_CHARS:
        raise _unreadable(f"it has {len(text):,} characters")
    found = {json.dumps(value, sort_keys=True): value for value in _objects(_without_thoughts(text))}
    if len(found) != 1:
        raise _unreadable(f"it holds {len(found) or 'no'} JSON objects")
    return found.popitem()[1]


def _without_thoughts(text: str) -> str:
    """Some models think aloud first. Their drafts are no answers."""
    before, _, after = text.partition(_THOUGHT)
    return after if "{" in after and _THOUGHT not in after and not before.lstrip().startswith("{") else text


def _objects(text: str) -> Iterator[dict[str, Json]]:
    for start, end in _groups(text):
        group = text[start:end]
        try:
            value = json.loads(group, object_pairs_hook=_once, parse_constant=_no_number, parse_int=_whole, parse_float=_finite)
        except json.JSONDecodeError as error:
            if '"' in group:
                raise _unreadable("it holds broken JSON") from error
            continue  # a brace in a sentence
        yield value


def _groups(text: str) -> Iterator[tuple[int, int]]:
    """Where outermost pairs of braces stand. Quotes count only within them: a sentence may hold a single one."""
    depth = start = skip = 0
    quoted = False
    for found in _SIGN.finditer(text):
        at, sign = found.start(), found.group()
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
            if depth > MOST_DEPTH:
                raise _unreadable("it is nested too deeply")
        elif sign in "}]":
            depth -= 1
            if not depth:
                yield start, at + 1
    if depth:
        raise _unreadable("it breaks off")


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """An object. A key that stands twice with two values says two things, and readers differ in which they take."""
    kept: dict[str, Json] = {}
    for key, value in pairs:
        if key in kept and json.dumps(kept[key], sort_keys=True) != json.dumps(value, sort_keys=True):
            raise _unreadable("one of its keys stands twice")
        kept[key] = value
    return kept


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise _unreadable("one of its numbers has too many digits")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    return number if abs(number) != float("inf") else _no_number(digits)


def _no_number(word: str) -> float:
    raise _unreadable("one of its numbers is none")


def _unreadable(what: str) -> AnswerUnreadable:
    # What the model said stays out of the message: it may quote what is private.
    return AnswerUnreadable(
        f"the model's answer cannot be read: {what}", expected="one JSON object of the schema that was asked for"
    )
