"""The Arrow schemas of the LanceDB store, and the conversion of rows to and from Arrow.

The first columns of each table are those of RFC-0011, section 2. Ours follow; all of them are
nullable. Columns of the document that cannot hold every value (a time as a timestamp, importance as
a 32-bit float) are written for other programs and read only from rows that another program wrote.
What has no column of its own is JSON in `extra`.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from hashlib import sha256
from typing import Any

import pyarrow as pa

from memory_mesh.core.errors import InvalidInput, StoreCorrupt, shown
from memory_mesh.core.intake.drafts import IMPORTANCE
from memory_mesh.core.model import (
    BASE,
    BY_NAME,
    COLUMNS,
    Kind,
    MemoryType,
    Row,
    Type,
    Usage,
    Value,
    Vector,
    as_read,
    checked,
    fields_of,
    iso,
    millis,
    partition_for,
    time_of_id,
)
from memory_mesh.core.options import Options
from memory_mesh.core.search import tokens
from memory_mesh.stores.base import (
    dumped_texts,
    encode_json,
    json_or_text,
    number_of,
    readable,
    text_of,
    texts_of,
)

DIMENSION = 384  # of the document's default model
_YEAR_1, _YEAR_10000 = -62_135_596_800_000, 253_402_300_800_000  # in Unix milliseconds

_TEXT, _TIME, _INT, _REAL = pa.utf8(), pa.timestamp("ms"), pa.int64(), pa.float64()
# Every other type is text, lists and objects as JSON.
_TYPES = {Type.INT: _INT, Type.REAL: _REAL, Type.BOOL: pa.bool_()}

# Without it Lance compresses texts, and `find_bytes` could not show that those of an erased memory
# are gone.
_PLAIN = {"lance-encoding:compression": "none"}


def memories_v1(dimension: int = DIMENSION) -> pa.Schema:
    """Return the schema of `memory_entries` in section 2.1."""
    return pa.schema(
        [
            _field("id", _TEXT, required=True),
            _field("vector", pa.list_(pa.float32(), dimension), required=True),
            _field("content", _TEXT, required=True),
            _field("metadata", _TEXT, required=True),
            _field("created_at", _TIME, required=True),
            _field("updated_at", _TIME),
        ]
    )


def memories_v2(dimension: int = DIMENSION) -> pa.Schema:
    """Return the schema of `memory_entries` in section 2.2."""
    added = {
        "session_id": _TEXT, "agent_id": _TEXT, "memory_type": _TEXT,
        "importance_score": pa.float32(), "access_count": pa.int32(), "last_accessed": _TIME,
        "heritage_chain": _TEXT, "lesson_pattern_id": _TEXT, "source_skill_id": _TEXT,
    }  # fmt: skip
    return pa.schema(
        [*memories_v1(dimension), *(_field(name, type_) for name, type_ in added.items())]
    )


def is_schema_v1(schema: pa.Schema) -> bool:
    """Return whether a schema of `memory_entries` is V1: whether it has no field `session_id`."""
    return not is_schema_v2(schema)


def is_schema_v2(schema: pa.Schema) -> bool:
    """Return whether a schema of `memory_entries` is V2: whether it has the field `session_id`."""
    return "session_id" in schema.names


def _blocks(dimension: int) -> pa.Schema:
    """Return the schema of section 2.3. Its hashes are nullable there; we always set
    `block_hash`."""
    required = ("id", "operation_type", "yamo_text", "timestamp")
    types = dict.fromkeys(("id", "agent_id", "operation_type", "yamo_text"), _TEXT) | {
        "timestamp": _TIME
    }
    types |= dict.fromkeys(("block_hash", "prev_hash", "metadata"), _TEXT)
    return pa.schema(
        [_field(name, type_, required=name in required) for name, type_ in types.items()]
    )


def _skills(dimension: int) -> pa.Schema:
    """Return the schema of section 2.4."""
    types = dict.fromkeys(("id", "name", "intent", "yamo_text"), _TEXT)
    types |= {"vector": pa.list_(pa.float32(), dimension), "metadata": _TEXT, "created_at": _TIME}
    return pa.schema([_field(name, type_, required=True) for name, type_ in types.items()])


def _records(dimension: int) -> pa.Schema:
    """Return the first columns of our own table for all other kinds of row."""
    vector = _field("vector", pa.list_(pa.float32(), dimension))
    return pa.schema(
        [_field("kind", _TEXT, required=True), _field("id", _TEXT, required=True), vector]
    )


def _field(name: str, type_: pa.DataType, *, required: bool = False) -> pa.Field:
    plain = type_ == _TEXT or name == "tokens"
    return pa.field(name, type_, nullable=not required, metadata=_PLAIN if plain else None)


@dataclass(frozen=True, eq=False)
class Table:
    """One table: its name, the columns of its document, the fields that have a column of their
    own, and derived columns."""

    name: str
    document: Callable[[int], pa.Schema]
    fields: tuple[str, ...]
    # The columns of fields whose name the document gives to a column of another type.
    renamed: Mapping[str, str]
    # The columns of the document that are derived from fields.
    shown: Mapping[str, Callable[[Row], object]]

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The columns that `from_arrow` reads; the others are for other programs."""
        return (
            *(self.physical(name) for name in self.fields),
            "vector",
            "model",
            "other_vector",
            "tokens",
            "extra",
        )

    def physical(self, field: str) -> str:
        """Return the name of the column of a field."""
        return self.renamed.get(field, field)

    @cache  # noqa: B019  (the tables are constants)
    def schema(self, dimension: int) -> pa.Schema:
        """Return the whole schema, with vectors of this dimension. A memory may wait for its
        vector, so it may be null."""
        first = [
            field.with_nullable(nullable=True) if field.name == "vector" else field
            for field in self.document(dimension)
        ]
        types = {self.physical(name): _TYPES.get(BY_NAME[name].type, _TEXT) for name in self.fields}
        types |= {"model": _TEXT, "other_vector": pa.binary(), "extra": _TEXT}
        types["tokens"] = pa.binary()
        known = {field.name for field in first}
        return pa.schema(
            [*first, *(_field(name, type_) for name, type_ in types.items() if name not in known)]
        )


