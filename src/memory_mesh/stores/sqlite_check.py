"""Whether the keyword tables of a SQLite store say what its memories say. They are derived; a difference costs finds."""

import sqlite3
from contextlib import closing
from pathlib import Path

_HELD = """
SELECT json_each.value, memories.partition, memories.id, count(*), json_array_length(keywords)
FROM memories, json_each(keywords) GROUP BY memories.id, json_each.value
"""
_LISTED = "SELECT token, partition, id, times, length FROM postings"
_COUNTED = """
SELECT partition, count(*), sum(json_array_length(keywords)) FROM memories
WHERE json_array_length(keywords) > 0 GROUP BY partition
"""
_NOTED = "SELECT partition, documents, length FROM partitions WHERE documents <> 0 OR length <> 0"

_COMPARED = {
    "keywords that no search finds": (_HELD, _LISTED),
    "keywords of memories that are not there": (_LISTED, _HELD),
    "partitions with wrong statistics": (_COUNTED, _NOTED),
    "statistics of partitions that are not there": (_NOTED, _COUNTED),
}


def keyword_faults(file: Path) -> list[str]:
    """What the keyword tables have wrong; empty for a sound store."""
    found = []
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        connection.execute("BEGIN")
        for what, (these, those) in _COMPARED.items():
            (number,) = connection.execute(f"SELECT count(*) FROM ({these} EXCEPT {those})").fetchone()
            found += [f"{number} {what}"] if number else []
    return found
