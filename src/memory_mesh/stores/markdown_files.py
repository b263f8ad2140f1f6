"""The Markdown files on disk: notes, traces, and the files of coding agents.

People edit notes and traces too: they are read as they are. Notes are replaced as a whole, traces
are appended to or replaced. The files of traces are for their owner only.
"""

import gzip
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from threading import local

from memory_mesh.core.errors import InvalidInput, StoreBusy, shown
from memory_mesh.core.intake import Selection
from memory_mesh.core.learning import FILE
from memory_mesh.core.notes import MAX_BYTES
from memory_mesh.core.notes.files import MARKDOWN, NAMES, RULE, RULES, SKILLS
from memory_mesh.core.ports import NoteFile
from memory_mesh.stores.files import (
    OUT,
    DiskFolder,
    append_durably,
    create_folder,
    is_within,
    lock_file,
    replace_file,
    sync,
)
from memory_mesh.system import open_regular

# --- notes ---

_LOCK = ".lock"
_BUSY_SECONDS = 10.0
# Of a file that was changed so recently, the next change may have the same time.
_RECENT_NS = 2_000_000_000
_Make = Callable[[bytes | None], bytes | None]
_MARKDOWN = Selection((".md",), recursive=False)


class DiskNotes:
    """The files of a folder; implements `core.ports.NoteFiles`."""

    def __init__(self, folder: Path, *, cwd: Path) -> None:
        self._folder, self._cwd = folder, cwd

    @property
    def root(self) -> str:
        return Path(os.path.realpath(self._folder)).as_posix()

    def files(self) -> Sequence[NoteFile]:
        try:
            folder = DiskFolder(str(self._folder))
        except InvalidInput as error:
            return (NoteFile("", fault=str(error)),) if os.path.lexists(self._folder) else ()
        root = self.root
        return [
            NoteFile(one.source, self._mark(root, one.source), one.fault)
            for one in folder.files(_MARKDOWN)
        ]

    def read(self, name: str) -> bytes:
        with suppress(OSError):  # reported below
            if (size := os.stat(os.path.join(self.root, name)).st_size) > MAX_BYTES:
                raise InvalidInput(
                    f"it has {size:,} bytes", expected=f"at most {MAX_BYTES:,}", remedy="split it"
                )
        return DiskFolder(str(self._folder)).read(name, max_bytes=MAX_BYTES)

    def change(self, name: str, make: _Make) -> None:
        path = Path(self.root) / name
        try:
            create_folder(path.parent)
            with lock_file(path.parent / _LOCK, seconds=_BUSY_SECONDS) as is_locked:
                if not is_locked:
                    raise StoreBusy(
                        f"{path.parent}: another process writes notes", remedy="try again"
                    )
                while not self._replace(path, make):
                    pass
        except OSError as error:
            what = (
                f"{shown(name, max_length=200)} cannot be written in {self.root}: {error.strerror}"
            )
            raise InvalidInput(what, remedy="check the folder and its permissions") from error

    def agent(self, path: str) -> str:
        file = self._cwd / Path(path).expanduser()
        try:
            return DiskFolder(str(file.parent)).read(file.name, max_bytes=MAX_BYTES).decode()
        except (InvalidInput, UnicodeDecodeError) as error:
            what = (
                f"the configuration of an agent, {shown(path, max_length=200)}, cannot be "
                f"read: {error}"
            )
            raise InvalidInput(what, expected="a YAML file with name and memory") from None

    def _mark(self, root: str, name: str) -> str:
        path = os.path.join(root, name)
        try:
            stat = os.stat(path)
            mark = f"{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}"
            if time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) > _RECENT_NS:
                return mark
            return f"{mark}:{sha256(self.read(name)).hexdigest()[:16]}"
        except (OSError, InvalidInput):  # it is read again, and then reported
            return ""

    def _replace(self, path: Path, make: _Make) -> bool:
        """Replace the file; return False if somebody else changed it meanwhile."""
        if path.is_symlink():
            raise InvalidInput(
                f"{path.name} is a link",
                expected="a file, or none",
                remedy="give the note another title",
            )
        mark, root = self._mark(self.root, path.name), self.root
        try:
            old = self.read(path.name)
        except InvalidInput:
            if os.path.lexists(path):
                raise
            old = None
        new = make(old)
        if new == b"":
            path.unlink(missing_ok=True)
            sync(path.parent)
        if not new:
            return True
        return replace_file(path, new, unless=lambda: self._mark(root, path.name) != mark)


