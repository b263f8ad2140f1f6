"""Claims that several processes store in one file: no two active ones exclude each other, and a
write is whole or not there."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.claims import Claim, excludes
from memory_mesh.core.claims.claim import DEFAULT
from memory_mesh.core.model import Kind, Memory
from memory_mesh.stores import open_store

from .children import Child, together, url
from .sound import assert_sound

SOURCES = ("user_explicit", "inference", "tool_output")
STEPS = ("flow.validated", "flow.embedded", "flow.decided", "flow.applied")


def call(
    subject: str, value: str, source: str = "inference", agent: str = "ann"
) -> tuple[str, dict[str, object]]:
    claim = {"subject": subject, "predicate": "home", "value": value}
    return "graph.store", {
        "agent": agent,
        "text": f"{subject} {value} {source}",
        "claim": claim,
        "provenance": {"source": source},
    }


def memories(file: Path) -> list[Memory]:
    store = open_store(url(file))
    try:
        return [Memory.of(row) for row in store.find(Kind.MEMORY)]
    finally:
        store.close()


def contradictions(file: Path) -> list[tuple[str, str]]:
    active = [
        (memory, claim)
        for memory in memories(file)
        if memory.status == "active" and (claim := Claim.of(memory))
    ]
    return [
        (one.id, other.id)
        for at, (one, mine) in enumerate(active)
        for other, theirs in active[:at]
        if mine.key == theirs.key and excludes(mine, theirs, DEFAULT)
    ]


@pytest.mark.deep
@pytest.mark.req("GRAPH-43", "GRAPH-54")
def test_processes_that_store_claims_at_once_leave_no_two_active_ones_that_exclude_each_other(
    tmp_path: Path,
) -> None:
    file = tmp_path / "memory.db"
    with ExitStack() as stack:
        options = [
            {
                "store": url(file), "agent": "ann", "together": True,
                "calls": [call(f"subject {at % 3}", f"value {n} {at}", SOURCES[(n + at) % 3])
                          for at in range(9)],
            }
            for n in range(4)
        ]  # fmt: skip
        children = together(stack, options, program="calls")
        answers = [answer for child in children for answer in child.rest()]
        assert [child.end() for child in children] == [0] * len(children)
    assert len(answers) == 36
    assert len(memories(file)) == 36, "all values differ, so each is a memory"
    assert contradictions(file) == []
    assert {memory.status for memory in memories(file)} == {"active", "superseded", "quarantined"}
    assert_sound(file)


@pytest.mark.deep
@pytest.mark.req("GRAPH-43")
@pytest.mark.parametrize("step", STEPS)
def test_a_supersession_that_is_killed_at_any_step_is_there_as_a_whole_or_not_at_all(
    tmp_path: Path, step: str
) -> None:
    file = tmp_path / "memory.db"
    with MemoryMesh(store=url(file), agent_id="ann") as mesh:
        old = mesh.graph.store(**call("Ana", "Lisbon")[1])  # type: ignore[arg-type]
    with Child(
        "calls", store=url(file), agent="ann", calls=[call("Ana", "Porto")], crash=(step, 1)
    ) as child:
        child.rest()
        assert child.end() != 0
    found = {memory.id: memory for memory in memories(file)}
    applied = step == "flow.applied"
    assert found[old.id].status == ("superseded" if applied else "active")
    assert len(found) == (2 if applied else 1)
    with MemoryMesh(store=url(file), agent_id="ann") as mesh:
        rows = mesh.graph.conflicts(status="resolved")
    assert len(rows) == (1 if applied else 0)
    assert_sound(file)
