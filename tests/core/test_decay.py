"""The strength of memories: the documented figures, what makes one last, and that a reinforced
one is never weaker."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.model import Memory, iso
from memory_mesh.core.model.records import Change
from memory_mesh.core.upkeep import strength, strength_of
from memory_mesh.core.upkeep.decay import stability_after

DAY = 86_400_000
START = 1_760_000_000_000


@pytest.mark.req("GRAPH-32", "GRAPH-33")
@pytest.mark.parametrize(
    ("days", "expected"),
    [(0, 0.7), (30, 0.2475), (60, 0.0875), (10_000, 0.007)],
    ids=lambda value: f"{value}",
)
def test_an_untouched_memory_fades_as_documented_down_to_a_floor(
    days: float, expected: float
) -> None:
    assert strength(0.7, age=days, touch=days) == pytest.approx(expected, abs=5e-5)


@pytest.mark.req("GRAPH-32")
def test_age_and_disuse_fade_each_with_its_own_half_life() -> None:
    assert strength(0.8, age=30) == pytest.approx(0.4)
    assert strength(0.8, touch=60) == pytest.approx(0.4)
    assert strength(0.8, age=-5, touch=-5) == pytest.approx(0.8)  # a clock that was set back


@pytest.mark.req("GRAPH-33")
def test_categories_links_and_accesses_add_and_fade_and_the_sum_is_at_most_one() -> None:
    factors = {
        category: strength(0.5, category=category)
        for category in ("decision", "preference", "insight", "fact", None)
    }
    assert factors == pytest.approx(
        {"decision": 0.65, "preference": 0.7, "insight": 0.55, "fact": 0.5, None: 0.5}
    )
    assert [strength(0.1, links=links) for links in (1, 6, 60)] == pytest.approx([0.15, 0.4, 0.4])
    assert [strength(0.1, accesses=times) for times in (1, 10, 100)] == pytest.approx(
        [0.12, 0.3, 0.3]
    )
    assert strength(0, links=6, accesses=10, touch=60) == pytest.approx(0.25)
    assert strength(1, links=60, accesses=100, age=1000, touch=1000) < 0.05
    assert strength(1, category="preference", links=6) == 1


@pytest.mark.req("GRAPH-35")
@pytest.mark.parametrize(
    ("days", "expected"),
    [([], 1), ([3], 2), ([30], 2), ([0], 1), ([0.01], 1.0033), ([3, 3], 2), ([3, 6], 2 * 4 / 3),
     ([3, 12], 4), ([3, 12, 39], 8)],
    ids=str,
)  # fmt: skip
def test_stability_doubles_with_a_well_spaced_reinforcement_and_hardly_grows_with_an_immediate_one(
    days: list[float], expected: float
) -> None:
    assert stability_after([START + round(day * DAY) for day in days], START) == pytest.approx(
        expected, abs=1e-4
    )


def memory(**columns: object) -> Memory:
    at = iso(START)
    return Memory.new(
        id="m", content="Ana prefers tea.", created_at=at, updated_at=at, keywords=[], **columns
    )


def changes(action: str, times: list[int]) -> list[Change]:
    return [
        Change(id=f"m#{n}", created_at=iso(at), ref="m", number=n, action=action) for n,
        at in enumerate(times, start=2)
    ]  # fmt: skip


@pytest.mark.req("GRAPH-34", "GRAPH-35")
@given(
    intervals=st.lists(st.integers(0, 200 * DAY), max_size=6),
    importance=st.floats(0, 1) | st.none(), after=st.integers(0, 2000 * DAY), boost=st.floats(0, 1),
    links=st.integers(0, 9), accesses=st.integers(0, 20),
    category=st.sampled_from(["decision", "fact"]),
)  # fmt: skip
def test_a_reinforced_memory_is_at_any_later_time_at_least_as_strong_as_its_twin(
    intervals: list[int],
    importance: float | None,
    after: int,
    boost: float,
    links: int,
    accesses: int,
    category: str,
) -> None:
    times = [START + at for at in accumulate(intervals)]
    ms = (times[-1] if times else START) + after
    twin = memory(importance=importance, category=category, access_count=accesses)
    raised = min(1.0, (0.5 if importance is None else importance) + boost)
    reinforced = memory(importance=raised, category=category, access_count=accesses + len(times))
    stronger = strength_of(reinforced, ms, links=links, changes=changes("reinforce", times))
    assert stronger >= strength_of(twin, ms, links=links)
    assert strength_of(twin, ms, links=links) >= strength_of(twin, ms)


@pytest.mark.req("GRAPH-34")
def test_both_half_lives_grow_with_the_stability() -> None:
    assert strength(0.7, age=60, touch=120, stability=2) == pytest.approx(
        strength(0.7, age=30, touch=60)
    )
    assert strength(0, links=1, touch=120, stability=2) == pytest.approx(
        strength(0, links=1, touch=60)
    )
    reinforced = strength_of(
        memory(importance=0.7), START + 90 * DAY, changes=changes("reinforce", [START + 30 * DAY])
    )
    assert reinforced == pytest.approx(strength(0.7, age=90, touch=60, stability=2))


def test_unarchiving_begins_the_age_anew() -> None:
    back = changes("unarchive", [START + 100 * DAY])
    assert strength_of(memory(importance=0.7), START + 100 * DAY, changes=back) == pytest.approx(
        0.7
    )
