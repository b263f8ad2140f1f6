"""Make a store that holds everything this version can write, for the tests of later versions.

    python tests/stores/make_fixture.py NAME             writes tests/data/stores/NAME.db and
                                                         NAME.json
    python tests/stores/make_fixture.py --describe FILE  writes only the JSON beside an existing .db
                                                         or .sql file

Run it once after a change of what is stored. The JSON has what this version returns from the store:
row counts, and for several readers the memories, histories, lessons and first search results.
`test_upgrade.py` opens each store and compares.
"""

import argparse
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from memory_mesh import MemoryMesh
from memory_mesh.core.model import Vector
from memory_mesh.testing import FakeClock, seeded_ids

FOLDER = Path(__file__).parents[1] / "data" / "stores"
PLANNER: dict[str, Any] = {"user_id": "ana", "agent_id": "planner", "session_id": "s1"}
READERS: Sequence[dict[str, Any]] = (
    PLANNER,
    {"user_id": "ana", "agent_id": "coder"},
    {"user_id": "bob", "agent_id": "coder"},
    {},
)
QUERIES = (
    "deploy key rotation",
    "zeppelin hangar painted turquoise",
    "tea in the afternoon",
    "token expired before a deploy",
)
LESSON = {
    "situation": "The deploy failed with 401.", "error_pattern": "token_expired",
    "oversight": "The expiry was not checked.", "fix": "A new token.",
    "preventative_rule": "Refresh the token before a deploy.", "severity": "high",
    "applicable_scope": "deploys",
}  # fmt: skip
TYPES = {
    "global": "The build server is called Ursa.",
    "session": "This session is about the release of May.",
    "agent": "The planner splits work into tasks of one day.",
    "reflection": "Releases slip when reviews wait for one person.",
}
EXTRACTED = json.dumps(
    {"memories": [{"text": "Ana works from Lisbon.", "kind": "fact", "importance": 0.8}]}
)


