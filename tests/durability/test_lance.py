"""The folder of a LanceDB store: what other programs read in it, and what is damaged, full,
closed or of others."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from stat import S_IMODE

import lance
import pyarrow as pa
import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import (
    InvalidInput,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreMissing,
    StoreReadOnly,
    StoreReplaced,
    StoreTooNew,
    StoreUnavailable,
)
from memory_mesh.core.model import TOKEN_BYTES, Key, Kind, Vector
from memory_mesh.core.ports import no_progress
from memory_mesh.stores import base, open_store
from memory_mesh.stores.files import locked
from memory_mesh.stores.lance import LanceStore, journal
from memory_mesh.stores.lance.journal import latest_version
from memory_mesh.stores.lance.schema import MEMORIES, memories_v2
from memory_mesh.testing.rows import memory, plain, query
from stores.files import snapshot

from .children import Child, url
from .sound import assert_sound

M1, SECRET = Key(Kind.MEMORY, "m1"), 'the "quetzal"\nnests'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with two memories in its tables and one in its journal."""
    folder = tmp_path / "memory.lance"
    with closing(LanceStore(folder)) as store:
        store.apply(
            [
                memory("m1", vector=[1, 0], content=SECRET),
                memory("m2", vector=[0, 1]),
                plain(Kind.BLOCK, "b1"),
            ]
        )
    store = LanceStore(folder)
    store.apply([memory("m3", ["lantern"])])
    return folder


@pytest.fixture
def store(folder: Path) -> Iterator[LanceStore]:
    with closing(LanceStore(folder)) as store:
        yield store


def ids(store: LanceStore) -> list[str]:
    return sorted(store.ids(Kind.MEMORY))


def own(folder: Path, name: str) -> Path:
    return folder / journal.OWN / name


# --- other programs ---


@pytest.mark.req("MESH-032")
def test_other_programs_read_the_tables_with_the_columns_of_the_document(folder: Path) -> None:
    table = lance.dataset(str(folder / "memory_entries.lance"))
    assert table.schema.names[: len(memories_v2())] == memories_v2().names
    rows = {row["id"]: row for row in table.to_table().to_pylist()}
    assert [rows["m1"]["content"], rows["m1"]["vector"]] == [SECRET, [1.0, 0.0]]
    assert rows.keys() == {"m1", "m2"}  # the third one is in the journal
    LanceStore(folder).close()
    LanceStore(folder).compact()
    assert lance.dataset(str(folder / "memory_entries.lance")).count_rows() == 3


@pytest.mark.deep
@pytest.mark.req("MESH-032")
def test_lancedb_reads_our_rows_and_searches_our_vectors(store: LanceStore, folder: Path) -> None:
    import lancedb

    store.compact()
    table = lancedb.connect(str(folder)).open_table("memory_entries")
    assert table.count_rows() == 3
    assert [
        row["id"] for row in table.search([0.9, 0.1]).distance_type("cosine").limit(2).to_list()
    ] == ["m1", "m2"]
    assert [row["content"] for row in table.search().where("id = 'm1'").to_list()] == [SECRET]


@pytest.mark.deep
def test_memories_of_a_v2_table_that_lancedb_made_are_found(tmp_path: Path) -> None:
    import lancedb

    row = dict.fromkeys(memories_v2().names)
    row |= {
        "id": "mem_1760000000000_00000a",
        "vector": [0.5] * 384,
        "content": "The quetzal nests in a hollow tree",
    }
    row |= {
        "metadata": '{"type": "event"}',
        "created_at": 1_760_000_000_000,
        "memory_type": "global",
        "access_count": 3,
    }
    data = pa.Table.from_pylist([row], schema=memories_v2())
    lancedb.connect(str(tmp_path / "theirs")).create_table("memory_entries", data)
    before = snapshot(tmp_path)
    with MemoryMesh(db_dir=str(tmp_path / "theirs")) as mesh:
        (found,) = mesh.search("where does the quetzal nest")
        assert (found.id, found.metadata["type"]) == (row["id"], "event")
        assert snapshot(tmp_path) == before  # a read changes nothing
        mesh.add("The tree is old")
        assert len(mesh.get_all()) == 2
    table = lancedb.connect(str(tmp_path / "theirs")).open_table("memory_entries")
    assert sorted(table.to_arrow()["content"].to_pylist()) == [
        "The quetzal nests in a hollow tree",
        "The tree is old",
    ]


