"""Files that tests open: of other programs, of Memory Lane, of older versions; and snapshots of
folders."""

import sqlite3
from contextlib import closing
from pathlib import Path

from memory_mesh.stores.sqlite import SqliteStore

from .make_fixture import FOLDER, open_copy

LANE_TABLE = """
CREATE TABLE memories (
  id TEXT PRIMARY KEY, content TEXT NOT NULL, metadata TEXT, collection TEXT DEFAULT \
'memory-lane', tags TEXT, embedding BLOB,
  decay_factor REAL DEFAULT 1.0, valid_from TEXT, valid_until TEXT, superseded_by TEXT, auto_tags \
TEXT, keywords TEXT,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL)"""

# What makes a database that of another program.
FOREIGN = {
    "its tables": ["CREATE TABLE bookmarks (url TEXT)"],
    "its table of the same name": ["CREATE TABLE memories (id INTEGER PRIMARY KEY, text TEXT)"],
    "its application id": [LANE_TABLE, "PRAGMA application_id = 252006674"],
    "its application id alone": ["PRAGMA application_id = 252006674"],
    "a view only": ["CREATE VIEW memories AS SELECT 1 AS id"],
    "a table of the name of ours": [
        "CREATE TABLE mesh_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
    ],
    "another table of the name of ours": ["CREATE TABLE mesh_meta (version INTEGER)"],
}


def snapshot(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """The names, modes, times and bytes of everything in a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (about.st_mode, about.st_mtime_ns, data)
    return found


def prepare(file: Path) -> None:
    """Create the file of a store, or upgrade it, as the first write does."""
    with closing(SqliteStore(file)) as store:
        store.prepare()


def foreign_file(file: Path, kind: str) -> Path:
    with closing(sqlite3.connect(file)) as connection:
        for statement in FOREIGN[kind]:
            connection.execute(statement)
    return file


def lane_file(file: Path, *, wal: bool = False) -> Path:
    """A file of Memory Lane with two rows."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        if wal:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(LANE_TABLE)
        row = "INSERT INTO memories (id, content, created_at, updated_at) VALUES (?, ?, ?, ?)"
        for id_, content in (("plain", "The lantern needs oil"), ("other", "The wick is trimmed")):
            connection.execute(
                row, (id_, content, "2025-01-01T00:00:00.000Z", "2025-01-01T00:00:00.000Z")
            )
    return file


def older_file(file: Path, version: str) -> tuple[Path, str]:
    """A file of an older version, and the id of a memory of ana in it."""
    open_copy(FOLDER / version, file)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        id_ = connection.execute(
            "SELECT id FROM memories WHERE user_id = 'ana' AND agent_id = 'planner'"
        ).fetchone()[0]
    return file, id_
