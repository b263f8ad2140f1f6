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
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from memory_mesh.core.errors import (
    StoreCorrupt,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreUnavailable,
)
from memory_mesh.core.ports import Progress, Step, no_step
from memory_mesh.stores.base import Change
from memory_mesh.stores.files import (
    create_folder,
    files_under,
    missing,
    names_in,
    replaced,
    stat_of,
    sync,
)
from memory_mesh.stores.journal import (
    ATTEMPTS,
    FolderStore,
    JournalStore,
    Superseded,
    append,
    parse_change,
    sound_records,
)
from memory_mesh.stores.lance import journal
from memory_mesh.stores.lance.journal import (
    FLUSHING,
    HEADER,
    LOCK,
    OWN,
    STATE,
    Folder,
    State,
    folder_of,
    journal_of,
    latest_version,
    read_moves,
    read_state,
    records,
)
from memory_mesh.stores.lance.migration import check_finished, remove_expired, tables_put_aside
from memory_mesh.stores.lance.schema import TABLES
from memory_mesh.stores.lance.view import View, flush, roll_back

FLUSHED_ROWS = 512  # in the journal; more are written into the tables
DIRECT_ROWS = 256  # in one change; such a change is written into the tables without the journal

T = TypeVar("T")


class TableStore(JournalStore[View]):
    """Rows in Lance tables and a journal, in a folder or in a bucket."""

    _direct_rows: int

    @abstractmethod
    def _refreshed(self) -> View:
        """Return the view with all that is committed."""

    @abstractmethod
    def _is_current(self, view: View) -> bool:
        """Return whether no other process has replaced the state of a view."""

    @abstractmethod
    def _append(self, view: View, change: Change) -> None:
        """Write a change to the journal and add it to the view."""

    @abstractmethod
    def _flush(self, view: View, *, rewrite: bool = False) -> None:
        """Write the changes of the journal into the tables, and begin a new journal. `rewrite`
        also frees deleted bytes."""

    def _reading(self, read: Callable[[View], T]) -> T:
        for _ in range(ATTEMPTS):
            with self._lock, self._translated():
                view = self._refreshed()
                try:
                    return read(view)
                except (StoreCorrupt, FileNotFoundError):
                    if self._is_current(view):
                        raise
        raise StoreUnavailable(f"{self._name} changes too fast to be read", remedy="try again")

    def _commit(self, view: View, change: Change) -> None:
        if len(change.puts) + len(change.deletes) < self._direct_rows:
            self._append(view, change)
            return
        # The new state of the tables commits a large change, so it needs no journal.
        self._state = None  # to be read again, also if this fails
        view.replay(change)
        self._flush(view)

    def flush(self) -> None:
        """Write the changes in the journal into the tables, also those that a process that died
        left there."""
        if self._reading(lambda view: view.size):
            self._flushed()

    def _flushed(self, *, rewrite: bool = False) -> bool:
        for _ in range(ATTEMPTS):
            with suppress(Superseded), self._writing() as view:
                self._flush(view, rewrite=rewrite)
                return True
        return False

    def damage(self) -> list[str]:
        """Read every table and return what cannot be read."""
        damaged: list[str] = []
        for table in TABLES:
            try:
                self._reading(lambda view, table=table: view.frame(table).check())  # type: ignore[misc]
            except StoreCorrupt as error:
                damaged.append(str(error))
        return damaged


# --- the store in a folder ---

# Moves of a partition; a smaller one is read from the store as fast as from the files of an index.
_INDEXED_FROM = 1_000
# Bytes of the tables. Larger ones are compacted by `compact` only, so that opening and closing stay
# quick.
_MAX_COMPACTED_ON_OPENING, _MAX_COMPACTED_ON_CLOSING = 64 * 1024 * 1024, 512 * 1024 * 1024
# Seconds during which reads do not look again whether another program wrote to a table.
_CHECKED_FOR = 0.1

Signature = tuple[int, int, int] | None  # of the file of the state