def test_what_another_program_writes_while_the_store_is_open_is_found_and_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_mesh.stores.lance.store._CHECKED_FOR", 0)
    with closing(LanceStore(folder)) as store:
        mark, version = store.changes("p").mark, store.data_version()
        table = lance.dataset(str(folder / "memory_entries.lance"))
        table.add_columns([pa.field("rating", pa.int64())])
        row = {
            "content": "The toucan calls",
            "metadata": "{}",
            "created_at": 1_760_000_000_000,
            "rating": 5,
        }
        theirs = [{**dict.fromkeys(table.schema.names), **row, "id": id_} for id_ in ("late", "m1")]
        lance.write_dataset(
            pa.Table.from_pylist(theirs, schema=table.schema), table.uri, mode="append"
        )
        assert store.data_version() != version
        assert store.changes("p", mark).keys is None
        (other,) = {*ids(store)} - {"late", "m1", "m2", "m3"}  # the second m1 got an id of its own
        known, mark = store.find(Kind.MEMORY), store.changes("p").mark
        store.apply([memory("m4")])
        assert [key.id for key in store.changes("p", mark).keys or ()] == ["m4"]
    with closing(LanceStore(folder)) as store:
        assert [row for row in store.find(Kind.MEMORY) if row.id != "m4"] == known
        assert store.get(Kind.MEMORY, [other])[other].fields["metadata"] == {"original_id": "m1"}
    rows = lance.dataset(str(folder / "memory_entries.lance")).to_table(
        columns=["id", "partition", "rating"]
    )
    assert rows["partition"].null_count == 0
    assert {row["id"]: row["rating"] for row in rows.to_pylist()}["late"] == 5


@pytest.mark.req("MESH-021")
def test_db_dir_opens_the_folder_of_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryMesh(db_dir=str(tmp_path / "rfc")) as mesh:
        mesh.add("The lantern needs oil")
    assert (tmp_path / "rfc" / "memory_entries.lance").is_dir()
    monkeypatch.chdir(tmp_path)
    for address in ("lancedb:///rfc", f"lancedb:///{tmp_path}/rfc", "lancedb:///rfc?mode=ro"):
        with MemoryMesh(store=address) as mesh:
            assert [one.content for one in mesh.get_all()] == ["The lantern needs oil"]


def test_without_its_packages_the_store_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("memory_mesh.stores.lance")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "lance", None)
    with pytest.raises(StoreUnavailable, match=r"pip install 'memory-mesh\[lance\]'"):
        open_store(f"lancedb:///{tmp_path / 'new'}")


# --- bytes ---


def test_texts_are_searched_for_in_tables_and_journal_and_compacting_removes_them(
    store: LanceStore,
) -> None:
    journalled = SECRET.replace("quetzal", "toucan")
    store.apply([memory("m4", content=journalled)])
    samples = [SECRET.encode(), journalled.encode(), b"never stored anywhere"]
    assert store.find_bytes(samples).keys() == {*samples[:2]}
    assert not store.apply(deletes=[M1, Key(Kind.MEMORY, "m4")]).bytes_freed
    assert store.has_deleted_bytes()
    assert store.find_bytes(samples)
    assert store.compact()
    assert not store.has_deleted_bytes()
    assert store.find_bytes(samples) == {}
    assert store.find_bytes([b"content of m2"])


def test_bytes_that_could_not_be_removed_are_reported_and_removed_by_the_next_opening(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object, **options: object) -> None:
        raise OSError("LanceError(IO): Input/output error (os error 5)")

    store = LanceStore(folder)
    store.apply(deletes=[M1])
    with monkeypatch.context() as patched:
        patched.setattr(lance.LanceDataset, "cleanup_old_versions", fail)
        assert not store.compact()
        assert store.has_deleted_bytes()
        store.close()
    with closing(LanceStore(folder, read_only=True)) as reader:
        assert reader.has_deleted_bytes()
        assert reader.find_bytes([SECRET.encode()])
    with closing(LanceStore(folder)) as store:
        assert not store.has_deleted_bytes()
        assert store.find_bytes([SECRET.encode()]) == {}


@pytest.mark.deep
def test_small_files_are_merged_and_old_versions_removed_while_the_store_is_used(
    tmp_path: Path,
) -> None:
    with closing(LanceStore(tmp_path / "memory", flush_rows=1)) as store:
        for n in range(70):
            store.apply([memory(f"m{n}")])
        table = lance.dataset(str(tmp_path / "memory" / "memory_entries.lance"))
        assert len(table.get_fragments()) <= 26
        assert len(table.versions()) <= 62
        assert len(ids(store)) == 70


