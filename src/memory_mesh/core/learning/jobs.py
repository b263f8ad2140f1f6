"""Recurring jobs: when a job is due, which process runs it, and with what outcome.

The state of a job is one row that is replaced as a whole. A process takes the job by writing its name into the row; a second
process that tries at the same moment gets a conflict.
"""

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from types import NoneType
from typing import Any, Self

from memory_mesh.core.model import Value
from memory_mesh.core.reprs import short_repr

LEASE_MS = 30 * 60_000  # after this time a job of a process that died can be taken again
MAX_STORED_RUNS = 50  # of each job
# A job is due when 99 % of its interval has passed. Otherwise a job with an interval of eight hours, started a moment early by a
# schedule of eight hours, would wait for the next start, sixteen hours after the last.
_EARLY = 100


class Outcome(StrEnum):
    """The outcome of a job."""

    DONE = "done"
    FAILED = "failed"
    NOT_DUE = "not due"
    HELD = "held by another"
    BLOCKED = "blocked"  # the guard found damage
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One run of a job, or why it was not run."""

    __repr__ = short_repr

    job: str
    priority: int
    outcome: Outcome
    began: str
    ended: str
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.outcome not in (Outcome.FAILED, Outcome.BLOCKED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The runs of one heartbeat, in the order of priority."""

    __repr__ = short_repr

    runs: tuple[JobRun, ...]

    @property
    def ok(self) -> bool:
        return all(run.ok for run in self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """The state of a job: which process runs it until when, when it was last done, and how often it ran."""

    holder: str | None = None
    until: int = 0
    last: int | None = None
    count: int = 0

    @classmethod
    def of(cls, detail: Value) -> Self:
        """Read the stored state. A value in another format counts as a job that never ran."""
        stored = detail if isinstance(detail, dict) else {}
        types = {"holder": (str, NoneType), "until": (int,), "last": (int, NoneType), "count": (int,)}
        if not all(name in stored and type(stored[name]) in allowed for name, allowed in types.items()):
            return cls()
        fields: dict[str, Any] = {name: stored[name] for name in types}
        return cls(**fields)

    def detail(self) -> dict[str, Value]:
        return asdict(self)

    def refusal(self, ms: int, every: int, *, force: bool) -> Outcome | None:
        """Return why the job must not run now, or None. `force` runs a job that is not due."""
        if self.holder and ms < self.until <= ms + LEASE_MS:
            return Outcome.HELD
        # A last run in the future was written before the clock was set back; it does not count.
        not_due = self.last is not None and 0 <= ms - self.last < every - every // _EARLY
        return Outcome.NOT_DUE if not_due and not force else None

    def acquire(self, holder: str, ms: int) -> Self:
        return replace(self, holder=holder, until=ms + LEASE_MS)

    def release(self, holder: str | None, began: int, *, done: bool) -> Self:
        """Record the end of a run. A failed job stays due. If another process took the job over, only the count changes."""
        if self.holder != holder:
            return replace(self, count=self.count + 1)
        return replace(self, holder=None, until=0, last=began if done else self.last, count=self.count + 1)
