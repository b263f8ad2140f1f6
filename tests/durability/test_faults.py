"""Disks that fail: each system call of an operation fails in turn, and what is acknowledged is
synced.

An operation raises one of our errors or is done; the store is as before or after it, sound, and the
operation can be repeated. The program that does so is `faulty.py`; `faulty.c`, which a C compiler
builds, makes the calls fail.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from errno import EACCES, EIO, ENOSPC
from pathlib import Path
from typing import Any

import pytest

from conftest import IN_CI
from memory_mesh import InvalidInput, MemoryMesh, MemoryMeshError, StoreFull
from memory_mesh.stores import files, markdown_files
from memory_mesh.stores.audit_files import AnchorFile, AuditKeyFile
from memory_mesh.stores.files import DiskFolder, append_durably, create_folder
from memory_mesh.stores.hook_files import DiskHookFiles
from memory_mesh.stores.lance import LanceStore
from memory_mesh.stores.markdown_files import DiskTraces

from .children import url
from .faulty import FAULTS, OPERATIONS, Call, Kinds, unsynced
from .sound import assert_sound

PROGRAM = Path(__file__).with_name("faulty.py")
STORES = ("memory.db", "memory.json", "memory.lance")


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that makes calls fail."""
    compiler = shutil.which("cc")
    assert compiler, "this test needs a C compiler: apt-get install gcc libc6-dev"
    built = tmp_path_factory.mktemp("faulty") / "faulty.so"
    source = PROGRAM.with_suffix(".c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", built, source, "-ldl", "-lpthread"], check=True
    )
    return built


