"""Frozen records, which flows use and faces return, and their conversion from and to rows.

A change makes a new record.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, Protocol, Self, TypeVar

from memory_mesh.core.errors import InvalidInput, StoreCorrupt, shown
from memory_mesh.core.model.rows import (
    CONTENTS,
    REQUIRED,
    Kind,
    Row,
    Value,
    Vector,
    checked,
    fields_of,
    unreadable,
)
from memory_mesh.core.model.where import (
    ANYTHING,
    Compare,
    MemoryType,
    Where,
    all_of,
    partition_for,
)
from memory_mesh.core.text import ShortRepr

Record = TypeVar("Record")

MIN_IMPORTANCE = 0.4  # extracted memories of lower importance are dropped
UNKNOWN_IMPORTANCE = 0.5  # what a memory without an importance counts as


def copied_json(value: Any) -> Any:
    """Copy a JSON value; `deepcopy` takes several times as long."""
    if isinstance(value, dict):
        return {name: copied_json(part) for name, part in value.items()}
    if isinstance(value, list):
        # Most are lists of words.
        return [part if isinstance(part, str) else copied_json(part) for part in value]
    return value


class Status(StrEnum):
    """The status of a memory. Only active memories are returned unless a query names another
    status."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    DISPUTED = "disputed"
    QUARANTINED = "quarantined"
    ARCHIVED = "archived"


# Without slots: `from_fields` fills the dict of a record at once.
@dataclass(frozen=True, kw_only=True, repr=False)
class MemoryRecord(ShortRepr):
    """A memory as callers see it. Times are ISO 8601 texts in UTC."""

    id: str
    content: str
    metadata: dict[str, Value] = field(default_factory=dict)
    created_at: str
    updated_at: str = field(repr=False)
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    project: str | None = None
    memory_type: str = MemoryType.GLOBAL.value
    category: str | None = None
    tags: list[str] = field(default_factory=list)
    status: str = Status.ACTIVE.value
    importance: float | None = None
    # Of now: source, corroboration, feedback and age; a `Memory`, as it is stored, has the base
    # trust.
    trust: float | None = None
    confidence: float | None = None
    event_time: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    expires_at: str | None = None
    last_observed: str | None = field(default=None, repr=False)
    times_observed: int = 1
    pinned: bool = False
    pending: bool = False  # has no vector yet; found by keywords only until `reembed`
    access_count: int = 0
    last_accessed: str | None = field(default=None, repr=False)
    speaker: str | None = None
    turn: int | None = None
    superseded_by: str | None = None
    supersedes: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    heritage_chain: dict[str, Value] | None = None
    lesson_pattern_id: str | None = None
    source_skill_id: str | None = None
    # Subject, predicate, value, … of a claim; its validity is that of the memory.
    claim: dict[str, Value] | None = None
    corroborations: int = field(default=1, repr=False)  # how often its claim was stored
    reinforcements: int = field(default=0, repr=False)
    disputes: int = field(default=0, repr=False)
    entities: list[str] = field(default_factory=list)  # what it is about, as type:slug
    # A factor of its rank in the lane, raised and lowered by feedback.
    feedback_score: float = field(default=1.0, repr=False)
    feedback_count: int = field(default=0, repr=False)
    key: str | None = None  # of the caller's own: storing again under it replaces the memory
    revision: int = 1
    # An audit block binds the content; False for memories written by other programs or without
    # audit.
    sealed: bool = field(default=False, repr=False)
    # In the result of a write: how many values of each kind it masked. Not stored, and not part of
    # the memory.
    redactions: dict[str, int] = field(default_factory=dict, compare=False)

    @classmethod
    def from_fields(cls, row: Row, values: dict[str, Any]) -> Self:
        """Make the record of a row from its fields that are in `values`, which the record keeps.

        The generated `__init__` sets forty fields one by one, which takes ten times as long.
        """
        if not values.keys() >= _REQUIRED[row.kind]:
            raise unreadable(row, "columns")
        values["id"], values["created_at"], values["revision"] = (
            row.id,
            row.created_at,
            row.revision,
        )
        # An audit block sealed this revision or a later one.
        values["sealed"] = row.sealed is not None and row.revision <= row.sealed.revision
        if row.used:
            values["access_count"], values["last_accessed"] = row.used
        return _with_dict(cls, values)

    @property
    def excerpt(self) -> str:
        """The text to show."""
        return self.content

    def copied(self, **changes: Any) -> Self:
        """Return a copy with some fields changed. Its lists and objects are copies too."""
        values = {
            name: copied_json(value) if isinstance(value, _CONTAINERS) else value
            for name, value in vars(self).items()
        }
        return _with_dict(type(self), {**values, **changes})

    def changed(self, **changes: Any) -> Self:
        """Return the same with some fields changed. Its other lists and objects are not copied."""
        return _with_dict(type(self), {**vars(self), **changes})


