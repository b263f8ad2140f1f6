"""The tables of the PostgreSQL store, their versions, and rows as its SQL functions exchange them.

`memories`, `memory_links`, `pending_conflicts` and the views `memory_archive`, `episodes` and
`memory_clusters` are the tables of neolata, with our columns added. `tenant` is the user of a row,
'' without one; it is the first column of every key, so that the tables can be distributed by it.
"""

import json
import re
from array import array
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

from memory_mesh.core.errors import StoreCorrupt, shown
from memory_mesh.core.model import (
    BASE,
    BY_NAME,
    CONTENTS,
    INT_MAX,
    Column,
    Kind,
    Row,
    Sealed,
    Type,
    Used,
    Value,
    Vector,
    as_read,
    fields_of,
)
from memory_mesh.core.search.candidates import INDEXED
from memory_mesh.stores.base import KEPT_MOVES

VERSION = 18  # of the schema; each has a step in `_STEPS`

# --- keywords ---
# Memories are counted by segment: those that are equal in the columns that the rule of visibility,
# the usual conditions of a search and its counts read. A conversation has a segment for each
# speaker. `keyword_lists` has the memories of each keyword, up to `LISTED` in a row, and the number
# of the segment of each, or one number if all have the same. Both the counts and the postings of a
# keyword are read from it. A GIN index over the lists of keywords would find the memories only for
# roles without row-level security: PostgreSQL does not let its operators see a row before the
# policy does.


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
LISTED = 50  # which fit into a page with others
# The partition is part of each key. Otherwise an agent that guesses the name of a segment could
# create the counts of another agent before that one does, and then read them.
KEYWORD_TABLES = {
    "keyword_segments": (
        f"CREATE TABLE keyword_segments (tenant {_TEXT} NOT NULL, segment uuid NOT NULL, partition "
        f"{_TEXT} NOT NULL, number int NOT NULL, {', '.join(f'{name} {_TEXT}' for name in COLUMNS)}"
        f", model {_TEXT}, dimension int, memories bigint NOT NULL, documents bigint NOT NULL, "
        "length bigint NOT "
        "NULL, PRIMARY KEY (tenant, partition, segment))"
    ),
    "keyword_lists": (
        f"CREATE TABLE keyword_lists (tenant {_TEXT} NOT NULL, partition {_TEXT} NOT NULL, word "
        f'{_TEXT} NOT NULL, chunk int NOT NULL, ids text[] COLLATE "C" NOT NULL, segments int[] '
        "NOT NULL, PRIMARY KEY (tenant, partition, word, chunk))"
    ),
}
# The tables of earlier versions had other columns. With space in each page, a new row replaces the
# old one there.
CREATE = (
    dropped("TABLE", "keyword_postings"),
    dropped("TABLE", "keyword_counts"),
    dropped("TABLE", "keyword_segments"),
    *KEYWORD_TABLES.values(),
    "CREATE INDEX segments_by_number ON keyword_segments (partition, number)",
    "ALTER TABLE keyword_segments SET (fillfactor = 70)",
    "ALTER TABLE keyword_lists SET (fillfactor = 85)",
)


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


_TOKENS = "tokens"


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
        vector = {"embedding": "vector", "model": _SQL[Type.TEXT], _TOKENS: "bytea"}
        types |= vector if self.vector else {}
        return types if len(self.kinds) == 1 else {**types, "extra": "jsonb"}

    @property
    def definition(self) -> str:
        """The statement that creates the table. The last step adds the column of the tokens, so
        that it is in the same place in every store."""
        required = " NOT NULL"
        columns = [
            f"{name} {type_}{required if name in BASE else ''}"
            for name, type_ in self.types.items()
            if name != _TOKENS
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
    # `_CONFIDENCE`.
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
ALL = (*(table.name for table in TABLES), "partitions", "moves", *KEYWORD_TABLES)


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
        ["encode(vector_send(t.embedding), 'base64')", "t.model", "encode(t.tokens, 'base64')"]
        if table.vector
        else ["NULL"] * 3
    )
    derived = [_SEALED, _USED] if kind in CONTENTS else ["NULL"] * 2
    extra = ["NULL" if len(table.kinds) == 1 else "t.extra"]
    own = [table.expression(column) for column in _own(kind)]
    base = [f"t.{name}" for name in ("id", "partition", "created_at", "revision", "number")]
    return f"json_build_array({', '.join([*base, *vector, *extra, *derived, *own])})"


@cache
def _own(kind: Kind) -> tuple[Column, ...]:
    return tuple(column for column in fields_of(kind) if column.name in table_of(kind).columns)


