"""Rows, which stores exchange with their callers, the one table of their fields, times and ids.

Each field has a name, a type and the kinds of row that have it. A store may keep any field as a
real column and the rest as JSON. Either way, every row is returned equal to the row written.
"""

from array import array
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from enum import Enum, StrEnum
from functools import cache, lru_cache
from hashlib import sha256
from itertools import count, islice
from math import isfinite
from secrets import randbits
from struct import pack
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

from memory_mesh.core.errors import InvalidInput, SettingsError, StoreCorrupt, shown
from memory_mesh.core.text import LazyRegex

T = TypeVar("T")
Scalar = str | int | float | bool
Json = Scalar | None | list["Json"] | dict[str, "Json"]
Value = Json

# Comparisons use 64-bit floats, which cannot represent every integer above 2**53.
INT_MAX = 2**53


class Kind(StrEnum):
    """The kind of a row."""

    MEMORY = "memory"
    SKILL = "skill"  # a memory that tells how to do something; its vector is that of `intent`
    PASSAGE = "passage"  # a further vector of a long memory; `ref` is the memory
    LINK = "link"  # from `ref` to `target`
    CHANGE = "change"  # one step in the history of a memory; `ref` is the memory
    BLOCK = "block"  # one sealed line of an audit chain
    HEAD = "head"  # the last block of an audit chain
    RECEIPT = "receipt"  # an idempotency key and the memory that it stored
    META = "meta"  # bookkeeping of the store: model, pseudonym key, jobs, spending
    USAGE = "usage"  # how often a memory was found; `ref` is the memory
    # An agent and session that stored the text of a memory; `ref` is the memory.
    SIGHTING = "sighting"
    # The claims of the memories `ref`, the newer one, and `target` exclude each other.
    CONFLICT = "conflict"
    EVENT = "event"  # a change of the memory `ref` that a hook did not get yet


# Kinds that affect search results. Writing one raises the version of its partition; bookkeeping
# does not.
MOVING = frozenset({Kind.MEMORY, Kind.SKILL, Kind.PASSAGE, Kind.LINK})

# Kinds that may have a vector.
WITH_VECTOR = frozenset({Kind.MEMORY, Kind.SKILL, Kind.PASSAGE})

# Kinds with contents, which audit blocks seal and a history follows.
CONTENTS = (Kind.MEMORY, Kind.SKILL)


class Type(Enum):
    """The type of a field."""

    TEXT = "text"
    INT = "int"
    REAL = "real"
    BOOL = "bool"
    TIME = "time"  # text as `iso` writes it
    TEXTS = "texts"  # a list of texts
    JSON = "json"  # an object; stores would compare bare lists or scalars in different ways


@dataclass(frozen=True, slots=True)
class Column:
    """One field of a row."""

    name: str
    type: Type
    kinds: frozenset[Kind]
    alias: str | None = None  # a second name, accepted in filters


_ALIASES = {"project": "collection", "importance": "importance_score"}


def _columns(*kinds: Kind, **types: Type) -> Iterator[Column]:
    """Yield the columns that these kinds of row have."""
    return (
        Column(name, type_, frozenset(kinds), _ALIASES.get(name)) for name, type_ in types.items()
    )


_ALL, _OWNED = tuple(Kind), (*CONTENTS, Kind.PASSAGE, Kind.LINK)
TEXT, INT, REAL, BOOL, TIME, TEXTS, JSON = Type

# These are attributes of every row; all others are keys of `Row.fields`.
BASE = ("id", "kind", "partition", "revision", "number", "created_at")

