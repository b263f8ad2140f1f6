"""Recurring jobs, and the daily budget of language models and paid embedders.

The state of a job is one row that is replaced as a whole. A process takes the job by writing its
name into the row; a second process that tries at the same moment gets a conflict.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from types import NoneType
from typing import Any, Protocol, Self

from memory_mesh.core.errors import BudgetSpent
from memory_mesh.core.model import Value
from memory_mesh.core.ports import Tokens
from memory_mesh.core.text import short_repr

# --- jobs ---

LEASE_MS = 30 * 60_000  # after this time a job of a process that died can be taken again
MAX_STORED_RUNS = 50  # of each job
# A job is due when 99 % of its interval has passed. Otherwise a job with an interval of eight
# hours, started a moment early by a schedule of eight hours, would wait for the next start, sixteen
# hours after the last.
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
    """The state of a job: which process runs it until when, when it was last done, and how often
    it ran."""

    holder: str | None = None
    until: int = 0
    last: int | None = None
    count: int = 0

    @classmethod
    def of(cls, detail: Value) -> Self:
        """Read the stored state. A value in another format counts as a job that never ran."""
        stored = detail if isinstance(detail, dict) else {}
        types = {
            "holder": (str, NoneType),
            "until": (int,),
            "last": (int, NoneType),
            "count": (int,),
        }
        if not all(
            name in stored and type(stored[name]) in allowed for name, allowed in types.items()
        ):
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
        """Record the end of a run. A failed job stays due. If another process took the job over,
        only the count changes."""
        if self.holder != holder:
            return replace(self, count=self.count + 1)
        return replace(
            self, holder=None, until=0, last=began if done else self.last, count=self.count + 1
        )


# --- spending ---
# Usage is counted by operation and model. A call first reserves the maximum that it may use, and
# replaces it by the real usage when it ends.


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens."""

    sent: float
    received: float = 0.0

    def of(self, tokens: Tokens) -> float:
        return (tokens.sent * self.sent + tokens.received * self.received) / 1_000_000


@dataclass(frozen=True, slots=True)
class Caps:
    """The maximum usage of one day; None: unlimited."""

    tokens: int | None = None
    cost: float | None = None

    @property
    def any(self) -> bool:
        return self.tokens is not None or self.cost is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """The usage of one model by one operation."""

    operation: str
    model: str
    calls: int = 0
    failed: int = 0
    sent: int = 0
    received: int = 0
    cost: float | None = None  # dollars; None: the price is unknown

    def plus(self, other: "Spending") -> "Spending":
        """Return the sum of both."""
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return replace(
            self, calls=self.calls + other.calls, failed=self.failed + other.failed,
            sent=self.sent + other.sent, received=self.received + other.received,
            cost=sum(costs) if costs else None,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class DailySpending:
    """The usage of one day, and the reservations of running calls by ticket."""

    spent: tuple[Spending, ...] = ()
    reserved: Mapping[str, Spending] = field(default_factory=dict)

    @classmethod
    def of(cls, detail: Value) -> Self:
        """Read the stored usage. A value in another format counts as no usage; it never prevents
        storing a memory."""
        stored: Any = detail
        try:
            spent = tuple(_parse(account) for account in stored["spent"])
            reserved = {str(ticket): _parse(account) for ticket, account in stored["held"].items()}
        except (TypeError, KeyError, AttributeError):
            return cls()
        return cls(spent, reserved)

    def detail(self) -> dict[str, Value]:
        return {
            "spent": [asdict(account) for account in self.spent],
            "held": {ticket: asdict(account) for ticket, account in self.reserved.items()},
        }

    def plus(self, other: "DailySpending") -> "DailySpending":
        """Return the usage and the reservations of both."""
        return DailySpending(
            totals((*self.spent, *other.spent)), {**self.reserved, **other.reserved}
        )

    def reserve(self, ticket: str, maximum: Spending, caps: Caps) -> "DailySpending":
        """Add the reservation of a call that uses at most `maximum`, or raise `BudgetSpent`."""
        accounts = [*self.spent, *self.reserved.values(), maximum]
        running = f", {len(self.reserved)} of them running or never ended" if self.reserved else ""
        tokens = sum(account.sent + account.received for account in accounts)
        cost = sum(account.cost or 0.0 for account in accounts)
        if caps.tokens is not None and tokens > caps.tokens:
            raise _over_cap(
                maximum,
                f"{tokens:,} tokens{running}",
                f"at most {caps.tokens:,}",
                "llm_daily_tokens",
            )
        if caps.cost is not None and cost > caps.cost:
            raise _over_cap(
                maximum, f"${cost:.4f}{running}", f"at most ${caps.cost:.4f}", "llm_daily_cost"
            )
        return replace(self, reserved={**self.reserved, ticket: maximum})

    def commit(self, ticket: str, used: Spending) -> "DailySpending":
        """Replace the reservation by the real usage. Usage under an unknown ticket is counted
        too."""
        reserved = {name: account for name, account in self.reserved.items() if name != ticket}
        return DailySpending(totals((*self.spent, used)), reserved)


class Accounts(Protocol):
    """The spending of each day, by date. **flush** writes what was counted before the store
    could be written to."""

    def days(self) -> Mapping[str, DailySpending]: ...
    def flush(self) -> None: ...


def totals(accounts: Iterable[Spending]) -> tuple[Spending, ...]:
    """Return one sum for each operation and model, in their order."""
    sums: dict[tuple[str, str], Spending] = {}
    for account in accounts:
        key = (account.operation, account.model)
        sums[key] = sums[key].plus(account) if key in sums else account
    return tuple(sums[key] for key in sorted(sums))


def _parse(stored: Any) -> Spending:
    account = Spending(**stored)
    numbers = (account.calls, account.failed, account.sent, account.received, account.cost or 0.0)
    if not all(isinstance(number, int | float) and number >= 0 for number in numbers):
        raise TypeError("not a stored account")
    return account


def _over_cap(call: Spending, total: str, expected: str, setting: str) -> BudgetSpent:
    what = f"{call.operation} would take today's calls to {total}"
    return BudgetSpent(
        what, expected=expected, remedy=f"wait for tomorrow (UTC), or raise {setting}"
    )
