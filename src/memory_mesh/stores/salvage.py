"""Read what can be read of a damaged store. The damaged files are only read."""

import json
import os
import shutil
import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_mesh.core.errors import InvalidInput, StoreCorrupt, StoreError
from memory_mesh.core.model import Kind, Row, checked
from memory_mesh.stores import json as json_folder
from memory_mesh.stores.journal import Record, parse_change
from memory_mesh.stores.ram import RamStore
from memory_mesh.stores.sqlite import queries, tables

if TYPE_CHECKING:
    from memory_mesh.stores.lance.schema import Table


@dataclass(frozen=True, slots=True)
class Lost:
    """Rows that cannot be read, and why; a count of 0 means that it is not known how many."""

    kind: str
    count: int
    reason: str


Found = Row | Lost
_UNREADABLE = (
    # of a value that another program changed, or that was damaged
    sqlite3.Error, ValueError, TypeError, LookupError, AttributeError, RecursionError, InvalidInput,
    StoreCorrupt,
)  # fmt: skip
_JOURNAL = "changes of the journal"


# --- SQLite ---


def salvage_sqlite(path: Path, scratch: Path) -> Iterator[Found]:
    """Yield the rows of a file. A copy in the folder `scratch` is read, because SQLite may write
    to what it opens."""
    for suffix in ("", "-wal", "-journal"):
        with suppress(FileNotFoundError):
            shutil.copyfile(path.with_name(path.name + suffix), scratch / f"damaged{suffix}")
    with closing(sqlite3.connect(scratch / "damaged", isolation_level=None)) as connection:
        try:
            # Otherwise SQLite refuses a file that was cut.
            connection.execute("PRAGMA writable_schema = ON")
            tables.check_version(connection)
            existing = {
                name: tables.columns_of(connection, name) for (name,) in connection.execute(_TABLES)
            }
        except (sqlite3.Error, UnicodeDecodeError) as error:
            yield Lost("table", 0, f"the tables of the file cannot be found: {error}")
            return
        for kind in Kind:
            if columns := existing.get(tables.table_of(kind).name):
                yield from _Table(connection, kind, columns).rows()
            else:
                yield Lost(kind, 0, f"the table {tables.table_of(kind).name} is missing")


_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"


class _Table:
    """The rows of one kind in a damaged file: from both ends up to the damage, and then one by
    one."""

    def __init__(self, connection: sqlite3.Connection, kind: Kind, existing: set[str]) -> None:
        table = tables.table_of(kind)
        self._connection, self._kind, self._name = connection, kind, table.name
        self._has_rowid = table is not tables.RECORDS
        self._key, self._of_kind = (
            ("rowid", "TRUE") if self._has_rowid else ("id", f"kind = '{kind.value}'")
        )
        names = (
            name if name in existing else "NULL" for name in queries.reading_of(kind).own_columns
        )
        self._columns = ", ".join(names)  # a file of an earlier version lacks some
        self._seen: set[Any] = set()

    def rows(self) -> Iterator[Found]:
        fault = yield from self._scan("ASC")
        if fault is None:
            return
        first = {*self._seen}
        yield from self._scan("DESC")
        known, lost, last = self._known(), 0, self._seen - first
        between = set[Any]()
        if self._has_rowid and last:
            between.update(range(max(first, default=0) + 1, min(last)))
        for key in between | known:
            if key not in self._seen:
                row = self._read(key)
                if isinstance(row, Row):
                    yield row
                elif row is not None and (not known or key in known):
                    lost += 1
        yield Lost(self._kind, lost, f"a part of the table {self._name} cannot be read: {fault}")

    def _scan(self, order: str) -> Generator[Found, None, str | None]:
        """Yield the rows in an order up to the first that cannot be read, and return why it
        cannot."""
        query = (
            f"SELECT {self._key}, {self._columns} FROM {self._name} WHERE {self._of_kind} ORDER BY "
            f"{self._key} {order}"
        )
        try:
            for key, *values in self._connection.execute(query):
                if key not in self._seen:
                    self._seen.add(key)
                    yield self._decoded(values)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            return str(error)
        return None

    def _read(self, key: object) -> Found | None:
        """Return one row; None if there is none."""
        query = (
            f"SELECT {self._columns} FROM {self._name} WHERE {self._of_kind} AND {self._key} = ?"
        )
        try:
            values = self._connection.execute(query, (key,)).fetchone()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            return Lost(self._kind, 1, str(error))
        return None if values is None else self._decoded(values)

    def _decoded(self, values: Iterable[object]) -> Found:
        try:
            (row,) = queries.rows_of(self._kind, [[*values]])
            return checked(row)
        except _UNREADABLE as error:
            return Lost(self._kind, 1, f"a row of {self._name} cannot be read: {error}"[:200])

    def _known(self) -> set[Any]:
        """Return the keys that the indexes of the table name."""
        found: set[Any] = set()
        indexes = "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = ?"
        for (index,) in self._connection.execute(indexes, [self._name]).fetchall():
            for condition in ("TRUE", "ref IS NOT NULL", "target IS NOT NULL"):
                query = (
                    f"SELECT {self._key} FROM {self._name} INDEXED BY {index} WHERE "
                    f"{self._of_kind} AND {condition}"
                )
                # A damaged index, or one that has other rows only.
                with suppress(sqlite3.Error, UnicodeDecodeError):
                    found.update(key for (key,) in self._connection.execute(query))
        return found