@cache
def _own_names(kind: Kind) -> Mapping[str, str]:
    """Return the column of each field that has one."""
    return {column.name: table_of(kind).physical(column.name) for column in _own(kind)}


# --- what an index reads ---

_VECTOR = {"vector": "vector_send(t.embedding)", "model": "t.model", "tokens": "t.tokens"}


def _indexed_types() -> dict[str, str]:
    types = {name: _SQL[BY_NAME[name].type].removesuffix(' COLLATE "C"') for name in INDEXED}
    return {**types, "vector": "bytea", "model": "text", "tokens": "bytea"}


def _indexed(kind: Kind) -> str:
    """Return the columns of `mesh_indexed`: NULL for those that the kind has not."""
    fields = _fields(kind) | _VECTOR
    types = _indexed_types().items()
    return ", ".join(f"({fields.get(name, 'NULL')})::{type_}" for name, type_ in types)


# --- rows ---


def encoded(row: Row, place: int, *, with_numbers: bool = True) -> dict[str, object]:
    """Return a row as `mesh_apply` takes it: its columns, the revision that it replaces, and its
    place in the change. Without numbers, `packed_vectors` has its vector."""
    columns = _own_names(row.kind)
    values: dict[str, object] = {name: getattr(row, name) for name in BASE}
    values |= {columns[name]: value for name, value in row.fields.items() if name in columns}
    if row.vector:
        values["model"] = row.vector.model
        if with_numbers:
            values["embedding"] = vector_text(row.vector.data)
    if row.vector and (column := row.vector.token_column):
        values[_TOKENS] = f"\\x{column.hex()}"
    extra = {
        name: value
        for name, value in row.fields.items()
        if name not in columns and value is not None
    }
    if extra:
        values["extra"] = extra
    return {**values, "replaces": row.replaces, "place": place}


def vector_text(data: bytes) -> str:
    """Return the numbers of a vector as pgvector reads them."""
    return f"[{','.join(map(repr, array('f', data)))}]"


def decoded(kind: Kind, values: Sequence[Any]) -> Row:
    """Return the row of a JSON array of `_reading`."""
    id_, partition, created_at, revision, number, *others = values
    data, model, tokens, extra, sealed, used, *rest = others
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
        vector=Vector.stored(model, floats(data), tokens)
        if data and model is not None
        else None,
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


# --- the schema: create it and upgrade it ---

FEW_HITS = 2000  # documents with a rare word that are read before others
# In the scope of a query, which are all compared; more of one model get an index.
FEW_VECTORS = 20_000
LOCK = 0x4D4D5348  # the number of the advisory lock under which tables are created

_INDEXES = (
    "CREATE INDEX memories_by_age ON memories (partition, created_at DESC, number DESC, id DESC)",
    "CREATE INDEX memories_by_scope ON memories (user_id, status, partition)",
    "CREATE INDEX memories_by_fingerprint ON memories (fingerprint) WHERE fingerprint IS NOT NULL",
    "CREATE INDEX memories_by_claim ON memories (claim_key) WHERE claim_key IS NOT NULL",
    (
        "CREATE INDEX memories_by_turn ON memories (partition, session_id, project, turn) WHERE "
        "turn IS NOT NULL"
    ),
    "CREATE INDEX memories_by_source ON memories USING gin (sources) WHERE sources <> '{}'",
    (
        "CREATE INDEX blocks_by_memory ON yamo_blocks (tenant, ref, memory_revision) WHERE ref "
        "IS NOT NULL"
    ),
    "CREATE UNIQUE INDEX blocks_by_number ON yamo_blocks (tenant, chain, number)",
    "CREATE INDEX links_by_source ON memory_links (source_id)",
    "CREATE INDEX links_by_target ON memory_links (target_id)",
    "CREATE INDEX records_by_ref ON records (kind, ref) WHERE ref IS NOT NULL",
    "CREATE INDEX partitions_by_name ON partitions (partition)",
)

# A server sees every partition, a program those of its user; rows of no partition are seen by the
# user that wrote them. The names alone do not tell: those of a user named "chain" begin as the
# names of chains do.
_MAY_SEE = (
    "(partition <> '' AND (SELECT mesh_identity()) = ARRAY['']) "
    "OR (tenant = (SELECT mesh_home()) AND (partition = '' OR partition ^@ ANY ((SELECT "
    "mesh_identity())::text[])))"
)

# A program of one user writes no row that a server takes for that of another user, and no head of
# the chain of another user.
_IS_OWN = (
    "(SELECT mesh_identity()) = ARRAY[''] OR ((user_id IS NULL OR user_id = tenant) AND (kind <> "
    "'head' OR id = partition))"
)


