"""Rows of Memory Lane in the table `memories`: recognise its files, and adopt its rows.

A row that Memory Lane wrote has none of our columns. The first write of ours fills them in.
"""

import json
import sqlite3
from contextlib import suppress

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.lane.scoring import MAX_FEEDBACK
from memory_mesh.core.model import INT_MAX, Key, Kind, MemoryType, Value, iso, parse_time, partition
from memory_mesh.core.search import tokens
from memory_mesh.stores.sqlite.moves import forget_moves, record_moves

# The columns of Memory Lane's table, by which its files are recognised.
COLUMNS = frozenset(
    {
        *("id", "content", "metadata", "collection", "tags", "embedding", "decay_factor", "valid_from", "valid_until"),
        *("superseded_by", "auto_tags", "keywords", "created_at", "updated_at"),
    }
)

_FOREIGN = "partition IS NULL AND id IS NOT NULL"  # SQLite allows NULL in a text primary key; such a row has no id
_UNKNOWN = iso(0)  # in place of an unreadable time
_SECONDS = 100_000_000_000  # larger numbers are milliseconds; as seconds they would be in the year 5138


def has_foreign_rows(connection: sqlite3.Connection) -> bool:
    """Return whether Memory Lane has written rows since the last opening."""
    return connection.execute(f"SELECT 1 FROM memories WHERE {_FOREIGN} LIMIT 1").fetchone() is not None


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
    sealed, changes = connection.execute(
        "SELECT (SELECT max(memory_revision) FROM yamo_blocks WHERE ref = ?1), "
        "(SELECT max(number) FROM records WHERE kind = 'change' AND ref = ?1)", (id_,)
    ).fetchone()  # fmt: skip
    kind, times, slugs = (read.get(name) for name in ("memory_type", "times_observed", "entity_slugs"))
    confidence, count = _number(read.get("confidence_score"), 100), read.get("feedback_count")
    values = {
        "partition": shared,
        "revision": max(changes or 1, (sealed or 0) + 1),  # a replaced row continues its history, and is not the sealed one
        "number": 0,
        "metadata": _unchanged(metadata, read),
        "tags": _unchanged(tags, _texts(tags)),
        "project": None if collection in (None, "memory-lane") else collection,
        "memory_type": MemoryType.GLOBAL.value,
        "category": kind if isinstance(kind, str) else None,
        "status": "superseded" if superseded_by else "active",
        "times_observed": times if isinstance(times, int) and times > 0 else 1,
        "confidence": None if confidence is None else confidence / 100,
        "entities": _dumped([slug for slug in slugs if isinstance(slug, str)] if isinstance(slugs, list) else []),
        "feedback_score": _number(read.get("feedback_score"), MAX_FEEDBACK),
        "feedback_count": count if isinstance(count, int) and 0 <= count <= INT_MAX else None,
        "created_at": at,
        "updated_at": _time(updated),
        "keywords": _dumped(tokens(content)),
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
    clean = _dumped(read)
    return text if text and clean == json.dumps(read, ensure_ascii=False) and _json(text, constant=float) == read else clean


def _dumped(value: Value | list[str]) -> str:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _number(value: Value, most: float) -> float | None:
    """Return a number from 0 to `most`, else None."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most else None


def _time(text: str) -> str:
    """Parse a time written as ISO 8601, or as seconds or milliseconds since 1970."""
    with suppress(InvalidInput):
        return parse_time(text, "created_at")
    with suppress(ValueError, OverflowError):
        number = float(text)
        return iso(round(number if number > _SECONDS else number * 1000))
    return _UNKNOWN
