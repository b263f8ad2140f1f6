"""What a run of capture reports."""

from dataclasses import dataclass, field

from memory_mesh.core.model import MemoryRecord
from memory_mesh.core.reprs import short_repr

CURSOR = "capture "  # begins the name of the entry that tells what was read of a session; the user and the session follow as JSON


@dataclass(frozen=True, slots=True, repr=False)
class NotKept:
    """A text that was not kept, and why."""

    __repr__ = short_repr

    text: str
    why: str
    message: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CaptureReport:
    """What a run kept, and what it did not keep and why."""

    __repr__ = short_repr

    kept: list[MemoryRecord] = field(default_factory=list)
    not_kept: list[NotKept] = field(default_factory=list)  # the first 500
    superseded: list[str] = field(default_factory=list)
    archived: list[str] = field(default_factory=list)  # by the end of the session
    new_messages: int = 0
    cursor: int = 0  # messages of the session that were read so far
    note: str | None = None  # what was left for the next run, or could not be read


@dataclass(frozen=True, slots=True, repr=False)
class WouldKeep:
    """A statement that capture would keep, and as which type."""

    __repr__ = short_repr

    content: str
    memory_type: str
    confidence_score: int
    message: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Judgement:
    """What capture would keep of some messages, and what it would not keep and why. Nothing was stored."""

    __repr__ = short_repr

    kept: list[WouldKeep] = field(default_factory=list)  # the first 200
    not_kept: list[NotKept] = field(default_factory=list)  # the first 500


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JunkFound:
    """A stored memory that should not be in a memory, and why; `archived` if it was archived just now."""

    __repr__ = short_repr

    id: str
    content: str
    why: str
    archived: bool = False
