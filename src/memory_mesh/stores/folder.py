"""What the stores with a folder of files share: whether it is there, may be written to or was replaced, and how it is copied."""

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

from memory_mesh.core.errors import InvalidInput, StoreBusy, StoreMissing, StoreReadOnly, StoreReplaced
from memory_mesh.core.ports import Progress
from memory_mesh.stores.changes import as_json
from memory_mesh.stores.files import copy_folder, find_bytes, lock_file, store_error


@contextmanager
def locked(root: Path, lock: Path, *, busy_seconds: float) -> Iterator[None]:
    """Hold the lock that every writer of any process takes. Raises `StoreBusy` if it is not free in time."""
    with lock_file(lock, seconds=busy_seconds) as is_locked:
        if not is_locked:
            raise StoreBusy(f"{root} is locked by another process", remedy="try again, or stop the process that holds it")
        yield


class FolderStore(ABC):
    """The part of a store that is about its folder."""

    _root: Path
    _lock_file: Path
    _read_only: bool
    _must_exist: bool
    _busy_seconds: float
    _folder: tuple[int, int] | None  # device and inode of the folder that was opened

    @abstractmethod
    def _writing(self) -> AbstractContextManager[object]:
        """Create the folder if it is missing, and hold the lock of writers."""

    @abstractmethod
    def _exists(self) -> bool:
        """Return whether there is something to copy."""

    @abstractmethod
    def _files(self) -> Iterable[Path]:
        """Return every file that may contain bytes of a row."""

    @abstractmethod
    def _copied(self) -> Iterable[Path]:
        """Return the files of a backup."""

    def require_file(self) -> None:
        """Raise `StoreMissing` if there is no folder, unless the store was opened with `must_exist=False`."""
        if self._must_exist and not self._root.exists():
            raise self._missing()

    def create_file(self) -> None:
        """Create the folder if there is none and the store may be written to."""
        if not self._read_only and not self._root.exists():
            self.prepare()

    def prepare(self) -> None:
        """Create or convert what a write needs. Every write does that."""
        self.check_writable()
        with self._writing():
            pass

    def check_writable(self) -> None:
        """Raise `StoreReadOnly` if the store was opened for reading only, or has no permission to write."""
        if self._read_only:
            raise StoreReadOnly(f"{self._root} is opened read-only", remedy="open it without ?mode=ro to write")
        if os.path.exists(self._root) and not os.access(self._root, os.W_OK):  # in this order: others may create it meanwhile
            raise StoreReadOnly(f"{self._root} is not writable", remedy="check its permissions")

    def was_replaced(self) -> bool:
        """Return whether another folder, or none, is now at the path of the folder that was opened."""
        try:
            found = os.stat(self._root)
        except FileNotFoundError:
            return self._folder is not None
        return self._folder is not None and self._folder != (found.st_dev, found.st_ino)

    def backup(self, target: Path, progress: Progress) -> int:
        """Copy the folder, as it is between two changes. Others read meanwhile, and write afterwards."""
        if not self._exists():
            raise self._missing()
        if os.path.lexists(target):
            raise InvalidInput(f"{target} exists", expected="a folder that does not exist yet")
        writable = os.access(self._lock_file, os.W_OK)
        try:
            with locked(self._root, self._lock_file, busy_seconds=self._busy_seconds) if writable else nullcontext():
                files = [path for path in self._copied() if path != self._lock_file]
                return self._copy(files, target, progress)
        except OSError as error:
            raise store_error(self._root, error.errno or 0) from error

    def _copy(self, files: list[Path], target: Path, progress: Progress) -> int:
        try:
            return copy_folder(files, self._root, target, progress)
        except OSError as error:
            expected = "a folder with enough space"
            raise InvalidInput(f"{target} cannot be written: {error.strerror}", expected=expected) from error

    def find_bytes(self, samples: Collection[bytes]) -> dict[bytes, str]:
        """Return the samples that are in the files, each with the name of a file."""
        found: dict[bytes, str] = {}
        # In JSON, a text with quotes or lines has another form.
        forms = {sample: sample for sample in samples} | {as_json(sample): sample for sample in samples}
        for file in self._files() if samples else ():
            with suppress(FileNotFoundError, IsADirectoryError), file.open("rb") as opened:
                found |= {forms[form]: file.name for form in find_bytes(opened.fileno(), forms)}
        return found

    def _missing(self) -> StoreMissing:
        what = f"the store {self._root} does not exist"
        return StoreMissing(what, remedy="check the name; `memory-mesh store`, `mesh.add` or `mesh.init` create it")

    def _replaced(self, how: str) -> StoreReplaced:
        what = f"{self._root} was {how} while it was open"
        return StoreReplaced(what, remedy="nothing was written; close the store and open it again")
