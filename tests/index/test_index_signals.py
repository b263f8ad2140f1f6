"""The signals of every candidate equal the reference: after any history, through any handle,
from memory and from files."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_mesh.core.model import Key, Kind, Row
from memory_mesh.core.ports import Store
from memory_mesh.index import LocalIndex
from memory_mesh.stores.ram import RamStore
from memory_mesh.stores.sqlite import SqliteStore

from .index_rows import agrees, asking, find, memories, memory, passages, queries, tiny

IDS = "abcdefgh"


def change(data: st.DataObject, store: Store) -> None:
    """Add, change, move or delete some rows in one write."""
    stored = {row.key: row for row in (*store.find(Kind.MEMORY), *store.find(Kind.PASSAGE))}
    puts: dict[Key, Row] = {}
    for id_ in data.draw(st.lists(st.sampled_from(IDS), max_size=4, unique=True)):
        old = stored.get(Key(Kind.MEMORY, id_))
        row = data.draw(memories(id_, old.revision if old else 0))
        puts[row.key] = row
    for id_ in data.draw(st.lists(st.sampled_from(IDS[:3]), max_size=2, unique=True)):
        owner = data.draw(st.sampled_from(IDS))
        at = (
            puts.get(Key(Kind.MEMORY, owner))
            or stored.get(Key(Kind.MEMORY, owner))
            or memory(owner)
        )
        old = stored.get(Key(Kind.PASSAGE, id_))
        row = data.draw(passages(id_, at, old.revision if old else 0))
        puts[row.key] = row
    deletes = (
        data.draw(st.lists(st.sampled_from(sorted(stored)), max_size=2, unique=True))
        if stored
        else []
    )
    store.apply(list(puts.values()), [key for key in deletes if key not in puts])


@pytest.mark.deep
@pytest.mark.sample(1)
@pytest.mark.parametrize("scale", [nullcontext, tiny], ids=("few", "as if many"))
@given(data=st.data())
def test_after_any_history_the_index_agrees_with_the_rows(scale, data: st.DataObject) -> None:
    store = RamStore()
    with scale():
        index = LocalIndex(store)
        for _ in range(data.draw(st.integers(1, 6))):
            change(data, store)
            if data.draw(st.booleans()):
                agrees(index, store, data.draw(queries()))
        agrees(index, store, data.draw(queries()))
        agrees(index, store, data.draw(queries()), size=data.draw(st.integers(1, 3)))


def test_a_neighbour_with_a_zero_vector_does_not_change_the_context_of_others() -> None:
    store = RamStore()
    store.apply(
        [
            memory("a", "x", session_id="s", vector=[0.0, 0.0]),
            memory("b", "x", session_id="s", vector=[4.0, 0.0]),
        ]
    )
    agrees(LocalIndex(store), store, asking("x", vector=[1.0, 0.0]))


@pytest.mark.deep
@settings(max_examples=settings().max_examples // 4)
@given(data=st.data())
def test_two_processes_with_files_see_the_same(data: st.DataObject) -> None:
    with tiny(), opened_twice() as (stores, indexes):
        for _ in range(data.draw(st.integers(1, 6))):
            at = data.draw(st.integers(0, 1))
            change(data, stores[at])
            agrees(indexes[1 - at], stores[at], data.draw(queries()))
            if data.draw(st.booleans()):
                indexes[at].close()
                indexes[at] = LocalIndex(stores[at])
        query = data.draw(queries())
        agrees(indexes[0], stores[1], query)
        agrees(indexes[1], stores[0], query)


@contextmanager
def opened_twice() -> Iterator[tuple[list[SqliteStore], list[LocalIndex]]]:
    with TemporaryDirectory() as folder:
        stores = [SqliteStore(Path(folder) / "memory.db") for _ in range(2)]
        try:
            yield stores, [LocalIndex(store) for store in stores]
        finally:
            for store in stores:
                store.close()


def test_a_changed_memory_is_found_by_its_new_words_only() -> None:
    store, index = RamStore(), None
    store.apply([memory("m1", "red apple")])
    index = LocalIndex(store)
    assert find(index, asking("apple"), size=9).ids == ["m1"]
    store.apply([memory("m1", "green pear", replaces=1)])
    assert find(index, asking("apple"), size=9).ids == []
    assert find(index, asking("pear"), size=9).ids == ["m1"]


def test_an_empty_store_has_an_empty_pool() -> None:
    pool = find(LocalIndex(RamStore()), asking("apple", vector=[1.0]), size=9)
    assert (pool.ids, pool.documents, pool.without_vector) == ([], 0, 0)
    assert {len(signal) for signal in pool.signals.values()} == {0}


def test_a_memory_counts_with_its_best_passage() -> None:
    store = RamStore()
    store.apply([memory("m1", "red", vector=[1.0, 0.0]), memory("m2", "blue", vector=[1.0, 0.1])])
    passage = Row(
        kind=Kind.PASSAGE,
        id="p",
        partition=memory("m1").partition,
        created_at="",
        fields={"ref": "m1"},
    )
    store.apply([replace(passage, vector=memory("x", vector=[0.0, 1.0]).vector)])
    pool = find(LocalIndex(store), asking(vector=[0.0, 1.0]), size=9)
    assert dict(zip(pool.ids, pool.signals["vectors"].tolist(), strict=True)) == pytest.approx(
        {"m1": 1.0, "m2": 0.1}, abs=0.01
    )


def test_the_neighbour_of_a_good_answer_is_a_candidate() -> None:
    store = RamStore()
    talk = ["where did you go?", "to the lake", "nice"]
    store.apply([memory(f"m{at}", text, session_id="s", turn=at) for at, text in enumerate(talk)])
    pool = find(LocalIndex(store), asking("where"), size=9)
    assert sorted(pool.ids) == ["m0", "m1"]
    assert pool.signals["question_before"].tolist()[pool.ids.index("m1")] == 1


def test_a_speaker_matches_by_any_part_of_the_name() -> None:
    store = RamStore()
    store.apply(
        [
            memory("m1", "red", speaker="Carol Smith"),
            memory("m2", "red", speaker="Bob"),
            memory("m3", "red"),
        ]
    )
    pool = find(LocalIndex(store), asking("red smith"), size=9)
    speakers = {
        id_: (named, known)
        for id_, named, known in zip(
            pool.ids, *(pool.signals[s].tolist() for s in ("speaker", "speaker_known")), strict=True
        )
    }
    assert speakers == {"m1": (1, 1), "m2": (0, 1), "m3": (0, 0)}
