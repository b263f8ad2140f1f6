"""The accounts of paid calls, kept in the store, so that every process counts into the same ones and one cap holds for all."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

from memory_mesh.core.errors import Conflict, MemoryDisabled, StoreBusy, StoreError, StoreReadOnly
from memory_mesh.core.learning.spending import Caps, Day, Price, Spent, added
from memory_mesh.core.model import Meta, iso
from memory_mesh.core.ports import Clock, IdSource, Store, Tokens

_PREFIX = "spending "
_ATTEMPTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A `Meter` over a store. Where the store cannot be written to, this process counts for itself."""

    store: Store
    clock: Clock
    ids: IdSource
    caps: Caps = field(default_factory=Caps)
    prices: Mapping[str, Price] = field(default_factory=dict)
    _own: dict[str, Day] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def reserve(self, operation: str, model: str, most: Tokens) -> str:
        day = iso(self.clock())[:10]
        ticket = f"{day} {self.ids.salt()}"
        wanted = self._spent(operation, model, most)
        self._change(day, lambda held: held.reserve(ticket, wanted, self.caps))
        return ticket

    def commit(self, ticket: str, used: Tokens, *, failed: bool = False) -> None:
        day = ticket[:10]

        def settled(held: Day) -> Day:
            most = held.held.get(ticket)
            if most is None:
                return held
            spent = self._spent(most.operation, most.model, used)
            return held.commit(ticket, replace(spent, calls=1, failed=int(failed)))

        self._change(day, settled)

    def days(self) -> dict[str, Day]:
        """Every day's account."""
        kept = {meta.id.removeprefix(_PREFIX): Day.of(meta.detail) for meta in Meta.with_prefix(self.store, _PREFIX)}
        return {**kept, **{day: _both(kept.get(day, Day()), own) for day, own in self._own.items()}}

    def _spent(self, operation: str, model: str, tokens: Tokens) -> Spent:
        price = self.prices.get(model)
        cost = price.of(tokens) if price else None
        return Spent(operation=operation, model=model, sent=tokens.sent, received=tokens.received, cost=cost)

    def _change(self, day: str, decide: Callable[[Day], Day]) -> None:
        try:
            self._write(day, decide)
        except (StoreReadOnly, MemoryDisabled):
            self._remember(day, decide)
        except StoreError:
            # Uncounted calls would be a way around a cap; without one, no answer is lost for want of a count.
            if self.caps.any:
                raise
            self._remember(day, decide)

    def _remember(self, day: str, decide: Callable[[Day], Day]) -> None:
        with self._lock:
            self._own[day] = decide(self._own.get(day, Day()))

    def _write(self, day: str, decide: Callable[[Day], Day]) -> None:
        for _ in range(_ATTEMPTS):
            meta = Meta.read(self.store, _PREFIX + day)
            newer = decide(Day.of(meta.detail))
            try:
                self.store.apply([meta.row(newer.detail(), at=iso(self.clock()))])
            except Conflict:
                continue
            return
        raise StoreBusy(f"{self.store.url}: others kept changing it", remedy="try again")


def told(ledger: Ledger | None, day: str) -> tuple[tuple[Spent, ...], tuple[Spent, ...]]:
    """What was spent on a day, and what in all."""
    days = ledger.days() if ledger else {}
    return added(days.get(day, Day()).spent), added(tuple(spent for day in days.values() for spent in day.spent))


def _both(one: Day, other: Day) -> Day:
    return Day((*one.spent, *other.spent), {**one.held, **other.held})
