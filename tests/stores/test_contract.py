"""Every store passes the contract, and no store leaves deleted bytes in its files."""

from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from memory_mesh.core.model import Compare, Key, Kind, Row
from memory_mesh.core.ports import Store
from memory_mesh.stores.json import JsonStore
from memory_mesh.stores.lance import LanceStore
from memory_mesh.stores.ram import RamStore
from memory_mesh.stores.sqlite import SqliteStore
from memory_mesh.testing import StoreContract
from memory_mesh.testing.contract import (
    ChangesAsOne,
    CountsMoves,
    FindsInOrder,
    IsShared,
    KeepsRows,
    MeansWhatItSays,
    RanksByCosine,
    RanksByKeywords,
)
from memory_mesh.testing.rows import Subject, memory, passage, plain, within

from .properties import KEPT, READ

# The contract is published without ids; these are what its sentences hold here.
HOLDS = {
    "test_an_id_that_is_held_is_taken": ["MESH-007"],
    "test_an_id_of_any_shape_is_kept_as_it_is": ["MESH-007"],
    "test_any_condition_picks_the_rows_that_it_matches": ["MESH-117"],
    "test_the_cells_of_the_table_hold": ["MESH-117"],
}
for sentence, stored in HOLDS.items():
    pytest.mark.req(*stored)(getattr(StoreContract, sentence))


class TestRam(StoreContract):
    """Rows in a dict."""

    durable = False

    @pytest.fixture(autouse=True)
    def _one_for_each_place(self) -> None:
        self.stores: dict[Path, RamStore] = {}

    def open(self, place: Path) -> Store:
        return self.stores.setdefault(place, RamStore())


class FreesBytes(Subject):
    """A store with files."""

    def test_what_is_deleted_is_in_no_byte_of_any_file_after_the_close(
        self, store: Store, place: Path
    ) -> None:
        secret = memory(
            "secret", ["quetzal"], content="the quetzal nests " * 40, metadata={"bird": "quetzal"},
            vector=[0.5, 0.5], tokens=b"trogons" * 7,
        )  # fmt: skip
        part = passage("x1", "secret", [0.5, 0.25], tokens=b"toucans" * 7)
        store.apply([*_crowd(), secret, part])
        tokens = [one.vector.tokens for one in (secret, part) if one.vector]
        in_json = [b64encode(one) for one in tokens]
        assert b"quetzal" in _bytes(place)
        assert any(all(one in _bytes(place) for one in form) for form in (tokens, in_json))
        assert not store.apply(
            deletes=[Key(Kind.MEMORY, "secret"), Key(Kind.PASSAGE, "x1")]
        ).bytes_freed
        store.close()
        assert b"quetzal" not in _bytes(place)
        assert not any(one in _bytes(place) for one in (*tokens, *in_json))
        assert b"finch" in _bytes(place)

    def test_what_a_tombstone_replaces_is_in_no_byte_of_any_file_after_the_close(
        self, store: SqliteStore | LanceStore | JsonStore, place: Path
    ) -> None:
        block = plain(Kind.BLOCK, "b1")
        quoting = {**block.fields, "yamo_text": "preview;the quetzal nests;"}
        store.apply([*_crowd(), replace(block, fields=quoting)])
        assert b"quetzal" in _bytes(place)
        tomb = plain(Kind.BLOCK, "b1", revision=2, replaces=1)
        assert not store.apply(
            [replace(tomb, fields={**tomb.fields, "yamo_text": "erased"})]
        ).bytes_freed
        assert store.has_deleted_bytes()
        store.close()
        assert b"quetzal" not in _bytes(place)

    def test_bytes_that_an_update_replaced_are_not_called_gone_until_they_are_compacted(
        self, store: Store, place: Path
    ) -> None:
        store.apply([memory("m1", content="the quetzal nests")])
        replaced = store.apply([memory("m1", content="nothing nests", revision=2, replaces=1)])
        assert not replaced.bytes_freed
        assert b"quetzal" in _bytes(place)
        assert store.compact()
        assert b"quetzal" not in _bytes(place)


