"""Nothing of a memory that the reader may not see reaches a signal, not even as a neighbour or
as part of a session."""

from contextlib import nullcontext
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.model import ANYTHING, Reader, Row, iso, visible
from memory_mesh.core.ports import Store
from memory_mesh.core.search.query import Pool, Query
from memory_mesh.index import LocalIndex, local
from memory_mesh.index.table import Scope
from memory_mesh.stores.ram import RamStore

from .index_rows import LARGE, asking, find, memories, memory, queries, tiny

TALK = [
    memory(f"m{at}", text, vector=[1.0, at], session_id="s", turn=at)
    for at, text in ((1, "red"), (3, "apple"))
]


def pool_of(rows: list[Row], query: Query) -> Pool:
    store: Store = RamStore()
    store.apply(rows)
    return find(LocalIndex(store), query, size=LARGE)


def answers_of(pool: Pool) -> object:
    """Return everything that a reader learns from a pool."""
    return (
        sorted(pool.ids),
        signals_of(pool),
        pool.documents,
        dict(pool.excluded),
        pool.without_vector,
    )


def in_scope(query: Query, row: Row) -> bool:
    """Return whether the row is visible; one of another status, or one that has expired, is."""
    try:
        return visible(query.reader, row)
    except ValueError:
        return False


def signals_of(pool: Pool) -> dict[str, dict[str, float]]:
    return {
        id_: {name: float(signal[at]) for name, signal in pool.signals.items()}
        for at, id_ in enumerate(pool.ids)
    }


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
    # Memories of another status and expired ones belong to the statistics of words, so it is moved
    # away instead of removed.
    apart = replace(hidden, fields={**hidden.fields, "session_id": "elsewhere"}, vector=None)
    with_it, without_it, beside_it = (
        signals_of(pool_of([*TALK, row], query)) for row in (hidden, apart, seen)
    )
    assert with_it == without_it
    # A readable memory between them counts.
    assert beside_it["m3"]["keywords_before"] > with_it["m3"]["keywords_before"]
    assert "m2" in beside_it
    assert "m2" not in with_it


@pytest.mark.parametrize("scale", [nullcontext, tiny], ids=("few", "as if many"))
@given(data=st.data())
def test_a_hidden_memory_moves_no_signal_and_no_count(scale, data: st.DataObject) -> None:
    """Compare exactly: with hidden rows from the start, without them, and after they come,
    change and go in an open index."""
    rows = [data.draw(memories(id_, 0)) for id_ in "abcd"]
    query = data.draw(queries())

    kept = [row for row in rows if in_scope(query, row)]
    hidden = [
        row for row in (data.draw(memories(id_, 0)) for id_ in "efgh") if not in_scope(query, row)
    ]
    with scale():
        store = RamStore()
        store.apply(kept)
        index = LocalIndex(store)
        alone = answers_of(find(index, query, size=LARGE))
        assert answers_of(pool_of([*kept, *hidden], query)) == alone
        for row in hidden:
            store.apply([row])
            assert answers_of(find(index, query, size=LARGE)) == alone
        store.apply(
            [
                replace(row, revision=2, replaces=1, fields={**row.fields, "keywords": ["red"]})
                for row in hidden
            ]
        )
        assert answers_of(find(index, query, size=LARGE)) == alone
        store.apply(deletes=[row.key for row in hidden])
        assert answers_of(find(index, query, size=LARGE)) == alone


def test_a_visible_memory_does_move_the_signals() -> None:
    """Without this, the test above could pass because nothing ever counts."""
    query = asking("red apple")
    more = memory("m9", "red", memory_type="session", session_id="s")
    assert signals_of(pool_of([*TALK, more], query))["m1"] != signals_of(pool_of(TALK, query))["m1"]


@pytest.mark.parametrize("exact", [10, 25], ids=["by a shortlist", "exactly"])
@pytest.mark.parametrize("count", [1, 7, 60, 500])
def test_hidden_vectors_do_not_push_a_visible_one_out_of_the_shortlist(
    count: int, exact: int
) -> None:
    own = [
        memory(f"m{at}", vector=[1.0, at / 1000], memory_type="session", session_id="s")
        for at in range(20)
    ]
    # Nearer than the visible ones, and read before them: the newest rows have the first slots.
    nearer = [
        memory(f"h{1000 + at}", vector=[1.0, 0.0], memory_type="session", session_id="t")
        for at in range(count)
    ]
    query = asking(vector=[1.0, 0.0])
    with (
        patch.multiple("memory_mesh.index.space", MAX_EXACT=exact, SHORTLIST=30),
        patch.object(local, "MAX_UNPACKED", 0),
    ):
        alone, among = pool_of(own, query), pool_of([*own, *nearer], query)
    assert sorted(among.ids) == sorted(alone.ids) == sorted(row.id for row in own)
    assert signals_of(among) == signals_of(alone)


@pytest.mark.deep
@given(data=st.data())
def test_a_filter_does_not_change_a_signal(data: st.DataObject) -> None:
    rows, query = [data.draw(memories(id_, 0)) for id_ in "abcdef"], data.draw(queries())
    everything, filtered = (
        signals_of(pool_of(rows, replace(query, where=where))) for where in (ANYTHING, query.where)
    )
    for id_, signals in filtered.items():
        assert signals == everything.get(id_, signals)


@pytest.mark.deep
def test_a_reader_is_compared_with_its_own_session_only_however_many_there_are() -> None:
    """Five thousand sessions: deciding what a reader sees must not look at every one of them."""
    store = RamStore()
    store.apply(
        [memory(f"m{at}", "red", memory_type="session", session_id=f"s{at}") for at in range(5000)]
    )
    index = LocalIndex(store)
    with patch.object(Scope, "visible_to", autospec=True, side_effect=Scope.visible_to) as decided:
        assert find(index, asking("red", reader=Reader(None, "a", "s77")), size=9).ids == ["m77"]
        assert find(index, asking("red", reader=Reader(None, "a", "s78")), size=9).ids == ["m78"]
    assert decided.call_count < 10


def test_a_view_is_shared_only_until_a_new_scope_appears() -> None:
    """Two sessions see the same until one of them gets a memory of type session."""
    store = RamStore()
    store.apply([memory("m1", "red")])
    index, readers = LocalIndex(store), [Reader(None, "a", "s"), Reader(None, "a", "t")]
    assert [find(index, asking("red", reader=reader), size=9).ids for reader in readers] == [
        ["m1"],
        ["m1"],
    ]
    store.apply([memory("m2", "red", memory_type="session", session_id="s")])
    assert [
        sorted(find(index, asking("red", reader=reader), size=9).ids) for reader in readers
    ] == [["m1", "m2"], ["m1"]]


def test_a_memory_expires_with_the_clock_and_returns_if_the_clock_is_set_back() -> None:
    store = RamStore()
    store.apply([memory("m1", "red", expires_at=iso(1000)), memory("m2", "red")])
    index = LocalIndex(store)
    found = [
        sorted(find(index, replace(asking("red"), at=iso(now)), size=9).ids)
        for now in (999, 1000, 999)
    ]
    assert found == [["m1", "m2"], ["m2"], ["m1", "m2"]]


def test_a_row_of_an_unknown_type_is_not_shared() -> None:
    row = memory("m1", "red")
    odd = replace(row, id="m2", fields={**row.fields, "memory_type": "odd"})
    assert pool_of([row, odd], asking("red")).ids == ["m1"]