def test_what_is_created_is_for_its_owner_only(store: LanceStore, folder: Path) -> None:
    store.compact()
    assert len([*folder.rglob("*")]) > 10
    assert [
        path for path in (folder, *folder.rglob("*")) if S_IMODE(path.stat().st_mode) & 0o077
    ] == []


# --- vectors ---


def test_the_first_vectors_decide_the_dimension_of_the_table_and_others_are_kept_beside_it(
    tmp_path: Path,
) -> None:
    with closing(LanceStore(tmp_path / "memory", flush_rows=1)) as store:
        store.apply([memory("none")])
        store.apply([memory("two", vector=[1, 0]), memory("three", vector=[1, 0, 0])])
        store.apply([memory("one more", vector=[0, 1])])
        schema = lance.dataset(str(tmp_path / "memory" / "memory_entries.lance")).schema
        assert schema.field("vector").type.list_size == 2
        assert [hit.id for hit in store.nearest(Kind.MEMORY, query(1, 0), limit=9)] == [
            "two",
            "one more",
        ]
        assert [hit.id for hit in store.nearest(Kind.MEMORY, query(1, 0, 0), limit=9)] == ["three"]
        assert store.get(Kind.MEMORY, ["three"])["three"].vector == Vector.of("unit", [1, 0, 0])


# --- faults ---


def test_a_folder_of_a_newer_version_is_refused(folder: Path) -> None:
    state = json.loads(own(folder, "state.json").read_text())
    own(folder, "state.json").write_text(json.dumps(state | {"format": 3}))
    with pytest.raises(StoreTooNew, match="format 3"):
        LanceStore(folder)


def test_the_first_write_to_a_folder_of_the_format_without_tokens_raises_its_format(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = json.loads(own(folder, "state.json").read_text())
    own(folder, "state.json").write_text(json.dumps(state | {"format": 1}))
    for table in folder.glob("*.lance"):
        lance.dataset(str(table)).drop_columns(["tokens"])
    state["tables"] = {name: version + 1 for name, version in state["tables"].items()}
    own(folder, "state.json").write_text(json.dumps(state | {"format": 1}))
    before = snapshot(folder)
    open_ = LanceStore(folder)
    with closing(LanceStore(folder)) as store:
        assert (sorted(store.ids(Kind.MEMORY)), store.is_prepared()) == (["m1", "m2", "m3"], False)
        assert store.get(Kind.MEMORY, ["m1"])["m1"].vector == Vector.of("unit", [1, 0])
    assert snapshot(folder) == before
    row = memory("m4", vector=[1, 0], tokens=bytes(TOKEN_BYTES))
    store = LanceStore(folder)
    store.apply([row])
    with monkeypatch.context() as earlier:
        earlier.setattr(journal, "FORMAT", 1)
        with pytest.raises(StoreTooNew, match="format 2"):
            open_.apply([memory("m5")])
    store.close()
    with closing(LanceStore(folder)) as store:
        assert store.is_prepared()
        assert sorted(store.ids(Kind.MEMORY)) == ["m1", "m2", "m3", "m4"]
        assert store.get(Kind.MEMORY, ["m4"]) == {"m4": row}


def test_a_folder_of_the_format_without_tokens_can_be_copied_and_compacted(
    folder: Path, tmp_path: Path
) -> None:
    state = json.loads(own(folder, "state.json").read_text())
    own(folder, "state.json").write_text(json.dumps(state | {"format": 1}))
    with closing(LanceStore(folder)) as store:
        assert store.backup(tmp_path / "copy", no_progress) > 0
        assert store.compact()
        assert store.is_prepared()


def test_a_damaged_table_is_told_by_its_name_and_other_tables_work(folder: Path) -> None:
    for file in folder.glob("memory_entries.lance/data/*"):
        file.write_bytes(os.urandom(2000))
    with closing(LanceStore(folder)) as store:
        with pytest.raises(StoreCorrupt, match="memory_entries"):
            store.find(Kind.MEMORY)
        assert store.ids(Kind.BLOCK) == ["b1"]
        assert (
            [fault for fault in store.damage() if "memory_entries" in fault] == store.damage() != []
        )


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("state.json", lambda data: data[:-9]),
        ("state.json", lambda data: b"[]"),
        ("state.json", None),
        ("journal-1", lambda data: data.replace(b"lantern", b"LANTERN") + data),
        ("journal-1", None),
    ],
)
def test_a_damaged_or_missing_file_beside_the_tables_is_told(
    folder: Path, name: str, damage: Callable[[bytes], bytes] | None
) -> None:
    file = own(folder, name)
    if damage:
        file.write_bytes(damage(file.read_bytes()))
    else:
        file.unlink()
    with pytest.raises(StoreCorrupt, match=name):
        LanceStore(folder).find(Kind.MEMORY)