COLUMNS: tuple[Column, ...] = (
    *_columns(*_ALL, id=TEXT, kind=TEXT, partition=TEXT, revision=INT, number=INT, created_at=TIME),
    # scope
    *_columns(*_ALL, user_id=TEXT, agent_id=TEXT, session_id=TEXT),
    *_columns(*CONTENTS, project=TEXT),
    *_columns(*_OWNED, memory_type=TEXT, reach=TEXT),
    *_columns(*(kind for kind in Kind if kind not in CONTENTS), ref=TEXT),
    # content
    *_columns(Kind.SKILL, name=TEXT, intent=TEXT),
    *_columns(*CONTENTS, content=TEXT),
    *_columns(*CONTENTS, Kind.BLOCK, Kind.SIGHTING, metadata=JSON),
    *_columns(*CONTENTS, tags=TEXTS, category=TEXT, keywords=TEXTS, speaker=TEXT, turn=INT),
    # three independent numbers; relevance belongs to a query, not to a memory
    *_columns(*CONTENTS, importance=REAL, confidence=REAL),
    *_columns(*CONTENTS, Kind.SIGHTING, trust=REAL),
    # times
    *_columns(
        *CONTENTS,
        updated_at=TIME,
        event_time=TIME,
        valid_from=TIME,
        valid_until=TIME,
        expires_at=TIME,
    ),
    *_columns(*CONTENTS, Kind.SIGHTING, last_observed=TIME, times_observed=INT),
    # status; a pending memory has no vector yet
    *_columns(*CONTENTS, Kind.CONFLICT, status=TEXT),
    *_columns(*CONTENTS, pinned=BOOL, pending=BOOL, superseded_by=TEXT, supersedes=TEXTS),
    *_columns(
        *CONTENTS, sources=TEXTS, heritage_chain=JSON, lesson_pattern_id=TEXT, source_skill_id=TEXT
    ),
    *_columns(*CONTENTS, key=TEXT, fingerprint=TEXT, salt=TEXT),
    # claims; `claim_key` is the same for claims about one subject and predicate
    *_columns(
        Kind.MEMORY,
        claim=JSON,
        claim_key=TEXT,
        corroborations=INT,
        reinforcements=INT,
        disputes=INT,
    ),
    # entities (`type:slug`) that it is about, and how helpful it was
    *_columns(Kind.MEMORY, entities=TEXTS, feedback_score=REAL, feedback_count=INT),
    # passages: the position of a part of a long memory in its text
    *_columns(Kind.PASSAGE, Kind.BLOCK, content_hash=TEXT),
    *_columns(Kind.PASSAGE, source=TEXT, section=TEXTS, text_start=INT, text_end=INT),
    # links
    *_columns(Kind.LINK, Kind.CONFLICT, target=TEXT),
    *_columns(Kind.LINK, link_type=TEXT, similarity=REAL),
    # history
    *_columns(Kind.CHANGE, Kind.EVENT, action=TEXT),
    *_columns(Kind.CHANGE, before=JSON),
    *_columns(Kind.CHANGE, Kind.CONFLICT, why=TEXT),
    *_columns(Kind.CHANGE, Kind.META, Kind.CONFLICT, Kind.EVENT, detail=JSON),
    *_columns(Kind.EVENT, hook=TEXT),
    # the audit chain
    *_columns(Kind.BLOCK, Kind.HEAD, chain=TEXT),
    *_columns(Kind.BLOCK, operation_type=TEXT, yamo_text=TEXT),
    *_columns(Kind.BLOCK, Kind.HEAD, block_hash=TEXT),
    *_columns(Kind.BLOCK, prev_hash=TEXT, digest=TEXT, memory_revision=INT),
    *_columns(Kind.BLOCK, Kind.HEAD, seal=TEXT),
    *_columns(Kind.HEAD, signature=TEXT, key_id=TEXT),
    # usage
    *_columns(Kind.USAGE, access_count=INT, last_accessed=TIME),
    # idempotency
    *_columns(Kind.RECEIPT, request=TEXT),
)

BY_NAME: Mapping[str, Column] = {column.name: column for column in COLUMNS}
# `number` is not among them: it counts the writes of a partition, those of hidden memories too.
_INTERNAL = ("kind", "partition", "number", "salt", "fingerprint", "metadata", "claim", "claim_key")
FILTERABLE: Mapping[str, Column] = {
    name: column
    for column in COLUMNS
    if Kind.MEMORY in column.kinds and column.name not in _INTERNAL
    for name in (column.name, column.alias)
    if name
}

# The NOT NULL columns of the documents' tables.
REQUIRED: Mapping[Kind, tuple[str, ...]] = {
    Kind.MEMORY: ("content", "updated_at"),
    Kind.SKILL: ("name", "intent", "content", "updated_at"),
    Kind.BLOCK: ("chain", "operation_type", "yamo_text", "block_hash"),
}


# Most memories have these values, which need no room in a store.
_NOT_STORED: tuple[tuple[str, Value], ...] = (
    ("entities", []),
    ("feedback_score", 1.0),
    ("feedback_count", 0),
)


@cache
def fields_of(kind: Kind) -> tuple[Column, ...]:
    """Return the columns of a kind that are stored in `Row.fields`."""
    return tuple(column for column in COLUMNS if kind in column.kinds and column.name not in BASE)


