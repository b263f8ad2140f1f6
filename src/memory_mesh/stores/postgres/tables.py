"""The tables of the PostgreSQL store, and rows as the JSON that its SQL functions exchange.

`memories`, `memory_links`, `pending_conflicts` and the views `memory_archive`, `episodes` and
`memory_clusters` are the tables of neolata, with our columns added. `tenant` is the user of a row,
'' without one; it is the first column of every key, so that the tables can be distributed by it.
"""

import json
from array import array
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import isfinite
from typing import Any

from memory_mesh.core.errors import StoreCorrupt, shown
from memory_mesh.core.model import (
    BASE,
    BY_NAME,
    CONTENTS,
    INT_MAX,
    And,
    Anything,
    Column,
    Compare,
    In,
    IsNull,
    Kind,
    Like,
    Not,
    Or,
    Row,
    Scalar,
    Sealed,
    Type,
    Used,
    Value,
    Vector,
    Where,
    as_read,
    columns_in,
    fields_of,
)

# --- keywords ---
# Memories are counted by segment: those that are equal in the columns that the rule of visibility,
# the usual conditions of a search and its counts read. A conversation has a segment for each
# speaker. `keyword_postings` has a row for each memory and keyword. A GIN index over the lists of
# keywords would do the same only for roles without row-level security: PostgreSQL does not let its
# operators see a row before the policy does.


def dropped(kind: str, name: str) -> str:
    """Return what drops a thing of the current schema. A name alone could mean that of another
    schema of the search path."""
    return (
        f"DO $do$ BEGIN EXECUTE format('DROP {kind} IF EXISTS %I.{name}', current_schema()); "
        "END $do$"
    )


_TEXT = 'text COLLATE "C"'
COLUMNS = (
    "user_id", "agent_id", "session_id", "memory_type", "reach", "project", "status", "expires_at",
    "valid_from", "valid_until", "speaker",
)  # fmt: skip
# The partition is part of each key. Otherwise an agent that guesses the name of a segment could
# create the counts of another agent before that one does, and then read them.
KEYWORD_TABLES = {
    "keyword_segments": (
        f"CREATE TABLE keyword_segments (tenant {_TEXT} NOT NULL, segment uuid NOT NULL, partition "
        f"{_TEXT} NOT NULL, {', '.join(f'{name} {_TEXT}' for name in COLUMNS)}, model {_TEXT}, "
        "dimension int, memories bigint NOT NULL, documents bigint NOT NULL, length bigint NOT "
        "NULL, PRIMARY KEY (tenant, partition, segment))"
    ),
    "keyword_counts": (
        f"CREATE TABLE keyword_counts (tenant {_TEXT} NOT NULL, partition {_TEXT} NOT NULL, word "
        f"{_TEXT} NOT NULL, segment uuid NOT NULL, documents bigint NOT NULL, PRIMARY KEY (tenant, "
        "partition, word, segment))"
    ),
}
POSTINGS = {
    "keyword_postings": (
        f"CREATE TABLE keyword_postings (tenant {_TEXT} NOT NULL, partition {_TEXT} NOT NULL, word "
        f"{_TEXT} NOT NULL, id {_TEXT} NOT NULL, PRIMARY KEY (tenant, partition, word, id))"
    ),
}
# The tables of an earlier version had other columns. With space in each page, the new row of a
# count replaces the old one there.
CREATE = (
    dropped("TABLE", "keyword_counts"),
    dropped("TABLE", "keyword_segments"),
    *KEYWORD_TABLES.values(),
    "CREATE INDEX segments_by_partition ON keyword_segments (partition)",
    "ALTER TABLE keyword_segments SET (fillfactor = 70)",
    "ALTER TABLE keyword_counts SET (fillfactor = 80)",
)


def is_by_segment(where: Where) -> bool:
    """Return whether a condition is true of all memories of a segment or of none: it reads no
    other column."""
    return columns_in(where) <= {"partition", *COLUMNS}


def partitions_in(where: Where) -> list[str] | None:
    """Return the partitions to which a condition limits its rows; None if it does not name them."""
    for part in where.parts if isinstance(where, And) else (where,):
        if isinstance(part, In) and part.column == "partition":
            return [str(name) for name in part.values]
        if isinstance(part, Compare) and part.column == "partition" and part.op == "=":
            return [str(part.value)]
    return None


# --- tables ---

