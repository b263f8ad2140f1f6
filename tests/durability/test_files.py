"""Faults of files and disks: one clear error of the right type, nothing changed or lost, and
afterwards the store works again."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest

from memory_mesh import MemoryMesh, Sound
from memory_mesh.core.errors import (
    MemoryMeshError,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreForeign,
    StoreFull,
    StoreMissing,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
)
from memory_mesh.core.model import ANYTHING, Kind, Vector
from memory_mesh.core.ports import Store
from memory_mesh.stores import open_store
from memory_mesh.stores.sqlite import VERSION, SqliteStore
from memory_mesh.stores.sqlite.opening import Opened
from stores.files import prepare

from .children import Child, bytes_of, url
from .sound import assert_sound

PAGE = 4096


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store with forty memories in it, closed."""
    file = tmp_path / "memory.db"
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        mesh.add_many(
            [(f"The shelf holds book{n} " + "about the sea " * n, {"n": n}) for n in range(40)]
        )
    return file


def contents(file: Path) -> list[str]:
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        return sorted(record.content for record in mesh.get_all())


@pytest.mark.req("MESH-015")
def test_a_change_is_on_the_medium_when_it_is_acknowledged(file: Path) -> None:
    # A killed process leaves its writes with the system; only a power cut would tell whether they
    # were synced. So it is asked.
    with closing(SqliteStore(file)) as store, store._use() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


# --- no room ---


class SmallDisk(SqliteStore):
    """A store whose file may not take one page more than it has."""

    def _adopt(self, opened: Opened) -> Opened:
        opened.connection.execute("PRAGMA max_page_count = 1")
        return super()._adopt(opened)


def test_a_full_disk_is_an_error_and_nothing_stored_is_lost(file: Path) -> None:
    before = contents(file)
    with closing(SmallDisk(file)) as store:
        mesh = MemoryMesh(store=store, agent_id="one")
        with pytest.raises(StoreFull, match="nothing was changed"):
            mesh.add("a long text " * 20_000)
        assert sorted(record.content for record in mesh.get_all()) == before
    assert contents(file) == before
    assert_sound(file)
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        mesh.add("there is room again")
    assert contents(file) == sorted([*before, "there is room again"])


def test_a_file_that_may_not_grow_is_an_error_and_nothing_stored_is_lost(file: Path) -> None:
    before = contents(file)
    calls = [
        ("add", {"content": "the last small one"}),
        ("add", {"content": "a long text " * 20_000}),
    ]
    with Child(
        "cramped", store=url(file), agent="one", most_bytes=file.stat().st_size, calls=calls
    ) as child:
        small, large = child.rest()
        assert child.end() == 0
    assert small["ok"]
    assert large == {"ok": False, "error": "StoreUnavailable"}
    assert contents(file) == sorted([*before, "the last small one"])
    assert_sound(file)


@pytest.mark.req("MESH-011")
def test_an_erasure_that_finds_no_room_to_free_the_bytes_says_so_and_the_next_opening_frees_them(
    file: Path,
) -> None:
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        id_ = mesh.add("The quetzal is a secret").id
    call = ("erase", {"id": id_})
    with Child(
        "cramped",
        store=url(file),
        agent="one",
        most_bytes=0,
        calls=[call],
        from_step="store.committed",
    ) as child:
        assert child.rest() == [{"ok": True, "bytes_freed": False}]
        assert child.end() == 0
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        assert mesh.get(id_) is None
        assert b"quetzal" not in bytes_of(file)
    assert_sound(file)


# --- others hold it ---


def test_a_file_that_another_process_holds_is_busy_for_writers_and_open_to_readers(
    file: Path,
) -> None:
    before = contents(file)
    with (
        Child("hold", file=str(file), begin="BEGIN IMMEDIATE") as other,
        MemoryMesh(store=url(file), agent_id="one", busy_seconds=0.05) as mesh,
    ):
        assert other.hear() == "held"
        with pytest.raises(StoreBusy, match="locked"):
            mesh.add("not now")
        assert sorted(record.content for record in mesh.get_all()) == before
        other.tell()
        assert other.hear() == "let go"
        mesh.add("now")
    assert contents(file) == sorted([*before, "now"])


