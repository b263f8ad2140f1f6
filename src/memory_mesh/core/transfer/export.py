"""The export of memories as lines of JSON.

The first line names the format and its version; each further line is a memory.
docs/internals/exports.md is the description of the format. A later version may add fields; this one
refuses fields that it does not know, because an import must not lose them without a word.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from memory_mesh.core import model
from memory_mesh.core.errors import InvalidInput, fraction, number, shown, whole_number
from memory_mesh.core.intake import Author, numbered
from memory_mesh.core.lane.scoring import MAX_FEEDBACK
from memory_mesh.core.model import (
    BY_NAME,
    Change,
    Memory,
    MemoryRecord,
    Sighting,
    Skill,
    Type,
    Value,
    change_id,
    fault,
    parse_time,
)

FORMAT, VERSION = "memory-mesh memories", 1

# The other fields are not part of a memory, or an import makes them anew. A change is numbered by
# its place in the history.
_MEMORY = (*(one.name for one in fields(MemoryRecord)), "reach")
_MEMORY = tuple(
    name for name in _MEMORY if name not in ("pending", "sealed", "redactions", "revision")
)
_SKILL = ("name", "intent")  # what a skill has besides
_CHANGE = ("created_at", "action", "agent_id", "why", "before", "detail")
_SIGHTING = (
    "created_at",
    "agent_id",
    "session_id",
    "times_observed",
    "last_observed",
    "trust",
    "metadata",
)
_WORDS = {"status": [*model.Status], "memory_type": [*model.MemoryType], "reach": [*model.Reach]}
_MAX_ID = 500
_EXPECTED = "a line of memory-mesh export"


@dataclass(frozen=True, slots=True)
class Exported:
    """A memory with its history and its stored sightings, oldest first."""

    memory: Memory
    history: Sequence[Change] = ()
    sightings: Sequence[Sighting] = ()

    def values(self) -> dict[str, Value]:
        """Return the fields of a line, without those that are empty."""
        parts = {"history": (self.history, _CHANGE), "sightings": (self.sightings, _SIGHTING)}
        lists: dict[str, Value] = {
            name: [_given(one, names) for one in some]
            for name, (some, names) in parts.items()
            if some
        }
        return (
            _given(self.memory, (*_MEMORY, *_SKILL) if isinstance(self.memory, Skill) else _MEMORY)
            | lists
        )

    def line(self) -> str:
        # ASCII only: some readers end a line at certain Unicode characters.
        return json.dumps(self.values()) + "\n"


def header() -> str:
    """Return the first line of an export."""
    return json.dumps({"format": FORMAT, "version": VERSION}) + "\n"


def check_header(text: object) -> None:
    """Raise `InvalidInput` unless this is the first line of an export that this version can
    read."""
    values = read_object(text)
    if values.get("format") != FORMAT:
        raise InvalidInput("it is not the first line of an export", expected=header().strip())
    if values.get("version") != VERSION:
        what = f"the export has version {shown(values.get('version'))}"
        raise InvalidInput(
            what, expected=f"version {VERSION}", remedy="import it with a newer memory-mesh"
        )


def read_lines(lines: Iterable[object]) -> Iterator[tuple[int, Exported | InvalidInput]]:
    """Yield the memories of an export, each with the number of its line; in place of one that
    cannot be read, an error. Raise `InvalidInput` if the first line is not that of an export."""
    filled = (
        (number, text)
        for number, text in enumerate(lines, start=1)
        if not isinstance(text, str) or text.strip()
    )
    number, first = next(filled, (1, ""))
    with numbered("line", number):
        check_header(first)
    for number, text in filled:
        try:
            yield number, read_line(text)
        except InvalidInput as error:
            yield number, error


def read_line(text: object) -> Exported:
    """Return the memory of a line, or raise `InvalidInput`. What an import makes anew is
    missing, such as the fingerprint."""
    values = read_object(text)
    history, sightings = (values.pop(name, []) for name in ("history", "sightings"))
    if not isinstance(history, list) or not isinstance(sightings, list):
        raise InvalidInput("history or sightings is not a list", expected=_EXPECTED)
    own = _SKILL if values.keys() & {*_SKILL} else ()
    given = _present(
        values, (*_MEMORY, *own), required=("id", "content", "created_at", "updated_at", *own)
    )
    memory = (Skill if own else Memory)(**given, revision=len(history) + 1)
    columns = {one.name for one in fields(memory)} & BY_NAME.keys()
    changes: list[Change] = []
    for at, values in enumerate(history, start=2):
        change = _present(values, _CHANGE, required=("created_at", "action"))
        change["before"] = _checked(change.get("before", {}), columns)
        id_ = change_id(memory.id, at)
        changes.append(Change(**change, id=id_, ref=memory.id, number=at, user_id=memory.user_id))
    seen: dict[str, Sighting] = {}
    for values in sightings:
        sighting = _present(values, _SIGHTING, required=("created_at",))
        author = Author(sighting.get("agent_id"), sighting.get("session_id"))
        id_ = author.sighting_id(memory.id)
        seen[id_] = Sighting(**sighting, id=id_, ref=memory.id, user_id=memory.user_id)
    if len(seen) < len(sightings):
        raise InvalidInput("sightings names an agent and session twice", expected=_EXPECTED)
    return Exported(memory, changes, list(seen.values()))


def read_object(text: object, expected: str = _EXPECTED) -> dict[str, Any]:
    """Return the JSON object of a line, or raise `InvalidInput`."""
    if isinstance(text, InvalidInput):  # of a line that cannot be read
        raise text
    if not isinstance(text, str | bytes):
        raise InvalidInput(f"it is {type(text).__name__}", expected="text")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput("it is not JSON", expected=expected) from None
    return as_object(value)


def as_object(value: object) -> dict[str, Any]:
    """Return a value of JSON if it is an object, or raise `InvalidInput`."""
    if not isinstance(value, dict):
        raise InvalidInput(f"it is {type(value).__name__}", expected="a JSON object")
    return value


def _present(values: object, names: Collection[str], *, required: Iterable[str]) -> dict[str, Any]:
    given = {name: value for name, value in _checked(values, names).items() if value is not None}
    if missing := [name for name in required if name not in given]:
        raise InvalidInput(f"{missing[0]} is missing", expected=_EXPECTED)
    return given


def _checked(values: object, names: Collection[str]) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise InvalidInput(f"{shown(values)} is not an object", expected=_EXPECTED)
    if unknown := [name for name in values if name not in names]:
        raise InvalidInput(f"unknown field {shown(unknown[0])}", expected=_EXPECTED)
    return {name: None if value is None else _value(name, value) for name, value in values.items()}


def _value(name: str, value: Any) -> Any:
    column, words = BY_NAME[name], _WORDS.get(name)
    if wrong := fault(column, value):
        raise InvalidInput(wrong)
    if words and value not in words:
        raise InvalidInput(f"{name} is {shown(value)}", expected=f"one of {', '.join(words)}")
    if name == "id":
        check_id(value)
    if name == "feedback_score":
        number(
            name, value, min_=0, max_=MAX_FEEDBACK, expected=f"a number from 0 to {MAX_FEEDBACK:g}"
        )
    elif column.type is Type.REAL:  # importance, trust, confidence
        fraction(name, value)
    if name in ("times_observed", "access_count", "feedback_count"):
        whole_number(name, value, min_=0)
    return parse_time(value, name) if column.type is Type.TIME else value


def check_id(id_: str) -> None:
    """Raise `InvalidInput` for the id of another program that is empty or too long, or that could
    be read as more than an id."""
    is_word = id_.isprintable() and not any(one.isspace() or one in "<>&" for one in id_)
    if not 0 < len(id_) <= _MAX_ID or not is_word:
        expected = f"a text of 1 to {_MAX_ID} characters without blanks and without < > &"
        raise InvalidInput(f"id is {shown(id_)}", expected=expected)


def _given(record: object, names: Iterable[str]) -> dict[str, Value]:
    values = {name: getattr(record, name) for name in names}
    return {
        name: value
        for name, value in values.items()
        if value is not None and value != [] and value != {}
    }
