"""The tables of the SQLite store: create them, upgrade older files and adopt rows of Memory Lane.

`memories` is the table of Memory Lane with our columns added, so its files open here and its program can read what we write.
Rows that Memory Lane wrote are adopted when the file is opened. `yamo_blocks` is the table of RFC-0011.
"""

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from memory_mesh.core.errors import InvalidInput, StoreTooNew
from memory_mesh.core.model import (
    COLUMNS,
    Column,
    Key,
    Kind,
    MemoryType,
    Type,
    Value,
    fields_of,
    iso,
    parse_time,
    partition,
)
from memory_mesh.core.search import tokens
from memory_mesh.stores.sqlite.changes import forget_moves, record_moves

VERSION = 2

_FOREIGN = "partition IS NULL AND id IS NOT NULL"  # SQLite allows NULL in a text primary key; such a row has no id
_UNKNOWN = iso(0)  # in place of an unreadable time
_SECONDS = 100_000_000_000  # larger numbers are milliseconds; as seconds they would be in the year 5138

LANE_TABLE = """
CREATE TABLE IF NOT EXISTS memories (
  id TEXT PRIMARY KEY,
  content TEXT NOT NULL,
  metadata TEXT,
  collection TEXT DEFAULT 'memory-lane',
  tags TEXT,
  embedding BLOB,
  decay_factor REAL DEFAULT 1.0,
  valid_from TEXT,
  valid_until TEXT,
  superseded_by TEXT,
  auto_tags TEXT,
  keywords TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
)
"""

OTHER_TABLES = (
    """CREATE TABLE IF NOT EXISTS yamo_blocks (
      id TEXT PRIMARY KEY, agent_id TEXT, operation_type TEXT NOT NULL, yamo_text TEXT NOT NULL, timestamp TEXT NOT NULL,
      block_hash TEXT NOT NULL, prev_hash TEXT, metadata TEXT)""",
    """CREATE TABLE IF NOT EXISTS records (
      kind TEXT NOT NULL, id TEXT NOT NULL, embedding BLOB, model TEXT, extra TEXT, PRIMARY KEY (kind, id)) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS partitions (
      partition TEXT PRIMARY KEY, version INTEGER NOT NULL, nonce TEXT NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS moves (
      partition TEXT NOT NULL, version INTEGER NOT NULL, nonce TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL,
      PRIMARY KEY (partition, version)) WITHOUT ROWID""",
)

INDEXES = (
    "CREATE INDEX IF NOT EXISTS memories_by_status ON memories (user_id, status)",
    "CREATE INDEX IF NOT EXISTS memories_by_age ON memories (partition, created_at, number, id)",
    "CREATE INDEX IF NOT EXISTS memories_by_fingerprint ON memories (fingerprint) WHERE fingerprint IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS memories_by_sources ON memories (user_id, sources)",
    "CREATE INDEX IF NOT EXISTS memories_to_take_up ON memories (id) WHERE partition IS NULL",
    "CREATE INDEX IF NOT EXISTS blocks_by_ref ON yamo_blocks (ref) WHERE ref IS NOT NULL",
    "CREATE UNIQUE INDEX IF NOT EXISTS blocks_by_number ON yamo_blocks (chain, number)",
    "CREATE INDEX IF NOT EXISTS records_by_ref ON records (kind, ref) WHERE ref IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS records_by_target ON records (kind, target) WHERE target IS NOT NULL",
)

_TYPES = {Type.INT: "INTEGER", Type.REAL: "REAL", Type.BOOL: "INTEGER"}
_RECORD_COLUMNS = ("user_id", "agent_id", "session_id", "memory_type", "reach", "ref", "target")


class Table:
    """Which fields a table keeps as columns; the others are JSON in `extra`."""

    def __init__(self, name: str, columns: tuple[str, ...], renamed: dict[str, str] | None = None) -> None:
        self.name = name
        self.columns = columns
        self._renamed = renamed or {}

    def physical(self, column: str) -> str:
        return self._renamed.get(column, column)

    def expression(self, column: str) -> str:
        """Return the SQL expression of a field: its column, or its place in the JSON."""
        return self.physical(column) if column in self.columns else f"json_extract(extra, '$.{column}')"


