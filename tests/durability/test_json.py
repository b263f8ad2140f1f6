"""A folder of JSON files: what people read in it, folders of neolata-mem, and what can be wrong
with one."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from stat import S_IMODE
from typing import Any

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
)  # fmt: skip
from memory_mesh.core.model import TOKEN_BYTES, Key, Kind
from memory_mesh.core.ports import no_progress
from memory_mesh.stores import json as json_store
from memory_mesh.stores.files import lock_file
from memory_mesh.stores.json import JsonStore, line_of
from memory_mesh.testing.rows import memory, passage
from stores.files import snapshot

SECRET = 'the quetzal nests in "the" cloud forest'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with two memories in its files, and a third one in its journal, whose process was
    killed."""
    folder = tmp_path / "memory"
    with closing(JsonStore(folder)) as store:
        store.apply([memory("m1", content=SECRET), memory("m2", vector=[1, 0])])
    JsonStore(folder).apply([memory("m3")])
    return folder


@pytest.fixture
def store(folder: Path) -> Iterator[JsonStore]:
    with closing(JsonStore(folder)) as store:
        yield store


def ids(store: JsonStore) -> list[str]:
    return sorted(store.ids(Kind.MEMORY))


def items(folder: Path, name: str) -> list[dict[str, Any]]:
    return json.loads((folder / name).read_bytes()) if (folder / name).exists() else []


# --- the files ---


@pytest.mark.req("GRAPH-72")
def test_memories_links_episodes_clusters_and_conflicts_are_in_files_of_their_own(
    tmp_path: Path,
) -> None:
    claim = {"subject": "Apollo", "predicate": "budget"}
    with MemoryMesh(f"json:///{tmp_path / 'mem'}", agent_id="ana") as mesh:
        one = mesh.graph.store(
            "ana",
            "The budget is 5.",
            claim={**claim, "value": "5"},
            provenance={"source": "user_explicit"},
        )
        two = mesh.graph.store(
            "ana",
            "The budget is 6.",
            claim={**claim, "value": "6"},
            provenance={"source": "inference"},
        )
        lamp = mesh.add("The lamp needs oil")
        mesh.graph.link(one.id, lamp.id, "related")
    folder = tmp_path / "mem"
    assert {row["id"]: row.get("content") for row in items(folder, "memories.json")} == {
        one.id: "The budget is 5.", two.id: "The budget is 6.", lamp.id: "The lamp needs oil",
    }  # fmt: skip
    assert (one.id, lamp.id, "related") in {
        (row["ref"], row["target"], row["link_type"]) for row in items(folder, "links.json")
    }
    conflicts = [
        (row["ref"], row["target"], row["status"])
        for row in items(folder, "pending_conflicts.json")
    ]
    assert conflicts == [(two.id, one.id, "pending")]
    # The active ones.
    assert [episode["memory_ids"] for episode in items(folder, "episodes.json")] == [
        [one.id, lamp.id]
    ]
    assert any(
        {one.id, lamp.id} <= {*cluster["memory_ids"]} for cluster in items(folder, "clusters.json")
    )


def test_a_file_has_one_row_a_line_in_an_order_that_does_not_depend_on_the_writes(
    tmp_path: Path,
) -> None:
    rows = [memory(f"m{n}", ms=n % 3) for n in range(5)]
    files = []
    for name, order in (("a", rows), ("b", rows[::-1])):
        with closing(JsonStore(tmp_path / name)) as store:
            store.apply(order[:2])
            store.apply(order[2:])
        files.append((tmp_path / name / "memories.json").read_text())
    assert files[0] == files[1]
    lines = files[0].splitlines()
    assert (lines[0], lines[-1]) == ("[", "]")
    assert [json.loads(line.rstrip(","))["id"] for line in lines[1:-1]] == [
        "m0",
        "m3",
        "m1",
        "m4",
        "m2",
    ]


def test_a_change_rewrites_only_the_files_of_its_rows(folder: Path) -> None:
    JsonStore(folder).close()
    before = snapshot(folder)
    with closing(JsonStore(folder)) as store:
        store.apply([memory("m4")])
    changed = {name for name, about in snapshot(folder).items() if before[name] != about}
    assert changed == {"memories.json", "journal.jsonl", "episodes.json", "clusters.json"}