@pytest.mark.parametrize("whole", [False, True])
def test_a_table_that_is_missing_or_older_than_the_state_is_told(folder: Path, whole: bool) -> None:
    table = folder / "memory_entries.lance"
    if whole:
        shutil.rmtree(table)
    else:
        # The newest has the lowest number.
        min(table.glob("_versions/*.manifest"), key=lambda file: int(file.stem)).unlink()
    with pytest.raises(StoreCorrupt, match="memory_entries"):
        LanceStore(folder).find(Kind.MEMORY)


@pytest.mark.req("MESH-015")
def test_the_end_of_a_journal_that_was_never_acknowledged_is_left_out_and_written_over(
    folder: Path,
) -> None:
    file = own(folder, "journal-1")
    for torn in (file.read_bytes()[:40], b"\x07"):
        with file.open("ab") as opened:
            opened.write(torn)
        with closing(LanceStore(folder, read_only=True)) as store:
            assert ids(store) == ["m1", "m2", "m3"]
    store = LanceStore(folder)
    store.apply([memory("m4")])
    with closing(LanceStore(folder, read_only=True)) as other:
        assert ids(other) == ["m1", "m2", "m3", "m4"]


@pytest.mark.req("MESH-015")
def test_a_flush_that_a_power_cut_left_unreadable_is_undone_by_the_next_writer(
    folder: Path,
) -> None:
    before = latest_version(folder, MEMORIES)
    started = {
        table: latest_version(folder, MEMORIES) for table in ("memory_entries", "yamo_blocks")
    }
    own(folder, "flushing.json").write_text(json.dumps({"generation": 1, "tables": started}))
    newer = folder / "memory_entries.lance" / "_versions" / f"{2**64 - 2 - before}.manifest"
    newer.write_bytes(b"")
    shutil.copytree(folder / "yamo_blocks.lance", folder / "synthesized_skills.lance")
    with closing(LanceStore(folder, read_only=True)) as reader:
        assert ids(reader) == ["m1", "m2", "m3"]
    with closing(LanceStore(folder)) as store:
        store.apply([memory("m4")])
        assert not newer.exists()
        assert not (folder / "synthesized_skills.lance").exists()
    with closing(LanceStore(folder)) as store:
        assert ids(store) == ["m1", "m2", "m3", "m4"]
        assert store.damage() == []


@pytest.mark.parametrize("name", ["notes.txt", "data/file"])
def test_a_folder_of_another_program_is_refused_and_left_as_it_is(
    tmp_path: Path, name: str
) -> None:
    file = tmp_path / "theirs" / name
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    before = snapshot(tmp_path)
    for path in (tmp_path / "theirs", file):
        with pytest.raises(StoreForeign, match="not a folder of LanceDB"):
            LanceStore(path).apply([memory("m1")])
    assert snapshot(tmp_path) == before


def test_reading_makes_no_folder(tmp_path: Path) -> None:
    with MemoryMesh(store=f"lancedb:///{tmp_path / 'new'}") as mesh:
        assert mesh.get_all() == []
    with closing(LanceStore(tmp_path / "new")) as store:
        assert ids(store) == []
    with pytest.raises(StoreMissing):
        LanceStore(tmp_path / "new", read_only=True)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("ends", ["removed", "replaced"])
def test_a_folder_that_is_removed_or_replaced_while_it_is_open_is_told(
    store: LanceStore, folder: Path, ends: str
) -> None:
    shutil.copytree(folder, folder.with_name("copy"))
    shutil.rmtree(folder)
    if ends == "replaced":
        folder.with_name("copy").rename(folder)
    for use in (lambda: store.apply([memory("m9")]), lambda: store.find(Kind.MEMORY)):
        with pytest.raises(StoreReplaced, match=ends):
            use()
    assert store.was_replaced()


def test_a_store_opened_for_reading_refuses_writes_and_stays_as_it_is(folder: Path) -> None:
    before = snapshot(folder)
    with closing(LanceStore(folder, read_only=True)) as store:
        for write in (lambda: store.apply([memory("m9")]), store.compact, store.prepare):
            with pytest.raises(StoreReadOnly):
                write()
        assert ids(store) == ["m1", "m2", "m3"]
    assert snapshot(folder) == before


