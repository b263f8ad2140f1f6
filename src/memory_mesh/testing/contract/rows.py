"""The contract's first part: what was put is what is got, to the last character."""

from copy import deepcopy
from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.rows import Key, Row
from memory_mesh.core.ports import Store
from memory_mesh.testing.contract.subject import Subject, cleared, full, memory, plain, property_test
from memory_mesh.testing.rows import batches, rows


class KeepsRows(Subject):
    """Any row comes back equal."""

    @property_test
    @given(batch=batches())
    def test_any_row_comes_back_equal(self, store: Store, batch: list[Row]) -> None:
        cleared(store).apply(batch)
        for row in batch:
            assert store.get(row.kind, [row.id]) == {row.id: row}
            assert row in store.find(row.kind)

    @property_test
    @given(data=st.data(), kind=st.sampled_from(Kind))
    def test_a_row_that_replaces_another_leaves_nothing_of_it(self, store: Store, data: st.DataObject, kind: Kind) -> None:
        old = data.draw(rows([kind], ids=st.just("same")))
        new = replace(data.draw(rows([kind], ids=st.just("same"))), replaces=old.revision)
        cleared(store).apply([old])
        store.apply([new])
        assert store.find(kind) == [new]

    @pytest.mark.parametrize("kind", Kind)
    def test_a_row_with_every_field_is_kept_and_replaced_whole(self, store: Store, kind: Kind) -> None:
        for row in (
            full(kind),
            replace(plain(kind, "full", revision=2), replaces=1),
            replace(full(kind, revision=3), replaces=2),
        ):
            store.apply([row])
            assert store.find(kind) == [row]

    @pytest.mark.parametrize("kind", Kind)
    def test_what_a_row_replaced_is_said_to_the_store_and_not_kept(self, store: Store, kind: Kind) -> None:
        store.apply([plain(kind)])
        store.apply([plain(kind, revision=2, replaces=1)])
        (row,) = store.find(kind)
        assert (row.revision, row.replaces) == (2, 0)

    @pytest.mark.parametrize(
        "id_", [str(UUID(int=7)), "0", "k2j9zq", "notes/2026/plan.md", "mem_1_abc'def", "メモ", "a b", "%", ""]
    )
    def test_an_id_of_any_shape_is_kept_as_it_is(self, store: Store, id_: str) -> None:
        store.apply([memory(id_), memory("another")])
        assert store.get(Kind.MEMORY, [id_])[id_].id == id_

    def test_an_empty_list_and_no_list_are_two_things(self, store: Store) -> None:
        store.apply([memory("empty", tags=[]), memory("none")])
        assert store.get(Kind.MEMORY, ["empty"])["empty"].fields["tags"] == []
        assert "tags" not in store.get(Kind.MEMORY, ["none"])["none"].fields

    def test_truth_stays_truth_and_a_number_a_number(self, store: Store) -> None:
        kept: dict[str, object] = {"metadata": {"yes": True, "one": 1, "real": 1.5}, "pinned": True, "turn": 1}
        store.apply([memory("m1", **kept)])  # type: ignore[arg-type]
        fields = store.get(Kind.MEMORY, ["m1"])["m1"].fields
        assert repr({name: fields[name] for name in kept}) == repr(kept)

    @pytest.mark.parametrize("kind", Kind)
    def test_a_row_is_given_under_its_own_kind_only(self, store: Store, kind: Kind) -> None:
        store.apply([plain(kind, "same")])
        assert [other for other in Kind if store.get(other, ["same"])] == [kind]
        assert [other for other in Kind if store.count(other)] == [kind]

    def test_one_id_may_stand_in_every_kind(self, store: Store) -> None:
        store.apply([plain(kind, "same") for kind in Kind])
        for kind in Kind:
            assert store.get(kind, ["same"])["same"].kind is kind

    def test_get_gives_what_is_there_and_passes_over_the_rest(self, store: Store) -> None:
        store.apply([memory("here"), memory("too")])
        assert store.get(Kind.MEMORY, ["here", "gone", "here"]).keys() == {"here"}
        assert store.get(Kind.MEMORY, []) == {}

    def test_get_takes_thousands_of_ids(self, store: Store) -> None:
        many = [memory(f"m{n}") for n in range(1200)]
        store.apply(many)
        assert store.get(Kind.MEMORY, [row.id for row in many]) == {row.id: row for row in many}

    def test_what_happens_to_a_row_outside_does_not_reach_the_store(self, store: Store) -> None:
        """Neither to the row that was put nor to one that was got."""
        row = memory("m1", ["word"], metadata={"list": [1]}, tags=["a"])
        untouched = deepcopy(row)
        store.apply([row])
        row.fields["tags"].append("mine")  # type: ignore[union-attr]
        got = store.get(Kind.MEMORY, ["m1"])["m1"]
        got.fields["metadata"]["list"].append(2)  # type: ignore[union-attr, call-overload, index]
        store.find(Kind.MEMORY)[0].fields["keywords"].clear()  # type: ignore[union-attr]
        assert store.get(Kind.MEMORY, ["m1"]) == {"m1": untouched}

    def test_a_deleted_row_is_gone_from_every_answer(self, store: Store) -> None:
        """Each answer is seen to give it first."""
        row = memory("m1", ["word"], vector=[1, 0])
        store.apply([row])
        assert row.vector is not None
        assert store.matching(["word"], ["p"], limit=1)
        assert store.nearest(Kind.MEMORY, row.vector, limit=1)
        store.apply(deletes=[Key(Kind.MEMORY, "m1")])
        assert (store.get(Kind.MEMORY, ["m1"]), store.find(Kind.MEMORY), store.count(Kind.MEMORY)) == ({}, [], 0)
        assert store.matching(["word"], ["p"], limit=1) == []
        assert store.nearest(Kind.MEMORY, row.vector, limit=1) == []
