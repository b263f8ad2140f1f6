"""The tables of the SQLite store: create and upgrade them, write and read rows, log moves.

`memories` is the table of Memory Lane with our columns added, so its files open here and its
program can read what we write; see `lane`. `yamo_blocks` and `synthesized_skills` are the tables of
RFC-0011.
"""

import re
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from memory_mesh.core.errors import StoreCorrupt, StoreTooNew, shown
from memory_mesh.core.model import (
    BASE,
    COLUMNS,
    Key,
    Kind,
    Type,
)
from memory_mesh.core.ports import Changes
from memory_mesh.stores.base import (
    KEPT_MOVES,
    mark_of,
    moves_after,
    new_nonce,
    version_in,
)

# --- the log of moves ---
# A move is a put or a delete of a row that affects searches (`MOVING`). Each move raises the
# version of its partition by one.

TABLES = (
    """CREATE TABLE IF NOT EXISTS partitions (
      partition TEXT PRIMARY KEY, version INTEGER NOT NULL, nonce TEXT NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS moves (
      partition TEXT NOT NULL, version INTEGER NOT NULL, nonce TEXT NOT NULL, kind TEXT NOT NULL, \
id TEXT NOT NULL,
      PRIMARY KEY (partition, version)) WITHOUT ROWID""",
)

_TRIMMED_EVERY = 1_000  # moves; trimming the log less often keeps most changes fast


def state_of(connection: sqlite3.Connection, partition: str) -> tuple[int, str]:
    """Return the version of a partition and the nonce of its last change."""
    query = "SELECT version, nonce FROM partitions WHERE partition = ?"
    version, nonce = connection.execute(query, (partition,)).fetchone() or (0, "")
    if type(version) is not int or type(nonce) is not str:  # edited by hand
        raise StoreCorrupt(
            f"the version of the partition {shown(partition)} cannot be read",
            remedy="restore a backup",
        )
    return version, nonce