def test_what_is_created_is_for_its_owner_only(store: JsonStore, folder: Path) -> None:
    store.compact()
    assert len([*folder.iterdir()]) > 8
    assert [
        path for path in (folder, *folder.rglob("*")) if S_IMODE(path.stat().st_mode) & 0o077
    ] == []


def test_texts_are_searched_for_in_all_files_and_compacting_removes_them(store: JsonStore) -> None:
    journalled = SECRET.replace("quetzal", "toucan")
    store.apply([memory("m4", content=journalled)])
    samples = [SECRET.encode(), journalled.encode(), b"never stored anywhere"]
    assert store.find_bytes(samples).keys() == {*samples[:2]}
    assert not store.apply(deletes=[Key(Kind.MEMORY, "m1"), Key(Kind.MEMORY, "m4")]).bytes_freed
    assert store.has_deleted_bytes()
    assert store.compact()
    assert not store.has_deleted_bytes()
    assert store.find_bytes(samples) == {}
    assert store.find_bytes([b"content of m2"])


@pytest.mark.req("MESH-020")
def test_a_url_of_a_json_store_names_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with MemoryMesh("json:///notes") as mesh:
        mesh.add("The lantern needs oil")
    assert [row["content"] for row in items(tmp_path / "notes", "memories.json")] == [
        "The lantern needs oil"
    ]
    for address in ("json:///notes", f"json:///{tmp_path}/notes", "json:///notes?mode=ro"):
        with MemoryMesh(address) as mesh:
            assert [one.content for one in mesh.search("lantern")] == ["The lantern needs oil"]


# --- changes that were interrupted ---


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.req("MESH-015")
@pytest.mark.parametrize(
    "at",
    ["store.begun", "store.committed", "flush.begun", "flush.memories.json", "flush.committed"],
)
def test_after_a_death_at_any_step_readers_and_writers_see_whole_changes(
    folder: Path, at: str
) -> None:
    def step(name: str) -> None:
        if name == at:
            raise Killed

    with pytest.raises(Killed):
        JsonStore(folder, step=step, flush_bytes=0).apply(
            [memory("m4"), passage("x4", "m4", [1, 0])], [Key(Kind.MEMORY, "m1")]
        )
    passages = [] if at == "store.begun" else ["x4"]
    wanted = ["m1", "m2", "m3"] if at == "store.begun" else ["m2", "m3", "m4"]
    with closing(JsonStore(folder, read_only=True)) as reader, closing(JsonStore(folder)) as store:
        version = reader.version("p")
        assert (ids(reader), ids(store), version) == (
            wanted,
            wanted,
            3 if at == "store.begun" else 6,
        )
        assert reader.ids(Kind.PASSAGE) == store.ids(Kind.PASSAGE) == passages
        store.apply([memory("m5")])
        assert (ids(reader), reader.version("p")) == ([*wanted, "m5"], version + 1)
    with closing(JsonStore(folder)) as store:
        assert (ids(store), store.ids(Kind.PASSAGE), store.damage()) == (
            [*wanted, "m5"],
            passages,
            [],
        )


@pytest.mark.req("MESH-015")
def test_the_end_of_a_journal_that_was_never_acknowledged_is_left_out_and_written_over(
    folder: Path,
) -> None:
    journal = folder / "journal.jsonl"
    for torn in (journal.read_bytes()[-40:-1], b"\0" * 9, b'["00000000",{}]\n'):
        with journal.open("ab") as opened:
            opened.write(torn)
        with closing(JsonStore(folder, read_only=True)) as store:
            assert ids(store) == ["m1", "m2", "m3"]
        JsonStore(folder).apply([memory("again")])
        with closing(JsonStore(folder)) as store:
            assert ids(store) == ["again", "m1", "m2", "m3"]
            store.apply(deletes=[Key(Kind.MEMORY, "again")])