class LanceStore(FolderStore[View], TableStore):
    """Rows in the Lance tables of one folder."""

    _lock_name = f"{OWN}/{LOCK}"

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        busy_seconds: float = 30.0,
        step: Step = no_step,
        url: str = "",
        flush_rows: int = FLUSHED_ROWS,
        direct_rows: int = DIRECT_ROWS,
    ) -> None:
        self._own = path.absolute() / OWN
        self._signature: Signature = None
        self._synced: set[str] = set()
        self._checked_until = 0.0
        self._flush_size, self._direct_rows = flush_rows, direct_rows
        super().__init__(
            path, url=url or f"lancedb:///{path}", read_only=read_only,
            busy_seconds=busy_seconds, step=step,
        )  # fmt: skip
        if self._reading(lambda view: view.unfreed and not read_only):
            self._free(_MAX_COMPACTED_ON_OPENING)

    # --- the port ---

    @property
    def index_folder(self) -> Path | None:
        folder = self._own / "index"
        return folder if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK) else None

    def compact(self) -> bool:
        self.check_writable()
        if not self._has_state():
            return True
        with self._writing() as view:
            remove_expired(self._root, time.time_ns() // 1_000_000)
            try:
                self._flush(view, rewrite=True)
            except StoreFull:
                return False
            return not self._refreshed().unfreed

    def _free(self, max_size: int = _MAX_COMPACTED_ON_CLOSING) -> None:
        with suppress(StoreError, OSError), self._writing(wait=False) as view:
            self._flush(view, rewrite=view.unfreed and self._size() <= max_size)

    # --- changes ---

    def _moved(self, versions: Mapping[str, int]) -> None:
        if max(versions.values(), default=0) >= _INDEXED_FROM:
            with suppress(OSError):
                (self._own / "index").mkdir(mode=0o700, exist_ok=True)

    def _append(self, view: View, change: Change) -> None:
        record = journal.record_of(change)
        append(journal_of(self._own, view.state.generation), record, at=view.journal_end)
        if not view.journal_end:
            sync(self._own)
        # The view gets a copy: later changes to the lists of the caller must not change it.
        view.replay(parse_change(record[HEADER.size :]))
        view.journal_end += len(record)

    def _flush(self, view: View, *, rewrite: bool = False) -> None:
        if view.size or rewrite or view.has_foreign or view.is_old:
            with self._translated():
                flush(self._root, view, rewrite=rewrite, synced=self._synced, step=self._step)

    # --- views ---

    def _current(self) -> View:
        roll_back(self._root)
        self._checked_until = 0.0
        view = self._refreshed()
        if view.has_foreign or view.is_old:
            self._flush(view)
            view = self._refreshed()
        return view

    def _refreshed(self) -> View:
        self._check_open()
        signature, view = self._sign(), self._state
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
            at = view.journal_end
            data = os.pread(opened, max(os.fstat(opened).st_size - at, 0), at)
        finally:
            os.close(opened)
        for record in sound_records(records(data), len(data), file, at=at):
            view.replay(parse_change(record.body))
            view.journal_end = at + record.end
        return view

    def _loaded(self) -> View:
        """Read the state anew."""
        before, self._state = self._state, None  # to be read again, also if this fails
        self._signature = self._sign()
        self._check_kind()
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
        same = before if before and before.state.moves == state.moves else None
        view = View(Folder(self._root), state, partial(read_moves, self._own, state), same)
        view.adopt_foreign()
        self._state = view
        return view

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
        self._check_folder()
        if state := stat_of(self._own / STATE):
            return state.st_ino, state.st_mtime_ns, state.st_size
        if self._signature:
            raise replaced(self._root, "replaced")
        return None

    def _is_current(self, view: View) -> bool:
        return self._sign() == self._signature

    def _check_kind(self) -> None:
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
            self._check_kind()
        create_folder(self._own)
        with self._locked():
            if not (self._own / STATE).exists():
                journal.write_state(self._own, State())
                sync(self._root)
                sync(self._root.parent)

    # --- the file ---

    def is_prepared(self) -> bool:
        """Return whether the folder has a state of this version, so that nothing must be
        created."""
        return self._reading(lambda view: self._signature is not None and not view.is_old)

    def _has_state(self) -> bool:
        return self._reading(lambda view: self._signature is not None)

    def backup(self, target: Path, progress: Progress) -> int:
        if not self._has_state():
            raise missing(self._root)
        return super().backup(target, progress)

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
