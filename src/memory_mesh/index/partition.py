"""The index of one partition: built from its rows or opened from a file, and updated after every change.

A file is a line of JSON, followed by arrays as they lie in memory, so opening it means mapping it.
"""

import json
import mmap
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import RLock

import numpy as np

from memory_mesh.core.errors import StoreError
from memory_mesh.core.model import WITH_VECTOR, Key, Kind, Reader, Row, batches, equals
from memory_mesh.core.ports import Store
from memory_mesh.index.arrays import Array, Columns
from memory_mesh.index.files import file_of, forget, write
from memory_mesh.index.table import Names, Scope, Table, View, entry_of, key_of

BATCH = 2000  # rows read together
MAX_UNPACKED = 2000  # slots outside of the base, however small it is; otherwise a fifth of it
MIN_FILE_SIZE = 1000  # fewer memories are read from the store as fast as from a file
_MAX_VIEWS, _MAX_READERS = 4, 256
_MAGIC = b"memory-mesh index 1\n"
_ALIGNMENT = 64


class Partition:
    """The index of one partition. Callers hold its lock."""

    def __init__(self, name: str, store: Store, language: str) -> None:
        self.lock = RLock()
        self._name, self._store, self._language = name, store, language
        self._mark: str | None = None
        self._table = Table(language)
        self._views: list[View] = []
        self._readers: dict[tuple[Reader, frozenset[str]], View] = {}

    @property
    def table(self) -> Table:
        return self._table

    def refresh(self) -> None:
        """Bring the index up to date with the store."""
        try:
            self._refresh()
        except BaseException:
            # Half of a change would lose memories silently, so the next query builds everything again.
            self._mark = None
            self._replace(Table(self._language))
            raise

    def _refresh(self) -> None:
        if self._mark is None:
            self._open()
        changes = self._store.changes(self._name, self._mark)
        while changes.mark != self._mark:
            if changes.keys is None:
                self._mark = changes.mark
                self._build()
            else:
                self._apply(list(dict.fromkeys(changes.keys)))
                self._mark = changes.mark
                if self._table.unpacked > max(MAX_UNPACKED, self._table.base_size // 5):
                    self._pack()
                return  # later changes came after the query
            changes = self._store.changes(self._name, self._mark)

    def view(self, reader: Reader, statuses: Sequence[str], now: float) -> View:
        """Return what a reader sees of the partition."""
        key = reader, frozenset(statuses)
        view = self._readers.get(key) or next((view for view in self._views if view.serves(*key)), None)
        if view is None:
            view = View(self._table, *key, now)
            self._views = [*self._views[1 - _MAX_VIEWS :], view]
            self._readers = {reader: known for reader, known in self._readers.items() if known in self._views}
        elif view is not self._views[-1]:
            self._views = [*(other for other in self._views if other is not view), view]
        if len(self._readers) >= _MAX_READERS:
            self._readers.clear()
        self._readers[key] = view
        view.move_to(now)
        return view

    def close(self) -> None:
        """Write a file for the next process, if it is worth it."""
        folder, size = self._store.index_folder, len(self._table)
        if folder is None or size < MIN_FILE_SIZE or self._mark is None:
            return
        if self._table.unpacked * 10 >= size or not file_of(folder, self._name).exists():
            self._pack()

    # --- from the store ---

    def _build(self) -> None:
        self._replace(Table(self._language))
        for kind in WITH_VECTOR:
            for rows in self._pages(kind):
                self._table.put([entry_of(row) for row in rows])
        if len(self._table) > MAX_UNPACKED:
            self._pack()

    def _pages(self, kind: Kind) -> Iterator[list[Row]]:
        last = None
        while rows := self._store.find(kind, equals("partition", self._name), limit=BATCH, after=last):
            yield rows
            last = rows[-1]

    def _apply(self, keys: Sequence[Key]) -> None:
        scopes = len(self._table.names.scopes)
        changed: list[int] = []
        for kind in WITH_VECTOR:
            for ids in batches([key.id for key in keys if key.kind is kind], BATCH):
                rows = [row for row in self._store.get(kind, ids).values() if row.partition == self._name]
                gone = set(ids) - {row.id for row in rows}
                if dropped := self._table.drop([key_of(kind, id_) for id_ in gone]):
                    forget(self._store.index_folder, [self._name])  # the file may contain what was erased
                changed += dropped + self._table.put([entry_of(row) for row in rows])
        if len(self._table.names.scopes) > scopes:  # a view is right for the reader it was built for; others may differ now
            self._readers = {reader: view for reader, view in self._readers.items() if reader == (view.reader, view.statuses)}
        if changed:
            slots = np.unique(np.array(changed, np.int32))
            for view in self._views:
                view.update(slots)

    # --- from and to files ---

    def _open(self) -> None:
        folder = self._store.index_folder
        saved = load(file_of(folder, self._name)) if folder else None
        if saved and saved.language == self._language and self._store.changes(self._name, saved.mark).keys is not None:
            try:
                self._replace(Table(self._language, saved.columns, saved.names))
                self._mark = saved.mark
            except (ValueError, KeyError, IndexError, TypeError):
                saved = None
        if self._mark is None:
            forget(folder, [self._name])

    def _pack(self) -> None:
        """Pack everything into a new base: in a file if there may be one, else in memory."""
        columns, names = self._table.packed()
        folder = self._store.index_folder
        if folder and len(self._table) >= MIN_FILE_SIZE and self._mark:
            path = file_of(folder, self._name)
            if save(path, Saved(self._mark, self._language, names, columns)):
                saved = load(path)
                columns = saved.columns if saved and saved.mark == self._mark else columns
                self._forget_erased()
        self._replace(Table(self._language, columns, names))

    def _forget_erased(self) -> None:
        """Delete the file if something was erased while it was written: the eraser may have looked for it too early."""
        try:
            keys = self._store.changes(self._name, self._mark).keys
            for kind in WITH_VECTOR:
                ids = {key.id for key in keys or () if key.kind is kind}
                rows = self._store.get(kind, sorted(ids)).values()
                if keys is None or ids - {row.id for row in rows if row.partition == self._name}:
                    forget(self._store.index_folder, [self._name])
        except StoreError:
            forget(self._store.index_folder, [self._name])

    def _replace(self, table: Table) -> None:
        self._table = table
        self._views.clear()
        self._readers.clear()


# --- the file format ---


@dataclass(frozen=True, slots=True)
class Saved:
    """The contents of a file: a table, and the mark of the partition's state that it was built from."""

    mark: str
    language: str
    names: Names
    columns: Columns


def save(path: Path, saved: Saved) -> bool:
    """Write a file; return False if that fails."""
    return write(path, _bytes(saved))


def load(path: Path) -> Saved | None:
    """Map a file; return None if it is missing, damaged or of another format."""
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if mapped[: len(_MAGIC)] != _MAGIC:
            return None
        end = mapped.find(b"\n", len(_MAGIC)) + 1
        head = json.loads(mapped[len(_MAGIC) : end])
        # Without the checksum, arrays that a bad disk changed would silently give wrong results.
        if zlib.crc32(memoryview(mapped)[end:]) != head["sum"]:
            return None
        names = head["names"]
        return Saved(
            head["mark"], head["language"],
            Names(
                [Scope(*scope) for scope in names["scopes"]], names["sessions"], names["speakers"],
                [(model, dimension) for model, dimension in names["models"]],
            ),
            {name: _column(mapped, *where) for name, where in head["columns"].items()},
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _column(mapped: mmap.mmap, start: int, dtype: str, shape: list[int]) -> Array:
    count = int(np.prod(shape))
    if start + count * np.dtype(dtype).itemsize > len(mapped):
        raise ValueError("the file is too short")
    return np.frombuffer(mapped, dtype, count, start).reshape(shape)


def _bytes(saved: Saved) -> Iterator[bytes | memoryview]:
    arrays = [np.ascontiguousarray(column) for column in saved.columns.values()]
    body = [part for array in arrays for part in _padded(array)]
    head = {"mark": saved.mark, "language": saved.language, "names": asdict(saved.names), "sum": _checksum(body)}
    # The offsets of the arrays depend on the length of the head and the reverse, so the head is padded.
    places = [[0, array.dtype.str, list(array.shape)] for array in arrays]
    columns = dict(zip(saved.columns, places, strict=True))
    room = _aligned(len(_MAGIC) + len(json.dumps({**head, "columns": columns})) + 24 * len(arrays))
    start = room
    for place, array in zip(places, arrays, strict=True):
        place[0] = start
        start = _aligned(start + array.nbytes)
    yield (_MAGIC + json.dumps({**head, "columns": columns}).encode()).ljust(room - 1) + b"\n"
    yield from body


def _padded(array: Array) -> tuple[bytes | memoryview, bytes]:
    return array.reshape(-1).view(np.uint8).data if array.size else b"", bytes(_aligned(array.nbytes) - array.nbytes)


def _checksum(parts: Iterable[bytes | memoryview]) -> int:
    total = 0
    for part in parts:
        total = zlib.crc32(part, total)
    return total


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
