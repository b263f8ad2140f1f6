"""Spending: usage is counted, and the cap holds for every thread and process and after a crash."""

import multiprocessing
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import BudgetSpent, StoreFull
from memory_mesh.core.learning import Caps, DailySpending, Price, Spending, totals
from memory_mesh.core.model import Ids, Kind, Row
from memory_mesh.core.ports import NO_TOKENS, Tokens
from memory_mesh.flows.context import Context
from memory_mesh.flows.learning.models import Ledger, spending
from memory_mesh.stores import open_store
from memory_mesh.stores.ram import DisabledStore
from memory_mesh.testing.fakes import NEW_YEAR, FakeClock, seeded_ids


def ledger(context: Context, **options) -> Ledger:
    return Ledger(store=context.store, clock=context.clock, ids=context.ids, **options)


def call(
    meter: Ledger,
    used: Tokens,
    most: Tokens | None = None,
    *,
    operation: str = "extract",
    model: str = "m",
) -> None:
    meter.commit(meter.reserve(operation, model, most or used), used)


def test_calls_are_counted_by_operation_and_model(context):
    meter = ledger(context)
    call(meter, Tokens(10, 5))
    call(meter, Tokens(1, 2))
    call(meter, Tokens(7, 0), operation="embed", model="e")
    today, in_all = spending(meter, NEW_YEAR)
    assert today == in_all == (
        Spending(operation="embed", model="e", calls=1, sent=7),
        Spending(operation="extract", model="m", calls=2, sent=11, received=7),
    )  # fmt: skip


def test_another_ledger_over_the_same_store_sees_the_same_accounts(context):
    call(ledger(context), Tokens(10, 5))
    assert spending(ledger(context), NEW_YEAR)[1][0].sent == 10


@pytest.mark.parametrize(
    "wrong",
    [{"sent": "many"}, {"sent": -1}, {"cost": "dear"}, {"cost": -1.0}, {"calls": None}, {"new": 1}],
)
def test_an_account_that_is_not_ours_counts_for_nothing_and_stops_no_call(wrong):
    right = {"operation": "extract", "model": "m", "calls": 1, "sent": 7}
    assert DailySpending.of({"spent": [right], "held": {}}).spent[0].sent == 7
    for kept in (
        {"spent": [right | wrong], "held": {}},
        {"spent": [], "held": {"t": right | wrong}},
    ):
        assert DailySpending.of(kept) == DailySpending()


def test_a_call_is_counted_into_the_day_it_began_and_yesterday_stays_in_the_sum(context):
    meter = ledger(context)
    ticket = meter.reserve("extract", "m", Tokens(10, 10))
    context.clock.advance(days=1)
    meter.commit(ticket, Tokens(3, 4))
    call(meter, Tokens(1, 1))
    today, in_all = spending(meter, context.clock())
    assert (today[0].calls, in_all[0].calls, in_all[0].sent) == (1, 2, 4)


def test_a_failed_call_is_counted_as_one(context):
    meter = ledger(context)
    meter.commit(meter.reserve("extract", "m", Tokens(9, 9)), NO_TOKENS, failed=True)
    assert spending(meter, NEW_YEAR)[0] == (
        Spending(operation="extract", model="m", calls=1, failed=1),
    )


def test_costs_follow_the_prices_and_are_unknown_without(context):
    meter = ledger(context, prices={"m": Price(2.0, 8.0)})
    call(meter, Tokens(1_000_000, 500_000))
    call(meter, Tokens(10), model="free")
    assert [spent.cost for spent in spending(meter, NEW_YEAR)[0]] == [None, 6.0]


@pytest.mark.parametrize(
    ("caps", "prices", "told_of"),
    [
        (Caps(tokens=100), {}, "at most 100"),
        (Caps(cost=0.0001), {"m": Price(1.0, 1.0)}, r"at most \$0.0001"),
    ],
)
def test_a_cap_stops_the_call_that_could_break_it_and_lets_smaller_ones_pass(
    context, caps, prices, told_of
):
    meter = ledger(context, caps=caps, prices=prices)
    call(meter, Tokens(40, 40))
    with pytest.raises(BudgetSpent, match=told_of):
        meter.reserve("extract", "m", Tokens(10, 20))
    call(meter, Tokens(10, 10))
    assert spending(meter, NEW_YEAR)[0][0].calls == 2, "the call that was stopped is not counted"


def test_a_cap_holds_for_calls_that_run_at_the_same_time(context):
    meter = ledger(context, caps=Caps(tokens=100))
    first = meter.reserve("extract", "m", Tokens(50, 50))
    with pytest.raises(BudgetSpent):
        meter.reserve("extract", "m", Tokens(1))
    meter.commit(first, Tokens(5, 5))
    meter.reserve("extract", "m", Tokens(50, 40))


def test_a_new_day_is_a_new_budget(context):
    meter = ledger(context, caps=Caps(tokens=10))
    call(meter, Tokens(10))
    with pytest.raises(BudgetSpent, match="tomorrow"):
        meter.reserve("extract", "m", Tokens(1))
    context.clock.advance(days=1)
    call(meter, Tokens(10))


