"""Reads create nothing: every read operation of the table, on files that are missing, foreign,
older or read-only."""

import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from memory_mesh.interfaces.operation import Effect, Interface, Operation
from memory_mesh.interfaces.remote import OPERATIONS
from memory_mesh.interfaces.verbs import COMMANDS
from stores.files import FOREIGN, foreign_file, lane_file, older_file, snapshot

READS = [one for one in OPERATIONS if one.effect is Effect.READ and Interface.CLI in one.exposed]
NEED_MORE = {"trace show", "episode-summary"}  # a trace, an episode
OF_THE_STORE = [one for one in READS if one.method and one.name not in NEED_MORE]
MISSING, REFUSED, NO_MEMORY = 7, 11, 4

every_read = pytest.mark.parametrize("operation", READS, ids=lambda one: one.name)
every_read_of_the_store = pytest.mark.parametrize(
    "operation", OF_THE_STORE, ids=lambda one: one.name
)


def words_of(operation: Operation, id_: str = "mem_1760000000000_3fa9c2") -> list[str]:
    """An example of the operation, about this memory, which writes no file of its own."""
    examples = [
        line.partition(" > ")[0]
        for line in COMMANDS[operation.command][0].examples
        if "--out" not in line
    ]
    words = next(
        (line for line in examples if operation.switch in line), f"{examples[0]} {operation.switch}"
    )
    words = re.sub(r"--(store|head) \S+", "", re.sub(r"mem_\w+", id_, words))
    # A backup writes a file, though not in the folder of the store.
    copy = Path.cwd().parent / f"{Path.cwd().name}-copy.db"
    return shlex.split(words.replace("memory-2026-01-31.db", str(copy)))


def run(cli, operation: Operation, *target: str, id_: str = "mem_1760000000000_3fa9c2"):
    return cli(*words_of(operation, id_), *target)


def test_the_table_has_reads_and_a_snapshot_sees_what_a_write_makes(cli, tmp_path: Path) -> None:
    assert {
        "search",
        "list",
        "stats",
        "get",
        "history",
        "lessons",
        "audit verify",
        "audit export",
    } <= {one.name for one in READS}
    before = snapshot(tmp_path)
    assert cli("store", "--content", "Tea at five.", "--store", "sqlite:///typo.db").code == 0
    assert snapshot(tmp_path).keys() > before.keys()


@every_read_of_the_store
def test_a_read_of_a_missing_file_that_must_exist_is_an_error_that_names_it_and_leaves_none(
    cli, tmp_path: Path, operation, monkeypatch
) -> None:
    monkeypatch.setenv("MEMORY_MESH_MUST_EXIST", "yes")
    before = snapshot(tmp_path)
    for place in ("typo.db", "new folder/typo.db"):
        said = run(cli, operation, "--store", f"sqlite:///{tmp_path / place}")
        assert said.code == MISSING, said
        assert str(tmp_path / place) in said.err
        assert "memory-mesh store" in said.err
        assert len(said.err.splitlines()) == 1
    assert snapshot(tmp_path) == before


@every_read
def test_a_read_in_an_empty_home_finds_nothing_and_leaves_nothing(
    cli, tmp_path: Path, home: Path, operation, monkeypatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("MEMORY_MESH_REDACTION", "pseudonym")
    before = snapshot(tmp_path)
    said = run(cli, operation)
    if not operation.handler:
        first = operation.parameters[0].name if operation.parameters else ""
        ids = dict.fromkeys(("id", "memory_id", "trace_id", "episode"), NO_MEMORY)
        # A backup needs a file to copy.
        assert said.code == {**ids, "file": MISSING}.get(first, 0), said
    assert snapshot(tmp_path) == before
    assert not home.exists()


@every_read_of_the_store
@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.sample(16)
def test_a_file_of_another_program_is_refused_and_left_as_it_is(
    cli, tmp_path: Path, operation, kind: str
) -> None:
    file = foreign_file(tmp_path / "other.db", kind)
    before = snapshot(tmp_path)
    said = run(cli, operation, "--store", f"sqlite:///{file}")
    assert said.code == REFUSED, said
    assert str(file) in said.err
    assert snapshot(tmp_path) == before


@every_read_of_the_store
@pytest.mark.parametrize("wal", [False, True], ids=["journal", "wal"])
def test_a_read_leaves_a_file_of_memory_lane_byte_for_byte(
    cli, tmp_path: Path, operation, wal: bool
) -> None:
    file = lane_file(tmp_path / "memories.db", wal=wal)
    before = snapshot(tmp_path)
    said = run(cli, operation, "--store", f"sqlite:///{file}", id_="plain")
    assert said.code == 0, said
    assert snapshot(tmp_path) == before


@every_read_of_the_store
@pytest.mark.parametrize("version", ["0.0-schema-1.sql", "0.1-foundation.db"])
def test_a_read_leaves_a_file_of_an_older_version_byte_for_byte(
    cli, tmp_path: Path, operation, version: str
) -> None:
    file, id_ = older_file(tmp_path / "memory.db", version)
    before = snapshot(tmp_path)
    said = run(
        cli,
        operation,
        "--store",
        f"sqlite:///{file}",
        "--user",
        "ana",
        *(("--agent", "planner") if "agent" in operation.target else ()),
        id_=id_,
    )
    assert said.code == 0, said
    assert snapshot(tmp_path) == before


@every_read_of_the_store
def test_a_store_opened_for_reading_is_left_as_it_is(cli, tmp_path: Path, operation) -> None:
    id_ = cli("store", "--content", "The deploy key rotates.", "--store", "sqlite:///ro.db").id
    before = snapshot(tmp_path)
    said = run(cli, operation, "--store", "sqlite:///ro.db?mode=ro", id_=id_)
    assert said.code == 0, said
    assert snapshot(tmp_path) == before


@every_read_of_the_store
def test_a_read_creates_no_pseudonym_key(cli, tmp_path, home, operation, monkeypatch) -> None:
    id_ = cli("store", "--content", "The deploy key rotates.", "--store", "sqlite:///m.db").id
    monkeypatch.setenv("MEMORY_MESH_REDACTION", "pseudonym")
    assert run(cli, operation, "--store", "sqlite:///m.db", id_=id_).code == 0
    assert {path.name for path in home.iterdir()} == {"audit.key"}
    assert cli("store", "--content", "Ana: +1 202 555 0123", "--store", "sqlite:///m.db").code == 0
    assert (home / "pseudonym.key").exists()


def test_a_memory_lane_file_is_searched_in_place_and_gets_our_tables_with_the_first_write(
    cli, tmp_path: Path
) -> None:
    file = lane_file(tmp_path / "memories.db")
    words = ("--store", f"sqlite:///{file}")
    assert "plain" in cli("search", "lantern", "oil", *words).out
    assert tables(file) == {"memories"}
    assert cli("store", "--content", "The wick is short.", *words).code == 0
    assert tables(file) > {"memories", "mesh_meta", "yamo_blocks"}
    assert "plain" in cli("search", "lantern", "oil", *words).out


def tables(file: Path) -> set[str]:
    with closing(sqlite3.connect(file)) as connection:
        return {
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
