"""The contract's second part: a change is whole or nothing, and nothing is overwritten that the writer has not read."""

from collections.abc import Sequence

import pytest

from memory_mesh.core.errors import Conflict, IdTaken, InvalidInput
from memory_mesh.core.model.columns import MOVING, Kind
from memory_mesh.core.model.rows import Hit, Key, Row
from memory_mesh.core.ports import Store
from memory_mesh.testing.contract.subject import Subject, asked, memory, passage, plain

M1, M2, NOBODY = (Key(Kind.MEMORY, id_) for id_ in ("m1", "m2", "nobody"))
RESTING = sorted(frozenset(Kind) - MOVING)


class ChangesAsOne(Subject):
    """`apply`: ids, revisions, all or nothing."""

    @pytest.mark.parametrize("kind", Kind)
    def test_an_id_that_is_held_is_taken(self, store: Store, kind: Kind) -> None:
        held = plain(kind, "same", number=1)
        store.apply([held])
        with pytest.raises(IdTaken):
            store.apply([plain(kind, "same", number=2)])
        assert store.find(kind) == [held]

    def test_an_id_is_free_again_after_its_deletion(self, store: Store) -> None:
        store.apply([memory("m1")])
        store.apply(deletes=[M1])
        store.apply([memory("m1", content="again")])
        assert store.get(Kind.MEMORY, ["m1"])["m1"].fields["content"] == "again"

    @pytest.mark.parametrize("kind", Kind)
    def test_an_update_finds_the_revision_that_it_replaces(self, store: Store, kind: Kind) -> None:
        store.apply([plain(kind)])
        store.apply([plain(kind, revision=2, replaces=1)])
        newest = plain(kind, revision=7, replaces=2)
        store.apply([newest])
        assert store.find(kind) == [newest]

    @pytest.mark.parametrize("replaces", [1, 3])
    @pytest.mark.parametrize("kind", Kind)
    def test_an_update_of_another_revision_is_a_conflict(self, store: Store, kind: Kind, replaces: int) -> None:
        store.apply([plain(kind, revision=2)])
        with pytest.raises(Conflict) as told:
            store.apply([plain(kind, revision=9, replaces=replaces)])
        assert not isinstance(told.value, IdTaken)
        assert store.find(kind)[0].revision == 2

    @pytest.mark.parametrize("kind", Kind)
    def test_an_update_of_what_is_not_there_is_a_conflict(self, store: Store, kind: Kind) -> None:
        with pytest.raises(Conflict) as told:
            store.apply([plain(kind, revision=2, replaces=1)])
        assert not isinstance(told.value, IdTaken)
        assert store.count(kind) == 0

    def test_a_delete_of_what_is_not_there_is_no_error(self, store: Store) -> None:
        store.apply([memory("m1")], [NOBODY, Key(Kind.LINK, "m1")])
        assert store.count(Kind.MEMORY) == 1

    @pytest.mark.parametrize("kind", Kind)
    def test_a_delete_takes_nothing_but_what_it_names(self, store: Store, kind: Kind) -> None:
        store.apply([plain(each, id_, partition=id_) for each in Kind for id_ in ("same", "other")])
        store.apply(deletes=[Key(kind, "same")])
        assert {each: store.count(each) for each in Kind} == {each: 1 if each is kind else 2 for each in Kind}
        assert store.get(kind, ["same", "other"]).keys() == {"other"}

    @pytest.mark.parametrize(
        ("puts", "deletes"),
        [
            ([memory("m9"), memory("m9")], []),
            ([memory("m1", revision=2, replaces=1), memory("m1", revision=3, replaces=2)], []),
            ([memory("m1", revision=2, replaces=1)], [M1]),
            ([], [M1, M1]),
            ([memory("m9")], [NOBODY, NOBODY]),
        ],
    )
    def test_a_key_that_stands_twice_in_one_change_is_invalid(self, store: Store, puts: list[Row], deletes: list[Key]) -> None:
        store.apply([memory("m1")])
        with pytest.raises(InvalidInput):
            store.apply(puts, deletes)
        assert store.find(Kind.MEMORY) == [memory("m1")]

    def test_the_same_id_of_two_kinds_may_stand_in_one_change(self, store: Store) -> None:
        store.apply([plain(Kind.LINK, "same")])
        store.apply([plain(Kind.MEMORY, "same"), plain(Kind.CHANGE, "same")], [Key(Kind.LINK, "same")])
        assert [store.count(kind) for kind in (Kind.MEMORY, Kind.CHANGE, Kind.LINK)] == [1, 1, 0]

    @pytest.mark.parametrize(
        ("last", "seen"),
        [
            (memory("m2"), {}),
            (memory("m2", revision=3, replaces=9), {}),
            (memory("nobody", revision=2, replaces=1), {}),
            (memory("fine"), {"p": 99}),
        ],
        ids=["id taken", "stale", "missing", "unseen"],
    )
    def test_a_change_that_fails_leaves_nothing_behind(self, store: Store, last: Row, seen: dict[str, int]) -> None:
        """Its last row is wrong; what stands before it, deletes included, must not have happened."""
        held = [memory("m1", ["old"], vector=[1, 0]), memory("m2", ["old", "two"], vector=[0, 1]), memory("m3")]
        store.apply(held)
        before = _everything(store)
        moved = memory("m1", ["new"], partition="q", revision=2, replaces=1, vector=[1, 1])
        with pytest.raises(Conflict):
            store.apply([memory("m0", ["new"]), passage("x", "m2", [1, 0]), moved, last], [Key(Kind.MEMORY, "m3")], seen=seen)
        assert _everything(store) == before
        assert store.version("q") == 0
        # And the way is clear for a change that is right.
        store.apply([moved], seen={"p": 3})
        assert store.matching(["new"], ["q"], limit=9)

    def test_compacting_changes_no_answer(self, store: Store) -> None:
        store.apply([memory("m1", ["old"], vector=[1, 0]), memory("m2", ["two"], vector=[0, 1]), memory("m3")])
        store.apply([memory("m1", ["new"], revision=2, replaces=1)], [M2])
        before = _everything(store)
        assert store.compact()
        assert _everything(store) == before

    def test_a_change_of_nothing_changes_nothing(self, store: Store) -> None:
        store.apply()
        assert [store.count(kind) for kind in Kind] == [0] * len(Kind)