# Long vectors are stored apart from their rows. So that a condition need not read them, their
# dimension is a column.
_DIMENSIONS = tuple(
    (
        f"ALTER TABLE {table.name} ADD COLUMN IF NOT EXISTS dimension int GENERATED ALWAYS AS "
        "(vector_dims(embedding)) STORED"
    )
    for table in TABLES
    if table.vector
)

# A vector of up to about 900 numbers is stored in its row: fetching it from another table took most
# of the time of comparing it. The length of a vector is a column too. Adding it rewrites the rows,
# so that existing vectors move into them.
_NORMS = tuple(
    statement
    for table in TABLES
    if table.vector
    for statement in (
        f"ALTER TABLE {table.name} SET (toast_tuple_target = 4096)",
        (
            f"ALTER TABLE {table.name} ADD COLUMN IF NOT EXISTS norm float8 GENERATED ALWAYS AS "
            "(vector_norm(embedding)) STORED"
        ),
    )
)

# An id is unique in the whole store, and that of a row without a partition among those of its user.
# All rows are in the index, so that it finds every row by its id. Distributed tables have an index
# that is not unique; see `roles.distribution`.
_IDS = tuple(
    "DO $do$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_indexes WHERE schemaname = "
    "current_schema() AND "
    f"indexname = '{table.name}_by_id' AND indexdef NOT LIKE 'CREATE UNIQUE %') THEN "
    f"EXECUTE format('DROP INDEX IF EXISTS %I.{table.name}_by_id', current_schema()); "
    f"CREATE UNIQUE INDEX {table.name}_by_id ON {table.name} "
    "(id, kind, (CASE WHEN partition = '' THEN tenant ELSE '' END)); END IF; END $do$"
    for table in TABLES
)

# `confidence` is the trust as `core.claims.rules.compute_trust` computes it, without the part of
# the age: no write follows that. Until version 11 it was the base trust.
_REINFORCED, _DISPUTED = "coalesce(reinforcements, 0)::float8", "coalesce(disputes, 0)::float8"
_CONFIDENCE = (
    "DO $do$ BEGIN IF NOT EXISTS "
    "(SELECT 1 FROM pg_attribute WHERE attrelid = 'memories'::regclass AND attname = "
    "'base_trust') THEN "
    "ALTER TABLE memories RENAME COLUMN confidence TO base_trust; "
    "ALTER VIEW memory_archive RENAME COLUMN confidence TO base_trust; END IF; END $do$",
    "ALTER TABLE memories ADD COLUMN IF NOT EXISTS confidence float8 GENERATED ALWAYS AS "
    "(least(1, greatest(0, coalesce(base_trust, 0.5) + least(0.2::float8, 0.05::float8 * "
    f"greatest(0, corroborations::float8 - 1)) + coalesce(0.15::float8 * ({_REINFORCED} - "
    f"{_DISPUTED}) / nullif({_REINFORCED} + {_DISPUTED}, 0), 0)))) STORED",
)

# What changes the tables of an older version, by the version that it leads to.
_STEPS: dict[int, tuple[str, ...]] = {
    **dict.fromkeys((3, 4, 7, 8, 13, 18), ()),  # functions, rights and indexes only
    2: (
        (
            "CREATE INDEX IF NOT EXISTS memories_by_session ON memories (partition, session_id) "
            "WHERE session_id IS NOT NULL"
        ),
    ),
    5: (
        dropped("INDEX", "memories_by_keyword"),
        *_DIMENSIONS,
        dropped("FUNCTION", "mesh_rounded"),
    ),
    6: (*_IDS, *_NORMS),
    9: (dropped("FUNCTION", "mesh_sessions"),),
    10: (
        dropped("FUNCTION", "mesh_sessions"),
        dropped("FUNCTION", "mesh_around"),
    ),  # which returns another type
    11: (dropped("FUNCTION", "mesh_has_passages"),),  # which took SQL text
    12: (
        *_CONFIDENCE,
        (
            "CREATE INDEX IF NOT EXISTS memories_by_beginning ON memories (valid_from) WHERE "
            "valid_from IS NOT NULL"
        ),
    ),
    14: tuple(
        f"ALTER TABLE {table.name} ADD COLUMN IF NOT EXISTS {_TOKENS} bytea"
        for table in TABLES
        if table.vector
    ),
    15: (
        dropped("FUNCTION", "mesh_apply"),  # which had no vectors of its own
        (
            "CREATE INDEX IF NOT EXISTS passages_by_age ON records (partition, created_at DESC, "
            "number DESC, id DESC) WHERE kind = 'passage'"
        ),
    ),
    16: tuple(dropped("FUNCTION", name) for name in ("mesh_memories", "mesh_around")),
    17: (*CREATE, dropped("FUNCTION", "mesh_delete_words")),  # which had other arguments
}
# What fills new tables, before they get policies. The owner sees all memories while row-level
# security is not forced.
_FILLS: dict[int, tuple[str, ...]] = {
    17: (
        "SELECT mesh_count_keywords(rows, 1) FROM (SELECT jsonb_agg(to_jsonb(named)) AS rows FROM "
        "(SELECT kind, id, partition, tenant, number FROM memories) named GROUP BY partition, "
        "number / 10000) each",
    ),
}


