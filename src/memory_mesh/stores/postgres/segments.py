"""The tables that find and count documents by keyword.

Documents are counted by segment: memories that the same readers see. A segment has the columns that the rule of visibility reads.
The session is only kept of memories that one session sees. `keyword_postings` has a row for each memory and keyword. A GIN index
over the lists of keywords would do the same only for roles without row-level security: PostgreSQL does not let its operators see
a row before the policy does.
"""

from collections.abc import Iterator

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import And, Anything, Compare, In, IsNull, Like, Not, Or, Reader, Where, visible_to

_TEXT = 'text COLLATE "C"'
COLUMNS = ("user_id", "agent_id", "session_id", "memory_type", "reach", "project")
TABLES = {
    "keyword_segments": (
        f"CREATE TABLE keyword_segments (tenant {_TEXT} NOT NULL, segment {_TEXT} NOT NULL, partition {_TEXT} NOT NULL, "
        f"{', '.join(f'{name} {_TEXT}' for name in COLUMNS)}, documents bigint NOT NULL, length bigint NOT NULL, "
        "PRIMARY KEY (tenant, segment))"
    ),
    "keyword_counts": (
        f"CREATE TABLE keyword_counts (tenant {_TEXT} NOT NULL, segment {_TEXT} NOT NULL, partition {_TEXT} NOT NULL, "
        f"word {_TEXT} NOT NULL, documents bigint NOT NULL, PRIMARY KEY (tenant, segment, word))"
    ),
}
POSTINGS = {
    "keyword_postings": (
        f"CREATE TABLE keyword_postings (tenant {_TEXT} NOT NULL, partition {_TEXT} NOT NULL, word {_TEXT} NOT NULL, "
        f"id {_TEXT} NOT NULL, PRIMARY KEY (tenant, partition, word, id))"
    ),
}
INDEXES = ("CREATE INDEX segments_by_partition ON keyword_segments (partition)",)
# The counts of common words change with every write. With space in each page, and without an index that reads them, the new row
# replaces the old one in its page.
COMPACT = ("DROP INDEX IF EXISTS keyword_counts_without_documents", "ALTER TABLE keyword_counts SET (fillfactor = 70)")


def is_by_segment(visible: Where) -> bool:
    """Return whether a condition is true of all memories of a segment or of none: it does not read the session, or it is the
    rule of visibility."""
    tests = list(_tests(visible))
    if {test.column for test in tests} <= {"partition", *COLUMNS} - {"session_id"}:
        return True
    equal = {test.column: test.value for test in tests if isinstance(test, Compare) and test.op == "="}
    names = {name: str(equal[name]) for name in ("user_id", "agent_id", "session_id", "project") if name in equal}
    try:
        return visible == visible_to(Reader(**names, only_project="project" in names))
    except InvalidInput:
        return False


def partitions_in(where: Where) -> list[str] | None:
    """Return the partitions to which a condition limits its rows; None if it does not name them."""
    for part in where.parts if isinstance(where, And) else (where,):
        if isinstance(part, In) and part.column == "partition":
            return [str(name) for name in part.values]
        if isinstance(part, Compare) and part.column == "partition" and part.op == "=":
            return [str(part.value)]
    return None


def _tests(where: Where) -> Iterator[Compare | In | Like | IsNull]:
    match where:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _tests(part)
        case Not(part):
            yield from _tests(part)
        case Anything():
            return
        case _:
            yield where
