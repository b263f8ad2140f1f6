"""The contract's last part: several threads and several handles on one store, and its end."""

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from memory_mesh.core.errors import Conflict, IdTaken, StoreClosed
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.rows import Key
from memory_mesh.core.ports import Store
from memory_mesh.testing.contract.subject import Subject, asked, ids, memory, passage, together

THREADS, TURNS = 4, 10
FAR_APART = 700  # as many rows between two that belong together: stores read long lists of ids in pieces

USES: dict[str, Callable[[Store], object]] = {
    "apply": lambda store: store.apply([memory("m2")]),
    "apply nothing": lambda store: store.apply(),
    "version": lambda store: store.version("p"),
    "get": lambda store: store.get(Kind.MEMORY, ["m1"]),
    "find": lambda store: store.find(Kind.MEMORY),
    "count": lambda store: store.count(Kind.MEMORY),
    "ids": lambda store: store.ids(Kind.MEMORY),
    "changes": lambda store: store.changes("p"),
    "nearest": lambda store: store.nearest(Kind.MEMORY, asked(1, 0), limit=1),
    "matching": lambda store: store.matching(["word"], ["p"], limit=1),
    "compact": lambda store: store.compact(),
}


class IsShared(Subject):
    """Threads, handles, closing."""

    def test_a_second_handle_sees_at_once_what_the_first_wrote(self, store: Store, other: Store) -> None:
        """Rows, versions, keywords and vectors alike."""
        for turn in range(1, 6):
            store.apply([memory(f"m{turn}", ["word"], vector=[1, 0]), passage(f"x{turn}", f"m{turn}", [0, 1])])
            assert other.count(Kind.MEMORY) == turn
            assert ids(other.find(Kind.MEMORY, limit=1)) == [f"m{turn}"]
            assert other.version("p") == 2 * turn
            assert len(other.matching(["word"], ["p"], limit=99)) == turn
            assert len(other.nearest(Kind.MEMORY, asked(1, 0), limit=99)) == turn
        store.apply(deletes=[Key(Kind.MEMORY, "m1")])
        assert other.get(Kind.MEMORY, ["m1", "m2"]).keys() == {"m2"}

    def test_a_second_handle_is_held_to_what_the_first_wrote(self, store: Store, other: Store) -> None:
        """Ids, versions and revisions are the store's, not the handle's."""
        read = other.version("p")
        store.apply([memory("m1")])
        with pytest.raises(IdTaken):
            other.apply([memory("m1")])
        with pytest.raises(Conflict):
            other.apply([memory("m2")], seen={"p": read})
        store.apply([memory("m1", revision=2, replaces=1)])
        with pytest.raises(Conflict):
            other.apply([memory("m1", revision=2, replaces=1)])
        other.apply([memory("m1", revision=3, replaces=2)], seen={"p": 2})
        assert store.get(Kind.MEMORY, ["m1"])["m1"].revision == 3

    def test_what_was_applied_is_there_when_the_store_is_opened_again(self, place: Path) -> None:
        """What was deleted stays away, too."""
        store = self.open(place)
        kept = memory("m1", ["word"], vector=[1, 0], tags=["a"])
        store.apply([kept, memory("m2", ["word"])])
        store.apply(deletes=[Key(Kind.MEMORY, "m2")])
        if self.durable:
            store.close()
            store = self.open(place)
        assert store.find(Kind.MEMORY) == [kept]
        assert store.version("p") == 3
        assert ids(list(store.get(Kind.MEMORY, ["m1", "m2"]).values())) == ["m1"]
        assert [hit.id for hit in store.matching(["word"], ["p"], limit=9)] == ["m1"]
        store.close()

    @pytest.mark.parametrize("use", USES)
    def test_a_closed_store_says_so(self, store: Store, use: str) -> None:
        store.apply([memory("m1", ["word"], vector=[1, 0])])
        USES[use](store)
        store.close()
        with pytest.raises(StoreClosed):
            USES[use](store)

    def test_a_store_may_be_closed_twice(self, store: Store) -> None:
        store.close()
        store.close()

    def test_a_store_names_its_url(self, store: Store) -> None:
        assert isinstance(store.url, str)
        assert store.url

    def test_a_store_says_where_derived_files_may_lie(self, store: Store) -> None:
        assert store.index_folder is None or store.index_folder.is_absolute()

    def test_threads_lose_nothing(self, store: Store, other: Store) -> None:
        """Neither rows nor what is counted over them."""
        handles = (store, other)

        def write(thread: int) -> None:
            for turn in range(TURNS):
                handles[thread % 2].apply([memory(f"{thread}-{turn}", ["word"])])

        together([lambda thread=thread: write(thread) for thread in range(THREADS)])  # type: ignore[misc]
        assert store.count(Kind.MEMORY) == store.version("p") == THREADS * TURNS
        assert len(store.matching(["word"], ["p"], limit=999)) == THREADS * TURNS

    def test_of_threads_that_decide_under_one_version_one_wins(self, store: Store, other: Store) -> None:
        """Each reads, decides and writes under what it read, and tries again; no step may be lost or made twice."""
        handles = (store, other)
        store.apply([memory("sum", turn=0)])

        def add(thread: int) -> None:
            done = 0
            while done < TURNS:
                handle = handles[thread % 2]
                seen = {"p": handle.version("p")}
                row = handle.get(Kind.MEMORY, ["sum"])["sum"]
                more = memory("sum", turn=int(row.fields["turn"]) + 1, revision=row.revision + 1, replaces=row.revision)  # type: ignore[arg-type]
                try:
                    handle.apply([more], seen=seen)
                except Conflict:
                    continue
                done += 1

        together([lambda thread=thread: add(thread) for thread in range(THREADS)])  # type: ignore[misc]
        (row,) = store.find(Kind.MEMORY)
        assert (row.fields["turn"], row.revision) == (THREADS * TURNS, THREADS * TURNS + 1)

    def test_readers_never_see_half_a_change(self, store: Store, other: Store) -> None:
        """Two rows always change together, and always two are added; whoever reads finds them so."""
        names = [f"m{n:04}" for n in range(FAR_APART)]
        first, last = names[0], names[-1]
        store.apply([memory(name, turn=0) for name in names])
        over = Event()

        def write() -> None:
            try:
                for turn in range(1, 40):
                    changed = [memory(name, [f"w{turn}"], turn=turn, revision=turn + 1, replaces=turn) for name in (first, last)]
                    store.apply([*changed, memory(f"t{turn}", ["pair"]), memory(f"u{turn}", ["pair"])])
            finally:
                over.set()

        def read(handle: Store) -> None:
            while not over.is_set():
                got = handle.get(Kind.MEMORY, names)
                assert got[first].fields["turn"] == got[last].fields["turn"]
                found = {row.id: row for row in handle.find(Kind.MEMORY, limit=FAR_APART + 80)}
                assert found[first].fields["turn"] == found[last].fields["turn"]
                assert handle.count(Kind.MEMORY) % 2 == 0
                pairs = handle.matching(["pair"], ["p"], limit=999)
                assert len(pairs) % 2 == 0
                assert len({hit.score for hit in pairs}) <= 1

        together([write, lambda: read(store), lambda: read(other)])
