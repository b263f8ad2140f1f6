"""The models and the pseudonym key: whether models answer, what they cost, which key is used."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from threading import Lock

from memory_mesh.core.errors import (
    MemoryDisabled,
    MemoryMeshError,
    SettingsError,
    StoreError,
    StoreReadOnly,
)
from memory_mesh.core.learning import Accounts, Caps, DailySpending, Price, Spending, totals
from memory_mesh.core.model import Checked, Meta, iso
from memory_mesh.core.model.background import uncancellable
from memory_mesh.core.ports import NO_FILE, Clock, IdSource, Store, StoreFile, Tokens
from memory_mesh.flows.context import Context, Plan, write_plan

_SPENDING = "spending "  # the prefix of the entry of a day
_PSEUDONYM_KEY = "pseudonym_key"


def check_models(context: Context) -> tuple[Checked, ...]:
    """Send one short request to the language model and one to the embedder."""
    return _check_chat(context), _check_embedder(context)


def _check_chat(context: Context) -> Checked:
    from memory_mesh.core.language.prompts.answers import build_check_prompt, read_check_reply

    part = "language model"
    if context.models.chat is None:
        return Checked(part=part, detail="none is set; memories are stored and found without one")
    began = context.clock()
    try:
        reply = context.models.chat.reply(build_check_prompt())
        read_check_reply(reply)
    except MemoryMeshError as error:
        return _failed(part, context.models.chat.model, error)
    used = f"{reply.tokens.sent} tokens sent, {reply.tokens.received} received"
    return Checked(
        part=part,
        model=context.models.chat.model,
        detail=f"answers as requested, in {context.clock() - began} ms, {used}",
    )


def _check_embedder(context: Context) -> Checked:
    if context.models.embedder is None:
        return Checked(part="embedder", detail="none is set; memories are found by keywords")
    from memory_mesh.flows.write.embed import embed_texts  # opening a store does not need it

    began = context.clock()
    # A fallback would hide that it does not answer.
    first = getattr(context.models.embedder, "first", context.models.embedder)
    try:
        vector = embed_texts(first, ["a sign of life"])[0]
    except MemoryMeshError as error:
        return _failed("embedder", context.models.embedder.model, error)
    detail = f"returns {vector.dimension} numbers, in {context.clock() - began} ms"
    return Checked(part="embedder", model=context.models.embedder.model, detail=detail)


def _failed(part: str, model: str, error: MemoryMeshError) -> Checked:
    expected = f"; expected {error.expected}" if error.expected else ""
    return Checked(
        part=part, model=model, ok=False, detail=error.what + expected, remedy=error.remedy
    )


# --- the usage of paid models ---
# It is counted in the store, so that one daily cap holds for all processes.


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A `Meter` that writes to a store. If the store cannot be written to, or does not exist
    yet, it counts in memory."""

    store: Store
    clock: Clock
    ids: IdSource
    caps: Caps = field(default_factory=Caps)
    prices: Mapping[str, Price] = field(default_factory=dict)
    # Waits before the next attempt, longer each time.
    pause: Callable[[int], None] = lambda attempt: None
    # If it is not prepared, the count of a read must not create or upgrade it.
    file: StoreFile = NO_FILE
    _own: dict[str, DailySpending] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def reserve(self, operation: str, model: str, maximum: Tokens) -> str:
        day = iso(self.clock())[:10]
        ticket = f"{day} {self.ids.salt()}"
        reserved = self._spent(operation, model, maximum)
        self._change(day, lambda account: account.reserve(ticket, reserved, self.caps))
        return ticket

    def commit(self, ticket: str, used: Tokens, *, failed: bool = False) -> None:
        def with_usage(account: DailySpending) -> DailySpending:
            reserved = account.reserved.get(ticket)
            if reserved is None:
                return account
            spent = self._spent(reserved.operation, reserved.model, used)
            return account.commit(ticket, replace(spent, calls=1, failed=int(failed)))

        self._change(ticket[:10], with_usage)

    def days(self) -> dict[str, DailySpending]:
        """Return the usage of each day."""
        entries = Meta.with_prefix(self.store, _SPENDING)
        days = {
            entry.id.removeprefix(_SPENDING): DailySpending.of(entry.detail) for entry in entries
        }
        for day, own in self._own.items():
            days[day] = days.get(day, DailySpending()).plus(own)
        return days

    def flush(self) -> None:
        with self._lock:
            own = dict(self._own)
            self._own.clear()
        for day, counted in own.items():
            self._change(day, counted.plus)

    def _spent(self, operation: str, model: str, tokens: Tokens) -> Spending:
        price = self.prices.get(model)
        cost = price.of(tokens) if price else None
        return Spending(
            operation=operation, model=model, sent=tokens.sent, received=tokens.received, cost=cost
        )

    def _change(self, day: str, decide: Callable[[DailySpending], DailySpending]) -> None:
        def plan() -> Plan[None]:
            meta = Meta.read(self.store, _SPENDING + day)
            return Plan(
                None,
                [meta.row(decide(DailySpending.of(meta.detail)).detail(), at=iso(self.clock()))],
            )

        try:
            if not self.file.is_prepared():
                raise StoreReadOnly(f"{self.store.url} is not created or upgraded by a count")
            with uncancellable():  # a cancelled call was paid for
                write_plan(self.store, plan, pause=self.pause)
        except (StoreError, MemoryDisabled) as error:
            # With a cap, an uncounted call would get around it. Without one, no answer is lost
            # because counting failed.
            if self.caps.any and not isinstance(error, StoreReadOnly | MemoryDisabled):
                raise
            with self._lock:
                self._own[day] = decide(self._own.get(day, DailySpending()))


