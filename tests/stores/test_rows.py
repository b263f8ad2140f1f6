"""The test kit itself: its strategies produce valid and complete rows, and its fakes are
deterministic."""

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

import pytest
from hypothesis import Phase, given, settings
from hypothesis.strategies import SearchStrategy, just, tuples

from conftest import IN_CI
from memory_mesh import MemoryMesh
from memory_mesh.core.model import (
    INT_MAX,
    WITH_VECTOR,
    And,
    Anything,
    Compare,
    In,
    IsNull,
    Kind,
    Like,
    Not,
    Or,
    Row,
    Type,
    Where,
    checked,
    fields_of,
    is_list,
)
from memory_mesh.testing import FakeClock, StoreContract, no_pause, seeded_ids
from memory_mesh.testing.rows import (
    ODD_TEXTS,
    SLOW_ALLOWED,
    batches,
    conditions,
    integers,
    objects,
    property_test,
    rows,
    texts,
)

Drawn = TypeVar("Drawn")


def drawn(strategy: SearchStrategy[Drawn], times: int = 150) -> list[Drawn]:
    """Some of what a strategy gives, the same in every run."""
    found: list[Drawn] = []

    @settings(
        max_examples=times,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=SLOW_ALLOWED,
        phases=[Phase.generate],
    )
    @given(strategy)
    def collect(value: Drawn) -> None:
        found.append(value)

    collect()
    return found


@property_test
@given(row=rows())
def test_any_row_that_is_drawn_is_legal(row: Row) -> None:
    assert checked(row) == row


@property_test
@given(batch=batches())
def test_rows_that_are_drawn_together_can_stand_together(batch: list[Row]) -> None:
    places = [(row.value("chain"), row.number) for row in batch if row.kind is Kind.BLOCK]
    assert len({row.key for row in batch}) == len(batch)
    assert len({*places}) == len(places)


@pytest.mark.one_in_ci(3)
@pytest.mark.deep
@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", Kind)
def test_every_field_of_a_kind_is_drawn_and_left_out(kind: Kind, deep: bool) -> None:
    some = drawn(rows([kind]), 1500 if deep and not IN_CI else max(150, 12 * len(fields_of(kind))))
    times = Counter(name for row in some for name in row.fields)
    assert times.keys() == {column.name for column in fields_of(kind)}
    assert {row.vector is None for row in some} == (
        {True, False} if kind in WITH_VECTOR else {True}
    )
    optional = [name for name in times if times[name] < len(some)]
    assert len(optional) >= len(times) - 4


@pytest.mark.deep
def test_what_has_broken_stores_is_drawn() -> None:
    some = drawn(rows([Kind.MEMORY]), 700)
    values = [value for row in some for value in row.fields.values()]
    assert sum(text in values for text in ODD_TEXTS) > 0.8 * len(ODD_TEXTS)
    assert len({*drawn(texts(), 500)} & {*ODD_TEXTS}) > 0.9 * len(ODD_TEXTS)
    assert [] in values
    assert {} in values
    assert INT_MAX in drawn(integers())
    assert any(isinstance(item, dict) for value in drawn(objects()) for item in value.values())
    assert len({row.created_at for row in some}) < len(some)


def test_every_shape_of_condition_is_drawn() -> None:
    shapes = {type(part) for where in drawn(conditions()) for part in _parts(where)}
    assert shapes == {Anything, Compare, In, Like, IsNull, And, Or, Not}


@pytest.mark.deep
def test_conditions_are_drawn_about_lists_keys_and_the_wrong_type() -> None:
    compares = [
        part
        for where in drawn(conditions(), 1500)
        for part in _parts(where)
        if isinstance(part, Compare)
    ]
    columns = {part.column for part in compares}
    assert {*Type} == {type_ for column in columns for type_ in _types(column)}
    assert any(is_list(column) for column in columns)
    assert any(column.startswith("metadata.") for column in columns)
    assert any(part.column == "pinned" and not isinstance(part.value, bool) for part in compares)


@pytest.mark.deep
def test_conditions_about_given_rows_are_true_false_and_unknown_of_them(deep: bool) -> None:
    pairs = drawn(
        rows([Kind.MEMORY]).flatmap(lambda row: tuples(just(row), conditions([row]))),
        300 if deep else 150,
    )
    truths = Counter(where.truth(row) for row, where in pairs)
    assert all(truths[truth] > (30 if deep else 15) for truth in (True, False, None))


def test_the_clock_stands_still_until_it_is_moved_and_can_be_set_back() -> None:
    clock = FakeClock(1_000)
    assert [clock(), clock(), clock.seconds()] == [1_000, 1_000, 1.0]
    clock.advance(days=1, seconds=0.5, ms=7)
    assert clock() == 1_000 + 86_400_000 + 507
    clock.ms = 5
    assert clock() == 5


def test_seeded_ids_are_the_same_in_every_run_and_differ_among_themselves() -> None:
    first, second, other = seeded_ids(1), seeded_ids(1), seeded_ids(2)
    given = [first.new("mem", 7) for _ in range(100)]
    assert given == [second.new("mem", 7) for _ in range(100)]
    assert len({*given}) == 100
    assert first.salt() == second.salt() != other.salt()


def test_the_same_calls_with_the_same_fakes_leave_the_same_records() -> None:
    def run() -> list[object]:
        clock = FakeClock()
        with MemoryMesh(
            store="memory://", agent_id="tester", clock=clock.seconds, ids=seeded_ids(3)
        ) as mesh:
            mesh.add("The deploy key rotates on Mondays.")
            clock.advance(days=1)
            mesh.add("The key is blue.", {"source": "a note"})
            return [*mesh.get_all(), *mesh.verify()]

    assert run() == run()


def test_no_pause_does_not_wait() -> None:
    no_pause(10**9)


def test_no_part_of_the_contract_takes_the_name_of_anothers_sentence() -> None:
    tests = Counter(
        name for part in StoreContract.__bases__ for name in vars(part) if name.startswith("test_")
    )
    assert tests.total() > 60
    assert [name for name, times in tests.items() if times > 1] == []


def _parts(where: Where) -> Iterator[Where]:
    yield where
    for part in (
        where.parts
        if isinstance(where, And | Or)
        else [where.part]
        if isinstance(where, Not)
        else []
    ):
        yield from _parts(part)


def _types(name: str) -> list[Type]:
    return [column.type for column in fields_of(Kind.MEMORY) if column.name == name]