class WordEmbedder:
    """Counts words by their hash. Unlike the embedder `hash` it has a window, so that long texts
    get passages."""

    model, window = "fixture/32", 96

    def count(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [Vector.of(self.model, self._values(text)) for text in texts]

    def _values(self, text: str) -> list[float]:
        values = [0.0] * 32
        for word in text.lower().split():
            values[sha256(word.strip(".,").encode()).digest()[0] % 32] += 1.0
        return values


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", nargs="?", help="the name of the new fixture, such as 0.2-graph")
    parser.add_argument(
        "--describe", type=Path, metavar="FILE", help="write the JSON of this file only"
    )
    given = parser.parse_args(arguments)
    if bool(given.name) == bool(given.describe):
        parser.error("expected either NAME or --describe FILE")
    with TemporaryDirectory() as home:
        os.environ["MEMORY_MESH_HOME"] = home
        file = given.describe or FOLDER / f"{given.name}.db"
        if given.name:
            fill(Path(home) / "memory.db")
            shutil.copyfile(Path(home) / "memory.db", file)
        text = json.dumps(describe(file, Path(home)), indent=1, ensure_ascii=False, sort_keys=True)
        file.with_suffix(".json").write_text(f"{text}\n", encoding="utf-8")
    return 0


def fill(file: Path) -> None:
    """Write every kind of row through the public methods."""
    clock, ids = FakeClock(), seeded_ids(1)
    options: dict[str, Any] = {
        "store": f"sqlite:///{file}",
        "embedder": WordEmbedder(),
        "clock": clock.seconds,
        "ids": ids,
    }
    with MemoryMesh(**PLANNER, **options) as mesh:
        _remember(mesh, clock)
        _change(mesh, clock)
        _use(mesh, clock)
    with MemoryMesh(user_id="ana", agent_id="coder", **options) as mesh:
        mesh.add("The coder keeps branches short.", {"type": "agent", "project": "ursa"})
        mesh.add(TYPES["global"], {"source": "stand-up"})
        mesh.add("The release is in April.", key="release")
        mesh.add("The release is in May.", key="release")
        mesh.search("branches")
    with MemoryMesh(agent_id="lone", redaction="pseudonym", **options) as mesh:
        mesh.add("Write to ana@example.com about the hangar.")
    with _chat_server() as url:
        chat: dict[str, Any] = {
            "llm_provider": "ollama",
            "llm_model": "small",
            "llm_base_url": url,
            "llm_allow_local": True,
        }
        with MemoryMesh(
            user_id="bob", agent_id="coder", enable_llm=True, **chat, **options
        ) as mesh:
            mesh.extract("Ana told me that she works from Lisbon this year.")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def describe(file: Path, folder: Path) -> dict[str, Any]:
    """Return what this version finds in copies of the store."""
    copy = open_copy(file, folder / "copy.db")
    with closing(sqlite3.connect(copy)) as connection:
        counts = dict(connection.execute("SELECT kind, count(*) FROM records GROUP BY kind"))
        counts |= {
            "memory": _count(connection, "memories"),
            "block": _count(connection, "yamo_blocks"),
        }
    return {"counts": counts, "readers": [_seen(file, folder, reader) for reader in READERS]}


def open_copy(file: Path, copy: Path) -> Path:
    """Copy a fixture, which is a database file or an SQL dump, to a new database file."""
    if file.suffix == ".db":
        shutil.copyfile(file, copy)
        return copy
    with closing(sqlite3.connect(copy)) as connection:
        connection.executescript(file.read_text(encoding="utf-8"))
        connection.execute("PRAGMA journal_mode = WAL")
    return copy


def _remember(mesh: MemoryMesh, clock: FakeClock) -> None:
    for memory_type, text in TYPES.items():
        clock.advance(seconds=1)
        mesh.add(
            text, {"type": memory_type, "source": "kick-off", "nested": {"list": [1, None, "ü"]}}
        )
    mesh.add(
        "The deploy key rotates on Mondays.",
        {"tags": ["ops"], "importance": "high"},
        idempotency_key="key-1",
    )
    mesh.add(
        "The deploy key rotates on Mondays.",
        {"tags": ["ops"], "importance": "high"},
        idempotency_key="key-1",
    )
    mesh.add("Guests get the wifi code of today.", {"expires_at": "2026-01-09", "confidence": 0.5})
    mesh.add(
        "I prefer tea.",
        {
            "speaker": "Ana",
            "turn": 3,
            "event_time": "2025-12-24",
            "project": "ursa",
            "category": "taste",
        },
    )
    paragraphs = [
        f"Paragraph {n} describes hall {n * n} of the airfield, its doors and its lamps."
        for n in range(60)
    ]
    mesh.add(
        "\n\n".join([*paragraphs, "The zeppelin hangar was painted turquoise."]),
        {"source": "airfield.md"},
    )


def _change(mesh: MemoryMesh, clock: FakeClock) -> None:
    first = mesh.add("Ana drinks coffee in the afternoon.")
    clock.advance(days=1)
    mesh.update(
        first.id, content="Ana drinks tea in the afternoon.", metadata={"source": "correction"}
    )
    mesh.pin(first.id)
    mesh.delete(mesh.add("This line was deleted.").id)
    mesh.erase(mesh.add("This secret line was erased.").id)
    mesh.distill_lesson(LESSON, idempotency_key="lesson-1")


def _use(mesh: MemoryMesh, clock: FakeClock) -> None:
    for query in QUERIES:
        clock.advance(seconds=10)
        mesh.search(query)
    mesh.heartbeat(force=True)


def _seen(file: Path, folder: Path, reader: dict[str, Any]) -> dict[str, Any]:
    copy = open_copy(file, folder / f"{'-'.join(reader.values())}.db")
    clock = FakeClock()
    clock.advance(days=2)
    with MemoryMesh(
        store=f"sqlite:///{copy}", embedder=WordEmbedder(), clock=clock.seconds, **reader
    ) as mesh:
        records = mesh.get_all()
        return {
            "reader": reader,
            "records": [asdict(record) for record in records],
            "histories": {
                record.id: [asdict(change) for change in mesh.history(record.id)]
                for record in records
            },
            "lessons": [lesson.lesson_id for lesson in mesh.query_lessons("deploy")],
            "searches": {
                query: [hit.id for hit in mesh.search(query, limit=3)] for query in QUERIES
            },
            "chains": sorted(head.id for head in mesh.audit_heads(recalls=False)),
            "verdicts": [type(verdict).__name__ for verdict in mesh.verify()],
        }


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


@contextmanager
def _chat_server() -> Iterator[str]:
    """Serve one fixed answer of a chat model, so that a call is counted as spending."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            message = {"choices": [{"message": {"content": EXTRACTED}, "finish_reason": "stop"}]}
            body = json.dumps(
                {**message, "usage": {"prompt_tokens": 90, "completion_tokens": 20}}
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    sys.exit(main())
