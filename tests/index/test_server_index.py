"""The index of a server store: in memory for what is not too large, else in the engine."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from threading import Event
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import Cancelled, InvalidInput, StoreCorrupt, StoreUnavailable
from memory_mesh.core.model import Key, Kind, Reader, Row, partitions
from memory_mesh.core.model.background import Courier, cancellable
from memory_mesh.core.options import Options
from memory_mesh.core.ports import Store
from memory_mesh.index import LocalIndex, ServerIndex, local, make_index
from memory_mesh.index import server as server_index
from memory_mesh.index.local import LocalSnapshot
from memory_mesh.stores.ram import RamStore

from .index_rows import agrees, asking, find, memory, queries
from .server import ServerStore
from .test_index_signals import change

READER = Reader(None, "a", "s")
RED = asking("red")
AT_ONCE: dict[str, Any] = {"build_after": 0.0}


def ram(*rows: Row) -> RamStore:
    store = RamStore()
    store.apply(rows)
    return store


def made(store: ServerStore, **options: Any) -> ServerIndex:
    return ServerIndex(store, store.candidate_source, **options)  # type: ignore[arg-type]


@contextmanager
def opened(store: Store, **options: Any) -> Iterator[ServerIndex]:
    with closing(made(ServerStore(store), **{**AT_ONCE, **options})) as index:
        yield index


def in_memory(index: ServerIndex, reader: Reader = READER) -> bool:
    return isinstance(index.snapshot(reader), LocalSnapshot)


def eventually(check: Callable[[], object], seconds: float = 20.0) -> bool:
    until = time.monotonic() + seconds
    while not check() and time.monotonic() < until:
        time.sleep(0.005)
    return bool(check())


def never(check: Callable[[], object]) -> bool:
    return not eventually(check, 0.3)


def red(index: ServerIndex, reader: Reader = READER) -> list[str]:
    return sorted(find(index, asking("red", reader=reader), size=10).ids)


def test_a_server_store_has_an_index_that_may_ask_the_engine_and_others_have_not() -> None:
    with closing(make_index(ServerStore(RamStore()), Options())) as index:
        assert isinstance(index, ServerIndex)
    assert isinstance(make_index(RamStore(), Options()), LocalIndex)


def test_the_first_search_asks_the_engine_and_later_ones_are_answered_from_memory() -> None:
    store = ram(memory("m1", "red apple"), memory("m2", "key"))
    with opened(store) as index:
        assert not in_memory(index)
        agrees(index, store, RED)
        assert eventually(lambda: in_memory(index))
        agrees(index, store, RED)


def test_a_process_that_ends_soon_builds_nothing() -> None:
    store = ServerStore(ram(memory("m1", "red")))
    with closing(made(store, build_after=60)) as index:
        assert red(index) == ["m1"]
        with patch.object(store, "find", side_effect=AssertionError("a page was read")):
            begun = time.monotonic()
            index.close()
    assert time.monotonic() - begun < 10


@given(data=st.data())
def test_in_memory_it_agrees_with_the_rows_after_any_history(data: st.DataObject) -> None:
    store = RamStore()
    with opened(store) as index:
        for _ in range(data.draw(st.integers(1, 3))):
            change(data, store)
            query = data.draw(queries())
            index.prepare(query.reader)
            assert in_memory(index, query.reader)
            agrees(index, store, query)


def test_it_follows_what_other_processes_write_and_erase() -> None:
    store = ram(memory("m1", "red"))
    with opened(store) as index:
        index.prepare(READER)
        assert in_memory(index)
        store.apply([memory("m2", "red")])
        assert (red(index), in_memory(index)) == (["m1", "m2"], True)
        store.apply((), [Key(Kind.MEMORY, "m1")])
        assert (red(index), in_memory(index)) == (["m2"], True)


def test_each_reader_sees_only_its_own_memories() -> None:
    store = ram(memory("m1", "red", user_id="ann"), memory("m2", "red", user_id="bob"))
    ann, bob = Reader("ann", "a"), Reader("bob", "a")
    with opened(store) as index:
        for reader in (ann, bob):
            index.prepare(reader)
            assert in_memory(index, reader)
        assert (red(index, ann), red(index, bob)) == (["m1"], ["m2"])


def test_too_many_memories_are_searched_in_the_engine() -> None:
    store = ram(*(memory(f"m{at}", "red") for at in range(4)))
    with opened(store, max_memories=4) as index:
        index.prepare(READER)
        assert in_memory(index)
        store.apply([memory("m4", "red")])
        assert not in_memory(index)
        assert len(red(index)) == 5
        assert never(lambda: in_memory(index))
    with opened(store, max_memories=4) as index:
        index.prepare(READER)
        assert never(lambda: in_memory(index))
        store.apply((), [Key(Kind.MEMORY, "m0")])
        with patch.object(server_index, "monotonic", lambda: time.monotonic() + 301):
            assert eventually(lambda: in_memory(index))


def test_what_the_store_does_not_remember_is_built_anew_while_the_engine_answers() -> None:
    store = ram(memory("m1", "red"))
    with opened(store) as index:
        index.prepare(READER)
        store.apply([memory(f"m{at}", "red") for at in range(2, 6)])
        forgotten = store.changes(partitions(READER)[-1])._replace(keys=None)
        with patch.object(RamStore, "changes", lambda *_: forgotten):
            assert not in_memory(index)
            assert len(red(index)) == 5
        assert eventually(lambda: in_memory(index))
        assert len(red(index)) == 5


def test_the_least_recently_used_partitions_are_dropped() -> None:
    users = [Reader(f"u{at}", "a") for at in range(3)]
    store = ram(*(memory(f"m{at}", "red", user_id=f"u{at}") for at in range(3)))
    with opened(store) as index:
        for reader in users[:2]:
            index.prepare(reader)
        index._max_bytes = sum(part.size_in_bytes for part in index._partitions.values())
        assert all(in_memory(index, reader) for reader in (users[1], users[0]))
        index.prepare(users[2])
        with patch.object(Courier, "start"):
            assert [in_memory(index, reader) for reader in users] == [True, False, True]


def test_a_store_that_fails_while_it_is_read_is_asked_again_later() -> None:
    store = ServerStore(ram(memory("m1", "red")))
    with closing(made(store, **AT_ONCE)) as index:
        with patch.object(store, "count", side_effect=StoreUnavailable("gone")) as failing:
            assert red(index) == ["m1"]
            assert eventually(lambda: failing.called)
            assert never(lambda: in_memory(index))
        assert never(lambda: in_memory(index))
        with patch.object(server_index, "monotonic", lambda: time.monotonic() + 301):
            assert eventually(lambda: in_memory(index))


def test_nothing_is_written_to_the_disk_of_a_client(tmp_path: Any) -> None:
    """An embedded store of this size has a file: the positive control."""
    rows = [memory(f"m{at}", "red") for at in range(6)]
    with patch.multiple("memory_mesh.index.local", MAX_UNPACKED=3, MIN_FILE_SIZE=1):
        for is_server in (False, True):
            folder = tmp_path / f"{is_server}"
            store = ram(*rows)
            with patch.object(RamStore, "index_folder", None if is_server else folder):
                index_ = made(ServerStore(store)) if is_server else LocalIndex(store)
                with closing(index_) as index:
                    index.prepare(READER)
                    assert len(find(index, RED, size=10).ids) == 6
            assert folder.exists() is not is_server


def test_a_partition_that_grows_over_the_bound_is_dropped() -> None:
    store = ram(memory("m0", "red"))
    with opened(store) as index:
        index.prepare(READER)
        index._max_bytes = index._total + 10_000
        assert in_memory(index)
        store.apply([memory(f"m{at}", "red") for at in range(1, 9)])
        assert not in_memory(index)
        assert (index._total, len(red(index))) == (0, 9)
        assert never(lambda: in_memory(index))


def test_two_readers_do_not_push_each_other_out_again_and_again() -> None:
    ann, bob = Reader("ann", "a"), Reader("bob", "a")
    store = ram(memory("m1", "red", user_id="ann"), memory("m2", "red", user_id="bob"))
    with opened(store) as index:
        index.prepare(ann)
        index._max_bytes = index._total + 1
        index.prepare(bob)
        assert never(lambda: in_memory(index, ann))
        assert in_memory(index, bob)
        assert red(index, ann) == ["m1"]


def test_many_changes_of_others_are_not_waited_for() -> None:
    store = ram(memory("m0", "red"))
    with opened(store) as index, patch.object(local, "MAX_FOLLOWED", 3):
        index.prepare(READER)
        before = index.snapshot(READER)
        store.apply([memory(f"m{at}", "red") for at in range(1, 5)])
        assert not in_memory(index)
        assert len(red(index)) == 5
        assert before.candidates(RED, size=9).ids == ["m0"]  # it is complete, as of its time
        assert eventually(lambda: in_memory(index))


def test_a_store_without_tables_is_not_read_again_and_again() -> None:
    store = ServerStore(RamStore())
    with (
        closing(made(store, **AT_ONCE)) as index,
        patch.object(RamStore, "data_version", lambda _: None),
        patch.object(store, "count", side_effect=AssertionError("it was read")),
    ):
        index.prepare(READER)
        assert never(lambda: in_memory(index))
        assert not index._waiting


def test_a_damaged_row_leaves_the_search_to_the_engine() -> None:
    store = ServerStore(ram(memory("m1", "red")))
    with closing(made(store, **AT_ONCE)) as index:
        index.prepare(READER)
        assert in_memory(index)
        broken = patch.object(store, "get", side_effect=StoreCorrupt("the row", remedy="none"))
        with broken, patch.object(store, "find", side_effect=StoreCorrupt("the row", remedy="")):
            store.apply([memory("m2", "red")])
            assert not in_memory(index)
            index.prepare(READER)
        assert red(index) == ["m1", "m2"]


def test_building_ends_after_the_page_in_which_it_is_cancelled() -> None:
    store, stop, pages = ServerStore(ram(*(memory(f"m{at}", "red") for at in range(9)))), Event(), 0
    find = store.find

    def counted(*given: Any, **options: Any) -> list[Row]:
        nonlocal pages
        pages += 1
        if pages == 3:  # the first of the partition with the memories
            stop.set()
        return find(*given, **options)

    with (
        closing(made(store, build_after=60)) as index,
        patch.object(store, "find", counted),
        patch.object(local, "BATCH", 2),
    ):
        with cancellable(stop), pytest.raises(Cancelled):
            index.prepare(READER)
        assert (pages, len(index._partitions)) == (3, 1)
        index.prepare(READER)
        assert len(index._partitions) == 2
        assert len(red(index)) == 9


def test_a_process_that_can_start_no_thread_asks_the_engine() -> None:
    with (
        patch("memory_mesh.core.model.background.Thread.start", side_effect=RuntimeError("none")),
        opened(ram(memory("m1", "red"))) as index,
    ):
        assert red(index) == ["m1"]


def test_an_unknown_error_ends_no_building_of_other_partitions() -> None:
    store = ServerStore(ram(memory("m1", "red", user_id="u")))
    with closing(made(store, **AT_ONCE)) as index:
        with patch.object(store, "count", side_effect=InvalidInput("odd")) as failing:
            assert red(index) == []
            assert eventually(lambda: failing.called and not index._waiting)
        assert eventually(lambda: in_memory(index, Reader("u", "a")))


def test_a_closed_index_drops_what_it_had() -> None:
    with opened(ram(memory("m1", "red"))) as index:
        index.prepare(READER)
        assert in_memory(index)
    assert not index._partitions
