"""A program that repeats an operation with one failing system call after another: `python
faulty.py`, options as a line of JSON.

`faulty.c` must be preloaded. Each trial begins with a copy of the same folder. The operation must
raise an error of memory-mesh, or be done; afterwards the folder is as before or as after the
operation, and the operation can be repeated.
"""

import ctypes
import errno
import json
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from durability.children import url
from durability.sound import assert_sound
from memory_mesh import MemoryMesh, Sound, markdown_writethrough
from memory_mesh.core.errors import MemoryMeshError
from memory_mesh.core.model import Kind
from memory_mesh.stores import open_store


class Kinds(IntFlag):
    """Kinds of system calls, as in `faulty.c`."""

    CREATE = 1
    WRITE = 2
    SYNC = 4
    RENAME = 8
    REMOVE = 16
    TRUNCATE = 32
    FOLDER = 64
    READ = 128


ONCE, FOREVER, SHORT = range(3)
CHANGES = Kinds(127)

# How a disk fails: the error, how often, and which calls.
FAULTS: Mapping[str, tuple[int, int, int]] = {
    "full": (errno.ENOSPC, FOREVER, Kinds.CREATE | Kinds.WRITE | Kinds.FOLDER),
    "short": (errno.ENOSPC, SHORT, Kinds.WRITE),
    "broken": (errno.EIO, ONCE, CHANGES),
    "dead": (errno.EIO, FOREVER, CHANGES),
    "denied": (errno.EACCES, ONCE, Kinds.CREATE | Kinds.RENAME | Kinds.REMOVE | Kinds.FOLDER),
    "unreadable": (errno.EIO, ONCE, Kinds.READ),
}


class Call(NamedTuple):
    """A system call that was made; without a kind, a mark of this program."""

    kind: int
    failed: bool
    path: str
    other: str


class _Call(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_int),
        ("failed", ctypes.c_int),
        ("path", ctypes.c_char * 240),
        ("other", ctypes.c_char * 240),
    )


