"""Files that another process removes between two looks at them: nothing fails, or the error is one
of ours.

`Remover` takes the file away just before the first, second, … time that this process touches it or
lists its folder. So every gap between two system calls is tried, without a race that must be won.
"""

import builtins
import io
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.api.settings import load
from memory_mesh.core.errors import StoreBusy, StoreMissing, StoreReplaced, StoreUnavailable
from memory_mesh.core.model import Kind
from memory_mesh.interfaces.cli import demo, doctor
from memory_mesh.interfaces.hosts import install
from memory_mesh.models import model_files
from memory_mesh.stores import neolata, open_store
from memory_mesh.stores.hook_files import DiskHookFiles
from memory_mesh.stores.lance.journal import OWN, journal_of, read_state
from memory_mesh.stores.lance.migration import migrate_folder
from memory_mesh.stores.markdown_files import DiskInstructions, DiskNotes, DiskTraces
from memory_mesh.stores.sqlite.opening import has_log

MOMENTS = (1, 2, 3, 4)
TOUCHES = [
    *((os, name) for name in ("stat", "lstat", "open", "scandir", "listdir")),
    *((shutil, "disk_usage"), (io, "open"), (builtins, "open")),
]
LISTINGS = [(os, "scandir"), (os, "listdir")]


class Remover:
    """Removes a file or folder before it is touched for the nth time."""

    def __init__(self, path: Path, moment: int) -> None:
        self._path, self._left = os.path.realpath(path), moment
        self.touched = 0

    def touch(self) -> None:
        self.touched, self._left = self.touched + 1, self._left - 1
        if self._left == 0:
            if os.path.isdir(self._path):
                shutil.rmtree(self._path)
            else:
                os.unlink(self._path)

    @contextmanager
    def watching(self, patch: pytest.MonkeyPatch) -> Iterator[None]:
        is_inside = threading.local()

        def wrap(real: Callable[..., Any], place: str, *, after: bool) -> Callable[..., Any]:
            def call(at: Any = ".", *args: Any, **named: Any) -> Any:
                is_it = not isinstance(at, int) and os.path.abspath(os.fsdecode(at)) == place
                if (
                    not is_it
                    or is_inside.__dict__.get("yes")
                    or threading.current_thread() is not threading.main_thread()
                ):
                    return real(at, *args, **named)
                is_inside.yes = True
                try:
                    if not after:
                        self.touch()
                    found = real(at, *args, **named)
                    if after:  # what was listed is touched next
                        found = Listed(found)
                        self.touch()
                    return found
                finally:
                    is_inside.yes = False

            return call

        with patch.context() as patched:
            for module, name in TOUCHES:
                patched.setattr(module, name, wrap(getattr(module, name), self._path, after=False))
            for module, name in LISTINGS:
                patched.setattr(
                    module,
                    name,
                    wrap(getattr(module, name), os.path.dirname(self._path), after=True),
                )
            yield


class Listed(list[Any]):
    """What a folder contained, as `os.scandir` and `os.listdir` return it."""

    def __init__(self, found: Any) -> None:
        super().__init__(found)

    def __enter__(self) -> "Listed":
        return self

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None: ...

    def __next__(self) -> Any:
        if not self:
            raise StopIteration
        return self.pop(0)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        while self:
            yield self.pop(0)


# --- the places ---

Place = tuple[Path, Callable[[], object]]  # what vanishes, and who looks at it


def log(folder: Path) -> Place:
    """Where `make test` failed on a fresh clone: the last reader removes the log while another
    opens the file."""
    (folder / "memory.db-wal").write_bytes(b"pages")
    return folder / "memory.db-wal", lambda: has_log(folder / "memory.db")


def filled(folder: Path, name: str) -> Path:
    scheme = {"db": "sqlite", "json": "json", "lance": "lancedb"}[name.partition(".")[2]]
    with MemoryMesh(f"{scheme}:///{folder}/{name}", embedder="none") as mesh:
        mesh.add("The lamp is green")
    return folder / name


def rows_of(url: str) -> list[str]:
    with closing(open_store(url)) as store:
        return [row.id for row in store.find(Kind.MEMORY)]


def database(folder: Path) -> Place:
    file = filled(folder, "memory.db")
    return file, lambda: rows_of(f"sqlite:///{file}")


