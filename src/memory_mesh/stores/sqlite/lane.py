"""Rows of Memory Lane in the table `memories`: recognise its files, and take up its rows.

A row that Memory Lane inserted or replaced has none of our columns. One that it changed has lost
its partition (see `tables.TRIGGERS`). Taking up fills in what its own columns and its metadata say;
the columns that it does not know stay.
"""

import json
import re
import sqlite3
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from math import isinf
from typing import Any

from memory_mesh.core.intake import Draft, fingerprint
from memory_mesh.core.lane import DEFAULT_COLLECTION
from memory_mesh.core.lane.scoring import MAX_FEEDBACK
from memory_mesh.core.model import (
    INT_MAX,
    Key,
    Kind,
    MemoryType,
    Reader,
    Row,
    Usage,
    Used,
    Value,
    Vector,
    iso,
    partition_for,
)
from memory_mesh.core.search import tokens
from memory_mesh.stores.base import decode_json, number_of, texts_of, time_of
from memory_mesh.stores.sqlite import queries
from memory_mesh.stores.sqlite.tables import forget_moves, record_moves

# The columns of Memory Lane's table, by which its files are recognised.
COLUMNS = frozenset({
    "id", "content", "metadata", "collection", "tags", "embedding", "decay_factor", "valid_from",
    "valid_until", "superseded_by", "auto_tags", "keywords", "created_at", "updated_at",
})  # fmt: skip

# SQLite allows NULL in a text primary key; such a row has no id.
_WAITING = "partition IS NULL AND id IS NOT NULL"
_UNKNOWN = iso(0)  # in place of an unreadable time
# Larger numbers are milliseconds; as seconds they would be in the year 5138.
_SECONDS = 100_000_000_000
# Sorts like our own times, and stays as it is.
_COMPARABLE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def has_foreign_rows(connection: sqlite3.Connection) -> bool:
    """Return whether rows that Memory Lane has written wait to be taken up."""
    return (
        connection.execute(f"SELECT 1 FROM memories WHERE {_WAITING} LIMIT 1").fetchone()
        is not None
    )


def adopt(connection: sqlite3.Connection, *, logged: bool) -> None:
    """Take up the rows of Memory Lane, in the caller's transaction. Its own values stay, except
    those that cannot be read.

    `logged` says that the triggers were there when it wrote, and have logged what it replaced and
    deleted.
    """
    cursor = connection.execute(f"SELECT * FROM memories WHERE {_WAITING}")
    names, moved, used = (
        [column[0] for column in cursor.description],
        defaultdict[str, list[Key]](list),
        list[Row](),
    )
    for values in cursor.fetchall():
        found = dict(zip(names, values, strict=True))
        row = found | (mended := _mended(found))
        read = _metadata(row["metadata"])
        home = _adopt(connection, row, read, mended)
        moved[home].append(Key(Kind.MEMORY, row["id"]))
        used += _usage(connection, row["id"], read, home)
    if moved:
        queries.Writing(connection).put(used)
        record_moves(connection, moved)
        if not logged:  # readers that follow a partition must read all of it again
            forget_moves(connection)


def _mended(row: dict[str, Any]) -> dict[str, Any]:
    """Return texts in place of bytes, without NUL, for columns that need it, and no vector in
    place of an unreadable one."""
    texts = {
        name: value.decode(errors="replace")
        for name, value in row.items()
        if isinstance(value, bytes)
    }
    texts |= {
        name: value for name, value in row.items() if isinstance(value, str) and "\0" in value
    }
    mended: dict[str, Any] = {
        name: _text(text)
        for name, text in texts.items()
        if name not in ("id", "embedding", "tokens")
    }
    data = row["embedding"]
    if data is not None and not (
        isinstance(data, bytes) and data and len(data) % 4 == 0 and Vector("", data).finite
    ):
        mended["embedding"] = None
    return mended


def _adopt(
    connection: sqlite3.Connection,
    row: dict[str, Any],
    read: dict[str, Value],
    mended: dict[str, Any],
) -> str:
    """Fill in our columns of a row, and return its partition."""
    if (at := _time(row["created_at"]) or _UNKNOWN) == _UNKNOWN:
        read.setdefault("created_at", row["created_at"])
    sealed, changes = connection.execute(
        "SELECT (SELECT max(memory_revision) FROM yamo_blocks WHERE ref = :id), "
        "(SELECT max(number) FROM records WHERE kind = 'change' AND ref = :id)", {"id": row["id"]}
    ).fetchone()  # fmt: skip
    type_ = row["memory_type"] or MemoryType.GLOBAL.value
    home = partition_for(row["user_id"], row["agent_id"], type_, row["reach"])
    project = None if row["collection"] in (None, DEFAULT_COLLECTION) else row["collection"]
    draft = Draft(
        content=row["content"], metadata=read, columns={"project": project, "memory_type": type_}
    )
    values = {
        **mended,
        "partition": home,
        # A replaced row continues its history, and is not the sealed one.
        "revision": max(changes or 1, (sealed or 0) + 1),
        "number": row["number"] or 0,
        "salt": None,
        "metadata": _unchanged(row["metadata"], read),
        "tags": _unchanged(row["tags"], _texts(row["tags"])),
        "project": project,
        "memory_type": type_,
        "fingerprint": row["fingerprint"]
        if row["salt"]
        else fingerprint(Reader(row["user_id"], row["agent_id"]), draft),
        "created_at": at,
        "updated_at": _time(row["updated_at"]) or _UNKNOWN,
        "keywords": _dumped(tokens(row["content"])),
        "model": row["model"]
        or (f"unknown/{len(row['embedding']) // 4}" if row["embedding"] else None),
        "tokens": row["tokens"] if row["model"] else None,  # else those of another text
        **_described(row, read),
    }
    assignments = ", ".join(f"{name} = ?" for name in values)
    connection.execute(
        f"UPDATE memories SET {assignments} WHERE id = ?", (*values.values(), row["id"])
    )
    return home


