"""The version, mark and log of moves of each partition, and a check that they agree with the memories.

A move is a put or a delete of a row that affects searches (`MOVING`). Each move raises the version by one.
"""

import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from memory_mesh.core.model import Key, Kind
from memory_mesh.core.ports import Changes
from memory_mesh.stores.base import BEGINNING, KEPT_MOVES, mark_of, version_in

_TRIMMED_EVERY = 1_000  # moves; trimming the log less often keeps most changes fast

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


class _Move(NamedTuple):
    version: int
    nonce: str
    kind: str
    id: str


def version_of(connection: sqlite3.Connection, partition: str) -> int:
    row = connection.execute("SELECT version FROM partitions WHERE partition = ?", (partition,)).fetchone()
    return int(row[0]) if row else 0


def record_moves(connection: sqlite3.Connection, moved: Mapping[str, Sequence[Key]]) -> None:
    """Raise the version of each partition by the number of its moves, and log them, in the transaction of the caller."""
    nonce = secrets.token_hex(8)  # the random function of SQLite would repeat itself on both sides of a fork
    for partition, keys in moved.items():
        before = version_of(connection, partition)
        after = before + len(keys)
        connection.execute("INSERT OR REPLACE INTO partitions VALUES (?, ?, ?)", (partition, after, nonce))
        connection.executemany(
            "INSERT INTO moves VALUES (?, ?, ?, ?, ?)",
            [(partition, at, nonce, key.kind.value, key.id) for at, key in enumerate(keys, before + 1)],
        )
        if after // _TRIMMED_EVERY > before // _TRIMMED_EVERY:
            connection.execute("DELETE FROM moves WHERE partition = ? AND version <= ?", (partition, after - KEPT_MOVES))


def forget_moves(connection: sqlite3.Connection) -> None:
    """Clear the log and raise every version: readers that follow a partition must read all of it again."""
    connection.execute("DELETE FROM moves")
    connection.execute("UPDATE partitions SET version = version + 1, nonce = ?", (secrets.token_hex(8),))
    # The new log starts with an entry without a row, so that readers can follow from this state.
    connection.execute("INSERT INTO moves SELECT partition, version, nonce, '', '' FROM partitions")


def changes_of(connection: sqlite3.Connection, partition: str, since: str | None) -> Changes:
    """Return the moves since a mark, or None for the keys when the mark is unknown."""
    state = connection.execute("SELECT version, nonce FROM partitions WHERE partition = ?", (partition,)).fetchone()
    now = mark_of(*state) if state else BEGINNING
    if since == now:
        return Changes(now, ())
    version = version_in(since)
    if version is None:
        return Changes(now, None)
    # One statement reads one snapshot: its first move produced the old mark, its last move produces the new one.
    query = "SELECT version, nonce, kind, id FROM moves WHERE partition = ? AND version >= ? ORDER BY version"
    moves = [_Move(*row) for row in connection.execute(query, (partition, version))]
    first = moves[0] if moves else None
    if since == BEGINNING and first and first.version == 1:
        return _changes(moves, moves)
    known = first is not None and mark_of(first.version, first.nonce) == since
    return _changes(moves, moves[1:]) if known else Changes(now, None)


def _changes(moves: Sequence[_Move], new: Sequence[_Move]) -> Changes:
    return Changes(mark_of(moves[-1].version, moves[-1].nonce), [Key(Kind(move.kind), move.id) for move in new])


def derived_faults(file: Path) -> list[str]:
    """Return what is wrong with the keywords, versions and logs of a store file. A fault makes searches miss memories."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        connection.execute("BEGIN")
        counts = {what: connection.execute(query).fetchone()[0] for what, query in _FAULTS.items()}
    return [f"{number} {what}" for what, number in counts.items() if number]
