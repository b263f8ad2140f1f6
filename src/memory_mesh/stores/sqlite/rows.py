"""Rows in SQLite's tables: how one is written, with what it moves, and how it is read back."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from memory_mesh.core.errors import Conflict, IdTaken
from memory_mesh.core.model.columns import BASE, BY_NAME, MOVING, Kind, fields_of
from memory_mesh.core.model.rows import Key, Row, Vector
from memory_mesh.stores.sqlite.changes import record
from memory_mesh.stores.sqlite.schema import BLOCKS, MEMORIES, READERS, Table, encode, table_of


class Writing:
    """One change within a transaction, and what it moves."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._moved: defaultdict[str, list[Key]] = defaultdict(list)

    def delete(self, key: Key) -> None:
        table = table_of(key.kind)
        held = self._held(key, table)
        if held is None:
            return
        self._connection.execute(f"DELETE FROM {table.name} WHERE id = ?{_of_kind(key.kind, table)}", (key.id,))
        self._move(key, held[0])

    def put(self, row: Row) -> None:
        table = table_of(row.kind)
        held = self._held(row.key, table)
        if not row.replaces:
            if held:
                raise IdTaken(f"{row.kind} {row.id} is already there")
            self._write(f"INSERT INTO {table.name} ({{names}}) VALUES ({{marks}})", row, table)
        else:
            if held is None or held[1] != row.replaces:
                raise Conflict(f"{row.kind} {row.id} is not at revision {row.replaces}")
            of_kind = _of_kind(row.kind, table)
            self._write(f"UPDATE {table.name} SET ({{names}}) = ({{marks}}) WHERE id = ?{of_kind}", row, table)
        self._move(row.key, row.partition, *([held[0]] if held else []))

    def log(self) -> None:
        """Bring the versions of the touched partitions up to date, and note what moved them."""
        record(self._connection, self._moved)

    def _held(self, key: Key, table: Table) -> tuple[str, int] | None:
        """The partition and revision of what is there now."""
        query = f"SELECT partition, revision FROM {table.name} WHERE id = ?{_of_kind(key.kind, table)}"
        found: tuple[str, int] | None = self._connection.execute(query, (key.id,)).fetchone()
        return found

    def _write(self, statement: str, row: Row, table: Table) -> None:
        values = _encoded(row, table)
        text = statement.format(names=", ".join(values), marks=", ".join("?" * len(values)))
        params = [*values.values(), row.id] if statement.startswith("UPDATE") else [*values.values()]
        self._connection.execute(text, params)

    def _move(self, key: Key, *partitions: str) -> None:
        for partition in {*partitions} if key.kind in MOVING else ():
            self._moved[partition].append(key)


def _of_kind(kind: Kind, table: Table) -> str:
    return "" if table.name != "records" else f" AND kind = '{kind.value}'"


def _encoded(row: Row, table: Table) -> dict[str, Any]:
    values: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    names = [column.name for column in fields_of(row.kind)]
    for name in (*BASE, *names):
        value = row.value(name)
        if name in table.columns:
            values[table.physical(name)] = encode(BY_NAME[name], value)
        elif value is not None and name != "kind":
            extra[name] = value
    if table is not BLOCKS:
        values["extra"] = json.dumps(extra, ensure_ascii=False) if extra else None
        values["embedding"] = row.vector.data if row.vector else None
        values["model"] = row.vector.model if row.vector else None
    if table is MEMORIES:
        values["collection"] = row.value("project") or "memory-lane"
    return values


def rows_of(kind: Kind, found: sqlite3.Cursor) -> list[Row]:
    """The rows that a query of all columns found."""
    table, at = table_of(kind), {column[0]: place for place, column in enumerate(found.description)}
    columns = [column for column in fields_of(kind) if column.name in table.columns]
    # Looked up once: a large partition is read row by row, and there are forty columns.
    places = [(at[table.physical(column.name)], column.name, READERS.get(column.type)) for column in columns]
    base = [at[table.physical(name)] for name in ("id", "partition", "created_at", "revision", "number")]
    embedding, model, extra = (at.get(name) for name in ("embedding", "model", "extra"))

    def row(values: Sequence[Any]) -> Row:
        fields: dict[str, Any] = json.loads(values[extra]) if extra is not None and values[extra] else {}
        for place, name, read in places:
            value = values[place]
            if value is not None and (value := read(value) if read else value) is not None:
                fields[name] = value
        id_, partition, created_at, revision, number = (values[place] for place in base)
        data, of = (values[embedding], values[model]) if embedding is not None and model is not None else (None, None)
        return Row(
            kind=kind,
            id=id_,
            partition=partition,
            created_at=created_at,
            revision=revision,
            number=number,
            fields=fields,
            vector=Vector(of, data) if data is not None and of is not None else None,
        )

    return [row(values) for values in found]


def documents(connection: sqlite3.Connection, partitions: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Every memory of these partitions with its keywords."""
    marks = ", ".join("?" * len(partitions))
    query = f"SELECT id, keywords FROM memories WHERE partition IN ({marks}) AND keywords IS NOT NULL"
    return ((id_, json.loads(words)) for id_, words in connection.execute(query, tuple(partitions)))