def test_a_ticket_of_a_process_that_died_stays_taken_for_the_day(context):
    ledger(context, caps=Caps(tokens=100)).reserve("extract", "m", Tokens(90))
    with pytest.raises(BudgetSpent):
        ledger(context, caps=Caps(tokens=100)).reserve("extract", "m", Tokens(20))


def test_settling_twice_counts_once(context):
    meter = ledger(context)
    ticket = meter.reserve("extract", "m", Tokens(5))
    meter.commit(ticket, Tokens(5))
    meter.commit(ticket, Tokens(5))
    assert spending(meter, NEW_YEAR)[0][0].calls == 1


def test_accounts_move_no_version_of_any_partition(context):
    before = context.store.version("u/ann")
    call(ledger(context), Tokens(1))
    assert context.store.find(Kind.META)
    assert context.store.version("u/ann") == before
    assert context.store.changes("").keys in (None, ()) or not list(context.store.changes("").keys)


def test_a_damaged_account_counts_as_zero_and_raises_no_error(context):
    meter = ledger(context)
    call(meter, Tokens(5))
    row = context.store.find(Kind.META)[0]
    for wrong in ({"spent": [{"operation": 1}], "held": {}}, {"spent": 7}, {"held": []}, {}):
        held = context.store.get(Kind.META, [row.id])[row.id]
        fields = {"detail": wrong}
        context.store.apply([Row(kind=Kind.META, id=row.id, partition="", created_at=row.created_at,
                              revision=held.revision + 1, replaces=held.revision,
                              fields=fields)])  # fmt: skip
        assert spending(meter, NEW_YEAR) == ((), ())
        call(meter, Tokens(1))


class FullStore:
    """A store that has no room left."""

    def __init__(self, inner) -> None:
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def apply(self, *_, **__):
        raise StoreFull("no room left")


def test_a_store_that_takes_nothing_counts_in_the_process_and_the_cap_holds_there():
    meter = Ledger(store=DisabledStore(), clock=FakeClock(), ids=seeded_ids(), caps=Caps(tokens=10))
    call(meter, Tokens(6))
    with pytest.raises(BudgetSpent):
        meter.reserve("extract", "m", Tokens(6))
    assert spending(meter, NEW_YEAR)[0][0].sent == 6


def test_a_full_store_stops_calls_only_where_there_is_a_cap_to_keep(context):
    full = FullStore(context.store)
    meter = Ledger(store=full, clock=context.clock, ids=context.ids)
    call(meter, Tokens(6))
    assert spending(meter, NEW_YEAR)[0][0].sent == 6
    with pytest.raises(StoreFull):
        Ledger(store=full, clock=context.clock, ids=context.ids, caps=Caps(tokens=100)).reserve(
            "extract", "m", Tokens(6)
        )


def _spend(url: str, times: int) -> None:
    """What each process does: as many calls as the cap lets it."""
    store = open_store(url)
    meter = Ledger(store=store, clock=FakeClock(NEW_YEAR), ids=Ids(), caps=Caps(tokens=100))
    for _ in range(times):
        try:
            call(meter, Tokens(2, 1), Tokens(2, 1))
        except BudgetSpent:
            break
    store.close()


@pytest.mark.deep
def test_four_processes_together_keep_one_cap(tmp_path: Path):
    url = f"sqlite:///{tmp_path / 'm.db'}"
    open_store(url).close()
    spawn = multiprocessing.get_context("spawn")
    children = [spawn.Process(target=_spend, args=(url, 40)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    store = open_store(url)
    spent = spending(Ledger(store=store, clock=FakeClock(), ids=seeded_ids()), NEW_YEAR)[1][0]
    store.close()
    assert [child.exitcode for child in children] == [0] * 4
    assert (spent.calls, spent.sent + spent.received) == (33, 99), (
        "33 calls of 3 tokens are the most under 100"
    )


def test_threads_of_one_process_keep_the_cap_of_a_store_that_takes_nothing():
    meter = Ledger(store=DisabledStore(), clock=FakeClock(), ids=seeded_ids(), caps=Caps(tokens=50))

    def spend() -> None:
        for _ in range(20):
            try:
                call(meter, Tokens(1))
            except BudgetSpent:
                return

    threads = [Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert spending(meter, NEW_YEAR)[0][0].sent == 50


calls = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.booleans()), max_size=12)


@given(calls, st.integers(0, 120))
def test_whatever_is_called_what_was_used_never_passes_the_cap(made, cap):
    day, used = DailySpending(), 0
    for number, (most, share, settles) in enumerate(made):
        try:
            day = day.reserve(
                str(number), Spending(operation="x", model="m", sent=most), Caps(tokens=cap)
            )
        except BudgetSpent:
            continue
        if settles:
            spent = min(most, share)
            day = day.commit(str(number), Spending(operation="x", model="m", calls=1, sent=spent))
            used += spent
    assert used <= cap
    assert sum(spent.sent for spent in totals(day.spent)) == used
    assert DailySpending.of(day.detail()) == day