def results(
    library: Path, work: Path, runs: Sequence[tuple[str, str, str]], most: int = 0
) -> list[dict[str, Any]]:
    """Make the runs in a process of their own, and return what it says of each."""
    given = json.dumps({"work": str(work), "runs": runs, **({"most": most} if most else {})})
    environ = {**os.environ, "LD_PRELOAD": str(library)}
    done = subprocess.run(
        [sys.executable, PROGRAM], input=given, env=environ, stdout=subprocess.PIPE, text=True,
        check=True, timeout=280
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [tuple(one["run"]) for one in found] == [*runs]
    return found


@pytest.mark.one_in_ci(4)
@pytest.mark.deep
@pytest.mark.req("MESH-015")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("place", STORES)
def test_a_failing_call_is_an_error_or_does_not_matter_and_nothing_is_lost(
    library: Path, tmp_path: Path, place: str, operation: str
) -> None:
    most = (
        (3 if place == "memory.lance" else 8) if IN_CI else 12 if place == "memory.lance" else 100
    )
    found = results(library, tmp_path, [(place, operation, fault) for fault in FAULTS], most)
    assert {one["run"][2]: one["wrong"] for one in found if one["wrong"]} == {}
    assert sum(one["trials"] for one in found) > 5


@pytest.mark.deep
@pytest.mark.req("MESH-015")
@pytest.mark.parametrize("place", STORES)
def test_what_is_acknowledged_is_synced_with_its_names(
    library: Path, tmp_path: Path, place: str
) -> None:
    found = results(library, tmp_path, [(place, operation, "power") for operation in OPERATIONS])
    assert {one["run"][1]: one["wrong"] for one in found if one["wrong"]} == {}


# --- the same without a C compiler, for what was mended ---


def fails(number: int) -> Callable[..., Any]:
    def fail(*_: object) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


def nearly_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next write take half of its bytes, and those after it none."""
    write, calls = os.write, [0]

    def short(opened: int, data: bytes) -> int:
        calls[0] += 1
        return write(opened, data[: len(data) // 2]) if calls[0] == 1 else fails(ENOSPC)()

    monkeypatch.setattr(os, "write", short)


def append_key(folder: Path) -> None:
    AuditKeyFile(folder / "audit.key").add()


def append_anchor(folder: Path) -> None:
    AnchorFile(str(folder / "anchors.jsonl")).write({"anchored_at": "2026-03-01"})


def append_trace(folder: Path) -> None:
    DiskTraces(folder / "traces").append("log.md", b"a trace\n")


def append_letter(folder: Path) -> None:
    DiskHookFiles(folder / "hooks").add_dead_letter({"hook": "a"}, lambda: True)


APPENDS = {
    "key": append_key,
    "anchor": append_anchor,
    "trace": append_trace,
    "letter": append_letter,
}


@pytest.mark.req("MESH-015")
@pytest.mark.parametrize("what", APPENDS)
@pytest.mark.parametrize("fault", ["short", "unsynced"])
def test_what_cannot_be_appended_as_a_whole_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, fault: str
) -> None:
    APPENDS[what](tmp_path)
    APPENDS[what](tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:
        nearly_full(patch) if fault == "short" else patch.setattr(os, "fsync", fails(EIO))
        with pytest.raises(MemoryMeshError):
            APPENDS[what](tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    APPENDS[what](tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} != before


def test_another_process_that_appends_meanwhile_keeps_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "log"
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def other(_: int) -> None:
        file.write_bytes(file.read_bytes() + b"of another\n")
        raise OSError(EIO, "broken")

    monkeypatch.setattr(os, "fsync", other)
    with closing(os.fdopen(opened)), pytest.raises(OSError, match="broken"):
        append_durably(opened, b"ours\n")
    assert file.read_bytes() == b"ours\nof another\n"


@pytest.mark.req("MESH-015")
def test_a_new_folder_is_synced_into_the_one_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(files, "sync", synced.append)
    create_folder(tmp_path / "a" / "b")
    assert synced == [tmp_path, tmp_path / "a"]


def test_a_lock_of_traces_that_cannot_be_taken_is_one_of_our_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = DiskTraces(tmp_path / "traces")
    with traces.locked("a"), traces.locked("a"):
        pass
    monkeypatch.setattr(os, "open", fails(EACCES))
    with (
        pytest.raises(InvalidInput, match="cannot be written: Permission denied"),
        traces.locked("a"),
    ):
        pass


def use_wrongly(address: str, part: str) -> None:
    with MemoryMesh(address, embedder="none") as mesh:
        uses: dict[str, Callable[[], object]] = {
            "lane": lambda: mesh.lane.store("a text", memory_type="nonsense"),
            "graph": lambda: mesh.graph.store("a", "a text", claim={"subject": ""}),
            "notes": lambda: mesh.notes.append("", "", when_to_use=""),
            "traces": lambda: mesh.traces.record("", status="nonsense"),
        }
        uses[part]()


@pytest.mark.parametrize("part", ["lane", "graph", "notes", "traces"])
def test_an_error_of_a_part_that_someone_keeps_does_not_keep_the_store_open(
    tmp_path: Path, part: str
) -> None:
    address = url(tmp_path / "memory.db")
    with pytest.raises(InvalidInput) as kept:
        use_wrongly(address, part)
    # Refused while the store is open with another embedder.
    with MemoryMesh(address, embedder="hash") as other:
        other.add("a text")
    assert kept.value


@pytest.mark.req("TRACE-04")
def test_a_damaged_id_of_a_folder_of_traces_is_an_error_and_no_trace_is_indexed_twice(
    tmp_path: Path,
) -> None:
    with MemoryMesh(
        url(tmp_path / "memory.db"), embedder="none", traces_dir=str(tmp_path / "traces")
    ) as mesh:
        mesh.traces.record("Deploy the shop", steps=["build"], project="shop")
        known = len(mesh.get_all())
        id_ = tmp_path / "traces" / "system" / ".id"
        whole = id_.read_bytes()
        for damaged in (whole[:5], b"", whole[:8] + b"\0\xff" + whole[10:], whole * 2):
            id_.write_bytes(damaged)
            with pytest.raises(InvalidInput, match=r"system/\.id in .* is damaged"):
                mesh.traces.record("Test the shop", project="shop")
            assert len(mesh.get_all()) == known
        id_.write_bytes(whole)
        mesh.traces.record("Test the shop", project="shop")
        assert len(mesh.get_all()) > known


@pytest.mark.req("NOTE-12")
def test_a_note_that_could_not_be_read_once_is_indexed_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryMesh(
        url(tmp_path / "memory.db"), embedder="none", notes_dir=str(tmp_path / "notes")
    ) as mesh:
        mesh.notes.append("Tokens expire", "Refresh them before a deploy.", when_to_use="deploy")
        note = tmp_path / "notes" / "tokens-expire.md"
        monkeypatch.setattr(
            markdown_files, "_RECENT_NS", -1
        )  # no file counts as recent: its mark does not depend on its contents
        note.write_text(note.read_text().replace("Refresh", "Rotate"))
        with monkeypatch.context() as patch:
            patch.setattr(DiskFolder, "read", unreadable)
            assert [fault.what for fault in mesh.notes.sync().faults] == [
                "it cannot be read: Input/output error"
            ]
        assert [found.content for found in mesh.search("rotate tokens")] == [
            "Tokens expire\n\nRotate them before a deploy."
        ]


@pytest.mark.req("MESH-015")
def test_a_file_whose_end_lance_lost_without_an_error_is_written_again(tmp_path: Path) -> None:
    """On a full disk Lance (14.0) may commit a data file without its last bytes, and not say so."""
    file, cuts = tmp_path / "memory.lance", [0]

    def cut(step: str) -> None:
        if step == "flush.memory_entries.appended" and not cuts[0]:
            cuts[0] += 1
            newest = max(
                (file / "memory_entries.lance" / "data").iterdir(),
                key=lambda path: path.stat().st_mtime_ns,
            )
            os.truncate(newest, newest.stat().st_size - 10)

    with (
        closing(LanceStore(file, step=cut)) as store,
        MemoryMesh(store, agent_id="keeper", embedder="none") as mesh,
    ):
        mesh.add("The pump is red.")
        with pytest.raises(StoreFull):
            store.flush()
        assert [memory.content for memory in mesh.get_all()] == ["The pump is red."]
        store.flush()
    assert cuts == [1]
    assert_sound(file)
    with MemoryMesh(url(file), agent_id="keeper", embedder="none") as mesh:
        assert [memory.content for memory in mesh.get_all()] == ["The pump is red."]


def unreadable(*_: object, **__: object) -> bytes:
    raise InvalidInput("it cannot be read: Input/output error") from OSError(
        EIO, "Input/output error"
    )


def test_a_write_or_a_name_without_a_sync_is_found() -> None:
    write, create, rename = (
        Call(Kinds.WRITE, False, "/a/x", ""),
        Call(Kinds.CREATE, False, "/a/x", ""),
        Kinds.RENAME,
    )
    sync, folder = Call(Kinds.SYNC, False, "/a/x", ""), Call(Kinds.SYNC, False, "/a", "")
    assert unsynced([create, write, sync, folder], []) == []
    assert unsynced([write, sync], ["/a/x"]) == []
    assert unsynced([create, sync, write, folder], []) == ["/a/x is written and not synced"]
    assert unsynced([create, write, sync], []) == ["/a/x itself is new in /a"]
    moved = [create, write, Call(rename, False, "/a/x", "/a/y"), folder]
    assert unsynced(moved, []) == ["/a/y is written and not synced"]