def test_a_folder_that_another_process_writes_to_is_busy_for_writers_and_open_to_readers(
    folder: Path,
) -> None:
    with (
        closing(LanceStore(folder, busy_seconds=0.01)) as store,
        locked(folder, folder / journal.OWN / journal.LOCK, busy_seconds=1),
    ):
        with pytest.raises(StoreBusy):
            store.apply([memory("m9")])
        assert ids(store) == ["m1", "m2", "m3"]


@pytest.mark.deep
def test_a_full_disk_is_an_error_and_nothing_stored_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "memory.lance"
    calls = [("add", {"content": f"The lamp number {n} needs oil"}) for n in range(6)]
    large = ("add", {"content": "oil " * 50_000})
    with Child(
        "cramped",
        store=url(file),
        agent="keeper",
        most_bytes=40_000,
        calls=[*calls, large, calls[0]],
    ) as child:
        *answers, refused, last = child.rest()
        assert child.end() == 0
    assert refused == {"ok": False, "error": "StoreFull"}
    assert all(answer["ok"] for answer in (*answers, last))
    assert_sound(file)
    with MemoryMesh(store=url(file), agent_id="keeper") as mesh:
        assert len(mesh.get_all()) == 6


def test_a_change_is_kept_though_the_tables_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError("LanceError(IO): No space left on device (os error 28)")

    store = LanceStore(folder, flush_rows=1)
    with monkeypatch.context() as patched:
        patched.setattr(lance, "write_dataset", full)
        store.apply([memory("m4")], [M1])
        assert ids(store) == ["m2", "m3", "m4"]
        assert not store.compact()
        store.close()
    with closing(LanceStore(folder)) as again:
        assert ids(again) == ["m2", "m3", "m4"]
        assert again.compact()
        assert again.damage() == []


def test_a_journal_that_cannot_be_written_is_an_error_and_the_change_is_not_there(
    store: LanceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StoreFull):
            store.apply([memory("m4")])
        assert ids(store) == ["m1", "m2", "m3"]
    store.apply([memory("m4")])
    assert ids(store) == ["m1", "m2", "m3", "m4"]


# --- backup ---


@pytest.mark.parametrize("read_only", [False, True])
def test_a_backup_is_a_folder_that_opens(folder: Path, tmp_path: Path, read_only: bool) -> None:
    target = tmp_path / "copies" / "copy"
    with closing(LanceStore(folder, read_only=read_only)) as store:
        size = store.backup(target, no_progress)
        with pytest.raises(InvalidInput, match="exists"):
            store.backup(target, no_progress)
    assert size == sum(path.stat().st_size for path in target.rglob("*") if path.is_file()) > 0
    assert [path.name for path in target.parent.iterdir()] == ["copy"]
    with closing(LanceStore(target)) as copy:
        assert ids(copy) == ["m1", "m2", "m3"]
        copy.apply(deletes=[M1])
    with closing(LanceStore(folder)) as store:
        assert ids(store) == ["m1", "m2", "m3"]


def test_a_backup_that_fails_leaves_nothing(
    store: LanceStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(InvalidInput, match="cannot be written"):
        store.backup(tmp_path / "copy", no_progress)
    assert [path.name for path in tmp_path.iterdir()] == ["memory.lance"]
    with pytest.raises(StoreError), closing(LanceStore(tmp_path / "none")) as missing:
        missing.backup(tmp_path / "copy", no_progress)


# --- the log of moves ---


@pytest.mark.deep
def test_a_long_log_of_moves_is_trimmed_and_leads_on_from_recent_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_MIN_TRIMMED", 1_000)
    monkeypatch.setattr(base, "KEPT_MOVES", 12)
    with closing(LanceStore(tmp_path / "memory", flush_rows=1)) as store:
        marks = []
        for n in range(40):
            store.apply([memory(f"m{n}"), memory(f"n{n}", partition="q")])
            marks.append(store.changes("p").mark)
        assert [*own(tmp_path / "memory", "").glob("moves-*")] != [
            own(tmp_path / "memory", "moves-0")
        ]
        assert store.changes("p", marks[0]).keys is None
        assert [key.id for key in store.changes("p", marks[-10]).keys or ()] == [
            f"m{n}" for n in range(31, 40)
        ]
        assert (store.version("p"), store.version("q")) == (40, 40)


def test_a_partition_with_many_moves_gets_a_folder_for_its_index(tmp_path: Path) -> None:
    with closing(LanceStore(tmp_path / "memory")) as store:
        store.apply([memory("m")])
        assert store.index_folder is None
        store.apply([memory(f"m{n}") for n in range(1_000)])
        assert store.index_folder == own(tmp_path / "memory", "index")
