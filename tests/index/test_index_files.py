"""Index files: used when they are valid, never needed, and without erased memories."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from stat import S_IMODE

import pytest

from memory_mesh.core.model import ANYTHING, Key, Kind, Reader, Row, Where, equals, partition
from memory_mesh.index import LocalIndex
from memory_mesh.index import local as index_local
from memory_mesh.index.arrays import hash64
from memory_mesh.index.local import Saved, file_of, forget, load
from memory_mesh.stores.ram import RamStore
from memory_mesh.stores.sqlite import SqliteStore
from memory_mesh.stores.sqlite import store as sqlite_store

from .index_rows import agrees, asking, find, memory, tiny

SHARED = partition(None, None)


class Watched(SqliteStore):
    """A store that records which rows are read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.read: list[Where] = []

    def find(
        self,
        kind: Kind,
        where: Where = ANYTHING,
        *,
        limit: int | None = None,
        after: Row | None = None,
    ) -> list[Row]:
        self.read.append(where)
        return super().find(kind, where, limit=limit, after=after)


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    with tiny():
        yield


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    monkeypatch.setattr(sqlite_store, "_INDEXED_FROM", 1)
    with_rows = Watched(tmp_path / "memory.db")
    with_rows.apply(
        [
            memory(f"m{at}", f"red word{at}", vector=[1.0, float(at)], session_id="s", turn=at)
            for at in range(9)
        ]
    )
    yield with_rows
    with_rows.close()


def saved(store: SqliteStore) -> Path:
    index = LocalIndex(store)
    find(index, asking("red"), size=9)
    index.close()
    return file_of(store.index_folder or Path(), SHARED)


def holds(folder: Path, what: bytes) -> bool:
    return any(what in path.read_bytes() for path in folder.iterdir())


def test_a_file_is_read_instead_of_the_rows(store: Watched) -> None:
    assert saved(store).exists()
    assert equals("partition", SHARED) in store.read
    store.read.clear()
    index = LocalIndex(store)
    assert len(find(index, asking("red"), size=20).ids) == 9
    assert equals("partition", SHARED) not in store.read
    agrees(index, store, asking("red word3", vector=[1.0, 2.0]))


def test_changes_since_the_file_was_written_are_applied(store: Watched) -> None:
    saved(store)
    store.apply([memory("m3", "green", replaces=1), memory("m20", "red")], [Key(Kind.MEMORY, "m4")])
    agrees(LocalIndex(store), store, asking("red green word4", vector=[1.0, 2.0]))


def test_only_its_owner_can_read_a_file(store: Watched) -> None:
    path = saved(store)
    assert S_IMODE(path.stat().st_mode) == 0o600
    assert S_IMODE(path.parent.stat().st_mode) == 0o700