class TestSqlite(StoreContract, FreesBytes):
    """Rows in a file."""

    def open(self, place: Path) -> Store:
        return SqliteStore(place / "memory.db")

    def test_a_write_during_changes_is_returned_by_that_call_or_the_next(
        self, store: SqliteStore, other: Store
    ) -> None:
        store.apply([memory("m0")])
        mark = store.changes("p").mark
        store.apply([memory("m1")])
        with _meanwhile(store, "FROM moves", lambda: other.apply([memory("m2")])):
            first = store.changes("p", mark)
        second = store.changes("p", first.mark)
        assert [*(first.keys or ()), *(second.keys or ())] == [
            Key(Kind.MEMORY, "m1"),
            Key(Kind.MEMORY, "m2"),
        ]
        assert second.mark == other.changes("p").mark

    def test_scores_and_conditions_are_of_one_moment(
        self, store: SqliteStore, other: Store
    ) -> None:
        store.apply([memory("m1", ["word"], status="active")])
        hidden = memory("m1", ["word"], status="archived", revision=2, replaces=1)
        active = Compare("status", "=", "active")
        with _meanwhile(store, "INDEXED BY", lambda: other.apply([hidden])):
            assert [hit.id for hit in store.matching(["word"], within("p"), active, limit=9)] == [
                "m1"
            ]
        assert store.matching(["word"], within("p"), active, limit=9) == []


class TestLanceBriefly(KeepsRows, MeansWhatItSays):
    """Rows in Lance tables; those of the last few changes are in the journal."""

    def open(self, place: Path) -> Store:
        return LanceStore(place / "memory", flush_rows=6)


@pytest.mark.deep
class TestLance(
    ChangesAsOne, CountsMoves, FindsInOrder, RanksByCosine, RanksByKeywords, IsShared, FreesBytes
):
    """The same, with the rest of the contract."""

    def open(self, place: Path) -> Store:
        return LanceStore(place / "memory", flush_rows=6)


@pytest.mark.deep
@pytest.mark.one_in_ci(3)
class TestLanceTables(StoreContract, FreesBytes):
    """Rows in Lance tables after every change."""

    def open(self, place: Path) -> Store:
        return LanceStore(place / "memory", flush_rows=1)


@pytest.mark.deep
@pytest.mark.one_in_ci(3)
class TestLanceDirectly(StoreContract, FreesBytes):
    """Rows in the same tables, written without a journal."""

    def open(self, place: Path) -> Store:
        return LanceStore(place / "memory", direct_rows=1)


def test_a_changed_row_is_found_once_in_lance_also_while_the_table_has_its_older_revision(
    tmp_path: Path,
) -> None:
    with closing(LanceStore(tmp_path / "memory", flush_rows=500)) as store:
        store.apply([memory(f"m{n}", ["word"], vector=[1, 0], status="active") for n in range(3)])
        assert store.compact()  # these rows are in the table, and what follows is in the journal
        store.apply(
            [memory("m1", ["word"], vector=[1, 0], status="active", revision=2, replaces=1)],
            [Key(Kind.MEMORY, "m2")],
        )
        active = Compare("status", "=", "active")
        assert sorted(store.ids(Kind.MEMORY, active)) == ["m0", "m1"]
        assert store.count(Kind.MEMORY, active) == 2
        assert {row.id: row.revision for row in store.find(Kind.MEMORY, active)} == {
            "m0": 1,
            "m1": 2,
        }
        assert sorted(hit.id for hit in store.matching(["word"], within("p"), limit=9)) == [
            "m0",
            "m1",
        ]


class TestJsonBriefly(CountsMoves, FreesBytes):
    """Rows in the journal of a folder of JSON files. The store in memory answers its queries."""

    def open(self, place: Path) -> Store:
        return JsonStore(place / "memory")


@pytest.mark.deep
class TestJson(
    KeepsRows, ChangesAsOne, FindsInOrder, MeansWhatItSays, RanksByCosine, RanksByKeywords, IsShared
):
    """The same, with the rest of the contract."""

    def open(self, place: Path) -> Store:
        return JsonStore(place / "memory")


@pytest.mark.deep
@pytest.mark.one_in_ci(3)
class TestJsonFiles(StoreContract):
    """Rows in JSON files after every change."""

    def open(self, place: Path) -> Store:
        return JsonStore(place / "memory", flush_bytes=0)


# A change of a Lance store takes milliseconds. Each property is tried with many examples on one or
# two of its forms.
for form, elsewhere in ((TestLanceTables, (*KEPT[1:], *READ)), (TestLanceDirectly, (*KEPT, *READ))):
    for property_ in elsewhere:
        assert hasattr(form, property_)
        setattr(form, property_, None)


@contextmanager
def _meanwhile(store: SqliteStore, words: str, do: Callable[[], object]) -> Iterator[None]:
    """Another does something, once, just before the store runs a statement with these words."""
    waiting = [do]

    def reported(statement: str) -> None:
        if words in statement and waiting:
            waiting.pop()()

    with store._use() as connection:
        connection.set_trace_callback(reported)
        yield
        connection.set_trace_callback(None)
    assert not waiting


def _crowd() -> list[Row]:
    """Enough rows around the one in question that its page is not simply dropped."""
    return [memory(f"m{n}", ["finch"], content=f"a finch, number {n}, sings") for n in range(30)]


def _bytes(place: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file())