_CONTAINERS = (dict, list)
_MUTABLE = (
    ("metadata", dict),
    ("tags", list),
    ("supersedes", list),
    ("sources", list),
    ("entities", list),
    ("redactions", dict),
)


def _with_dict(cls: type[Record], values: dict[str, Any]) -> Record:
    """Make a record of the fields that have a value; the class has the defaults of the others,
    but for lists and objects."""
    for name, new in _MUTABLE:
        if name not in values:
            values[name] = new()
    record = cls.__new__(cls)
    object.__setattr__(record, "__dict__", values)  # it is frozen
    return record


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Passage(ShortRepr):
    """A piece of a long memory: `content[start:end]` is its text."""

    text: str
    section: tuple[str, ...] = ()  # the headings above it, outermost first
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchResult(MemoryRecord):
    """A memory with its relevance to a query (0–1) and the similarity of its vector (0–1; None
    without vectors)."""

    score: float
    similarity: float | None = None
    # The piece of a long memory that fits the query best; None for a short one.
    passage: Passage | None = None
    copies: int = 1  # how many of the memories found have this text; they are shown once
    # The memory that replaced or ended what it says, and since when.
    updated_by: str | None = None
    until: str | None = None
    # Whether it is probably relevant: a search in the mode `precise` returns it too. A ranker
    # without such a minimum score leaves it True.
    relevant: bool = True

    @property
    def excerpt(self) -> str:
        """The text to show: the passage if there is one, else the content."""
        return self.passage.text if self.passage else self.content

    @classmethod
    def of(
        cls, row: Row, score: float, similarity: float | None = None,
        passage: Passage | None = None, *, relevant: bool = True,
    ) -> Self:  # fmt: skip
        """Make a result from the row of a memory."""
        values: dict[str, Any] = {**row.fields}
        for name in _HIDDEN:
            values.pop(name, None)
        if not values.keys() <= _SHOWN:  # fields of another program
            values = {name: value for name, value in values.items() if name in _SHOWN}
        values["score"], values["similarity"], values["passage"] = score, similarity, passage
        values["relevant"] = relevant
        return cls.from_fields(row, values)


@dataclass(frozen=True, kw_only=True, repr=False)
class Memory(MemoryRecord):
    """A memory with its internal fields: keywords, vector, fingerprint, salt, reach and
    position."""

    kind: ClassVar[Kind] = Kind.MEMORY

    reach: str | None = None
    number: int = field(default=0, repr=False)
    fingerprint: str | None = field(default=None, repr=False)
    # The same for claims about one subject and predicate.
    claim_key: str | None = field(default=None, repr=False)
    salt: str | None = field(default=None, repr=False)
    keywords: list[str] = field(default_factory=list, repr=False)
    vector: Vector | None = field(default=None, repr=False)

    @classmethod
    def new(cls, **values: Any) -> Self:
        """Make a new memory, as fast as `from_fields`. `id`, `content`, the times and `keywords`
        are needed."""
        return _with_dict(cls, values)

    @property
    def partition(self) -> str:
        return partition_for(self.user_id, self.agent_id, self.memory_type, self.reach)

    @property
    def scope(self) -> dict[str, Value]:
        """The columns that decide who sees it; its passages and links have the same values."""
        return {
            name: getattr(self, name)
            for name in ("user_id", "agent_id", "session_id", "memory_type", "reach")
        }

    @property
    def embedded_text(self) -> str:
        """The text whose vector it has."""
        return self.content

    def row(self, *, replaces: int = 0) -> Row:
        return _row(self, self.kind, self.partition, replaces)

    @classmethod
    def of(cls, row: Row) -> "Memory":
        """Make the record of a memory or of a skill."""
        kind = Skill if row.kind is Kind.SKILL else Memory
        if not row.fields.keys() <= _FIELDS[kind.kind]:
            raise unreadable(row, "columns")
        return kind.from_fields(
            row, {"keywords": [], **row.fields, "number": row.number, "vector": row.vector}
        )

    def record(self, trust: float) -> MemoryRecord:
        """Return the public part, with the trust of now; see `flows.search.readable.records`."""
        public = {name: value for name, value in vars(self).items() if name in _PUBLIC}
        return _with_dict(MemoryRecord, {**public, "trust": trust})


