"""The usage of paid models, counted in the store, so that one daily cap holds for all processes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

from memory_mesh.core.errors import MemoryDisabled, StoreError, StoreReadOnly
from memory_mesh.core.learning import Accounts, Caps, DailySpending, Price, Spending, totals
from memory_mesh.core.model import Meta, iso
from memory_mesh.core.ports import Clock, IdSource, Store, Tokens
from memory_mesh.flows.context import Plan, write_plan

_PREFIX = "spending "


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A `Meter` that writes to a store. If the store cannot be written to, this process counts in memory."""

    store: Store
    clock: Clock
    ids: IdSource
    caps: Caps = field(default_factory=Caps)
    prices: Mapping[str, Price] = field(default_factory=dict)
    pause: Callable[[int], None] = lambda attempt: None  # waits before the next attempt, longer each time
    _own: dict[str, DailySpending] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def reserve(self, operation: str, model: str, most: Tokens) -> str:
        day = iso(self.clock())[:10]
        ticket = f"{day} {self.ids.salt()}"
        maximum = self._spent(operation, model, most)
        self._change(day, lambda account: account.reserve(ticket, maximum, self.caps))
        return ticket

    def commit(self, ticket: str, used: Tokens, *, failed: bool = False) -> None:
        day = ticket[:10]

        def with_usage(account: DailySpending) -> DailySpending:
            reserved = account.held.get(ticket)
            if reserved is None:
                return account
            spent = self._spent(reserved.operation, reserved.model, used)
            return account.commit(ticket, replace(spent, calls=1, failed=int(failed)))

        self._change(day, with_usage)

    def days(self) -> dict[str, DailySpending]:
        """Return the usage of each day."""
        stored = {meta.id.removeprefix(_PREFIX): DailySpending.of(meta.detail) for meta in Meta.with_prefix(self.store, _PREFIX)}
        return {**stored, **{day: _sum(stored.get(day, DailySpending()), own) for day, own in self._own.items()}}

    def _spent(self, operation: str, model: str, tokens: Tokens) -> Spending:
        price = self.prices.get(model)
        cost = price.of(tokens) if price else None
        return Spending(operation=operation, model=model, sent=tokens.sent, received=tokens.received, cost=cost)

    def _change(self, day: str, decide: Callable[[DailySpending], DailySpending]) -> None:
        try:
            self._write(day, decide)
        except (StoreReadOnly, MemoryDisabled):
            self._remember(day, decide)
        except StoreError:
            # With a cap, an uncounted call would get around it. Without one, no answer is lost because counting failed.
            if self.caps.any:
                raise
            self._remember(day, decide)

    def _remember(self, day: str, decide: Callable[[DailySpending], DailySpending]) -> None:
        with self._lock:
            self._own[day] = decide(self._own.get(day, DailySpending()))

    def _write(self, day: str, decide: Callable[[DailySpending], DailySpending]) -> None:
        def plan() -> Plan[None]:
            meta = Meta.read(self.store, _PREFIX + day)
            return Plan(None, [meta.row(decide(DailySpending.of(meta.detail)).detail(), at=iso(self.clock()))])

        write_plan(self.store, plan, pause=self.pause)


def spending(ledger: Accounts | None, day: str) -> tuple[tuple[Spending, ...], tuple[Spending, ...]]:
    """Return the usage of a day and of all days."""
    days = ledger.days() if ledger else {}
    return totals(days.get(day, DailySpending()).spent), totals(tuple(spent for day in days.values() for spent in day.spent))


def _sum(one: DailySpending, other: DailySpending) -> DailySpending:
    return DailySpending((*one.spent, *other.spent), {**one.held, **other.held})
