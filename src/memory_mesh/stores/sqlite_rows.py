"""Rows in SQLite's tables: how one is written, with its postings and what it adds up to, and how it is read back."""

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any

from memory_mesh.core.columns import BASE, BY_NAME, MOVING, Kind, fields_of
from memory_mesh.core.errors import Conflict, IdTaken
from memory_mesh.core.lexical import Corpus, Posting
from memory_mesh.core.rows import Key, Row, Vector
from memory_mesh.core.where import Where
from memory_mesh.stores.sql import Compiler, Sql
from memory_mesh.stores.sqlite_schema import BLOCKS, MEMORIES, Table, decode, encode, table_of


class Writing:
    """One change within a transaction, and what it adds up to for each partition."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._moved: Counter[str] = Counter()
        self._documents: Counter[str] = Counter()
        self._length: Counter[str] = Counter()

    def delete(self, key: Key) -> None:
        table = table_of(key.kind)
        held = self._held(key, table)
        if held is None:
            return
        self._forget(key, *held)
        kind = "" if table.name != "records" else f" AND kind = '{key.kind.value}'"
        self._connection.execute(f"DELETE FROM {table.name} WHERE id = ?{kind}", (key.id,))

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
            self._forget(row.key, *held)
            self._write(f"UPDATE {table.name} SET ({{names}}) = ({{marks}}) WHERE id = ?{_of_kind(row, table)}", row, table)
        self._learn(row, held[0] if held else None)

    def count(self) -> None:
        """Bring versions and statistics of the touched partitions up to date."""
        touched = self._moved.keys() | self._documents.keys() | self._length.keys()
        self._connection.executemany(
            "INSERT INTO partitions VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET version = version + excluded.version, "
            "documents = documents + excluded.documents, length = length + excluded.length",
            [(name, self._moved[name], self._documents[name], self._length[name]) for name in sorted(touched)],
        )

    def _held(self, key: Key, table: Table) -> tuple[str, int, int] | None:
        """The partition, revision and number of keywords of what is there now."""
        words = "json_array_length(coalesce(keywords, '[]'))" if table is MEMORIES else "0"
        kind = "" if table.name != "records" else f" AND kind = '{key.kind.value}'"
        query = f"SELECT partition, revision, {words} FROM {table.name} WHERE id = ?{kind}"
        found: tuple[str, int, int] | None = self._connection.execute(query, (key.id,)).fetchone()
        return found

    def _write(self, statement: str, row: Row, table: Table) -> None:
        values = _encoded(row, table)
        text = statement.format(names=", ".join(values), marks=", ".join("?" * len(values)))
        params = [*values.values(), row.id] if statement.startswith("UPDATE") else [*values.values()]
        self._connection.execute(text, params)

    def _forget(self, key: Key, partition: str, _revision: int, words: int) -> None:
        if key.kind in MOVING:
            self._moved[partition] += 1
        if words:
            # The old keywords say which postings there are; scanning for an id would read the whole table.
            old = self._connection.execute("SELECT value FROM memories, json_each(keywords) WHERE memories.id = ?", (key.id,))
            gone = {(token, partition, key.id) for (token,) in old.fetchall()}
            self._connection.executemany("DELETE FROM postings WHERE token = ? AND partition = ? AND id = ?", gone)
            self._documents[partition] -= 1
            self._length[partition] -= words

    def _learn(self, row: Row, was_in: str | None) -> None:
        if row.kind in MOVING and row.partition != was_in:
            self._moved[row.partition] += 1
        words = row.value("keywords")
        if row.kind is Kind.MEMORY and isinstance(words, list) and words:
            times = Counter(str(word) for word in words)
            self._connection.executemany(
                "INSERT INTO postings VALUES (?, ?, ?, ?, ?)",
                [(word, row.partition, row.id, n, len(words)) for word, n in times.items()],
            )
            self._documents[row.partition] += 1
            self._length[row.partition] += len(words)


def _of_kind(row: Row, table: Table) -> str:
    return "" if table.name != "records" else f" AND kind = '{row.kind.value}'"


def condition_on(kind: Kind, where: Where) -> Sql:
    table = table_of(kind)
    held = {column.name for column in fields_of(kind)}
    of_kind = f"kind = '{kind.value}' AND " if table.name == "records" else ""

    def reach(column: str) -> str:
        if column == "kind":
            return f"'{kind.value}'"
        known = column in held or column in BASE
        return table.reach(column) if known else "NULL"  # a field that the kind lacks is missing from every row

    compiled = Compiler(reach).where(where)
    return Sql(f"{of_kind}({compiled.text})", compiled.params)


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


def row_of(kind: Kind, table: Table, held: dict[str, Any]) -> Row:
    extra: dict[str, Any] = json.loads(held.get("extra") or "{}")
    fields = {}
    for column in fields_of(kind):
        name = column.name
        value = decode(column, held[table.physical(name)]) if name in table.columns else extra.get(name)
        if value is not None:
            fields[name] = value
    data, model = held.get("embedding"), held.get("model")
    return Row(
        kind=kind,
        id=held["id"],
        partition=held["partition"],
        created_at=held[table.physical("created_at")],
        revision=held["revision"],
        number=held["number"],
        fields=fields,
        vector=Vector(model, data) if data is not None and model is not None else None,
    )


def version_of(connection: sqlite3.Connection, partition: str) -> int:
    held = connection.execute("SELECT version FROM partitions WHERE partition = ?", (partition,)).fetchone()
    return int(held[0]) if held else 0


def postings_of(
    connection: sqlite3.Connection, tokens: set[str], partitions: Sequence[str]
) -> tuple[Corpus, dict[str, list[Posting]]]:
    marks = ", ".join("?" * len(partitions))
    among = tuple(partitions)
    query = f"SELECT sum(documents), sum(length) FROM partitions WHERE partition IN ({marks})"
    documents, length = connection.execute(query, among).fetchone()
    query = f"SELECT id, times, length FROM postings WHERE token = ? AND partition IN ({marks})"
    postings = {token: [Posting(*row) for row in connection.execute(query, (token, *among))] for token in tokens}
    return Corpus(documents or 0, length or 0), postings
