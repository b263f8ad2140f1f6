"""The state of a job: when it is due, which process holds it, and what happens when the clock is
set back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.learning import LEASE_MS, Heartbeat, JobRun, JobState, Outcome

HOUR = 3_600_000
EIGHT = 8 * HOUR
MOMENTS = st.integers(min_value=0, max_value=10**14)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def run(outcome: Outcome) -> JobRun:
    return JobRun(job="x", priority=1, outcome=outcome, began="", ended="")


def test_a_job_that_never_ran_is_due() -> None:
    assert JobState().refusal(0, EIGHT, force=False) is None


@pytest.mark.req("MESH-139")
def test_a_job_is_due_when_its_time_is_over_or_nearly_over() -> None:
    done = JobState().acquire("me", 0).release("me", 0, done=True)
    assert done.refusal(EIGHT, EIGHT, force=False) is None
    assert done.refusal(EIGHT - 60_000, EIGHT, force=False) is None, (
        "a schedule of eight hours may come a moment early"
    )
    assert done.refusal(EIGHT - 10 * 60_000, EIGHT, force=False) is Outcome.NOT_DUE
    assert done.refusal(1, EIGHT, force=False) is Outcome.NOT_DUE
    assert done.refusal(1, EIGHT, force=True) is None


def test_a_job_that_failed_stays_due() -> None:
    failed = JobState().acquire("me", 0).release("me", 0, done=False)
    assert (failed.holder, failed.count) == (None, 1)
    assert failed.refusal(1, EIGHT, force=False) is None


def test_a_job_that_failed_keeps_when_it_was_last_done() -> None:
    done = JobState().acquire("me", 5).release("me", 5, done=True)
    assert done.acquire("me", EIGHT).release("me", EIGHT, done=False).last == 5


def test_a_job_that_another_holds_is_left_to_it_even_by_force_until_its_lease_ends() -> None:
    state = JobState().acquire("other", 1000)
    for force in (False, True):
        assert state.refusal(1000, EIGHT, force=force) is Outcome.HELD
        assert state.refusal(1000 + LEASE_MS - 1, EIGHT, force=force) is Outcome.HELD
        assert state.refusal(1000 + LEASE_MS, EIGHT, force=force) is None


def test_a_process_that_was_overtaken_does_not_release_the_job_of_the_other() -> None:
    overtaken = JobState().acquire("slow", 0).acquire("quick", LEASE_MS)
    back = overtaken.release("slow", 0, done=True)
    assert (back.holder, back.until, back.last, back.count) == ("quick", 2 * LEASE_MS, None, 1)


@given(
    at=MOMENTS,
    later=st.integers(-(10**13), 10**13),
    every=st.integers(0, 10**9),
    force=st.booleans(),
)
def test_no_clock_keeps_a_job_from_running_for_longer_than_its_time(
    at: int, later: int, every: int, force: bool
) -> None:
    done = JobState().acquire("me", at).release("me", at, done=True)
    refused = done.refusal(at + later, every, force=force)
    assert refused in (None, Outcome.NOT_DUE)
    if later < 0 or later >= every or force:
        assert refused is None


@given(at=MOMENTS, later=st.integers(-(10**13), 10**13), force=st.booleans())
def test_no_clock_lets_the_dead_hold_a_job_for_longer_than_its_lease(
    at: int, later: int, force: bool
) -> None:
    state = JobState().acquire("dead", at)
    refused = state.refusal(at + later, EIGHT, force=force)
    assert (refused is Outcome.HELD) is (0 <= later < LEASE_MS)


@given(
    turn=st.builds(
        JobState,
        holder=st.none() | st.text(),
        until=MOMENTS,
        last=st.none() | MOMENTS,
        count=st.integers(0),
    )
)
def test_a_state_is_read_back_as_it_was_stored(turn: JobState) -> None:
    assert JobState.of(turn.detail()) == turn


@given(
    detail=JSON | st.fixed_dictionaries(dict.fromkeys(("holder", "until", "last", "count"), JSON)),
    ms=MOMENTS,
)
def test_any_stored_value_can_be_read(detail: object, ms: int) -> None:
    assert JobState.of(detail).refusal(ms, EIGHT, force=False) in (
        None,
        Outcome.HELD,
        Outcome.NOT_DUE,
    )


def test_a_stored_value_of_another_format_is_a_job_that_never_ran() -> None:
    kept = JobState(last=7, count=3).detail()
    assert JobState.of(kept) == JobState(last=7, count=3)
    for broken in (
        None,
        5,
        [],
        {},
        {**kept, "last": "7"},
        {**kept, "count": True},
        {**kept, "holder": 1},
    ):
        assert JobState.of(broken) == JobState()


@pytest.mark.parametrize("outcome", Outcome)
def test_a_beat_is_well_unless_a_job_failed_or_was_blocked(outcome: Outcome) -> None:
    bad = outcome in (Outcome.FAILED, Outcome.BLOCKED)
    assert Heartbeat(runs=(run(Outcome.DONE), run(outcome))).ok is not bad
