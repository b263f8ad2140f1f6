"""The search index of a store, in memory: keywords, vectors and sessions, derived through the port.

Before each query it asks the store for changes, so it reflects every write of every process.
Correctness never depends on its files: they may be deleted at any time, and a damaged one is built
again. numpy is loaded by the first query.
"""

import json
import mmap
import os
import secrets
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial, reduce
from hashlib import sha256
from math import inf, prod
from pathlib import Path
from threading import Lock, RLock
from typing import TYPE_CHECKING

from memory_mesh.core.errors import StoreError, StoreUnavailable
from memory_mesh.core.model import (
    ANYTHING,
    Key,
    Kind,
    Reader,
    Row,
    Where,
    all_of,
    batches,
    equals,
    millis,
    partitions,
)
from memory_mesh.core.model.background import check_cancelled
from memory_mesh.core.ports import Store
from memory_mesh.core.search import Pool, Query
from memory_mesh.core.search.candidates import IndexedRows
from memory_mesh.system import fork_safe, release_memory

if TYPE_CHECKING:
    from memory_mesh.index.arrays import Columns, Flags, GrowingArray
    from memory_mesh.index.table import Names, Scope, Table
    from memory_mesh.index.view import View


# --- index files ---
# A file contains words and vectors, so erasing deletes it first. It is a checksum of the rest, a
# line of JSON, and arrays as they lie in memory, so opening it means mapping it. numpy is loaded by
# the functions that read and write arrays: a command that erases does not search.

_SUFFIX, _PARTIAL = ".index", ".part"
_MAGIC = b"memory-mesh index 6\n"
_HEAD = len(_MAGIC) + 8  # where the head begins, after the digits of the checksum
_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Saved:
    """The contents of a file: a table, and the mark of the partition's state that it was built
    from."""

    mark: str
    language: str
    names: "Names"
    columns: "Columns"


def file_of(folder: Path, partition: str) -> Path:
    """Return the index file of a partition; its name does not reveal the partition."""
    return folder / (sha256(partition.encode()).hexdigest()[:32] + _SUFFIX)


def forget(folder: Path | None, partitions: Iterable[str]) -> None:
    """Delete the index files of these partitions, partly written ones included."""
    if folder is None:
        return
    for partition in partitions:
        path = file_of(folder, partition)
        for file in (path, *folder.glob(f"{path.stem}*{_PARTIAL}")):
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise StoreUnavailable(
                    f"cannot delete {file}: {error.strerror}", remedy="delete it by hand"
                ) from error