# Of one token: 48 signed bytes, a direction in which 127 is 1.0, and one byte, the token's weight.
TOKEN_BYTES = 49
KEPT_TOKEN = 0x80  # the bit of a weight that is set if a memory keeps the token


@dataclass(frozen=True, slots=True)
class Vector:
    """An embedding with the name of its model. The data are packed little-endian 32-bit floats,
    so vectors compare by bytes. `tokens` has `TOKEN_BYTES` for each token of the text, or nothing.
    """

    model: str
    data: bytes
    tokens: bytes = b""

    @property
    def dimension(self) -> int:
        return len(self.data) // 4

    @property
    def finite(self) -> bool:
        # The last byte of a value that is not finite is 7F or FF, and hardly any finite one has it.
        # One such value makes the sum not finite. Finite 32-bit floats cannot: 64 bits have room
        # for their sum.
        last = self.data[3::4]
        return not (b"\x7f" in last or b"\xff" in last) or isfinite(sum(array("f", self.data)))

    @property
    def of_memory(self) -> "Vector":
        """The same without the tokens that only a query needs: their highest bit is not set."""
        size, data = TOKEN_BYTES, self.tokens
        rows = (data[start : start + size] for start in range(0, len(data), size))
        return replace(self, tokens=b"".join(row for row in rows if row[-1] & KEPT_TOKEN))

    @classmethod
    def of(cls, model: str, values: list[float], tokens: bytes = b"") -> "Vector":
        # `array` uses the native byte order; every platform that our dependencies support is
        # little-endian.
        return cls(model, array("f", values).tobytes(), tokens)

    @property
    def token_column(self) -> bytes | None:
        """The tokens behind a checksum of the vector, which earlier versions replace alone."""
        return pack("<I", crc32(self.data)) + self.tokens if self.tokens else None

    @classmethod
    def stored(cls, model: str, data: bytes, column: object = None) -> "Vector":
        """Make a vector of what a store has read; see `token_column`."""
        return cls(model, data, _tokens(column, pack("<I", crc32(data))) if column else b"")

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "Vector":
        """Return the vector that `as_json` made an object of. Raises `LookupError`, `TypeError` or
        `ValueError`."""
        data = b64decode(given["data"], validate=True)
        return cls(given["model"], data, _tokens(given.get("tokens")))

    def as_json(self) -> dict[str, str]:
        """Return an object that JSON can represent, with the bytes as base64."""
        values = {"model": self.model, "data": b64encode(self.data).decode()}
        return values | {"tokens": b64encode(self.tokens).decode()} if self.tokens else values

    @classmethod
    def made(cls, model: str, answer: "Iterable[Vector | Iterable[float]]") -> "list[Vector]":
        """Return the answer of an embedder as vectors; one that is neither a vector nor numbers
        becomes an empty one."""
        return [one if isinstance(one, Vector) else cls._of_numbers(model, one) for one in answer]

    @classmethod
    def _of_numbers(cls, model: str, numbers: Iterable[float]) -> "Vector":
        try:
            # `array` would take bytes for the memory of an array.
            return cls(
                model,
                b"" if isinstance(numbers, bytes | bytearray) else array("f", numbers).tobytes(),
            )
        except (TypeError, ValueError, OverflowError):
            return cls(model, b"")


def _tokens(column: object, check: bytes = b"") -> bytes:
    """Return the tokens that a store has read as bytes or as base64, behind `check`; nothing if
    they are damaged, so that the rest of the row is still found."""
    try:
        data = b64decode(column) if isinstance(column, str) else column
    except ValueError:
        return b""
    if not isinstance(data, bytes) or not data.startswith(check):
        return b""
    tokens = data[len(check) :]
    return tokens if len(tokens) % TOKEN_BYTES == 0 else b""


class Sealed(NamedTuple):
    """The revision of a memory that its latest audit block sealed, and the salted hash of the
    content."""

    revision: int
    content_hash: str


class Used(NamedTuple):
    """How often a memory was found, and when last."""

    access_count: int
    last_accessed: str

    @classmethod
    def of(cls, fields: Mapping[str, Value]) -> "Used | None":
        """Return the usage that these fields of a row contain; None if they were edited by hand."""
        if not isinstance(fields, dict):
            return None
        times, last = fields.get("access_count"), fields.get("last_accessed")
        return cls(times, last) if isinstance(times, int) and isinstance(last, str) else None


