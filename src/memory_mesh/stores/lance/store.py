"""The LanceDB store: a folder of Lance tables, several processes, one record for each change.

Lance has no transaction over several tables, never calls fsync, and takes milliseconds for each
commit. So a change is a record of a journal, durable when `apply` returns, and many changes are
written into the tables at once: when they are many, on `compact`, and on closing. A large change is
written into the tables directly. Reads put the changes of the journal over the tables. Other
programs see a row when it is in its table.

Reads create nothing. Lance keeps the bytes of deleted rows until its files are rewritten and old
ones removed: by `compact`, on closing, or by the next opening.
"""

import os
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import RLock
from typing import TypeVar

from memory_mesh.core.errors import (
    Conflict,
    IdTaken,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreUnavailable,
)
from memory_mesh.core.model import ANYTHING, MOVING, Hit, Key, Kind, Row, Vector, Where
from memory_mesh.core.ports import Applied, Changes, Step, no_step
from memory_mesh.stores.base import Change, append, check_unique, erases, new_nonce
from memory_mesh.stores.files import (
    FolderStore,
    create_folder,
    files_under,
    names_in,
    stat_of,
    sync,
)
from memory_mesh.stores.lance import journal
from memory_mesh.stores.lance.journal import (
    FLUSHING,
    LOCK,
    OWN,
    STATE,
    Folder,
    State,
    Superseded,
    folder_of,
    journal_of,
    latest_version,
    locked,
    read_journal,
    read_moves,
    read_state,
    translated,
)
from memory_mesh.stores.lance.migration import check_finished, remove_expired, tables_put_aside
from memory_mesh.stores.lance.schema import TABLES
from memory_mesh.stores.lance.view import View, flush, roll_back
from memory_mesh.system import fork_safe

# --- the methods of the port ---
# Stores in a folder and in a bucket share them; they read a view of the current state.

T = TypeVar("T")

FLUSHED_ROWS = 512  # in the journal; more are written into the tables
DIRECT_ROWS = 256  # in one change; such a change is written into the tables without the journal
ATTEMPTS = 20  # to read a state that others replace meanwhile, or to write while others write


