"""Every field of every kind of row, once: its name, its type and the kinds that have it.

A store keeps what it likes as real columns and the rest as JSON; any row comes back equal either way.
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

# Beyond 2**53 a 64-bit float, which is what comparisons are made in, cannot tell neighbours apart.
INT_MAX = 2**53


class Kind(StrEnum):
    """What a row is."""

    MEMORY = "memory"
    PASSAGE = "passage"  # a further vector of a long memory, `ref` names the memory
    LINK = "link"  # from `ref` to `target`
    CHANGE = "change"  # one step of a record's history, `ref` names the record
    BLOCK = "block"  # one sealed line of the audit chain
    HEAD = "head"  # where a chain ends
    RECEIPT = "receipt"  # an idempotency key and what it stored
    META = "meta"  # what the store must know about itself
    USAGE = "usage"  # how often a memory was found, `ref` names the memory


# What changes answers moves a partition's version; bookkeeping does not.
MOVING = frozenset({Kind.MEMORY, Kind.PASSAGE, Kind.LINK})

# What is found by likeness; no other kind has a vector.
WITH_VECTOR = frozenset({Kind.MEMORY, Kind.PASSAGE})


class Type(Enum):
    """How a field's value looks."""

    TEXT = "text"
    INT = "int"
    REAL = "real"
    BOOL = "bool"
    TIME = "time"  # text of `core.model.times`
    TEXTS = "texts"  # a list of texts
    JSON = "json"  # an object; a bare list or scalar would be a value that filters could compare on one store only


@dataclass(frozen=True, slots=True)
class Column:
    """One field."""

    name: str
    type: Type
    kinds: frozenset[Kind]
    alias: str | None = None  # the name that a document gives it, understood in filters


ALL = frozenset(Kind)
_MEMORY = frozenset({Kind.MEMORY})
_OWNED = frozenset({Kind.MEMORY, Kind.PASSAGE, Kind.LINK})
_CHAIN = frozenset({Kind.BLOCK, Kind.HEAD})

# The first six are attributes of every row; the rest live in its `fields`.
BASE = ("id", "kind", "partition", "revision", "number", "created_at")

COLUMNS: tuple[Column, ...] = (
    Column("id", Type.TEXT, ALL),
    Column("kind", Type.TEXT, ALL),
    Column("partition", Type.TEXT, ALL),
    Column("revision", Type.INT, ALL),
    Column("number", Type.INT, ALL),
    Column("created_at", Type.TIME, ALL),
    # whose it is
    Column("user_id", Type.TEXT, ALL),
    Column("agent_id", Type.TEXT, ALL),
    Column("session_id", Type.TEXT, ALL),
    Column("project", Type.TEXT, _MEMORY, alias="collection"),
    Column("memory_type", Type.TEXT, _OWNED),
    Column("reach", Type.TEXT, _OWNED),
    Column("ref", Type.TEXT, ALL - _MEMORY),
    # what it says
    Column("content", Type.TEXT, _MEMORY),
    Column("metadata", Type.JSON, frozenset({Kind.MEMORY, Kind.BLOCK})),
    Column("tags", Type.TEXTS, _MEMORY),
    Column("category", Type.TEXT, _MEMORY),
    Column("keywords", Type.TEXTS, _MEMORY),
    Column("speaker", Type.TEXT, _MEMORY),
    Column("turn", Type.INT, _MEMORY),
    # the four numbers, never mixed (relevance belongs to a query)
    Column("importance", Type.REAL, _MEMORY, alias="importance_score"),
    Column("trust", Type.REAL, _MEMORY),
    Column("confidence", Type.REAL, _MEMORY),
    # times, never mixed
    Column("updated_at", Type.TIME, _MEMORY),
    Column("event_time", Type.TIME, _MEMORY),
    Column("valid_from", Type.TIME, _MEMORY),
    Column("valid_until", Type.TIME, _MEMORY),
    Column("expires_at", Type.TIME, _MEMORY),
    Column("last_observed", Type.TIME, _MEMORY),
    # how it stands
    Column("status", Type.TEXT, _MEMORY),
    Column("pinned", Type.BOOL, _MEMORY),
    Column("pending", Type.BOOL, _MEMORY),  # waits for its vector
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


# What the documents' tables call NOT NULL.
REQUIRED: Mapping[Kind, tuple[str, ...]] = {
    Kind.MEMORY: ("content", "updated_at"),
    Kind.BLOCK: ("chain", "operation_type", "yamo_text", "block_hash"),
}


@cache
def fields_of(kind: Kind) -> tuple[Column, ...]:
    """The columns of a kind that live in `Row.fields`."""
    return tuple(column for column in COLUMNS if kind in column.kinds and column.name not in BASE)


def fault(column: Column, value: object) -> str | None:
    """What is wrong with a value for a column, or None."""
    wrong = not _FITS[column.type](value)
    return f"{column.name} is no {column.type.value}: {shown(value, most=80)}" if wrong else None


def _is_text(value: Value) -> bool:
    # PostgreSQL cannot keep NUL in a text, and no store can keep half a surrogate pair.
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _are_texts(values: list[Value]) -> bool:
    # Looked at as one text, for a memory has many keywords. The blank keeps halves of pairs at their ends apart.
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


_FITS: Mapping[Type, Callable[[Any], bool]] = {
    Type.TEXT: _is_text,
    Type.TIME: _is_text,
    Type.INT: _is_int,
    Type.REAL: _is_real,
    Type.BOOL: lambda value: isinstance(value, bool),
    Type.TEXTS: lambda value: isinstance(value, list) and _are_texts(value),
    Type.JSON: lambda value: isinstance(value, dict) and _is_json(value),
}
