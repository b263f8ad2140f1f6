"""Claims from plain texts: what `claims="auto"` makes of the memories that are added."""

from datetime import UTC, datetime

import pytest

from memory_mesh import MemoryMesh

NOW = datetime(2026, 5, 4, 9, tzinfo=UTC)
AT, BEFORE = "2026-05-04T09:00:00.000Z", "2026-05-04T08:59:59.999Z"


def after(first: str, second: str, claims: str = "auto") -> list[tuple[object, ...]]:
    """Status, start and end of two memories that are added one after the other; equal ones are
    one."""
    with MemoryMesh(store="memory://", embedder="none", claims=claims, clock=lambda: NOW) as mesh:
        ids = dict.fromkeys(mesh.add(text).id for text in (first, second))
        found = [mesh.get(id_) for id_ in ids]
    return [(each.status, each.valid_from, each.valid_until) for each in found if each]


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        # A change
        ("Ana is working for Globex now.", [("superseded", None, BEFORE), ("active", AT, None)]),
        # A correction
        ("Ana works at Globex.", [("superseded", None, None), ("active", None, None)]),
        ("Ana is employed by Acme.", [("active", None, None)]),  # the same in other words
        # Invalidated, not superseded.
        ("Ana no longer works at Acme.", [("active", None, AT), ("active", None, AT)]),
        ("Ana might work at Globex.", [("active", None, None)] * 2),  # no statement
        ("Ana speaks Danish.", [("active", None, None)] * 2),  # about something else
    ],
)
def test_a_plain_statement_is_compared_with_what_is_known(
    second: str, expected: list[tuple[object, ...]]
) -> None:
    assert after("Ana works at Acme.", second) == expected


def test_a_change_that_is_told_with_a_comment_supersedes_what_was_true_before() -> None:
    assert after("I live in Berlin.", "We moved to Munich, the flat is tiny.") == [
        ("superseded", None, BEFORE),
        ("active", AT, None),
    ]
    assert after("I work at Siemens.", "I joined Tinder.") == [("active", None, None)] * 2


@pytest.mark.parametrize(
    ("since", "start"),
    [
        ("since 2024", "2024-01-01T00:00:00.000Z"),
        ("since March", "2026-03-01T00:00:00.000Z"),
        ("since last Monday", "2026-04-27T00:00:00.000Z"),
        ("since yesterday", "2026-05-03T00:00:00.000Z"),
        ("since today", AT),
    ],
)
def test_a_statement_begins_when_its_text_says(since: str, start: str) -> None:
    assert after("Bo likes tea.", f"Ana has worked at Globex {since}.")[1] == (
        "active",
        start,
        None,
    )


def test_without_the_setting_texts_are_no_claims() -> None:
    assert (
        after("Ana works at Acme.", "Ana is working for Globex now.", claims="off")
        == [("active", None, None)] * 2
    )