# Citus knows which tables are distributed. Those that an upgrade created are distributed like the
# others.
_NAMES = ", ".join(f"'{name}'" for name in ALL)
DISTRIBUTE_NEW = (
    "DO $do$ DECLARE name text; BEGIN IF to_regclass('pg_catalog.pg_dist_partition') IS NULL THEN "
    "RETURN; END IF; IF EXISTS (SELECT 1 FROM pg_catalog.pg_dist_partition WHERE logicalrelid = "
    f"'{ALL[0]}'::regclass) THEN FOREACH name IN ARRAY ARRAY[{_NAMES}] LOOP "
    "IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_dist_partition WHERE logicalrelid = "
    "name::regclass) THEN "
    "PERFORM pg_catalog.create_distributed_table(name::regclass, 'tenant', colocate_with => "
    f"'{ALL[0]}'); "
    "END IF; END LOOP; END IF; END $do$"
)


def upgrade(version: int) -> Iterator[str]:
    """Yield what turns the schema of an older version into that of this one. The caller has set the
    search path.

    Functions, views and policies become those of this version, whatever they were.
    """
    steps = range(version + 1, VERSION + 1)
    yield from chain(*(_STEPS[step] for step in steps))
    yield DISTRIBUTE_NEW
    yield sql("views")
    yield from _functions()
    yield "ALTER TABLE memories NO FORCE ROW LEVEL SECURITY"
    yield from chain(*(_FILLS.get(step, ()) for step in steps))
    if version < 18:
        yield sql("halves")
    yield from _policies()
    yield (
        "SELECT mesh_grant(role, scope, user_id, agent_id) FROM mesh_roles WHERE role IN (SELECT "
        "rolname FROM pg_roles)"
    )
    yield f"INSERT INTO mesh_migrations (version) VALUES ({VERSION})"


def statements() -> Iterator[str]:
    """Yield what turns an empty schema into that of this version. The caller has set the search
    path."""
    yield (
        "CREATE TABLE IF NOT EXISTS mesh_migrations (version int PRIMARY KEY, applied_at "
        "timestamptz NOT NULL DEFAULT now())"
    )
    for table in TABLES:
        yield table.definition
    yield from (*LOGS, *_INDEXES, *chain(*_STEPS.values()), sql("views"))
    yield from _functions()
    yield from _policies()
    yield f"INSERT INTO mesh_migrations (version) VALUES ({VERSION})"
    # The role that creates the tables may use them for all users.
    yield (
        "INSERT INTO mesh_roles (role, scope) VALUES (session_user, 'server') ON CONFLICT "
        "DO NOTHING"
    )


def _functions() -> Iterator[str]:
    yield from map(sql, ("security", "functions", "keywords", "search", "rpc"))


def _policies() -> Iterator[str]:
    for name in ("mesh_roles", "mesh_migrations"):
        yield f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY"
    yield "DROP POLICY IF EXISTS mesh_versions ON mesh_migrations"
    yield "CREATE POLICY mesh_versions ON mesh_migrations FOR SELECT USING (true)"
    for name in ALL:
        yield f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY"
        yield f"ALTER TABLE {name} FORCE ROW LEVEL SECURITY"
        own = _IS_OWN if name in {table.name for table in TABLES} else "true"
        # The tables of keywords have many rows a write. What a program writes there is only read
        # for its own tenant.
        named = "true" if name.startswith("keyword_") else "tenant = mesh_tenant(partition)"
        check = f"({_MAY_SEE}) AND {named} AND ({own})"
        yield f"DROP POLICY IF EXISTS mesh_rows ON {name}"
        yield f"CREATE POLICY mesh_rows ON {name} USING ({_MAY_SEE}) WITH CHECK ({check})"


