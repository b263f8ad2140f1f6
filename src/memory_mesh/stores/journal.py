"""Stores with a journal: each change is a record of it, and many are written out at once.

A change is durable when its record is in the journal, so `apply` costs one write. The rows of many
changes are written into files (JSON) or tables (LanceDB, in a folder or a bucket) when the journal
is long, on `compact`, and on closing. Reads put the changes of the journal over those rows.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import RLock
from typing import Generic, NamedTuple, Protocol, TypeVar

from memory_mesh.core.errors import (
    InvalidInput,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreReadOnly,
)
from memory_mesh.core.model import ANYTHING, Hit, Key, Kind, Row, Vector, Where
from memory_mesh.core.ports import Applied, Changes, Progress, Step
from memory_mesh.stores.base import Change, Stored, check_unique, decide, decode_change, encode_json
from memory_mesh.stores.files import (
    check_permission,
    copy_folder,
    find_bytes,
    locked,
    missing,
    replaced,
    stat_of,
    store_error,
)
from memory_mesh.system import fork_safe

T = TypeVar("T")
ATTEMPTS = 20  # to read a state that others replace meanwhile, or to write while others write


# --- records ---


class Record(NamedTuple):
    """A record of a journal: where it begins and ends, and what it says."""

    start: int
    end: int
    body: bytes
    is_sound: bool


def sound_records(
    records: Iterable[Record], size: int, file: Path, *, at: int = 0
) -> Iterator[Record]:
    """Yield the records in data of this size, which begin at byte `at` of a file.

    A damaged end was never acknowledged: its writer died, or has not finished.
    """
    for record in records:
        if record.is_sound:
            yield record
        elif record.end < size:
            raise StoreCorrupt(
                f"{file} is damaged at byte {at + record.start}", remedy="restore a backup"
            )
        else:
            return


def parse_change(body: bytes) -> Change:
    """Return the change that a record contains."""
    try:
        return decode_change(json.loads(body))
    except (ValueError, RecursionError) as error:
        raise StoreCorrupt(
            "a change in the journal is not JSON", remedy="restore a backup"
        ) from error


def append(file: Path, record: bytes, *, at: int) -> None:
    """Write a record at the end of a journal, durable when this returns. If it cannot, the
    journal is as it was."""
    opened = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    try:
        os.ftruncate(opened, at)  # what a process that died wrote by half
        os.lseek(opened, at, os.SEEK_SET)
        with memoryview(record) as left:
            while left:
                left = left[os.write(opened, left) :]
        os.fsync(opened)
    except OSError:
        with suppress(OSError):
            os.ftruncate(opened, at)
        raise
    finally:
        os.close(opened)


# --- the methods of the port ---


class Superseded(Exception):
    """Another writer wrote first; what was decided must be decided again."""


class State(Protocol):
    """What a store contains with the changes of its journal; the methods are those of `Store`."""

    @property
    def size(self) -> int: ...  # of the journal: bytes, or rows
    @property
    def unfreed(self) -> bool: ...  # bytes of deleted rows may be in the files
    @property
    def leaves_bytes(self) -> bool: ...  # replaced rows are in the files
    def check_seen(self, seen: Mapping[str, int] | None) -> None: ...
    def stored(self, keys: Iterable[Key]) -> dict[Key, Stored]: ...
    def version(self, partition: str) -> int: ...
    def data_version(self) -> Hashable: ...
    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]: ...
    def find(
        self, kind: Kind, where: Where, *, limit: int | None, after: Row | None
    ) -> list[Row]: ...
    def count(self, kind: Kind, where: Where) -> int: ...
    def ids(self, kind: Kind, where: Where) -> list[str]: ...
    def tally(
        self, kind: Kind, columns: Sequence[str], where: Where, *, length: int | None
    ) -> dict[str | None, int]: ...
    def changes(self, partition: str, since: str | None) -> Changes: ...
    def nearest(self, kind: Kind, vector: Vector, where: Where, *, limit: int) -> list[Hit]: ...
    def matching(
        self, tokens: Sequence[str], visible: Where, where: Where, *, limit: int
    ) -> list[Hit]: ...


S = TypeVar("S", bound=State)


class JournalStore(ABC, Generic[S]):
    """Rows with a journal over them. Subclasses say where they are, and how writers take turns."""

    _name: str  # of the place, in errors
    _read_only: bool
    _busy_seconds: float
    _step: Step
    _flush_size: int  # of a journal that is written out
    _flushed_on_closing = 1  # size of the journal; a smaller one stays

    def __init__(self) -> None:
        self._lock = fork_safe(RLock())
        self._closed = self._wrote = False
        self._state: S | None = None
        self._flush_at = self._flush_size

    @abstractmethod
    def _reading(self, read: Callable[[S], T]) -> T:
        """Return what a function reads from the current state."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[S]:
        """Yield the current state while no other process or thread writes. Creates the store."""

    @abstractmethod
    def _commit(self, state: S, change: Change) -> None:
        """Make a change durable, and add it to the state."""

    @abstractmethod
    def _flush(self, state: S) -> None:
        """Write the changes of the journal out, and begin a new journal."""

    @abstractmethod
    def _free(self) -> None:
        """Write the journal out and free deleted bytes before closing, unless others write now:
        then a later user does it."""

    @abstractmethod
    def is_prepared(self) -> bool:
        """Return whether the store has what a write needs, so that nothing must be created."""

    def apply(
        self,
        puts: Sequence[Row] = (),
        deletes: Sequence[Key] = (),
        *,
        seen: Mapping[str, int] | None = None,
    ) -> Applied:
        check_unique(puts, deletes)
        self.check_writable()
        for _ in range(ATTEMPTS):
            with suppress(Superseded), self._writing() as state:
                before = state.data_version()
                self._step("store.begun")
                state.check_seen(seen)
                stored = state.stored([*deletes, *(row.key for row in puts)])
                change = decide(stored, puts, deletes)
                self._commit(state, change)
                self._wrote = True
                self._step("store.committed")
                versions = {name: state.version(name) for name in change.moves}
                self._moved(versions)
                if state is self._state and self._is_long(state):
                    self._flush_if_possible(state)
                replaces = change.deletes or any(row.replaces for row in puts)
                freed = not (replaces and state.leaves_bytes)
                return Applied(freed, before, state.data_version(), versions)
        raise StoreBusy(
            "others wrote to the store at the same time", remedy="try again; nothing was written"
        )

    def version(self, partition: str) -> int:
        return self._reading(lambda state: state.version(partition))

    def data_version(self) -> Hashable:
        return self._reading(lambda state: state.data_version())

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]:
        return self._reading(lambda state: state.get(kind, ids))

    def find(
        self,
        kind: Kind,
        where: Where = ANYTHING,
        *,
        limit: int | None = None,
        after: Row | None = None,
    ) -> list[Row]:
        return self._reading(lambda state: state.find(kind, where, limit=limit, after=after))

    def count(self, kind: Kind, where: Where = ANYTHING) -> int:
        return self._reading(lambda state: state.count(kind, where))

    def ids(self, kind: Kind, where: Where = ANYTHING) -> list[str]:
        return self._reading(lambda state: state.ids(kind, where))

    def tally(
        self,
        kind: Kind,
        columns: Sequence[str],
        where: Where = ANYTHING,
        *,
        length: int | None = None,
    ) -> dict[str | None, int]:
        return self._reading(lambda state: state.tally(kind, columns, where, length=length))

    def changes(self, partition: str, since: str | None = None) -> Changes:
        return self._reading(lambda state: state.changes(partition, since))

    def nearest(
        self, kind: Kind, vector: Vector, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]:
        return self._reading(lambda state: state.nearest(kind, vector, where, limit=limit))

    def matching(
        self, tokens: Sequence[str], visible: Where, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]:
        return self._reading(lambda state: state.matching(tokens, visible, where, limit=limit))

    def close(self) -> None:
        if self._closed:
            return
        with suppress(StoreError, OSError):  # what could not be written out is in the journal
            if not self._read_only and self._reading(
                lambda state: (
                    state.unfreed or (self._wrote and state.size >= self._flushed_on_closing)
                )
            ):
                self._free()
        with self._lock:
            self._closed, self._state = True, None

    def _moved(self, versions: Mapping[str, int]) -> None:
        """Do what a store does when partitions got these versions; by default nothing."""

    def _is_long(self, state: S) -> bool:
        """Return whether the journal is long enough to be written out."""
        return state.size >= self._flush_at

    def _flush_if_possible(self, state: S) -> None:
        """Flush; if it fails, try again when there is more to flush. The change itself is
        durable."""
        try:
            self._flush(state)
            self._flush_at = self._flush_size
        except (StoreError, Superseded, OSError):
            self._flush_at = 2 * state.size

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Raise errors of the system as those of the store."""
        try:
            yield
        except OSError as error:
            raise store_error(self._name, error.errno or 0) from error

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"{self._name} is closed", remedy="open it again")

    # --- the file ---

    def require_file(self) -> None:
        """Raise `StoreMissing` if there is no store."""
        if not self._exists():
            raise missing(self._name)

    def create_file(self) -> None:
        """Create the store if there is none and it may be written to."""
        if not self._read_only and not self._exists():
            self.prepare()

    def prepare(self) -> None:
        """Create or convert what a write needs. Every write does that."""
        self.check_writable()
        with suppress(Superseded), self._writing():
            pass

    def check_writable(self) -> None:
        """Raise `StoreReadOnly` if the store was opened for reading only, or has no permission
        to write."""
        if self._read_only:
            raise StoreReadOnly(
                f"{self._name} is opened read-only", remedy="open it without ?mode=ro to write"
            )

    def has_deleted_bytes(self) -> bool:
        """Return whether bytes of deleted rows are still in the files."""
        return self._reading(lambda state: state.unfreed)

    @abstractmethod
    def _exists(self) -> bool:
        """Return whether there is a store."""


def sample_forms(samples: Collection[bytes]) -> dict[bytes, bytes]:
    """Return samples by each form that they may have in a file: in JSON, a text with quotes or
    lines has another one."""
    escaped = {
        encode_json(sample.decode(errors="replace"))[1:-1].encode(): sample for sample in samples
    }
    return {sample: sample for sample in samples} | escaped


# --- stores in a folder ---


class FolderStore(JournalStore[S]):
    """A store with a journal in a folder, whose writers of any process hold the lock of a file."""

    _lock_name: str  # of the file, below the folder

    def __init__(
        self,
        path: Path,
        *,
        url: str,
        read_only: bool,
        busy_seconds: float,
        step: Step,
    ) -> None:
        self.url, self._root, self._name = url, path.absolute(), str(path.absolute())
        self._lock_file = self._root / self._lock_name
        self._read_only, self._busy_seconds, self._step = read_only, busy_seconds, step
        # Device and inode of the folder that was opened.
        self._folder: tuple[int, int] | None = None
        super().__init__()

    @abstractmethod
    def _create(self) -> None:
        """Create the folder if it is missing. Raises `StoreForeign` before anything is created."""

    @abstractmethod
    def _current(self) -> S:
        """Return the current state to a writer, who holds the locks."""

    @abstractmethod
    def _files(self) -> Iterable[Path]:
        """Return every file that may contain bytes of a row."""

    @abstractmethod
    def _copied(self) -> Iterable[Path]:
        """Return the files of a backup."""

    @contextmanager
    def _writing(self, *, wait: bool = True) -> Iterator[S]:
        with self._translated():
            self._create()
            # Waiting for others must not stop the threads that read, so the lock of the file comes
            # first.
            with self._locked(wait=wait), self._lock:
                yield self._current()

    def _locked(self, *, wait: bool = True) -> AbstractContextManager[None]:
        seconds = self._busy_seconds if wait else 0
        return locked(self._root, self._lock_file, busy_seconds=seconds)

    def _check_folder(self) -> None:
        """Remember the folder that was opened. Raises `StoreReplaced` for another one, or none."""
        folder = self._found()
        if self._folder not in (None, folder):
            raise replaced(self._root, "replaced" if folder else "removed")
        if folder is None and self._read_only:
            raise missing(self._root)
        self._folder = folder

    def _found(self) -> tuple[int, int] | None:
        about = stat_of(self._root)
        return (about.st_dev, about.st_ino) if about else None

    def _exists(self) -> bool:
        return self._root.exists()

    def check_writable(self) -> None:
        super().check_writable()
        check_permission(self._root)

    def was_replaced(self) -> bool:
        """Return whether another folder, or none, is now at the path of the folder that was
        opened."""
        return self._folder not in (None, self._found())

    def backup(self, target: Path, progress: Progress) -> int:
        """Copy the folder, as it is between two changes. Others read meanwhile, and write
        afterwards."""
        if not self._exists():
            raise missing(self._root)
        if os.path.lexists(target):
            raise InvalidInput(f"{target} exists", expected="a folder that does not exist yet")
        writable = os.access(self._lock_file, os.W_OK)
        with self._translated(), self._locked() if writable else nullcontext():
            files = [path for path in self._copied() if path != self._lock_file]
            try:
                return copy_folder(files, self._root, target, progress)
            except OSError as error:
                raise InvalidInput(
                    f"{target} cannot be written: {error.strerror}",
                    expected="a folder with enough space",
                ) from error

    def find_bytes(self, samples: Collection[bytes]) -> dict[bytes, str]:
        """Return the samples that are in the files, each with the name of a file."""
        found, forms = dict[bytes, str](), sample_forms(samples)
        for file in self._files() if samples else ():
            with suppress(FileNotFoundError, IsADirectoryError), file.open("rb") as opened:
                found |= {forms[form]: file.name for form in find_bytes(opened.fileno(), forms)}
        return found
