"""Nothing of a memory that the reader may not see reaches a signal, not even as a neighbour or as part of a session."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memory_mesh.core.model import Reader, Row, iso
from memory_mesh.core.ports import Store
from memory_mesh.core.search.query import Pool, Query
from memory_mesh.index import LocalIndex
from memory_mesh.stores.ram import RamStore

from .index_rows import LARGE, asking, memories, memory, queries
from .reference import reference

TALK = [memory(f"m{at}", text, vector=[1.0, at], session_id="s", turn=at) for at, text in ((1, "red"), (3, "apple"))]


def pool_of(rows: list[Row], query: Query) -> Pool:
    store: Store = RamStore()
    store.apply(rows)
    return LocalIndex(store).candidates(query, size=LARGE)


def signals_of(pool: Pool) -> dict[str, dict[str, float]]:
    return {id_: {name: float(signal[at]) for name, signal in pool.signals.items()} for at, id_ in enumerate(pool.ids)}


HIDDEN = {
    "quarantined": {"status": "quarantined"},
    "another session's": {"memory_type": "session", "session_id": "s", "agent_id": "b"},
    "another agent's": {"memory_type": "agent", "agent_id": "b"},
    "another user's": {"user_id": "u"},
    "expired": {"expires_at": iso(999)},
}


@pytest.mark.parametrize("why", HIDDEN)
def test_a_hidden_memory_is_no_neighbour(why: str) -> None:
    query = asking("red apple key", vector=[1.0, 2.0])
    between = {"session_id": "s", "turn": 2, "speaker": "Key"}
    seen = memory("m2", "key key?", vector=[1.0, 2.0], **between)
    hidden = memory("m2", "key key?", vector=[1.0, 2.0], **{**between, **HIDDEN[why]})
    apart = replace(hidden, fields={**hidden.fields, "session_id": "elsewhere"}, vector=None)
    with_it, without_it, beside_it = (signals_of(pool_of([*TALK, row], query)) for row in (hidden, apart, seen))
    assert with_it == without_it
    assert beside_it["m3"]["keywords_before"] > with_it["m3"]["keywords_before"]  # a readable memory between them counts
    assert "m2" in beside_it
    assert "m2" not in with_it


@given(data=st.data())
def test_the_contents_of_a_hidden_memory_do_not_change_the_signals(data: st.DataObject) -> None:
    rows = [data.draw(memories(id_, 0)) for id_ in "abcd"]
    query = data.draw(queries())
    one, other = (data.draw(memories("e", 0)) for _ in range(2))
    words = data.draw(st.lists(st.sampled_from(("red", "apple")), max_size=3))
    # All readers of a partition share its word counts, so both versions have the same words.
    one, other = (replace(row, fields={**row.fields, "keywords": words}) for row in (one, other))
    # Both in one partition: few that are drawn at random are.
    owner = {name: one.fields.get(name) for name in ("user_id", "agent_id", "memory_type", "reach") if name in one.fields}
    kept = {name: value for name, value in other.fields.items() if name not in ("user_id", "agent_id", "memory_type", "reach")}
    other = replace(other, partition=one.partition, fields={**kept, **owner})
    assume(not any("e" in reference([row], replace(query, only=None)).signals for row in (one, other)))
    assert signals_of(pool_of([*rows, one], query)) == signals_of(pool_of([*rows, other], query))


def test_a_view_is_shared_only_until_a_new_scope_appears() -> None:
    """Two sessions see the same until one of them gets a memory of type session."""
    store = RamStore()
    store.apply([memory("m1", "red")])
    index, readers = LocalIndex(store), [Reader(None, "a", "s"), Reader(None, "a", "t")]
    assert [index.candidates(asking("red", reader=reader), size=9).ids for reader in readers] == [["m1"], ["m1"]]
    store.apply([memory("m2", "red", memory_type="session", session_id="s")])
    assert [sorted(index.candidates(asking("red", reader=reader), size=9).ids) for reader in readers] == [["m1", "m2"], ["m1"]]


def test_a_memory_expires_with_the_clock_and_returns_if_the_clock_is_set_back() -> None:
    store = RamStore()
    store.apply([memory("m1", "red", expires_at=iso(1000)), memory("m2", "red")])
    index = LocalIndex(store)
    found = [sorted(index.candidates(replace(asking("red"), at=iso(now)), size=9).ids) for now in (999, 1000, 999)]
    assert found == [["m1", "m2"], ["m2"], ["m1", "m2"]]


def test_a_row_of_an_unknown_type_is_visible_to_no_reader() -> None:
    row = memory("m1", "red")
    odd = replace(row, id="m2", fields={**row.fields, "memory_type": "odd"})
    assert pool_of([row, odd], asking("red")).ids == ["m1"]
