"""What moved each partition: its version, the mark of the state that it is in, and the log of the rows that led there."""

import secrets
import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.rows import Key
from memory_mesh.core.ports import Changes
from memory_mesh.stores.marks import BEGINNING, KEPT, mark_of, version_in

_TRIMMED_EVERY = 1_000  # moves; the log is a little longer than it need be, and few changes pay for its cutting


class _Move(NamedTuple):
    version: int
    nonce: str
    kind: str
    id: str


def version_of(connection: sqlite3.Connection, partition: str) -> int:
    held = connection.execute("SELECT version FROM partitions WHERE partition = ?", (partition,)).fetchone()
    return int(held[0]) if held else 0


def record(connection: sqlite3.Connection, moved: Mapping[str, Sequence[Key]]) -> None:
    """Raise the version of each partition by what moved in it, and log that, within the caller's transaction."""
    nonce = secrets.token_hex(8)  # SQLite's own chance would be the same on both sides of a fork
    for partition, keys in moved.items():
        before = version_of(connection, partition)
        after = before + len(keys)
        connection.execute("INSERT OR REPLACE INTO partitions VALUES (?, ?, ?)", (partition, after, nonce))
        connection.executemany(
            "INSERT INTO moves VALUES (?, ?, ?, ?, ?)",
            [(partition, at, nonce, key.kind.value, key.id) for at, key in enumerate(keys, before + 1)],
        )
        if after // _TRIMMED_EVERY > before // _TRIMMED_EVERY:
            connection.execute("DELETE FROM moves WHERE partition = ? AND version <= ?", (partition, after - KEPT))


def forget(connection: sqlite3.Connection) -> None:
    """Move every partition to a state of which nothing is known: whoever follows one must read it anew."""
    connection.execute("DELETE FROM moves")
    connection.execute("UPDATE partitions SET version = version + 1, nonce = ?", (secrets.token_hex(8),))
    # The log begins anew with that state, reached by no row's move: it is a mark that can be followed from.
    connection.execute("INSERT INTO moves SELECT partition, version, nonce, '', '' FROM partitions")


def changes_of(connection: sqlite3.Connection, partition: str, since: str | None) -> Changes:
    held = connection.execute("SELECT version, nonce FROM partitions WHERE partition = ?", (partition,)).fetchone()
    now = mark_of(*held) if held else BEGINNING
    if since == now:
        return Changes(now, ())
    asked = version_in(since)
    if asked is None:
        return Changes(now, None)
    # One statement sees one moment: it begins with the move that led to the mark and ends with the one that led to the answer's.
    query = "SELECT version, nonce, kind, id FROM moves WHERE partition = ? AND version >= ? ORDER BY version"
    moves = [_Move(*row) for row in connection.execute(query, (partition, asked))]
    first = moves[0] if moves else None
    if since == BEGINNING and first and first.version == 1:
        return _told(moves, moves)
    known = first is not None and mark_of(first.version, first.nonce) == since
    return _told(moves, moves[1:]) if known else Changes(now, None)


def _told(moves: Sequence[_Move], new: Sequence[_Move]) -> Changes:
    return Changes(mark_of(moves[-1].version, moves[-1].nonce), [Key(Kind(move.kind), move.id) for move in new])