def spending(ledger: Accounts | None, ms: int) -> tuple[tuple[Spending, ...], tuple[Spending, ...]]:
    """Return the usage of the day of a time, and of all days."""
    days = ledger.days() if ledger else {}
    return totals(days.get(iso(ms)[:10], DailySpending()).spent), totals(
        spent for day in days.values() for spent in day.spent
    )


# --- the pseudonym key ---
#
# A store records the id of its pseudonym key. A lost key is reported, never replaced: with another
# key, the same person would get another pseudonym.


def stored_key_id(store: Store) -> str | None:
    """Return the id of the key that the store's pseudonyms were made with."""
    id_ = Meta.read(store, _PSEUDONYM_KEY).detail.get("key_id")
    return str(id_) if id_ else None


def pseudonym_key_error(store: Store, key: bytes | None) -> str | None:
    """Return what is wrong with a key for this store, or None."""
    stored = stored_key_id(store)
    if stored is None or (key is not None and _key_id(key) == stored):
        return None
    if key is None:
        return "the pseudonym key of this store is lost"
    return "the pseudonym key is not the one this store was written with"


def check_pseudonym_key(store: Store, key: bytes | None) -> None:
    """Raise `SettingsError` if the key is not the store's."""
    if error := pseudonym_key_error(store, key):
        remedy = (
            "restore pseudonym.key of the home folder from a backup: another key gives the same "
            "person another pseudonym"
        )
        raise SettingsError(error, remedy=remedy)


def record_pseudonym_key(store: Store, key: bytes, ms: int, pause: Callable[[int], None]) -> None:
    """Record the id of the key in a store that has none yet. Raise `SettingsError` if the store
    has another."""

    def decide() -> Plan[None]:
        meta = Meta.read(store, _PSEUDONYM_KEY)
        return Plan(
            None,
            [] if meta.detail.get("key_id") else [meta.row({"key_id": _key_id(key)}, at=iso(ms))],
        )

    write_plan(store, decide, pause=pause)
    check_pseudonym_key(store, key)  # another process may have recorded its key first


def _key_id(key: bytes) -> str:
    """Return a hash of the key, which may be public."""
    return sha256(b"memory-mesh pseudonym key " + key).hexdigest()[:16]