# The name and the definition of the index of each model and dimension with many vectors. It has
# them in 16 bits, which is half of the disk and finds as much: a search compares what it found in
# 32 bits. Numbers of more than 65504 have no 16 bits, so each vector gets the length one. pgvector
# cannot index longer vectors.
LARGE = (
    "SELECT format('%s_by_half_%s', source, left(md5(format('%s %s', model, size)), 16)) AS name, "
    "format('ON %I USING hnsw ((l2_normalize(embedding)::halfvec(%s)) halfvec_ip_ops) WHERE model "
    "= %L AND vector_dims(embedding) = %s', source, size, model, size) AS definition FROM ("
    "SELECT 'memories' AS source, model, vector_dims(embedding) AS size FROM memories "
    "UNION ALL SELECT 'records', model, vector_dims(embedding) FROM records) each "
    f"WHERE size <= 4000 GROUP BY source, model, size HAVING count(*) > {FEW_VECTORS}"
)


# Statements for each table, which a server plans once for a connection.


def _kinds(table: Table) -> str:
    names = ", ".join(f"'{kind}'" for kind in table.kinds)
    return f"ARRAY[{names}]"


def _stored(table: Table) -> str:
    return (
        f"IF kinds && {_kinds(table)} THEN RETURN QUERY SELECT '{table.name}'::text, t.kind::text, "
        "t.id::text, t.tenant::text, t.partition::text, t.revision FROM (SELECT DISTINCT "
        "one ->> 'kind' AS kind, one ->> 'id' AS id FROM jsonb_array_elements(keys) one) n "
        f"CROSS JOIN LATERAL (SELECT * FROM {table.name} m WHERE m.id = n.id AND m.kind = n.kind "
        f"OFFSET 0) t WHERE n.kind = ANY ({_kinds(table)}); END IF;"
    )


def _insert(table: Table) -> str:
    columns = ", ".join(table.types)
    values = columns.replace("embedding", "coalesce(numbers, embedding)")
    return (
        f"IF kinds && {_kinds(table)} THEN INSERT INTO {table.name} (tenant, {columns}) SELECT "
        f"tenants ->> partition, {values} FROM ROWS FROM (jsonb_array_elements(puts), "
        "unnest(vectors)) AS given(one, numbers) CROSS JOIN LATERAL "
        f"jsonb_populate_record(null::{table.name}, one) "
        f"WHERE one ->> 'kind' = ANY ({_kinds(table)}); END IF;"
    )


def _delete(table: Table) -> str:
    return (
        f"IF kinds && {_kinds(table)} THEN WITH gone AS (DELETE FROM {table.name} t USING "
        "jsonb_to_recordset(old) AS o(kind text, id text, tenant text, source text), "
        "jsonb_to_recordset(keys) AS k(kind text, id text, replaces bigint) "
        "WHERE t.tenant = o.tenant AND t.kind = o.kind AND t.id = o.id AND k.kind = o.kind "
        f"AND k.id = o.id AND o.source = '{table.name}' AND (k.replaces IS NULL OR k.replaces = "
        "t.revision) AND mesh_sees(t.tenant, t.partition, identity, home) RETURNING k.replaces) "
        "SELECT replaced + count(replaces) FROM gone INTO replaced; END IF;"
    )


@cache
def sql(name: str) -> str:
    """Return the statements of a file, filled in."""
    types = _indexed_types()
    text = files(__package__).joinpath("data", f"{name}.sql").read_text("utf-8")
    filled = {
        "description": description(),
        "memory": _reading(Kind.MEMORY),
        "stored": "\n  ".join(map(_stored, TABLES)),
        "kinds": ", ".join(f"'{kind}'" for kind in Kind),
        "inserts": "\n  ".join(map(_insert, TABLES)),
        "deletes": "\n  ".join(map(_delete, TABLES)),
        "indexed_types": ", ".join(f'"{name}" {type_}' for name, type_ in types.items()),
        "indexed_json": ", ".join(
            f"encode(one.\"{name}\", 'base64')" if type_ == "bytea" else f'one."{name}"'
            for name, type_ in types.items()
        ),
        "indexed_nulls": ", ".join(f"NULL::{type_}" for type_ in types.values()),
        "memory_columns": _indexed(Kind.MEMORY),
        "passage_columns": _indexed(Kind.PASSAGE),
        "version": VERSION,
        "kept": KEPT_MOVES,
        "tables": ", ".join(ALL),
        "may_see": _MAY_SEE.replace("(SELECT mesh_identity())", "identity").replace(
            "(SELECT mesh_home())", "home"
        ),
        "segment_names": ", ".join(COLUMNS),
        "segment_columns": ", ".join(f"t.{name}" for name in COLUMNS),
        "few": FEW_HITS,
        "listed": LISTED,
        "few_vectors": FEW_VECTORS,
        "large": LARGE,
    }
    return re.sub(r"<(\w+)>", lambda found: str(filled[found[1]]), text)
