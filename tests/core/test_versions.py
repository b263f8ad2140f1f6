"""Versions of a statement: which memories say the same except for a value, and which of them is
the newest."""

import pytest

from memory_mesh.core.model import Kind, Row
from memory_mesh.core.search import tokens
from memory_mesh.core.search.passages import versions


def row(text: str, day: int = 1, **fields: object) -> Row:
    at = f"2026-01-{day:02d}T00:00:00.000Z"
    own = {"content": text, "keywords": tokens(text), "status": "active", **fields}
    return Row(kind=Kind.MEMORY, id=f"{text} {day}", partition="", created_at=at, fields=own)  # type: ignore[arg-type]


def found(query: str, *rows: Row) -> list[list[str]]:
    return [
        [str(each.fields["content"]) for each in group] for group in versions(rows, tokens(query))
    ]


PORTS = "The staging database listens on port 5432.", "The staging database listens on port 6543."


@pytest.mark.req("MESH-109")
def test_the_newest_version_of_a_statement_comes_first() -> None:
    one, other = PORTS
    assert found("which port has the staging database?", row(one, 1), row(other, 2)) == [
        [other, one]
    ]
    assert found("which port has the staging database?", row(one, 2), row(other, 1)) == [
        [one, other]
    ]


def test_the_time_of_the_event_counts_before_the_time_of_creation() -> None:
    late = row(PORTS[0], 1, event_time="2026-03-01T00:00:00.000Z")
    assert found("staging port", late, row(PORTS[1], 2)) == [[PORTS[0], PORTS[1]]]


@pytest.mark.req("MESH-109")
@pytest.mark.parametrize(
    ("query", "one", "other"),
    [
        # A value within.
        ("what mode does Ana prefer?", "Ana prefers dark mode.", "Ana prefers light mode."),
        # The same keywords.
        (
            "is Bob allergic to peanuts?",
            "Bob is allergic to peanuts.",
            "Bob is not allergic to peanuts.",
        ),
        (
            "who is Tony Blair married to?",
            "Tony Blair is married to Cherie Blair.",
            "Tony Blair is married to Ana Lind.",
        ),
        (
            "which university did Ana attend?",
            "The univeristy of Ana is Yale University.",
            "The univeristy of Ana is MIT.",
        ),  # a typo
        (
            "where did Olga die?",
            "Olga of Kiev died in the city of Kyiv.",
            "Olga of Kiev died in the city of New York City.",
        ),
    ],
)
def test_texts_that_differ_in_a_value_are_versions(query: str, one: str, other: str) -> None:
    assert found(query, row(one, 1), row(other, 2)) == [[other, one]]


@pytest.mark.req("MESH-109")
@pytest.mark.parametrize(
    ("query", "one", "other"),
    [
        (
            "the budget for Q3 and Q4",
            "The marketing budget for Q3 is 10,000.",
            "The marketing budget for Q4 is 12,000.",
        ),
        (
            "the citizenship of Ana Lind",
            "Ana Lind is a citizen of France.",
            "Ana Lind is famous for her songs.",
        ),
        (
            "who created it in which country?",
            "Cricket was created in the country of England.",
            "Sumo was created in Japan.",
        ),
        (
            "which university is in Yale?",
            "The place of Ana is Yale University.",
            "The place of Ana is MIT.",
        ),  # named in the query
        # One common keyword.
        ("tea", "Tea is green.", "Tea contains less caffeine than coffee does."),
        ("which port?", PORTS[0], PORTS[0]),  # a copy, not a version
    ],
)
def test_texts_about_something_else_are_not_versions(query: str, one: str, other: str) -> None:
    assert found(query, row(one, 1), row(other, 2)) == []


@pytest.mark.parametrize(
    "field", [{"speaker": "Ana"}, {"turn": 3}, {"memory_type": "lesson"}, {"status": "superseded"}]
)
def test_turns_lessons_and_memories_of_another_status_are_not_versions(
    field: dict[str, object],
) -> None:
    one, other = PORTS
    assert found("staging port", row(one, 1, **field), row(other, 2)) == []
    assert found("staging port", row(one, 1), row(other, 2)) != []


@pytest.mark.req("MESH-109")
def test_a_record_is_no_newer_version_of_what_it_was_derived_from() -> None:
    """It quotes its source and was made later, and it is outdated as soon as its source is."""
    old, new = row(PORTS[0], 1), row(PORTS[1], 2)
    derived = row(f"{PORTS[0]} It is backed up.", 3, memory_type="reflection", sources=[old.id])
    both = row(
        f"{PORTS[1]} It was another one.", 4, memory_type="reflection", sources=[old.id, new.id]
    )
    quote = row(PORTS[0], 5, memory_type="reflection", sources=[old.id])
    query = "which port has the staging database?"
    assert (
        found(query, derived, old) == found(query, old, derived) == found(query, quote, old) == []
    )
    texts = [str(each.fields["content"]) for each in (new, old, derived)]
    assert found(query, derived, old, new) == found(query, new, both, old, derived) == [texts]
    assert found(query, quote, old, new) == [[PORTS[1], PORTS[0], PORTS[0]]]
    # Of a source that is not among the candidates.
    assert found(query, derived, new) == [[texts[2], PORTS[1]]]
