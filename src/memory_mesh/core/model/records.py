"""Frozen records over rows: what flows reason about and faces hand out. A change is a new record."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Protocol, Self, TypeVar

from memory_mesh.core.errors import InvalidInput, StoreCorrupt, shown
from memory_mesh.core.model.columns import Kind, Value, fields_of
from memory_mesh.core.model.rows import Row, Vector, checked
from memory_mesh.core.model.scope import MemoryType, partition_for

Read = TypeVar("Read")

MIN_IMPORTANCE = 0.4  # what is drawn from a text and matters less is dropped


class Status(StrEnum):
    """How a memory stands. Only active ones are answered, unless another status is asked for by name."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    DISPUTED = "disputed"
    QUARANTINED = "quarantined"
    ARCHIVED = "archived"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """A memory, as a caller sees it. Times are ISO 8601 texts in UTC."""

    id: str
    content: str
    metadata: dict[str, Value] = field(default_factory=dict)
    created_at: str
    updated_at: str
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    project: str | None = None
    memory_type: str = MemoryType.GLOBAL.value
    category: str | None = None
    tags: list[str] = field(default_factory=list)
    status: str = Status.ACTIVE.value
    importance: float | None = None
    trust: float | None = None
    confidence: float | None = None
    event_time: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    expires_at: str | None = None
    last_observed: str | None = None
    times_observed: int = 1
    pinned: bool = False
    pending: bool = False  # no vector yet: found by its words until `reembed`
    access_count: int = 0
    last_accessed: str | None = None
    speaker: str | None = None
    turn: int | None = None
    superseded_by: str | None = None
    supersedes: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    heritage_chain: dict[str, Value] | None = None
    lesson_pattern_id: str | None = None
    source_skill_id: str | None = None
    revision: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult(MemoryRecord):
    """A memory found, how well it answers (0–1, higher is better), and how alike its text is (0–1; None without vectors)."""

    score: float
    similarity: float | None = None

    @classmethod
    def of(cls, row: Row, score: float, similarity: float | None = None, **counted: Any) -> Self:
        """A memory's row as an answer: straight from the row, for a search makes ten. `counted`: how often it was one."""
        said: dict[str, Any] = {name: value for name, value in row.fields.items() if name in _SHOWN} | counted
        said |= {"id": row.id, "created_at": row.created_at, "revision": row.revision}
        return cls(**said, score=score, similarity=similarity)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What became of a text that memories were drawn from."""

    memories: tuple[MemoryRecord, ...]
    dropped: int = 0  # found, and not important enough
    unusable: int = 0  # said by the model, and no memory
    stored_whole: str | None = None  # why the text, or a piece of it, was stored as it is
    flagged: tuple[str, ...] = ()  # kinds of instructions that the text tries to give a model
    repeated: bool = False  # the idempotency key was used before: nothing was asked or stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory(MemoryRecord):
    """A memory with what is nobody's business outside: how it is matched, bound and filed."""

    reach: str | None = None
    number: int = 0
    fingerprint: str | None = None
    salt: str | None = None
    keywords: list[str] = field(default_factory=list)
    vector: Vector | None = None

    @property
    def partition(self) -> str:
        return partition_for(self.user_id, self.agent_id, self.memory_type, self.reach)

    @property
    def scope(self) -> dict[str, Value]:
        """What decides who sees it, in the columns that its passages and links share."""
        return {name: getattr(self, name) for name in ("user_id", "agent_id", "session_id", "memory_type", "reach")}

    def row(self, *, replaces: int = 0) -> Row:
        return _row(self, Kind.MEMORY, self.partition, replaces)

    @classmethod
    def of(cls, row: Row) -> Self:
        return cls(**_values(row), vector=row.vector)

    def record(self) -> MemoryRecord:
        """What a caller may see of it."""
        return MemoryRecord(**{name: getattr(self, name) for name in _PUBLIC})


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One step of a record's history: when, what, by whom, why, and the values that it replaced."""

    id: str
    created_at: str
    ref: str
    number: int  # the revision that it made
    action: str
    user_id: str | None = None
    agent_id: str | None = None
    why: str | None = None
    before: dict[str, Value] = field(default_factory=dict)
    detail: dict[str, Value] | None = None
    revision: int = 1

    def row(self, partition: str) -> Row:
        return _row(self, Kind.CHANGE, partition)

    @classmethod
    def of(cls, row: Row) -> Self:
        return cls(**_values(row))


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One sealed line of an audit chain."""

    id: str
    created_at: str
    chain: str
    number: int
    operation_type: str
    yamo_text: str
    block_hash: str
    prev_hash: str | None = None
    user_id: str | None = None
    agent_id: str | None = None
    ref: str | None = None  # the memory that it is about
    metadata: dict[str, Value] | None = None
    revision: int = 1

    def row(self, *, replaces: int = 0) -> Row:
        return _row(self, Kind.BLOCK, self.chain, replaces)

    @classmethod
    def of(cls, row: Row) -> Self:
        return _readable(cls, row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where a chain ends. Each append is its next revision, so two appends at once cannot both succeed."""

    id: str  # the chain
    created_at: str
    number: int
    block_hash: str
    revision: int = 1

    def row(self) -> Row:
        return _row(self, Kind.HEAD, self.id, self.revision - 1)

    @classmethod
    def of(cls, row: Row) -> Self:
        return _readable(cls, row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """An idempotency key that was used: for which request, and what it stored. Erasing the memory leaves no request."""

    id: str
    created_at: str
    ref: str
    request: str | None = None
    revision: int = 1

    def row(self, partition: str, *, replaces: int = 0) -> Row:
        return _row(self, Kind.RECEIPT, partition, replaces)

    @classmethod
    def of(cls, row: Row) -> Self:
        return cls(**_values(row))


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How often a memory was found, and when last. A row of its own, so that reading never waits for a write of the memory."""

    id: str  # the memory's
    created_at: str
    ref: str
    access_count: int
    last_accessed: str
    revision: int = 1

    def row(self, partition: str, *, replaces: int = 0) -> Row:
        return _row(self, Kind.USAGE, partition, replaces)

    @classmethod
    def of(cls, row: Row) -> Self:
        return cls(**_values(row))


class MetaSource(Protocol):
    """The part of a store that `Meta` reads from."""

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]: ...

    def find(self, kind: Kind) -> list[Row]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """A named entry of the store's bookkeeping, such as the model of its vectors. Revision 0 means that it is not stored yet."""

    id: str
    created_at: str = ""
    detail: dict[str, Value] = field(default_factory=dict)
    revision: int = 0

    def row(self, detail: Mapping[str, Value], *, at: str) -> Row:
        """Return the row that stores `detail` as the next revision; `at` is the creation time of a new entry."""
        newer = Meta(id=self.id, created_at=self.created_at or at, detail=dict(detail), revision=self.revision + 1)
        return _row(newer, Kind.META, "", self.revision)

    @classmethod
    def of(cls, row: Row) -> Self:
        detail = row.value("detail")
        return cls(id=row.id, created_at=row.created_at, detail=detail if isinstance(detail, dict) else {}, revision=row.revision)

    @classmethod
    def read(cls, store: MetaSource, id_: str) -> Self:
        """Return the entry with this id, with revision 0 and an empty `detail` when the store has none."""
        row = store.get(Kind.META, [id_]).get(id_)
        return cls.of(row) if row else cls(id=id_)

    @classmethod
    def with_prefix(cls, store: MetaSource, prefix: str) -> list[Self]:
        """Return the entries whose ids start with `prefix`, newest first."""
        return [cls.of(row) for row in store.find(Kind.META) if row.id.startswith(prefix)]


_PUBLIC = tuple(f.name for f in fields(MemoryRecord))
_SHOWN = frozenset(_PUBLIC)


def _row(record: Any, kind: Kind, partition: str, replaces: int = 0) -> Row:
    values = {f.name: getattr(record, f.name) for f in fields(record)}
    return checked(
        Row(
            kind=kind,
            id=record.id,
            partition=partition,
            created_at=record.created_at,
            revision=record.revision,
            number=values.get("number", 0),
            fields={column.name: _plain(values[column.name]) for column in fields_of(kind) if column.name in values},
            vector=values.get("vector"),
            replaces=replaces,
        )
    )


def _plain(value: Value) -> Value:
    return str(value) if isinstance(value, StrEnum) else value


def _readable(kind: Callable[..., Read], row: Row) -> Read:
    """A row of the audit trail as its record. Whoever has the file in hands may have put anything into it: what none of ours has
    written is damage, and no error of the program."""
    try:
        return kind(**_values(checked(row)))
    except (InvalidInput, TypeError, AttributeError) as error:
        why = str(error) if isinstance(error, InvalidInput) else "it has other columns than it should"
        raise StoreCorrupt(f"the {row.kind} {shown(row.id)} cannot be read: {why}", remedy="restore a backup") from error


def _values(row: Row) -> dict[str, Any]:
    base = {"id": row.id, "created_at": row.created_at, "revision": row.revision}
    if row.kind not in (Kind.RECEIPT, Kind.USAGE):
        base["number"] = row.number
    return {**base, **row.fields}
