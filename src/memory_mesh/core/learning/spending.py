"""What calls to language models and paid embedders use: counted by operation and model, and held under a cap.

The account of a day is a value; a call first takes the most that it may use out of it, and gives back what it did not.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol, Self

from memory_mesh.core.errors import BudgetSpent
from memory_mesh.core.model.columns import Value
from memory_mesh.core.ports import Tokens


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens."""

    sent: float
    received: float = 0.0

    def of(self, tokens: Tokens) -> float:
        return (tokens.sent * self.sent + tokens.received * self.received) / 1_000_000


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that one day may take; None: there is no end."""

    tokens: int | None = None
    cost: float | None = None

    @property
    def any(self) -> bool:
        return self.tokens is not None or self.cost is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What one operation used of one model."""

    operation: str
    model: str
    calls: int = 0
    failed: int = 0
    sent: int = 0
    received: int = 0
    cost: float | None = None  # dollars; None where no price is known

    def plus(self, other: "Spent") -> "Spent":
        """Both together."""
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return replace(
            self, calls=self.calls + other.calls, failed=self.failed + other.failed, sent=self.sent + other.sent,
            received=self.received + other.received, cost=sum(costs) if costs else None,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Day:
    """The account of one day: what was used, and what running calls hold."""

    spent: tuple[Spent, ...] = ()
    held: Mapping[str, Spent] = field(default_factory=dict)

    @classmethod
    def of(cls, detail: Value) -> Self:
        """What a store kept. What is not as we wrote it counts for nothing; it never stops a memory."""
        kept: Any = detail
        try:
            spent = tuple(_account(account) for account in kept["spent"])
            held = {str(ticket): _account(account) for ticket, account in kept["held"].items()}
        except (TypeError, KeyError, AttributeError):
            return cls()
        return cls(spent, held)

    def detail(self) -> dict[str, Value]:
        return {
            "spent": [asdict(account) for account in self.spent],
            "held": {ticket: asdict(account) for ticket, account in self.held.items()},
        }

    def reserve(self, ticket: str, most: Spent, caps: Caps) -> "Day":
        """The day with a call that may use so much, or `BudgetSpent`."""
        taken = [*self.spent, *self.held.values(), most]
        held = f", {len(self.held)} of them under way or never ended" if self.held else ""
        tokens = sum(account.sent + account.received for account in taken)
        cost = sum(account.cost or 0.0 for account in taken)
        if caps.tokens is not None and tokens > caps.tokens:
            raise _over(f"{tokens:,} tokens{held}", f"at most {caps.tokens:,}", "llm_daily_tokens", most)
        if caps.cost is not None and cost > caps.cost:
            raise _over(f"${cost:.4f}{held}", f"at most ${caps.cost:.4f}", "llm_daily_cost", most)
        return replace(self, held={**self.held, ticket: most})

    def commit(self, ticket: str, used: Spent) -> "Day":
        """The day with what a call really used. A ticket that is not held any more is counted all the same."""
        same = (used.operation, used.model)
        others = tuple(account for account in self.spent if (account.operation, account.model) != same)
        mine = [account for account in self.spent if (account.operation, account.model) == same]
        total = mine[0].plus(used) if mine else used
        left = {name: account for name, account in self.held.items() if name != ticket}
        return Day((*others, total), left)


class Accounts(Protocol):
    """The accounts of paid calls, by day."""

    def days(self) -> Mapping[str, Day]: ...


def added(accounts: tuple[Spent, ...]) -> tuple[Spent, ...]:
    """One line for each operation and model, in their order."""
    sums: dict[tuple[str, str], Spent] = {}
    for account in accounts:
        key = (account.operation, account.model)
        sums[key] = sums[key].plus(account) if key in sums else account
    return tuple(sums[key] for key in sorted(sums))


def _account(kept: Any) -> Spent:
    account = Spent(**kept)
    numbers = (account.calls, account.failed, account.sent, account.received, account.cost or 0.0)
    if not all(isinstance(number, int | float) and number >= 0 for number in numbers):
        raise TypeError("no account of ours")
    return account


def _over(would_be: str, expected: str, setting: str, most: Spent) -> BudgetSpent:
    return BudgetSpent(
        f"{most.operation} would take today's calls to {would_be}",
        expected=expected,
        remedy=f"wait for tomorrow (UTC), or raise {setting}",
    )
