"""A `memories.db` of Memory Lane opens with every row, and that program can still read what we
write."""

import json
import sqlite3
import struct
from array import array
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.model import TOKEN_BYTES, Compare, Kind, Vector, partition
from memory_mesh.stores.sqlite import SqliteStore
from memory_mesh.testing.rows import memory
from stores.files import prepare

from .children import bytes_of, url
from .sound import contents_in, derived_faults

# The document's own words.
TABLE = """
CREATE TABLE memories (
  id TEXT PRIMARY KEY,
  content TEXT NOT NULL,
  metadata TEXT,            -- JSON blob (MemoryLaneMetadata)
  collection TEXT DEFAULT 'memory-lane',
  tags TEXT,                -- JSON array
  embedding BLOB,           -- F32 vector (mxbai-embed-large-v1, 1024 dims)
  decay_factor REAL DEFAULT 1.0,
  valid_from TEXT,
  valid_until TEXT,
  superseded_by TEXT,
  auto_tags TEXT,
  keywords TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
);
"""
COLUMNS = (
    *(
        "id",
        "content",
        "metadata",
        "collection",
        "tags",
        "embedding",
        "decay_factor",
        "valid_from",
        "valid_until",
    ),
    *("superseded_by", "auto_tags", "keywords", "created_at", "updated_at"),
)
KEPT = [name for name in COLUMNS if name != "keywords"]  # which are ours to write
NEW_YEAR = "2025-01-01T00:00:00.000Z"
EMBEDDING = array("f", [n / 1024 for n in range(1024)]).tobytes()

ROWS = {
    "plain": {},
    "5f0c2f9e-8a51-4a8f-9a52-0d8d5d2a6c11": {
        "metadata": (
            '{"lane_version": "4.1.0",  "memory_type":"decision", "times_observed": 3, '
            '"confidence_score": 70}'
        ),
        "tags": '["lamp", "oil"]',
        "embedding": EMBEDDING,
        "decay_factor": 0.8,
        "auto_tags": '["auto"]',
    },
    "old-one": {
        "superseded_by": "plain",
        "valid_from": "2024-01-01T00:00:00Z",
        "valid_until": "2024-12-31T00:00:00Z",
    },
    "elsewhere": {"collection": "project-x", "metadata": "{}", "tags": "[]"},
}
# What another version of that program may have left: nothing of it is lost, and nothing stops the
# opening.
ODD = {
    "no json": ({"metadata": "a note"}, {"metadata": {"unread": "a note"}}),
    "no object": ({"metadata": "[1, 2]"}, {"metadata": {"unread": "[1, 2]"}}),
    "no number": ({"metadata": '{"x": NaN}'}, {"metadata": {"x": "NaN"}}),
    "large numbers": (
        {
            "metadata": (
                '{"a": [99999999999999999999], "feedback_count": 99999999999999999999, '
                '"times_observed": 1e400}'
            )
        },
        {
            "metadata": {
                "a": ["99999999999999999999"],
                "feedback_count": "99999999999999999999",
                "times_observed": "inf",
            }
        },
    ),
    "a huge number": (
        {"metadata": f'{{"a": {"9" * 5000}}}'},
        {"metadata": {"unread": f'{{"a": {"9" * 5000}}}'}},
    ),
    "NUL": (
        {"content": "The lantern \0 is odd", "metadata": '{"a\\u0000": "b\\u0000"}'},
        {"content": "The lantern \ufffd is odd", "metadata": {"a\ufffd": "b\ufffd"}},
    ),
    "bytes": (
        {
            "content": b"The lantern \xff is odd",
            "metadata": b"{}",
            "tags": b"\xff",
            "created_at": b"2025-01-01",
        },
        {
            "content": "The lantern \ufffd is odd",
            "metadata": {},
            "tags": ["\ufffd"],
            "created_at": NEW_YEAR,
        },
    ),
    "seven bytes as a vector": ({"embedding": b"1234567"}, {"metadata": {}}),
    "no numbers in a vector": ({"embedding": b"\xff" * 16}, {"metadata": {}}),
    "text as a vector": ({"embedding": "[0.5, 0.5]"}, {"metadata": {}}),
    "an empty vector": ({"embedding": b""}, {"metadata": {}}),
    "half a sign": (
        {"metadata": '{"cut": "smile \\ud83d"}'},
        {"metadata": {"cut": "smile \ufffd\ufffd\ufffd"}},
    ),
    "other types": (
        {"metadata": '{"memory_type": ["a"], "times_observed": "3"}'},
        {
            "metadata": {"memory_type": ["a"], "times_observed": "3"},
            "category": None,
            "times_observed": 1,
        },
    ),
    "tags as text": ({"tags": "lamp"}, {"tags": ["lamp"]}),
    "tags as numbers": ({"tags": '[7, "lamp"]'}, {"tags": ["7", "lamp"]}),
    "SQLite's time": ({"created_at": "2025-01-01 00:00:00"}, {"created_at": NEW_YEAR}),
    "a zone": ({"created_at": "2025-01-01T02:00:00+02:00"}, {"created_at": NEW_YEAR}),
    "a day": ({"created_at": "2025-01-01"}, {"created_at": NEW_YEAR}),
    "milliseconds": ({"created_at": "1735689600000"}, {"created_at": NEW_YEAR}),
    "seconds": ({"created_at": "1735689600"}, {"created_at": NEW_YEAR}),
    "no time": (
        {"created_at": "last winter"},
        {"created_at": "1970-01-01T00:00:00.000Z", "metadata": {"created_at": "last winter"}},
    ),
}


