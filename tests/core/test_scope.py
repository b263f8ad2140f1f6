"""Who sees what, in every cell: the rule against a table written down by hand, and the condition
for stores against the rule."""

from dataclasses import replace
from itertools import product

import pytest

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import (
    Kind,
    MemoryType,
    Reach,
    Reader,
    Row,
    may_erase,
    partition,
    partition_for,
    partitions,
    reach_of,
    visible,
    visible_to,
)

# The rulings' table, each pair of type and reach by itself: E is every agent, A the same agent, S
# the same agent and session.
SEEN = {
    None: {None: "E", "global": "E", "agent": "A", "session": "S"},
    "global": {None: "E", "global": "E", "agent": "A", "session": "S"},
    "reflection": {None: "E", "global": "E", "agent": "A", "session": "S"},
    "lesson": {None: "E", "global": "E", "agent": "A", "session": "S"},
    "agent": {None: "A", "global": "A", "agent": "A", "session": "S"},
    "session": {None: "S", "global": "S", "agent": "S", "session": "S"},
}
READERS = [
    Reader(*reader)
    for reader in product((None, "u1", "u2"), (None, "a1", "a2"), (None, "s1", "s2"))
]
SCOPES = list(product((None, "u1", "u2"), (None, "a1", "a2"), (None, "s1", "s2")))


def row(
    user: str | None,
    agent: str | None,
    session: str | None,
    memory_type: str | None,
    reach: str | None,
) -> Row:
    given = {
        "user_id": user,
        "agent_id": agent,
        "session_id": session,
        "memory_type": memory_type,
        "reach": reach,
    }
    return Row(
        kind=Kind.MEMORY,
        id="m",
        partition=partition_for(user, agent, memory_type, reach),
        created_at="2026-01-01T00:00:00.000Z",
        fields={name: value for name, value in given.items() if value is not None},
    )


def expected(reader: Reader, kept: Row) -> bool:
    same_user = kept.value("user_id") == reader.user_id
    same_agent = reader.agent_id is not None and kept.value("agent_id") == reader.agent_id
    same_session = reader.session_id is not None and kept.value("session_id") == reader.session_id
    answers = {"E": True, "A": same_agent, "S": same_agent and same_session}
    return same_user and answers[SEEN[kept.value("memory_type")][kept.value("reach")]]


ROWS = [
    row(*scope, memory_type, reach)
    for scope in SCOPES
    for memory_type, reaches in SEEN.items()
    for reach in reaches
]
CELLS = list(product(READERS, ROWS))


def test_the_table_has_every_cell() -> None:
    assert set(SEEN) - {None} == {kind.value for kind in MemoryType}
    assert all(
        set(reaches) - {None} == {reach.value for reach in Reach} for reaches in SEEN.values()
    )
    assert len(CELLS) == 27 * 27 * 6 * 4
    assert {expected(reader, kept) for reader, kept in CELLS} == {True, False}


@pytest.mark.req("MESH-025")
def test_a_row_is_visible_exactly_where_the_table_says() -> None:
    assert [
        (reader, kept) for reader, kept in CELLS if visible(reader, kept) != expected(reader, kept)
    ] == []


@pytest.mark.req("MESH-025")
def test_the_condition_for_stores_and_the_rule_agree_in_every_cell() -> None:
    conditions = {reader: visible_to(reader) for reader in READERS}
    assert [
        (reader, kept)
        for reader, kept in CELLS
        if conditions[reader].matches(kept) != visible(reader, kept)
    ] == []


@pytest.mark.req("MESH-025")
def test_a_row_in_the_wrong_partition_is_visible_to_no_further_reader() -> None:
    for reader in READERS:
        condition = visible_to(reader)
        for place in partitions(reader):
            misplaced = [kept for kept in ROWS if condition.matches(replace(kept, partition=place))]
            assert all(visible(reader, kept) for kept in misplaced)


@pytest.mark.req("MESH-025")
@pytest.mark.parametrize("memory_type", ["global", "reflection", "lesson", None])
def test_a_session_on_a_wide_memory_hides_it_from_nobody(memory_type: str | None) -> None:
    kept = row("u1", "a1", "s1", memory_type, None)
    own = [reader for reader in READERS if reader.user_id == "u1"]
    assert len(own) == 9
    assert all(visible(reader, kept) for reader in own)


def test_a_reader_looks_into_every_partition_with_what_it_sees_and_into_no_other_users() -> None:
    for reader, kept in CELLS:
        if visible(reader, kept):
            assert kept.partition in partitions(reader)
    assert set(partitions(Reader("u1", "a1"))) == {partition("u1", None), partition("u1", "a1")}
    assert partitions(Reader("u1")) == (partition("u1", None),)


def test_partitions_of_odd_names_never_meet() -> None:
    names = [None, "", "null", "a", 'a", "b', "a, b", '["a", null]', "ä", "\u2028"]
    made = [partition(user, agent) for user, agent in product(names, names)]
    assert len(set(made)) == len(names) ** 2


def test_the_narrower_of_type_and_reach_counts() -> None:
    assert reach_of("lesson", "session") is Reach.SESSION
    assert reach_of("session", "global") is Reach.SESSION
    assert reach_of(None, None) is Reach.GLOBAL


def test_an_unknown_type_or_reach_is_the_narrowest_in_python_and_as_a_condition() -> None:
    for odd, session in product(
        ({"memory_type": "odd"}, {"memory_type": "agent", "reach": "odd"}), ("s1", "s2")
    ):
        fields = {"user_id": "u1", "agent_id": "a1", "session_id": "s1", **odd}
        row = Row(
            kind=Kind.MEMORY, id="m", partition=partition("u1", "a1"), created_at="", fields=fields
        )
        reader = Reader("u1", "a1", session)
        assert visible(reader, row) is visible_to(reader).matches(row) is (session == "s1")


def test_an_agent_may_erase_what_it_sees_and_all_that_is_its_own() -> None:
    for reader, kept in CELLS:
        own = (kept.value("user_id"), kept.value("agent_id")) == (reader.user_id, reader.agent_id)
        assert may_erase(reader, kept) == (own or expected(reader, kept))


def test_a_reader_of_one_project_sees_and_erases_no_memory_of_another() -> None:
    for project, memory_type in product((None, "shop", "atlas"), (None, "agent")):
        kept = row("u1", "a1", None, memory_type, None)
        kept = replace(kept, fields={**kept.fields, **({"project": project} if project else {})})
        wide, only = (
            Reader("u1", "a1", project="shop"),
            Reader("u1", "a1", project="shop", only_project=True),
        )
        assert visible(wide, kept)
        assert may_erase(wide, kept)
        assert (
            visible(only, kept)
            is visible_to(only).matches(kept)
            is may_erase(only, kept)
            is (project != "atlas")
        )


@pytest.mark.parametrize("odd", ["half \ud800 pair", "nul \0", 5, b"bytes", ["a"]])
@pytest.mark.parametrize("name", ["user_id", "agent_id", "session_id"])
def test_a_reader_is_named_by_text(name: str, odd: object) -> None:
    with pytest.raises(InvalidInput, match=name):
        Reader(**{name: odd})