def record_moves(
    connection: sqlite3.Connection,
    moved: Mapping[str, Sequence[Key]],
    versions: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Raise the version of each partition by its moves, and log them, in the caller's
    transaction. Return the new versions. `versions` has those that the transaction has read
    already."""
    new: dict[str, int] = {}
    # The random function of SQLite would repeat itself on both sides of a fork.
    nonce = new_nonce()
    for name, keys in moved.items():
        before = versions[name] if versions and name in versions else state_of(connection, name)[0]
        after = before + len(keys)
        connection.execute(
            "INSERT OR REPLACE INTO partitions VALUES (?, ?, ?)", (name, after, nonce)
        )
        connection.executemany(
            "INSERT INTO moves VALUES (?, ?, ?, ?, ?)",
            [(name, at, nonce, key.kind.value, key.id) for at, key in enumerate(keys, before + 1)],
        )
        if after // _TRIMMED_EVERY > before // _TRIMMED_EVERY:
            connection.execute(
                "DELETE FROM moves WHERE partition = ? AND version <= ?", (name, after - KEPT_MOVES)
            )
        new[name] = after
    return new


def forget_moves(connection: sqlite3.Connection) -> None:
    """Clear the log and raise every version: readers that follow a partition must read all of it
    again."""
    connection.execute("DELETE FROM moves")
    connection.execute("UPDATE partitions SET version = version + 1, nonce = ?", (new_nonce(),))
    # The new log starts with an entry without a row, so that readers can follow from this state.
    connection.execute("INSERT INTO moves SELECT partition, version, nonce, '', '' FROM partitions")


def changes_of(connection: sqlite3.Connection, partition: str, since: str | None) -> Changes:
    """Return the moves since a mark, or None for the keys when the mark is unknown."""
    now, version = mark_of(*state_of(connection, partition)), version_in(since)
    if since == now:
        return Changes(now, ())
    if version is None:
        return Changes(now, None)
    # One statement reads one snapshot: its first move produced the old mark, its last move produces
    # the new one.
    query = (
        "SELECT version, nonce, kind, id FROM moves WHERE partition = ? AND version >= ? ORDER "
        "BY version"
    )
    moves = connection.execute(query, (partition, version)).fetchall()
    return moves_after(now, since, moves)


_FAULTS = {
    "memories with unreadable keywords": """
        SELECT count(*) FROM memories
        WHERE partition IS NOT NULL AND CASE json_valid(keywords) WHEN 1 THEN json_type(keywords) \
END IS NOT 'array'""",
    "memories in partitions without a version": """
        SELECT count(*) FROM memories WHERE partition IS NOT NULL AND partition NOT IN (SELECT \
partition FROM partitions)""",
    "partitions whose log does not end at their version": """
        SELECT count(*) FROM (SELECT partition, max(version) AS version, nonce FROM moves GROUP BY \
partition) AS last
        LEFT JOIN partitions USING (partition) WHERE (last.version, last.nonce) IS NOT \
(partitions.version, partitions.nonce)""",
}


def derived_faults(file: Path) -> list[str]:
    """Return what is wrong with the keywords, versions and logs of a store file. A fault makes
    searches miss memories."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        connection.execute("BEGIN")
        counts = {what: connection.execute(query).fetchone()[0] for what, query in _FAULTS.items()}
    return [f"{number} {what}" for what, number in counts.items() if number]


# --- triggers ---
# Memory Lane may have the file open and write to `memories` at any time. It knows neither our
# columns nor the log of moves, so triggers log its replacements, changes and deletions within its
# own transaction. A row without a partition waits to be taken up (see `lane`). While one of our own
# transactions changes memories, it has a row in `mesh_meta`, which no other connection sees.

WRITING = "writing"  # the key of that row

# A process of an earlier version may have the file open and would append blocks without a seal. The
# function is known only to connections of this version, so the statement fails there and its name
# is the message.
UPGRADE = "upgrade_memory_mesh"

_COLUMNS = (
    "content",
    "metadata",
    "collection",
    "tags",
    "embedding",
    "valid_from",
    "valid_until",
    "superseded_by",
    "keywords",
)
_CHANGED = " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in (*_COLUMNS, "created_at"))
_BY_ANOTHER = f"NOT EXISTS (SELECT 1 FROM mesh_meta WHERE key = '{WRITING}')"


def _log(partition: str, id_: str) -> str:
    """Return the statements that log the move of a memory, as `record_moves` does."""
    return f"""UPDATE partitions SET version = version + 1, nonce = lower(hex(randomblob(8))) \
WHERE partition = {partition};
    INSERT INTO moves SELECT partition, version, nonce, 'memory', {id_} FROM partitions WHERE \
partition = {partition};"""


# As SQLite stores them. Never change one: a file with any other trigger is refused.
TRIGGERS = (
    f"""CREATE TRIGGER blocks_need_a_seal BEFORE INSERT ON yamo_blocks WHEN NEW.seal IS NULL
  BEGIN SELECT {UPGRADE}(); END""",
    f"""CREATE TRIGGER memories_replaced BEFORE INSERT ON memories WHEN NEW.partition IS NULL
  BEGIN
    {_log("(SELECT partition FROM memories WHERE id = NEW.id)", "NEW.id")}
  END""",
    # A sealed content that was changed stays as it is: reads withhold it, and `verify` reports it.
    f"""CREATE TRIGGER memories_changed AFTER UPDATE OF {", ".join((*_COLUMNS, "created_at"))} ON \
memories
  WHEN OLD.partition IS NOT NULL AND (OLD.salt IS NULL OR NEW.content IS OLD.content) AND \
{_BY_ANOTHER} AND ({_CHANGED})
  BEGIN
    {_log("OLD.partition", "OLD.id")}
    UPDATE memories SET partition = NULL,
      model = CASE WHEN NEW.content IS OLD.content AND NEW.embedding IS OLD.embedding THEN model END
    WHERE id = NEW.id;
  END""",
    f"""CREATE TRIGGER memories_deleted AFTER DELETE ON memories WHEN OLD.partition IS NOT NULL \
AND {_BY_ANOTHER}
  BEGIN
    {_log("OLD.partition", "OLD.id")}
  END""",
)


# --- tables ---

VERSION = 9
# "MMSH", in the header of our files: SQLite has this field to tell programs apart.
APPLICATION_ID = 0x4D4D5348

# `{added}` is where our columns go.
_TABLES = (
    """CREATE TABLE IF NOT EXISTS memories (
      id TEXT PRIMARY KEY, content TEXT NOT NULL, metadata TEXT, collection TEXT DEFAULT \
'memory-lane', tags TEXT, embedding BLOB,
      decay_factor REAL DEFAULT 1.0, valid_from TEXT, valid_until TEXT, superseded_by TEXT, \
auto_tags TEXT, keywords TEXT,
      created_at TEXT NOT NULL, updated_at TEXT NOT NULL{added})""",
    """CREATE TABLE IF NOT EXISTS yamo_blocks (
      id TEXT PRIMARY KEY, agent_id TEXT, operation_type TEXT NOT NULL, yamo_text TEXT NOT NULL, \
timestamp TEXT NOT NULL,
      block_hash TEXT NOT NULL, prev_hash TEXT, metadata TEXT{added})""",
    """CREATE TABLE IF NOT EXISTS synthesized_skills (
      id TEXT PRIMARY KEY, name TEXT NOT NULL, intent TEXT NOT NULL, yamo_text TEXT NOT NULL, \
vector BLOB, metadata TEXT,
      created_at TEXT NOT NULL{added})""",
    """CREATE TABLE IF NOT EXISTS records (
      kind TEXT NOT NULL, id TEXT NOT NULL, embedding BLOB, model TEXT, extra TEXT{added},
      PRIMARY KEY (kind, id)) WITHOUT ROWID""",
)

_INDEXES = (
    # All columns that decide who sees a memory: counting the visible ones reads no row.
    "CREATE INDEX IF NOT EXISTS memories_by_scope "
    "ON memories (user_id, status, partition, memory_type, reach, agent_id, session_id)",
    "CREATE INDEX IF NOT EXISTS memories_by_age ON memories (partition, created_at, number, id)",
    (
        "CREATE INDEX IF NOT EXISTS memories_by_fingerprint ON memories (fingerprint) WHERE "
        "fingerprint IS NOT NULL"
    ),
    (
        "CREATE INDEX IF NOT EXISTS memories_by_claim ON memories (claim_key) WHERE claim_key "
        "IS NOT NULL"
    ),
    (
        "CREATE INDEX IF NOT EXISTS memories_by_turn ON memories (partition, session_id, project, "
        "turn) WHERE turn IS NOT NULL"
    ),
    # Not []
    (
        "CREATE INDEX IF NOT EXISTS memories_with_sources ON memories (user_id, sources) WHERE "
        "length(sources) > 2"
    ),
    (
        "CREATE INDEX IF NOT EXISTS skills_with_sources ON synthesized_skills (user_id, sources) "
        "WHERE length(sources) > 2"
    ),
    (
        "CREATE INDEX IF NOT EXISTS memories_with_feedback ON memories (user_id, feedback_score) "
        "WHERE feedback_score IS NOT NULL"
    ),
    "CREATE INDEX IF NOT EXISTS memories_to_take_up ON memories (id) WHERE partition IS NULL",
    (
        "CREATE INDEX IF NOT EXISTS blocks_by_memory ON yamo_blocks (ref, memory_revision, "
        "content_hash) WHERE ref IS NOT NULL"
    ),
    "CREATE UNIQUE INDEX IF NOT EXISTS blocks_by_number ON yamo_blocks (chain, number)",
    "CREATE INDEX IF NOT EXISTS records_by_ref ON records (kind, ref) WHERE ref IS NOT NULL",
    (
        "CREATE INDEX IF NOT EXISTS records_by_target ON records (kind, target) WHERE target "
        "IS NOT NULL"
    ),
)

_TYPES = {Type.INT: "INTEGER", Type.REAL: "REAL", Type.BOOL: "INTEGER"}


@dataclass(frozen=True, slots=True)
class Table:
    """Which fields a table keeps as columns; the others are JSON in `extra`."""

    name: str
    columns: frozenset[str]
    renamed: Mapping[str, str] = field(default_factory=dict)
    vector: str = "embedding"

    def physical(self, column: str) -> str:
        return self.renamed.get(column, column)

    def expression(self, column: str) -> str:
        """Return the SQL expression of a field: its column, or its place in the JSON."""
        return (
            self.physical(column)
            if column in self.columns
            else f"json_extract(extra, '$.{column}')"
        )


def _promoted(kind: Kind) -> frozenset[str]:
    return frozenset(
        column.name for column in COLUMNS if kind in column.kinds and column.name != "kind"
    )


MEMORIES = Table("memories", _promoted(Kind.MEMORY))
BLOCKS = Table("yamo_blocks", _promoted(Kind.BLOCK), {"created_at": "timestamp"})
_SCOPE = ("user_id", "agent_id", "session_id", "memory_type", "reach")
SKILLS = Table(
    "synthesized_skills",
    frozenset(
        {
            *BASE,
            *_SCOPE,
            "name",
            "intent",
            "content",
            "metadata",
            "tags",
            "status",
            "sources",
            "fingerprint",
        }
    )
    - {"kind"},
    {"content": "yamo_text"},
    vector="vector",
)
RECORDS = Table("records", frozenset({*BASE, *_SCOPE, "ref", "target"}))


def table_of(kind: Kind) -> Table:
    return {Kind.MEMORY: MEMORIES, Kind.BLOCK: BLOCKS, Kind.SKILL: SKILLS}.get(kind, RECORDS)


def of_kind(kind: Kind) -> str:
    """Return the condition, with AND, that selects a kind in its table."""
    # Without statistics SQLite would read all rows of the kind, by the primary key, instead of the
    # few of an index.
    return f"likely(kind = '{kind.value}') AND " if table_of(kind) is RECORDS else ""


def prepare(connection: sqlite3.Connection) -> None:
    """Create or complete the tables in the transaction of the caller."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS mesh_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) "
        "WITHOUT ROWID"
    )
    check_version(connection)
    old = columns_of(connection, "partitions") >= {"documents", "length"}
    if old:
        connection.execute("ALTER TABLE partitions RENAME TO partitions_1")
    for statement in TABLES:
        connection.execute(statement)
    for statement, table in zip(_TABLES, (MEMORIES, BLOCKS, SKILLS, RECORDS), strict=True):
        # With all columns: to add them to a new table takes SQLite much longer.
        written = re.findall(r"(\w+) (?:TEXT|BLOB|REAL)", statement)
        added = "".join(f", {column}" for column in _missing_columns(table, written))
        connection.execute(statement.format(added=added))
        # A table of an earlier version lacks some.
        for column in _missing_columns(table, columns_of(connection, table.name)):
            connection.execute(f"ALTER TABLE {table.name} ADD COLUMN {column}")
    # Of schemas 2 and 4.
    for index in ("blocks_by_ref", "memories_by_status", "memories_by_sources"):
        connection.execute(f"DROP INDEX IF EXISTS {index}")
    created = (trigger.replace("TRIGGER", "TRIGGER IF NOT EXISTS", 1) for trigger in TRIGGERS)
    for statement in (*_INDEXES, *created):
        connection.execute(statement)
    _fill_sealed_contents(connection)
    # Schema 1 kept the data of BM25 in tables. The versions are kept; memories have all the rest.
    if old:
        connection.execute("INSERT INTO partitions SELECT partition, version, '' FROM partitions_1")
        connection.execute("DROP TABLE partitions_1")
        connection.execute("DROP TABLE IF EXISTS postings")
        forget_moves(connection)
        mark_unfreed(connection)
    connection.execute("INSERT OR REPLACE INTO mesh_meta VALUES ('schema', ?)", (str(VERSION),))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def check_version(connection: sqlite3.Connection) -> bool:
    """Return whether the file has the current schema; False if it must be prepared. A newer
    schema raises `StoreTooNew`."""
    schema = schema_of(connection)
    if schema is not None and (not schema.isdecimal() or int(schema) > VERSION):
        raise StoreTooNew(
            f"the store has schema {schema}",
            expected=f"at most {VERSION}",
            remedy="upgrade memory-mesh",
        )
    return schema == str(VERSION)


def schema_of(connection: sqlite3.Connection) -> str | None:
    """Return the schema that the table `mesh_meta` names; None if there is no such table of
    ours."""
    if not columns_of(connection, "mesh_meta") >= {"key", "value"}:
        return None
    row = connection.execute("SELECT value FROM mesh_meta WHERE key = 'schema'").fetchone()
    return str(row[0]) if row else None


def mark_unfreed(connection: sqlite3.Connection) -> None:
    """Record, in the transaction of a deletion, that its bytes must still be freed: a crash may
    come before that."""
    connection.execute("INSERT OR REPLACE INTO mesh_meta VALUES ('unfreed', ?)", (new_nonce(),))


def unfreed(connection: sqlite3.Connection) -> str | None:
    """Return the mark of the last deletion whose bytes must still be freed, or None."""
    row = connection.execute("SELECT value FROM mesh_meta WHERE key = 'unfreed'").fetchone()
    return str(row[0]) if row else None


def mark_freed(connection: sqlite3.Connection, pending: str | None) -> None:
    """Record that bytes were freed. The mark of a deletion that came during the rewrite stays."""
    connection.execute("DELETE FROM mesh_meta WHERE key = 'unfreed' AND value = ?", (pending,))


def _missing_columns(table: Table, existing: Collection[str]) -> list[str]:
    """Return the definitions of the columns that are not in `existing`; all are nullable and
    come last."""
    columns = {
        table.physical(column.name): _TYPES.get(column.type, "TEXT")
        for column in COLUMNS
        if column.name in table.columns
    }
    # Tokens are last: what reads the other columns of a row does not read their pages.
    further = {"model": "TEXT", "extra": "TEXT", "tokens": "BLOB"}
    columns |= further if table is not BLOCKS else {}
    return [f"{name} {type_}" for name, type_ in columns.items() if name not in existing]


def _fill_sealed_contents(connection: sqlite3.Connection) -> None:
    """Copy revision and content hash from the texts of blocks of earlier versions into the
    columns, which reads compare."""
    query = """
        SELECT rowid, yamo_text FROM yamo_blocks
        WHERE rowid > ? AND seal IS NULL AND content_hash IS NULL AND typeof(yamo_text) = 'text' \
ORDER BY rowid LIMIT 1000"""
    at = -1
    while rows := connection.execute(query, (at,)).fetchall():
        from memory_mesh.core.audit import sealed_content  # only an upgrade needs it

        found = [(*content, rowid) for rowid, text in rows if (content := sealed_content(text))]
        connection.executemany(
            "UPDATE yamo_blocks SET (memory_revision, content_hash) = (?, ?) WHERE rowid = ?", found
        )
        at = rows[-1][0]
    if at >= 0:
        # A memory that was changed while the audit was off has a later revision than its blocks. It
        # is not sealed.
        later = "m.revision > (SELECT max(memory_revision) FROM yamo_blocks WHERE ref = m.id)"
        connection.execute(
            "UPDATE yamo_blocks SET (memory_revision, content_hash) = (NULL, NULL) "
            f"WHERE seal IS NULL AND ref IN (SELECT id FROM memories m WHERE {later})"
        )


def columns_of(connection: sqlite3.Connection, table: str) -> set[str]:
    """Return the names of the columns of a table."""
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