def _time_of(name: str) -> Callable[[Row], int | None]:
    def shown_time(row: Row) -> int | None:
        ms = _millis(str(row.value(name)))
        return 0 if ms is None and name in BASE else ms

    return shown_time


def _importance(row: Row) -> float | None:
    value = row.value("importance")
    return min(max(float(value), 0.0), 1.0) if isinstance(value, int | float) else None


def _uses(row: Row) -> int | None:
    return min(max(row.used.access_count, 0), 2**31 - 1) if row.used else None


def _last_use(row: Row) -> int | None:
    return _millis(row.used.last_accessed) if row.used else None


@lru_cache(maxsize=1024)  # the rows of one write have the same time
def _millis(text: str) -> int | None:
    try:
        return millis(text)
    except StoreCorrupt:
        return None


def _own(kind: Kind) -> tuple[str, ...]:
    return tuple(
        column.name for column in COLUMNS if kind in column.kinds and column.name != "kind"
    )


_TEXTUAL = {"created_at": "created_at_text", "updated_at": "updated_at_text"}
MEMORIES = Table(
    "memory_entries", memories_v2, _own(Kind.MEMORY), _TEXTUAL,
    {
        "created_at": _time_of("created_at"), "updated_at": _time_of("updated_at"),
        "importance_score": _importance, "access_count": _uses, "last_accessed": _last_use,
    },
)  # fmt: skip
BLOCKS = Table("yamo_blocks", _blocks, _own(Kind.BLOCK), {}, {"timestamp": _time_of("created_at")})
RECORDS = Table(
    "mesh_records", _records,
    (*BASE, "user_id", "agent_id", "session_id", "memory_type", "reach", "ref", "target"), {}, {},
)  # fmt: skip
SKILLS = Table(
    "synthesized_skills",
    _skills,
    _own(Kind.SKILL),
    {**_TEXTUAL, "content": "yamo_text"},
    {"created_at": _time_of("created_at")},
)

