"""The log of moves: it is limited, contains no texts, and notices a restored backup."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from stat import S_IMODE

import pytest

from memory_mesh.core.model import Key, Kind
from memory_mesh.core.ports import Store
from memory_mesh.stores import base
from memory_mesh.stores.ram import DisabledStore, RamStore
from memory_mesh.stores.sqlite import SqliteStore, tables
from memory_mesh.testing.rows import memory

from .files import prepare


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture(params=["ram", "sqlite"])
def store(
    request: pytest.FixtureRequest, file: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    """A store that remembers few moves."""
    monkeypatch.setattr(base, "KEPT_MOVES", 20)
    monkeypatch.setattr(tables, "KEPT_MOVES", 20)
    monkeypatch.setattr(tables, "_TRIMMED_EVERY", 5)
    with closing(RamStore() if request.param == "ram" else SqliteStore(file)) as store:
        yield store


def logged(store: Store) -> int:
    if isinstance(store, RamStore):
        return max(sum(len(some.keys) for some in moves) for moves in store.moves.values())
    assert isinstance(store, SqliteStore)
    with store._use() as connection:
        return int(
            connection.execute(
                "SELECT max(moves) FROM (SELECT count(*) AS moves FROM moves GROUP BY partition)"
            ).fetchone()[0]
        )


def test_the_log_forgets_what_is_old_and_says_so(store: Store) -> None:
    given = [store.changes("p").mark]
    for n in range(100):
        store.apply(
            [
                memory(f"m{n}"),
                memory(f"q{n % 3}", partition="q", revision=n // 3 + 1, replaces=n // 3),
            ]
        )
        given.append(store.changes("p").mark)
        assert logged(store) <= 2 * 20
    assert store.changes("p", given[0]).keys is None
    assert store.changes("p", given[50]).keys is None
    for behind in range(20):
        found = store.changes("p", given[100 - behind])
        assert (found.mark, [key.id for key in found.keys or ()]) == (
            given[100],
            [f"m{n}" for n in range(100 - behind, 100)],
        )


def test_one_change_may_be_longer_than_the_log(store: Store) -> None:
    beginning = store.changes("p").mark
    store.apply([memory("m1")])
    before = store.changes("p").mark
    store.apply([memory(f"x{n}") for n in range(99)])
    after = store.changes("p").mark
    assert store.changes("p", beginning).keys is None
    assert store.changes("p", before).keys is None
    store.apply([memory("m2")])
    assert store.changes("p", after).keys == [Key(Kind.MEMORY, "m2")]


def test_twenty_thousand_moves_are_kept() -> None:
    assert tables.KEPT_MOVES == base.KEPT_MOVES == 20_000


def test_the_same_version_after_a_restored_backup_is_another_state(file: Path) -> None:
    with closing(SqliteStore(file)) as store:
        store.apply([memory("m1")])
        shared = store.changes("p").mark
    backup = file.read_bytes()
    with closing(SqliteStore(file)) as store:
        store.apply([memory("m2")])
        lost = store.changes("p").mark
    file.write_bytes(backup)
    with closing(SqliteStore(file)) as store:
        store.apply([memory("m3")])
        now = store.changes("p").mark
        assert now.split(":")[0] == lost.split(":")[0]
        assert now != lost
        assert store.changes("p", lost).keys is None
        assert store.changes("p", shared).keys == [Key(Kind.MEMORY, "m3")]


def test_a_look_that_finds_nothing_new_is_one_search_by_key(file: Path) -> None:
    with closing(SqliteStore(file)) as store:
        store.apply([memory("m1")])
        mark, queries = store.changes("p").mark, list[str]()
        with store._use() as connection:
            connection.set_trace_callback(queries.append)
            assert store.changes("p", mark).keys == ()
            connection.set_trace_callback(None)
            (query,) = queries
            (plan,) = connection.execute(f"EXPLAIN QUERY PLAN {query}")
        assert plan[3] == "SEARCH partitions USING PRIMARY KEY (partition=?)"


def test_the_log_holds_ids_and_no_text(file: Path) -> None:
    with closing(SqliteStore(file)) as store:
        store.apply(
            [memory("m1", ["quetzal"], content="the quetzal nests", metadata={"bird": "quetzal"})]
        )
    with closing(sqlite3.connect(file)) as connection:
        assert "quetzal" in str(connection.execute("SELECT * FROM memories").fetchall())
        (move,) = connection.execute("SELECT partition, version, kind, id FROM moves").fetchall()
    assert move == ("p", 1, "memory", "m1")


# --- where an index may lie ---


def test_a_write_to_a_large_partition_makes_the_folder_of_the_index_beside_the_file(
    file: Path,
) -> None:
    with closing(SqliteStore(file)) as store:
        store.apply([memory(f"m{at}") for at in range(999)])
        assert store.index_folder is None
        store.apply([memory("last")])
        assert store.index_folder == file.with_name("memory.db-index")
        assert S_IMODE(store.index_folder.stat().st_mode) == 0o700


def test_a_store_without_a_place_of_its_own_has_no_folder() -> None:
    assert RamStore().index_folder is DisabledStore().index_folder is None


def test_a_store_has_a_folder_only_where_there_is_one_that_it_may_write_to(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = file.with_name("memory.db-index")
    prepare(file)
    for read_only in (True, False):
        with closing(SqliteStore(file, read_only=read_only)) as store:
            assert store.index_folder is None
            folder.mkdir()
            assert store.index_folder == folder
            with monkeypatch.context() as patch:
                patch.setattr("os.access", lambda path, mode: path != folder)
                assert store.index_folder is None
            folder.rmdir()
            folder.write_text("in the way")
            assert store.index_folder is None
            folder.unlink()
