"""The results of operations that are more than a memory or a list of memories."""

from collections import Counter
from dataclasses import dataclass, field

from memory_mesh.core.model.records import MemoryRecord
from memory_mesh.core.reprs import short_repr


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Extraction:
    """The result of extracting memories from a text."""

    __repr__ = short_repr

    memories: tuple[MemoryRecord, ...]
    dropped: int = 0  # proposed by the model, but not important enough
    unusable: int = 0  # in the answer of the model, but not a usable memory
    stored_whole: str | None = None  # why the text, or a part of it, was stored unchanged
    flagged: tuple[str, ...] = ()  # kinds of prompt injection found in the text
    redactions: dict[str, int] = field(default_factory=dict)  # how many values of each kind were masked in the text
    repeated: bool = False  # the idempotency key was used before; no model was called and nothing was stored


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BackedUp:
    """A copy of a store's file, and its size."""

    __repr__ = short_repr

    file: str
    bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class FailedLine:
    """A line that was not imported, and why."""

    __repr__ = short_repr

    line: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Imported:
    """The result of an import: how many memories were stored, how many were stored already, and which lines failed."""

    __repr__ = short_repr

    imported: int = 0
    skipped: int = 0
    failed: tuple[FailedLine, ...] = ()
    redactions: dict[str, int] = field(default_factory=dict)  # how many values of each kind were masked

    def __add__(self, other: "Imported") -> "Imported":
        sums = {name: getattr(self, name) + getattr(other, name) for name in ("imported", "skipped", "failed")}
        return Imported(**sums, redactions=dict(Counter(self.redactions) + Counter(other.redactions)))
