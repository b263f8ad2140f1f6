"""A Memory Lane database that its own program has open and writes to, while we search it and
store in it."""

import json
import logging
import sqlite3
from array import array
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.audit import Broken, Sound
from memory_mesh.core.errors import Conflict, StoreError
from memory_mesh.core.model import Key, Kind, partition
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores.sqlite import SqliteStore, store

from .children import Child, url
from .sound import contents_in, derived_faults
from .test_lane import COLUMNS, NEW_YEAR, TABLE

KEYS = {
    "lane_version", "memory_type", "entity_slugs", "entities", "confidence_score", "decay_factor",
    "feedback_score", "feedback_count", "valid_from", "valid_until", "supersedes", "superseded_by",
    "times_observed", "first_observed_at", "last_observed_at", "access_count", "last_accessed_at",
}  # fmt: skip


@pytest.fixture
def program(tmp_path: Path) -> Iterator["Program"]:
    with closing(Program(tmp_path / "memories.db")) as program:
        yield program


class Program:
    """The original program: plain SQL on the columns of the document."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.sql = sqlite3.connect(file, isolation_level=None)
        self.sql.execute(TABLE)

    def insert(self, id_: str, content: str, word: str = "INSERT", **metadata: object) -> None:
        described = json.dumps({"lane_version": "4.1.0", "memory_type": "decision", **metadata})
        columns = "id, content, metadata, embedding, created_at, updated_at"
        vector = array("f", [0.5] * 1024).tobytes()
        self.sql.execute(
            f"{word} INTO memories ({columns}) VALUES (?, ?, ?, ?, ?, ?)",
            (id_, content, described, vector, NEW_YEAR, NEW_YEAR),
        )

    def row(self, id_: str) -> dict[str, object]:
        values = self.sql.execute(
            f"SELECT {', '.join(COLUMNS)} FROM memories WHERE id = ?", (id_,)
        ).fetchone()
        return dict(zip(COLUMNS, values, strict=True))

    def metadata(self, id_: str) -> dict[str, object]:
        return dict(json.loads(str(self.row(id_)["metadata"])))

    def describe(self, id_: str, **changes: object) -> None:
        changed = json.dumps({**self.metadata(id_), **changes})
        self.sql.execute(
            "UPDATE memories SET metadata = ?, updated_at = ? WHERE id = ?",
            (changed, NEW_YEAR, id_),
        )

    def close(self) -> None:
        self.sql.close()


def opened(program: Program, mode: str = "") -> MemoryMesh:
    return MemoryMesh(store=url(program.file) + mode, embedder=HashingEmbedder(), agent_id="ann")


def found(mesh: MemoryMesh, query: str, **options: bool) -> set[str]:
    return {result.id for result in mesh.lane.find(query, **options)}  # type: ignore[arg-type]


@pytest.mark.req("LANE-02")
@pytest.mark.parametrize("ours_first", [True, False])
def test_what_it_writes_while_we_have_the_file_open_is_found_at_once(
    program: Program, ours_first: bool
) -> None:
    with opened(program) as mesh:
        if ours_first:
            mesh.lane.store("The kettle is new", memory_type="insight")
        assert found(mesh, "lantern oil") == set()
        program.insert("one", "The lantern needs oil")
        assert found(mesh, "lantern oil") == {"one"}
        program.insert("two", "The lantern has a wick")
        assert mesh.get("two")
        assert found(mesh, "lantern") == {"one", "two"}
        program.sql.execute("UPDATE memories SET content = 'The stove needs coal' WHERE id = 'one'")
        assert (found(mesh, "lantern"), found(mesh, "stove coal")) == ({"two"}, {"one"})
        program.insert("two", "The chimney smokes", word="INSERT OR REPLACE")
        assert (found(mesh, "lantern"), found(mesh, "chimney")) == (set(), {"two"})
        program.sql.execute("UPDATE memories SET superseded_by = 'two' WHERE id = 'one'")
        assert found(mesh, "stove") == set()
        assert found(mesh, "stove", include_superseded=True) == {"one"}
        assert mesh.search("chimney smokes")
        program.sql.execute("DELETE FROM memories WHERE id = 'two'")
        assert (found(mesh, "chimney"), mesh.search("chimney smokes"), mesh.get("two")) == (
            set(),
            [],
            None,
        )
    if ours_first:  # otherwise the file is as it was: nothing of ours was written
        assert list(derived_faults(contents_in(program.sql))) == []


@pytest.mark.req("LANE-02")
def test_what_its_metadata_say_counts(program: Program) -> None:
    now = datetime.now(UTC)
    program.insert(
        "good",
        "The lamp is on the left shelf",
        feedback_score=1.5,
        feedback_count=4,
        entity_slugs=["project:atlas"],
    )
    program.insert(
        "plain", "The lamp is on the right shelf", memory_type="gap", confidence_score=40
    )
    program.insert("past", "The lamp is on the top shelf", valid_until="2025-06-01T00:00:00Z")
    program.insert(
        "future", "The lamp is on the other shelf", valid_from=(now + timedelta(days=3)).isoformat()
    )
    program.insert("gone", "The lamp is on the old shelf", superseded_by="good")
    recent = (now - timedelta(days=2)).isoformat()
    program.insert(
        "used", "The lamp is on the middle shelf", access_count=7, last_accessed_at=recent
    )
    with opened(program) as mesh:
        results = {result.id: result for result in mesh.lane.find("lamp shelf")}
        assert results.keys() == {"good", "plain", "used"}
        assert [results[id_].parts.feedback_score for id_ in ("good", "plain")] == [1.5, 1.0]
        assert [results[id_].parts.decay_factor for id_ in ("good", "used")] == [0.4, 1.0]
        assert (
            results["used"].metadata["access_count"],
            results["good"].metadata["feedback_count"],
        ) == (7, 4)
        assert (results["plain"].metadata["confidence_score"], results["plain"].parts.weight) == (
            40,
            0.4,
        )
        assert [result.id for result in mesh.lane.find("lamp shelf", entities=["atlas"])] == [
            "good"
        ]
        # Observed again
        assert mesh.lane.store("The lamp is on the right shelf", memory_type="gap").id == "plain"
        mesh.lane.feedback("used", "helpful")
        assert program.metadata("used")["access_count"] == 7
        program.describe(
            "used", feedback_score=0.5, access_count=9, last_accessed_at=now.isoformat()
        )
        (used,) = (result for result in mesh.lane.find("middle shelf") if result.id == "used")
        # One of them is ours.
        assert (used.parts.feedback_score, used.metadata["access_count"]) == (0.5, 10)


@pytest.mark.req("LANE-02", "LANE-05", "LANE-15")
def test_it_reads_what_the_lane_writes(program: Program) -> None:
    program.insert("old", "The port is 5432", entity_slugs=["project:atlas"])
    with opened(program) as mesh:
        new = mesh.lane.store(
            "The port is 5433",
            memory_type="correction",
            tags=["db"],
            collection="ops",
            supersedes=["old"],
        ).id
        mesh.lane.feedback(new, "helpful")
        wait = mesh.lane.store("Deploys wait for the tests", memory_type="commitment").id
    row, metadata = program.row(new), program.metadata(new)
    assert metadata.keys() >= KEYS
    assert [metadata[name] for name in (
        "memory_type", "feedback_score", "feedback_count", "supersedes", "tags",
    )] == [
        "correction", 1.1, 1, ["old"], ["db"],
    ]  # fmt: skip
    assert (row["collection"], json.loads(str(row["tags"])), program.row(wait)["collection"]) == (
        "ops",
        ["db"],
        "memory-lane",
    )
    assert (program.row("old")["superseded_by"], program.metadata("old")["superseded_by"]) == (
        new,
        new,
    )
    for id_ in ("old", new):
        assert "port" in json.loads(str(program.row(id_)["keywords"]))
        assert json.loads(str(program.row(id_)["auto_tags"] or "[]")) == []


@pytest.mark.req("LANE-02")
def test_its_changes_to_what_we_stored_count_and_verify_reports_them(program: Program) -> None:
    with opened(program) as mesh:
        rated = mesh.lane.store("The lantern needs oil", memory_type="decision").id
        gone = mesh.lane.store("The lantern hangs in the hall", memory_type="decision").id
        edited = mesh.lane.store("The lantern is made of brass", memory_type="decision").id
        assert found(mesh, "lantern") == {rated, gone, edited}
        assert {type(verdict) for verdict in mesh.verify()} == {Sound}
        program.describe(rated, feedback_score=2.5)
        program.sql.execute("UPDATE memories SET superseded_by = ? WHERE id = ?", (rated, gone))
        program.sql.execute(
            "UPDATE memories SET content = 'The lantern is tin' WHERE id = ?", (edited,)
        )
        assert [
            (result.id, result.parts.feedback_score) for result in mesh.lane.find("lantern")
        ] == [(rated, 2.5)]
        assert {type(verdict) for verdict in mesh.verify()} == {Broken}


@pytest.mark.req("LANE-02")
def test_a_write_of_ours_never_overwrites_one_of_its_own_that_we_have_not_read(
    program: Program,
) -> None:
    program.insert("one", "The lantern needs oil")
    with closing(SqliteStore(program.file)) as mine:
        mine.prepare()
        row = mine.get(Kind.MEMORY, ["one"])["one"]
        version = mine.version(row.partition)
        program.sql.execute("UPDATE memories SET content = 'The lantern is full' WHERE id = 'one'")
        with pytest.raises(Conflict):
            mine.apply([replace(row, revision=2, replaces=1)], seen={row.partition: version})
        assert mine.get(Kind.MEMORY, ["one"])["one"].fields["content"] == "The lantern is full"
    assert program.row("one")["content"] == "The lantern is full"


@pytest.mark.req("LANE-02")
def test_a_row_that_it_has_replaced_just_now_can_be_deleted(program: Program) -> None:
    program.insert("one", "The lantern needs oil")
    with closing(SqliteStore(program.file)) as mine:
        mine.prepare()
        mark = mine.changes(partition(None, None)).mark
        program.insert("one", "The chimney smokes", word="INSERT OR REPLACE")
        try:
            mine.apply(deletes=[Key(Kind.MEMORY, "one")])
        except StoreError as error:
            pytest.fail(str(error))
        assert {key.id for key in mine.changes(partition(None, None), mark).keys or ()} == {"one"}
    assert program.sql.execute("SELECT count(*) FROM memories").fetchone() == (0,)


@pytest.mark.req("LANE-02")
def test_its_rows_are_found_while_it_writes_more_and_by_a_reader_that_may_not_write(
    program: Program,
) -> None:
    with opened(program) as mesh:
        mesh.lane.store("The kettle is new", memory_type="insight")
        program.insert("one", "The lantern needs oil")
        program.sql.execute("BEGIN IMMEDIATE")
        program.insert("two", "The lantern has a wick")
        assert found(mesh, "lantern") == {"one"}
        program.sql.execute("COMMIT")
        assert found(mesh, "lantern") == {"one", "two"}
    with opened(program, "?mode=ro") as reader:
        assert found(reader, "lantern") == {"one", "two"}
        program.insert("three", "The lantern is lit")
        assert found(reader, "lantern") == {"one", "two", "three"}
    assert program.sql.execute("SELECT partition FROM memories WHERE id = 'three'").fetchone() == (
        None,
    )


def test_lists_show_its_rows(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_LOOKED_FOR", 0)
    with opened(program) as mesh:
        mesh.add("The kettle is new")
        program.insert("one", "The lantern needs oil")
        assert "one" in {record.id for record in mesh.get_all()}


@pytest.mark.req("LANE-04")
def test_vectors_of_another_model_are_not_compared_and_one_warning_says_so(
    program: Program, caplog: pytest.LogCaptureFixture
) -> None:
    program.insert("one", "The lantern needs oil")
    program.insert("far", "A text about nothing")
    with caplog.at_level(logging.WARNING), opened(program) as mesh:
        for _ in range(2):
            # Both words
            assert [result.parts.similarity for result in mesh.lane.find("lantern oil")] == [1.0]
            (warning,) = [record.getMessage() for record in caplog.records] or [""]
            assert f"has a vector of {HashingEmbedder().model}, but one of unknown/1024" in warning
            assert "run memory-mesh reembed" in warning
            assert mesh.search("lantern oil")[0].similarity is None
        mesh.reembed()
        assert mesh.lane.find("lantern oil")[0].parts.similarity < 1.0


@pytest.mark.deep
@pytest.mark.req("LANE-02")
def test_two_processes_one_of_them_the_original_program_lose_nothing(program: Program) -> None:
    """It inserts, changes, supersedes and deletes rows; we search and store. At the end both
    have written all that they said."""
    count = 200
    with ExitStack() as stack, opened(program) as mesh:
        mesh.lane.store("The kettle is new", memory_type="insight")
        child = stack.enter_context(Child("lane_program", file=str(program.file), count=count))
        assert child.hear() == "ready"
        child.tell()
        stored, seen = {}, set[str]()
        for number in range(count // 2):
            text = f"Our note {number} on harbour{number}"
            stored[mesh.lane.store(text, memory_type="learning").id] = text
            seen |= found(mesh, "theirs lantern", include_superseded=True)
        said = child.rest()
        (expected,) = [each for each in said if isinstance(each, dict)]
        assert child.end() == 0
        assert seen  # searches ran while it wrote
        rows = {
            id_: (content, by)
            for id_, content, by in program.sql.execute(
                "SELECT id, content, superseded_by FROM memories"
            )
        }
        assert {id_: rows[id_] for id_ in expected} == {
            id_: tuple(row) for id_, row in expected.items()
        }
        assert {id_: rows.get(id_, ("",))[0] for id_ in stored} == stored
        assert len(rows) == 1 + len(stored) + len(expected)
        for id_, (content, by) in expected.items():
            word = content.split()[-1]
            assert (id_ in found(mesh, word)) == (by is None), content
        assert {type(verdict) for verdict in mesh.verify()} == {Sound}
    assert list(derived_faults(contents_in(program.sql))) == []
