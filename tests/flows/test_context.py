"""`commit`: a decision becomes one write; it is made again after a conflict, and given up after
the last attempt."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from memory_mesh.core.errors import Conflict, IdTaken, MemoryDisabled, StoreBusy, StoreFull
from memory_mesh.core.model import Kind, Memory, Row
from memory_mesh.core.ports import Applied
from memory_mesh.flows.context import Context, Plan, commit, write_plan
from memory_mesh.flows.write import write

from .adding import add_many


class Contended:
    """A store that others keep changing: the first so many writes are lost."""

    url = "contended://"

    def __init__(self, *errors: type[Exception]) -> None:
        self.errors = list(errors)
        self.applied: list[Sequence[Row]] = []

    def apply(self, puts: Sequence[Row], deletes: object, *, seen: object) -> Applied:
        if self.errors:
            raise self.errors.pop(0)("not this time")
        self.applied.append(puts)
        return Applied(bytes_freed=False)


def busy(context: Context, *errors: type[Exception]) -> tuple[Context, list[int]]:
    waits: list[int] = []
    return replace(context, store=Contended(*errors), pause=waits.append), waits


def test_a_decision_that_lost_the_race_is_made_again(context: Context) -> None:
    contended, waits = busy(context, Conflict, IdTaken, Conflict)
    calls: list[int] = []

    def decide() -> Plan[int]:
        calls.append(len(calls))
        return Plan(calls[-1], ["row"])

    assert commit(contended, decide) == 3
    assert waits == [0, 1, 2]
    assert contended.store.applied == [["row"]]


def test_a_decision_that_loses_every_race_gives_up(context: Context) -> None:
    contended, waits = busy(context, *[Conflict] * 400)
    with pytest.raises(StoreBusy, match="other writers kept changing it"):
        commit(contended, lambda: Plan(None, ["row"]))
    assert len(waits) == 400
    assert contended.store.applied == []


def test_an_error_of_another_kind_is_not_tried_again(context: Context) -> None:
    contended, waits = busy(context, StoreFull)
    with pytest.raises(StoreFull):
        commit(contended, lambda: Plan(None, ["row"]))
    assert waits == []


def test_a_decision_to_write_nothing_asks_nothing_of_the_store(context: Context) -> None:
    contended, _ = busy(context, StoreFull)
    assert commit(contended, lambda: Plan("as it is")) == "as it is"


def test_write_plan_returns_whether_bytes_were_freed(context: Context) -> None:
    contended, waits = busy(context)
    assert write_plan(contended.store, lambda: Plan(3, ["row"]), pause=waits.append) == (3, False)
    assert write_plan(contended.store, lambda: Plan("as it is"), pause=waits.append) == (
        "as it is",
        True,
    )


def test_nothing_is_even_decided_where_memory_is_off(context: Context) -> None:
    with pytest.raises(MemoryDisabled):
        commit(context.with_options(enable_memory=False), lambda: pytest.fail("decided"))


def test_every_step_of_a_write_is_told(context: Context) -> None:
    steps: list[str] = []
    add_many(replace(context, step=steps.append), [("text", None)])
    assert steps == ["flow.validated", "flow.embedded", "flow.decided", "flow.applied"]


class AlwaysTheSame:
    def new(self, prefix: str, ms: int) -> str:
        return f"{prefix}_{ms}_000000"

    def salt(self) -> str:
        return "0" * 32


def test_a_source_that_never_gives_another_id_ends_in_an_error_and_not_in_a_loop(
    context: Context,
) -> None:
    stuck = replace(context, ids=AlwaysTheSame())
    add_many(stuck, [("first", None)])
    with pytest.raises(StoreBusy):
        add_many(stuck, [("second", None)])
    assert [row.value("content") for row in context.store.find(Kind.MEMORY)] == ["first"]


@pytest.mark.parametrize("other", ["same text", "other text"])
@pytest.mark.parametrize("audited", [True, False])
def test_two_writers_at_once_keep_one_chain_and_count_what_is_the_same(
    context: Context, other: str, audited: bool
) -> None:
    """Another process stores between the reading and the writing."""
    context = context.with_options(enable_yamo=audited)
    met: list[bool] = []

    def meddle(step: str) -> None:
        if step == "flow.decided" and not met:
            met.append(True)
            add_many(context, [(other, None)])

    (memory,) = add_many(replace(context, step=meddle), [("same text", None)])
    memories = [Memory.of(row) for row in context.store.find(Kind.MEMORY)]
    assert met == [True]
    assert sorted(memory.content for memory in memories) == sorted({"same text", other})
    assert memory.times_observed == (2 if other == "same text" else 1)
    assert sorted(row.number for row in context.store.find(Kind.BLOCK)) == (
        [1, 2] if audited else []
    )


def test_two_calls_under_one_key_at_once_store_once(context: Context) -> None:
    met: list[bool] = []

    def meddle(step: str) -> None:
        if step == "flow.decided" and not met:
            met.append(True)
            add_many(context, [("text", None)], key="k")

    (memory,) = add_many(replace(context, step=meddle), [("text", None)], key="k")
    assert met == [True]
    assert memory.times_observed == 1
    assert context.store.count(Kind.MEMORY) == context.store.count(Kind.BLOCK) == 1


def test_an_update_that_lost_the_race_is_made_of_what_is_there_now(context: Context) -> None:
    (memory,) = add_many(context, [("text", {"a": 1})])
    met: list[bool] = []

    def meddle(step: str) -> None:
        if step == "flow.decided" and not met:
            met.append(True)
            write.update(context, memory.id, metadata={"b": 2})

    newer = write.update(replace(context, step=meddle), memory.id, metadata={"c": 3})
    assert (newer.metadata, newer.revision) == ({"a": 1, "b": 2, "c": 3}, 3)
