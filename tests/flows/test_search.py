"""Reading flows: the condition for stores and the test of one row agree."""

from dataclasses import replace
from itertools import product

import pytest

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import (
    ANYTHING,
    Kind,
    Memory,
    MemoryType,
    Reach,
    Reader,
    Status,
    equals,
    iso,
)
from memory_mesh.flows.context import Context
from memory_mesh.flows.search.readable import is_readable, readable

READERS = [
    Reader("u", "ann", "s"),
    Reader("u", "ann"),
    Reader("u", "bob", "s"),
    Reader("u"),
    Reader(None, "ann"),
    Reader(),
]


@pytest.mark.sample(4)
@pytest.mark.req("MESH-009")
@pytest.mark.parametrize("reader", READERS, ids=str)
@pytest.mark.parametrize("statuses", [("active",), ("quarantined", "archived"), ()], ids=str)
@pytest.mark.parametrize("where", [ANYTHING, equals("project", "x")], ids=["all", "filtered"])
def test_the_test_of_a_row_agrees_with_the_condition(
    context: Context, reader: Reader, statuses: tuple[str, ...], where
) -> None:
    reading = replace(context, reader=reader)
    clock = context.clock()
    rows = [
        Memory(
            id=f"m{n}", content="x", created_at=iso(clock), updated_at=iso(clock),
            user_id=user, agent_id=agent, session_id=session, memory_type=kind, reach=reach,
            status=status, expires_at=ends, project=project,
        ).row()
        for n, (user, agent, session, kind, reach, status, ends, project) in enumerate(
            product(
                ("u", None), ("ann", None), ("s", None), MemoryType, (None, Reach.AGENT),
                (Status.ACTIVE, Status.ARCHIVED), (None, iso(clock), iso(clock + 1)), ("x", None),
            )
        )
    ]  # fmt: skip
    test, condition = is_readable(reading, statuses, where), readable(reading, statuses)
    shown = [test(row) for row in rows]
    assert shown == [condition.matches(row) and where.matches(row) for row in rows]
    assert any(shown) == bool(statuses)
    context.store.apply(rows)
    from_store = set(context.store.ids(Kind.MEMORY, condition))
    assert {row.id for row in rows if is_readable(reading, statuses, ANYTHING)(row)} == from_store


def test_a_status_that_does_not_exist_is_an_error(context: Context) -> None:
    with pytest.raises(InvalidInput, match=r"unknown status 'gone'.*active, superseded"):
        is_readable(context, ("gone",), ANYTHING)
