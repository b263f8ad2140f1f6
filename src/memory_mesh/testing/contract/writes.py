"""Contract of writes: rows are returned equal, a change is atomic, and versions count."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from threading import Event
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import Conflict, IdTaken, InvalidInput
from memory_mesh.core.model import MOVING, TOKEN_BYTES, Hit, Key, Kind, Row
from memory_mesh.core.ports import Store
from memory_mesh.testing.rows import (
    REMEMBERED,
    Subject,
    batches,
    cleared,
    full,
    memory,
    passage,
    plain,
    property_test,
    query,
    rows,
    together,
    within,
)


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
    def test_a_row_that_replaces_another_leaves_nothing_of_it(
        self, store: Store, data: st.DataObject, kind: Kind
    ) -> None:
        old = data.draw(rows([kind], ids=st.just("same")))
        new = replace(data.draw(rows([kind], ids=st.just("same"))), replaces=old.revision)
        cleared(store).apply([old])
        store.apply([new])
        assert store.find(kind) == [new]

    @pytest.mark.parametrize("kind", Kind)
    def test_a_row_with_every_field_is_kept_and_replaced_whole(
        self, store: Store, kind: Kind
    ) -> None:
        for row in (
            full(kind),
            plain(kind, "full", revision=2, replaces=1),
            replace(full(kind, revision=3), replaces=2),
        ):
            store.apply([row])
            assert store.find(kind) == [row]

    @pytest.mark.parametrize(
        "id_",
        [
            str(UUID(int=7)),
            "0",
            "k2j9zq",
            "notes/2026/plan.md",
            "mem_1_abc'def",
            "メモ",
            "a b",
            "%",
            "",
        ],
    )
    def test_an_id_of_any_shape_is_kept_as_it_is(self, store: Store, id_: str) -> None:
        store.apply([memory(id_), memory("another")])
        assert store.get(Kind.MEMORY, [id_])[id_].id == id_

    def test_an_empty_list_and_no_list_are_two_things(self, store: Store) -> None:
        store.apply([memory("empty", tags=[]), memory("none")])
        assert store.get(Kind.MEMORY, ["empty"])["empty"].fields["tags"] == []
        assert "tags" not in store.get(Kind.MEMORY, ["none"])["none"].fields

    def test_truth_stays_truth_and_a_number_a_number(self, store: Store) -> None:
        # The order of keys is that of jsonb in PostgreSQL, which does not keep another.
        kept: dict[str, object] = {
            "metadata": {"one": 1, "yes": True, "real": 1.5},
            "pinned": True,
            "turn": 1,
        }
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
        """Neither changes of the row that was put, nor of one that was returned."""
        row = memory("m1", ["word"], metadata={"list": [1]}, tags=["a"])
        untouched = deepcopy(row)
        store.apply([row])
        row.fields["tags"].append("mine")  # type: ignore[union-attr]
        got = store.get(Kind.MEMORY, ["m1"])["m1"]
        got.fields["metadata"]["list"].append(2)  # type: ignore[union-attr, call-overload, index]
        store.find(Kind.MEMORY)[0].fields["keywords"].clear()  # type: ignore[union-attr]
        assert store.get(Kind.MEMORY, ["m1"]) == {"m1": untouched}

    @pytest.mark.parametrize("number", [1, 3, 2000])
    def test_the_tokens_of_a_vector_are_kept_and_go_with_it(
        self, store: Store, number: int
    ) -> None:
        """Those of a memory, of a passage, and of a vector that replaces one."""
        tokens = bytes(at % 256 for at in range(number * TOKEN_BYTES))
        own = memory("m1", vector=[1, 0], tokens=tokens)
        part = passage("x1", "m1", [0, 1], tokens=tokens[::-1])
        store.apply([own, part, memory("m2", vector=[1, 0])])
        assert store.get(Kind.MEMORY, ["m1"])["m1"].vector == own.vector
        assert store.find(Kind.PASSAGE)[0].vector == part.vector
        store.apply([
            memory("m1", vector=[1, 0], revision=2, replaces=1),
            memory("m2", vector=[1, 0], revision=2, replaces=1, tokens=tokens),
        ])  # fmt: skip
        found = {row.id: row.vector.tokens for row in store.find(Kind.MEMORY) if row.vector}
        assert found == {"m1": b"", "m2": tokens}

    def test_a_deleted_row_is_gone_from_every_answer(self, store: Store) -> None:
        """Every read returns it before the deletion."""
        row = memory("m1", ["word"], vector=[1, 0])
        store.apply([row])
        assert row.vector is not None
        assert store.matching(["word"], within("p"), limit=1)
        assert store.nearest(Kind.MEMORY, row.vector, limit=1)
        store.apply(deletes=[Key(Kind.MEMORY, "m1")])
        assert (
            store.get(Kind.MEMORY, ["m1"]),
            store.find(Kind.MEMORY),
            store.count(Kind.MEMORY),
        ) == ({}, [], 0)
        assert store.matching(["word"], within("p"), limit=1) == []
        assert store.nearest(Kind.MEMORY, row.vector, limit=1) == []


M1, M2, MISSING = (Key(Kind.MEMORY, id_) for id_ in ("m1", "m2", "missing"))


class ChangesAsOne(Subject):
    """`apply`: ids, revisions, all or nothing."""

    @pytest.mark.parametrize("kind", Kind)
    def test_an_id_that_is_held_is_taken(self, store: Store, kind: Kind) -> None:
        stored = plain(kind, "same", number=1)
        store.apply([stored])
        with pytest.raises(IdTaken):
            store.apply([plain(kind, "same", number=2)])
        assert store.find(kind) == [stored]

    def test_an_id_is_free_again_after_its_deletion(self, store: Store) -> None:
        store.apply([memory("m1")])
        store.apply(deletes=[M1])
        store.apply([memory("m1", content="again")])
        assert store.get(Kind.MEMORY, ["m1"])["m1"].fields["content"] == "again"

    @pytest.mark.parametrize("kind", Kind)
    def test_an_update_finds_the_revision_that_it_replaces_and_does_not_keep_its_number(
        self, store: Store, kind: Kind
    ) -> None:
        store.apply([plain(kind)])
        for newer in (plain(kind, revision=2, replaces=1), plain(kind, revision=7, replaces=2)):
            store.apply([newer])
            (row,) = store.find(kind)
            assert (row, row.replaces) == (newer, 0)

    @pytest.mark.parametrize(
        ("stored", "replaces"), [(2, 1), (2, 3), (None, 1)], ids=["older", "newer", "missing"]
    )
    @pytest.mark.parametrize("kind", Kind)
    def test_an_update_of_what_is_not_there_is_a_conflict(
        self, store: Store, kind: Kind, stored: int | None, replaces: int
    ) -> None:
        before = [plain(kind, revision=stored)] if stored else []
        store.apply(before)
        with pytest.raises(Conflict) as raised:
            store.apply([plain(kind, revision=9, replaces=replaces)])
        assert not isinstance(raised.value, IdTaken)
        assert store.find(kind) == before

    def test_a_delete_of_what_is_not_there_is_no_error(self, store: Store) -> None:
        store.apply([memory("m1")], [MISSING, Key(Kind.LINK, "m1")])
        assert store.count(Kind.MEMORY) == 1

    @pytest.mark.parametrize("kind", Kind)
    def test_a_delete_takes_nothing_but_what_it_names(self, store: Store, kind: Kind) -> None:
        store.apply([plain(each, id_, partition=id_) for each in Kind for id_ in ("same", "other")])
        store.apply(deletes=[Key(kind, "same")])
        assert {each: store.count(each) for each in Kind} == {
            each: 1 if each is kind else 2 for each in Kind
        }
        assert store.get(kind, ["same", "other"]).keys() == {"other"}

    @pytest.mark.parametrize(
        ("puts", "deletes"),
        [
            ([memory("m9"), memory("m9")], []),
            ([memory("m1", revision=2, replaces=1), memory("m1", revision=3, replaces=2)], []),
            ([memory("m1", revision=2, replaces=1)], [M1]),
            ([], [M1, M1]),
            ([memory("m9")], [MISSING, MISSING]),
        ],
    )
    def test_a_key_that_stands_twice_in_one_change_is_invalid(
        self, store: Store, puts: list[Row], deletes: list[Key]
    ) -> None:
        store.apply([memory("m1")])
        with pytest.raises(InvalidInput):
            store.apply(puts, deletes)
        assert store.find(Kind.MEMORY) == [memory("m1")]

    def test_the_same_id_of_two_kinds_may_stand_in_one_change(self, store: Store) -> None:
        store.apply([plain(Kind.LINK, "same")])
        store.apply(
            [plain(Kind.MEMORY, "same"), plain(Kind.CHANGE, "same")], [Key(Kind.LINK, "same")]
        )
        assert [store.count(kind) for kind in (Kind.MEMORY, Kind.CHANGE, Kind.LINK)] == [1, 1, 0]

    @pytest.mark.parametrize(
        ("last", "seen"),
        [
            (memory("m2"), {}),
            (memory("m2", revision=3, replaces=9), {}),
            (memory("missing", revision=2, replaces=1), {}),
            (memory("fine"), {"p": 99}),
        ],
        ids=["id taken", "stale", "missing", "unseen"],
    )
    def test_a_change_that_fails_leaves_nothing_behind(
        self, store: Store, last: Row, seen: dict[str, int]
    ) -> None:
        """Only its last row is wrong; nothing of the rest, deletes included, may be stored."""
        stored = [
            memory("m1", ["old"], vector=[1, 0]),
            memory("m2", ["old", "two"], vector=[0, 1]),
            memory("m3"),
        ]
        store.apply(stored)
        before, mark = _everything(store), store.changes("p").mark
        moved = memory("m1", ["new"], partition="q", revision=2, replaces=1, vector=[1, 1])
        with pytest.raises(Conflict):
            store.apply(
                [memory("m0", ["new"]), passage("x", "m2", [1, 0]), moved, last],
                [Key(Kind.MEMORY, "m3")],
                seen=seen,
            )
        assert _everything(store) == before
        assert store.version("q") == 0
        # A valid change still succeeds.
        store.apply([moved], seen={"p": 3})
        assert store.matching(["new"], within("q"), limit=9)
        assert _moved(store, mark) == [(Kind.MEMORY, "m1")]

    def test_compacting_changes_no_answer(self, store: Store) -> None:
        store.apply(
            [
                memory("m1", ["old"], vector=[1, 0]),
                memory("m2", ["two"], vector=[0, 1]),
                memory("m3"),
            ]
        )
        store.apply([memory("m1", ["new"], revision=2, replaces=1)], [M2])
        before = _everything(store)
        assert store.compact()
        assert _everything(store) == before

    def test_a_change_of_nothing_changes_nothing(self, store: Store) -> None:
        store.apply()
        assert [store.count(kind) for kind in Kind] == [0] * len(Kind)


NO_MARKS = [
    None,
    "",
    "x",
    ":",
    "7",
    "1:",
    "1:0123456789abcdef",
    "-1:",
    "0:f",
    "9" * 30 + ":",
    "9" * 9999 + ":",
    "é:\0",
    "١:",
]


class CountsMoves(Subject):
    """The version of a partition, `seen` and `changes`."""

    def test_a_partition_without_writes_has_version_0(self, store: Store) -> None:
        store.apply([memory("m1", partition="p")])
        assert store.version("q") == 0
        assert store.version("P") == 0

    @pytest.mark.parametrize("kind", sorted(MOVING))
    def test_each_moving_row_put_or_deleted_is_named_and_raises_the_version_by_one(
        self, store: Store, kind: Kind
    ) -> None:
        first = store.changes("p").mark
        store.apply([plain(kind, "a"), plain(kind, "b"), plain(kind, "c", partition="q")])
        assert (store.version("p"), store.version("q")) == (2, 1)
        between = store.changes("p").mark
        store.apply(
            [plain(kind, "a", revision=2, replaces=1)],
            [Key(kind, "b"), Key(kind, "c"), Key(kind, "missing")],
        )
        assert (store.version("p"), store.version("q")) == (4, 2)
        assert {*_moved(store, between)} == {*_moved(store, first)} == {(kind, "a"), (kind, "b")}
        store.apply([plain(kind, "d")], [Key(kind, "a")])
        assert store.version("p") == 6

    @pytest.mark.parametrize("kind", sorted(MOVING))
    def test_a_row_that_moves_is_named_in_both_partitions_and_raises_both(
        self, store: Store, kind: Kind
    ) -> None:
        store.apply([plain(kind, "a", partition="p"), plain(kind, "b", partition="q")])
        marks = {name: store.changes(name).mark for name in "pq"}
        store.apply([plain(kind, "a", partition="q", revision=2, replaces=1)])
        assert (store.version("p"), store.version("q")) == (2, 2)
        assert [_moved(store, mark, name) for name, mark in marks.items()] == [[(kind, "a")]] * 2
        store.apply(deletes=[Key(kind, "a")])
        assert (store.version("p"), store.version("q")) == (2, 3)

    @pytest.mark.parametrize("kind", sorted(frozenset(Kind) - MOVING))
    def test_bookkeeping_moves_neither_a_version_nor_a_mark(self, store: Store, kind: Kind) -> None:
        store.apply([memory("m1", partition="p")])
        mark = store.changes("p").mark
        store.apply([plain(kind, "a")], seen={"p": 1})
        store.apply([plain(kind, "a", revision=2, replaces=1)], seen={"p": 1})
        store.apply([plain(kind, "a", partition="q", revision=3, replaces=2)], seen={"p": 1})
        store.apply(deletes=[Key(kind, "a")], seen={"p": 1})
        assert (store.version("p"), store.version("q")) == (1, 0)
        assert store.changes("p").mark == mark
        assert _moved(store, mark) == []

    def test_a_change_under_the_versions_that_were_seen_is_kept(self, store: Store) -> None:
        store.apply([memory("m1")], seen={"p": 0, "q": 0})
        store.apply([memory("m2"), memory("m3", partition="q")], seen={"p": 1, "q": 0})
        store.apply([memory("m4", partition="elsewhere")], seen={"p": 2})
        assert store.count(Kind.MEMORY) == 4

    @pytest.mark.parametrize("seen", [{"p": 0}, {"p": 2}, {"p": 1, "q": 1}, {"q": 7}])
    def test_a_change_under_other_versions_is_a_conflict(
        self, store: Store, seen: dict[str, int]
    ) -> None:
        """Of two decisions under one version, here 0, the second is a conflict too."""
        store.apply([memory("m1")], seen={"p": store.version("p")})
        for puts, deletes in (([memory("m2")], []), ([], [M1]), ([], [])):
            with pytest.raises(Conflict):
                store.apply(puts, deletes, seen=seen)
        assert store.find(Kind.MEMORY) == [memory("m1")]

    def test_every_row_that_was_put_or_deleted_is_named_oldest_first(self, store: Store) -> None:
        store.apply([memory("m1"), memory("m2")])
        mark = store.changes("p").mark
        store.apply([memory("m3")])
        store.apply([memory("m1", revision=2, replaces=1)])
        store.apply(deletes=[Key(Kind.MEMORY, "m2")])
        assert _moved(store, mark) == [(Kind.MEMORY, id_) for id_ in ("m3", "m1", "m2")]

    def test_where_nothing_moved_the_mark_is_the_same_and_there_are_no_keys(
        self, store: Store
    ) -> None:
        for _ in range(2):
            mark = store.changes("p").mark
            assert store.changes("p").mark == mark
            assert _moved(store, mark) == []
            store.apply(
                [memory("m1", partition="q")] if mark == store.changes("q").mark else [memory("m2")]
            )

    def test_each_change_leads_to_a_mark_of_its_own(self, store: Store) -> None:
        """Also a change that restores an earlier row."""
        marks = [store.changes("p").mark]
        for _ in range(3):
            store.apply([memory("m1")])
            marks.append(store.changes("p").mark)
            store.apply(deletes=[Key(Kind.MEMORY, "m1")])
            marks.append(store.changes("p").mark)
        assert len({*marks}) == 7
        assert [len(_moved(store, mark)) > 0 for mark in marks] == [True] * 6 + [False]

    def test_a_mark_leads_to_the_next_one(self, store: Store) -> None:
        """Following from mark to mark returns each move once."""
        mark, followed = store.changes("p").mark, list[Key]()
        for turn in range(5):
            store.apply([memory(f"{turn}-{n}") for n in range(turn)])
            found = store.changes("p", mark)
            followed += found.keys or []
            mark = found.mark
        assert followed == [(Kind.MEMORY, f"{turn}-{n}") for turn in range(5) for n in range(turn)]

    def test_a_partition_knows_nothing_of_others(self, store: Store) -> None:
        mark = store.changes("p").mark
        store.apply(
            [memory("m1", partition="p"), memory("m2", partition="q"), memory("m3", partition="P")]
        )
        assert _moved(store, mark) == [(Kind.MEMORY, "m1")]
        first = store.changes("p").mark
        store.apply([memory("m4", partition="q")])
        assert store.changes("p").mark == first

    @pytest.mark.parametrize("mark", NO_MARKS, ids=range(len(NO_MARKS)))
    def test_without_a_mark_of_its_own_there_are_no_keys(
        self, store: Store, mark: str | None
    ) -> None:
        assert store.changes("p", mark).keys is None
        store.apply([memory("m1"), memory("m2")])
        assert store.changes("p", mark) == store.changes("p")
        assert store.changes("p").keys is None

    def test_a_mark_of_another_store_is_unknown(self, store: Store, tmp_path: Path) -> None:
        """Even if the same rows were written there equally often."""
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

    def test_a_reader_that_follows_a_writer_sees_every_change_as_a_whole(
        self, store: Store, other: Store
    ) -> None:
        """Two rows always move together; a mark and its keys belong to one state."""
        over, beginning = Event(), store.changes("p").mark
        pairs = [(f"t{turn}", f"u{turn}") for turn in range(60)]

        def write() -> None:
            try:
                for pair in pairs:
                    store.apply([memory(id_) for id_ in pair])
            finally:
                over.set()

        def follow(handle: Store) -> None:
            mark, followed, last = beginning, list[str](), False
            while not last:
                last = over.is_set()  # read before the last call
                found = handle.changes("p", mark)
                followed += [key.id for key in found.keys or ()]
                mark = found.mark
                assert len(followed) % 2 == 0
            assert followed == [id_ for pair in pairs for id_ in pair]

        together([write, lambda: follow(store), lambda: follow(other)])


def _everything(store: Store) -> tuple[Sequence[object], Sequence[object], list[Hit], list[Hit]]:
    return (
        [store.find(kind) for kind in Kind],
        [(store.version(partition), store.changes(partition)) for partition in "pq"],
        store.matching(["old", "new", "two"], within("p", "q"), limit=99),
        store.nearest(Kind.MEMORY, query(1, 0), limit=99),
    )


def _moved(store: Store, mark: str, partition: str = "p") -> list[tuple[Kind, str]]:
    """Return the rows that moved since a known mark, each once, at its last move."""
    keys = store.changes(partition, mark).keys
    assert keys is not None
    return [tuple(key) for key in reversed(dict.fromkeys(reversed(keys)))]  # type: ignore[misc]
