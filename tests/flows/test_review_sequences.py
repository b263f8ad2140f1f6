"""After any sequence of stores, feedback and reviews, no two active claims exclude each other,
unless a review keeps both."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.audit import Sound
from memory_mesh.core.claims.rules import ACTIONS, KEEP
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import ClaimConflict, Kind, Memory, Reader
from memory_mesh.core.options import Options
from memory_mesh.flows.audit.audit import ChainSelection, verify_chains
from memory_mesh.flows.claims.review import (
    conflicts,
    dispute,
    find_rivals,
    list_quarantined,
    reinforce,
    resolve_conflict,
    review_quarantine,
    undo_review,
)
from memory_mesh.flows.context import Context
from memory_mesh.flows.graph import store as graph
from memory_mesh.flows.graph.store import NewMemory
from memory_mesh.index import LocalIndex
from memory_mesh.stores import open_store
from memory_mesh.testing.fakes import FakeClock, no_pause, seeded_ids

STORES = st.tuples(
    st.just("store"),
    st.sampled_from(["500", "700", "900"]),
    st.sampled_from(["user_explicit", "document", "inference"]),
    st.sampled_from([None, "2020-01-01", "2025-01-01"]),
)
BY_ID = st.tuples(
    st.sampled_from(
        [
            "reinforce",
            "dispute",
            "dispute",
            "activate",
            "activate",
            "reject",
            "keep_both",
            "undo",
            "undo",
        ]
    ),
    st.integers(0, 5),
)
RESOLVED = st.tuples(st.sampled_from(["new", "existing", "both"]), st.integers(0, 3))
STEPS = st.lists(
    st.tuples(st.sampled_from(["ann", "bob"]), st.one_of(STORES, BY_ID, BY_ID, RESOLVED)),
    min_size=5,
    max_size=25,
)


def a_context() -> Context:
    store = open_store("memory://")
    return Context(
        store=store, index=LocalIndex(store, language="english"), clock=FakeClock(),
        ids=seeded_ids(), reader=Reader("u", "ann"), pause=no_pause,
        options=Options(audit_recalls=False),
    )  # fmt: skip


def take(context: Context, ids: list[str], decided: list[str], action: str, *values: Any) -> None:
    """Take a step. A decision is about a memory or conflict that waits, and an undo about a
    memory that was decided about."""
    if action == "store":
        value, source, start = values
        claim = {
            "subject": "Apollo",
            "predicate": "budget",
            "value": value,
            **({"valid_from": start} if start else {}),
        }
        new = NewMemory(
            text=f"Apollo gets {value}.", claim=claim, provenance={"source": source}
        ).checked()
        ids.append(graph.store(replace(context, reader=Reader("u", "ann")), [new])[0].id)
        return
    pending = conflicts(context) if action in KEEP else []
    quarantined = [memory.id for memory in list_quarantined(context)] if action in ACTIONS else []
    among = [one.id for one in pending] or quarantined or (decided if action == "undo" else ids)
    if not among:
        return
    id_ = among[values[0] % len(among)]
    if action in KEEP and pending:
        decided.append(resolve_conflict(context, id_, action).memory.id)
    elif action in ACTIONS:
        decided.append(review_quarantine(context, id_, action).memory.id)
    elif action not in KEEP:
        {"reinforce": reinforce, "dispute": dispute, "undo": undo_review}[action](context, id_)  # type: ignore[operator]


@pytest.mark.req("GRAPH-25")
@given(STEPS)
def test_no_sequence_of_decisions_leaves_two_active_claims_that_exclude_each_other(
    steps: list[Any],
) -> None:
    context, ids, decided = a_context(), list[str](), list[str]()
    for agent, (action, *values) in steps:
        context.clock.advance(ms=1000)  # type: ignore[attr-defined]
        before = state(context)
        try:
            take(replace(context, reader=Reader("u", agent)), ids, decided, action, *values)
        except InvalidInput:
            assert state(context) == before  # a refused decision changes nothing
        for memory in state(context)[0].values():
            if memory.status == "active":
                assert [
                    one.id for one in find_rivals(context, memory) if one.status == "active"
                ] == []
            if memory.status == "superseded":
                assert memory.superseded_by in ids
    assert all(
        isinstance(chain, Sound)
        for chain in verify_chains(context, ChainSelection(), noted=None, file=None)
    )


def state(context: Context) -> tuple[dict[str, Memory], dict[str, ClaimConflict]]:
    memories = {row.id: Memory.of(row) for row in context.store.find(Kind.MEMORY)}
    return memories, {row.id: ClaimConflict.of(row) for row in context.store.find(Kind.CONFLICT)}