# Without slots: `from_fields` fills the dict of a row at once.
@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a store. In a put, `replaces` is the revision that the row replaces; 0 means
    that the row is new."""

    kind: Kind
    id: str
    partition: str
    created_at: str
    revision: int = 1
    number: int = 0
    fields: Mapping[str, Value] = field(default_factory=dict)
    vector: Vector | None = None
    replaces: int = field(default=0, compare=False)  # an instruction to the store; not stored
    # From the audit blocks, in the memories that a store returns.
    sealed: Sealed | None = field(default=None, compare=False)
    used: Used | None = field(default=None, compare=False)  # likewise, from the row of its usage

    @classmethod
    def new(cls, kind: Kind, values: Iterable[tuple[str, Value]], **base: object) -> "Row":
        """Make a row of the values of its fields and of its other attributes, or raise
        `InvalidInput`."""
        stored = checked_fields(kind, values)
        for name, default in _NOT_STORED:
            if stored.get(name) == default:
                del stored[name]
        row = cls.from_fields(kind=kind, fields=stored, sealed=None, used=None, **base)
        check_base(row)
        return row

    @classmethod
    def from_fields(cls, **fields: object) -> "Row":
        """Make a row of all its fields. The generated `__init__` takes four times as long."""
        row = cls.__new__(cls)
        object.__setattr__(row, "__dict__", fields)  # it is frozen
        return row

    @property
    def key(self) -> "Key":
        return Key(self.kind, self.id)

    @property
    def is_altered(self) -> bool:
        """Whether the content of a memory differs from what its latest block sealed; False if it
        was never sealed.

        A revision before the sealed one is an older copy of the memory, put back. A later one
        without a salt was written by Memory Lane, which seals nothing.
        """
        sealed, salt = self.sealed, self.fields.get("salt")
        if sealed is None or (salt is None and self.revision > sealed.revision):
            return False
        return (
            self.revision < sealed.revision
            or content_hash(str(salt or ""), str(self.fields.get("content"))) != sealed.content_hash
        )

    def value(self, name: str) -> Value:
        """Return the value of a column, or None if the row has none."""
        if name in BASE:
            return getattr(self, name)  # type: ignore[no-any-return]
        return self.fields.get(name)

    @property
    def keywords(self) -> list[str]:
        words = self.value("keywords")
        return [str(word) for word in words] if isinstance(words, list) else []

    @property
    def age_key(self) -> tuple[str, str, int, str]:
        """The sort key of age; descending order is newest first.

        Numbers are compared within a partition only: they count its writes, those of hidden
        memories too.
        """
        return self.created_at, self.partition, self.number, self.id


def content_hash(salt: str, content: str) -> str:
    """Hash a whole content. The salt is erased with the memory, so that an erased text cannot be
    guessed from its hash."""
    return sha256(f"{salt}\n{content}".encode()).hexdigest()


class Key(NamedTuple):
    """The kind and id that identify a row."""

    kind: Kind
    id: str


class Hit(NamedTuple):
    """One result of a search in a store; a higher score is better."""

    id: str
    score: float


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of at most `size`."""
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch


def as_read(row: Row) -> Row:
    """Return a row that a store has read, or raise `StoreCorrupt`: files can be edited by hand, and
    most of them have no types.

    A quick form of `checked`, which looks at the types only.
    """
    types, vector = _python_types(row.kind), row.vector
    for name, value in row.fields.items():
        type_ = type(value)
        if (
            type_ is not types.get(name)
            and not (type_ is int and types.get(name) is float)
            and value is not None
        ):
            raise unreadable(row, name)
        if type_ is list and value and {*map(type, value)} != {str}:  # type: ignore[arg-type]
            raise unreadable(row, name)
    base = (
        type(row.id),
        type(row.partition),
        type(row.created_at),
        type(row.revision),
        type(row.number),
    )
    if base != (str, str, str, int, int):
        raise unreadable(row, "columns")
    if vector and (
        type(vector.data) is not bytes or len(vector.data) % 4 or type(vector.model) is not str
    ):
        raise unreadable(row, "vector")
    return row


def unreadable(row: Row, what: str) -> StoreCorrupt:
    """Return the error for a row that none of ours wrote."""
    remedy = "restore a backup, or run memory-mesh doctor --repair"
    return StoreCorrupt(
        f"the {row.kind} {shown(row.id)} cannot be read: unexpected {what}", remedy=remedy
    )