_SQL = {
    Type.TEXT: 'text COLLATE "C"', Type.TIME: 'text COLLATE "C"', Type.INT: "bigint",
    Type.REAL: "double precision", Type.BOOL: "boolean", Type.TEXTS: 'text[] COLLATE "C"',
    Type.JSON: "jsonb",
}  # fmt: skip
# The names that `mesh_condition` has for the types: what a literal must be to compare with the
# column.
_COMPARED = {
    Type.TEXT: "string", Type.TIME: "string", Type.INT: "number", Type.REAL: "number",
    Type.BOOL: "boolean", Type.TEXTS: "list", Type.JSON: "object",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """Which kinds of row a table contains, and which of their fields are columns; the others are
    JSON in `extra`."""

    name: str
    kinds: tuple[Kind, ...]
    columns: tuple[str, ...]
    renamed: Mapping[str, str] = field(default_factory=dict)
    derived: str = ""  # further columns, which writes do not name
    vector: bool = False

    def physical(self, name: str) -> str:
        return self.renamed.get(name, name)

    @property
    def types(self) -> dict[str, str]:
        """The columns that a write fills, with their types, in order."""
        types = {self.physical(name): _SQL[BY_NAME[name].type] for name in self.columns}
        types |= {"embedding": "vector", "model": _SQL[Type.TEXT]} if self.vector else {}
        return types if len(self.kinds) == 1 else {**types, "extra": "jsonb"}

    @property
    def definition(self) -> str:
        """The statement that creates the table."""
        required = " NOT NULL"
        columns = [
            f"{name} {type_}{required if name in BASE else ''}"
            for name, type_ in self.types.items()
        ]
        key = "PRIMARY KEY (tenant, kind, id)"
        return (
            f"CREATE TABLE {self.name} (tenant {_SQL[Type.TEXT]} NOT NULL, "
            f"{', '.join(columns)}{self.derived}, {key})"
        )

    def expression(self, column: Column) -> str:
        """The SQL expression of a field: its column, or its place in the JSON."""
        if column.name in self.columns:
            return f"t.{self.physical(column.name)}"
        text = f"t.extra ->> '{column.name}'"
        if column.type is Type.JSON:
            return f"(t.extra -> '{column.name}')"
        if column.type is Type.TEXTS:
            return f"mesh_texts(t.extra -> '{column.name}')"
        if column.type in (Type.TEXT, Type.TIME):
            return f'({text}) COLLATE "C"'
        return f"({text})::{_SQL[column.type]}"


def _all(kind: Kind) -> tuple[str, ...]:
    return (*BASE, *(column.name for column in fields_of(kind)))


MEMORIES = Table(
    "memories", (Kind.MEMORY,), _all(Kind.MEMORY), vector=True,
    # The document's own readers expect the trust in `confidence`, which is computed; see
    # `migrations`.
    renamed={"trust": "base_trust", "confidence": "author_confidence"},
    derived=(
        ", access_count bigint NOT NULL DEFAULT 0, provenance jsonb GENERATED ALWAYS AS (metadata "
        "-> 'provenance') STORED, quarantine boolean GENERATED ALWAYS AS (status = "
        "'quarantined') STORED"
    ),
)  # fmt: skip
LINKS = Table(
    "memory_links", (Kind.LINK,), _all(Kind.LINK), {"ref": "source_id", "target": "target_id"}
)
RECORDS = Table(
    "records",
    (Kind.PASSAGE, Kind.CHANGE, Kind.HEAD, Kind.RECEIPT, Kind.META, Kind.USAGE, Kind.SIGHTING,
     Kind.EVENT),
    (*BASE, "user_id", "agent_id", "session_id", "memory_type", "reach", "ref"), vector=True,
)  # fmt: skip
TABLES = (
    MEMORIES, LINKS, Table("pending_conflicts", (Kind.CONFLICT,), _all(Kind.CONFLICT)),
    Table("yamo_blocks", (Kind.BLOCK,), _all(Kind.BLOCK)),
    Table("synthesized_skills", (Kind.SKILL,), _all(Kind.SKILL), vector=True), RECORDS,
)  # fmt: skip
_TABLE = {kind: table for table in TABLES for kind in table.kinds}
# The log of moves; see `stores.base`.
LOGS = (
    'CREATE TABLE partitions (tenant text COLLATE "C" NOT NULL, partition text COLLATE "C" NOT '
    "NULL, version bigint NOT NULL, "
    "nonce text NOT NULL, PRIMARY KEY (tenant, partition))",
    'CREATE TABLE moves (tenant text COLLATE "C" NOT NULL, partition text COLLATE "C" NOT NULL, '
    "version bigint NOT NULL, "
    "nonce text NOT NULL, kind text NOT NULL, id text NOT NULL, PRIMARY KEY (tenant, "
    "partition, version))",
)
ALL = (*(table.name for table in TABLES), "partitions", "moves", *KEYWORD_TABLES, *POSTINGS)


def table_of(kind: Kind) -> Table:
    return _TABLE[kind]


@cache
def description() -> str:
    """Return what the SQL functions know of the tables, as JSON: for each kind its table, the
    expression and type of each field, and what a read returns; for each table the columns of a
    write."""
    types = {name: _COMPARED[column.type] for name, column in BY_NAME.items()}
    kinds = {
        str(kind): {
            "table": table_of(kind).name,
            "fields": _fields(kind),
            "reading": _reading(kind),
        }
        for kind in Kind
    }
    return json.dumps(
        {
            "types": types,
            "kinds": kinds,
            "columns": {table.name: [*table.types] for table in TABLES},
        }
    )


def _fields(kind: Kind) -> dict[str, str]:
    names = (*(BY_NAME[name] for name in BASE), *fields_of(kind))
    return {column.name: table_of(kind).expression(column) for column in names}


# What the latest block of a memory sealed, and its usage, of the same user: in the statement that
# reads the memory, so that all are of the same state.
_SEALED = (
    "(SELECT json_build_array(b.memory_revision, b.content_hash) FROM yamo_blocks b WHERE b.tenant "
    "= t.tenant AND b.ref = t.id AND b.content_hash IS NOT NULL AND b.memory_revision IS NOT NULL "
    "ORDER BY b.memory_revision DESC, b.content_hash DESC LIMIT 1)"
)
_USED = (
    "(SELECT u.extra FROM records u WHERE u.tenant = t.tenant AND u.kind = 'usage' AND u.id = t.id)"
)


def _reading(kind: Kind) -> str:
    """Return the expression of a row as a JSON array, in the order of `decoded`."""
    table = table_of(kind)
    vector = (
        ["encode(vector_send(t.embedding), 'base64')", "t.model"] if table.vector else ["NULL"] * 2
    )
    derived = [_SEALED, _USED] if kind in CONTENTS else ["NULL"] * 2
    extra = ["NULL" if len(table.kinds) == 1 else "t.extra"]
    own = [table.expression(column) for column in _own(kind)]
    base = [f"t.{name}" for name in ("id", "partition", "created_at", "revision", "number")]
    return f"json_build_array({', '.join([*base, *vector, *extra, *derived, *own])})"


@cache
def _own(kind: Kind) -> tuple[Column, ...]:
    return tuple(column for column in fields_of(kind) if column.name in table_of(kind).columns)


# --- rows ---


def encoded(row: Row, place: int) -> dict[str, object]:
    """Return a row as `mesh_apply` takes it: its columns, the revision that it replaces, and its
    place in the change."""
    table = table_of(row.kind)
    values: dict[str, object] = {name: getattr(row, name) for name in BASE}
    values |= {
        table.physical(column.name): row.fields[column.name]
        for column in _own(row.kind)
        if column.name in row.fields
    }
    if row.vector:
        values |= {"embedding": vector_text(row.vector.data), "model": row.vector.model}
    extra = {
        name: value
        for name, value in row.fields.items()
        if name not in table.columns and value is not None
    }
    if extra:
        values["extra"] = extra
    return {**values, "replaces": row.replaces, "place": place}


def vector_text(data: bytes) -> str:
    """Return the numbers of a vector as pgvector reads them."""
    return f"[{','.join(map(repr, array('f', data)))}]"


def decoded(kind: Kind, values: Sequence[Any]) -> Row:
    """Return the row of a JSON array of `_reading`."""
    id_, partition, created_at, revision, number, data, model, extra, sealed, used, *rest = values
    fields: dict[str, Value] = {
        column.name: value
        for column, value in zip(_own(kind), rest, strict=True)
        if value is not None
    }
    if not isinstance(extra or {}, dict):  # edited by hand
        raise StoreCorrupt(
            f"the {kind} {shown(id_)} cannot be read: unexpected columns", remedy="restore a backup"
        )
    row = Row.from_fields(
        kind=kind, id=id_, partition=partition, created_at=created_at, revision=revision,
        number=number, replaces=0, fields={**(extra or {}), **fields},
        vector=Vector(model, floats(data)) if data and model is not None else None,
        sealed=Sealed(*sealed) if sealed else None, used=Used.of(used) if used else None,
    )  # fmt: skip
    return as_read(row)


def floats(data: str) -> bytes:
    """Return the numbers of a vector that `vector_send` packed: two 16-bit numbers, then 32-bit
    floats, all big-endian."""
    numbers = array("f", b64decode(data)[4:])
    numbers.byteswap()
    return numbers.tobytes()


def _integer(digits: str) -> int | float:
    # PostgreSQL writes a large float without an exponent. No row has an integer of this size.
    return int(digits) if len(digits) < 18 and abs(int(digits)) <= INT_MAX else float(digits)


decode_json = json.JSONDecoder(parse_int=_integer).decode


# --- conditions ---


def condition(where: Where) -> object:
    """Return a condition as the JSON that `mesh_condition` reads."""
    match where:
        case Anything():
            return True
        case Compare(column, op, value):
            return [op, column, [_literal(value)]]
        case In(column, values):
            return ["in", column, [_literal(value) for value in values]]
        case Like(column, pattern):
            return ["like", column, [pattern]]
        case IsNull(column):
            return ["null", column]
        case And(parts):
            return ["and", [condition(part) for part in parts]]
        case Or(parts):
            return ["or", [condition(part) for part in parts]]
        case Not(part):
            return ["not", condition(part)]


def _literal(value: Scalar) -> object:
    """Return a literal as JSON, which has no number for infinity."""
    if isinstance(value, float) and not isfinite(value):
        return {"real": "Infinity" if value > 0 else "-Infinity"}
    return value