@pytest.mark.parametrize("id_", ["m5", "another"])
def test_a_change_that_its_writer_took_back_is_taken_back_by_readers(
    folder: Path, id_: str
) -> None:
    journal, size = folder / "journal.jsonl", (folder / "journal.jsonl").stat().st_size
    with closing(JsonStore(folder, read_only=True)) as reader:
        JsonStore(folder).apply([memory("m4")])
        assert "m4" in ids(reader)
        os.truncate(journal, size)
        JsonStore(folder).apply([memory(id_)])
        os.utime(journal, ns=(1, 1))
        assert ids(reader) == sorted(["m1", "m2", "m3", id_])


def test_a_full_disk_is_an_error_and_the_change_is_not_there(
    store: JsonStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StoreFull):
            store.apply([memory("m4")])
        assert ids(store) == ["m1", "m2", "m3"]
        assert not store.compact()
    store.apply([memory("m4")])
    assert store.compact()
    assert ids(store) == ["m1", "m2", "m3", "m4"]


def test_a_change_is_kept_though_the_files_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with closing(JsonStore(folder, flush_bytes=0)) as store:
            store.apply([memory("m4")], [Key(Kind.MEMORY, "m1")])
            assert ids(store) == ["m2", "m3", "m4"]
    with closing(JsonStore(folder)) as store:
        assert ids(store) == ["m2", "m3", "m4"]


# --- faults ---


def edited(edit: Callable[[list[dict[str, Any]]], object]) -> Callable[[bytes], bytes]:
    """What a person makes of a file."""
    return lambda data: json.dumps(edit(json.loads(data))).encode()


@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        ("memories.json", lambda data: data[:-9], "memories.json is damaged: .* line 3"),
        ("memories.json", lambda data: b"<<<<<<< HEAD\n" + data, "line 1"),
        ("memories.json", lambda data: b'{"m1": {}}', "not an array"),
        ("memories.json", edited(lambda rows: [*rows, rows[0]]), "m1 is in a wrong file, or twice"),
        ("memories.json", edited(lambda rows: [{**rows[0], "kind": "link"}]), "link"),
        (
            "memories.json",
            edited(lambda rows: [{**rows[0], "importance": "high"}]),
            "importance must be a number",
        ),
        ("memories.json", edited(lambda rows: [{**rows[0], "colour": "red"}]), "no field 'colour'"),
        ("memories.json", edited(lambda rows: ["m1"]), "the row 'm1'"),
        ("memories.json", None, "missing"),
        ("links.json", None, "links.json is damaged: it is missing"),
        (
            "journal.jsonl",
            lambda data: data.replace(b"nonce", b"NONCE", 1),
            "the first line|is damaged",
        ),
        (
            "journal.jsonl",
            lambda data: data.replace(b"content of m3", b"CONTENT of m3") + data[-1:],
            "journal.jsonl is damaged",
        ),
        ("journal.jsonl", lambda data: b"", "the first line"),
        ("journal.jsonl", None, "journal.jsonl is missing"),
    ],
)
def test_a_damaged_or_missing_file_is_told_with_its_name_and_left_as_it_is(
    folder: Path, name: str, damage: Callable[[bytes], bytes] | None, words: str
) -> None:
    if damage:
        (folder / name).write_bytes(damage((folder / name).read_bytes()))
    else:
        (folder / name).unlink()
    before = snapshot(folder)
    with pytest.raises(StoreCorrupt, match=words):
        JsonStore(folder)
    assert snapshot(folder) == before


def test_what_a_person_edits_is_read_by_the_next_opening(folder: Path) -> None:
    file = folder / "memories.json"
    file.write_text(file.read_text().replace("content of m2", "content of mine"))
    with closing(JsonStore(folder)) as store:
        assert store.get(Kind.MEMORY, ["m2"])["m2"].fields["content"] == "content of mine"


def test_a_folder_of_a_newer_version_is_refused(folder: Path) -> None:
    (folder / "journal.jsonl").write_bytes(line_of({"format": 3}))
    with pytest.raises(StoreTooNew, match="format 3"):
        JsonStore(folder)


