"""The one table of fields: the name, the type and the kinds of row of every field.

A store may keep any of them as real columns and the rest as JSON. Either way, every row is returned equal to the row written.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cache
from typing import Any

from memory_mesh.core.errors import shown

Scalar = str | int | float | bool
Json = Scalar | None | list["Json"] | dict[str, "Json"]
Value = Json

# Comparisons use 64-bit floats, which cannot represent every integer above 2**53.
INT_MAX = 2**53


class Kind(StrEnum):
    """The kind of a row."""

    MEMORY = "memory"
    PASSAGE = "passage"  # a further vector of a long memory; `ref` is the memory
    LINK = "link"  # from `ref` to `target`
    CHANGE = "change"  # one step in the history of a memory; `ref` is the memory
    BLOCK = "block"  # one sealed line of an audit chain
    HEAD = "head"  # the last block of an audit chain
    RECEIPT = "receipt"  # an idempotency key and the memory that it stored
    META = "meta"  # bookkeeping of the store: model, pseudonym key, jobs, spending
    USAGE = "usage"  # how often a memory was found; `ref` is the memory


# Kinds that affect search results. Writing one raises the version of its partition; bookkeeping does not.
MOVING = frozenset({Kind.MEMORY, Kind.PASSAGE, Kind.LINK})

# Kinds that may have a vector.
WITH_VECTOR = frozenset({Kind.MEMORY, Kind.PASSAGE})


class Type(Enum):
    """The type of a field."""

    TEXT = "text"
    INT = "int"
    REAL = "real"
    BOOL = "bool"
    TIME = "time"  # text as written by `core.model.times`
    TEXTS = "texts"  # a list of texts
    JSON = "json"  # an object; stores would compare bare lists or scalars in different ways


@dataclass(frozen=True, slots=True)
class Column:
    """One field of a row."""

    name: str
    type: Type
    kinds: frozenset[Kind]
    alias: str | None = None  # a second name, accepted in filters


ALL = frozenset(Kind)
_MEMORY = frozenset({Kind.MEMORY})
_OWNED = frozenset({Kind.MEMORY, Kind.PASSAGE, Kind.LINK})
_CHAIN = frozenset({Kind.BLOCK, Kind.HEAD})

# These are attributes of every row; all others are keys of `Row.fields`.
BASE = ("id", "kind", "partition", "revision", "number", "created_at")

COLUMNS: tuple[Column, ...] = (
    Column("id", Type.TEXT, ALL),
    Column("kind", Type.TEXT, ALL),
    Column("partition", Type.TEXT, ALL),
    Column("revision", Type.INT, ALL),
    Column("number", Type.INT, ALL),
    Column("created_at", Type.TIME, ALL),
    # scope
    Column("user_id", Type.TEXT, ALL),
    Column("agent_id", Type.TEXT, ALL),
    Column("session_id", Type.TEXT, ALL),
    Column("project", Type.TEXT, _MEMORY, alias="collection"),
    Column("memory_type", Type.TEXT, _OWNED),
    Column("reach", Type.TEXT, _OWNED),
    Column("ref", Type.TEXT, ALL - _MEMORY),
    # content
    Column("content", Type.TEXT, _MEMORY),
    Column("metadata", Type.JSON, frozenset({Kind.MEMORY, Kind.BLOCK})),
    Column("tags", Type.TEXTS, _MEMORY),
    Column("category", Type.TEXT, _MEMORY),
    Column("keywords", Type.TEXTS, _MEMORY),
    Column("speaker", Type.TEXT, _MEMORY),
    Column("turn", Type.INT, _MEMORY),
    # three independent numbers; relevance belongs to a query, not to a memory
    Column("importance", Type.REAL, _MEMORY, alias="importance_score"),
    Column("trust", Type.REAL, _MEMORY),
    Column("confidence", Type.REAL, _MEMORY),
    # times
    Column("updated_at", Type.TIME, _MEMORY),
    Column("event_time", Type.TIME, _MEMORY),
    Column("valid_from", Type.TIME, _MEMORY),
    Column("valid_until", Type.TIME, _MEMORY),
    Column("expires_at", Type.TIME, _MEMORY),
    Column("last_observed", Type.TIME, _MEMORY),
    # status
    Column("status", Type.TEXT, _MEMORY),
    Column("pinned", Type.BOOL, _MEMORY),
    Column("pending", Type.BOOL, _MEMORY),  # has no vector yet
    Column("times_observed", Type.INT, _MEMORY),
    Column("superseded_by", Type.TEXT, _MEMORY),
    Column("supersedes", Type.TEXTS, _MEMORY),
    Column("sources", Type.TEXTS, _MEMORY),
    Column("heritage_chain", Type.JSON, _MEMORY),
    Column("lesson_pattern_id", Type.TEXT, _MEMORY),
    Column("source_skill_id", Type.TEXT, _MEMORY),
    Column("fingerprint", Type.TEXT, _MEMORY),
    Column("salt", Type.TEXT, _MEMORY),
    # links
    Column("target", Type.TEXT, frozenset({Kind.LINK})),
    Column("link_type", Type.TEXT, frozenset({Kind.LINK})),
    Column("similarity", Type.REAL, frozenset({Kind.LINK})),
    # history
    Column("action", Type.TEXT, frozenset({Kind.CHANGE})),
    Column("why", Type.TEXT, frozenset({Kind.CHANGE})),
    Column("before", Type.JSON, frozenset({Kind.CHANGE})),
    Column("detail", Type.JSON, frozenset({Kind.CHANGE, Kind.META})),
    # the audit chain
    Column("chain", Type.TEXT, _CHAIN),
    Column("operation_type", Type.TEXT, frozenset({Kind.BLOCK})),
    Column("yamo_text", Type.TEXT, frozenset({Kind.BLOCK})),
    Column("block_hash", Type.TEXT, _CHAIN),
    Column("prev_hash", Type.TEXT, frozenset({Kind.BLOCK})),
    # usage
    Column("access_count", Type.INT, frozenset({Kind.USAGE})),
    Column("last_accessed", Type.TIME, frozenset({Kind.USAGE})),
    # idempotency
    Column("request", Type.TEXT, frozenset({Kind.RECEIPT})),
)

BY_NAME: Mapping[str, Column] = {column.name: column for column in COLUMNS}
FILTERABLE: Mapping[str, Column] = {
    name: column
    for column in COLUMNS
    if Kind.MEMORY in column.kinds and column.name not in ("kind", "partition", "salt", "fingerprint", "metadata")
    for name in (column.name, column.alias)
    if name
}

# The NOT NULL columns of the documents' tables.
REQUIRED: Mapping[Kind, tuple[str, ...]] = {
    Kind.MEMORY: ("content", "updated_at"),
    Kind.BLOCK: ("chain", "operation_type", "yamo_text", "block_hash"),
}


@cache
def fields_of(kind: Kind) -> tuple[Column, ...]:
    """Return the columns of a kind that are stored in `Row.fields`."""
    return tuple(column for column in COLUMNS if kind in column.kinds and column.name not in BASE)


def fault(column: Column, value: object) -> str | None:
    """Return an error message if the column cannot hold the value, else None."""
    described, fits = _TYPES[column.type]
    return None if fits(value) else f"{column.name} must be {described}, not {shown(value, max_length=80)}"


def _is_text(value: Value) -> bool:
    # PostgreSQL rejects NUL in a text, and no store can encode half a surrogate pair.
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _are_texts(values: list[Value]) -> bool:
    # Checked as one joined text because a memory has many keywords. The space stops two surrogate halves from forming a pair.
    return all(type(value) is str for value in values) and _is_text(" ".join(values))  # type: ignore[arg-type]


def _is_int(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -INT_MAX <= value <= INT_MAX


def _is_real(value: Value) -> bool:
    return _is_int(value) or (isinstance(value, float) and value - value == 0.0)


def _is_json(value: Value) -> bool:
    if isinstance(value, dict):
        return all(_is_text(key) and _is_json(item) for key, item in value.items())
    if isinstance(value, list):
        return all(_is_json(item) for item in value)
    return value is None or isinstance(value, bool) or _is_text(value) or _is_real(value)


# How each type is described in messages, and the check of a value.
_TYPES: Mapping[Type, tuple[str, Callable[[Any], bool]]] = {
    Type.TEXT: ("text", _is_text),
    Type.TIME: ("a time as text", _is_text),
    Type.INT: ("an integer", _is_int),
    Type.REAL: ("a number", _is_real),
    Type.BOOL: ("true or false", lambda value: isinstance(value, bool)),
    Type.TEXTS: ("a list of texts", lambda value: isinstance(value, list) and _are_texts(value)),
    Type.JSON: ("a JSON object", lambda value: isinstance(value, dict) and _is_json(value)),
}
