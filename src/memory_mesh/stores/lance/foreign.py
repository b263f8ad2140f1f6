"""Memories that other programs wrote into `memory_entries`, with the columns of RFC-0011 only, as rows of ours.

What the columns of V2 leave null comes from the metadata. A value that cannot be read is kept as text in the metadata, and the
second row of an id gets a new one. Rows without an id stay in the table and are not memories.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pyarrow as pa

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.intake.drafts import IMPORTANCE
from memory_mesh.core.model import Kind, MemoryType, Row, Usage, Value, Vector, checked, iso, partition_for, time_of_id
from memory_mesh.core.options import Options
from memory_mesh.core.search import tokens
from memory_mesh.stores.base import parse_foreign, readable
from memory_mesh.stores.lance.schema import is_time, memories_v2, packed_vectors

_DEFAULT_AGENT = Options().agent_id  # of RFC-0011, section 4.2; the tables do not tell which agent wrote a row of V1


def adopted(data: pa.Table, taken: Collection[str] = (), revisions: Mapping[str, int] | None = None) -> Iterator[Row]:
    """Yield the memories in Arrow data of another program, and the rows of their usage.

    The ids in `taken` are not used again. `revisions` are those with which memories begin that were known before; else 1.
    """
    used = set(taken)
    names = [name for name in memories_v2().names if name in data.column_names and name != "vector"]
    columns = {name: _values(data[name]) for name in names}
    vectors = packed_vectors(data["vector"]) if "vector" in data.column_names else [None] * data.num_rows
    for place, packed in enumerate(vectors):
        values = {name: column[place] for name, column in columns.items()}
        if not values.get("id"):
            continue
        memory = _memory(values, packed, used)
        memory = replace(memory, revision=(revisions or {}).get(memory.id, 1))
        used.add(memory.id)
        yield memory
        count, last = values.get("access_count"), _time(values.get("last_accessed"))
        if count and count > 0 and last:
            usage = Usage(id=memory.id, ref=memory.id, created_at=last, access_count=count, last_accessed=last)
            yield usage.row(memory.partition)


def _memory(values: Mapping[str, Any], packed: bytes | None, used: Collection[str]) -> Row:
    metadata, content = _metadata(values.get("metadata")), values.get("content") or ""
    id_ = _free_id(values, used)
    if id_ != values["id"]:
        metadata.setdefault("original_id", values["id"])
    created = _time(values.get("created_at")) or _time(time_of_id(id_)) or iso(0)
    vector = Vector(f"unknown/{len(packed) // 4}", packed) if packed else None
    vector = vector if vector and vector.finite else None
    scope, tags = _scope(values, metadata), metadata.get("tags")
    fields: dict[str, Value] = {
        **scope,
        "content": content,
        "metadata": metadata,
        "tags": [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else [],
        "keywords": [*tokens(content)],
        "importance": _importance(values.get("importance_score"), metadata),
        "updated_at": _time(values.get("updated_at")) or created,
        "status": "active",
        "times_observed": 1,
        "pending": None if vector else True,
        "heritage_chain": _heritage(values.get("heritage_chain"), metadata),
        "lesson_pattern_id": _text(values, metadata, "lesson_pattern_id"),
        "source_skill_id": _text(values, metadata, "source_skill_id"),
    }
    where = partition_for(None, scope["agent_id"], scope["memory_type"], None)
    row = Row(kind=Kind.MEMORY, id=id_, partition=where, created_at=created, fields=fields, vector=vector)
    try:
        return checked(row)
    except (InvalidInput, RecursionError):  # metadata that is nested too deeply, for one
        unread: dict[str, Value] = {"metadata": {"unread": values.get("metadata")}, "heritage_chain": None, "tags": []}
        return checked(replace(row, fields=fields | unread))


def _free_id(values: Mapping[str, Any], used: Collection[str]) -> str:
    """Return the id of a row; if it is used, one with its time that is always the same for these values."""
    id_, number = str(values["id"]), 0
    while id_ in used:
        digits = sha256(repr((sorted(values.items()), number)).encode("utf-8", "replace")).hexdigest()[:6]
        id_, number = f"mem_{time_of_id(str(values['id'])) or 0}_{digits}", number + 1
    return id_


def _scope(values: Mapping[str, Any], metadata: Mapping[str, Value]) -> dict[str, str | None]:
    """Return the columns that decide who sees a memory. A session that is not known is that of the agent."""
    agent, session = (_text(values, metadata, name) for name in ("agent_id", "session_id"))
    given = values.get("memory_type") or metadata.get("type")
    kind = MemoryType(given) if given in list(MemoryType) else MemoryType.GLOBAL
    kind = MemoryType.AGENT if kind is MemoryType.SESSION and not session else kind
    if kind in (MemoryType.SESSION, MemoryType.AGENT):
        agent = agent or _DEFAULT_AGENT
    return {"agent_id": agent, "session_id": session, "memory_type": kind.value}


def _text(values: Mapping[str, Any], metadata: Mapping[str, Value], name: str) -> str | None:
    text = values.get(name) or metadata.get(name)
    return text if isinstance(text, str) and text else None


def _time(ms: int | None) -> str | None:
    return iso(ms) if ms is not None and is_time(ms) else None


def _importance(score: float | None, metadata: Mapping[str, Value]) -> float | None:
    given: Any = metadata.get("importance") if score is None else round(score, 6)
    given = IMPORTANCE.get(given) if isinstance(given, str) else given
    fits = isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= 1
    return float(given) if fits else None


def _heritage(text: str | None, metadata: dict[str, Value]) -> dict[str, Value] | None:
    value = _json(text) if text else None
    if text and not isinstance(value, dict):
        metadata.setdefault("heritage_chain", text)
    return value if isinstance(value, dict) else None


def _metadata(text: str | None) -> dict[str, Value]:
    value = _json(text) if text else {}
    return value if isinstance(value, dict) else {"unread": text}


def _json(text: str) -> Value:
    try:
        return parse_foreign(text)
    except (ValueError, RecursionError):
        return text


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; times as Unix milliseconds, and texts without what no store can keep."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return [None if data is None else readable(data) for data in column.cast(pa.large_binary()).to_pylist()]
    return column.to_pylist()  # type: ignore[no-any-return]
