"""The export of memories: a first line that names the format and its version, then one memory a line, as JSON.

docs/transfer.md is the description of the format. A later version may add fields; this one refuses fields that it does not know,
because an import must not lose them without a word.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from memory_mesh.core.checks import fraction, whole_number
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model import BY_NAME, Change, Memory, MemoryRecord, MemoryType, Reach, Status, Value, fault, parse_time

FORMAT, VERSION = "memory-mesh memories", 1

# Not part of a memory, or made anew by an import. The revision comes with the history.
_LEFT_OUT = {"pending", "sealed", "redactions", "revision"}
_NAMES = (*(one.name for one in fields(MemoryRecord) if one.name not in _LEFT_OUT), "reach")
_REQUIRED = ("id", "content", "created_at", "updated_at")
_CHANGE = {"number": "revision", "created_at": "at", "action": "action", "agent_id": "by", "why": "why"}
_CHANGE |= {"before": "before", "detail": "detail"}
_EXPECTED = "a line of memory-mesh export"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A memory of an export: its fields, checked one by one, and its history, oldest first (None: not exported)."""

    values: dict[str, Any]
    history: tuple[dict[str, Any], ...] | None = None


def header() -> str:
    """Return the first line of an export."""
    return json.dumps({"format": FORMAT, "version": VERSION})


def check_header(text: str) -> None:
    """Raise `InvalidInput` unless this is the first line of an export that this version can read."""
    values = _object(text)
    if values.get("format") != FORMAT:
        raise InvalidInput("it is not the first line of an export", expected=header())
    if values.get("version") != VERSION:
        what = f"the export has version {shown(values.get('version'))}"
        raise InvalidInput(what, expected=f"version {VERSION}", remedy="import it with a newer memory-mesh")


def line_of(memory: Memory, history: Sequence[Change] | None = None) -> str:
    """Return a memory as one line. ASCII only: some readers end a line at certain Unicode characters."""
    values = values_of(memory)
    if history is not None:
        changes = ({key: getattr(one, name) for name, key in _CHANGE.items()} for one in history)
        values |= {"revision": memory.revision, "history": [_given(one) for one in changes]}
    return json.dumps(values)


def values_of(memory: Memory) -> dict[str, Value]:
    """Return the exported fields of a memory, without those that are empty."""
    return _given({name: getattr(memory, name) for name in _NAMES})


def read_line(text: str) -> Line:
    """Return the memory of a line, or raise `InvalidInput`."""
    values = _object(text)
    revision, history = values.pop("revision", None), values.pop("history", None)
    if unknown := sorted(values.keys() - set(_NAMES)):
        raise InvalidInput(f"unknown field {shown(unknown[0])}", expected=_EXPECTED)
    if missing := [name for name in _REQUIRED if values.get(name) is None]:
        raise InvalidInput(f"{missing[0]} is missing", expected=_EXPECTED)
    return Line(values={name: _checked(name, value) for name, value in values.items()}, history=_history(revision, history))


def _history(revision: object, history: object) -> tuple[dict[str, Any], ...] | None:
    if history is None:
        return None
    names = {key: name for name, key in _CHANGE.items()}
    if not isinstance(history, list) or not all(isinstance(one, dict) and one.keys() <= names.keys() for one in history):
        raise InvalidInput("history is not a list of changes", expected=_EXPECTED)
    changes = tuple({names[key]: value for key, value in one.items()} for one in history)
    if [one.get("number") for one in changes] != list(range(2, len(changes) + 2)) or revision != len(changes) + 1:
        raise InvalidInput("the history has not every revision once, in order", expected=_EXPECTED)
    return tuple(_change(one) for one in changes)


def _change(change: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(before := change.get("before", {}), dict) or not before.keys() <= {one.name for one in fields(Memory)}:
        raise InvalidInput("the history has fields that no memory has", expected=_EXPECTED)
    if any(name not in change for name in ("action", "created_at")):
        raise InvalidInput("a change of the history has no action or time", expected=_EXPECTED)
    checked = {name: _checked(name, value) for name, value in change.items()}
    return {**checked, "before": {name: None if value is None else _checked(name, value) for name, value in before.items()}}


def _object(text: object) -> dict[str, Any]:
    if not isinstance(text, str):
        raise InvalidInput(f"it is {type(text).__name__}", expected="text")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("it is not JSON", expected=_EXPECTED) from None
    if not isinstance(values, dict):
        raise InvalidInput(f"it is {type(values).__name__}", expected="a JSON object")
    return values


def _checked(name: str, value: Any) -> Any:
    if wrong := fault(BY_NAME[name], value):
        raise InvalidInput(wrong)
    check = _CHECKS.get(name)
    return check(name, value) if check else value


def _one_of(*words: str) -> Callable[[str, Any], Any]:
    def check(name: str, value: Any) -> Any:
        if value not in words:
            raise InvalidInput(f"{name} is {shown(value)}", expected=f"one of {', '.join(words)}")
        return value

    return check


def _count(name: str, value: Any) -> Any:
    return whole_number(name, value, min_=0)


def _time(name: str, value: Any) -> Any:
    return parse_time(value, name)


def _text(name: str, value: Any) -> Any:
    if not value.strip() or len(value) > _MAX_ID:
        raise InvalidInput(f"{name} is {shown(value)}", expected=f"a text of 1 to {_MAX_ID} characters")
    return value


def _fraction(name: str, value: Any) -> Any:
    fraction(name, value)
    return value


_MAX_ID = 500
_TIMES = ("created_at", "updated_at", "event_time", "valid_from", "valid_until", "expires_at", "last_observed", "last_accessed")
_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(_TIMES, _time),
    **dict.fromkeys(("importance", "trust", "confidence"), _fraction),
    **dict.fromkeys(("times_observed", "access_count"), _count),
    "id": _text, "status": _one_of(*Status), "memory_type": _one_of(*MemoryType), "reach": _one_of(*Reach),
}  # fmt: skip


def _given(values: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in values.items() if value is not None and value != [] and value != {}}
