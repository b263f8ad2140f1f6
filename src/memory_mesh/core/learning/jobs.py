"""Jobs that come round: when one is due, who runs it, and what came of it.

The state of a job is one row that is replaced as a whole. Whoever takes the job writes its name into it; a second one that tries
at the same moment finds that the row has moved.
"""

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from types import NoneType
from typing import Any, Self

from memory_mesh.core.model.columns import Value

LEASE_MS = 30 * 60_000  # a process that died holds a job no longer than that
KEPT = 50  # runs of each job that are remembered
_EARLY = 100  # a hundredth of the time


class Outcome(StrEnum):
    """What came of a job."""

    DONE = "done"
    FAILED = "failed"
    NOT_DUE = "not due"
    HELD = "held by another"
    BLOCKED = "blocked"  # the guard found damage
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """One time that a job's turn came."""

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
    """What one beat did, in the order of priority."""

    runs: tuple[JobRun, ...]

    @property
    def ok(self) -> bool:
        return all(run.ok for run in self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The state of a job: who holds it until when, and when it was last done."""

    holder: str | None = None
    until: int = 0
    last: int | None = None
    count: int = 0

    @classmethod
    def of(cls, detail: Value) -> Self:
        """What a store kept; what is not as we wrote it is a job that never ran."""
        kept = detail if isinstance(detail, dict) else {}
        fits = {"holder": (str, NoneType), "until": (int,), "last": (int, NoneType), "count": (int,)}
        if not all(name in kept and type(kept[name]) in types for name, types in fits.items()):
            return cls()
        said: dict[str, Any] = {name: kept[name] for name in fits}
        return cls(**said)

    def detail(self) -> dict[str, Value]:
        return asdict(self)

    def refused(self, ms: int, every: int, *, force: bool) -> Outcome | None:
        """Why the job is not to be run now, or None."""
        if self.holder and ms < self.until <= ms + LEASE_MS:
            return Outcome.HELD
        # A moment in the future was written before the clock was set back. And a beat that comes a little early counts: else a
        # job that is due every eight hours would wait for the next beat of a schedule of eight hours, which makes it sixteen.
        waits = self.last is not None and 0 <= ms - self.last < every - every // _EARLY
        return Outcome.NOT_DUE if waits and not force else None

    def taken(self, holder: str, ms: int) -> Self:
        return replace(self, holder=holder, until=ms + LEASE_MS)

    def given_back(self, holder: str | None, began: int, *, done: bool) -> Self:
        """What failed stays due. Whoever took so long that another took it over changes nothing but the count."""
        if self.holder != holder:
            return replace(self, count=self.count + 1)
        return replace(self, holder=None, until=0, last=began if done else self.last, count=self.count + 1)