@pytest.mark.parametrize("begin", ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_new_file_that_another_process_holds_is_busy(tmp_path: Path, begin: str) -> None:
    file = tmp_path / "memory.db"
    with Child("hold", file=str(file), begin=begin) as other:
        assert other.hear() == "held"
        with pytest.raises(StoreBusy), closing(SqliteStore(file, busy_seconds=0.05)) as store:
            store.prepare()
        other.tell()
        assert other.hear() == "let go"
        prepare(file)


@pytest.mark.parametrize("begin", ["BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"])
def test_a_new_file_that_another_process_lets_go_of_in_time_opens(
    tmp_path: Path, begin: str
) -> None:
    file = tmp_path / "memory.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 1")  # a file that is not empty, without tables
    with Child("hold", file=str(file), begin=begin) as other:
        assert other.hear() == "held"
        opening = Opening(file)
        opening.join(0.3)  # long enough that it meets the lock; if not, it opens all the same
        other.tell()
        opening.join()
    assert opening.failed is None


class Opening(Thread):
    """Opens a store and closes it again, in the background."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file
        self.failed: MemoryMeshError | None = None
        self.start()

    def run(self) -> None:
        try:
            prepare(self._file)
        except MemoryMeshError as error:
            self.failed = error


# --- it is not what it should be ---


def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "letter.db"
    for text in (b"Dear Ada,", b"Dear Ada,\n" * 1000, b"\0" * 5000):
        file.write_bytes(text)
        with pytest.raises(StoreCorrupt, match=r"letter\.db"):
            SqliteStore(file)
        assert file.read_bytes() == text


@pytest.mark.parametrize("kept", [0.02, 0.3, 0.7, 0.9])
def test_a_file_that_was_cut_is_refused_and_left_as_it_is(file: Path, kept: float) -> None:
    whole = file.read_bytes()
    cut = whole[: int(len(whole) * kept)]
    file.write_bytes(cut)
    with pytest.raises(StoreCorrupt):
        SqliteStore(file)
    assert file.read_bytes() == cut


@pytest.mark.deep
def test_garbage_in_a_file_is_reported_by_the_query_that_reads_it_and_other_queries_work(
    file: Path,
) -> None:
    whole, met = file.read_bytes(), 0
    for at in range(1, len(whole) // PAGE):
        damaged = whole[: at * PAGE] + b"\xa5" * PAGE + whole[(at + 1) * PAGE :]
        file.write_bytes(damaged)
        met += sum(corrupt(f"{url(file)}?mode=ro", query) for query in QUERIES) > 0
        assert file.read_bytes() == damaged
    assert met > len(whole) // PAGE / 2  # many pages hold what these queries read


QUERIES: list[Callable[[MemoryMesh], object]] = [
    lambda mesh: mesh.search("book3 sea"),
    lambda mesh: mesh.get_all(),
    lambda mesh: mesh.stats(),
    lambda mesh: mesh.verify(),
]


def corrupt(address: str, query: Callable[[MemoryMesh], object]) -> bool:
    try:
        with MemoryMesh(store=address, agent_id="one") as mesh:
            query(mesh)
    except StoreCorrupt:
        return True
    return False


def test_text_that_was_damaged_in_place_is_told_too(file: Path) -> None:
    with MemoryMesh(store=f"{url(file)}?mode=ro", agent_id="one") as mesh:
        assert mesh.search("book9")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "UPDATE memories SET content = CAST(x'ff' AS TEXT) WHERE metadata LIKE '%:7}'"
        )
        connection.execute("UPDATE memories SET metadata = '{' WHERE metadata LIKE '%:8}'")
        connection.commit()
    with MemoryMesh(store=f"{url(file)}?mode=ro", agent_id="one") as mesh:
        # Whichever memory is asked for: an index that left the damaged ones out would lose them
        # without a word.
        for query in ("book7", "book8", "book9"):
            with pytest.raises(StoreCorrupt):
                mesh.search(query)


def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "UPDATE mesh_meta SET value = ? WHERE key = 'schema'", (str(VERSION + 1),)
        )
        connection.commit()
    newer = file.read_bytes()
    for address in (url(file), f"{url(file)}?mode=ro"):
        with pytest.raises(StoreTooNew, match=f"schema {VERSION + 1}"):
            open_store(address)
    assert file.read_bytes() == newer


# --- it is not where it should be ---


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        SqliteStore(tmp_path / "file" / "memory.db")
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_path_that_is_a_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreForeign, match="is not a regular file"):
        SqliteStore(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_name_with_signs_that_urls_use_is_the_name_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "100% #1? ü.db"
    with closing(SqliteStore(file)) as store:
        store.prepare()
        assert {path.name.removeprefix(file.name) for path in tmp_path.iterdir()} == {
            "",
            "-wal",
            "-shm",
        }


# --- only to be read ---


@pytest.fixture
def read_only(file: Path) -> Iterator[MemoryMesh]:
    with MemoryMesh(store=f"{url(file)}?mode=ro", agent_id="one") as mesh:
        yield mesh


def test_a_store_opened_for_reading_answers(read_only: MemoryMesh) -> None:
    (hit,) = read_only.search("book9")
    assert read_only.get(hit.id) is not None
    assert len(read_only.get_all()) == read_only.stats().total_memories == 40
    assert [change.action for change in read_only.history(hit.id)] == ["add"]
    assert [type(verdict) for verdict in read_only.verify()] == [Sound]


def test_a_store_opened_for_reading_refuses_every_write_and_stays_as_it_is(
    file: Path, read_only: MemoryMesh
) -> None:
    (hit,) = read_only.search("book9")
    before = bytes_of(file)
    writes: list[Callable[[], object]] = [
        lambda: read_only.add("new"),
        lambda: read_only.add_many([("new", None)]),
        lambda: read_only.add(hit.content, hit.metadata),
        lambda: read_only.update(hit.id, content="new"),
        lambda: read_only.pin(hit.id),
        lambda: read_only.erase(hit.id),
        lambda: read_only.delete_all(agent_id="one"),
    ]
    for write in writes:
        with pytest.raises(StoreReadOnly):
            write()
    assert bytes_of(file) == before


@pytest.mark.parametrize("redaction", ["mask", "pseudonym"])
def test_a_refused_write_creates_no_key(
    file: Path, tmp_path: Path, redaction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "empty"
    monkeypatch.setenv("MEMORY_MESH_HOME", str(home))
    with MemoryMesh(
        store=f"sqlite:///{file}?mode=ro", agent_id="new", embedder="none", redaction=redaction
    ) as mesh:
        for write in (lambda: mesh.add("new"), lambda: mesh.erase(mesh.get_all()[0].id)):
            with pytest.raises(StoreReadOnly):
                write()
    assert not home.exists()
    with MemoryMesh(
        store=f"sqlite:///{file}", agent_id="new", embedder="none", redaction=redaction
    ) as mesh:
        mesh.add("new")
    assert "audit.key" in {path.name for path in home.iterdir()}


def test_reading_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing, match=r"memory\.db does not exist"):
        SqliteStore(tmp_path / "memory.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


# --- closed ---

USES: dict[str, Callable[[Store], object]] = {
    "apply": lambda store: store.apply(),
    "version": lambda store: store.version("p"),
    "get": lambda store: store.get(Kind.MEMORY, ["x"]),
    "find": lambda store: store.find(Kind.MEMORY),
    "count": lambda store: store.count(Kind.MEMORY),
    "ids": lambda store: store.ids(Kind.MEMORY),
    "changes": lambda store: store.changes("p"),
    "nearest": lambda store: store.nearest(Kind.MEMORY, Vector.of("m", [1.0]), limit=1),
    "matching": lambda store: store.matching(["x"], ANYTHING, limit=1),
}


@pytest.mark.parametrize("use", USES)
def test_a_closed_store_says_that_it_is_closed(file: Path, use: str) -> None:
    store = SqliteStore(file)
    USES[use](store)
    store.close()
    store.close()
    with pytest.raises(StoreClosed):
        USES[use](store)


@pytest.mark.req("MESH-074")
def test_a_closed_mesh_opens_again_by_itself(file: Path) -> None:
    mesh = MemoryMesh(store=url(file), agent_id="one")
    mesh.close()
    mesh.add("first")
    mesh.close()
    mesh.close()
    assert [hit.content for hit in mesh.search("first")] == ["first"]
    mesh.close()


def test_closing_while_others_read_ends_them_with_an_answer_or_with_closed(file: Path) -> None:
    store = SqliteStore(file)
    readers = [Reading(store) for _ in range(4)]
    for reader in readers:
        reader.started.wait()
    store.close()
    for reader in readers:
        reader.join()
    assert [type(reader.ended) for reader in readers] == [StoreClosed] * 4
    assert_sound(file)


class Reading(Thread):
    """Reads a store until something stops it."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._store = store
        self.started = Event()
        self.ended: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            while True:
                assert len(self._store.find(Kind.MEMORY)) == 40
                self.started.set()
        except (MemoryMeshError, sqlite3.Error, AssertionError) as error:
            self.ended = error
            self.started.set()
