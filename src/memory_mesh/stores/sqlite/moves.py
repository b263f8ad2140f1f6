"""The log of moves in the SQLite store, the versions of its partitions, and what can be wrong with them.

A move is a put or a delete of a row that affects searches (`MOVING`). Each move raises the version of its partition by one.
"""

import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from memory_mesh.core.errors import StoreCorrupt, shown
from memory_mesh.core.model import Key, Kind
from memory_mesh.core.ports import Changes
from memory_mesh.stores.base import BEGINNING, KEPT_MOVES, mark_of, version_in

TABLES = (
    """CREATE TABLE IF NOT EXISTS partitions (
      partition TEXT PRIMARY KEY, version INTEGER NOT NULL, nonce TEXT NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS moves (
      partition TEXT NOT NULL, version INTEGER NOT NULL, nonce TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL,
      PRIMARY KEY (partition, version)) WITHOUT ROWID""",
)

_KINDS = frozenset(kind.value for kind in Kind)
_TRIMMED_EVERY = 1_000  # moves; trimming the log less often keeps most changes fast


def state_of(connection: sqlite3.Connection, partition: str) -> tuple[int, str]:
    """Return the version of a partition and the nonce of its last change."""
    query = "SELECT version, nonce FROM partitions WHERE partition = ?"
    version, nonce = connection.execute(query, (partition,)).fetchone() or (0, "")
    if type(version) is not int or type(nonce) is not str:  # edited by hand
        raise StoreCorrupt(f"the version of the partition {shown(partition)} cannot be read", remedy="restore a backup")
    return version, nonce


def record_moves(
    connection: sqlite3.Connection, moved: Mapping[str, Sequence[Key]], versions: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Raise the version of each partition by its moves, and log them, in the caller's transaction. Return the new versions.
    `versions` has those that the transaction has read already."""
    new: dict[str, int] = {}
    nonce = secrets.token_hex(8)  # the random function of SQLite would repeat itself on both sides of a fork
    for name, keys in moved.items():
        before = versions[name] if versions and name in versions else state_of(connection, name)[0]
        after = before + len(keys)
        connection.execute("INSERT OR REPLACE INTO partitions VALUES (?, ?, ?)", (name, after, nonce))
        connection.executemany(
            "INSERT INTO moves VALUES (?, ?, ?, ?, ?)",
            [(name, at, nonce, key.kind.value, key.id) for at, key in enumerate(keys, before + 1)],
        )
        if after // _TRIMMED_EVERY > before // _TRIMMED_EVERY:
            connection.execute("DELETE FROM moves WHERE partition = ? AND version <= ?", (name, after - KEPT_MOVES))
        new[name] = after
    return new


def forget_moves(connection: sqlite3.Connection) -> None:
    """Clear the log and raise every version: readers that follow a partition must read all of it again."""
    connection.execute("DELETE FROM moves")
    connection.execute("UPDATE partitions SET version = version + 1, nonce = ?", (secrets.token_hex(8),))
    # The new log starts with an entry without a row, so that readers can follow from this state.
    connection.execute("INSERT INTO moves SELECT partition, version, nonce, '', '' FROM partitions")


def changes_of(connection: sqlite3.Connection, partition: str, since: str | None) -> Changes:
    """Return the moves since a mark, or None for the keys when the mark is unknown."""
    now, version = mark_of(*state_of(connection, partition)), version_in(since)
    if since == now:
        return Changes(now, ())
    if version is None:
        return Changes(now, None)
    # One statement reads one snapshot: its first move produced the old mark, its last move produces the new one.
    query = "SELECT version, nonce, kind, id FROM moves WHERE partition = ? AND version >= ? ORDER BY version"
    moves = connection.execute(query, (partition, version)).fetchall()
    if since == BEGINNING and moves and moves[0][0] == 1:
        new = moves
    elif moves and mark_of(*moves[0][:2]) == since:
        new = moves[1:]
    else:
        return Changes(now, None)
    if any(kind not in _KINDS for _, _, kind, _ in new):  # edited by hand
        return Changes(now, None)
    return Changes(mark_of(*moves[-1][:2]), [Key(Kind(kind), id_) for _, _, kind, id_ in new])


_FAULTS = {
    "memories with unreadable keywords": """
        SELECT count(*) FROM memories
        WHERE partition IS NOT NULL AND CASE json_valid(keywords) WHEN 1 THEN json_type(keywords) END IS NOT 'array'""",
    "memories in partitions without a version": """
        SELECT count(*) FROM memories WHERE partition IS NOT NULL AND partition NOT IN (SELECT partition FROM partitions)""",
    "partitions whose log does not end at their version": """
        SELECT count(*) FROM (SELECT partition, max(version) AS version, nonce FROM moves GROUP BY partition) AS last
        LEFT JOIN partitions USING (partition) WHERE (last.version, last.nonce) IS NOT (partitions.version, partitions.nonce)""",
}


def derived_faults(file: Path) -> list[str]:
    """Return what is wrong with the keywords, versions and logs of a store file. A fault makes searches miss memories."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        connection.execute("BEGIN")
        counts = {what: connection.execute(query).fetchone()[0] for what, query in _FAULTS.items()}
    return [f"{number} {what}" for what, number in counts.items() if number]
