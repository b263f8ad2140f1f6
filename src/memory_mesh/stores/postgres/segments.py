"""The tables that find and count memories by keyword.

Memories are counted by segment: those that are equal in the columns that the rule of visibility, the usual conditions of a search
and its counts read. A conversation has a segment for each speaker. `keyword_postings` has a row for each memory and keyword.
A GIN index over the lists of keywords would do the same only for roles without row-level security: PostgreSQL does not let its
operators see a row before the policy does.
"""

from memory_mesh.core.model import And, Compare, In, Where, columns_in


def dropped(kind: str, name: str) -> str:
    """Return what drops a thing of the current schema. A name alone could mean that of another schema of the search path."""
    return f"DO $do$ BEGIN EXECUTE format('DROP {kind} IF EXISTS %I.{name}', current_schema()); END $do$"


_TEXT = 'text COLLATE "C"'
COLUMNS = (
    "user_id", "agent_id", "session_id", "memory_type", "reach", "project", "status", "expires_at", "valid_from", "valid_until",
    "speaker",
)  # fmt: skip
# The partition is part of each key. Otherwise an agent that guesses the name of a segment could create the counts of another
# agent before that one does, and then read them.
TABLES = {
    "keyword_segments": (
        f"CREATE TABLE keyword_segments (tenant {_TEXT} NOT NULL, segment uuid NOT NULL, partition {_TEXT} NOT NULL, "
        f"{', '.join(f'{name} {_TEXT}' for name in COLUMNS)}, model {_TEXT}, dimension int, memories bigint NOT NULL, "
        "documents bigint NOT NULL, length bigint NOT NULL, PRIMARY KEY (tenant, partition, segment))"
    ),
    "keyword_counts": (
        f"CREATE TABLE keyword_counts (tenant {_TEXT} NOT NULL, partition {_TEXT} NOT NULL, word {_TEXT} NOT NULL, "
        "segment uuid NOT NULL, documents bigint NOT NULL, PRIMARY KEY (tenant, partition, word, segment))"
    ),
}
POSTINGS = {
    "keyword_postings": (
        f"CREATE TABLE keyword_postings (tenant {_TEXT} NOT NULL, partition {_TEXT} NOT NULL, word {_TEXT} NOT NULL, "
        f"id {_TEXT} NOT NULL, PRIMARY KEY (tenant, partition, word, id))"
    ),
}
# The tables of an earlier version had other columns. With space in each page, the new row of a count replaces the old one there.
CREATE = (
    dropped("TABLE", "keyword_counts"),
    dropped("TABLE", "keyword_segments"),
    *TABLES.values(),
    "CREATE INDEX segments_by_partition ON keyword_segments (partition)",
    "ALTER TABLE keyword_segments SET (fillfactor = 70)",
    "ALTER TABLE keyword_counts SET (fillfactor = 80)",
)


def is_by_segment(where: Where) -> bool:
    """Return whether a condition is true of all memories of a segment or of none: it reads no other column."""
    return columns_in(where) <= {"partition", *COLUMNS}


def partitions_in(where: Where) -> list[str] | None:
    """Return the partitions to which a condition limits its rows; None if it does not name them."""
    for part in where.parts if isinstance(where, And) else (where,):
        if isinstance(part, In) and part.column == "partition":
            return [str(name) for name in part.values]
        if isinstance(part, Compare) and part.column == "partition" and part.op == "=":
            return [str(part.value)]
    return None