TABLES = (MEMORIES, BLOCKS, SKILLS, RECORDS)
_TABLE_OF = {Kind.MEMORY: MEMORIES, Kind.BLOCK: BLOCKS, Kind.SKILL: SKILLS}


def table_of(kind: Kind) -> Table:
    """Return the table that has the rows of a kind."""
    return _TABLE_OF.get(kind, RECORDS)


@cache
def kinds_of(table: Table) -> tuple[Kind, ...]:
    """Return the kinds of row in a table."""
    return tuple(kind for kind in Kind if table_of(kind) is table)


# --- rows to Arrow ---

_WRITERS: Mapping[Type, Callable[[Any], object]] = {
    Type.TEXTS: dumped_texts,
    Type.JSON: encode_json,
    Type.REAL: float,
}


def to_arrow(table: Table, rows: Sequence[Row], dimension: int) -> pa.Table:
    """Return the rows of a table as Arrow. Vectors of another dimension go to `other_vector`."""
    schema = table.schema(dimension)
    extras = [
        {name: value for name, value in row.fields.items() if name not in table.fields}
        for row in rows
    ]
    columns: dict[str, object] = {
        name: [show(row) for row in rows] for name, show in table.shown.items()
    }
    for name in table.fields:
        column = table.physical(name)
        columns[column] = _written(
            BY_NAME[name], rows, extras, nullable=schema.field(column).nullable
        )
    columns["vector"] = _vectors([row.vector for row in rows], dimension)
    columns["model"] = [row.vector.model if row.vector else None for row in rows]
    columns["other_vector"] = [
        row.vector.data if row.vector and row.vector.dimension != dimension else None
        for row in rows
    ]
    columns["tokens"] = [row.vector.token_column if row.vector else None for row in rows]
    columns["extra"] = [encode_json(extra) if extra else None for extra in extras]
    arrays = [
        values if isinstance(values, pa.Array) else pa.array(values, field.type, size=len(rows))
        for field, values in ((field, columns[field.name]) for field in schema)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _written(
    column: Any, rows: Sequence[Row], extras: Sequence[dict[str, Value]], *, nullable: bool
) -> list[object]:
    """Return the values of a field. A required column of the document gets an empty value, and
    `extra` says that it is none."""
    name, write = column.name, _WRITERS.get(column.type)
    values: list[Any] = (
        [getattr(row, name) for row in rows]
        if name in BASE
        else [row.fields.get(name) for row in rows]
    )
    if write:
        values = [None if value is None else write(value) for value in values]
    if not nullable:
        for place, value in enumerate(values):
            if value is None:
                values[place], extras[place][name] = "{}" if column.type is Type.JSON else "", None
    return values


def _vectors(vectors: Sequence[Vector | None], dimension: int) -> pa.Array:
    fits = [vector is not None and vector.dimension == dimension for vector in vectors]
    empty = bytes(4 * dimension)
    data = b"".join(
        vector.data if vector and fit else empty for vector, fit in zip(vectors, fits, strict=True)
    )
    values = pa.Array.from_buffers(
        pa.float32(), len(vectors) * dimension, [None, pa.py_buffer(data)]
    )
    return pa.FixedSizeListArray.from_arrays(
        values, dimension, mask=pa.array([not fit for fit in fits], pa.bool_())
    )


# --- Arrow to rows ---

_READERS: Mapping[Type, Callable[[Any], Value]] = {
    Type.TEXTS: lambda text: [] if text == "[]" else json.loads(text),
    Type.JSON: json.loads,
}


def from_arrow(table: Table, data: pa.Table) -> list[Row]:
    """Return the rows that Arrow data of a table contain. A column that is missing reads as
    null."""
    have = set(data.column_names)
    columns = {
        name: data[table.physical(name)].to_pylist()
        for name in table.fields
        if table.physical(name) in have
    }
    nothing = [None] * data.num_rows
    extras, models, others, token_vectors = (
        data[name].to_pylist() if name in have else nothing
        for name in ("extra", "model", "other_vector", "tokens")
    )
    vectors = packed_vectors(data["vector"]) if "vector" in have else nothing
    kinds = (
        list(map(Kind, columns.pop("kind")))
        if table is RECORDS
        else [*kinds_of(table)] * data.num_rows
    )
    rows: list[Row] = []
    for place, kind in enumerate(kinds):
        try:
            fields = _read(
                kind, {name: values[place] for name, values in columns.items()}, extras[place]
            )
            base = {name: fields.pop(name, None) for name in BASE if name != "kind"}
        except (ValueError, TypeError) as error:  # edited by hand
            raise StoreCorrupt(
                f"a row of {table.name} cannot be read: {shown(str(error))}",
                remedy="restore a backup",
            ) from error
        packed, model = others[place] or vectors[place], models[place]
        name = model or f"unknown/{len(packed or b'') // 4}"
        vector = Vector.stored(name, packed, token_vectors[place]) if packed else None
        rows.append(
            as_read(
                Row.from_fields(
                    **base,
                    kind=kind,
                    fields=fields,
                    vector=vector,
                    replaces=0,
                    sealed=None,
                    used=None,
                )
            )
        )
    return rows


def _read(kind: Kind, values: dict[str, Any], extra: str | None) -> dict[str, Any]:
    """Return all fields and base attributes of one row that have a value."""
    readers = _readers(kind)
    fields = {
        name: readers[name](value) if name in readers else value
        for name, value in values.items()
        if value is not None
    }
    more = json.loads(extra) if extra else {}
    if not isinstance(more, dict):
        raise TypeError("`extra` is no JSON object")
    fields |= more
    return {name: value for name, value in fields.items() if value is not None}


def reader_of(name: str) -> Callable[[Any], Value]:
    """Return the function that converts a value of a column to that of its field."""
    return _READERS.get(BY_NAME[name].type, lambda value: value)


@cache
def _readers(kind: Kind) -> dict[str, Callable[[Any], Value]]:
    return {
        column.name: _READERS[column.type] for column in fields_of(kind) if column.type in _READERS
    }


def is_time(ms: int) -> bool:
    """Return whether Unix milliseconds are a time of the years 1 to 9999, as our times must be."""
    return _YEAR_1 <= ms < _YEAR_10000


def packed_vectors(column: pa.ChunkedArray) -> list[bytes | None]:
    """Return the packed vectors of a column."""
    found: list[bytes | None] = []
    for chunk in column.chunks:
        size = 4 * chunk.type.list_size
        data = chunk.values.buffers()[1]
        at = (chunk.values.offset + chunk.offset * chunk.type.list_size) * 4
        valid: Iterable[bool] = chunk.is_valid().to_pylist()
        found += [
            data[at + place * size : at + (place + 1) * size].to_pybytes() if there else None
            for place, there in enumerate(valid)
        ]
    return found


# --- rows of other programs ---
# They have the columns of RFC-0011 only. What the columns of V2 leave null comes from the metadata.
# A value that cannot be read is kept as text in the metadata, and the second row of an id gets a
# new one. Rows without an id stay in the table and are not memories.

# Of RFC-0011, section 4.2; the tables do not tell which agent wrote a row of V1.
_DEFAULT_AGENT = Options().agent_id


def adopted(
    data: pa.Table, taken: Collection[str] = (), revisions: Mapping[str, int] | None = None
) -> Iterator[Row]:
    """Yield the memories in Arrow data of another program, and the rows of their usage.

    The ids in `taken` are not used again. `revisions` are those with which memories begin that were
    known before; else 1.
    """
    used = set(taken)
    names = [name for name in memories_v2().names if name in data.column_names and name != "vector"]
    columns = {name: _values(data[name]) for name in names}
    vectors = (
        packed_vectors(data["vector"]) if "vector" in data.column_names else [None] * data.num_rows
    )
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
            usage = Usage(
                id=memory.id, ref=memory.id, created_at=last, access_count=count, last_accessed=last
            )
            yield usage.row(memory.partition)


def _memory(values: Mapping[str, Any], packed: bytes | None, used: Collection[str]) -> Row:
    text, content = values.get("metadata"), values.get("content") or ""
    metadata = json_or_text(text) if text else {}
    if not isinstance(metadata, dict):
        metadata = {"unread": text}
    id_ = _free_id(values, used)
    if id_ != values["id"]:
        metadata.setdefault("original_id", values["id"])
    heritage = json_or_text(chain) if (chain := values.get("heritage_chain")) else None
    if chain and not isinstance(heritage, dict):
        metadata.setdefault("heritage_chain", chain)
        heritage = None
    importance = values.get("importance_score")
    if importance is not None:
        importance = round(importance, 6)
    elif isinstance(importance := metadata.get("importance"), str):
        importance = IMPORTANCE.get(importance)
    created = _time(values.get("created_at")) or _time(time_of_id(id_)) or iso(0)
    vector = Vector(f"unknown/{len(packed) // 4}", packed) if packed else None
    vector = vector if vector and vector.finite else None
    scope = _scope(values, metadata)
    fields: dict[str, Value] = {
        **scope,
        "content": content,
        "metadata": metadata,
        "tags": texts_of(metadata.get("tags")),
        "keywords": [*tokens(content)],
        "importance": number_of(importance),
        "updated_at": _time(values.get("updated_at")) or created,
        "status": "active",
        "times_observed": 1,
        "pending": None if vector else True,
        "heritage_chain": heritage,
        "lesson_pattern_id": text_of(
            values.get("lesson_pattern_id") or metadata.get("lesson_pattern_id")
        ),
        "source_skill_id": text_of(
            values.get("source_skill_id") or metadata.get("source_skill_id")
        ),
    }
    where = partition_for(None, scope["agent_id"], scope["memory_type"], None)
    row = Row(
        kind=Kind.MEMORY, id=id_, partition=where, created_at=created, fields=fields, vector=vector
    )
    try:
        return checked(row)
    except (InvalidInput, RecursionError):  # metadata that is nested too deeply, for one
        unread: dict[str, Value] = {
            "metadata": {"unread": values.get("metadata")},
            "heritage_chain": None,
            "tags": [],
        }
        return checked(replace(row, fields=fields | unread))


def _free_id(values: Mapping[str, Any], used: Collection[str]) -> str:
    """Return the id of a row; if it is used, one with its time that is always the same for these
    values."""
    id_, number = str(values["id"]), 0
    while id_ in used:
        digits = sha256(
            repr((sorted(values.items()), number)).encode("utf-8", "replace")
        ).hexdigest()[:6]
        id_, number = f"mem_{time_of_id(str(values['id'])) or 0}_{digits}", number + 1
    return id_


def _scope(values: Mapping[str, Any], metadata: Mapping[str, Value]) -> dict[str, str | None]:
    """Return the columns that decide who sees a memory. A session that is not known is that of
    the agent."""
    agent, session = (
        text_of(values.get(name) or metadata.get(name)) for name in ("agent_id", "session_id")
    )
    given = values.get("memory_type") or metadata.get("type")
    kind = MemoryType(given) if given in list(MemoryType) else MemoryType.GLOBAL
    kind = MemoryType.AGENT if kind is MemoryType.SESSION and not session else kind
    if kind in (MemoryType.SESSION, MemoryType.AGENT):
        agent = agent or _DEFAULT_AGENT
    return {"agent_id": agent, "session_id": session, "memory_type": kind.value}


def _time(ms: int | None) -> str | None:
    return iso(ms) if ms is not None and is_time(ms) else None


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; times as Unix milliseconds, and texts without what no store
    can keep."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return [
            None if data is None else readable(data)
            for data in column.cast(pa.large_binary()).to_pylist()
        ]
    return column.to_pylist()  # type: ignore[no-any-return]
