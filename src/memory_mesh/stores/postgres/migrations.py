"""The schema of the PostgreSQL store: create it, upgrade it, and tell its version."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import chain

from psycopg.sql import SQL, Composed, Identifier, Literal

from memory_mesh.stores.base import KEPT_MOVES
from memory_mesh.stores.postgres import tables
from memory_mesh.stores.postgres.calls import VERSION
from memory_mesh.stores.postgres.tables import ALL, LOGS, TABLES, description

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
# that is not unique; see `admin.distribution`.
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
    2: (
        (
            "CREATE INDEX IF NOT EXISTS memories_by_session ON memories (partition, session_id) "
            "WHERE session_id IS NOT NULL"
        ),
    ),
    3: (),
    4: (),
    5: (
        *tables.POSTINGS.values(),
        tables.dropped("INDEX", "memories_by_keyword"),
        *_DIMENSIONS,
        tables.dropped("FUNCTION", "mesh_rounded"),
    ),
    6: (*_IDS, *_NORMS),
    7: (),
    8: (),
    9: (tables.dropped("FUNCTION", "mesh_sessions"),),
    10: (
        tables.dropped("FUNCTION", "mesh_sessions"),
        tables.dropped("FUNCTION", "mesh_around"),
    ),  # which returns another type
    11: (tables.dropped("FUNCTION", "mesh_has_passages"),),  # which took SQL text
    12: (
        *tables.CREATE,
        *_CONFIDENCE,
        (
            "CREATE INDEX IF NOT EXISTS memories_by_beginning ON memories (valid_from) WHERE "
            "valid_from IS NOT NULL"
        ),
    ),
    13: (),  # functions and rights only
}
# What fills new tables, before they get policies. The owner sees all memories while row-level
# security is not forced.
_FILLS: dict[int, tuple[str, ...]] = {
    12: (
        "SELECT mesh_count_keywords(rows, 1) FROM (SELECT jsonb_agg(to_jsonb(named)) AS rows FROM "
        "(SELECT kind, id, partition, number FROM memories) named GROUP BY partition, number / "
        "10000) each",
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


# The tables, models and dimensions with many vectors, and the names of their indexes; pgvector
# cannot index longer vectors.
LARGE = (
    "SELECT source, model, size, format('%s_by_vector_%s', source, left(md5(format('%s %s', model, "
    "size)), 16)) FROM (SELECT 'memories' AS source, model, vector_dims(embedding) AS size "
    "FROM memories "
    "UNION ALL SELECT 'records', model, vector_dims(embedding) FROM records) each "
    f"WHERE size <= 2000 GROUP BY source, model, size HAVING count(*) > {FEW_VECTORS}"
)


def vector_index(table: str, model: str, dimension: int, name: str) -> Composed:
    """Return the statement that creates the index of a model. Others can write meanwhile; it
    runs outside of a transaction."""
    statement = SQL(
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS {} ON {} USING hnsw ((embedding::vector({})) "
        "vector_cosine_ops) WHERE model = {} AND vector_dims(embedding) = {}"
    )
    return statement.format(
        Identifier(name), Identifier(table), Literal(dimension), Literal(model), Literal(dimension)
    )


@cache
def sql(name: str) -> str:
    """Return the statements of a file, filled in."""
    text = files(__package__).joinpath("data", f"{name}.sql").read_text("utf-8")
    filled = {
        "description": description(),
        "version": VERSION,
        "kept": KEPT_MOVES,
        "tables": ", ".join(ALL),
        "may_see": _MAY_SEE.replace("(SELECT mesh_identity())", "identity").replace(
            "(SELECT mesh_home())", "home"
        ),
        "segment_names": ", ".join(tables.COLUMNS),
        "segment_columns": ", ".join(f"t.{name}" for name in tables.COLUMNS),
        "few": FEW_HITS,
        "few_vectors": FEW_VECTORS,
    }
    return re.sub(r"<(\w+)>", lambda found: str(filled[found[1]]), text)