class CountsVersions(Subject):
    """The version of a partition, and `seen`."""

    def test_a_partition_that_nobody_wrote_to_has_version_0(self, store: Store) -> None:
        store.apply([memory("m1", partition="p")])
        assert store.version("q") == 0
        assert store.version("P") == 0

    @pytest.mark.parametrize("kind", sorted(MOVING))
    def test_each_moving_row_put_or_deleted_raises_the_version_by_one(self, store: Store, kind: Kind) -> None:
        store.apply([plain(kind, "a"), plain(kind, "b"), plain(kind, "c", partition="q")])
        assert (store.version("p"), store.version("q")) == (2, 1)
        store.apply([plain(kind, "a", revision=2, replaces=1)])
        assert (store.version("p"), store.version("q")) == (3, 1)
        store.apply([plain(kind, "d")], [Key(kind, "a"), Key(kind, "c"), Key(kind, "missing")])
        assert (store.version("p"), store.version("q")) == (5, 2)

    @pytest.mark.parametrize("kind", sorted(MOVING))
    def test_a_row_that_moves_raises_both_partitions(self, store: Store, kind: Kind) -> None:
        store.apply([plain(kind, "a", partition="p")])
        store.apply([plain(kind, "a", partition="q", revision=2, replaces=1)])
        assert (store.version("p"), store.version("q")) == (2, 1)
        store.apply(deletes=[Key(kind, "a")])
        assert (store.version("p"), store.version("q")) == (2, 2)

    @pytest.mark.parametrize("kind", RESTING)
    def test_bookkeeping_never_moves_a_version(self, store: Store, kind: Kind) -> None:
        store.apply([memory("m1", partition="p")])
        store.apply([plain(kind, "a")], seen={"p": 1})
        store.apply([plain(kind, "a", partition="q", revision=2, replaces=1)], seen={"p": 1})
        store.apply(deletes=[Key(kind, "a")], seen={"p": 1})
        assert (store.version("p"), store.version("q")) == (1, 0)

    def test_a_change_under_the_versions_that_were_seen_is_kept(self, store: Store) -> None:
        store.apply([memory("m1")], seen={"p": 0, "q": 0})
        store.apply([memory("m2"), memory("m3", partition="q")], seen={"p": 1, "q": 0})
        store.apply([memory("m4", partition="elsewhere")], seen={"p": 2})
        assert store.count(Kind.MEMORY) == 4

    @pytest.mark.parametrize("seen", [{"p": 0}, {"p": 2}, {"p": 1, "q": 1}, {"q": 7}])
    def test_a_change_under_other_versions_is_a_conflict(self, store: Store, seen: dict[str, int]) -> None:
        store.apply([memory("m1")])
        for puts, deletes in (([memory("m2")], []), ([], [M1]), ([], [])):
            with pytest.raises(Conflict):
                store.apply(puts, deletes, seen=seen)
        assert store.find(Kind.MEMORY) == [memory("m1")]

    def test_of_two_decisions_under_one_version_the_second_is_a_conflict(self, store: Store) -> None:
        read = {"p": store.version("p")}
        store.apply([memory("m1")], seen=read)
        with pytest.raises(Conflict):
            store.apply([memory("m2")], seen=read)


def _everything(store: Store) -> tuple[Sequence[object], Sequence[object], list[Hit], list[Hit]]:
    return (
        [store.find(kind) for kind in Kind],
        [(store.version(partition), store.changes(partition)) for partition in "pq"],
        store.matching(["old", "new", "two"], ["p", "q"], limit=99),
        store.nearest(Kind.MEMORY, asked(1, 0), limit=99),
    )