def mangled(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(change(path.read_bytes())) and None


ODD: dict[str, Callable[[Path], None]] = {
    "empty": lambda path: path.write_bytes(b"") and None,
    "short": mangled(lambda data: data[: len(data) // 2]),
    "cut within its head": mangled(lambda data: data[:40]),
    "of another format": mangled(lambda data: re.sub(rb"index \d", b"index 0", data, count=1)),
    "of another language": mangled(lambda data: data.replace(b'"english"', b'"finnish"', 1)),
    "of another store": mangled(
        lambda data: re.sub(rb'"mark": "9:....', b'"mark": "9:----', data, count=1)
    ),
    "without a column": mangled(lambda data: data.replace(b'"turn"', b'"tern"', 1)),
    "something else": lambda path: path.write_bytes(b"\xff" * 1000) and None,
}


@pytest.mark.parametrize("how", ODD)
def test_an_invalid_file_is_built_again(store: Watched, how: str) -> None:
    path = saved(store)
    before = path.read_bytes()
    ODD[how](path)
    assert path.read_bytes() != before
    store.read.clear()
    agrees(LocalIndex(store), store, asking("red word3", vector=[1.0, 2.0]))
    assert equals("partition", SHARED) in store.read


def test_the_process_that_erases_a_memory_has_it_in_no_file(store: Watched) -> None:
    folder = saved(store).parent
    wanted = (b"m5m4", hash64("word4").to_bytes(8, "little"))
    assert all(holds(folder, each) for each in wanted)
    index = LocalIndex(store)
    find(index, asking("red"), size=9)
    index.forget([SHARED])
    store.apply([], [Key(Kind.MEMORY, "m4")])
    index.forget([SHARED])
    assert not any(folder.iterdir())
    find(index, asking("red"), size=9)
    index.close()
    assert any(folder.iterdir())
    assert not any(holds(folder, each) for each in wanted)


def test_an_erased_memory_is_in_no_file_once_another_process_has_seen_it(store: Watched) -> None:
    folder = saved(store).parent
    store.apply([], [Key(Kind.MEMORY, "m4")])  # by a process that has no index
    assert holds(folder, b"m5m4")
    find(LocalIndex(store), asking("red"), size=9)
    assert not holds(folder, b"m5m4")


def test_a_file_written_while_a_memory_is_erased_is_deleted(
    store: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def save_late(path: Path, what: Saved) -> bool:
        store.apply([], [Key(Kind.MEMORY, "m4")])
        done = real(path, what)
        written.append(b"m5m4" in path.read_bytes())
        return done

    real = index_local.save
    monkeypatch.setattr(index_local, "save", save_late)
    path = saved(store)
    assert written[:1] == [True]
    assert not path.exists() or not holds(path.parent, b"m5m4")


def test_a_new_file_does_not_contain_unused_names(store: Watched) -> None:
    store.apply([memory("m30", "red", speaker="Zebulon", memory_type="reflection")])
    folder = saved(store).parent
    assert holds(folder, b"Zebulon")
    assert holds(folder, b'"reflection"')
    store.apply([], [Key(Kind.MEMORY, "m30")])
    assert saved(store).exists()
    assert not holds(folder, b"Zebulon")
    assert not holds(folder, b'"reflection"')


def test_forget_deletes_a_partly_written_file_too(store: Watched) -> None:
    path = saved(store)
    part = path.with_name(f"{path.stem}-0123.part")
    part.write_bytes(b"half")
    other = path.with_name("another.index")
    other.write_bytes(b"")
    forget(store.index_folder, [SHARED])
    assert [each.name for each in path.parent.iterdir()] == ["another.index"]


def test_if_no_file_can_be_written_the_index_stays_in_memory(store: Watched) -> None:
    folder = store.index_folder
    assert folder is not None
    folder.rmdir()
    folder.write_bytes(b"in the way")
    index = LocalIndex(store)
    agrees(index, store, asking("red word3"))
    index.close()
    assert folder.read_bytes() == b"in the way"


def test_a_store_without_a_folder_has_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = RamStore()
    store.apply([memory(f"m{at}", "red") for at in range(9)])
    index = LocalIndex(store)
    agrees(index, store, asking("red"))
    index.close()
    assert list(tmp_path.iterdir()) == []


def test_an_index_can_be_closed_twice_and_used_again(store: Watched) -> None:
    index = LocalIndex(store)
    for _ in range(2):
        agrees(index, store, asking("red"))
        index.close()
        index.close()


def test_a_mark_changes_with_what_the_reader_sees_and_with_nothing_else(store: Watched) -> None:
    index, reader = LocalIndex(store), Reader(None, "a", "s")
    marks = [index.snapshot(reader).mark]
    for session in ("t", "s", "t", "s"):
        store.apply([memory(f"m4{len(marks)}", "red", memory_type="session", session_id=session)])
        marks.append(index.snapshot(reader).mark)
    assert marks[0] == marks[1] != marks[2] == marks[3] != marks[4]
    store.apply([], [Key(Kind.MEMORY, "m42")])
    assert index.snapshot(reader).mark not in marks


def test_equal_marks_mean_equal_memories_also_for_an_index_opened_later(store: Watched) -> None:
    """A file is of the state before two changes. Opened there, an index applies both at once."""
    reader, changes = Reader(None, "a"), [memory("m40", "red"), memory("m41", "red")]
    saved(store)
    first = LocalIndex(store)
    marks = [first.snapshot(reader).mark]
    for row in changes:
        store.apply([row])
        marks.append(first.snapshot(reader).mark)
    assert LocalIndex(store).snapshot(reader).mark not in marks[:-1]
    assert len(set(marks)) == 3


@pytest.mark.parametrize("bit", [0, 5])  # a digit becomes another one, and a letter a capital
def test_a_file_with_any_one_byte_changed_on_the_disk_is_built_again(
    store: Watched, deep: bool, bit: int
) -> None:
    file = saved(store)
    sound = file.read_bytes()
    assert load(file)
    places = range(len(sound))
    changed = file.with_name("changed.index")
    for at in places:
        changed.write_bytes(sound[:at] + bytes([sound[at] ^ 1 << bit]) + sound[at + 1 :])
        assert load(changed) is None, f"byte {at} of {len(sound)}"
    for at in places[:: len(places) // (200 if deep else 20)]:
        file.write_bytes(sound[:at] + bytes([sound[at] ^ 1 << bit]) + sound[at + 1 :])
        agrees(LocalIndex(store), store, asking("red word3 word8", vector=[1.0, 3.0]))


@pytest.mark.parametrize("more", [b"\0", b"\n", b" " * 64])
def test_a_file_with_bytes_added_or_cut_off_is_built_again(store: Watched, more: bytes) -> None:
    file = saved(store)
    sound = file.read_bytes()
    for data in (sound + more, more + sound, sound[: -len(more)]):
        file.write_bytes(data)
        assert load(file) is None