def checked(row: Row) -> Row:
    """Return the row without empty fields, or raise `InvalidInput` if a field or vector does not
    belong to its kind or type."""
    row = replace(row, fields=checked_fields(row.kind, row.fields.items()))
    check_base(row)
    return row


def checked_fields(kind: Kind, items: Iterable[tuple[str, Value]]) -> dict[str, Value]:
    """Return the fields that have a value, or raise `InvalidInput` for one that does not belong
    to the kind or its type."""
    fields, texts, checks = dict[str, Value](), list[str](), _checks(kind)
    for name, value in items:
        if value is None:
            continue
        fits = checks.get(name)
        if fits is None:
            raise InvalidInput(f"a {kind} has no field {name!r}")
        if fits is _is_text and type(value) is str:
            texts.append(value)
        elif not fits(value):
            raise InvalidInput(str(fault(BY_NAME[name], value)))
        elif isinstance(value, StrEnum):
            value = str(value)
        fields[name] = value
    if not _is_text("\n".join(texts)):  # one check for all is much faster
        faults = (fault(BY_NAME[name], value) for name, value in fields.items())
        raise InvalidInput(next(filter(None, faults), ""))
    return fields


def check_base(row: Row) -> None:
    """Raise `InvalidInput` if a row with checked fields lacks one, or if its other attributes
    are wrong."""
    for name, fits in _BASE_CHECKS.items():
        if not fits(value := getattr(row, name)):
            raise InvalidInput(str(fault(BY_NAME[name], value)))
    if missing := [name for name in REQUIRED.get(row.kind, ()) if name not in row.fields]:
        raise InvalidInput(f"a {row.kind} needs {', '.join(missing)}")
    if row.vector:
        _check_vector(row.kind, row.vector)


@cache
def _python_types(kind: Kind) -> Mapping[str, type]:
    """Return the types that the fields of a kind have in Python; where it is float, integers are
    too."""
    types = {Type.INT: int, Type.REAL: float, Type.BOOL: bool, Type.TEXTS: list, Type.JSON: dict}
    return {column.name: types.get(column.type, str) for column in fields_of(kind)}


@cache  # hashing an Enum for each field of each row is slow
def _checks(kind: Kind) -> Mapping[str, Callable[[Any], bool]]:
    return {column.name: _TYPES[column.type][1] for column in fields_of(kind)}


def _check_vector(kind: Kind, vector: Vector) -> None:
    if kind not in WITH_VECTOR or not vector.dimension:
        raise InvalidInput(f"a {kind} cannot have a vector of dimension {vector.dimension}")
    if len(vector.data) % 4:
        raise InvalidInput(
            f"a vector of {len(vector.data)} bytes", expected="32-bit floats, four bytes each"
        )
    if len(vector.tokens) % TOKEN_BYTES:
        raise InvalidInput(
            f"tokens of {len(vector.tokens)} bytes", expected=f"{TOKEN_BYTES} bytes for each token"
        )
    if not vector.finite:
        raise InvalidInput(
            "a vector with a number that is not finite", expected="no NaN and no infinity"
        )


def fault(column: Column, value: object) -> str | None:
    """Return an error message if the column cannot hold the value, else None."""
    described, fits = _TYPES[column.type]
    return (
        None
        if fits(value)
        else f"{column.name} must be {described}, not {shown(value, max_length=80)}"
    )


def _is_text(value: Value) -> bool:
    # PostgreSQL rejects NUL in a text, and no store can encode half a surrogate pair.
    if not isinstance(value, str) or "\0" in value:
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _are_texts(values: list[Value]) -> bool:
    # Checked as one joined text because a memory has many keywords. The space stops two surrogate
    # halves from forming a pair.
    return not values or (set(map(type, values)) == {str} and _is_text(" ".join(values)))  # type: ignore[arg-type]


def _is_int(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -INT_MAX <= value <= INT_MAX


def _is_real(value: Value) -> bool:
    return _is_int(value) or (isinstance(value, float) and value - value == 0.0)


def _is_json(value: Value) -> bool:
    if type(value) is str:
        return _is_text(value)
    if isinstance(value, dict):
        return all(map(_is_text, value)) and all(map(_is_json, value.values()))
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, bool) or _is_text(value) or _is_real(value)


