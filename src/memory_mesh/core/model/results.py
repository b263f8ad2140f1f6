"""The results of operations that are more than memories, and the history of a memory."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from memory_mesh.core.model.records import Change, Memory, MemoryRecord
from memory_mesh.core.model.rows import Value
from memory_mesh.core.model.where import Reader, visible
from memory_mesh.core.text import ShortRepr


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Extraction(ShortRepr):
    """The result of extracting memories from a text."""

    memories: tuple[MemoryRecord, ...]
    dropped: int = 0  # proposed by the model, but not important enough
    unusable: int = 0  # in the answer of the model, but not a usable memory
    stored_whole: str | None = None  # why the text, or a part of it, was stored unchanged
    flagged: tuple[str, ...] = ()  # kinds of prompt injection found in the text
    # How many values of each kind were masked in the text.
    redactions: dict[str, int] = field(default_factory=dict)
    # The idempotency key was used before; no model was called and nothing was stored.
    repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCount:
    """A user of a store, and the number of its memories."""

    user_id: str | None  # None: memories without a user
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BackedUp(ShortRepr):
    """A copy of a store's file, and its size."""

    file: str
    bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class FailedLine(ShortRepr):
    """A line that was not imported, and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Imported(ShortRepr):
    """The result of an import: how many memories were stored, how many were stored already, and
    which lines failed."""

    imported: int = 0
    skipped: int = 0
    failed: tuple[FailedLine, ...] = ()
    # How many values of each kind were masked.
    redactions: dict[str, int] = field(default_factory=dict)

    def __add__(self, other: "Imported") -> "Imported":
        sums = {
            name: getattr(self, name) + getattr(other, name)
            for name in ("imported", "skipped", "failed")
        }
        return Imported(
            **sums, redactions=dict(Counter(self.redactions) + Counter(other.redactions))
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Copied(ShortRepr):
    """The result of copying all rows of a store: how many the target has, by kind, and how many
    of them this run wrote."""

    source: str
    rows: dict[str, int] = field(default_factory=dict)
    written: int = 0
    digest: str = ""  # of all rows; equal for equal stores
    chains: int = 0  # audit chains that were verified
    broken: tuple[str, ...] = ()  # what is wrong with an audit chain; it is the same in the source
    reembedded: int = 0  # memories that got a vector of the current model


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Repaired(ShortRepr):
    """The result of repairing a store: how many rows were saved into a new one, by kind, and
    what was lost and why."""

    file: str  # the damaged store, which is as it was
    new: str | None = None  # None: it is not damaged, so that nothing was done
    saved: dict[str, int] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)  # at least so many
    reasons: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()  # what is wrong with an audit chain of the new store


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FileImport(ShortRepr):
    """The result of importing a file: its format, and how many memories and links were stored,
    skipped and failed."""

    format: str
    memories: int = 0
    links: int = 0
    skipped: dict[str, int] = field(default_factory=dict)  # how many, by reason
    failed: tuple[FailedLine, ...] = ()
    # How many values of each kind were masked.
    redactions: dict[str, int] = field(default_factory=dict)
    copied: Copied | None = None  # of a whole store


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DamagedRow(ShortRepr):
    """A row of a table that cannot be read as a whole memory, and why. Rows are counted from 1."""

    row: int
    id: str | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Migration(ShortRepr):
    """The result of migrating the tables of a LanceDB folder: what was done, or would be done by
    a run that is not dry."""

    # `migrate`, `roll back`, or `none` if the tables are of the current version.
    action: str = "none"
    rows: int = 0  # in the table of memories
    damaged: tuple[DamagedRow, ...] = ()  # copied as they are
    backup: str | None = None  # the table that was put aside
    backup_until: str | None = None  # when it may be removed
    # Memories that were stored after the migration; a rollback leaves them in the table put aside.
    left_behind: int = 0
    removed: tuple[str, ...] = ()  # tables that were put aside more than 30 days ago
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EndedSession(ShortRepr):
    """A session that ended, and the memories that were archived with it."""

    session_id: str
    archived: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HealthStatus(ShortRepr):
    """Whether memories can be stored and found: healthy, degraded (by keywords only) or
    unhealthy, and why."""

    status: str
    store: str = ""
    total_memories: int = 0
    pending: int = 0  # memories that wait for a vector
    embedder: str | None = None  # its model
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status == "healthy"


@dataclass(frozen=True, slots=True, repr=False)
class Reembedded(ShortRepr):
    """The result of `reembed`."""

    model: str
    embedded: int  # memories that got a vector
    changed_from: str | None = None  # the previous model of the store, if it changed


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPlace:
    """A place in which erased memories were looked for: how much of them was found before the
    erasure, and after."""

    name: str
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureCheck:
    """What was looked for before and after an erasure, and what was found."""

    texts: int  # different texts: contents, older contents, queries
    too_short: int = 0  # texts that are too short to be looked for
    found_before: int  # of them in the files before the erasure: the control
    # The ids of what is left, each with its place, or the name of its file.
    found: tuple[tuple[str, str], ...] = ()
    # Texts that are still there because other memories, or searches, have the same words.
    shared: int = 0
    rows_left: int = 0  # rows of a forgotten user that the store still has
    places: tuple[CheckedPlace, ...] = ()  # where was looked
    unread: tuple[str, ...] = ()  # files that could not be read, and so may have a text

    @property
    def clean(self) -> bool:
        return not (self.found or self.rows_left or self.unread)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Forgotten(ShortRepr):
    """What was erased: the ids of the memories, and of the audit blocks that record it."""

    memories: tuple[str, ...] = ()
    rows: int = 0  # deleted rows: memories, revisions, passages, links, counters
    tombstones: tuple[str, ...] = ()  # blocks that lost their text
    blocks: tuple[str, ...] = ()  # erasure blocks that were written
    kept: tuple[str, ...] = ()  # memories that agents or sessions outside the scope stored too
    # Sections that were taken out of the files of notes, such as /notes/login.md#0.
    notes: tuple[str, ...] = ()
    # Sections that people wrote, and that are still in their files.
    notes_left: tuple[str, ...] = ()
    # Traces, entries and learnings that were taken out of the files of traces.
    traces: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()  # chains of searches that are broken, and so keep their queries
    # False: the bytes stay in the files until the store is closed, or until `compact`.
    bytes_freed: bool = True
    check: ErasureCheck | None = None  # with `verify`

    def __add__(self, other: "Forgotten") -> "Forgotten":
        sums = {
            one.name: getattr(self, one.name) + getattr(other, one.name)
            for one in fields(self)
            if one.name not in ("bytes_freed", "check")
        }
        return Forgotten(**sums, bytes_freed=self.bytes_freed and other.bytes_freed)


@dataclass(frozen=True, slots=True, repr=False)
class Failed(ShortRepr):
    """A file that was not stored, and why. A path that ends with a slash is a folder."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class Gone(ShortRepr):
    """A memory whose file is no longer in the folder. It is kept until it is deleted."""

    source: str
    id: str


