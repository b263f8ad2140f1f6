"""Whether what a SQLite store derives from its memories says what they say. A difference costs finds."""

import sqlite3
from contextlib import closing
from pathlib import Path

_COUNTED = {
    "memories whose keywords cannot be read": """
        SELECT count(*) FROM memories
        WHERE partition IS NOT NULL AND CASE json_valid(keywords) WHEN 1 THEN json_type(keywords) END IS NOT 'array'""",
    "memories in partitions that have no version": """
        SELECT count(*) FROM memories WHERE partition IS NOT NULL AND partition NOT IN (SELECT partition FROM partitions)""",
    "partitions whose log does not lead to where they are": """
        SELECT count(*) FROM (SELECT partition, max(version) AS version, nonce FROM moves GROUP BY partition) AS last
        LEFT JOIN partitions USING (partition) WHERE (last.version, last.nonce) IS NOT (partitions.version, partitions.nonce)""",
}


def keyword_faults(file: Path) -> list[str]:
    """What is wrong; empty for a sound store."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        connection.execute("BEGIN")
        counts = {what: connection.execute(query).fetchone()[0] for what, query in _COUNTED.items()}
    return [f"{number} {what}" for what, number in counts.items() if number]
