"""The query plans of SQLite for queries that must stay fast in a large file."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memory_mesh.core.model import (
    ANYTHING,
    Compare,
    In,
    Kind,
    Reader,
    Status,
    Where,
    all_of,
    partition,
    visible_to,
)
from memory_mesh.stores.sqlite import SqliteStore
from memory_mesh.stores.sqlite.queries import condition_on, page
from memory_mesh.testing.rows import memory

OUTER = "SCAN memories"
SORTED = "USE TEMP B-TREE FOR ORDER BY"
BY_AGE = "SEARCH memories USING INDEX memories_by_age (partition=?"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "memory.db")) as store:
        yield store


def readable(*statuses: str, more: Where = ANYTHING) -> Where:
    """What `get_all` asks for."""
    return all_of(
        visible_to(Reader(user_id="ana", agent_id="one")),
        In("status", statuses or ("active",)),
        more,
    )


def plan(store: SqliteStore, where: Where, *, limit: int | None, behind: bool = False) -> list[str]:
    query = page(
        Kind.MEMORY,
        where,
        limit=limit,
        after=memory("m1", partition=partition("ana", None)) if behind else None,
    )
    with store._use() as connection:
        steps = [
            row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query.text}", query.params)
        ]
    # The outer query sorts the few rows that the inner one returns, and reads what was sealed of
    # each.
    return steps[1 : steps.index(OUTER)] if OUTER in steps else steps


def test_the_newest_of_two_partitions_are_merged_from_an_index_and_not_sorted(
    store: SqliteStore,
) -> None:
    steps = plan(store, readable(), limit=10)
    assert [step for step in steps if "memories" in step] == [f"{BY_AGE})"] * 2
    assert not any(SORTED in step for step in steps)
    assert "MERGE (UNION ALL)" in steps


def test_a_later_page_begins_where_the_one_before_ended(store: SqliteStore) -> None:
    steps = plan(store, readable(), limit=10, behind=True)
    shared, own = (step.removeprefix(BY_AGE) for step in steps if step.startswith(BY_AGE))
    assert own.startswith(" AND created_at<")
    assert shared.startswith(" AND (created_at,number,id)<")
    assert not any(SORTED in step for step in steps)


def test_without_a_limit_all_are_read_and_sorted(store: SqliteStore) -> None:
    assert any(SORTED in step for step in plan(store, readable(), limit=None))


@pytest.mark.parametrize(
    ("where", "index"),
    [
        (readable(Status.QUARANTINED), "memories_by_scope"),
        (readable(more=Compare("id", "=", "m1")), "sqlite_autoindex_memories_1"),
        (readable(more=In("id", ("m1", "m2"))), "sqlite_autoindex_memories_1"),
    ],
    ids=["rare", "one id", "some ids"],
)
def test_few_rows_are_found_by_what_makes_them_few(
    store: SqliteStore, where: Where, index: str
) -> None:
    (step, *_) = plan(store, where, limit=10)
    assert index in step


def test_the_visible_memories_are_counted_in_an_index_alone(store: SqliteStore) -> None:
    condition = condition_on(Kind.MEMORY, readable())
    with store._use() as connection:
        query = f"EXPLAIN QUERY PLAN SELECT count(*) FROM memories WHERE {condition.text}"
        (step,) = (row[3] for row in connection.execute(query, condition.params))
    assert step.startswith(
        "SEARCH memories USING COVERING INDEX memories_by_scope (user_id=? AND status=?"
    )


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        *((kind, "ref") for kind in (Kind.CHANGE, Kind.SIGHTING, Kind.PASSAGE)),
        (Kind.LINK, "target"),
        (Kind.CONFLICT, "target"),
    ],
)
def test_what_is_stored_about_a_memory_is_found_by_an_index(
    store: SqliteStore, kind: Kind, column: str
) -> None:
    """By the primary key, every row of the kind would be read: 7 ms among 20,000, instead of 0.1
    ms."""
    for where in (Compare(column, "=", "m1"), In(column, ("m1", "m2"))):
        query = page(kind, where, limit=None, after=None)
        with store._use() as connection:
            (step, *_) = (
                row[3]
                for row in connection.execute(f"EXPLAIN QUERY PLAN {query.text}", query.params)
            )
        assert step == f"SEARCH records USING INDEX records_by_{column} (kind=? AND {column}=?)"


@pytest.mark.parametrize("column", ["partition", "project"])
def test_a_condition_too_large_to_be_merged_is_one_query(store: SqliteStore, column: str) -> None:
    more = In(column, tuple(f"x{n}" for n in range(20_000)))
    steps = plan(store, all_of(more, readable()), limit=10)
    assert "MERGE (UNION ALL)" not in steps
    assert store.find(Kind.MEMORY, all_of(more, readable()), limit=10) == []