@dataclass(frozen=True, slots=True, repr=False)
class Ingested(ShortRepr):
    """The result of ingesting a folder."""

    root: str
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    failed: list[Failed] = field(default_factory=list)
    gone: list[Gone] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Checked(ShortRepr):
    """The result of checking one model."""

    part: str  # language model, embedder
    model: str | None = None  # None: not configured
    ok: bool = True
    detail: str
    remedy: str = ""


# --- history ---

AnyMemory = TypeVar("AnyMemory", bound=Memory)

# The fields that decide who sees a memory.
_SCOPE = frozenset({"memory_type", "reach", "agent_id", "session_id"})
# The history does not keep their old values: they are computed from other fields, or mean nothing
# by themselves.
_DERIVED = frozenset({"keywords", "fingerprint", "updated_at", "vector", "salt"})


def revise(
    memory: AnyMemory, *, at: str, by: str | None, action: str, why: str | None = None,
    detail: dict[str, Value] | None = None, **updates: Any,
) -> tuple[AnyMemory, Change]:  # fmt: skip
    """Return the next revision of the memory with the updates applied, and the change that
    records it."""
    before = {
        name: getattr(memory, name)
        for name, value in updates.items()
        if name not in _DERIVED and getattr(memory, name) != value
    }
    newer = replace(memory, revision=memory.revision + 1, **updates)
    change = Change(
        id=change_id(memory.id, newer.revision), created_at=at, ref=memory.id,
        number=newer.revision, action=action, user_id=memory.user_id, agent_id=by, why=why,
        before=before, detail=detail,
    )  # fmt: skip
    return newer, change


def visible_from(reader: Reader, memory: Memory, changes: Iterable[Change]) -> int:
    """Return the first revision of a visible memory from which on the reader could see it."""
    for change in sorted(changes, key=lambda change: change.number, reverse=True):
        moved: dict[str, Any] = {
            name: value for name, value in change.before.items() if name in _SCOPE
        }
        if moved:
            memory = replace(memory, **moved)
            if not visible(reader, memory.row()):
                return change.number
    return 1


def since_visible(reader: Reader, memory: Memory, changes: Sequence[Change]) -> list[Change]:
    """Remove from the changes the old values that were not visible to the reader when they were
    stored."""
    first = visible_from(reader, memory, changes)
    return [
        change if change.number > first else replace(change, before={}, detail=None, why=None)
        for change in changes
    ]


def rewound(memory: AnyMemory, changes: Iterable[Change], at: str) -> AnyMemory | None:
    """Return a memory as it was at a time, from its changes; None if it was stored later.

    Derived fields stay as they are now, but for `updated_at`, which is the time of the last change
    until then.
    """
    if memory.created_at > at:
        return None
    ordered = sorted(changes, key=lambda change: change.number)
    later = [change for change in ordered if change.created_at > at]
    if not later:
        return memory
    before: dict[str, Any] = {}
    for change in reversed(later):
        before |= change.before
    updated = max(
        (change.created_at for change in ordered if change.created_at <= at),
        default=memory.created_at,
    )
    return replace(memory, **{**before, "revision": later[0].number - 1, "updated_at": updated})


def creation(memory: Memory) -> Change:
    """Return the first change of a history. It is not stored: the memory has all that it needs."""
    return Change(
        id=change_id(memory.id, 1), created_at=memory.created_at, ref=memory.id, number=1,
        action="add", user_id=memory.user_id, agent_id=memory.agent_id,
    )  # fmt: skip


def change_id(memory_id: str, revision: int) -> str:
    return f"{memory_id}#{revision}"
