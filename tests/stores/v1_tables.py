"""Folders as programs of RFC-0011 with schema V1 leave them, sound and damaged."""

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

# As JavaScript programs write it: everything but the id may be null.
SCHEMA = pa.schema(
    [
        pa.field("id", pa.utf8()),
        pa.field("vector", pa.list_(pa.float32(), 4)),
        pa.field("content", pa.utf8()),
        pa.field("metadata", pa.utf8()),
        pa.field("created_at", pa.timestamp("ms")),
        pa.field("updated_at", pa.timestamp("ms")),
    ]
)
CREATED = 1_767_225_600_000
SOUND: list[dict[str, Any]] = [
    {
        "id": f"mem_{CREATED + number}_00000{number}",
        "vector": [1.0, number, 0.0, -0.5],
        "content": content,
        "metadata": json.dumps(metadata),
        "created_at": CREATED + number,
        "updated_at": CREATED + 1000 if number == 1 else None,
    }
    for number, (content, metadata) in enumerate(
        [
            (
                "The lighthouse keeper counts gulls.",
                {"type": "event", "source": "log", "tags": ["coast"], "more": {"n": [1]}},
            ),
            (
                "This session is about the harbour.",
                {"type": "session", "session_id": "s1", "skill_name": "pilot"},
            ),
            (
                "Check the tide before leaving. Ünïcode ✓",
                {"type": "lesson", "tags": ["#lesson_learned"]},
            ),
        ]
    )
]


def damaged(**changes: object) -> dict[str, Any]:
    """Return a sound row with other values; its id is new unless it is given."""
    id_ = "bad_" + sha256(repr(changes).encode()).hexdigest()[:8]
    return SOUND[0] | {"id": id_} | changes


# Each damaged row with the reason that the migration reports.
DAMAGED: dict[str, dict[str, Any]] = {
    "no id": damaged(id=None),
    "the same id as row 1": damaged(id=SOUND[0]["id"], content="Another text under the same id."),
    "no content": damaged(content=None),
    "metadata is not a JSON object": damaged(metadata='{"type": "eve'),
    "no vector": damaged(vector=None),
    "a vector that is not finite": damaged(vector=[float("nan"), 1.0, float("inf"), 0.0]),
    "no created_at": damaged(created_at=None),
    "created_at is not a time of the years 1 to 9999": damaged(created_at=2**62),
    "updated_at is not a time of the years 1 to 9999": damaged(updated_at=-(2**62)),
    "no content, metadata is not a JSON object": damaged(content="", metadata="[1]"),
}


def make(
    folder: Path, rows: Sequence[dict[str, Any]] = SOUND, *, schema: pa.Schema = SCHEMA
) -> Path:
    """Append rows to a table, in a fragment of its own."""
    lance.write_dataset(
        pa.Table.from_pylist(rows, schema), folder / "memory_entries.lance", mode="append"
    )
    return folder


def read(folder: Path, name: str = "memory_entries") -> pa.Table:
    return lance.dataset(folder / f"{name}.lance").to_table()


def values(folder: Path, name: str = "memory_entries") -> list[dict[str, Any]]:
    """Return the rows with numbers as times and texts as vectors, so that NaN is equal to NaN."""
    table = read(folder, name)
    for at, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(at, field.name, table[field.name].cast(pa.int64()))
    return [row | {"vector": str(row["vector"])} for row in table.to_pylist()]


def tree(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder with their bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