class Disk:
    """The preloaded library."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None)
        self._library.faulty_call.restype = ctypes.POINTER(_Call)

    @contextmanager
    def failing(self, folder: Path, at: int = 0, fault: str = "broken") -> Iterator[None]:
        """Let the call with a number fail; 0 stands for none."""
        self._library.faulty_arm(os.fsencode(folder), at, *FAULTS[fault])
        try:
            yield
        finally:
            self._library.faulty_arm(b"", 0, 0, 0, 0)

    @property
    def count(self) -> int:
        """How many calls could have failed."""
        return int(self._library.faulty_count())

    def mark(self, text: str) -> None:
        self._library.faulty_mark(text.encode())

    def calls(self) -> list[Call]:
        made = (
            self._library.faulty_call(at).contents for at in range(self._library.faulty_calls())
        )
        return [
            Call(one.kind, bool(one.failed), one.path.decode(), one.other.decode()) for one in made
        ]


# --- what is done ---

State = Any
KEEPER = "The lighthouse keeper counts gulls"
LINTER = "From now on I want you to always run the linter before you tell me you're done."


@dataclass(frozen=True)
class Operation:
    """What is done to a folder, and what tells how far it is. A repeated operation changes
    nothing more."""

    act: Callable[[Path, Path], object]
    before: Callable[[Path, Path], object] = lambda folder, store: keep(store)
    state: Callable[[Path, Path], State] = lambda folder, store: memories(store)
    steps: bool = False  # it may be done in part, and repeating it finishes it


def mesh_on(store: Path, **options: Any) -> MemoryMesh:
    return MemoryMesh(
        url(store), agent_id="keeper", **{"embedder": "hash", "redaction": "mask", **options}
    )


def keep(store: Path) -> None:
    with mesh_on(store) as mesh:
        mesh.add_many(
            [
                (KEEPER, {"tags": ["coast"]}),
                *((f"The shelf holds book{n} about the sea", None) for n in range(6)),
            ]
        )


def memories(store: Path) -> State:
    """Texts, revisions and states of all memories, whatever their ids are."""
    if not store.exists() or (store.suffix == ".db" and not store.stat().st_size):
        return []
    with closing(open_store(url(store))) as opened:
        rows = opened.find(Kind.MEMORY)
    return sorted(
        [
            str(row.value("content")),
            row.revision,
            str(row.value("status")),
            row.value("times_observed"),
        ]
        for row in rows
    )


def one(mesh: MemoryMesh, text: str) -> str:
    return next(found.id for found in mesh.get_all() if found.content == text)


def _acknowledged() -> None: ...


def call(perform: Callable[[MemoryMesh], object], **options: Any) -> Callable[[Path, Path], object]:
    def act(folder: Path, store: Path) -> object:
        with mesh_on(
            store, **{name: str(folder / value) for name, value in options.items()}
        ) as mesh:
            done = perform(mesh)
            _acknowledged()
            return done

    return act


def empty(mesh: MemoryMesh) -> None:
    for found in mesh.get_all():
        if found.content == "The shelf holds book1 about the sea":
            mesh.update(found.id, content="The shelf is empty")


def erase(mesh: MemoryMesh) -> None:
    for found in mesh.get_all():
        if found.content == KEEPER:
            mesh.erase(found.id)


def delete_and_compact(mesh: MemoryMesh) -> None:
    for found in mesh.get_all():
        if found.content == "The shelf holds book1 about the sea":
            mesh.delete(found.id)
    mesh.compact()


def fill_again(folder: Path, store: Path) -> None:
    keep(store)
    with mesh_on(store) as mesh:
        mesh.delete(one(mesh, KEEPER))
        (folder / "export.jsonl").write_text("".join(f"{line}\n" for line in mesh.export()))
        mesh.delete(one(mesh, "The shelf holds book0 about the sea"))


def nearly_same(folder: Path, store: Path) -> None:
    keep(store)
    with mesh_on(store) as mesh:
        mesh.graph.store_many(
            "keeper", [{"text": text} for text in ("Lunch is at noon.", "The lunch is at noon.")]
        )


def traces_of(folder: Path, store: Path) -> State:
    with mesh_on(store, traces_dir=str(folder / "traces")) as mesh:
        found = mesh.traces.get_all(limit=100, archived=True)
        numbers = [(one.primary_goal, one.number) for one in mesh.traces.experiences(limit=100)]
        return [
            sorted(trace.goal for trace in found),
            sorted(numbers),
            [str(fault) for fault in found.faults],
        ]


def record(mesh: MemoryMesh, goal: str = "Deploy the shop") -> None:
    mesh.traces.record(
        goal,
        steps=["build"],
        project="shop",
        tool_results={"make": "built"},
        decisions=["Use make."],
        duration_ms=1,
    )


def record_once(mesh: MemoryMesh) -> None:
    if not mesh.traces.get_all(limit=5):
        record(mesh)


def import_again(folder: Path, store: Path) -> None:
    call(lambda mesh: mesh.import_file(folder / "export.jsonl"))(folder, store)


def anchor(folder: Path, store: Path) -> None:
    call(lambda mesh: mesh.audit_anchor(folder / "anchors.jsonl"))(folder, store)


def notes_of(folder: Path, store: Path) -> State:
    with mesh_on(store, notes_dir=str(folder / "notes")) as mesh:
        found = mesh.notes.load()
        titles = [sorted(note.title for note in found), [str(fault) for fault in found.faults]]
    # A sync that failed after it had stored a memory is repeated, and counts the note as seen
    # again.
    return [*titles, [text for text, *_ in memories(store)]]


def note(mesh: MemoryMesh) -> None:
    known = {found.title for found in mesh.notes.load()}
    if "Tokens expire" not in known:
        mesh.notes.append(
            "Tokens expire", "Refresh them before a deploy.", when_to_use="deploy|token"
        )


def backed_up(folder: Path, store: Path) -> State:
    copy = folder / f"copy{store.suffix}"
    return memories(copy) if copy.exists() else []


def back_up(folder: Path, store: Path) -> None:
    copy = folder / f"copy{store.suffix}"
    if not copy.exists():
        with mesh_on(store) as mesh:
            mesh.backup(copy)
            _acknowledged()


def keys(folder: Path, store: Path) -> State:
    """How many keys there are; each was made whole, and what they sealed can be verified."""
    with mesh_on(store) as mesh:
        assert [verdict for verdict in mesh.verify() if not isinstance(verdict, Sound)] == []
    lines = (folder / "home" / "audit.key").read_text().splitlines()
    assert {len(line) for line in lines} == {64}
    return min(len(lines), 2)


def rekey(mesh: MemoryMesh) -> None:
    mesh.audit_rekey()
    mesh.add(KEEPER, {"tags": ["coast"]}, idempotency_key="after")


def hooked(folder: Path, store: Path) -> State:
    """The entries of the day, whole; an event that was not delivered waits."""
    files = sorted((folder / "log").glob("*.md"))
    lines = [line for file in files for line in file.read_text().splitlines() if line]
    assert all(line.startswith(("# ", "- ")) for line in lines), lines
    assert all(line.endswith("door") for line in lines if line.startswith("- ")), lines
    return memories(store)


def hook(folder: Path, store: Path) -> None:
    with mesh_on(store, writethrough=[markdown_writethrough(folder / "log")]) as mesh:
        mesh.add("The tide table hangs by the door", idempotency_key="one")
        _acknowledged()


def anchors(folder: Path, store: Path) -> State:
    file = folder / "anchors.jsonl"
    # All can be read.
    return (
        [sorted(json.loads(line)) for line in file.read_text().splitlines()][:1]
        if file.exists()
        else []
    )


CAPTURED = [{"role": "user", "content": "Hi there!"}, {"role": "user", "content": LINTER}]

OPERATIONS: Mapping[str, Operation] = {
    "first": Operation(call(lambda mesh: mesh.add(KEEPER, idempotency_key="first")),
                       before=lambda folder, store: None),
    "add": Operation(
        call(lambda mesh: mesh.add("The tide table hangs by the door", idempotency_key="one"))
    ),
    "add_many": Operation(
        call(lambda mesh: mesh.add_many(
            [("A red buoy drifts", None), ("A green buoy drifts", None)], idempotency_key="two",
        ))
    ),
    "observe": Operation(
        call(lambda mesh: mesh.add(KEEPER, {"tags": ["coast"]}, idempotency_key="three"))
    ),
    "update": Operation(call(empty)),
    "erase": Operation(call(erase)),
    "compact": Operation(call(delete_and_compact), steps=True),
    "import": Operation(import_again, before=fill_again, steps=True),
    "consolidate": Operation(call(lambda mesh: mesh.graph.consolidate()), before=nearly_same,
                             steps=True),
    "capture": Operation(
        call(lambda mesh: mesh.lane.on_session_event("session.idle", CAPTURED, session_id="s")),
        steps=True,
    ),
    "backup": Operation(back_up, state=backed_up),
    "note": Operation(call(note, notes_dir="notes"), state=notes_of, steps=True),
    "trace": Operation(call(record_once, traces_dir="traces"), state=traces_of, steps=True),
    "archive": Operation(
        call(lambda mesh: mesh.traces.archive("shop"), traces_dir="traces"),
        before=call(
            lambda mesh: [record(mesh, goal) for goal in ("Deploy the shop", "Test the shop")],
            traces_dir="traces",
        ),
        state=traces_of,
    ),
    "rekey": Operation(call(rekey), state=keys, steps=True),
    "hook": Operation(hook, state=hooked),
    "anchor": Operation(anchor, state=anchors),
}  # fmt: skip


# --- trials ---


@dataclass
class Bench:
    """A folder with the state before an operation, and a copy for each trial at the same path."""

    work: Path
    place: str
    operation: Operation
    disk: Disk

    @property
    def folder(self) -> Path:
        return self.work / "trial"

    @property
    def store(self) -> Path:
        return self.folder / self.place

    def begin(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        if (self.work / "whole").exists():
            shutil.copytree(self.work / "whole", self.folder)
        else:
            self.folder.mkdir()

    def prepare(self) -> None:
        """Make what every trial begins with, and remember the state before and after the
        operation."""
        self.begin()
        self.operation.before(self.folder, self.store)
        shutil.copytree(self.folder, self.work / "whole")
        self.initial = self.state()
        self.begin()
        self.act()
        self.final = self.state()

    def act(self, acknowledged: Callable[[], None] = lambda: None) -> None:
        """Do it. It is acknowledged when its method returns, before the store is closed."""
        global _acknowledged
        _acknowledged = acknowledged
        self.operation.act(self.folder, self.store)

    def files(self) -> set[str]:
        """The names of all files and folders, as calls have them."""
        return {str(path)[len(str(self.folder)) :] for path in self.folder.rglob("*")}

    def state(self) -> State:
        return self.operation.state(self.folder, self.store)

    def count(self, fault: str) -> int:
        self.begin()
        with self.disk.failing(self.folder, 0, fault):
            self.act()
        return self.disk.count

    def trial(self, fault: str, at: int) -> Iterator[str]:
        """Yield what is wrong after the call with the number `at` has failed."""
        self.begin()
        error: Exception | None = None
        with self.disk.failing(self.folder, at, fault):
            try:
                self.act()
            except Exception as raised:  # noqa: BLE001  (each error but those of memory-mesh is reported)
                error = raised
        if error and not isinstance(error, MemoryMeshError):
            yield f"raised {type(error).__name__}: {error}"
        if error and "\n" in str(error):
            yield f"an error of several lines: {error}"
        try:
            yield from self.after(error)
        except Exception as raised:  # noqa: BLE001
            yield f"afterwards {type(raised).__name__}: {raised}"

    def after(self, error: Exception | None) -> Iterator[str]:
        found = self.state()
        if error is None and found != self.final:
            yield f"acknowledged, and not there: {found}"
        if not self.operation.steps and found not in (self.initial, self.final):
            yield f"half done: {found}"
        if found or self.initial:
            assert_sound(self.store)
        self.act()
        if (found := self.state()) != self.final:
            yield f"repeated, and not done: {found}, expected {self.final}"
        assert_sound(self.store)


def trials(bench: Bench, fault: str, most: int) -> dict[str, object]:
    """Let each call of an operation fail in turn, or `most` of them evenly chosen; return how
    many, and what was wrong."""
    count = bench.count(fault)
    tried = range(1, count + 1, max(1, -(-count // most)))
    wrong = []
    for at in tried:
        if found := [*bench.trial(fault, at)]:
            made = next((call for call in bench.disk.calls() if call.failed), None)
            wrong.append([at, f"{Kinds(made.kind).name} {made.path}" if made else "read", found])
    return {"calls": count, "trials": len(tried), "wrong": wrong}


# --- what was synced ---

_VOLATILE = ("-shm", ".lock", "/lock")  # rebuilt or empty


def unsynced(calls: Sequence[Call], known: Collection[str]) -> list[str]:
    """Return what a power cut could take away: files whose last write, and names whose creation,
    no sync followed."""
    dirty: dict[str, str] = {}
    names: set[str] = {*known}
    for call in calls:
        folder = call.path.rpartition("/")[0]
        match call.kind:
            case Kinds.TRUNCATE if call.path.endswith("-wal"):
                pass  # all of it is in the file already, and to read it again does no harm
            case Kinds.WRITE | Kinds.TRUNCATE:
                dirty[call.path] = "is written and not synced"
            case Kinds.SYNC:
                dirty = {
                    path: why
                    for path, why in dirty.items()
                    if path != call.path and why != f"is new in {call.path or '/'}"
                }
            case Kinds.CREATE | Kinds.FOLDER if call.path not in names:
                names.add(call.path)
                dirty[f"{call.path} itself"] = f"is new in {folder or '/'}"
            case Kinds.RENAME:
                dirty.pop(f"{call.path} itself", None)
                if call.path in dirty:
                    dirty[call.other] = dirty.pop(call.path)
                names.add(call.other)
                dirty[f"{call.other} itself"] = f"is new in {call.other.rpartition('/')[0] or '/'}"
            case Kinds.REMOVE:
                dirty = {
                    path: why
                    for path, why in dirty.items()
                    if path not in (call.path, f"{call.path} itself")
                }
                names.discard(call.path)
    return [
        f"{path} {why}"
        for path, why in sorted(dirty.items())
        if not path.removesuffix(" itself").endswith(_VOLATILE)
    ]


def after_a_power_cut(bench: Bench) -> list[str]:
    """Return what is not on the disk when an operation has been acknowledged."""
    bench.begin()
    known = bench.files()
    new = set[str]()

    def acknowledged() -> None:
        bench.disk.mark("acknowledged")
        new.update(bench.files() - known)

    with bench.disk.failing(bench.folder, 0, "broken"):
        bench.act(acknowledged)
    calls = bench.disk.calls()
    end = next(at for at, call in enumerate(calls) if not call.kind)
    # Lance renames its files by system calls that are not seen. Those that are new when it is
    # acknowledged must be synced.
    synced = {call.path for call in calls[:end] if call.kind == Kinds.SYNC}
    tables = (
        path for path in new if path.startswith("/memory.lance/") and path.count(".lance") > 1
    )
    lost = [f"{path} is new and not synced" for path in tables if path not in synced]
    return lost + [fault for fault in unsynced(calls[:end], known) if "/.tmp" not in fault]


def main(*, work: str, runs: Sequence[tuple[str, str, str]], most: int = 1_000_000) -> None:
    """Make these runs, each a store, an operation and a fault; the fault `power` counts syncs."""
    os.environ["MEMORY_MESH_HOME"] = str(Path(work) / "trial" / "home")
    disk, prepared = Disk(), tuple[str, str]()
    for place, operation, fault in runs:
        if prepared != (place, operation):
            shutil.rmtree(Path(work) / "whole", ignore_errors=True)
            bench, prepared = (
                Bench(Path(work), place, OPERATIONS[operation], disk),
                (place, operation),
            )
            bench.prepare()
        wrong = (
            {"wrong": after_a_power_cut(bench)} if fault == "power" else trials(bench, fault, most)
        )
        print(json.dumps({"run": [place, operation, fault], **wrong}), flush=True)


if __name__ == "__main__":
    main(**json.loads(sys.stdin.readline()))
