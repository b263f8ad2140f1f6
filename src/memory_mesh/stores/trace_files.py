"""The files of traces on disk: appended to or replaced as a whole, durable, for their owner only. People may edit them."""

import gzip
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import local

from memory_mesh.core.errors import InvalidInput, StoreBusy, shown
from memory_mesh.regular_files import open_regular
from memory_mesh.stores.files import append_durably, create_folder, lock_file, replace_file, sync

MAX_BYTES = 256 * 1024 * 1024  # of a file, uncompressed: a small archive may unpack to more than the memory holds
_LOCK = ".lock"
_BUSY_SECONDS = 30.0
_FLAGS = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"))  # a pipe is not waited for


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
                    entries = [entry for entry in found if not entry.name.startswith(".") and not entry.is_symlink()]
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
                    data = (gzip.GzipFile(fileobj=file) if name.endswith(".gz") else file).read(MAX_BYTES + 1)
            except (FileNotFoundError, NotADirectoryError):
                return b""
            except (EOFError, gzip.zlib.error) as error:  # type: ignore[attr-defined]
                raise InvalidInput(f"{name} in {self.root} is damaged: {error}", remedy="restore it from a backup") from error
        if len(data) > MAX_BYTES:
            raise InvalidInput(f"{name} in {self.root} is too large", expected=f"at most {MAX_BYTES:,} bytes, uncompressed")
        return data

    def create_folder(self, name: str) -> None:
        with self._errors(name, "created"):
            create_folder(self._path(name))

    def append(self, name: str, data: bytes) -> None:
        data = gzip.compress(data, mtime=0) if name.endswith(".gz") else data  # a file may hold several
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
                is_locked = stack.enter_context(lock_file(path / _LOCK, seconds=_BUSY_SECONDS))
            if not is_locked:
                raise StoreBusy(f"{path}: another process writes traces", remedy="try again")
            held.add(folder)
            stack.callback(held.discard, folder)
            yield

    def _path(self, name: str) -> Path:
        """Return the path of a file below the root. A link on the way, which may lead elsewhere, is refused."""
        path = os.path.join(self._root, name) if name else self._root
        if os.path.realpath(path) != os.path.normpath(path) or not f"{path}{os.sep}".startswith(f"{self._root}{os.sep}"):
            raise InvalidInput(f"{shown(name, max_length=200)} in {self.root} is a link", expected="a file of its own")
        return Path(path)

    @contextmanager
    def _errors(self, name: str, done: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            what = f"{shown(name, max_length=200)} in {self.root} cannot be {done}: {error.strerror or error}"
            raise InvalidInput(what, remedy="check the folder of traces and its permissions") from error
