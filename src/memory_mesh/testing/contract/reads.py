"""The contract's third part: finding, naming and counting, newest first, page by page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.rows import Row
from memory_mesh.core.model.where import And, Compare, In
from memory_mesh.core.ports import Store
from memory_mesh.testing.contract.subject import Subject, cleared, ids, memory, plain, property_test
from memory_mesh.testing.rows import batches


class FindsInOrder(Subject):
    """`find`, `ids` and `count`."""

    def test_the_newest_comes_first(self, store: Store) -> None:
        store.apply([memory("b", ms=2), memory("c", ms=1), memory("a", ms=3)])
        assert ids(store.find(Kind.MEMORY)) == ["a", "b", "c"]

    def test_within_a_millisecond_the_higher_number_comes_first_and_then_the_higher_id(self, store: Store) -> None:
        store.apply([memory("b", number=9), memory("a", number=10), memory("a2"), memory("é"), memory("a1")])
        assert ids(store.find(Kind.MEMORY)) == ["a", "b", "é", "a2", "a1"]

    def test_ids_are_ordered_by_code_point(self, store: Store) -> None:
        given = ["\U0001f600", "\uffee", "z", "a", "Z", "é", "10", "9"]
        store.apply([memory(id_) for id_ in given])
        assert ids(store.find(Kind.MEMORY)) == [*given[:2], "é", "z", "a", "Z", "9", "10"]

    @pytest.mark.parametrize(("limit", "found"), [(None, "cba"), (9, "cba"), (2, "cb"), (1, "c"), (0, "")])
    def test_no_more_than_the_limit_is_given(self, store: Store, limit: int | None, found: str) -> None:
        store.apply([memory(id_) for id_ in "abc"])
        assert "".join(ids(store.find(Kind.MEMORY, limit=limit))) == found

    @pytest.mark.parametrize("kind", Kind)
    def test_a_page_continues_behind_the_row_it_is_given(self, store: Store, kind: Kind) -> None:
        store.apply([plain(kind, id_, number=number) for number, id_ in enumerate("abcde")])
        first = store.find(kind, limit=2)
        assert ids(first) == ["e", "d"]
        assert ids(store.find(kind, limit=2, after=first[-1])) == ["c", "b"]
        assert store.find(kind, after=store.find(kind)[-1]) == []

    def test_a_page_continues_behind_a_row_that_is_gone(self, store: Store) -> None:
        store.apply([memory(id_) for id_ in "abc"])
        (newest,) = store.find(Kind.MEMORY, limit=1)
        store.apply(deletes=[newest.key])
        assert ids(store.find(Kind.MEMORY, after=newest)) == ["b", "a"]

    @property_test
    @given(batch=batches([Kind.MEMORY, Kind.LINK, Kind.BLOCK], most=7), page=st.integers(1, 3))
    def test_the_pages_together_are_the_whole(self, store: Store, batch: list[Row], page: int) -> None:
        cleared(store).apply(batch)
        for kind in (Kind.MEMORY, Kind.LINK, Kind.BLOCK):
            whole = sorted((row for row in batch if row.kind is kind), key=lambda row: row.age_key, reverse=True)
            paged = store.find(kind, limit=page)
            while len(paged) < len(whole):
                paged += store.find(kind, limit=page, after=paged[-1])
            assert paged == store.find(kind) == whole

    def test_a_limit_counts_only_what_the_condition_lets_through(self, store: Store) -> None:
        store.apply([memory(id_, status="active" if id_ in "ac" else "archived") for id_ in "abcdef"])
        active = Compare("status", "=", "active")
        assert ids(store.find(Kind.MEMORY, active, limit=2)) == ["c", "a"]
        assert ids(store.find(Kind.MEMORY, active, after=memory("b"))) == ["a"]

    @pytest.mark.parametrize("kind", Kind)
    def test_one_kind_is_found_and_counted_at_a_time(self, store: Store, kind: Kind) -> None:
        store.apply([plain(each, id_, partition=id_) for each in Kind for id_ in "ab"])
        assert {row.kind for row in store.find(kind)} == {kind}
        assert store.count(kind) == 2
        assert store.count(kind, Compare("id", "=", "a")) == 1
        assert sorted(store.ids(kind)) == ["a", "b"]
        assert store.ids(kind, Compare("id", "=", "a")) == ["a"]

    def test_pages_of_several_partitions_come_in_one_order(self, store: Store) -> None:
        """As most callers ask: for what is active in two partitions, one of them named twice."""
        status = {"a": "archived"}
        store.apply(
            [memory(id_, ms=ms, partition="pq"[ms % 2], status=status.get(id_, "active")) for ms, id_ in enumerate("abcdef")]
        )
        store.apply([memory("x", ms=9, partition="r", status="active"), memory("y", ms=8, partition="p")])
        seen = And((In("partition", ("p", "q", "p")), Compare("created_at", ">", ""), In("status", ("active", "disputed"))))
        first = store.find(Kind.MEMORY, seen, limit=3)
        assert ids(first) == ["f", "e", "d"]
        assert ids(store.find(Kind.MEMORY, seen, limit=3, after=first[-1])) == ["c", "b"]
        assert ids(store.find(Kind.MEMORY, And((In("partition", ("q", "p")), In("id", ("a", "e", "x")))), limit=9)) == ["e", "a"]
        assert ids(store.find(Kind.MEMORY, In("partition", ("q",)), limit=9)) == ["f", "d", "b"]
        assert store.find(Kind.MEMORY, In("partition", ()), limit=9) == []