# --- JSON ---


def salvage_json(root: Path) -> Iterator[Found]:
    """Yield the rows of a folder: of its files, line by line if needed, and of the changes in
    its journal."""
    store, lost = RamStore(), list[Lost]()
    for name, kinds in json_folder.FILES.items():
        for item in _json_items(root / name):
            try:
                row = checked(json_folder.decode_item(item))
                store.put([row])
            except _UNREADABLE as error:
                lost.append(Lost(kinds[0], 1, f"a row of {name} cannot be read: {error}"[:200]))
    with suppress(FileNotFoundError):
        data = (root / json_folder.JOURNAL).read_bytes().removesuffix(b"\n")
        for number, record in enumerate(json_folder.lines(data + b"\n")):
            lost += _replay(store, record, f"line {number + 1}", is_header=number == 0)
    yield from lost
    for kind in Kind:
        yield from store.rows_of(kind)


def _json_items(file: Path) -> Iterator[Any]:
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return
    try:
        items = json.loads(data)
        yield from items if isinstance(items, list) else [items]
    except (ValueError, RecursionError):
        for line in data.splitlines():
            if (text := line.strip().rstrip(b",")) not in (b"[", b"]", b"[]", b""):
                try:
                    yield json.loads(text)
                except (ValueError, RecursionError):
                    yield None


def _replay(
    store: RamStore, record: Record, place: str, *, is_header: bool = False
) -> Iterator[Lost]:
    try:
        if not record.is_sound:
            raise StoreCorrupt("its checksum is wrong")
        if is_header:
            json_folder.check_format(json.loads(record.body), "the journal")
        else:
            change = parse_change(record.body)
            store.put(map(checked, change.puts), change.deletes)
    except _UNREADABLE as error:
        yield Lost(_JOURNAL, int(not is_header), f"{place} of the journal: {error}"[:200])


# --- LanceDB ---


def salvage_lance(root: Path) -> Iterator[Found]:
    """Yield the rows of a folder: of its tables, in pieces where one cannot be read, and of the
    changes in its journal."""
    from memory_mesh.stores.lance import journal
    from memory_mesh.stores.lance.schema import TABLES

    own, state, store, lost = root / journal.OWN, None, RamStore(), list[Lost]()
    try:
        state = journal.read_state(own)
    except StoreCorrupt as error:
        lost.append(Lost("state", 0, str(error)))
    for table in TABLES:
        for found in _lance_rows(root, table, state.tables.get(table.name) if state else None):
            if isinstance(found, Lost):
                lost.append(found)
            else:
                store.put([found])
    number = (
        state.generation
        if state
        else max((int(one.name[8:]) for one in own.glob("journal-*")), default=0)
    )
    with suppress(FileNotFoundError):
        for record in journal.records(journal.journal_of(own, number).read_bytes()):
            lost += _replay(store, record, f"byte {record.start}")
    yield from lost
    for kind in Kind:
        yield from store.rows_of(kind)


def _lance_rows(root: Path, table: "Table", version: int | None) -> Iterator[Found]:
    import lance

    from memory_mesh.stores.lance.journal import folder_of, latest_version, translated
    from memory_mesh.stores.lance.schema import from_arrow, kinds_of

    if latest_version(root, table) is None:
        return
    kind = kinds_of(table)[0]
    try:
        with translated(table.name), _no_panic():
            fragments = lance.dataset(str(folder_of(root, table)), version=version).get_fragments()
    except StoreError as error:
        yield Lost(kind, 0, str(error)[:200])
        return

    def read(fragment: object, start: int, count: int) -> Iterator[Found]:
        try:
            with translated(table.name), _no_panic():
                names = [name for name in table.read_columns if name in fragment.schema.names]  # type: ignore[attr-defined]
                data = fragment.to_table(columns=names, offset=start, limit=count)  # type: ignore[attr-defined]
                rows = [
                    checked(row) for row in from_arrow(table, data) if row.partition is not None
                ]
        except (StoreError, *_UNREADABLE) as error:
            if count <= 1:
                yield Lost(kind, count, str(error)[:200])
                return
            yield from read(fragment, start, count // 2)
            yield from read(fragment, start + count // 2, count - count // 2)
        else:
            yield from rows

    for fragment in fragments:
        yield from read(fragment, 0, fragment.count_rows())


@contextmanager
def _no_panic() -> Iterator[None]:
    """Raise a panic of Lance, which is no `Exception`, as an error."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError(str(error)[:200]) from error


def salvage(path: Path, scratch: Path) -> Iterator[Found]:
    """Yield what can be read of the store at a path, and what cannot."""
    if not os.path.isdir(path):
        return salvage_sqlite(path, scratch)
    if any(path.glob("*.lance")):
        return salvage_lance(path)
    return salvage_json(path)
