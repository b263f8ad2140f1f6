"""The contract's seventh part: `changes` names every row that moved since a mark, and knows a mark that is not its own."""

from pathlib import Path
from threading import Event

import pytest

from memory_mesh.core.errors import Conflict
from memory_mesh.core.model.columns import MOVING, Kind
from memory_mesh.core.model.rows import Key
from memory_mesh.core.ports import Store
from memory_mesh.testing.contract.subject import Subject, memory, plain, together

REMEMBERED = 100  # moves, at least
NO_MARKS = ["", "x", ":", "7", "1:", "1:0123456789abcdef", "-1:", "0:f", "9" * 30 + ":", "9" * 9999 + ":", "é:\0", "١:"]


class KnowsWhatMoved(Subject):
    """`changes`."""

    def test_every_row_that_was_put_or_deleted_is_named_oldest_first(self, store: Store) -> None:
        store.apply([memory("m1"), memory("m2")])
        mark = store.changes("p").mark
        store.apply([memory("m3")])
        store.apply([memory("m1", revision=2, replaces=1)])
        store.apply(deletes=[Key(Kind.MEMORY, "m2")])
        assert _moved(store, mark) == [(Kind.MEMORY, id_) for id_ in ("m3", "m1", "m2")]

    @pytest.mark.parametrize("kind", sorted(MOVING))
    def test_every_moving_kind_is_named(self, store: Store, kind: Kind) -> None:
        mark = store.changes("p").mark
        store.apply([plain(kind, "a"), plain(kind, "b")])
        between = store.changes("p").mark
        store.apply([plain(kind, "a", revision=2, replaces=1)], [Key(kind, "b"), Key(kind, "missing")])
        assert {*_moved(store, between)} == {*_moved(store, mark)} == {(kind, "a"), (kind, "b")}

    @pytest.mark.parametrize("kind", sorted(frozenset(Kind) - MOVING))
    def test_bookkeeping_leaves_the_mark_as_it_is(self, store: Store, kind: Kind) -> None:
        store.apply([memory("m1")])
        mark = store.changes("p").mark
        store.apply([plain(kind, "a")])
        store.apply([plain(kind, "a", revision=2, replaces=1)])
        store.apply(deletes=[Key(kind, "a")])
        assert store.changes("p").mark == mark
        assert _moved(store, mark) == []

    def test_where_nothing_moved_the_mark_is_the_same_and_there_are_no_keys(self, store: Store) -> None:
        for _ in range(2):
            mark = store.changes("p").mark
            assert store.changes("p").mark == mark
            assert _moved(store, mark) == []
            store.apply([memory("m1", partition="q")] if mark == store.changes("q").mark else [memory("m2")])

    def test_each_change_leads_to_a_mark_of_its_own(self, store: Store) -> None:
        """Also one that brings back what was there."""
        marks = [store.changes("p").mark]
        for _ in range(3):
            store.apply([memory("m1")])
            marks.append(store.changes("p").mark)
            store.apply(deletes=[Key(Kind.MEMORY, "m1")])
            marks.append(store.changes("p").mark)
        assert len({*marks}) == 7
        assert [len(_moved(store, mark)) > 0 for mark in marks] == [True] * 6 + [False]

    def test_a_mark_leads_to_the_next_one(self, store: Store) -> None:
        """Who follows from mark to mark misses nothing and is told nothing twice."""
        mark, told = store.changes("p").mark, list[Key]()
        for turn in range(5):
            store.apply([memory(f"{turn}-{n}") for n in range(turn)])
            found = store.changes("p", mark)
            told += found.keys or []
            mark = found.mark
        assert told == [(Kind.MEMORY, f"{turn}-{n}") for turn in range(5) for n in range(turn)]

    def test_a_partition_knows_nothing_of_others(self, store: Store) -> None:
        mark = store.changes("p").mark
        store.apply([memory("m1", partition="p"), memory("m2", partition="q"), memory("m3", partition="P")])
        assert _moved(store, mark) == [(Kind.MEMORY, "m1")]
        first = store.changes("p").mark
        store.apply([memory("m4", partition="q")])
        assert store.changes("p").mark == first

    @pytest.mark.parametrize("kind", sorted(MOVING))
    def test_a_row_that_moves_is_named_in_both_partitions(self, store: Store, kind: Kind) -> None:
        store.apply([plain(kind, "a", partition="p"), plain(kind, "b", partition="q")])
        marks = {name: store.changes(name).mark for name in "pq"}
        store.apply([plain(kind, "a", partition="q", revision=2, replaces=1)])
        assert [_moved(store, mark, name) for name, mark in marks.items()] == [[(kind, "a")]] * 2

    def test_a_change_that_fails_moves_nothing(self, store: Store) -> None:
        store.apply([memory("m1")])
        mark = store.changes("p").mark
        with pytest.raises(Conflict):
            store.apply([memory("m2"), memory("m1")])
        assert store.changes("p").mark == mark
        store.apply([memory("m2")])
        assert _moved(store, mark) == [(Kind.MEMORY, "m2")]

    def test_without_a_mark_there_are_no_keys(self, store: Store) -> None:
        assert store.changes("p").keys is None
        store.apply([memory("m1")])
        assert store.changes("p").keys is None

    @pytest.mark.parametrize("mark", NO_MARKS, ids=range(len(NO_MARKS)))
    def test_what_is_no_mark_of_its_own_is_unknown(self, store: Store, mark: str) -> None:
        store.apply([memory("m1"), memory("m2")])
        assert store.changes("p", mark) == store.changes("p")

    def test_a_mark_of_another_store_is_unknown(self, store: Store, tmp_path: Path) -> None:
        """Though the same rows were written there, as many times."""
        (tmp_path / "elsewhere").mkdir()
        elsewhere = self.open(tmp_path / "elsewhere")
        for turn in range(1, 4):
            for each in (store, elsewhere):
                each.apply([memory("m1", revision=turn, replaces=turn - 1)])
            assert store.changes("p", elsewhere.changes("p").mark) == store.changes("p")
            assert elsewhere.changes("p", store.changes("p").mark).keys is None
        elsewhere.close()

    def test_the_last_hundred_moves_are_not_forgotten(self, store: Store) -> None:
        marks = []
        for turn in range(3):
            store.apply([memory(f"{turn}-{n}") for n in range(REMEMBERED)])
            marks.append(store.changes("p").mark)
        assert _moved(store, marks[1]) == [(Kind.MEMORY, f"2-{n}") for n in range(REMEMBERED)]

    def test_handles_agree_on_marks(self, store: Store, other: Store) -> None:
        mark = other.changes("p").mark
        store.apply([memory("m1")])
        assert store.changes("p").mark == other.changes("p").mark != mark
        assert _moved(other, mark) == _moved(store, mark) == [(Kind.MEMORY, "m1")]

    def test_a_mark_is_known_when_the_store_is_opened_again(self, place: Path) -> None:
        store = self.open(place)
        store.apply([memory("m1")])
        mark = store.changes("p").mark
        store.apply([memory("m2")], [Key(Kind.MEMORY, "m1")])
        now = store.changes("p").mark
        store.compact()
        if self.durable:
            store.close()
            store = self.open(place)
        assert store.changes("p").mark == now
        assert {*_moved(store, mark)} == {(Kind.MEMORY, "m1"), (Kind.MEMORY, "m2")}
        store.close()

    def test_who_follows_a_writer_is_told_whole_changes_and_all_of_them(self, store: Store, other: Store) -> None:
        """Two rows always move together; a mark and its keys are of one moment."""
        over, beginning = Event(), store.changes("p").mark
        pairs = [(f"t{turn}", f"u{turn}") for turn in range(60)]

        def write() -> None:
            try:
                for pair in pairs:
                    store.apply([memory(id_) for id_ in pair])
            finally:
                over.set()

        def follow(handle: Store) -> None:
            mark, told, last = beginning, list[str](), False
            while not last:
                last = over.is_set()  # asked before the last look
                found = handle.changes("p", mark)
                told += [key.id for key in found.keys or ()]
                mark = found.mark
                assert len(told) % 2 == 0
            assert told == [id_ for pair in pairs for id_ in pair]

        together([write, lambda: follow(store), lambda: follow(other)])


def _moved(store: Store, mark: str, partition: str = "p") -> list[tuple[Kind, str]]:
    """What is named since a mark that must be known, each row once, where it is named last."""
    keys = store.changes(partition, mark).keys
    assert keys is not None
    return [tuple(key) for key in reversed(dict.fromkeys(reversed(keys)))]  # type: ignore[misc]