def save(path: Path, saved: Saved) -> bool:
    """Replace a file atomically; return False if that fails."""
    partial = path.with_name(f"{path.stem}-{secrets.token_hex(8)}{_PARTIAL}")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with os.fdopen(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.writelines(_bytes(saved))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        # A full disk, a deleted or read-only folder: the file only makes the next start faster.
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        return False
    return True


def load(path: Path) -> Saved | None:
    """Map a file; return None if it is missing, damaged or of another format."""
    import numpy as np

    from memory_mesh.index.table import Names, Scope

    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        # Without the checksum, a head or arrays that a bad disk changed would silently give wrong
        # results.
        if mapped[: len(_MAGIC)] != _MAGIC or mapped[len(_MAGIC) : _HEAD] != _checksum(
            [memoryview(mapped)[_HEAD:]]
        ):
            return None
        head = json.loads(mapped[_HEAD : mapped.find(b"\n", _HEAD)])
        names = head["names"]
        scopes, models = (
            [Scope(*scope) for scope in names["scopes"]],
            [(name, dimension) for name, dimension in names["models"]],
        )
        columns = {
            name: np.frombuffer(mapped, dtype, prod(shape), start).reshape(shape)
            for name, (start, dtype, shape) in head["columns"].items()
        }
        return Saved(
            head["mark"],
            head["language"],
            Names(**{**names, "scopes": scopes, "models": models}),
            columns,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _bytes(saved: Saved) -> Iterator[bytes | memoryview]:
    import numpy as np

    arrays = [np.ascontiguousarray(column) for column in saved.columns.values()]
    data = [array.reshape(-1).view(np.uint8).data if array.size else b"" for array in arrays]
    body = [part for each in data for part in (each, bytes(-len(each) % _ALIGNMENT))]
    places = [[0, array.dtype.str, list(array.shape)] for array in arrays]
    head = {
        "mark": saved.mark, "language": saved.language, "names": asdict(saved.names),
        "columns": dict(zip(saved.columns, places, strict=True)),
    }  # fmt: skip
    # The offsets of the arrays depend on the length of the head and the reverse, so the head is
    # padded.
    room = _HEAD + len(json.dumps(head)) + 24 * len(arrays)
    room = start = room + -room % _ALIGNMENT
    for place, each in zip(places, data, strict=True):
        place[0] = start
        start += len(each) + -len(each) % _ALIGNMENT
    line = json.dumps(head).encode().ljust(room - _HEAD - 1) + b"\n"
    yield from (_MAGIC, _checksum([line, *body]), line, *body)


def _checksum(parts: Iterable[bytes | memoryview]) -> bytes:
    """Return the checksum of all that follows it in a file, as eight digits."""
    return b"%08x" % reduce(lambda total, part: zlib.crc32(part, total), parts, 0)


# --- the index ---

# In memory; the least recently used one is dropped, and read again when it is needed.
MAX_PARTITIONS = 4096
BATCH = 2000  # rows read together
MAX_FOLLOWED = 5000  # changes that a search waits for, if it can ask the engine of its store
MAX_UNPACKED = 2000  # slots outside of the base, however small it is; otherwise a fifth of it
_EMPTY_BYTES, _BYTES = 10_000, 2000  # of a partition, and of each slot outside of the base
MIN_FILE_SIZE = 1000  # fewer memories are read from the store as fast as from a file
_KINDS = (Kind.MEMORY, Kind.PASSAGE)  # of the rows in the index
Reading = Callable[[Kind, str], Iterator[IndexedRows]]  # reads the rows of a kind in a partition
_MAX_VIEWS = 4
_MAX_FILTERS = 16  # whose results are kept, and updated after a write of up to so many memories:
_MAX_FILTERED = 50


class LocalIndex:
    """The index of an embedded store."""

    def __init__(self, store: Store, *, language: str = "english") -> None:
        self._store, self._language = store, language
        self._lock = fork_safe(Lock())
        self._partitions: dict[str, Partition] = {}

    def snapshot(self, reader: Reader) -> "LocalSnapshot":
        """Bring the partitions of a reader up to date."""
        data_version = self._store.data_version()
        with self._lock:
            parts = [self._partition(name) for name in sorted(partitions(reader))]
        return LocalSnapshot(reader, parts, data_version)

    def prepare(self, reader: Reader) -> None:
        """Build the partitions of a reader, or bring them up to date."""
        self.snapshot(reader)

    def forget(self, partitions: Iterable[str]) -> None:
        """Delete the files of these partitions."""
        forget(self._store.index_folder, partitions)

    def close(self) -> None:
        """Write files for the next process, where they are worth it."""
        with self._lock:
            closing, self._partitions = self._partitions, {}
        for partition in closing.values():
            with partition.lock:
                partition.close()

    def reset_after_fork(self) -> None:
        """Drop the partitions that a thread of the parent was using at the fork: they may be
        incomplete."""
        for name, partition in list(self._partitions.items()):
            if partition.lock.acquire(blocking=False):
                partition.lock.release()
            else:
                del self._partitions[name]

    def _partition(self, name: str) -> "Partition":
        partition = self._partitions.pop(name, None) or Partition(name, self._store, self._language)
        self._partitions[name] = partition  # at the end: a dict keeps the order of insertion
        if len(self._partitions) > MAX_PARTITIONS:
            del self._partitions[next(iter(self._partitions))]
        return partition


def rows_of(store: Store, kind: Kind, partition: str) -> Iterator[IndexedRows]:
    """Yield what an index needs of the rows of a kind in a partition, newest first, as any store
    returns them."""
    last = None
    while rows := store.find(kind, equals("partition", partition), limit=BATCH, after=last):
        yield IndexedRows.of(rows)
        last = rows[-1]


class LocalSnapshot:
    """The partitions of one reader, brought up to date when it is made. They are locked only
    while they are read."""

    def __init__(
        self, reader: Reader, parts: Sequence["Partition"], data_version: Hashable
    ) -> None:
        # In the order of their names, so that two queries never wait for each other.
        self._parts = parts
        self.data_version = data_version
        with self._locked():
            self.mark: Hashable = tuple(partition.mark(reader) for partition in parts)

    def candidates(self, query: Query, *, size: int) -> Pool:
        """Return about `size` candidates by keywords, as many by vectors, and neighbours of the
        best."""
        from memory_mesh.index.candidates import find_candidates

        with self._locked():
            parts = [
                (each.table, view := each.view(query), each.flags(query, view))
                for each in self._parts
                if len(each.table)
            ]
            return find_candidates(query, parts, size=size)

    def next_valid(self, query: Query) -> int | None:
        """Return when the next memory that the reader can see becomes valid."""
        with self._locked():
            now = float(millis(query.at))
            times = [
                each.table.next_valid(now, each.view(query).readable)
                for each in self._parts
                if len(each.table)
            ]
        return None if (least := min(times, default=inf)) == inf else int(least)

    def speakers(self, query: Query) -> frozenset[str]:
        """Return the speakers of readable memories that the query names, and the tokens that it
        names them by."""
        from memory_mesh.index.view import ViewWords, find_people

        with self._locked():
            views = [(each.table, each.view(query)) for each in self._parts if len(each.table)]
            return find_people(query, views, ViewWords(views)).names(views)

    def _locked(self) -> "_Locked":
        return _Locked(self._parts, self.data_version)


class _Locked:
    """Locks partitions and brings them up to date. A search comes here three times, and
    `contextmanager` takes twice as long."""

    __slots__ = ("_data_version", "_locked", "_parts")

    def __init__(self, parts: Sequence["Partition"], data_version: Hashable) -> None:
        self._parts, self._data_version = parts, data_version
        self._locked: list[Partition] = []

    def __enter__(self) -> None:
        try:
            for partition in self._parts:
                partition.lock.acquire()
                self._locked.append(partition)
            for partition in self._parts:
                partition.refresh(self._data_version)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        while self._locked:
            self._locked.pop().lock.release()


class Partition:
    """The index of one partition: built from its rows or opened from a file, and updated after
    every change.

    Callers hold its lock.
    """

    table: "Table"

    def __init__(
        self, name: str, store: Store, language: str, *, read: "Reading | None" = None
    ) -> None:
        self.lock = RLock()
        self.name, self._store, self._language = name, store, language
        self._read = read or partial(rows_of, store)
        self._mark: str | None = None
        self._data_version: Hashable = None  # of the store, before it was asked for changes
        self._views: list[View] = []
        # By slot, whether a filter allows it.
        self._filters: dict[str, tuple[Where, GrowingArray]] = {}
        # The mark of the state that the table was built or opened from.
        self._start: str | None = None
        # By scope: the mark of the state that its last change since then led to.
        self._changed: dict[Scope, str | None] = {}
        self._replace_table()

    @property
    def size_in_bytes(self) -> int:
        """About how much memory it takes."""
        return _EMPTY_BYTES + self._packed_bytes + self.table.unpacked * _BYTES

    def refresh(self, data_version: Hashable) -> None:
        """Bring the index up to date with a store that has this data version, unless it is."""
        self._bring_up(data_version, max_changes=None)

    def follow(self, data_version: Hashable) -> bool:
        """Do the same if only so many rows changed, and return whether that is so."""
        return self._bring_up(data_version, max_changes=MAX_FOLLOWED)

    def _bring_up(self, data_version: Hashable, *, max_changes: int | None) -> bool:
        if data_version == self._data_version:
            return True
        try:
            if not self._refresh(max_changes):
                return False
            self._data_version = data_version
        except BaseException:
            # Half of a change would lose memories silently, so the next query builds everything
            # again.
            self._mark = self._data_version = None
            self._replace_table()
            raise
        return True

    def _refresh(self, max_changes: int | None) -> bool:
        if self._mark is None:
            self._open()
        while (changes := self._store.changes(self.name, self._mark)).mark != self._mark:
            if max_changes is not None and (
                changes.keys is None or len(changes.keys) > max_changes
            ):
                return False
            self._mark = changes.mark
            if changes.keys is not None:
                self._apply(list(dict.fromkeys(changes.keys)))
                if self.table.unpacked > max(MAX_UNPACKED, self.table.base_size // 5):
                    self._pack()
                return True  # later changes came after the query
            self._build()
        return True

    def mark(self, reader: Reader) -> Hashable:
        """Return a value that changes with the memories of the partition that a reader can see."""
        scopes = [self.table.names.scopes[code] for code in self.table.visible_scopes(reader)]
        return self._start, *((scope, self._changed.get(scope)) for scope in scopes)

    def view(self, query: Query) -> "View":
        """Return what the reader of a query sees of the partition."""
        from memory_mesh.index.view import View

        reader, statuses, now = query.reader, frozenset(query.statuses), float(millis(query.at))
        view = next((view for view in self._views if view.serves(reader, statuses)), None)
        view = view or View(self.table, reader, statuses, now)
        if not self._views or view is not self._views[-1]:
            self._views = [*(other for other in self._views if other is not view), view][
                -_MAX_VIEWS:
            ]
        view.move_to(now)
        return view

    def flags(self, query: Query, view: "View") -> "Flags | None":
        """Return by slot whether the filter of a query allows the memory, and whether it is
        valid then; None if all are."""
        import numpy as np

        flags, hidden = self._filter(query.where), self.table.not_valid(query.periods)
        hidden = hidden[view.readable[hidden]]
        if not len(hidden):
            return flags
        flags = np.ones(len(self.table), np.bool_) if flags is None else flags.copy()
        flags[hidden] = False
        return flags

    def _filter(self, where: Where) -> "Flags | None":
        """Return by slot whether a filter allows the memory; None for no filter."""
        if where == ANYTHING:
            return None
        key = repr(where)  # conditions on True and on 1 are equal, but do not mean the same
        flags = self._filters.pop(key)[1] if key in self._filters else self._evaluate(where)
        self._filters[key] = where, flags  # at the end, as the most recently used
        if len(self._filters) > _MAX_FILTERS:
            del self._filters[next(iter(self._filters))]
        return flags.values

    def _evaluate(self, where: Where) -> "GrowingArray":
        import numpy as np

        from memory_mesh.index.arrays import GrowingArray
        from memory_mesh.index.view import flags_of

        flags = flags_of(where, self.table)
        if flags is None:
            flags = np.zeros(len(self.table), np.bool_)
            ids = self._store.ids(Kind.MEMORY, all_of(equals("partition", self.name), where))
            flags[self.table.slots_of(Kind.MEMORY, ids)] = True
        return GrowingArray(flags)

    def close(self) -> None:
        """Write a file for the next process, if it is worth it."""
        folder, size = self._store.index_folder, len(self.table)
        if folder is None or size < MIN_FILE_SIZE or self._mark is None:
            return
        if self.table.unpacked * 10 >= size or not file_of(folder, self.name).exists():
            self._pack()

    # --- from the store ---

    def _build(self) -> None:
        self._replace_table()
        self._start_marks()
        for kind in _KINDS:
            for rows in self._read(kind, self.name):
                check_cancelled()
                self.table.put(kind, rows)
        if len(self.table) > MAX_UNPACKED:
            self._pack()

    def _apply(self, keys: Sequence[Key]) -> None:
        changed: set[int] = set()
        for kind in _KINDS:
            for ids in batches([key.id for key in keys if key.kind is kind], BATCH):
                rows = self._rows(kind, ids)
                if dropped := self.table.drop(kind, set(ids) - {row.id for row in rows}):
                    # The file may contain what was erased.
                    forget(self._store.index_folder, [self.name])
                changed.update(dropped, self.table.put(kind, IndexedRows.of(rows)))
                self._update_filters(rows if kind is Kind.MEMORY else ())
        if changed:
            for code in set(self.table.column("scope")[list(changed)].tolist()):
                self._changed[self.table.names.scopes[code]] = self._mark
            for view in self._views:
                view.update(sorted(changed))

    def _update_filters(self, memories: Sequence[Row]) -> None:
        if len(memories) > _MAX_FILTERED:
            self._filters.clear()
        slots = (
            self.table.slots_of(Kind.MEMORY, [row.id for row in memories]).tolist()
            if self._filters
            else []
        )
        for where, flags in self._filters.values():
            flags.grow(len(self.table), value=False)
            for slot, row in zip(slots, memories, strict=True):
                flags.values[slot] = where.matches(row)

    def _start_marks(self) -> None:
        self._start = self._mark
        self._changed.clear()

    def _rows(self, kind: Kind, ids: Sequence[str]) -> list[Row]:
        """Return the rows of this partition with these ids, in the order of the ids."""
        stored = self._store.get(kind, ids)
        return [stored[id_] for id_ in ids if id_ in stored and stored[id_].partition == self.name]

    # --- from and to files ---

    def _open(self) -> None:
        folder = self._store.index_folder
        saved = load(file_of(folder, self.name)) if folder else None
        if (
            saved
            and saved.language == self._language
            and self._store.changes(self.name, saved.mark).keys is not None
        ):
            with suppress(ValueError, KeyError, IndexError, TypeError):
                self._replace_table(saved.columns, saved.names)
                self._mark = saved.mark
                self._start_marks()
        if self._mark is None:
            forget(folder, [self.name])

    def _pack(self) -> None:
        """Pack everything into a new base: in a file if there may be one, else in memory."""
        columns, names = self.table.packed()
        folder = self._store.index_folder
        if folder and len(self.table) >= MIN_FILE_SIZE and self._mark:
            path = file_of(folder, self.name)
            if save(path, Saved(self._mark, self._language, names, columns)):
                saved = load(path)
                columns = saved.columns if saved and saved.mark == self._mark else columns
                self._forget_erased()
        self._replace_table(columns, names)
        self._packed_bytes = sum(column.nbytes for column in columns.values())
        release_memory()  # building an index frees a kilobyte for each memory

    def _forget_erased(self) -> None:
        """Delete the file if something was erased while it was written: the eraser may have
        looked for it too early."""
        try:
            keys = self._store.changes(self.name, self._mark).keys
            for kind in _KINDS:
                ids = {key.id for key in keys or () if key.kind is kind}
                if keys is None or ids - {row.id for row in self._rows(kind, sorted(ids))}:
                    forget(self._store.index_folder, [self.name])
        except StoreError:
            forget(self._store.index_folder, [self.name])

    def _replace_table(
        self, columns: "Columns | None" = None, names: "Names | None" = None
    ) -> None:
        from memory_mesh.index.table import Table

        self.table = Table(self._language, columns, names)
        self._packed_bytes = 0
        self._views.clear()
        self._filters.clear()
