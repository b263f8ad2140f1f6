"""Rows in the tables of SQLite: write a change, read rows back, and build the queries that select them."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from memory_mesh.core.errors import Conflict, IdTaken
from memory_mesh.core.model import (
    BASE,
    BY_NAME,
    MOVING,
    And,
    Compare,
    In,
    Key,
    Kind,
    Row,
    Status,
    Vector,
    Where,
    all_of,
    fields_of,
)
from memory_mesh.stores.sql import Compiler, Sql
from memory_mesh.stores.sqlite.changes import record_moves
from memory_mesh.stores.sqlite.schema import BLOCKS, MEMORIES, READERS, Table, encode, table_of

_MAX_MERGED = 8  # partitions; SQLite would merge 500, but each costs a cursor
_MAX_PARAMETERS = 30_000  # SQLite accepts 32,766


class Writing:
    """Writes one change within a transaction, and collects the moves that it causes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._moved: defaultdict[str, list[Key]] = defaultdict(list)

    def delete(self, key: Key) -> None:
        table = table_of(key.kind)
        stored = self._stored(key, table)
        if stored is None:
            return
        self._connection.execute(f"DELETE FROM {table.name} WHERE id = ?{_of_kind(key.kind, table)}", (key.id,))
        self._move(key, stored[0])

    def put(self, row: Row) -> None:
        table = table_of(row.kind)
        stored = self._stored(row.key, table)
        if not row.replaces:
            if stored:
                raise IdTaken(f"{row.kind} {row.id} already exists")
            self._write(f"INSERT INTO {table.name} ({{names}}) VALUES ({{marks}})", row, table)
        else:
            if stored is None or stored[1] != row.replaces:
                raise Conflict(f"{row.kind} {row.id} is not at revision {row.replaces}")
            of_kind = _of_kind(row.kind, table)
            self._write(f"UPDATE {table.name} SET ({{names}}) = ({{marks}}) WHERE id = ?{of_kind}", row, table)
        self._move(row.key, row.partition, *([stored[0]] if stored else []))

    def log(self) -> None:
        """Raise the versions of the changed partitions, and log their moves."""
        record_moves(self._connection, self._moved)

    def _stored(self, key: Key, table: Table) -> tuple[str, int] | None:
        """Return the partition and revision of the stored row."""
        query = f"SELECT partition, revision FROM {table.name} WHERE id = ?{_of_kind(key.kind, table)}"
        stored: tuple[str, int] | None = self._connection.execute(query, (key.id,)).fetchone()
        return stored

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
    for name in (*BASE, *(column.name for column in fields_of(row.kind))):
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


def rows_of(kind: Kind, cursor: sqlite3.Cursor) -> list[Row]:
    """Return the rows of a query that selects all columns."""
    table, at = table_of(kind), {column[0]: place for place, column in enumerate(cursor.description)}
    columns = [column for column in fields_of(kind) if column.name in table.columns]
    # Computed once for all rows: there are forty columns, and a large partition has many rows.
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
            kind=kind, id=id_, partition=partition, created_at=created_at, revision=revision, number=number, fields=fields,
            vector=Vector(of, data) if data is not None and of is not None else None,
        )  # fmt: skip

    return [row(values) for values in cursor]


def documents(connection: sqlite3.Connection, partitions: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Return every memory of these partitions with its keywords."""
    marks = ", ".join("?" * len(partitions))
    query = f"SELECT id, keywords FROM memories WHERE partition IN ({marks}) AND keywords IS NOT NULL"
    return ((id_, json.loads(words)) for id_, words in connection.execute(query, tuple(partitions)))


# --- queries ---


def condition_on(kind: Kind, where: Where) -> Sql:
    """Compile a condition on the rows of a kind."""
    table = table_of(kind)
    fields = {column.name for column in fields_of(kind)}
    of_kind = f"kind = '{kind.value}' AND " if table.name == "records" else ""

    def expression(column: str) -> str:
        if column == "kind":
            return f"'{kind.value}'"
        known = column in fields or column in BASE
        return table.expression(column) if known else "NULL"  # the kind lacks the field, so every row does

    compiled = Compiler(expression).where(where)
    return Sql(f"{of_kind}({compiled.text})", compiled.params)


def page(kind: Kind, where: Where, *, limit: int | None, after: Row | None) -> Sql:
    """Build the query of `find`: rows of a kind, newest first."""
    table = table_of(kind)
    created = table.physical("created_at")
    selects = _by_age(where, after) if kind is Kind.MEMORY and limit is not None else []
    if not selects or sum(len(select.params) for select in selects) > _MAX_PARAMETERS:
        selects = [_select(kind, table.name, where, after)]
    text = " UNION ALL ".join(select.text for select in selects)
    order = f"ORDER BY {created} DESC, number DESC, id DESC"
    limited = "" if limit is None else f" LIMIT {int(limit)}"
    return Sql(f"{text} {order}{limited}", tuple(param for select in selects for param in select.params))


def near(kind: Kind, vector: Vector, where: Where) -> Sql:
    """Build the query for ids and vectors of one model and dimension; a passage has the id of its memory."""
    condition = condition_on(kind, where)
    owners = f"FROM {table_of(kind).name} WHERE ({condition.text})"
    same = "model = ? AND length(embedding) = ?"
    text, params = f"SELECT id, embedding {owners} AND {same}", (*condition.params, vector.model, len(vector.data))
    if kind is Kind.MEMORY:
        text += f" UNION ALL SELECT ref, embedding FROM records WHERE kind = 'passage' AND {same} AND ref IN (SELECT id {owners})"
        params = (*params, vector.model, len(vector.data), *condition.params)
    return Sql(text, params)


def _select(kind: Kind, source: str, where: Where, after: Row | None) -> Sql:
    created = table_of(kind).physical("created_at")
    condition = condition_on(kind, where)
    text, params = f"SELECT * FROM {source} WHERE {condition.text}", condition.params
    if after is None:
        return Sql(text, params)
    return Sql(f"{text} AND ({created}, number, id) < (?, ?, ?)", (*params, *after.age_key))


def _by_age(where: Where, after: Row | None) -> list[Sql]:
    """Build one query for each partition in the condition; SQLite merges their results and stops at the limit.

    A single query would read and sort all active memories of the user. Returns an empty list when another index is faster.
    """
    parts = where.parts if isinstance(where, And) else (where,)
    among = next((part for part in parts if isinstance(part, In) and part.column == "partition"), None)
    if among is None or len(among.values) > _MAX_MERGED or not _are_many(parts):
        return []
    others = [part for part in parts if part is not among]
    source = "memories INDEXED BY memories_by_age"
    each = [all_of(Compare("partition", "=", name), *others) for name in dict.fromkeys(among.values)]
    return [_select(Kind.MEMORY, source, one, after) for one in each]


def _are_many(parts: Sequence[Where]) -> bool:
    """Estimate whether many rows match: most memories are active, and lists of ids are short."""
    named = [part for part in parts if isinstance(part, Compare | In)]
    rare = any(isinstance(part, In) and part.column == "status" and Status.ACTIVE not in part.values for part in named)
    return not rare and not any(part.column == "id" for part in named)
