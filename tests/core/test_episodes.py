"""Episodes of points in time: where one ends, in which order they come, and what each is called."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.graph.episodes import Episode, Moment, split, title
from memory_mesh.core.model import Vector, iso
from memory_mesh.testing.fakes import NEW_YEAR

MINUTE = 60_000
GAP = 30 * MINUTE


def at(minute: float, id_: str = "", session: str | None = "s1", **other: object) -> Moment:
    return Moment(
        id=id_ or f"mem_{minute}",
        at=iso(NEW_YEAR + round(minute * MINUTE)),
        session_id=session,
        **other,
    )  # type: ignore[arg-type]


def members(episodes: list[Episode]) -> list[str]:
    return [" ".join(id_.removeprefix("mem_") for id_ in one.memory_ids) for one in episodes]


CASES = {
    "a pause of the gap does not end it, a longer one does": (
        [at(0), at(30), at(60.1)], ["60.1", "0 30"], ["gap", "session"],
    ),
    "two sessions at the same time are two": (
        [at(0), at(1, session="s2"), at(2), at(3, session="s2")], ["1 3", "0 2"],
        ["session", "session"],
    ),
    "no session is a sequence of its own": (
        [at(0, session=None), at(1), at(2, session=None)], ["0 2", "1"], ["session"] * 2,
    ),
    "turns of one moment are in their order": (
        [at(0, "b", turn=1), at(0, "a", turn=2), at(0, "c", turn=2, number=9)], ["b a c"],
        ["session"],
    ),
    "nothing": ([], [], []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_episodes_end_at_sessions_and_pauses(case: str) -> None:
    moments, expected, why = CASES[case]
    for order in (moments, moments[::-1]):
        found = split(order, gap_ms=GAP)
        assert members(found) == expected
        assert [one.began_by for one in found] == why


def test_an_episode_knows_its_time_size_speakers_and_agents() -> None:
    moments = [
        at(0, speaker="Ana", agent_id="planner"),
        at(5, agent_id="critic"),
        at(9, speaker="Ana", agent_id="planner"),
    ]
    (one,) = split(moments, gap_ms=GAP)
    assert (one.id, one.start, one.end, one.count) == (
        "episode_0",
        iso(NEW_YEAR),
        iso(NEW_YEAR + 9 * MINUTE),
        3,
    )
    assert (one.speakers, one.agents, one.session_id) == (("Ana",), ("planner", "critic"), "s1")


MOMENTS = st.builds(
    lambda number, minute, session: at(minute, f"mem_{number}", session),
    st.integers(0, 10**6), st.integers(0, 300), st.sampled_from((None, "s1", "s2")),
)  # fmt: skip


@given(moments=st.lists(MOMENTS, unique_by=lambda one: one.id), gap=st.integers(1, 100))
def test_every_memory_is_in_one_episode_and_only_longer_pauses_part_a_session(
    moments: list[Moment], gap: int
) -> None:
    found, by_id = split(moments, gap_ms=gap * MINUTE), {one.id: one for one in moments}
    assert Counter(id_ for one in found for id_ in one.memory_ids) == Counter(by_id.keys())
    assert [one.end for one in found] == sorted((one.end for one in found), reverse=True)
    minutes = {
        one.id: [
            int(by_id[id_].at[11:13]) * 60 + int(by_id[id_].at[14:16]) for id_ in one.memory_ids
        ]
        for one in found
    }
    for one in found:
        assert {by_id[id_].session_id for id_ in one.memory_ids} == {one.session_id}
        assert all(later - earlier <= gap for earlier, later in pairwise(minutes[one.id]))
    for one in found:
        for other in found:
            if one is not other and one.session_id == other.session_id and one.start < other.start:
                assert minutes[other.id][0] - minutes[one.id][-1] > gap


def vectors(*directions: str, model: str = "m") -> list[Moment]:
    axes = {"x": [1.0, 0.0, 0.0], "y": [0.0, 1.0, 0.0], "z": [0.5, 0.5, 0.0], "-": None}
    found = []
    for minute, direction in enumerate(directions):
        axis = axes[direction]
        found.append(at(minute, vector=None if axis is None else Vector.of(model, axis)))
    return found


@pytest.mark.parametrize(
    ("directions", "starts"),
    [
        ("xxxxyyyy", [0, 4]),
        ("xxxxyyyyxxxx", [0, 4, 8]),
        ("xxxx", [0]),
        ("xyxyxyxy", [0]),  # a single different memory is no change of topic
        ("xxxx-yyyy", [0, 5]),
        ("--------", [0]),
        ("x", [0]),
    ],
)
def test_a_change_of_topic_ends_an_episode_once(directions: str, starts: list[int]) -> None:
    found = split(vectors(*directions), gap_ms=GAP, min_similarity=0.3)
    assert sorted(int(one.memory_ids[0].removeprefix("mem_")) for one in found) == starts
    assert {one.began_by for one in found} == (
        {"session", "topic"} if len(starts) > 1 else {"session"}
    )
    assert len(split(vectors(*directions), gap_ms=GAP)) == 1


def test_vectors_of_two_models_are_not_compared() -> None:
    mixed = [
        *vectors("x", "x", "x"),
        *(at(9 + n, vector=Vector.of("other", [0.0, 1.0, 0.0])) for n in range(3)),
    ]
    assert len(split(mixed, gap_ms=GAP, min_similarity=0.9)) == 1


def test_a_title_has_the_words_of_many_texts_that_few_others_have() -> None:
    texts = [
        "We booked the flights to Lisbon.",
        "The flight leaves [EMAIL] Lisbon on Monday.",
        "We think the hotel is fine.",
    ]
    frequency = {
        "flight": 2,
        "lisbon": 2,
        "hotel": 1,
        "think": 40,
        "monday": 30,
        "book": 5,
        "leav": 9,
        "fine": 20,
    }
    assert title(texts, frequency, 50) == "booked, flights, Lisbon, leaves, hotel"
    assert title(["And then, who?"], {}, 1) == title([], {}, 0) == ""