# How each type is described in messages, and the check of a value.
_TYPES: Mapping[Type, tuple[str, Callable[[Any], bool]]] = {
    Type.TEXT: ("text without NUL or half surrogate pairs", _is_text),
    Type.TIME: ("a time as text", _is_text),
    Type.INT: ("an integer", _is_int),
    Type.REAL: ("a number", _is_real),
    Type.BOOL: ("true or false", lambda value: isinstance(value, bool)),
    Type.TEXTS: ("a list of texts", lambda value: isinstance(value, list) and _are_texts(value)),
    Type.JSON: ("a JSON object", lambda value: isinstance(value, dict) and _is_json(value)),
}
_BASE_CHECKS = {name: _TYPES[BY_NAME[name].type][1] for name in BASE}


# --- times and ids ---
# A time is a text: ISO 8601 in UTC with milliseconds and `Z`. On every store these texts sort in
# the order of time. An id such as `mem_1760000000000_3fa9c2` has a prefix, Unix milliseconds and
# six hex digits.

# A clock as a caller may give it: seconds since 1970, or a datetime.
GivenClock = Callable[[], float | int | datetime]
# A time as a caller may give it: ISO 8601, or a date or datetime (UTC when it has no zone).
GivenTime = str | date

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
DAY_MS = 86_400_000
_YEAR_10000 = 253_402_300_800
_SPACE = 1 << 24
_ID = LazyRegex(r"[a-z_]+_([0-9]{1,14})_[0-9a-f]{6}")


def iso(ms: int) -> str:
    """Format Unix milliseconds as text."""
    seconds, rest = divmod(ms, 1000)
    return f"{_second(seconds)}.{rest:03}Z"


@lru_cache(maxsize=64)  # what is written or asked together has the same second
def _second(seconds: int) -> str:
    return (EPOCH + timedelta(seconds=seconds)).isoformat()[:-6]  # without the zone


def millis(text: str) -> int:
    """Parse the stored text of a time into Unix milliseconds. Raises `StoreCorrupt` for one that
    is not ours."""
    try:
        return (datetime.fromisoformat(text) - EPOCH) // MILLISECOND
    except (ValueError, TypeError):  # TypeError: it is no text, or has no zone
        raise StoreCorrupt(
            f"{shown(text)} is not a time", expected="ISO 8601 in UTC", remedy="restore a backup"
        ) from None


def parse_time(value: object, name: str) -> str:
    """Convert an ISO 8601 text, date or datetime (UTC when it has no zone) to the stored form;
    `name` is the field in errors."""
    text = value.isoformat() if isinstance(value, date) else value if isinstance(value, str) else ""
    try:
        at = datetime.fromisoformat(text.strip())
        utc = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
        return utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{name} {shown(value)} is not a time", expected="ISO 8601, e.g. 2026-03-01T09:30:00Z"
        ) from None


def time_of_id(id_: str) -> int | None:
    """Return the Unix milliseconds in an id of ours, or None."""
    match = _ID.fullmatch(id_)
    return int(match[1]) if match else None


def as_clock(given: GivenClock | None, now_ns: Callable[[], int]) -> Callable[[], int]:
    """Return a clock of Unix milliseconds that reads the caller's clock, or `now_ns` if none is
    given."""
    if given is None:
        return lambda: now_ns() // 1_000_000

    def clock() -> int:
        at = given()
        if isinstance(at, datetime):
            at = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        if not isinstance(at, int | float) or not 0 <= at < _YEAR_10000:
            raise SettingsError(
                f"the clock returned {shown(at)}", expected="seconds since 1970, or a datetime"
            )
        return round(at * 1000)

    return clock


class Ids:
    """A source of ids that are unique within a process: the six hex digits take all 16.7 million
    values before one repeats.

    Start and stride of the sequence are random, so two processes rarely produce the same id. When
    they do, the store refuses the second row and the flow takes the next id.
    """

    def __init__(self, bits: Callable[[int], int] = randbits) -> None:
        self._bits = bits
        self._start = bits(24)
        # Odd, so coprime with the number of values: the sequence visits every one.
        self._stride = bits(24) | 1
        self._steps = count()  # `next` is atomic, so threads can share one source

    def new(self, prefix: str, ms: int) -> str:
        value = (self._start + next(self._steps) * self._stride) % _SPACE
        return f"{prefix}_{ms}_{value:06x}"

    def salt(self) -> str:
        """Return 128 random bits in hex."""
        return f"{self._bits(128):032x}"