def json_folder(folder: Path) -> Place:
    (folder / "empty").mkdir()
    return folder / "empty", lambda: rows_of(f"json:///{folder}/empty")


def json_file(folder: Path) -> Place:
    file = filled(folder, "memory.json")
    (file / "note.txt").write_text("of a person")
    return file / "note.txt", lambda: asked(f"json:///{file}", lambda store: store._files())


def asked(url: str, question: Callable[[Any], object]) -> None:
    with closing(open_store(url)) as store:
        question(store)


def foreign_file(folder: Path) -> Place:
    for name in neolata.FILES:
        (folder / name).write_text("[]")
    return folder / neolata.FILES[-1], lambda: neolata.read(folder)


def lance_folder(folder: Path) -> Place:
    (folder / "empty.lance").mkdir()
    return folder / "empty.lance", lambda: rows_of(f"lancedb:///{folder}/empty.lance")


def lance_file(folder: Path) -> Place:
    file = filled(folder, "memory.lance")
    (file / OWN / "part").mkdir()
    (file / OWN / "part" / "one").write_bytes(b"bytes")
    return file / OWN / "part" / "one", lambda: asked(
        f"lancedb:///{file}", lambda store: store._size()
    )


def lance_part(folder: Path) -> Place:
    file, _ = lance_file(folder)
    return file.parent, lambda: asked(
        f"lancedb:///{folder}/memory.lance", lambda store: store._size()
    )


def lance_journal(folder: Path) -> Place:
    file = filled(folder, "memory.lance")
    state = read_state(file / OWN)
    assert state is not None
    journal = journal_of(file / OWN, state.generation)
    journal.write_bytes(b"record")
    return journal, lambda: migrate_folder(file, now=0)


def index_folder(folder: Path) -> Place:
    file = filled(folder, "memory.db")
    (folder / "memory.db-index" / "part").mkdir(parents=True)
    (folder / "memory.db-index" / "part" / "one.index").write_bytes(b"bytes")
    return folder / "memory.db-index" / "part", lambda: asked(
        f"sqlite:///{file}", lambda store: store.find_bytes([b"something else"])
    )


def day(folder: Path) -> Place:
    for name in ("2026-03-01.md", "2026-03-02.md"):
        (folder / name).write_text("- 12:00:00 **store** `mem_1` tea\n")
    return folder / "2026-03-01.md", lambda: DiskHookFiles(folder / "hooks").forget(
        str(folder), {"mem_1"}
    )


def days(folder: Path) -> Place:
    (folder / "days").mkdir()
    return folder / "days", lambda: DiskHookFiles(folder / "hooks").forget(
        str(folder / "days"), {"mem_1"}
    )


def letters(folder: Path) -> Place:
    files = DiskHookFiles(folder / "hooks")
    files.add_dead_letter({"event": "store"}, lambda: True)
    return folder / "hooks" / "dead-letters.jsonl", lambda: files.keep_dead_letters(
        lambda letter: False
    )


def note(folder: Path) -> Place:
    (folder / "tea.md").write_bytes(b"green")
    return folder / "tea.md", lambda: DiskNotes(folder, cwd=folder).change(
        "tea.md", lambda old: (old or b"") + b"!"
    )


def notes(folder: Path) -> Place:
    (folder / "notes").mkdir()
    return folder / "notes", lambda: expect((), DiskNotes(folder / "notes", cwd=folder).files())


def expect(expected: object, found: Any) -> None:
    assert (type(expected)(found) if isinstance(expected, tuple) else found) == expected


def instructions(folder: Path) -> Place:
    (folder / "AGENTS.md").write_text("Be brief.")
    return folder / "AGENTS.md", lambda: [
        expect(None, one.fault) for one in DiskInstructions(folder).find([], known=["AGENTS.md"])
    ]


def trace(folder: Path) -> Place:
    (folder / "short" / "one").mkdir(parents=True)
    (folder / "short" / "one" / "trace.json").write_text("{}")
    return folder / "short" / "one", lambda: DiskTraces(folder).remove("short/one")


def traces(folder: Path) -> Place:
    (folder / "short").mkdir(parents=True)
    return folder / "short", lambda: DiskTraces(folder).remove("short/one")