@dataclass(frozen=True, kw_only=True, repr=False)
class Skill(Memory):
    """A memory that tells how to do something. Its content is the whole definition, and its
    vector is that of the intent."""

    kind: ClassVar[Kind] = Kind.SKILL

    name: str
    intent: str  # what it is for, in one sentence

    @property
    def embedded_text(self) -> str:
        return self.intent

    @classmethod
    def of(cls, row: Row) -> "Skill":
        if isinstance(skill := Memory.of(row), cls):
            return skill
        raise unreadable(row, "columns")


@dataclass(frozen=True, slots=True, kw_only=True)
class _AboutMemory:
    """The common part of the records about the memory `ref`."""

    kind: ClassVar[Kind]

    id: str
    created_at: str
    ref: str

    def row(self, partition: str, *, replaces: int = 0) -> Row:
        return _row(self, self.kind, partition, replaces)

    @classmethod
    def of(cls, row: Row) -> Self:
        try:
            return cls(**_values(row))
        except TypeError as error:
            raise unreadable(row, "columns") from error


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Change(ShortRepr, _AboutMemory):
    """One step in the history of a memory: when, what, by whom, why, and the values that it
    replaced."""

    kind = Kind.CHANGE

    number: int  # the revision that it produced
    action: str
    user_id: str | None = None
    agent_id: str | None = None
    why: str | None = None
    before: dict[str, Value] = field(default_factory=dict)
    detail: dict[str, Value] | None = None
    revision: int = 1

    @classmethod
    def of(cls, row: Row) -> Self:
        return _checked_record(cls, row)


class _OfChain:
    """The common part of the records of an audit chain."""

    __slots__ = ()

    @classmethod
    def of(cls, row: Row) -> Self:
        return _checked_record(cls, row)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Block(ShortRepr, _OfChain):
    """One sealed line of an audit chain."""

    id: str
    created_at: str
    chain: str
    number: int
    operation_type: str
    yamo_text: str
    block_hash: str
    prev_hash: str | None = field(default=None, repr=False)
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None  # of a search
    ref: str | None = None  # the memory that it records
    metadata: dict[str, Value] | None = None
    # The columns from here on are None in blocks of earlier versions; `content_hash` and
    # `memory_revision` also in other blocks than those of memories.
    # The salted hash of the content, as in the text.
    content_hash: str | None = field(default=None, repr=False)
    memory_revision: int | None = None  # the revision of the memory that it records
    # The salted hash of the columns, of the memory and of its change.
    digest: str | None = field(default=None, repr=False)
    # Binds the block and, by the previous seal, every block before it; a tombstone keeps it.
    seal: str | None = field(default=None, repr=False)
    revision: int = 1

    def row(self, *, replaces: int = 0) -> Row:
        return _row(self, Kind.BLOCK, self.chain, replaces)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Head(ShortRepr, _OfChain):
    """The last block of a chain. Each append writes the next revision, so of two concurrent
    appends one is a conflict."""

    id: str  # the chain
    created_at: str
    number: int
    block_hash: str
    seal: str | None = field(default=None, repr=False)  # None in a chain of an earlier version
    signature: str | None = field(default=None, repr=False)
    key_id: str | None = None  # the key of the signature
    revision: int = 1

    def row(self) -> Row:
        return _row(self, Kind.HEAD, self.id, self.revision - 1)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Link(ShortRepr, _AboutMemory):
    """A link from the memory `ref` to the memory `target`. It has the scope of `ref`."""

    kind = Kind.LINK

    target: str
    link_type: str = "similar"
    similarity: float | None = None
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    memory_type: str | None = None
    reach: str | None = None
    revision: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ClaimConflict(ShortRepr, _AboutMemory):
    """Two memories whose claims exclude each other: the newer one (`ref`) and the one that was
    stored before (`target`).

    `detail` has the policy, the claim of each and how it was resolved.
    """

    kind = Kind.CONFLICT

    target: str
    status: str = "pending"  # or resolved
    why: str | None = None
    detail: dict[str, Value] = field(default_factory=dict)
    user_id: str | None = None
    agent_id: str | None = None
    revision: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedEvent(_AboutMemory):
    """A change of a memory (`action`) that waits for its delivery to a hook, with the memory as
    it was then (`detail`)."""

    kind = Kind.EVENT

    hook: str
    action: str
    detail: dict[str, Value] = field(default_factory=dict)
    revision: int = 1

    @classmethod
    def of(cls, row: Row) -> Self:
        return _checked_record(cls, row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt(_AboutMemory):
    """A used idempotency key (`id`), with its request and the memory that it stored. Erasing the
    memory clears the request."""

    kind = Kind.RECEIPT

    request: str | None = None
    revision: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(_AboutMemory):
    """How often a memory was found, and when last. A separate row: counting never conflicts with
    changes of the memory."""

    kind = Kind.USAGE

    access_count: int
    last_accessed: str
    revision: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sighting(ShortRepr, _AboutMemory):
    """An agent and session that stored the text of a memory: how often, when first (`created_at`)
    and when last.

    0 times means that the text was replaced since, and only the history has what this agent and
    session stored.
    """

    kind = Kind.SIGHTING

    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    times_observed: int = 1
    last_observed: str | None = None
    trust: float | None = None
    metadata: dict[str, Value] = field(default_factory=dict)  # as stored the last time
    revision: int = 1


class MetaSource(Protocol):
    """The part of a store that `Meta` reads from."""

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]: ...

    def find(self, kind: Kind, where: Where = ANYTHING) -> list[Row]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """A named entry of the store's bookkeeping, such as the model of its vectors. Revision 0
    means that it is not stored yet."""

    id: str
    created_at: str = ""
    detail: dict[str, Value] = field(default_factory=dict)
    revision: int = 0

    def row(self, detail: Mapping[str, Value], *, at: str) -> Row:
        """Return the row that stores `detail` as the next revision; `at` is the creation time of
        a new entry."""
        newer = Meta(
            id=self.id,
            created_at=self.created_at or at,
            detail=dict(detail),
            revision=self.revision + 1,
        )
        return _row(newer, Kind.META, "", self.revision)

    @property
    def stored(self) -> Row:
        """The row that it was read from."""
        return _row(self, Kind.META, "", self.revision)

    @classmethod
    def of(cls, row: Row) -> Self:
        detail = row.value("detail")
        return cls(
            id=row.id,
            created_at=row.created_at,
            detail=detail if isinstance(detail, dict) else {},
            revision=row.revision,
        )

    @classmethod
    def read(cls, store: MetaSource, id_: str) -> Self:
        """Return the entry with this id, with revision 0 and an empty `detail` when the store
        has none."""
        row = store.get(Kind.META, [id_]).get(id_)
        return cls.of(row) if row else cls(id=id_)

    @classmethod
    def with_prefix(cls, store: MetaSource, prefix: str) -> list[Self]:
        """Return the entries whose ids start with `prefix`, newest first."""
        # Ids are indexed.
        after = all_of(Compare("id", ">=", prefix), Compare("id", "<", prefix + chr(0x10FFFF)))
        return [cls.of(row) for row in store.find(Kind.META, after) if row.id.startswith(prefix)]


