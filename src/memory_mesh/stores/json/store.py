"""The JSON store: a folder of JSON files, several processes, one line of a journal for each change.

A handle keeps all rows in memory. Before it answers, it reads the lines that were added to the
journal, so it sees the writes of every process. The files are brought up to date when the journal
is long, on `compact`, and on closing. Reads create nothing.
"""

import os
import shutil
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import TypeVar

from memory_mesh.core.errors import (
    Conflict,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from memory_mesh.core.model import ANYTHING, Hit, Key, Kind, Row, Vector, Where
from memory_mesh.core.ports import Applied, Changes, Step, no_step
from memory_mesh.stores.base import Change, append, check_unique, encode_change, erases, new_nonce
from memory_mesh.stores.files import (
    FolderStore,
    create_folder,
    files_under,
    locked,
    replace_file,
    store_error,
    sync,
)
from memory_mesh.stores.json.folder import (
    CLUSTERS,
    EPISODES,
    FILES,
    JOURNAL,
    LOCK,
    Signature,
    State,
    clusters,
    encode_rows,
    episodes,
    line_of,
    load,
    read_on,
    sign,
)
from memory_mesh.stores.json.neolata import ASIDE
from memory_mesh.system import fork_safe

T = TypeVar("T")

# Of the journal; a longer one is written into the files, unless they are much longer.
_FLUSHED_BYTES = 1024 * 1024
_ATTEMPTS = 4  # to read a folder whose files others replace meanwhile


class _Replaced(Exception):
    """Other processes replaced the journal while it was read."""


class JsonStore(FolderStore):
    """Rows in the JSON files of one folder."""

    index_folder = None  # all rows are in memory, and so is the search index

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        must_exist: bool = True,
        busy_seconds: float = 30.0,
        step: Step = no_step,
        url: str = "",
        flush_bytes: int = _FLUSHED_BYTES,
    ) -> None:
        self.url = url or f"json:///{path}"
        self._root, self._read_only, self._must_exist = path.absolute(), read_only, must_exist
        self._busy_seconds, self._step, self._flush_bytes = busy_seconds, step, flush_bytes
        self._lock_file, self._lock = self._root / LOCK, fork_safe(RLock())
        self._closed = self._wrote = False
        self._state: State | None = None
        self._signature: Signature = ()
        # Device and inode of the folder that was opened.
        self._folder: tuple[int, int] | None = None
        if self._reading(lambda state: state.frees and not read_only):
            self._free()

    # --- the port ---

    def apply(
        self,
        puts: Sequence[Row] = (),
        deletes: Sequence[Key] = (),
        *,
        seen: Mapping[str, int] | None = None,
    ) -> Applied:
        check_unique(puts, deletes)
        self.check_writable()
        with self._writing() as state:
            before = state.nonce
            self._step("store.begun")
            for partition, version in (seen or {}).items():
                if state.version(partition) != version:
                    raise Conflict(f"partition {partition} has changed")
            moves = state.rows.moves_of(puts, deletes)
            gone = [key for key in deletes if key in state.rows]
            line = line_of(
                encode_change(Change(puts, gone, moves, new_nonce(), erases(puts, gone)))
            )
            append(self._root / JOURNAL, line, at=state.end)
            # Not the rows of the caller, who may change their lists.
            state.read_lines(line, self._root / JOURNAL)
            self._wrote = True
            self._step("store.committed")
            if state.end - state.start >= self._flush_bytes:
                self._flush_if_possible(state)
            leaves_bytes = state.changed and (gone or any(row.replaces for row in puts))
            return Applied(
                not leaves_bytes, before, state.nonce, {name: state.version(name) for name in moves}
            )

    def version(self, partition: str) -> int:
        return self._reading(lambda state: state.version(partition))

    def data_version(self) -> Hashable:
        return self._reading(lambda state: state.nonce)

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]:
        return self._reading(lambda state: state.rows.get(kind, ids))

    def find(
        self,
        kind: Kind,
        where: Where = ANYTHING,
        *,
        limit: int | None = None,
        after: Row | None = None,
    ) -> list[Row]:
        return self._reading(lambda state: state.rows.find(kind, where, limit=limit, after=after))

    def count(self, kind: Kind, where: Where = ANYTHING) -> int:
        return self._reading(lambda state: state.rows.count(kind, where))

    def ids(self, kind: Kind, where: Where = ANYTHING) -> list[str]:
        return self._reading(lambda state: state.rows.ids(kind, where))

    def changes(self, partition: str, since: str | None = None) -> Changes:
        return self._reading(lambda state: state.moved(partition, since))

    def nearest(
        self, kind: Kind, vector: Vector, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]:
        return self._reading(lambda state: state.rows.nearest(kind, vector, where, limit=limit))

    def matching(
        self, tokens: Sequence[str], visible: Where, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]:
        return self._reading(lambda state: state.rows.matching(tokens, visible, where, limit=limit))

    def compact(self) -> bool:
        self.check_writable()
        if self._reading(lambda state: not state.changed):
            return True
        try:
            with self._writing() as state:
                self._checkpoint(state)
        except StoreFull:
            return False
        return True

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            with suppress(StoreError):
                if not self._read_only and self._reading(
                    lambda state: state.changed and (self._wrote or state.frees)
                ):
                    self._free()
            self._closed, self._state = True, None

    def _free(self) -> None:
        """Write the journal into the files, unless others write now: then a later user does it."""
        with suppress(StoreError), self._writing(wait=False) as state:
            self._checkpoint(state)

    # --- reading and writing ---

    def _reading(self, read: Callable[[State], T]) -> T:
        with _translated(self._root):
            with suppress(_Replaced), self._lock:
                return read(self._refreshed())
            # Others write faster than this handle reads. The lock of the file comes first, as for
            # writers.
            with locked(self._root, self._lock_file, busy_seconds=self._busy_seconds), self._lock:
                return read(self._refreshed())

    @contextmanager
    def _writing(self, *, wait: bool = True) -> Iterator[State]:
        """Yield the current state while no other process or thread writes. The first write
        creates or converts the folder."""
        with _translated(self._root):
            self._reading(lambda state: None)  # raises `StoreForeign` before anything is created
            if self._folder is None:
                create_folder(self._root)
                sync(self._root.parent)
            # Waiting for others must not stop the threads that read, so the lock of the file comes
            # first.
            with (
                locked(self._root, self._lock_file, busy_seconds=self._busy_seconds if wait else 0),
                self._lock,
            ):
                state = self._refreshed()
                if not state.inode:
                    self._checkpoint(state)
                yield state

    def _refreshed(self) -> State:
        """Return the state with all that is committed."""
        if self._closed:
            raise StoreClosed(f"{self._root} is closed", remedy="open it again")
        self._check_folder()
        for _ in range(_ATTEMPTS):
            with suppress(FileNotFoundError):  # another process converts the folder
                signature, state = sign(self._root), self._state
                if state and signature == self._signature:
                    return state
                if not (state and state.inode and read_on(self._root, state)):
                    state = load(self._root)
                if state:
                    self._state, self._signature = state, signature
                    return state
        raise _Replaced

    def _check_folder(self) -> None:
        """Remember the folder that was opened. Raises `StoreReplaced` for another one, or none."""
        try:
            about = os.stat(self._root)
        except (FileNotFoundError, NotADirectoryError):
            if self._folder:
                raise self._replaced("removed") from None
            if self._read_only:
                raise self._missing() from None
            return
        found = about.st_dev, about.st_ino
        if (self._folder or found) != found or (
            self._state and self._state.inode and not (self._root / JOURNAL).exists()
        ):
            raise self._replaced("replaced")
        self._folder = found

    def _flush_if_possible(self, state: State) -> None:
        """Write a long journal into the files; if that fails, again when it is twice as long.
        The change itself is durable."""
        size = sum((self._root / name).stat().st_size for name in state.files)
        if self._flush_bytes and state.end - state.start < size // 2:
            return
        try:
            self._checkpoint(state)
        except (StoreError, OSError):
            self._flush_bytes = 2 * (state.end - state.start)

    def _checkpoint(self, state: State) -> None:
        """Write the changes of the journal into the files, and begin a new one. The caller holds
        the lock."""
        is_new = not state.inode and not state.originals
        self._step("flush.begun")
        for name in () if is_new else FILES:
            if name in state.changed or name not in state.files:
                replace_file(self._root / name, encode_rows(state, name))
                self._step(f"flush.{name}")
        state.files = [] if is_new else [*FILES]
        moved = [] if state.inode else state.originals
        # A process died before it had moved them.
        for name in state.originals if state.inode else ():
            self._put_aside(name)
        if state.erases:
            shutil.rmtree(self._root / ASIDE, ignore_errors=True)
        state.originals = moved
        header = state.header()
        replace_file(self._root / JOURNAL, header)
        self._step("flush.committed")
        state.begin(header, os.stat(self._root / JOURNAL).st_ino)
        self._signature = sign(self._root)
        for name in moved:
            self._put_aside(name)
        if not is_new:
            replace_file(self._root / EPISODES, episodes(state))
            replace_file(self._root / CLUSTERS, clusters(state))
        self._step("store.freed")

    def _put_aside(self, name: str) -> None:
        """Move an original file of neolata, whose contents are in the files of the store."""
        aside = self._root / ASIDE
        if (self._root / name).exists() and not (aside / name).exists():
            create_folder(aside)
            os.replace(self._root / name, aside / name)
            sync(aside)

    # --- the file ---

    def is_prepared(self) -> bool:
        """Return whether the folder has a journal, so that nothing must be created or converted."""
        return self._reading(lambda state: bool(state.inode))

    def has_deleted_bytes(self) -> bool:
        """Return whether bytes of deleted rows are still in the files."""
        return self._reading(lambda state: state.frees)

    def damage(self) -> list[str]:
        """Read all files again, and return what is wrong with them."""
        try:
            load(self._root)
        except StoreCorrupt as error:
            return [str(error)]
        return []

    def _files(self) -> list[Path]:
        return [path for path, _ in files_under(self._root)]

    def _copied(self) -> list[Path]:
        return self._files()

    def _exists(self) -> bool:
        return self._root.exists()


@contextmanager
def _translated(root: Path) -> Iterator[None]:
    """Raise errors of the system as those of the store."""
    try:
        yield
    except OSError as error:
        raise store_error(root, error.errno or 0) from error
    except _Replaced as error:
        raise StoreUnavailable(f"{root} changes too fast to be read", remedy="try again") from error
