"""Reviews and stores by several processes at the same time leave one active claim, and a sound
store."""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh

from .children import together, url
from .sound import assert_sound

CLAIM = {"subject": "Apollo", "predicate": "budget"}


@pytest.mark.deep
@pytest.mark.req("GRAPH-25")
@pytest.mark.parametrize("name", ["memory.db", "memory.lance", "memory.json"])
def test_of_claims_that_several_processes_activate_and_store_one_is_active(
    tmp_path: Path, name: str
) -> None:
    file, shared = tmp_path / name, {"provenance": {"source": "user_explicit"}}
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        ids = [
            mesh.graph.store(
                "one", f"It is {n}.", claim={**CLAIM, "value": str(n)}, quarantine=True, **shared
            ).id
            for n in range(6)
        ]
    calls = [[("graph.review_quarantine", {"memory_id": id_, "action": "activate"})] for id_ in ids]
    for n in range(2):
        store = {
            "agent": "one",
            "text": f"It is new {n}.",
            "claim": {**CLAIM, "value": f"new {n}"},
            **shared,
        }
        calls.append([("graph.store", store)])
    with ExitStack() as stack:
        options = [
            {"store": url(file), "agent": f"agent{n}", "calls": each, "together": True}
            for n, each in enumerate(calls)
        ]
        children = together(stack, options, "calls")
        done = [id_ for child in children for answer in child.rest() for id_ in answer]
        assert [child.end() for child in children] == [0] * len(children)
    assert len(set(done)) == len(calls)
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        every = [mesh.graph.explain_memory(id_) for id_ in done]
        assert Counter(one.status for one in every) == {"active": 1, "superseded": len(calls) - 1}
        (winner,) = (one for one in every if one.status == "active")
        assert len(mesh.graph.explain_supersession(winner.memory.id)) == len(calls) - 1
    assert_sound(file)
