"""What is not valid now is left out of every read unless a time, a status or a filter asks; see
also `test_hidden_memories`."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh import MemoryMesh
from memory_mesh.core.model import DAY_MS, Kind, Or, Row, columns_in, is_valid_in, iso, valid_in
from memory_mesh.flows.search.filters import parse
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores import open_store
from memory_mesh.testing.fakes import NEW_YEAR

from .house import House, whole

QUERY = "office of the team"
OVER, COMING = {"valid_until": "2024-06-30"}, {"valid_from": "2027-03-01"}


def build(house: House, **options: object) -> MemoryMesh:
    mesh = house.mesh(embedder=HashingEmbedder(), **options)
    mesh.add("The office of the team is in Rome.", OVER)
    mesh.add("The office of the team is in Faro.")
    mesh.add("The office of the team is in Oslo.", COMING)
    return mesh


def places(found: Iterable[object]) -> set[str]:
    return {
        word
        for one in found
        for word in ("Rome", "Faro", "Oslo")
        if word in str(getattr(one, "content", one))
    }


@pytest.mark.req("LANE-27", "GRAPH-47")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", {"Faro"}),
        (" in 2023", {"Rome", "Faro"}),
        (" on 30 June 2024", {"Rome", "Faro"}),
        (" on 1 July 2024", {"Faro"}),
        (" in 2027", {"Faro", "Oslo"}),
        (" in 2024 and in 2028", {"Rome", "Faro", "Oslo"}),
    ],
)
def test_the_time_that_a_question_names_asks_for_what_was_valid_then(
    house: House, words: str, expected: set[str]
) -> None:
    mesh = build(house)
    assert places(mesh.search(QUERY + words, min_score=0.0)) == expected
    assert (
        places(one.result for one in mesh.explain(QUERY + words, min_score=0.0).answers) == expected
    )
    assert places(mesh.graph.search("ann", QUERY + words)) == expected
    assert places([mesh.graph.context("ann", QUERY + words, min_score=0.0)]) == expected
    assert places(mesh.lane.find(QUERY + words, min_score=0.0)) == expected


@pytest.mark.req("LANE-27")
def test_as_of_a_status_or_a_filter_asks_for_what_is_not_valid_now(house: House) -> None:
    mesh = build(house)
    assert places(mesh.get_all()) == {"Faro"}
    assert places(mesh.search(QUERY, as_of="2024-01-01")) == {"Rome", "Faro"}
    assert places(mesh.search(QUERY, as_of="2028-01-01")) == {"Faro", "Oslo"}
    every = {"Rome", "Faro", "Oslo"}
    assert (
        places(mesh.search(QUERY, status=["active", "superseded"]))
        == places(mesh.get_all(status=["active", "archived"]))
        == every
    )
    assert places(mesh.get_all(filter="valid_until < '2025-01-01'")) == {"Rome"}
    assert places(mesh.search(QUERY, filter={"valid_from": {"$gt": "2026-06-01"}})) == {"Oslo"}
    assert places(mesh.lane.find(QUERY, min_score=0.0, include_expired=True)) == every


@pytest.mark.req("LANE-27")
def test_a_memory_that_is_not_valid_is_found_by_its_id_and_its_key_and_can_be_erased_by_it(
    house: House,
) -> None:
    mesh = house.mesh()
    record = mesh.add("The office is in Rome.", OVER, key="office")
    assert [one.id for one in (mesh.get(record.id), mesh.get(key="office")) if one] == [
        record.id
    ] * 2
    assert mesh.graph.explain_memory(record.id).valid is False
    assert len(list(mesh.export())) == 2
    mesh.delete(key="office")
    assert mesh.get(record.id) is None


@pytest.mark.req("GRAPH-30")
def test_an_explanation_counts_what_is_not_valid_apart_from_what_the_filter_left_out(
    house: House,
) -> None:
    mesh = build(house)
    mesh.add("The office of the team has a garden.", {"category": "other"})
    assert mesh.explain(QUERY, min_score=0.0).left_out == {"not_valid": 2}
    assert mesh.explain(QUERY, filter="category = 'other'", min_score=0.0).left_out == {
        "not_valid": 2,
        "filter": 1,
    }
    assert mesh.explain(QUERY, as_of="2024-01-01", min_score=0.0).left_out == {"filter": 1}
    left_out = mesh.graph.search("ann", QUERY, explain=True).meta["left_out"]
    assert isinstance(left_out, dict)
    assert left_out["not_valid"] == 2


@pytest.mark.req("LANE-27")
@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ("valid_from", {59: {"Faro"}, 60: {"Faro", "Oslo"}}),
        ("valid_until", {60: {"Faro", "Oslo"}, 61: {"Faro"}}),
    ],
)
def test_a_cached_answer_does_not_outlive_the_begin_or_the_end_of_a_validity(
    house: House, bound: str, expected: dict[int, set[str]]
) -> None:
    mesh = house.mesh(embedder=HashingEmbedder())
    mesh.add("The office of the team is in Faro.")
    mesh.add("The office of the team is in Oslo.", {bound: iso(house.clock.ms + 60_000)})
    first = places(mesh.search(QUERY))
    assert places(mesh.search(QUERY)) == first == next(iter(expected.values()))
    assert mesh.get_cache_stats().hits == 1, "the control: answers are cached"
    for seconds, places_ in expected.items():
        house.clock.advance(seconds=seconds)
        assert places(mesh.search(QUERY)) == places_
        house.clock.advance(seconds=-seconds)
        assert places(mesh.search(QUERY)) == first


@pytest.mark.req("LANE-27")
def test_many_memories_that_are_not_valid_crowd_out_none_that_is(house: House) -> None:
    mesh = house.mesh(embedder=HashingEmbedder())
    mesh.add_many(
        [(f"The office of the team is in room {n}.", OVER if n % 2 else COMING) for n in range(400)]
    )
    mesh.add("Since spring the team has moved its office to the harbour in Faro.")
    assert len(mesh.get_all(status=["active", "archived"])) == 401
    for found in (
        mesh.search(QUERY),
        mesh.search(QUERY, mode="precise"),
        mesh.graph.search("ann", QUERY),
        mesh.get_all(5),
    ):
        assert places(found) == {"Faro"}
        assert len(found) == 1
    assert places(mesh.lane.find(QUERY, min_score=0.0)) == {"Faro"}


@pytest.mark.req("LANE-27")
def test_a_validity_that_is_changed_or_added_later_counts(house: House) -> None:
    mesh = house.mesh(embedder=HashingEmbedder())
    record = mesh.add("The office of the team is in Rome.")
    assert places(mesh.search(QUERY)) == {"Rome"}
    mesh.update(record.id, metadata={"valid_until": "2025-01-01"})
    assert places(mesh.search(QUERY)) == set()
    mesh.update(record.id, metadata={"valid_until": "2026-01-02"})
    assert places(mesh.search(QUERY)) == {"Rome"}
    house.clock.advance(days=2)
    assert places(mesh.search(QUERY)) == places(mesh.get_all()) == set()


def test_a_reflection_on_a_time_reads_what_was_valid_then(house: House) -> None:
    mesh = build(house)
    assert "Rome" not in whole(mesh.reflect("office of the team"))
    assert "Rome" in whole(mesh.reflect("office of the team in 2023"))


# --- the rule itself, and its forms ---

days = st.integers(-20, 20)
bounds = st.tuples(st.none() | days, st.none() | days).filter(
    lambda pair: None in pair or pair[0] <= pair[1]
)  # type: ignore[operator]
spans = st.lists(
    st.tuples(days, st.integers(0, 5)).map(lambda pair: (pair[0], pair[0] + pair[1])), max_size=3
)


def at(day: int | None) -> str | None:
    return None if day is None else iso(NEW_YEAR + day * DAY_MS)


@pytest.mark.req("LANE-27")
@given(bounds, spans)
def test_a_memory_is_valid_in_a_period_that_shares_a_day_with_its_validity(
    validity: tuple[int | None, int | None], periods: list[tuple[int, int]]
) -> None:
    fields = {"valid_from": at(validity[0]), "valid_until": at(validity[1])}
    row = Row(
        kind=Kind.MEMORY,
        id="m",
        partition="",
        created_at=iso(0),
        fields={k: v for k, v in fields.items() if v},
    )
    first, last = (
        (-99 if validity[0] is None else validity[0]),
        (99 if validity[1] is None else validity[1]),
    )
    expected = not periods or any(
        {*range(first, last + 1)} & {*range(one, other + 1)} for one, other in periods
    )
    asked = [(str(at(one)), str(at(other))) for one, other in periods]
    assert (valid_in(asked).matches(row), is_valid_in(asked, row)) == (expected, expected)


@pytest.mark.req("LANE-27")
@given(st.lists(bounds, min_size=1, max_size=6), days, st.none() | days)
def test_every_search_and_list_returns_exactly_what_is_valid_at_the_clock_or_as_of(
    validities: list[tuple[int | None, int | None]], now: int, as_of: int | None
) -> None:
    house = House(open_store("memory://"))
    mesh = house.mesh(embedder=HashingEmbedder())
    mesh.add_many(
        [
            (
                f"office of team {n}",
                {
                    k: at(v)
                    for k, v in zip(("valid_from", "valid_until"), one, strict=True)
                    if v is not None
                },
            )
            for n, one in enumerate(validities)
        ]
    )
    house.clock.ms = NEW_YEAR + now * DAY_MS
    asked = now if as_of is None else as_of

    def texts(found: Iterable[object]) -> set[str]:
        return {str(getattr(one, "content")) for one in found}  # noqa: B009

    expected = {
        f"office of team {n}"
        for n, (first, last) in enumerate(validities)
        if (first is None or first <= asked) and (last is None or asked <= last)
    }
    times = {} if as_of is None else {"as_of": at(as_of)}
    assert texts(mesh.search("office of team", limit=50, min_score=0.0, **times)) == expected
    assert texts(mesh.search("office of team", limit=50, min_score=0.0, **times)) == expected, (
        "from the cache"
    )
    assert texts(mesh.graph.search("ann", "office of team", limit=50, **times)) == expected
    assert texts(mesh.lane.find("office of team", limit=50, min_score=0.0, **times)) == expected
    if as_of is None:
        assert texts(mesh.get_all()) == expected


def test_the_columns_of_a_condition_are_found_at_any_depth() -> None:
    where = Or(
        (
            parse("NOT (turn = 1 OR tags IN ('b'))"),
            parse("speaker IS NULL AND metadata.k LIKE 'a%'"),
        )
    )
    assert columns_in(where) == {"turn", "tags", "speaker", "metadata.k"}
    assert columns_in(valid_in([("a", "b")])) == {"valid_from", "valid_until"}
    assert columns_in(valid_in([])) == set()


@pytest.mark.req("LANE-27")
@pytest.mark.parametrize("window", [OVER, COMING], ids=["over", "coming"])
def test_what_is_stored_again_is_found_though_an_equal_text_is_not_valid_now(
    house: House, window: dict[str, str]
) -> None:
    mesh, text = house.mesh(embedder=HashingEmbedder()), "The office of the team is in Rome."
    hidden = mesh.add(text, window)
    # The same text with the same validity is the same memory.
    assert mesh.add(text, window).id == hidden.id
    again = mesh.add(text)
    assert (
        [one.id for one in mesh.get_all()]
        == [again.id]
        == [one.id for one in mesh.search(QUERY, min_score=0.0)]
    )
    assert mesh.add(text).id == again.id
    (first, _, last) = mesh.add_many(
        [{"content": "It was Bern.", "metadata": window}, "Hello Bern.", "It was Bern."]
    )
    assert first.id != last.id
    assert len(house.memories()) == 5
    assert house.sound()


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_what_is_said_again_is_captured_though_an_equal_memory_is_not_valid_now(
    house: House, role: str
) -> None:
    text = "It turned out that the deploy of the server failed because its token had expired."
    mesh = house.mesh(embedder=HashingEmbedder())
    mesh.add(text, OVER)
    report = mesh.lane.on_session_event("session.idle", [{"role": role, "content": text}])
    assert [one.content for one in report.kept] == [text] == [one.content for one in mesh.get_all()]


def test_an_answer_that_is_cached_in_the_last_moment_of_a_validity_ends_with_it(
    house: House,
) -> None:
    mesh = house.mesh(embedder=HashingEmbedder())
    mesh.add("The office of the team is in Rome.", {"valid_until": iso(NEW_YEAR)})
    assert places(mesh.search(QUERY)) == {"Rome"}, "the end belongs to it"
    house.clock.advance(seconds=1)
    assert places(mesh.search(QUERY)) == set()


def test_an_answer_about_yesterday_is_not_cached_until_the_next_day(house: House) -> None:
    mesh = house.mesh(embedder=HashingEmbedder())
    mesh.add("The office of the team is in Rome.", {"valid_until": iso(NEW_YEAR - DAY_MS // 2)})
    house.clock.advance(seconds=DAY_MS // 1000 - 60)
    assert places(mesh.search(f"{QUERY} yesterday")) == {"Rome"}
    assert places(mesh.search(f"{QUERY} yesterday")) == {"Rome"}
    assert mesh.get_cache_stats().hits == 1, "the control: answers are cached"
    house.clock.advance(seconds=120)
    assert places(mesh.search(f"{QUERY} yesterday")) == set()


def test_a_failure_that_is_not_valid_now_gives_no_lesson(house: House) -> None:
    failure = {"status": "error", "preventative_rule": "Refresh the token."}
    house.mesh().add("The deploy of Rome failed.", {**failure, "error_pattern": "of rome", **OVER})
    house.mesh().add("The deploy of Faro failed.", {**failure, "error_pattern": "of faro"})
    (lesson,) = house.mesh().distill().learnt
    assert "Faro" in house.memory(lesson.memory_id).content
