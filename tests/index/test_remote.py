"""Searching in the engine of a store: the same signals as from an index in memory, without
reading a partition."""

from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import StoreUnavailable
from memory_mesh.core.model import Key, Kind, Reader, Row
from memory_mesh.core.ports import Index
from memory_mesh.index import LocalIndex
from memory_mesh.index.words import one_typo_away
from memory_mesh.stores.ram import RamStore

from .corpus import open_mesh
from .index_rows import agrees, asking, find, memory, queries
from .server import MAX_ROWS, ServerStore, engine_index
from .test_index_scope import HIDDEN
from .test_index_signals import change

READER = Reader(None, "a", "s")


def ram(*rows: Row) -> RamStore:
    store = RamStore()
    store.apply(rows)
    return store


@given(data=st.data())
def test_after_any_history_the_signals_agree_with_the_rows(data: st.DataObject) -> None:
    store = RamStore()
    index = engine_index(store)
    for _ in range(data.draw(st.integers(1, 3))):
        change(data, store)
        agrees(index, store, data.draw(queries()))
    agrees(index, store, data.draw(queries()), size=data.draw(st.integers(1, 3)))


@pytest.mark.parametrize("why", HIDDEN)
def test_the_neighbours_around_a_hidden_memory_are_those_that_the_reader_sees(why: str) -> None:
    turns = {turn: {"session_id": "s", "turn": turn, "vector": [1.0, turn]} for turn in range(1, 6)}
    hidden = memory("m3", "key", **{**turns[3], **HIDDEN[why]})
    store = ram(*(memory(f"m{turn}", "red apple", **turns[turn]) for turn in (1, 2, 4, 5)), hidden)
    agrees(engine_index(store), store, asking("red key", vector=[1.0, 2.0]))


def test_the_neighbours_of_a_neighbour_count() -> None:
    """The fourth turn is found; the fifth becomes a candidate beside it, and the seventh, which
    is not found, is near that."""
    words = {4: "apple", 7: "key " + "red " * 20}
    talk = [
        memory(f"t{turn}", words.get(turn, "red"), session_id="s", turn=turn)
        for turn in range(1, 9)
    ]
    store = ram(*talk, *(memory(f"m{at}", "key") for at in range(30)))
    agrees(engine_index(store), store, asking("key apple"), size=3)
    assert "t5" in find(engine_index(store), asking("key apple"), size=3).ids


# --- the state that a snapshot stands for ---


def mark(index: Index, reader: Reader = READER) -> object:
    return index.snapshot(reader).mark


NEW = memory("n", "red")
NOT_SEEN = {
    "another session's": memory("n", "red", memory_type="session", session_id="t"),
    "another agent's": memory("n", "red", memory_type="agent", agent_id="b"),
    "another user's": memory("n", "red", user_id="u"),
}


@pytest.mark.parametrize("index_of", [LocalIndex, engine_index])
@pytest.mark.parametrize("whose", NOT_SEEN)
def test_a_mark_changes_with_what_the_reader_sees_and_not_with_a_hidden_memory(
    index_of, whose: str
) -> None:
    store = ram(memory("m", "red"))
    index = index_of(store)
    before = mark(index)
    assert mark(index) == before
    store.apply([NOT_SEEN[whose]])
    assert mark(index) == before
    store.apply([replace(NEW, id="other")])
    assert mark(index) != before


def test_a_mark_changes_with_an_update_a_deletion_and_a_move_out_of_sight() -> None:
    store = ram(memory("m", "red"))
    index, marks = engine_index(store), list[object]()
    for rows, deletes in (
        ([], []),
        ([memory("m", "apple", replaces=1)], []),
        (
            [
                replace(
                    memory("m", "apple", replaces=2),
                    partition=NOT_SEEN["another agent's"].partition,
                )
            ],
            [],
        ),
        ([memory("p", "red", memory_type="session", session_id="s")], []),
        ([memory("p", "red", memory_type="session", session_id="t", replaces=1)], []),
        ([NEW], []),
        ([], [Key(Kind.MEMORY, "n")]),
    ):
        if rows or deletes:
            store.apply(rows, deletes)
        marks.append(mark(index))
    assert len(set(marks)) == len(marks)


def test_an_error_while_changes_are_read_does_not_hide_them() -> None:
    store = ServerStore(ram(memory("m", "red")))
    index = engine_index(store)
    before = mark(index)
    store.apply([NEW])
    with (
        patch.object(store, "get", side_effect=StoreUnavailable("gone")),
        pytest.raises(StoreUnavailable),
    ):
        mark(index)
    assert mark(index) != before


def test_many_changes_at_once_give_a_new_mark_without_reading_them() -> None:
    store = ServerStore(ram(memory("m", "red")))
    index = engine_index(store)
    before = mark(index)
    store.apply(
        [
            memory(f"x{at}", "red", memory_type="session", session_id="t")
            for at in range(2 * MAX_ROWS)
        ]
    )
    assert mark(index) != before
    assert store.rows == 0


def test_an_answer_from_the_cache_is_replaced_after_a_write_of_another_process() -> None:
    rows = RamStore()
    with open_mesh(ServerStore(rows)) as mesh, open_mesh(ServerStore(rows)) as other:
        mesh.add("The fence is red.")
        assert [one.content for one in mesh.search("fence")] == [
            one.content for one in mesh.search("fence")
        ]
        assert mesh.get_cache_stats().hits == 1
        other.add("The fence is high.")
        assert len(mesh.search("fence")) == 2


# --- words ---


@pytest.mark.parametrize(
    ("word", "other"),
    [("garden", "gardn"), ("garden", "graden"), ("garden", "gardens"), ("сказка", "сказки")],
)
def test_a_typo_of_any_alphabet_is_one_edit_away(word: str, other: str) -> None:
    assert other in one_typo_away(word)


def test_short_words_and_unlikely_typos_are_not() -> None:
    assert not one_typo_away("red")
    assert "xarden" not in one_typo_away("garden")