def insert(
    connection: sqlite3.Connection,
    id_: str | None,
    values: dict[str, object],
    *,
    word: str = "INSERT",
) -> None:
    # A search shows equal texts once.
    content = "The lantern needs oil" + f" in {id_}" * (
        id_ not in (None, "5f0c2f9e-8a51-4a8f-9a52-0d8d5d2a6c11")
    )
    row = {"id": id_, "content": content, "created_at": NEW_YEAR, "updated_at": NEW_YEAR, **values}
    marks = ", ".join("?" * len(row))
    connection.execute(f"{word} INTO memories ({', '.join(row)}) VALUES ({marks})", [*row.values()])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "memories.db"
    with lane(file) as connection:
        connection.execute(TABLE)
        for id_, values in ROWS.items():
            insert(connection, id_, values)
    return file


@contextmanager
def lane(file: Path) -> Iterator[sqlite3.Connection]:
    """The older program: plain SQL on its own columns, nothing of ours."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA secure_delete = OFF")  # some builds of SQLite have it on
        yield connection
        connection.commit()


def rows(file: Path) -> dict[str, dict[str, object]]:
    """What the older program reads."""
    with lane(file) as connection:
        found = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM memories")
        return {row[0]: dict(zip(COLUMNS, row, strict=True)) for row in found}


# --- its file, opened by us ---


@pytest.mark.req("LANE-01")
@pytest.mark.parametrize("theirs", [True, False])
def test_the_table_is_the_documents_own_with_our_columns_behind(
    file: Path, tmp_path: Path, theirs: bool
) -> None:
    mine = file if theirs else tmp_path / "ours.db"
    prepare(mine)
    with closing(sqlite3.connect(":memory:")) as fresh:
        fresh.execute(TABLE)
        documented = fresh.execute("PRAGMA table_info(memories)").fetchall()
    with lane(mine) as connection:
        stored = connection.execute("PRAGMA table_info(memories)").fetchall()
    assert stored[: len(COLUMNS)] == documented
    ours = stored[len(COLUMNS) :]
    assert {"agent_id", "status", "revision"} <= {name for _, name, *_ in ours}
    assert {(required, default) for _, _, _, required, default, _ in ours} == {(0, None)}


@pytest.mark.req("LANE-02")
def test_every_row_is_read_and_found_by_its_words(file: Path) -> None:
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        everything = ["active", "superseded"]
        assert {record.id for record in mesh.get_all(status=everything)} == ROWS.keys()
        assert {hit.id for hit in mesh.search("lanterns oil", status=everything)} == ROWS.keys()
        assert {hit.id for hit in mesh.search("lanterns oil")} == ROWS.keys() - {"old-one"}
        assert {hit.id for hit in mesh.search("lantern", filter="project = 'project-x'")} == {
            "elsewhere"
        }
        record = mesh.get("5f0c2f9e-8a51-4a8f-9a52-0d8d5d2a6c11")
        assert record
        assert (record.content, record.tags, record.category) == (
            "The lantern needs oil",
            ["lamp", "oil"],
            "decision",
        )
        assert (record.times_observed, record.created_at, record.metadata["confidence_score"]) == (
            3,
            NEW_YEAR,
            70,
        )
    prepare(file)
    with lane(file) as connection:
        assert list(derived_faults(contents_in(connection))) == []


@pytest.mark.req("LANE-02")
def test_what_it_wrote_stays_as_it_was(file: Path) -> None:
    before = rows(file)
    prepare(file)
    prepare(file)
    after = rows(file)
    assert [[row[name] for name in KEPT] for row in after.values()] == [
        [row[name] for name in KEPT] for row in before.values()
    ]


def test_its_vectors_are_kept_and_compared_with_none_of_another_model(file: Path) -> None:
    with closing(SqliteStore(file)) as store:
        (row,) = store.get(Kind.MEMORY, ["5f0c2f9e-8a51-4a8f-9a52-0d8d5d2a6c11"]).values()
        assert row.vector == Vector("unknown/1024", EMBEDDING)
        assert [hit.id for hit in store.nearest(Kind.MEMORY, row.vector, limit=9)] == [row.id]
        assert store.nearest(Kind.MEMORY, Vector("ours", EMBEDDING), limit=9) == []


@pytest.mark.req("LANE-02")
@pytest.mark.parametrize("odd", ODD)
def test_an_odd_row_opens_and_loses_nothing(file: Path, odd: str) -> None:
    written, wanted = ODD[odd]
    with lane(file) as connection:
        insert(connection, "odd", written)
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        record = mesh.get("odd")
        assert record
        assert {name: getattr(record, name) for name in wanted} == wanted
        assert "odd" in {
            hit.id for hit in mesh.search("lantern", filter="metadata.nothing IS NULL")
        }
        assert mesh.pin("odd").pinned
        assert mesh.update("odd", content="The lantern is full").metadata == record.metadata


def test_a_row_without_a_name_is_no_reason_not_to_open(file: Path) -> None:
    with lane(file) as connection:
        insert(connection, None, {})
    for _ in range(2):
        with MemoryMesh(store=url(file), agent_id="one") as mesh:
            assert {hit.id for hit in mesh.search("lantern")} == ROWS.keys() - {"old-one"}


# --- what we write, read by it ---


@pytest.mark.req("LANE-02", "LANE-03", "MESH-030")
def test_it_reads_what_we_write(file: Path) -> None:
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        notes = {"project": "project-x", "tags": ["wick"], "deep": {"er": [1, None]}}
        first, second = mesh.add("The wick is short", notes).id, mesh.add("The glass is clean").id
        mesh.update(second, content="The glass is broken")
        mesh.update("plain", content="The lantern is lit", metadata={"lit": True})
        mesh.update("elsewhere", content="The lantern is away")
        mesh.erase("old-one")
    stored = rows(file)
    assert stored.keys() == {*ROWS, first, second} - {"old-one"}
    assert {
        id_: row["content"] for id_, row in stored.items() if id_ in (first, second, "plain")
    } == {
        first: "The wick is short",
        second: "The glass is broken",
        "plain": "The lantern is lit",
    }
    assert json.loads(str(stored[first]["metadata"])) == notes
    assert json.loads(str(stored[first]["tags"])) == ["wick"]
    assert json.loads(str(stored["plain"]["metadata"])) == {"lit": True}
    assert {
        id_: row["collection"]
        for id_, row in stored.items()
        if id_ in (first, second, "plain", "elsewhere")
    } == {
        first: "project-x",
        second: "memory-lane",
        "plain": "memory-lane",
        "elsewhere": "project-x",
    }
    assert all(
        row["created_at"] and row["updated_at"] and row["decay_factor"] for row in stored.values()
    )
    assert stored["5f0c2f9e-8a51-4a8f-9a52-0d8d5d2a6c11"]["embedding"] == EMBEDDING


@pytest.mark.req("LANE-03")
def test_it_reads_our_vectors_as_packed_floats(file: Path) -> None:
    with closing(SqliteStore(file)) as store:
        (row,) = store.get(Kind.MEMORY, ["plain"]).values()
        store.apply([replace(row, vector=Vector.of("ours", [0.5, -2.0]), replaces=row.revision)])
    assert rows(file)["plain"]["embedding"] == struct.pack("<2f", 0.5, -2.0)


def test_the_tokens_of_a_vector_go_when_it_changes_the_text_and_stay_when_it_changes_more(
    file: Path,
) -> None:
    vector = Vector.of("ours", [0.5, -2.0], bytes(range(TOKEN_BYTES)))
    with closing(SqliteStore(file)) as store:
        found = store.get(Kind.MEMORY, ["plain", "5f0c2f9e-8a51-4a8f-9a52-0d8d5d2a6c11"]).values()
        store.apply([replace(row, vector=vector, replaces=row.revision) for row in found])
    with lane(file) as connection:
        connection.execute("UPDATE memories SET tags = '[\"new\"]' WHERE id = 'plain'")
        connection.execute("UPDATE memories SET content = 'new' WHERE id LIKE '5f0c%'")
    with closing(SqliteStore(file)) as store:
        tagged, changed = (store.get(Kind.MEMORY, [row.id])[row.id] for row in found)
    assert (tagged.vector, tagged.fields["tags"]) == (vector, ["new"])
    assert changed.vector == Vector("unknown/2", vector.data)


# --- both in turn ---


@pytest.mark.req("LANE-02")
def test_rows_that_it_writes_while_we_are_away_are_taken_up_at_the_next_opening(file: Path) -> None:
    prepare(file)
    with lane(file) as connection:
        insert(connection, "late", {"content": "The chimney smokes"})
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        assert [hit.id for hit in mesh.search("chimney smoke")] == ["late"]
        mesh.update("late", content="The chimney is swept")
    assert rows(file)["late"]["content"] == "The chimney is swept"
    with lane(file) as connection:
        assert list(derived_faults(contents_in(connection))) == []


@pytest.mark.req("LANE-02")
def test_rows_that_it_replaces_or_deletes_while_we_are_away_are_found_as_they_are_then(
    file: Path,
) -> None:
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        mesh.update("plain", metadata={"lit": True})
    with lane(file) as connection:
        insert(connection, "plain", {"content": "The chimney smokes"}, word="INSERT OR REPLACE")
        connection.execute("DELETE FROM memories WHERE id = 'elsewhere'")
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        # Sealed before, and not by Lane.
        assert [(hit.id, hit.sealed) for hit in mesh.search("chimney")] == [("plain", False)]
        assert "plain" not in {hit.id for hit in mesh.search("lantern oil")}
        mesh.update("plain", content="The chimney is swept")
        assert [change.action for change in mesh.history("plain")] == ["add", "update", "update"]
    with lane(file) as connection:
        assert list(derived_faults(contents_in(connection))) == []


def test_what_it_changes_is_in_the_log_that_readers_follow(file: Path) -> None:
    home, own = partition(None, None), partition(None, "one")

    def logged(store: SqliteStore) -> list[set[str] | None]:
        changes = [store.changes(name, mark).keys for name, mark in marks.items()]
        return [None if keys is None else {key.id for key in keys} for keys in changes]

    with closing(SqliteStore(file)) as store:
        store.apply([memory("ours", partition=own)])
        marks = {name: store.changes(name).mark for name in (home, own)}
        assert logged(store) == [set(), set()]
    with lane(file) as connection:
        insert(connection, "ours", {"content": "The chimney smokes"}, word="INSERT OR REPLACE")
        insert(connection, "new", {})
        connection.execute("UPDATE memories SET content = 'The lamp' WHERE id = 'plain'")
        connection.execute("DELETE FROM memories WHERE id = 'elsewhere'")
    with closing(SqliteStore(file)) as store:
        assert logged(store) == [{"ours", "new", "plain", "elsewhere"}, {"ours"}]
        assert store.ids(Kind.MEMORY, Compare("partition", "=", own)) == []
    with lane(file) as connection:
        assert list(derived_faults(contents_in(connection))) == []


@pytest.mark.req("MESH-011")
def test_what_it_left_of_a_memory_in_its_file_goes_with_the_memory(file: Path) -> None:
    with lane(file) as connection:
        insert(connection, "secret", {"content": "Quetzals " * 400})
        connection.commit()
        connection.execute("UPDATE memories SET content = 'Toucans' WHERE id = 'secret'")
    assert b"Quetzals" in bytes_of(file)  # which it does not overwrite
    with MemoryMesh(store=url(file), agent_id="one") as mesh:
        assert mesh.erase("secret").bytes_freed
        assert b"Quetzals" not in bytes_of(file)
        assert b"Toucans" not in bytes_of(file)
