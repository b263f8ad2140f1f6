"""The Markdown files of notes on disk, which people edit too: they are read as they are, and replaced as a whole."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from memory_mesh.core.errors import InvalidInput, StoreBusy, shown
from memory_mesh.core.file_ports import NoteFile
from memory_mesh.core.intake import Selection
from memory_mesh.core.notes import MAX_BYTES
from memory_mesh.stores.files import DiskFolder, create_folder, lock_file, replace_file, sync

_LOCK = ".lock"
_BUSY_SECONDS = 10.0
_RECENT_NS = 2_000_000_000  # of a file that was changed so recently, the next change may have the same time
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
            folder = self._open()
        except InvalidInput as error:
            return (NoteFile("", fault=str(error)),) if os.path.lexists(self._folder) else ()
        root = self.root
        return [NoteFile(one.source, self._mark(root, one.source), one.fault) for one in folder.files(_MARKDOWN)]

    def read(self, name: str) -> bytes:
        with suppress(OSError):  # reported below
            if (size := os.stat(os.path.join(self.root, name)).st_size) > MAX_BYTES:
                raise InvalidInput(f"it has {size:,} bytes", expected=f"at most {MAX_BYTES:,}", remedy="split it")
        return self._open().read(name, max_bytes=MAX_BYTES)

    def _read_if_any(self, path: Path) -> bytes | None:
        try:
            return self.read(path.name)
        except InvalidInput:
            if os.path.lexists(path):
                raise
            return None

    def change(self, name: str, make: _Make) -> None:
        path = Path(self.root) / name
        try:
            create_folder(path.parent)
            with _locked(path.parent / _LOCK):
                while not self._replace(path, make):
                    pass
        except OSError as error:
            what = f"{shown(name, max_length=200)} cannot be written in {self.root}: {error.strerror}"
            raise InvalidInput(what, remedy="check the folder and its permissions") from error

    def agent(self, path: str) -> str:
        file = self._cwd / Path(path).expanduser()
        try:
            return DiskFolder(str(file.parent)).read(file.name, max_bytes=MAX_BYTES).decode()
        except (InvalidInput, UnicodeDecodeError) as error:
            what = f"the configuration of an agent, {shown(path, max_length=200)}, cannot be read: {error}"
            raise InvalidInput(what, expected="a YAML file with name and memory") from None

    def _open(self) -> DiskFolder:
        return DiskFolder(str(self._folder))

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
            raise InvalidInput(f"{path.name} is a link", expected="a file, or none", remedy="give the note another title")
        mark, root = self._mark(self.root, path.name), self.root
        new = make(self._read_if_any(path))
        if new is None:
            return True
        if not new:
            path.unlink(missing_ok=True)
            sync(path.parent)
            return True
        return replace_file(path, new, unless=lambda: self._mark(root, path.name) != mark)


@contextmanager
def _locked(lock: Path) -> Iterator[None]:
    with lock_file(lock, seconds=_BUSY_SECONDS) as is_locked:
        if not is_locked:
            raise StoreBusy(f"{lock.parent}: another process writes notes", remedy="try again")
        yield