def host(folder: Path) -> Place:
    (folder / ".claude").mkdir()
    (folder / ".claude" / "settings.json").write_text("{}")
    return folder / ".claude" / "settings.json", lambda: planned(folder)


def planned(folder: Path) -> None:
    path, text, _ = install._planned(folder, "claude-code", removing=False)
    install._write(folder, path, text)


def unhooked(folder: Path) -> Place:
    (folder / ".claude").mkdir()
    (folder / ".claude" / "settings.json").write_text("{}")
    return folder / ".claude" / "settings.json", lambda: install._write(
        folder, folder / ".claude" / "settings.json", None
    )


def private(folder: Path) -> Place:
    (folder / "home" / "inner").mkdir(mode=0o700, parents=True)
    (folder / "home" / "inner" / "part").touch(mode=0o600)
    settings = load({}, environ={"MEMORY_MESH_HOME": str(folder / "home")})
    return folder / "home" / "inner" / "part", lambda: doctor.permissions(settings)


def private_folder(folder: Path) -> Place:
    path, look = private(folder)
    return path.parent, look


def counted(folder: Path) -> Place:
    (folder / "store").mkdir()
    (folder / "store" / "part").write_bytes(b"bytes")
    return folder / "store" / "part", lambda: doctor._bytes_in(folder / "store")


def space(folder: Path) -> Place:
    (folder / "inner").mkdir()
    return folder / "inner", lambda: doctor._space(folder / "inner" / "memory.db")


def shown(folder: Path) -> Place:
    (folder / "memory.db-wal").write_bytes(b"pages")
    stage = demo.Stage(folder, None, None, has_model=False)  # type: ignore[arg-type]
    return folder / "memory.db-wal", stage.bytes_on_disk


def download(folder: Path) -> Place:
    (folder / "part").write_bytes(b"bytes")
    return folder / "part", lambda: model_files._size_of(folder)


def own_settings(folder: Path) -> Place:
    (folder / "memory-mesh.toml").write_text('agent_id = "me"\n')
    return folder / "memory-mesh.toml", lambda: load(
        {}, environ={"MEMORY_MESH_HOME": str(folder)}, cwd=folder
    )


PLACES: list[Callable[[Path], Place]] = [
    *(
        log,
        database,
        json_folder,
        json_file,
        foreign_file,
        lance_folder,
        lance_file,
        lance_part,
        lance_journal,
        index_folder,
    ),
    *(
        day,
        days,
        letters,
        note,
        notes,
        instructions,
        trace,
        traces,
        host,
        unhooked,
        private,
        private_folder,
        counted,
        space,
    ),
    *(shown, download, own_settings),
]
# Their own file or folder is gone: an error of the store says so. A journal with records is another
# error.
GONE = (StoreReplaced, StoreMissing, StoreUnavailable)
MAY_FAIL = {
    database: GONE,
    json_folder: GONE,
    lance_folder: GONE,
    lance_journal: (StoreBusy, StoreMissing),
}
WRITERS = (note, day, letters, host)  # they write the file again


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
@pytest.mark.sample(len(PLACES) * len(MOMENTS))
def test_a_file_that_vanishes_between_two_looks_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Callable[[Path], Place], moment: int
) -> None:
    path, look = place(tmp_path)
    assert path.exists()
    remover = Remover(path, moment)
    with remover.watching(monkeypatch), suppress(MAY_FAIL.get(place, ())):
        look()
    assert remover.touched  # the look came to the file
    assert not path.exists() or remover.touched < moment or place in WRITERS


@pytest.mark.parametrize(
    "place", [log, counted, private, lance_file, foreign_file], ids=lambda place: place.__name__
)
@pytest.mark.sample(5)
def test_a_file_that_comes_and_goes_beside_its_readers_is_no_error(
    tmp_path: Path, place: Callable[[Path], Place]
) -> None:
    path, look = place(tmp_path)
    ended, changes, data, part = threading.Event(), [0], path.read_bytes(), tmp_path / "part"

    def come_and_go() -> None:
        while not ended.is_set():
            path.unlink()
            part.write_bytes(data)
            part.chmod(0o600)
            part.rename(path)  # at once: half a file is another fault
            changes[0] += 1

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(100):
            look()
    finally:
        ended.set()
        thread.join()
    assert changes[0]
