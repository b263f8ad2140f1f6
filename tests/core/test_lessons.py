"""Lessons: which input is accepted, the id of a pattern, and the order of lessons."""

from dataclasses import fields, replace
from hashlib import sha256
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.learning import (
    SEVERITIES,
    LessonBlock,
    LessonContext,
    by_confidence,
    by_severity,
    parse_lesson,
    pattern_id,
    severity_of,
)
from memory_mesh.core.model import Memory

GIVEN: dict[str, object] = {
    "situation": "The deploy failed with 401.",
    "error_pattern": "token_expired",
    "oversight": "Nobody looked at the expiry.",
    "fix": "A new token.",
    "preventative_rule": "Refresh the token before a deploy.",
    "severity": "high",
    "applicable_scope": "deploys",
}
TEXTS = [name for name in GIVEN if name != "severity"]


def memory(
    n: int = 0, *, severity: object = "medium", confidence: float | None = 0.7, **more: object
) -> Memory:
    at = f"2026-01-01T00:00:00.{n:03}Z"
    return Memory(
        id=f"mem_{n}", content="x", created_at=at, updated_at=at, confidence=confidence,
        metadata={"severity": severity}, **{"memory_type": "lesson", "number": n, **more},
    )  # fmt: skip


LESSONS = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from([*SEVERITIES, None, "odd"]),
        st.sampled_from([None, 0.0, 0.5, 0.7, 1.0]),
    ),
    max_size=8,
).map(
    lambda rows: [
        replace(memory(n, severity=s, confidence=c), id=f"mem_{at}")
        for at, (n, s, c) in enumerate(rows)
    ]
)


@pytest.mark.req("MESH-087")
def test_a_lesson_needs_every_field_but_the_inverse_and_the_confidence() -> None:
    read = parse_lesson(GIVEN)
    assert (read.confidence, read.inverse_lesson) == (0.7, None)
    assert {name: getattr(read, name) for name in GIVEN} == GIVEN
    for name in GIVEN:
        with pytest.raises(InvalidInput, match=name):
            parse_lesson({key: value for key, value in GIVEN.items() if key != name})


@pytest.mark.req("MESH-087")
@pytest.mark.parametrize("name", [*TEXTS, "inverse_lesson"])
@pytest.mark.parametrize(
    "value", ["", " \n", 5, b"x", ["x"], {}, True, "a\0b", "\ud800", "x" * 4001], ids=repr
)
def test_a_text_that_cannot_be_kept_is_refused_by_its_name(name: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=name):
        parse_lesson({**GIVEN, name: value})


@pytest.mark.req("MESH-065")
@pytest.mark.parametrize("severity", ["High", "urgent", "", None, 1, ["high"]], ids=repr)
def test_a_severity_is_one_of_four(severity: object) -> None:
    assert [parse_lesson({**GIVEN, "severity": known}).severity for known in SEVERITIES] == list(
        SEVERITIES
    )
    with pytest.raises(InvalidInput, match="severity"):
        parse_lesson({**GIVEN, "severity": severity})


@pytest.mark.req("MESH-065")
@pytest.mark.parametrize(
    "sure", [-0.1, 1.1, float("nan"), float("inf"), True, "0.7", None, [0.7]], ids=repr
)
def test_a_confidence_lies_within_0_and_1(sure: object) -> None:
    assert [parse_lesson({**GIVEN, "confidence": known}).confidence for known in (0, 0.5, 1)] == [
        0.0,
        0.5,
        1.0,
    ]
    with pytest.raises(InvalidInput, match="confidence"):
        parse_lesson({**GIVEN, "confidence": sure})


@pytest.mark.parametrize("given_", [None, "text", [], 5], ids=repr)
def test_what_is_no_object_is_no_lesson(given_: object) -> None:
    with pytest.raises(InvalidInput, match="the lesson is"):
        parse_lesson(given_)


@pytest.mark.parametrize(
    "name",
    ["errorPattern", "user_id", "agent_id", "trust", "importance", "tags", "type", 5],
    ids=repr,
)
def test_an_unknown_field_is_refused_and_not_passed_over(name: object) -> None:
    with pytest.raises(InvalidInput, match="unknown field"):
        parse_lesson({**GIVEN, name: "x"})


def test_a_context_that_was_made_by_hand_is_checked_too() -> None:
    made = LessonContext(**GIVEN)  # type: ignore[arg-type]
    assert parse_lesson(made) == made
    with pytest.raises(InvalidInput, match="confidence"):
        parse_lesson(replace(made, confidence=2.0))


@pytest.mark.req("MESH-143")
@given(error=st.text(), scope=st.text())
def test_a_pattern_id_is_the_beginning_of_the_hash_of_error_and_scope(
    error: str, scope: str
) -> None:
    assert pattern_id(error, scope) == sha256((error + scope).encode()).hexdigest()[:16]


@pytest.mark.req("MESH-143")
def test_a_pattern_id_can_be_foretold() -> None:
    assert (
        parse_lesson(GIVEN).pattern_id
        == pattern_id("token_expired", "deploys")
        == "3d6e64ed79973675"
    )


def test_the_text_of_a_lesson_begins_with_its_rule_and_holds_all_that_was_said() -> None:
    text = parse_lesson({**GIVEN, "inverse_lesson": "Short-lived tokens."}).text
    assert text.startswith("Refresh the token before a deploy.\n")
    for said in (
        "deploys",
        "The deploy failed with 401.",
        "Nobody looked at the expiry.",
        "A new token.",
        "Short-lived tokens.",
    ):
        assert said in text
    assert "Instead" not in parse_lesson(GIVEN).text


@pytest.mark.req("MESH-089")
@given(lessons=LESSONS)
def test_the_worst_come_first_and_among_equals_the_newest(lessons: list[Memory]) -> None:
    ordered = by_severity(lessons)
    assert sorted(each.id for each in ordered) == sorted(each.id for each in lessons)
    for one, next_ in pairwise(ordered):
        worse, better = SEVERITIES.index(severity_of(one)), SEVERITIES.index(severity_of(next_))
        assert worse < better or (worse == better and one.created_at >= next_.created_at)
    assert by_severity(reversed(lessons)) == ordered


@given(lessons=LESSONS)
def test_the_surest_come_first_and_among_equals_the_oldest(lessons: list[Memory]) -> None:
    ordered = by_confidence(lessons)
    assert sorted(each.id for each in ordered) == sorted(each.id for each in lessons)
    for one, next_ in pairwise(ordered):
        sure, less = one.confidence or 0.0, next_.confidence or 0.0
        assert sure > less or (sure == less and one.created_at <= next_.created_at)
    assert by_confidence(reversed(lessons)) == ordered


def test_a_lesson_that_does_not_say_how_bad_it_was_counts_as_medium() -> None:
    assert [severity_of(memory(severity=said)) for said in ("critical", "odd", None, 5)] == [
        "critical",
        "medium",
        "medium",
        "medium",
    ]


def test_a_lesson_stored_by_hand_is_told_with_what_it_says() -> None:
    told = LessonBlock.of(memory(confidence=None), None)
    assert (
        told.memory_id,
        told.lesson_id,
        told.rule_confidence,
        told.preventative_rule,
        told.wire_format,
    ) == (
        "mem_0",
        "",
        0.0,
        "",
        None,
    )


@pytest.mark.req("MESH-088")
def test_a_lesson_block_has_the_documents_fields() -> None:
    wanted = (
        "lesson_id pattern_id severity preventative_rule rule_confidence applicable_scope "
        "wire_format memory_id score"
    )
    assert [field.name for field in fields(LessonBlock)] == wanted.split()
