"""The segments by which documents are counted: memories that the same readers see.

A segment has the columns that the rule of visibility reads. The session is only kept of memories that one session sees.
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
INDEXES = (
    "CREATE INDEX segments_by_partition ON keyword_segments (partition)",
    "CREATE INDEX keyword_counts_without_documents ON keyword_counts (partition) WHERE documents <= 0",
)


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