def _promoted(kind: Kind) -> tuple[str, ...]:
    return ("id", "partition", "revision", "number", "created_at", *(column.name for column in fields_of(kind)))


MEMORIES = Table("memories", _promoted(Kind.MEMORY))
BLOCKS = Table("yamo_blocks", _promoted(Kind.BLOCK), {"created_at": "timestamp"})
RECORDS = Table("records", ("id", "kind", "partition", "revision", "number", "created_at", *_RECORD_COLUMNS))


def table_of(kind: Kind) -> Table:
    return {Kind.MEMORY: MEMORIES, Kind.BLOCK: BLOCKS}.get(kind, RECORDS)


def prepare(connection: sqlite3.Connection) -> None:
    """Create or complete the tables in the transaction of the caller."""
    connection.execute("CREATE TABLE IF NOT EXISTS mesh_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
    check_version(connection)
    connection.execute(LANE_TABLE)
    old = _columns(connection, "partitions") >= {"documents", "length"}
    if old:
        connection.execute("ALTER TABLE partitions RENAME TO partitions_1")
    for statement in OTHER_TABLES:
        connection.execute(statement)
    for table in (MEMORIES, BLOCKS, RECORDS):
        _complete(connection, table)
    for statement in INDEXES:
        connection.execute(statement)
    if old:
        _upgrade_from_1(connection)
    adopt(connection)
    connection.execute("INSERT OR REPLACE INTO mesh_meta VALUES ('schema', ?)", (str(VERSION),))


def check_version(connection: sqlite3.Connection) -> bool:
    """Return whether the file has the current schema; False if it must be prepared. A newer schema raises `StoreTooNew`."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'mesh_meta'").fetchone():
        return False
    row = connection.execute("SELECT value FROM mesh_meta WHERE key = 'schema'").fetchone()
    if row is None:
        return False
    if not row[0].isdecimal() or int(row[0]) > VERSION:
        raise StoreTooNew(f"the store has schema {row[0]}", expected=f"at most {VERSION}", remedy="upgrade memory-mesh")
    return int(row[0]) == VERSION


def has_foreign_rows(connection: sqlite3.Connection) -> bool:
    """Return whether Memory Lane has written rows since the last opening."""
    return connection.execute(f"SELECT 1 FROM memories WHERE {_FOREIGN} LIMIT 1").fetchone() is not None


def mark_unfreed(connection: sqlite3.Connection) -> None:
    """Record, in the transaction of a deletion, that its bytes must still be freed: a crash may come before that."""
    connection.execute("INSERT OR IGNORE INTO mesh_meta VALUES ('unfreed', 'yes')")


def unfreed(connection: sqlite3.Connection) -> bool:
    """Return whether the bytes of a deletion must still be freed."""
    return connection.execute("SELECT 1 FROM mesh_meta WHERE key = 'unfreed'").fetchone() is not None


def mark_freed(connection: sqlite3.Connection) -> None:
    """Record that no bytes must be freed."""
    connection.execute("DELETE FROM mesh_meta WHERE key = 'unfreed'")


def encode(column: Column, value: Value) -> str | int | float | None:
    """Convert a value to what SQLite stores."""
    if value is None:
        return None
    if column.type in (Type.TEXTS, Type.JSON):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if column.type is Type.REAL:
        return float(value)  # type: ignore[arg-type]
    return int(value) if column.type is Type.BOOL else value  # type: ignore[arg-type, return-value]


# How a stored value is read back, by type; other types need no conversion.
READERS: Mapping[Type, Callable[[Any], Value]] = {
    # Most lists are empty; skip the parser for them.
    Type.TEXTS: lambda text: [] if text == "[]" else json.loads(text),
    Type.JSON: json.loads,
    Type.BOOL: bool,
}


def adopt(connection: sqlite3.Connection) -> None:
    """Fill in our columns for the rows of Memory Lane. Its own values stay, except those that cannot be read."""
    rows = connection.execute(
        "SELECT id, content, metadata, collection, tags, embedding, superseded_by, created_at, updated_at FROM memories "
        f"WHERE {_FOREIGN}"
    ).fetchall()
    shared = partition(None, None)
    for row in rows:
        _adopt(connection, shared, *row)
    if rows:
        # Memory Lane logs no replacements or deletions, so readers that follow a partition must read all of it again.
        record_moves(connection, {shared: [Key(Kind.MEMORY, row[0]) for row in rows]})
        forget_moves(connection)


def _adopt(
    connection: sqlite3.Connection, shared: str, id_: str, content: str, metadata: str | None, collection: str | None,
    tags: str | None, embedding: bytes | None, superseded_by: str | None, created: str, updated: str,
) -> None:  # fmt: skip
    read = _metadata(metadata)
    if (at := _time(created)) == _UNKNOWN:
        read.setdefault("created_at", created)
    changes = connection.execute("SELECT max(number) FROM records WHERE kind = 'change' AND ref = ?", (id_,)).fetchone()[0]
    kind, times = read.get("memory_type"), read.get("times_observed")
    values = {
        "partition": shared,
        "revision": changes or 1,  # a replaced row continues its history
        "number": 0,
        "metadata": _unchanged(metadata, read),
        "tags": _unchanged(tags, _texts(tags)),
        "project": None if collection in (None, "memory-lane") else collection,
        "memory_type": MemoryType.GLOBAL.value,
        "category": kind if isinstance(kind, str) else None,
        "status": "superseded" if superseded_by else "active",
        "times_observed": times if isinstance(times, int) and times > 0 else 1,
        "created_at": at,
        "updated_at": _time(updated),
        "keywords": json.dumps(tokens(content), ensure_ascii=False),
        "model": f"unknown/{len(embedding) // 4}" if embedding else None,
    }
    assignments = ", ".join(f"{name} = ?" for name in values)
    connection.execute(f"UPDATE memories SET {assignments} WHERE id = ?", (*values.values(), id_))


def _metadata(text: str | None) -> dict[str, Value]:
    """Parse the metadata of Memory Lane; a text that is not a JSON object is kept under the key `unread`."""
    value = _json(text)
    return value if isinstance(value, dict) else {"unread": text} if text and value is not None else {}


def _texts(text: str | None) -> list[Value]:
    """Parse the tags of Memory Lane; a text that is not a JSON array becomes one tag."""
    value = _json(text)
    items = value if isinstance(value, list) else [text] if text and value is not None else []
    return [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items]


def _json(text: str | None, *, constant: type = str) -> Value:
    try:
        value: Value = json.loads(text or "null", parse_constant=constant)  # NaN is not valid JSON and is kept as text
    except (json.JSONDecodeError, RecursionError):
        return text
    return value


def _unchanged(text: str | None, read: Value) -> str | None:
    """Return the original text if it parses to the same value, else new JSON with half surrogate pairs replaced."""
    if text is None and not read:
        return None
    written = json.dumps(read, ensure_ascii=False)
    clean = written.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text if text and clean == written and _json(text, constant=float) == read else clean


def _time(text: str) -> str:
    """Parse a time written as ISO 8601, or as seconds or milliseconds since 1970."""
    with suppress(InvalidInput):
        return parse_time(text, "created_at")
    with suppress(ValueError, OverflowError):
        number = float(text)
        return iso(round(number if number > _SECONDS else number * 1000))
    return _UNKNOWN


def _complete(connection: sqlite3.Connection, table: Table) -> None:
    """Add the columns that the table lacks; all are nullable and come last."""
    existing = _columns(connection, table.name)
    columns = {table.physical(column.name): column.type for column in COLUMNS if column.name in table.columns}
    columns |= {"model": Type.TEXT, "extra": Type.JSON} if table is not BLOCKS else {}
    for name, kind in columns.items():
        if name not in existing:
            connection.execute(f"ALTER TABLE {table.name} ADD COLUMN {name} {_TYPES.get(kind, 'TEXT')}")


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def _upgrade_from_1(connection: sqlite3.Connection) -> None:
    """Upgrade from schema 1, which kept the data of BM25 in tables. The versions are kept; memories have all the rest."""
    connection.execute("INSERT INTO partitions SELECT partition, version, '' FROM partitions_1")
    connection.execute("DROP TABLE partitions_1")
    connection.execute("DROP TABLE IF EXISTS postings")
    forget_moves(connection)
    mark_unfreed(connection)