_PUBLIC = frozenset(f.name for f in fields(MemoryRecord))
_FIELDS = {kind: frozenset(column.name for column in fields_of(kind)) for kind in CONTENTS}
_REQUIRED = {kind: frozenset(REQUIRED[kind]) for kind in CONTENTS}
_SHOWN, _HIDDEN = _PUBLIC & _FIELDS[Kind.MEMORY], sorted(_FIELDS[Kind.MEMORY] - _PUBLIC)


def _row(record: Any, kind: Kind, partition: str, replaces: int = 0) -> Row:
    names, values = _columns_of(record.__class__, kind)
    return Row.new(
        kind, zip(names, values(record), strict=True), id=record.id, partition=partition,
        created_at=record.created_at, revision=record.revision, replaces=replaces,
        number=getattr(record, "number", 0), vector=getattr(record, "vector", None),
    )  # fmt: skip


@cache
def _columns_of(
    record: type, kind: Kind
) -> tuple[tuple[str, ...], Callable[[Any], tuple[Value, ...]]]:
    """Return the columns of a kind that a type of record has, and the function that returns
    their values."""
    own = {f.name for f in fields(record)}
    names = tuple(column.name for column in fields_of(kind) if column.name in own)
    return names, attrgetter(*names) if len(names) > 1 else lambda one: tuple(
        getattr(one, name) for name in names
    )


def _checked_record(cls: type[Record], row: Row) -> Record:
    """Make the record of a row. The file may have been edited by hand, so an unexpected row
    raises `StoreCorrupt`."""
    try:
        return cls(**_values(checked(row)))
    except InvalidInput as error:
        raise StoreCorrupt(
            f"the {row.kind} {shown(row.id)} cannot be read: {error}", remedy="restore a backup"
        ) from error
    except (TypeError, AttributeError) as error:
        raise unreadable(row, "columns") from error


def _values(row: Row) -> dict[str, Any]:
    base = {"id": row.id, "created_at": row.created_at, "revision": row.revision}
    if row.kind not in (
        Kind.RECEIPT,
        Kind.USAGE,
        Kind.SIGHTING,
        Kind.LINK,
        Kind.CONFLICT,
        Kind.EVENT,
    ):
        base["number"] = row.number
    return {**base, **row.fields}
