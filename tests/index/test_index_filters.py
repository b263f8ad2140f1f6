"""The index evaluates filters as `Where.matches` does."""

from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.model import ANYTHING, And, Compare, In, Not, Value, Where, iso
from memory_mesh.core.search.candidates import IndexedRows
from memory_mesh.index import LocalIndex
from memory_mesh.index import table as index_table
from memory_mesh.index.table import MISSING, Table, time_of
from memory_mesh.index.view import flags_of
from memory_mesh.stores.ram import RamStore

from .index_rows import agrees, asking, find, memories, memory, tiny, wheres


@given(data=st.data())
def test_a_filter_decided_by_columns_allows_what_it_matches(data: st.DataObject) -> None:
    rows, where = [data.draw(memories(id_, 0)) for id_ in "abcdefgh"], data.draw(wheres())
    store = RamStore()
    store.apply(rows)  # without empty fields
    table, stored = Table("english"), list(store.get(rows[0].kind, list("abcdefgh")).values())
    table.put(rows[0].kind, IndexedRows.of(stored))
    flags = flags_of(where, table)
    assert flags is None or flags.tolist() == [where.matches(row) for row in stored]


DECIDED: dict[str, Where] = {
    "text": Compare("category", "=", "fact"),
    "number": Compare("importance", ">", 0.25),
    "tag": Compare("tags", "=", "ops"),
    "session": In("session_id", ("s1", "s2")),
    "time": And((Compare("event_time", ">=", iso(3)), Not(Compare("created_at", "<", "1970")))),
}


def described(at: int) -> dict[str, Value]:
    return {
        "category": "fact" if at % 2 else "event", "importance": at / 8,
        "tags": ["ops", "new"] if at % 3 else [], "session_id": f"s{at}", "event_time": iso(at),
    }  # fmt: skip


@pytest.mark.parametrize("where", DECIDED.values(), ids=DECIDED)
def test_common_filters_do_not_read_the_store(where: Where) -> None:
    store = RamStore()
    store.apply([memory(f"m{at}", "red", **described(at)) for at in range(8)])
    index, query = LocalIndex(store), replace(asking("red"), where=where)
    find(index, asking("red"), size=9)
    with patch.object(store, "ids", side_effect=AssertionError):
        found = find(index, query, size=9)
    assert 0 < len(found.ids) < 8
    agrees(index, store, query)


def test_other_filters_read_the_store_once_whatever_is_written_later() -> None:
    store = RamStore()
    store.apply([memory(f"m{at}", "red", metadata={"n": at}) for at in range(8)])
    index, query = LocalIndex(store), replace(asking("red"), where=Compare("metadata.n", ">", 5))
    with patch.object(store, "ids", side_effect=store.ids) as read:
        assert sorted(find(index, query, size=9).ids) == ["m6", "m7"]
        store.apply(
            [
                memory("m8", "red", metadata={"n": 8}),
                memory("m7", "red", metadata={"n": 1}, replaces=1),
            ]
        )
        assert sorted(find(index, query, size=9).ids) == ["m6", "m8"]
        assert read.call_count == 1
    assert (
        sorted(find(index, replace(query, where=Compare("metadata.n", ">", True)), size=9).ids)
        == []
    )
    assert len(find(index, replace(query, where=ANYTHING), size=20).ids) == 9


def test_a_time_in_an_unusual_form_is_compared_as_text() -> None:
    store = RamStore()
    where = Compare("event_time", ">=", "1970-01-01T00:00:00.000Z")
    store.apply(
        [
            memory("m1", "red", event_time=iso(5)),
            memory("m2", "red", event_time="1970-01-01 at noon"),
        ]
    )
    for _ in range(2):
        agrees(LocalIndex(store), store, replace(asking("red"), where=where))
    with tiny():
        agrees(LocalIndex(store), store, replace(asking("red"), where=where))


def test_a_packed_table_keeps_its_filters_and_forgets_erased_values() -> None:
    store = RamStore()
    store.apply([memory(f"m{at}", "red", category=f"category {at}") for at in range(8)])
    query = replace(asking("red"), where=In("category", ("category 3", "category 5")))
    with tiny():
        index = LocalIndex(store)
        agrees(index, store, query)
        store.apply(deletes=[row.key for row in store.get(memory("x").kind, ["m5"]).values()])
        store.apply([memory(f"n{at}", "red") for at in range(8)])
        assert find(index, query, size=9).ids == ["m3"]
    table = index._partitions[memory("m3").partition].table
    assert "category 3" in table.names.facets[1]
    assert "category 5" not in table.names.facets[1]


@given(
    ms=st.integers(-(10**13), 10**14), other=st.from_regex(index_table._USUAL_TIME, fullmatch=True)
)
def test_a_time_has_the_usual_form_if_and_only_if_it_is_written_so(ms: int, other: str) -> None:
    assert index_table._USUAL_TIME.fullmatch(iso(ms))
    assert time_of(other) == MISSING or iso(time_of(other)) == other