class ViewStore(ABC):
    """Rows in Lance tables and a journal. Subclasses say where they are, and how writers take
    turns."""

    _flush_rows: int
    _flush_at: int
    _direct_rows: int
    _view: View | None
    _wrote: bool
    _step: Step

    @abstractmethod
    def check_writable(self) -> None:
        """Raise `StoreReadOnly` if the store was opened for reading only, or has no permission
        to write."""

    @abstractmethod
    def _reading(self, read: Callable[[View], T]) -> T:
        """Return what a function reads from the current state; again, if others replaced it
        meanwhile."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[View]:
        """Yield the current state while no other process or thread writes."""

    @abstractmethod
    def _append(self, view: View, change: Change) -> None:
        """Write a change to the journal and add it to the view."""

    @abstractmethod
    def _flush(self, view: View, *, rewrite: bool = False) -> None:
        """Write the changes of the journal into the tables, and begin a new journal. `rewrite`
        also frees deleted bytes."""

    def _moved(self, versions: Mapping[str, int]) -> None:  # noqa: B027
        """Do what a store does when partitions got these versions; by default nothing."""

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
            with suppress(Superseded), self._writing() as view:
                return self._applied(view, puts, deletes, seen or {})
        raise StoreBusy(
            "others wrote to the store at the same time", remedy="try again; nothing was written"
        )

    def _applied(
        self, view: View, puts: Sequence[Row], deletes: Sequence[Key], seen: Mapping[str, int]
    ) -> Applied:
        before = view.data_version
        self._step("store.begun")
        for partition, version in seen.items():
            if view.partitions.get(partition, (0, ""))[0] != version:
                raise Conflict(f"partition {partition} has changed")
        change = _decided(view, puts, deletes)
        if len(change.puts) + len(change.deletes) >= self._direct_rows:
            self._write_directly(view, change)
        else:
            self._append(view, change)
        self._wrote = True
        self._step("store.committed")
        versions = {name: view.partitions[name][0] for name in change.moves}
        self._moved(versions)
        if view is self._view and view.size >= self._flush_at:
            self._flush_if_possible(view)
        leaves_bytes = change.deletes or any(row.replaces for row in puts)
        return Applied(not leaves_bytes, before, view.data_version, versions)

    def version(self, partition: str) -> int:
        return self._reading(lambda view: view.partitions.get(partition, (0, ""))[0])

    def data_version(self) -> Hashable:
        return self._reading(lambda view: view.data_version)

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]:
        return self._reading(lambda view: view.get(kind, ids)) if ids else {}

    def find(
        self,
        kind: Kind,
        where: Where = ANYTHING,
        *,
        limit: int | None = None,
        after: Row | None = None,
    ) -> list[Row]:
        return self._reading(lambda view: view.find(kind, where, limit, after))

    def count(self, kind: Kind, where: Where = ANYTHING) -> int:
        return self._reading(lambda view: view.count(kind, where))

    def ids(self, kind: Kind, where: Where = ANYTHING) -> list[str]:
        return self._reading(lambda view: view.ids(kind, where))

    def changes(self, partition: str, since: str | None = None) -> Changes:
        return self._reading(lambda view: view.moved(partition, since))

    def nearest(
        self, kind: Kind, vector: Vector, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]:
        return self._reading(lambda view: view.nearest(kind, vector, where, limit))

    def matching(
        self, tokens: Sequence[str], visible: Where, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]:
        return self._reading(lambda view: view.matching(tokens, visible, where, limit))

    def has_deleted_bytes(self) -> bool:
        """Return whether bytes of deleted rows are still in the files."""
        return self._reading(lambda view: view.unfreed)

    def _write_directly(self, view: View, change: Change) -> None:
        """Write a large change into the tables at once. The state commits it, so it needs no
        journal."""
        self._view = None  # to be read again, also if this fails
        view.replay(change)
        self._flush(view)

    def _flush_if_possible(self, view: View) -> None:
        """Flush; if it fails, try again when there is more to flush. The change itself is
        durable."""
        try:
            self._flush(view)
            self._flush_at = self._flush_rows
        except (StoreError, Superseded, OSError):
            self._flush_at = 2 * view.size


def _decided(view: View, puts: Sequence[Row], deletes: Sequence[Key]) -> Change:
    """Return the change that these puts and deletes are, or raise `Conflict`."""
    stored = view.stored([*deletes, *(row.key for row in puts)])
    gone = [key for key in deletes if key in stored]
    moves: defaultdict[str, list[Key]] = defaultdict(list)
    for key in gone:
        if key.kind in MOVING:
            moves[stored[key][0]].append(key)
    for row in puts:
        known = stored.get(row.key)
        if row.replaces == 0 and known:
            raise IdTaken(f"{row.kind} {row.id} already exists")
        if row.replaces and (known is None or known[1] != row.replaces):
            raise Conflict(f"{row.kind} {row.id} is not at revision {row.replaces}")
        for partition in (
            {row.partition, known[0] if known else row.partition} if row.kind in MOVING else ()
        ):
            moves[partition].append(row.key)
    return Change(puts, gone, moves, new_nonce(), erases(puts, gone))


# --- the store in a folder ---

# Moves of a partition; a smaller one is read from the store as fast as from the files of an index.
_INDEXED_FROM = 1_000
# Bytes of the tables. Larger ones are compacted by `compact` only, so that opening and closing stay
# quick.
_MAX_COMPACTED_ON_OPENING, _MAX_COMPACTED_ON_CLOSING = 64 * 1024 * 1024, 512 * 1024 * 1024
# Seconds during which reads do not look again whether another program wrote to a table.
_CHECKED_FOR = 0.1

Signature = tuple[int, int, int] | None  # of the file of the state


class LanceStore(FolderStore, ViewStore):
    """Rows in the Lance tables of one folder."""

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        must_exist: bool = True,
        busy_seconds: float = 30.0,
        step: Step = no_step,
        url: str = "",
        flush_rows: int = FLUSHED_ROWS,
        direct_rows: int = DIRECT_ROWS,
    ) -> None:
        self.url = url or f"lancedb:///{path}"
        self._root, self._read_only, self._must_exist = path.absolute(), read_only, must_exist
        self._own = self._root / OWN
        self._lock_file = self._own / LOCK
        self._busy_seconds, self._step = busy_seconds, step
        self._lock = fork_safe(RLock())
        self._closed = self._wrote = False
        self._view: View | None = None
        self._signature: Signature = None
        # Device and inode of the folder that was opened.
        self._folder: tuple[int, int] | None = None
        self._synced: set[str] = set()
        self._checked_until = 0.0
        self._flush_rows = self._flush_at = flush_rows
        self._direct_rows = direct_rows
        if self._reading(lambda view: view.unfreed and not read_only):
            self._free(_MAX_COMPACTED_ON_OPENING)

    # --- the port ---

    @property
    def index_folder(self) -> Path | None:
        folder = self._own / "index"
        return folder if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK) else None

    def compact(self) -> bool:
        self.check_writable()
        if self._reading(lambda view: not self._exists()):
            return True
        with self._writing() as view:
            remove_expired(self._root, time.time_ns() // 1_000_000)
            try:
                self._flush(view, rewrite=True)
            except (StoreFull, OSError):
                return False
            return not self._refreshed().unfreed

    def flush(self) -> None:
        """Write the changes in the journal into the tables, also those that a process that died
        left there."""
        if self._exists() and self._reading(lambda view: view.size):
            with self._writing() as view:
                self._flush(view)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            with suppress(StoreError, OSError):
                if (
                    not self._read_only
                    and self._exists()
                    and self._reading(lambda view: self._wrote or view.unfreed)
                ):
                    self._free(_MAX_COMPACTED_ON_CLOSING)
            self._closed, self._view = True, None

    def _free(self, max_size: int) -> None:
        """Flush, and free deleted bytes unless the tables are larger, if no other process
        writes. The journal keeps the rest."""
        with suppress(StoreError, OSError), self._writing(wait=False) as view:
            self._flush(view, rewrite=view.unfreed and self._size() <= max_size)

    # --- changes ---

    def _moved(self, versions: Mapping[str, int]) -> None:
        if max(versions.values(), default=0) >= _INDEXED_FROM:
            with suppress(OSError):
                (self._own / "index").mkdir(mode=0o700, exist_ok=True)

    def _append(self, view: View, change: Change) -> None:
        """Write a change to the journal and add it to the view."""
        record = journal.encode(change)
        with translated(self._root, OSError):
            append(journal_of(self._own, view.state.generation), record, at=view.journal_end)
            if not view.journal_end:
                sync(self._own)
        # The view gets a copy: later changes to the lists of the caller must not change it.
        view.replay(journal.decode(record))
        view.journal_end += len(record)

    def _flush(self, view: View, *, rewrite: bool = False) -> None:
        if view.size or rewrite or view.has_foreign:
            with translated(self._root, OSError):
                flush(self._root, view, rewrite=rewrite, synced=self._synced, step=self._step)

    # --- views ---

    def _reading(self, read: Callable[[View], T]) -> T:
        """Return what a function reads from the current state; again, if others replaced it
        meanwhile."""
        for _ in range(ATTEMPTS):
            with self._lock, translated(self._root, OSError):
                view = self._refreshed()
                try:
                    return read(view)
                except (StoreCorrupt, FileNotFoundError):
                    if self._sign() == self._signature:
                        raise
        raise StoreUnavailable(f"{self._root} changes too fast to be read", remedy="try again")

    @contextmanager
    def _writing(self, *, wait: bool = True) -> Iterator[View]:
        """Yield the current state while no other process or thread writes."""
        with translated(self._root, OSError):
            self._create()
            # Waiting for others must not stop the threads that read, so the lock of the file comes
            # first.
            with locked(self._own, busy_seconds=self._busy_seconds if wait else 0), self._lock:
                roll_back(self._root)
                self._checked_until = 0.0
                view = self._refreshed()
                if view.has_foreign:
                    self._flush(view)
                    view = self._refreshed()
                yield view

    def _refreshed(self) -> View:
        """Return the view with all that is committed."""
        if self._closed:
            raise StoreClosed(f"{self._root} is closed", remedy="open it again")
        signature = self._sign()
        view = self._view
        if view is None or signature != self._signature or self._is_changed_by_others(view):
            view = self._loaded()
        file = journal_of(self._own, view.state.generation)
        try:
            opened = os.open(file, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except FileNotFoundError:
            if view.state.generation and self._sign() == self._signature:
                raise StoreCorrupt(f"{file} is missing", remedy="restore a backup") from None
            return view if not view.state.generation else self._refreshed()
        try:
            # A write failed after this handle had read it.
            if os.fstat(opened).st_size < view.journal_end:
                view = self._loaded()
            changes, view.journal_end = read_journal(opened, view.journal_end, file)
        finally:
            os.close(opened)
        for change in changes:
            view.replay(change)
        return view

    def _loaded(self) -> View:
        """Read the state anew."""
        self._signature = self._sign()
        self._check_folder()
        check_finished(self._root)
        state = read_state(self._own) or State()
        found = self._versions()
        if lost := [name for name, version in state.tables.items() if found.get(name, 0) < version]:
            raise StoreCorrupt(
                f"the table {lost[0]} in {self._root} is missing, or older than its state",
                remedy="restore a backup",
            )
        if found != state.tables and not (self._own / FLUSHING).exists():
            state = state.after_others(found)
        # A migration changes the tables behind their version numbers, and begins a new log of
        # moves.
        before = self._view if self._view and self._view.state.moves == state.moves else None
        self._view = View(Folder(self._root), state, partial(read_moves, self._own, state), before)
        self._view.adopt_foreign()
        return self._view

    def _is_changed_by_others(self, view: View) -> bool:
        """Return whether another program wrote to a table. Reads look for that from time to
        time, and writes always."""
        now = time.monotonic()
        if now < self._checked_until:
            return False
        self._checked_until = now + _CHECKED_FOR
        # In this order: a flush of ours ends by writing the state and removing that file.
        return (
            self._versions() != view.state.tables
            and not (self._own / FLUSHING).exists()
            and self._sign() == self._signature
        )

    def _versions(self) -> dict[str, int]:
        """Return the newest version of each table."""
        found = {table.name: latest_version(self._root, table) for table in TABLES}
        return {name: version for name, version in found.items() if version}

    def _sign(self) -> Signature:
        """Return what changes with every state; None without one. Raises `StoreReplaced` for
        another folder, or none."""
        with suppress(FileNotFoundError, NotADirectoryError):
            found = os.stat(self._root)
            if self._folder is None:
                self._folder = found.st_dev, found.st_ino
            if self._folder == (found.st_dev, found.st_ino):
                with suppress(FileNotFoundError, NotADirectoryError):
                    state = os.stat(self._own / STATE)
                    return state.st_ino, state.st_mtime_ns, state.st_size
                if self._signature is None:
                    return None
        if self._folder is None:
            if self._read_only:
                raise self._missing()
            return None
        raise self._replaced("replaced" if self._root.exists() else "removed")

    def _check_folder(self) -> None:
        """Raise `StoreForeign` if the folder is of another program."""
        if self._signature:
            return
        try:
            names = [name for name in names_in(self._root) if not name.startswith(".")]
        except NotADirectoryError:
            names = ["."]
        if names and OWN not in names and not any(name.endswith(".lance") for name in names):
            expected = "a folder of LanceDB, an empty one, or none"
            raise StoreForeign(
                f"{self._root} is not a folder of LanceDB",
                expected=expected,
                remedy="name another folder",
            )

    def _create(self) -> None:
        """Create the folder and its state, unless they exist."""
        with self._lock:
            if self._sign():
                return
            self._check_folder()
        create_folder(self._own)
        with locked(self._own, busy_seconds=self._busy_seconds):
            if not (self._own / STATE).exists():
                journal.write_state(self._own, State())
                sync(self._root)
                sync(self._root.parent)

    # --- the file ---

    def is_prepared(self) -> bool:
        """Return whether the folder has a state of this version, so that nothing must be
        created."""
        return self._reading(lambda view: self._signature is not None)

    def damage(self) -> list[str]:
        """Read every table and return what cannot be read."""
        found: list[str] = []
        for table in TABLES:
            try:
                self._reading(lambda view, table=table: view.frame(table).check())  # type: ignore[misc]
            except StoreCorrupt as error:
                found.append(str(error))
        return found

    def _files(self) -> Iterator[Path]:
        tables = (
            *(folder_of(self._root, table) for table in TABLES),
            *tables_put_aside(self._root),
        )
        for folder in (self._own, *tables):
            yield from (path for path, _ in files_under(folder))

    def _copied(self) -> Iterator[Path]:
        """Yield the files of a backup: an index is made again from the rows."""
        for folder in (self._own, *(folder_of(self._root, table) for table in TABLES)):
            yield from (
                path
                for path, _ in files_under(folder)
                if "index" not in path.relative_to(self._root).parts
            )

    def _size(self) -> int:
        return sum(found.st_size for path in self._files() if (found := stat_of(path)))

    def _exists(self) -> bool:
        return self._signature is not None
