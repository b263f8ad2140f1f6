"""One partition of the index: made from its rows or from a file, and led after every change."""

from collections.abc import Iterator, Sequence
from threading import RLock
from typing import TypeVar

import numpy as np

from memory_mesh.core.errors import StoreError
from memory_mesh.core.model.columns import WITH_VECTOR, Kind
from memory_mesh.core.model.rows import Key, Row, batches
from memory_mesh.core.model.scope import Reader
from memory_mesh.core.model.where import equals
from memory_mesh.core.ports import Store
from memory_mesh.index.files import file_of, forget
from memory_mesh.index.format import Saved, load, save
from memory_mesh.index.rows import entry_of, key_of
from memory_mesh.index.table import Table
from memory_mesh.index.view import View

AT_ONCE = 2000  # rows read together
LATER = 2000  # so much may lie outside of the base, however small it is; else a fifth of it
WORTH_A_FILE = 1000  # fewer are read as quickly from the store
_VIEWS, _READERS = 4, 256
T = TypeVar("T")


class Partition:
    """The index of one partition. Whoever uses it holds its lock."""

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

    def follow(self) -> None:
        """Be as the partition is now."""
        try:
            self._follow()
        except BaseException:
            # Half of a change would lose memories without a word: whoever asks next finds nothing made, and makes it anew.
            self._mark = None
            self._renew(Table(self._language))
            raise

    def _follow(self) -> None:
        if self._mark is None:
            self._open()
        changes = self._store.changes(self._name, self._mark)
        while changes.mark != self._mark:
            if changes.keys is None:
                self._mark = changes.mark
                self._build()
            else:
                self._take(list(dict.fromkeys(changes.keys)))
                self._mark = changes.mark
                if self._table.unsettled > max(LATER, self._table.based // 5):
                    self._pack()
                return  # what came since then was not there when the question was asked
            changes = self._store.changes(self._name, self._mark)

    def view(self, reader: Reader, statuses: Sequence[str], now: float) -> View:
        """What a reader sees of it."""
        wanted = reader, frozenset(statuses)
        view = self._readers.get(wanted) or next((view for view in self._views if view.serves(*wanted)), None)
        if view is None:
            view = View(self._table, *wanted, now)
            self._views = [*self._views[1 - _VIEWS :], view]
            self._readers = {reader: held for reader, held in self._readers.items() if held in self._views}
        elif view is not self._views[-1]:
            self._views = [*(held for held in self._views if held is not view), view]
        if len(self._readers) >= _READERS:
            self._readers.clear()
        self._readers[wanted] = view
        view.at(now)
        return view

    def close(self) -> None:
        """Leave a file for the next run, if that has become worth it."""
        folder, size = self._store.index_folder, len(self._table)
        if folder is None or size < WORTH_A_FILE or self._mark is None:
            return
        if self._table.unsettled * 10 >= size or not file_of(folder, self._name).exists():
            self._pack()

    # --- from the store ---

    def _build(self) -> None:
        self._renew(Table(self._language))
        for kind in WITH_VECTOR:
            for rows in self._pages(kind):
                self._table.put([entry_of(row) for row in rows])
        if len(self._table) > LATER:
            self._pack()

    def _pages(self, kind: Kind) -> Iterator[list[Row]]:
        last = None
        while rows := self._store.find(kind, equals("partition", self._name), limit=AT_ONCE, after=last):
            yield rows
            last = rows[-1]

    def _take(self, keys: Sequence[Key]) -> None:
        scopes = len(self._table.names.scopes)
        touched: list[int] = []
        for kind in WITH_VECTOR:
            for ids in batches([key.id for key in keys if key.kind is kind], AT_ONCE):
                rows = [row for row in self._store.get(kind, ids).values() if row.partition == self._name]
                gone = set(ids) - {row.id for row in rows}
                if died := self._table.drop([key_of(kind, id_) for id_ in gone]):
                    forget(self._store.index_folder, [self._name])  # it may hold what was erased
                touched += died + self._table.put([entry_of(row) for row in rows])
        if len(self._table.names.scopes) > scopes:  # a view follows the reader that it was made for; others may part from it
            self._readers = {reader: view for reader, view in self._readers.items() if reader == (view.reader, view.statuses)}
        if touched:
            slots = np.unique(np.array(touched, np.int32))
            for view in self._views:
                view.refresh(slots)

    # --- from and to files ---

    def _open(self) -> None:
        folder = self._store.index_folder
        saved = load(file_of(folder, self._name)) if folder else None
        if saved and saved.language == self._language and self._store.changes(self._name, saved.mark).keys is not None:
            try:
                self._renew(Table(self._language, saved.columns, saved.names))
                self._mark = saved.mark
            except (ValueError, KeyError, IndexError, TypeError):
                saved = None
        if self._mark is None:
            forget(folder, [self._name])

    def _pack(self) -> None:
        """Put all into a new base: in a file where there may be one, else in memory."""
        columns, names = self._table.packed()
        folder = self._store.index_folder
        if folder and len(self._table) >= WORTH_A_FILE and self._mark:
            path = file_of(folder, self._name)
            if save(path, Saved(self._mark, self._language, names, columns)):
                held = load(path)
                columns = held.columns if held and held.mark == self._mark else columns
                self._check()
        self._renew(Table(self._language, columns, names))

    def _check(self) -> None:
        """Remove the file again if something was erased while it was written: whoever erased may have looked too early."""
        try:
            keys = self._store.changes(self._name, self._mark).keys
            for kind in WITH_VECTOR:
                wanted = {key.id for key in keys or () if key.kind is kind}
                rows = self._store.get(kind, sorted(wanted)).values()
                if keys is None or wanted - {row.id for row in rows if row.partition == self._name}:
                    forget(self._store.index_folder, [self._name])
        except StoreError:
            forget(self._store.index_folder, [self._name])

    def _renew(self, table: Table) -> None:
        self._table = table
        self._views.clear()
        self._readers.clear()
