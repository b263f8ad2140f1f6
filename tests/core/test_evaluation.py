"""The questions of an evaluation and its figures."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.search.evaluation import (
    FEW,
    Answered,
    Pair,
    Question,
    absent_questions,
    compare,
    interval,
    latency,
    make_question,
    nothing,
    read_questions,
    retrieval,
    stale,
    subjects,
)
from memory_mesh.core.search.lexical import tokens

MADE = {
    "Ana Keller approves every deploy to production on Fridays.": (
        "When Ana Keller approves deploy to production?"
    ),
    "Tom Baker repairs bicycles in the yard.": "Who repairs bicycles in the yard?",
    "The staging database listens on port 5433.": "What the database listens on port?",
    "Thanks!": None,
    "": None,
    "- \n\n * ": None,
}


@pytest.mark.parametrize("text", MADE)
def test_a_question_asks_for_the_time_the_person_or_the_last_word_of_a_sentence(text: str) -> None:
    assert make_question(text, 0) == MADE[text]


@given(st.text(max_size=300), st.integers(0, 5))
def test_a_question_is_made_of_words_of_its_memory_and_is_the_same_every_time(
    text: str, seed: int
) -> None:
    question = make_question(text, seed)
    assert question == make_question(text, seed)
    if question:
        asked, *words = question.removesuffix("?").split()
        assert asked in ("When", "Who", "What")
        assert all(word.lower() in text.lower() for word in words)


def test_another_seed_leaves_out_other_words() -> None:
    text = (
        "The nightly backup of the billing database copies every invoice archive into the locked "
        "cellar safe."
    )
    assert len({make_question(text, seed) for seed in range(9)}) > 1


def test_questions_about_nothing_name_nothing_that_is_stored() -> None:
    assert len(absent_questions((), 0, 1000)) == 120
    known = set(tokens("The harpsichord of Ignatz")) & subjects()
    assert len(known) == 2  # the control: they are among the subjects
    left = absent_questions(known, 0, 1000)
    assert len(left) == 80
    assert not any("harpsichord" in one.text or "Ignatz" in one.text for one in left)
    assert absent_questions(subjects(), 0, 1000) == []


WRONG = {
    '{"question": "x"': "not valid JSON",
    "[1]": "not a JSON object",
    '{"question": "x", "expected": ["y"]}': "unknown key 'expected'",
    '{"expect": ["y"]}': "needs a question",
    '{"question": " ", "nothing": true}': "needs a question",
    '{"question": "x"}': "needs either expect",
    '{"question": "x", "expect": []}': "needs either expect",
    '{"question": "x", "expect": [1]}': "needs either expect",
    '{"question": "x", "expect": {"a": "b"}}': "needs either expect",
    '{"question": "x", "expect": ["y"], "nothing": true}': "needs either expect",
    '{"question": "x", "nothing": "yes"}': "needs either expect",
    '{"question": "x", "expect": ["y"], "stale": [1]}': "needs stale, a list of ids or texts",
    '{"question": "x", "nothing": true, "stale": ["y"]}': "together with expect",
    "1" * 5000: "a number that is too long",
    "[" * 100_000: "too many levels",
}


@pytest.mark.sample(20)
@pytest.mark.parametrize("line", WRONG, ids=lambda line: line[:20])
def test_a_line_that_is_not_a_question_is_named_by_its_number(line: str) -> None:
    good = '{"question": "Who pays?", "expect": "Ana pays."}'
    with pytest.raises(InvalidInput, match=f"line 3 of the questions .*{WRONG[line]}"):
        read_questions([good, "\n", line])


def test_questions_are_read_with_one_expected_memory_several_or_none() -> None:
    lines = [
        {"question": "a", "expect": "x"},
        {"question": "b", "expect": ["x", "y", "x"]},
        {"question": "c", "nothing": True},
        {"question": "d", "expect": ["x"], "stale": "y"},
    ]
    questions = read_questions(map(json.dumps, lines))
    assert [one.expected for one in questions] == [("x",), ("x", "y"), (), ("x",)]
    assert [one.stale for one in questions] == [(), (), (), ("y",)]
    with pytest.raises(InvalidInput, match="no questions"):
        read_questions(["\n", " "])


def answered(*ranks: int | None, precise: int = 1, ms: float = 0.0) -> Answered:
    question = Question(text="x", expected=tuple(map(str, range(len(ranks)))))
    return Answered(question=question, ranks=ranks, precise=precise, ms=ms)


def test_recall_is_the_mean_fraction_of_the_expected_memories_within_the_cut() -> None:
    figures = retrieval(
        [answered(1), answered(6), answered(None), answered(2, None), answered(precise=0)]
    )
    assert (figures.questions, figures.recall) == (4, {1: 0.25, 5: 0.375, 10: 0.625})
    assert figures.mrr == pytest.approx((1 + 1 / 6 + 0 + 1 / 2) / 4)


@given(
    st.lists(
        st.lists(st.none() | st.integers(1, 10), min_size=1, max_size=4).map(
            lambda ranks: answered(*ranks)
        ),
        min_size=1,
    )
)
def test_figures_are_fractions_and_a_wider_cut_finds_no_less(asked: list[Answered]) -> None:
    figures = retrieval(asked)
    one, five, ten = (figures.recall[cut] or 0.0 for cut in (1, 5, 10))
    assert 0 <= one <= five <= ten <= 1
    assert 0 <= (figures.mrr or 0.0) <= 1


def test_an_empty_answer_proves_nothing_if_no_question_finds_anything() -> None:
    empty, full = answered(precise=0), answered(precise=2)
    assert (
        nothing([empty, full, answered(1)]).fraction,
        nothing([empty, answered(1, precise=0)]).fraction,
    ) == (0.5, None)
    assert nothing([empty]).control is None


def test_latency_is_the_time_of_a_search_that_was_made() -> None:
    assert latency([]) == (None, None)
    assert latency([answered(ms=7)]) == (7, 7)
    assert latency([answered(ms=ms) for ms in range(1, 101)]) == (50, 95)


@pytest.mark.parametrize(
    ("value", "count", "limits"),
    [(0.8, 10, (0.4902, 0.9433)), (0.0, 10, (0.0, 0.2775)), (1.0, 10, (0.7225, 1.0))],
)
def test_the_interval_of_a_fraction_is_that_of_wilson(
    value: float, count: int, limits: tuple[float, float]
) -> None:
    assert interval(value, count) == pytest.approx(limits, abs=1e-4)


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_an_interval_contains_its_figure_and_four_times_the_questions_make_it_narrower(
    count: int, value: float
) -> None:
    low, high = interval(value, count) or (2.0, -1.0)
    assert 0 <= low <= value + 1e-9
    assert value - 1e-9 <= high <= 1
    less, more = interval(value, 4 * count) or (2.0, -1.0)
    assert more - less < high - low
    assert interval(None, count) is interval(value, 0) is None


@pytest.mark.parametrize(
    ("differences", "is_better"),
    [
        ([0.0] * FEW, False),
        ([0.5] * FEW, True),
        ([0.5] * (FEW - 1), False),  # too few to conclude
        ([0.5, -0.5] * FEW, False),
        ([-0.5] * FEW, False),
    ],
)
def test_a_setting_is_better_if_the_interval_of_the_paired_differences_excludes_none(
    differences: list[float], is_better: bool
) -> None:
    found = compare("ranker = rrf", differences)
    assert found.is_better is is_better
    low, high = found.interval
    assert low <= found.difference <= high


def test_stale_pairs_are_counted_by_their_kind() -> None:
    pairs = [
        Pair(newer="a", older="b", kind=kind, question="x", is_stale=is_stale)
        for kind, is_stale in [("known", True), ("known", False), ("possible", True)]
    ]
    assert [stale(pairs, kind) for kind in ("given", "known", "possible")] == [
        (0, 0),
        (1, 2),
        (1, 1),
    ]