# --- traces ---

# Of a file, uncompressed: a small archive may unpack to more than the memory holds.
MAX_TRACE_BYTES = 256 * 1024 * 1024
_TRACE_LOCK = ".lock"
_TRACE_BUSY_SECONDS = 30.0
# A pipe is not waited for.
_FLAGS = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"))


class DiskTraces:
    """The files below a folder; implements `core.ports.TraceFiles`."""

    def __init__(self, folder: Path) -> None:
        self._root = os.path.realpath(folder)
        self._locks = local()

    @property
    def root(self) -> str:
        return Path(self._root).as_posix()

    def names(self, folder: str, *, folders: bool = False) -> list[str]:
        with self._errors(folder, "read"):
            try:
                with os.scandir(self._path(folder)) as found:
                    entries = [
                        entry
                        for entry in found
                        if not entry.name.startswith(".") and not entry.is_symlink()
                    ]
                    return sorted(entry.name for entry in entries if entry.is_dir() == folders)
            except (FileNotFoundError, NotADirectoryError):
                return []

    def mark(self, name: str) -> str:
        with self._errors(name, "read"):
            try:
                stat = os.stat(self._path(name))
            except (FileNotFoundError, NotADirectoryError):
                return ""
        return f"{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}:{stat.st_ino}"

    def read(self, name: str) -> bytes:
        with self._errors(name, "read"):
            try:
                with open_regular(self._path(name)) as file:
                    data = (gzip.GzipFile(fileobj=file) if name.endswith(".gz") else file).read(
                        MAX_TRACE_BYTES + 1
                    )
            except (FileNotFoundError, NotADirectoryError):
                return b""
            except (EOFError, gzip.zlib.error) as error:  # type: ignore[attr-defined]
                raise InvalidInput(
                    f"{name} in {self.root} is damaged: {error}", remedy="restore it from a backup"
                ) from error
        if len(data) > MAX_TRACE_BYTES:
            raise InvalidInput(
                f"{name} in {self.root} is too large",
                expected=f"at most {MAX_TRACE_BYTES:,} bytes, uncompressed",
            )
        return data

    def create_folder(self, name: str) -> None:
        with self._errors(name, "created"):
            create_folder(self._path(name))

    def append(self, name: str, data: bytes) -> None:
        # A file may hold several.
        data = gzip.compress(data, mtime=0) if name.endswith(".gz") else data
        with self._errors(name, "written"):
            path = self._path(name)
            create_folder(path.parent)
            is_new = not path.exists()
            opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _FLAGS, 0o600)
            try:
                append_durably(opened, data)
            finally:
                os.close(opened)
            if is_new:
                sync(path.parent)

    def write(self, name: str, data: bytes) -> None:
        with self._errors(name, "written"):
            path = self._path(name)
            create_folder(path.parent)
            # Without a time, equal texts have equal archives.
            replace_file(path, gzip.compress(data, mtime=0) if name.endswith(".gz") else data)

    def remove(self, name: str) -> None:
        with self._errors(name, "removed"):
            path = self._path(name)
            while path.is_dir():  # again if another process removed a part of it meanwhile
                with suppress(FileNotFoundError):
                    shutil.rmtree(path)
            path.unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                sync(path.parent)

    @contextmanager
    def locked(self, folder: str) -> Iterator[None]:
        held: set[str] = self._locks.__dict__.setdefault("held", set())
        if folder in held:
            yield
            return
        with ExitStack() as stack:
            with self._errors(folder, "written"):
                create_folder(path := self._path(folder))
                is_locked = stack.enter_context(
                    lock_file(path / _TRACE_LOCK, seconds=_TRACE_BUSY_SECONDS)
                )
            if not is_locked:
                raise StoreBusy(f"{path}: another process writes traces", remedy="try again")
            held.add(folder)
            stack.callback(held.discard, folder)
            yield

    def _path(self, name: str) -> Path:
        """Return the path of a file below the root. A link on the way, which may lead elsewhere,
        is refused."""
        path = os.path.join(self._root, name) if name else self._root
        if os.path.realpath(path) != os.path.normpath(path) or not f"{path}{os.sep}".startswith(
            f"{self._root}{os.sep}"
        ):
            raise InvalidInput(
                f"{shown(name, max_length=200)} in {self.root} is a link",
                expected="a file of its own",
            )
        return Path(path)

    @contextmanager
    def _errors(self, name: str, done: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            what = (
                f"{shown(name, max_length=200)} in {self.root} cannot be {done}: "
                f"{error.strerror or error}"
            )
            raise InvalidInput(
                what, remedy="check the folder of traces and its permissions"
            ) from error


# --- files of coding agents ---
# They are only read, and nothing outside the project is.

_RULES = Selection((RULE,), recursive=True)


class DiskInstructions(DiskNotes):
    """The files for coding agents in a folder; implements `core.notes.files.InstructionFiles`."""

    def __init__(self, project: Path) -> None:
        super().__init__(project, cwd=project)

    @property
    def root(self) -> str:
        # Another name of the folder: what is imported from it is apart from its notes, which
        # erasures may edit.
        return f"{super().root}/."

    def find(self, paths: Sequence[str], known: Collection[str]) -> Sequence[NoteFile]:
        found: dict[str, NoteFile] = {}
        for path in paths or (".",):
            name = self._name(path)
            listed = list(self._listed(name))
            if (
                not listed
                and name != "."
                and not any(one == name or one.startswith(f"{name}/") for one in known)
            ):
                what = f"nothing to import at {shown(path, max_length=200)}"
                raise InvalidInput(
                    what,
                    expected="a Markdown file, or a folder with CLAUDE.md, AGENTS.md, "
                    ".cursor/rules or skills",
                )
            found |= {one.name: one for one in listed}
        for name in known:
            found |= {
                one.name: one
                for one in self._at(
                    name.rstrip("/"), self._directory if name.endswith("/") else self._file
                )
            }
        # A file comes before the links to it, which are left out.
        return [
            found[name]
            for name in sorted(found, key=lambda name: (os.path.islink(self._path(name)), name))
        ]

    def change(self, name: str, make: Callable[[bytes | None], bytes | None]) -> None:
        raise InvalidInput(f"{shown(name, max_length=200)} is only read", remedy="edit it by hand")

    def _name(self, path: str) -> str:
        """Return the path from the project."""
        root = os.path.realpath(self._folder)
        full = os.path.normpath(os.path.join(root, os.path.expanduser(path)))
        if "\0" in path or not is_within(full, root):
            raise InvalidInput(
                f"{shown(path, max_length=200)} is outside the project",
                expected=f"a path within {root}",
            )
        return Path(os.path.relpath(full, root)).as_posix()

    def _listed(self, name: str) -> Iterator[NoteFile]:
        """Yield the file of this name, or what a folder of this name has."""
        if not os.path.isdir(self._path(name)):
            yield from self._at(name, self._file) if name.endswith(MARKDOWN) else ()
            return
        if name != ".":
            yield from self._at(name, self._skills)
        yield from self._at(name, self._rules) if f"/{name}".endswith(f"/{RULES}") else ()
        places = (
            [(one, self._file) for one in NAMES]
            + [(RULES, self._rules)]
            + [(one, self._skills) for one in SKILLS]
        )
        for place, listed in places:
            yield from self._at(Path(name, place).as_posix(), listed)

    def _at(self, name: str, listed: Callable[[str], Iterator[NoteFile]]) -> Iterator[NoteFile]:
        """Yield what is at a place; nothing if it does not exist, and a fault if it is outside
        the project."""
        path = os.path.join(self.root, name)
        if os.path.lexists(path) and not is_within(
            os.path.realpath(path), os.path.realpath(self._folder)
        ):
            yield NoteFile(name, fault=OUT)
            return
        try:
            os.stat(path)
            yield from listed(name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            yield NoteFile(name, fault=f"it cannot be read: {error.strerror}")

    def _file(self, name: str) -> Iterator[NoteFile]:
        is_regular = S_ISREG(os.stat(self._path(name)).st_mode)
        yield NoteFile(name, fault=None if is_regular else "it is not a regular file")

    def _directory(self, name: str) -> Iterator[NoteFile]:
        yield NoteFile(f"{name}/")

    def _skills(self, name: str) -> Iterator[NoteFile]:
        folder = self._path(name)
        if any(one.is_file() for one in (folder / FILE, *folder.glob(f"*/{FILE}"))):
            yield from self._directory(name)

    def _rules(self, name: str) -> Iterator[NoteFile]:
        try:
            listed = list(DiskFolder(str(self._path(name))).files(_RULES))
        except InvalidInput as error:
            yield NoteFile(name, fault=str(error))
            return
        for one in listed:
            yield NoteFile(f"{name}/{one.source.rstrip('/')}", fault=one.fault)

    def _path(self, name: str) -> Path:
        return Path(self.root, name)