def test_the_first_write_to_a_folder_of_the_format_without_tokens_raises_its_format(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = folder / "journal.jsonl"
    header, _, rest = journal.read_bytes().partition(b"\n")
    journal.write_bytes(line_of(json.loads(header)[1] | {"format": 1}) + rest)
    before, open_ = snapshot(folder), JsonStore(folder)
    with closing(JsonStore(folder)) as store:
        assert (ids(store), store.is_prepared()) == (["m1", "m2", "m3"], False)
    assert snapshot(folder) == before
    row = memory("m4", vector=[1, 0], tokens=bytes(TOKEN_BYTES))
    JsonStore(folder).apply([row])  # its process was killed
    with closing(JsonStore(folder)) as store:
        assert store.is_prepared()
        assert ids(store) == ["m1", "m2", "m3", "m4"]
        assert store.get(Kind.MEMORY, ["m4"]) == {"m4": row}
        with monkeypatch.context() as earlier:
            earlier.setattr(json_store, "FORMAT", 1)
            with pytest.raises(StoreTooNew, match="format 2"):
                open_.apply([memory("m5")])


def test_damaged_tokens_do_not_keep_a_memory_from_being_read(folder: Path) -> None:
    with closing(JsonStore(folder)) as store:
        store.apply([memory("m4", vector=[0, 1], tokens=bytes(TOKEN_BYTES))])
    file = folder / "memories.json"
    assert [len(one["embedding"]) for one in items(folder, file.name) if "embedding" in one] == [
        2,
        3,
    ]
    file.write_text(file.read_text().replace('"tokens":"AAAA', '"tokens":"'))
    with closing(JsonStore(folder)) as store:
        assert store.get(Kind.MEMORY, ["m4"]) == {"m4": memory("m4", vector=[0, 1])}


@pytest.mark.parametrize("name", ["notes.txt", "data/file"])
def test_a_folder_of_another_program_is_refused_and_left_as_it_is(
    tmp_path: Path, name: str
) -> None:
    file = tmp_path / "theirs" / name
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    before = snapshot(tmp_path)
    for path in (tmp_path / "theirs", file):
        with pytest.raises(StoreForeign):
            JsonStore(path).apply([memory("m1")])
    assert snapshot(tmp_path) == before


def test_reading_makes_no_folder(tmp_path: Path) -> None:
    with MemoryMesh(store=f"json:///{tmp_path / 'new'}") as mesh:
        assert mesh.get_all() == []
    with closing(JsonStore(tmp_path / "new")) as store:
        assert ids(store) == []
    with pytest.raises(StoreMissing):
        JsonStore(tmp_path / "new", read_only=True)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("ends", ["removed", "replaced"])
def test_a_folder_that_is_removed_or_replaced_while_it_is_open_is_told(
    store: JsonStore, folder: Path, ends: str
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
    with closing(JsonStore(folder, read_only=True)) as store:
        for write in (lambda: store.apply([memory("m9")]), store.compact, store.prepare):
            with pytest.raises(StoreReadOnly):
                write()
        assert ids(store) == ["m1", "m2", "m3"]
    assert snapshot(folder) == before


def test_a_folder_that_another_process_writes_to_is_busy_for_writers_and_open_to_readers(
    folder: Path,
) -> None:
    with (
        closing(JsonStore(folder, busy_seconds=0.01)) as store,
        lock_file(folder / ".lock", seconds=1) as is_locked,
    ):
        assert is_locked
        with pytest.raises(StoreBusy):
            store.apply([memory("m9")])
        assert ids(store) == ["m1", "m2", "m3"]


def test_a_reader_that_writers_overtake_again_and_again_waits_for_its_turn(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overtaken, load = [None] * 8, json_store.load
    monkeypatch.setattr(
        json_store, "load", lambda root: overtaken.pop() if overtaken else load(root)
    )
    with lock_file(folder / ".lock", seconds=1), pytest.raises(StoreBusy):
        JsonStore(folder, busy_seconds=0.01)
    assert len(overtaken) == 4
    with closing(JsonStore(folder)) as store:
        assert ids(store) == ["m1", "m2", "m3"]
    assert overtaken == []


@pytest.mark.parametrize("read_only", [False, True])
def test_a_backup_is_a_folder_that_opens(folder: Path, tmp_path: Path, read_only: bool) -> None:
    target = tmp_path / "copies" / "copy"
    with closing(JsonStore(folder, read_only=read_only)) as store:
        size = store.backup(target, no_progress)
        with pytest.raises(InvalidInput, match="exists"):
            store.backup(target, no_progress)
        with pytest.raises(StoreError), closing(JsonStore(tmp_path / "none")) as missing:
            missing.backup(tmp_path / "other", no_progress)
    assert size == sum(path.stat().st_size for path in target.rglob("*") if path.is_file()) > 0
    with closing(JsonStore(target)) as copy:
        assert ids(copy) == ["m1", "m2", "m3"]


# --- folders of neolata-mem ---

CLAIM = {"subject": "server", "predicate": "port", "exclusive": True}
GRAPH = [
    {
        "id": "mem_a", "agent": "kuro", "memory": "The server runs on port 3000",
        "category": "fact", "importance": 0.9, "tags": ["infra"], "embedding": [0.5, 0.25],
        "links": [{"id": "mem_b", "similarity": 0.8}, {"id": "gone"}],
        "created_at": "2026-02-20T10:00:00.000Z", "accessCount": 3, "disputes": 1,
        "claim": {**CLAIM, "value": "3000", "scope": "session", "sessionId": "s1",
                  "validFrom": "2026-01-01"},
        "provenance": {"source": "user_explicit", "corroboration": 2}, "stability": 2.5,
    },
    {
        "id": "mem_b", "agent": "kuro", "memory": "The server runs on port 8080",
        "status": "quarantined", "embedding": None, "links": [{"id": "mem_a", "similarity": 0.8}],
        "created_at": "2026-02-21T10:00:00.000Z", "claim": "unreadable",
    },
    {"id": "mem_b", "memory": "The second of its id, a\u0000b", "created_at": "yesterday",
     "large": 10**30},
]  # fmt: skip
NEOLATA = {
    "graph.json": GRAPH,
    "archived.json": [
        {
            "id": "mem_c",
            "agent": "kuro",
            "memory": "The old port was 22",
            "created_at": "2026-01-01T00:00:00Z",
        }
    ],
    "episodes.json": [{"id": "ep_1", "name": "Deploy", "memoryIds": ["mem_a"]}],
    "clusters.json": [{"id": "cl_1", "label": "Servers", "memoryIds": ["mem_a", "mem_b"]}],
    "pending-conflicts.json": [
        {
            "id": "cf_1",
            "newId": "mem_b",
            "existingId": "mem_a",
            "created_at": "2026-02-21T10:00:00Z",
        },
        {"id": "cf_2", "newId": "gone", "existingId": "mem_a"},
    ],
}


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder that neolata-mem wrote."""
    folder = tmp_path / "neolata-mem-data"
    folder.mkdir()
    for name, contents in NEOLATA.items():
        (folder / name).write_text(
            "\ufeff" * (name == "graph.json") + json.dumps(contents, indent=2)
        )
    return folder


@pytest.mark.req("GRAPH-72")
def test_a_folder_of_neolata_is_read_without_a_change(theirs: Path) -> None:
    before = snapshot(theirs)
    for address in (f"json:///{theirs}", f"json:///{theirs}?mode=ro"):
        with MemoryMesh(address, agent_id="kuro") as mesh:
            assert [one.id for one in mesh.search("which port?")] == ["mem_a"]
            assert [one.id for one in mesh.graph.list_quarantined(agent="kuro")] == ["mem_b"]
    with closing(JsonStore(theirs)) as store:
        rows = store.get(Kind.MEMORY, ["mem_a", "mem_b", "mem_c"])
        a, (link,), (conflict,) = rows["mem_a"], store.find(Kind.LINK), store.find(Kind.CONFLICT)
        assert (
            a.value("category"),
            a.value("importance"),
            a.value("trust"),
            a.value("disputes"),
        ) == ("fact", 0.9, 1.0, 1)
        assert a.value("claim") == {
            **CLAIM,
            "value": "3000",
            "scope": "session",
            "session_id": "s1",
        }
        assert a.value("valid_from") == "2026-01-01T00:00:00.000Z"
        assert a.vector
        assert (a.vector.model, a.vector.dimension, a.used) == (
            "unknown/2",
            2,
            (3, a.value("updated_at")),
        )
        assert a.fields["metadata"]["neolata"] == {
            "accessCount": 3, "stability": 2.5, "episodes": [{"id": "ep_1", "name": "Deploy"}],
            "clusters": [{"id": "cl_1", "label": "Servers"}],
        }  # fmt: skip
        assert rows["mem_b"].fields["metadata"]["neolata"]["claim"] == "unreadable"
        assert rows["mem_c"].value("status") == "archived"
        assert (link.value("ref"), link.value("target"), link.value("similarity")) == (
            "mem_a",
            "mem_b",
            0.8,
        )
        assert (conflict.id, conflict.value("ref"), conflict.value("status")) == (
            "cf_1",
            "mem_b",
            "pending",
        )
        (other,) = {*ids(store)} - rows.keys()
        unnamed = store.get(Kind.MEMORY, [other])[other]
        assert (unnamed.value("content"), unnamed.value("memory_type")) == (
            "The second of its id, a\ufffdb",
            "global",
        )
        assert unnamed.fields["metadata"]["neolata"] == {
            "id": "mem_b",
            "large": str(10**30),
            "clusters": [{"id": "cl_1", "label": "Servers"}],
        }
    assert snapshot(theirs) == before


@pytest.mark.req("GRAPH-72")
def test_the_first_write_converts_a_folder_of_neolata_and_keeps_its_files_until_a_memory_is_erased(
    theirs: Path,
) -> None:
    originals = {name: (theirs / name).read_bytes() for name in NEOLATA}
    with closing(JsonStore(theirs)) as store:
        known = {kind: store.find(kind) for kind in Kind}
        mark, version = store.changes("p").mark, store.data_version()
        store.apply([memory("new")])
        assert (
            store.data_version() != version,
            [key.id for key in store.changes("p", mark).keys or ()],
        ) == (True, ["new"])
    assert {path.name: path.read_bytes() for path in (theirs / "neolata").iterdir()} == originals
    assert not (theirs / "graph.json").exists()
    with closing(JsonStore(theirs)) as store:
        assert {
            kind: [row for row in store.find(kind) if row.id != "new"] for kind in Kind
        } == known
        store.apply([memory("new", revision=2, replaces=1)])
        assert store.compact()
        assert store.find_bytes([b"The old port was 22"])
        store.apply(deletes=[Key(Kind.MEMORY, "mem_c")])
        assert store.compact()
        assert store.find_bytes([b"The old port was 22"]) == {}
    assert not (theirs / "neolata").exists()
    assert "mem_a" in {row["id"] for row in items(theirs, "memories.json")}


@pytest.mark.parametrize(
    "at", ["flush.begun", "flush.memories.json", "flush.records.json", "flush.committed"]
)
def test_a_conversion_that_was_interrupted_is_finished_by_the_next_writer(
    theirs: Path, at: str
) -> None:
    def step(name: str) -> None:
        if name == at:
            raise Killed

    with closing(JsonStore(theirs, read_only=True)) as reader:
        known = ids(reader)
        with pytest.raises(Killed):
            JsonStore(theirs, step=step).apply([memory("new")])
        assert ids(reader) == known
        with closing(JsonStore(theirs)) as store:
            store.apply([memory("new")])
        assert ids(reader) == sorted([*known, "new"])
    assert {path.name for path in (theirs / "neolata").iterdir()} == {*NEOLATA}


@pytest.mark.parametrize(
    "text", ['[{"id": "mem_a", "mem', '{"memories": []}', "[1]", "", "[" * 100_000]
)
def test_damaged_files_of_neolata_are_told_and_left_as_they_are(theirs: Path, text: str) -> None:
    (theirs / "graph.json").write_text(text)
    before = snapshot(theirs)
    with pytest.raises(StoreCorrupt, match=r"graph\.json"):
        JsonStore(theirs).apply([memory("new")])
    assert snapshot(theirs) == before