def _described(row: dict[str, Any], read: dict[str, Value]) -> dict[str, object]:
    """Return the columns that the metadata of Memory Lane describe. What they do not name stays."""
    kind, times, slugs, count = (
        read.get(name)
        for name in ("memory_type", "times_observed", "entity_slugs", "feedback_count")
    )
    confidence, replaces = number_of(read.get("confidence_score"), 100), read.get("supersedes")
    by = row["superseded_by"] or read.get("superseded_by")
    found: dict[str, object] = {
        "category": kind if isinstance(kind, str) else None,
        "times_observed": times if isinstance(times, int) and times > 0 else None,
        "confidence": None if confidence is None else confidence / 100,
        "entities": _dumped(texts_of(slugs)) if isinstance(slugs, list) else None,
        "feedback_score": number_of(read.get("feedback_score"), MAX_FEEDBACK),
        "feedback_count": count if isinstance(count, int) and 0 <= count <= INT_MAX else None,
        "supersedes": _dumped(texts_of(replaces)) if isinstance(replaces, list) else None,
        "last_observed": _time(read.get("last_observed_at")),
    }
    defaults = {"times_observed": 1, "entities": "[]"}
    columns = {name: row[name] if value is None else value for name, value in found.items()}
    return {
        **{name: defaults.get(name) if value is None else value for name, value in columns.items()},
        "valid_from": _bound(row["valid_from"], read.get("valid_from")),
        "valid_until": _bound(row["valid_until"], read.get("valid_until")),
        "superseded_by": by if isinstance(by, str) else None,
        "status": "superseded"
        if by
        else "active"
        if row["status"] in (None, "superseded")
        else row["status"],
    }


def _usage(
    connection: sqlite3.Connection, id_: str, read: dict[str, Value], home: str
) -> list[Row]:
    """Return the row that counts the accesses to a memory, if Memory Lane knows of more or later
    ones."""
    count, at = read.get("access_count"), _time(read.get("last_accessed_at"))
    if not isinstance(count, int) or not 0 < count <= INT_MAX or at is None:
        return []
    query = "SELECT extra, revision FROM records WHERE kind = 'usage' AND id = ?"
    extra, revision = connection.execute(query, (id_,)).fetchone() or ("{}", 0)
    old = Used.of(decode_json(extra)) or Used(0, at)
    new = Used(max(count, old.access_count), max(at, old.last_accessed))
    usage = Usage(
        id=id_,
        created_at=at,
        ref=id_,
        access_count=new.access_count,
        last_accessed=new.last_accessed,
    )
    return (
        [] if new == old else [replace(usage, revision=revision + 1).row(home, replaces=revision)]
    )


def _metadata(text: str | None) -> dict[str, Value]:
    """Parse the metadata of Memory Lane; a text that is not a JSON object is kept under the key
    `unread`."""
    value = _json(text)
    with suppress(RecursionError):
        if isinstance(value, dict):
            return {_text(name): _storable(each) for name, each in value.items()}
    return {"unread": text} if text and value is not None else {}


def _storable(value: Value) -> Value:
    """Return a JSON value with numbers that are too large, and NUL, in a form that every store
    can hold."""
    if isinstance(value, dict):
        return {_text(name): _storable(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_storable(each) for each in value]
    too_large = (
        isinstance(value, int | float)
        and abs(value) > INT_MAX
        and (isinstance(value, int) or isinf(value))
    )
    return str(value) if too_large else _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    return text.replace("\0", "\ufffd")


def _texts(text: str | None) -> list[Value]:
    """Parse the tags of Memory Lane; a text that is not a JSON array becomes one tag."""
    value = _json(text)
    items = value if isinstance(value, list) else [text] if text and value is not None else []
    return [
        item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items
    ]


def _json(text: str | None, *, constant: type = str) -> Value:
    try:
        # NaN is not valid JSON and is kept as text.
        value: Value = json.loads(text or "null", parse_constant=constant)
    except (ValueError, RecursionError):  # ValueError: not JSON, or a number of thousands of digits
        return text
    return value


def _unchanged(text: str | None, read: Value) -> str | None:
    """Return the original text if it parses to the same value, else new JSON with half surrogate
    pairs replaced."""
    if text is None and not read:
        return None
    clean = _dumped(read)
    return (
        text
        if text
        and clean == json.dumps(read, ensure_ascii=False)
        and _json(text, constant=float) == read
        else clean
    )


def _dumped(value: Value | list[str]) -> str:
    return (
        json.dumps(value, ensure_ascii=False)
        .encode("utf-8", "surrogatepass")
        .decode("utf-8", "replace")
    )


def _bound(column: str | None, described: Value) -> str | None:
    """Return the beginning or the end of a validity: of the column, or else of the metadata.
    None if it cannot be read."""
    text = column or described
    return text if isinstance(text, str) and _COMPARABLE.fullmatch(text) else _time(text)


def _time(text: object) -> str | None:
    """Parse a time written as ISO 8601, or as seconds or milliseconds since 1970. None if it
    cannot be read."""
    if not isinstance(text, str | int | float) or isinstance(text, bool):
        return None
    if at := time_of(str(text)):
        return at
    with suppress(ValueError, OverflowError):
        number = float(text)
        return iso(round(number if number > _SECONDS else number * 1000))
    return None
