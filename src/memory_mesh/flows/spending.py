"""The accounts of paid calls, kept in the store, so that every process counts into the same ones and one cap holds for all."""

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
    """A `Meter` over a store. Where the store cannot be written to, this process counts for itself."""

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
        wanted = self._spent(operation, model, most)
        self._change(day, lambda held: held.reserve(ticket, wanted, self.caps))
        return ticket

    def commit(self, ticket: str, used: Tokens, *, failed: bool = False) -> None:
        day = ticket[:10]

        def settled(held: DailySpending) -> DailySpending:
            most = held.held.get(ticket)
            if most is None:
                return held
            spent = self._spent(most.operation, most.model, used)
            return held.commit(ticket, replace(spent, calls=1, failed=int(failed)))

        self._change(day, settled)

    def days(self) -> dict[str, DailySpending]:
        """Every day's account."""
        kept = {meta.id.removeprefix(_PREFIX): DailySpending.of(meta.detail) for meta in Meta.with_prefix(self.store, _PREFIX)}
        return {**kept, **{day: _both(kept.get(day, DailySpending()), own) for day, own in self._own.items()}}

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
            # Uncounted calls would be a way around a cap; without one, no answer is lost for want of a count.
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


def told(ledger: Accounts | None, day: str) -> tuple[tuple[Spending, ...], tuple[Spending, ...]]:
    """What was spent on a day, and what in all."""
    days = ledger.days() if ledger else {}
    return totals(days.get(day, DailySpending()).spent), totals(tuple(spent for day in days.values() for spent in day.spent))


def _both(one: DailySpending, other: DailySpending) -> DailySpending:
    return DailySpending((*one.spent, *other.spent), {**one.held, **other.held})
