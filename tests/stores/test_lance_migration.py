"""The migration of a LanceDB folder from schema V1 of RFC-0011 to V2, on real tables."""

import json
import shutil
from pathlib import Path
from threading import Event

import lance
import pyarrow as pa
import pytest

import memory_mesh
from memory_mesh.core.errors import (
    Cancelled,
    InvalidInput,
    StoreCorrupt,
    StoreForeign,
    StoreFull,
    StoreMissing,
    StoreTooNew,
    StoreUnavailable,
)
from memory_mesh.core.model.background import cancellable
from memory_mesh.stores.lance import is_schema_v1, is_schema_v2, migration
from memory_mesh.stores.lance.migration import (
    BACKUP,
    is_unfinished,
    migrate,
    migrate_folder,
    remove_expired,
    roll_back,
)
from memory_mesh.stores.lance.schema import memories_v2

from . import v1_tables
from .v1_tables import CREATED, DAMAGED, SOUND, make, read, tree, values

DAY = 86_400_000
NOW = CREATED + 100 * DAY
V1, V2 = v1_tables.SCHEMA.names, memories_v2().names
STEPS = ("begun", "copying", "copied", "compared", "recorded", "renamed", "noted", "finished")


class Died(BaseException):
    """In place of a killed process; the tests of `durability` kill real ones."""


def dies_at(place: str, nth: int = 1):
    left = [nth]

    def step(name: str) -> None:
        left[0] -= name == f"migration.{place}"
        if name == f"migration.{place}" and not left[0]:
            raise Died

    return step


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path / "db")


@pytest.mark.req("MESH-167", "MESH-035")
def test_the_version_of_a_real_table_is_told_by_its_session_id(folder: Path) -> None:
    before = read(folder).schema
    migrate(folder, now=NOW)
    after = read(folder).schema
    assert [is_schema_v1(before), is_schema_v2(before)] == [True, False]
    assert [is_schema_v1(after), is_schema_v2(after)] == [False, True]


@pytest.mark.req("MESH-168")
def test_every_row_is_copied_with_the_new_columns_null_and_the_old_table_is_kept(
    folder: Path,
) -> None:
    make(folder, list(DAMAGED.values()))
    before, bytes_before = values(folder), tree(folder / "memory_entries.lance")
    done = migrate(folder, now=NOW)
    assert read(folder).schema.names == V2
    assert values(folder) == [row | dict.fromkeys(V2[len(V1) :]) for row in before]
    assert tree(folder / f"{BACKUP}.lance") == bytes_before
    assert (done.action, done.rows, done.backup) == ("migrate", len(SOUND) + len(DAMAGED), BACKUP)


def test_damaged_rows_are_reported_with_their_ids_and_reasons(folder: Path) -> None:
    make(folder, list(DAMAGED.values()))
    found = migrate(folder, now=NOW).damaged
    expected = [
        (at, row["id"], why) for at, (why, row) in enumerate(DAMAGED.items(), len(SOUND) + 1)
    ]
    assert [(one.row, one.id, one.reason) for one in found] == expected


@pytest.mark.req("MESH-167")
def test_migrating_twice_changes_nothing(folder: Path) -> None:
    migrate(folder, now=NOW)
    before = tree(folder)
    again = migrate(folder, now=NOW + DAY)
    assert (again.action, again.rows, again.backup_until) == ("none", 3, "2026-05-11T00:00:00.000Z")
    assert tree(folder) == before


def test_a_dry_run_changes_no_byte_and_reports_the_same(folder: Path) -> None:
    make(folder, list(DAMAGED.values()))
    before = tree(folder)
    planned = migrate(folder, now=NOW, dry_run=True)
    assert tree(folder) == before
    done = migrate(folder, now=NOW)
    assert tree(folder) != before
    assert planned.dry_run
    assert (planned.action, planned.damaged, planned.backup_until) == (
        done.action,
        done.damaged,
        done.backup_until,
    )


@pytest.mark.req("MESH-169")
def test_a_rollback_restores_the_v1_table_and_keeps_the_other(folder: Path) -> None:
    before = tree(folder)
    migrate(folder, now=NOW)
    later = pa.Table.from_pylist([SOUND[0] | {"id": "later"}], read(folder).schema)
    lance.write_dataset(later, folder / "memory_entries.lance", mode="append")
    migrated = tree(folder)
    planned = roll_back(folder, now=NOW + DAY, dry_run=True)
    assert tree(folder) == migrated
    done = roll_back(folder, now=NOW + DAY)
    assert planned.left_behind == done.left_behind == 1
    assert {
        name: data for name, data in tree(folder).items() if name.startswith("memory_entries.lance")
    } == before
    assert (folder / f"{done.backup}.lance").exists()
    assert "later" in read(folder, str(done.backup))["id"].to_pylist()
    assert migrate(folder, now=NOW + 2 * DAY).action == "migrate"


@pytest.mark.req("MESH-169")
@pytest.mark.parametrize(
    "run", [remove_expired, lambda folder, now: migrate(folder, now=now).removed]
)
def test_what_was_put_aside_is_removed_after_30_days(folder: Path, run) -> None:
    migrate(folder, now=NOW)
    assert run(folder, NOW + 30 * DAY - 1) == ()
    assert read(folder, BACKUP).num_rows == 3
    assert run(folder, NOW + 30 * DAY) == (BACKUP,)
    assert not (folder / f"{BACKUP}.lance").exists()
    with pytest.raises(StoreMissing, match="30 days"):
        roll_back(folder, now=NOW + 31 * DAY)
    assert read(folder).num_rows == 3


@pytest.mark.req("MESH-168")
@pytest.mark.parametrize("place", STEPS)
def test_a_migration_that_was_cut_short_is_finished_or_begun_again(
    folder: Path, place: str
) -> None:
    make(folder, list(DAMAGED.values()))
    before = values(folder)
    with pytest.raises(Died):
        migrate(folder, now=NOW, step=dies_at(place))
    assert is_unfinished(folder) == (place in ("recorded", "renamed", "noted"))
    again = migrate(folder, now=NOW + DAY)
    assert (again.action, again.rows) == ("none" if place == "finished" else "migrate", len(before))
    assert [{name: row[name] for name in V1} for row in values(folder)] == before
    assert values(folder, BACKUP) == before
    assert migrate(folder, now=NOW).action == "none"


@pytest.mark.parametrize("run", [migrate, roll_back])
@pytest.mark.parametrize(
    ("place", "nth"), [("recorded", 1), ("renamed", 1), ("renamed", 2), ("noted", 1)]
)
def test_a_rollback_that_was_cut_short_is_finished(folder: Path, place: str, nth: int, run) -> None:
    before = tree(folder)
    migrate(folder, now=NOW)
    with pytest.raises(Died):
        roll_back(folder, now=NOW, step=dies_at(place, nth))
    assert run(folder, now=NOW).action == "roll back"
    assert {
        name: data for name, data in tree(folder).items() if name.startswith("memory_entries.lance")
    } == before
    assert not is_unfinished(folder)


def test_a_dry_run_says_that_a_migration_was_interrupted(folder: Path) -> None:
    with pytest.raises(Died):
        migrate(folder, now=NOW, step=dies_at("renamed"))
    before = tree(folder)
    with pytest.raises(StoreUnavailable, match="interrupted"):
        migrate(folder, now=NOW, dry_run=True)
    assert tree(folder) == before


def test_a_cancelled_migration_leaves_the_folder_as_it_was(folder: Path) -> None:
    before, stop = tree(folder), Event()
    with cancellable(stop), pytest.raises(Cancelled):
        migrate(folder, now=NOW, progress=lambda what, done, of: stop.set())
    assert tree(folder) == before


def test_a_row_that_another_program_adds_meanwhile_is_not_lost(folder: Path) -> None:
    def step(name: str) -> None:
        if name == "migration.copied":
            make(folder, [SOUND[0] | {"id": "late"}])

    with pytest.raises(StoreUnavailable, match="another program wrote"):
        migrate(folder, now=NOW, step=step)
    migrate(folder, now=NOW)
    assert "late" in read(folder)["id"].to_pylist()


@pytest.mark.req("MESH-168")
@pytest.mark.parametrize("column", ["content", "vector", "created_at", "agent_id"])
def test_a_copy_that_differs_in_one_value_is_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    real = lance.write_dataset
    # More than are read at once, in two fragments.
    make(folder, [SOUND[0] | {"id": str(number)} for number in range(1500)])
    before = tree(folder)

    def write(reader, path):
        rows = reader.read_all().to_pylist()
        rows[1100][column] = {"vector": [1.0, 0.0, -0.0, -0.5], "created_at": CREATED + 1}.get(
            column, "x"
        )
        return real(pa.Table.from_pylist(rows, reader.schema), path)

    monkeypatch.setattr(migration.lance, "write_dataset", write)
    with pytest.raises(StoreCorrupt, match="differs from row 1025"):
        migrate(folder, now=NOW)
    assert tree(folder) == before
    monkeypatch.undo()
    assert migrate(folder, now=NOW).rows == 1503


def test_a_copy_that_lacks_a_row_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = lance.write_dataset
    monkeypatch.setattr(
        migration.lance,
        "write_dataset",
        lambda reader, path: real(reader.read_all().slice(0, 2), path),
    )
    with pytest.raises(StoreCorrupt, match="differs"):
        migrate(folder, now=NOW)
    assert is_schema_v1(read(folder).schema)


def test_too_little_space_is_an_error_before_anything_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tree(folder)
    monkeypatch.setattr(
        migration.shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1)
    )
    for run in (migrate, migrate_folder):
        with pytest.raises(StoreFull, match="nothing was changed"):
            run(folder, now=NOW)
        assert tree(folder) == before


@pytest.mark.req("MESH-168")
def test_a_run_that_is_refused_leaves_no_lock_behind(folder: Path) -> None:
    shutil.copytree(folder / "memory_entries.lance", folder / f"{BACKUP}.lance")
    with pytest.raises(StoreForeign, match=BACKUP):
        migrate_folder(folder, now=NOW)
    shutil.rmtree(folder / f"{BACKUP}.lance")
    with pytest.raises(StoreMissing, match=BACKUP):
        migrate_folder(folder, rollback=True, now=NOW)
    assert not (folder / "memory_mesh").exists()
    migrate_folder(folder, now=NOW)
    assert (folder / "memory_mesh" / "lock").exists()


def test_other_types_of_the_same_values_become_those_of_the_document(tmp_path: Path) -> None:
    types = {
        "id": pa.large_utf8(),
        "created_at": pa.timestamp("us", tz="UTC"),
        "updated_at": pa.timestamp("ms", tz="UTC"),
    }
    schema = pa.schema(
        [pa.field(field.name, types.get(field.name, field.type)) for field in v1_tables.SCHEMA]
    )
    rows = [row | {"created_at": row["created_at"] * 1000} for row in SOUND]
    schema = schema.append(pa.field("rating", pa.int8()))
    folder = make(tmp_path / "db", [row | {"rating": 5} for row in rows], schema=schema)
    migrate(folder, now=NOW)
    assert read(folder).schema.names == [*V2, "rating"]
    assert read(folder).schema.field("created_at").type == pa.timestamp("ms")
    assert [{name: row[name] for name in V1} for row in values(folder)] == values(
        make(tmp_path / "plain")
    )
    assert read(folder)["rating"].to_pylist() == [5, 5, 5]


def test_tables_of_other_programs_are_refused_and_left_alone(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing, match="no table memory_entries"):
        migrate(tmp_path, now=NOW)
    for name, schema in {
        "few": pa.schema([pa.field("id", pa.utf8())]),
        "no vectors": pa.schema([pa.field(field.name, pa.utf8()) for field in v1_tables.SCHEMA]),
        "finer times": v1_tables.SCHEMA.set(4, pa.field("created_at", pa.timestamp("ns"))),
    }.items():
        row = {
            field.name: CREATED if pa.types.is_timestamp(field.type) else None for field in schema
        }
        folder = make(tmp_path / name, [row], schema=schema)
        before = tree(folder)
        with pytest.raises(StoreForeign):
            migrate_folder(folder, now=NOW)
        assert tree(folder) == before


def test_a_second_v1_table_does_not_replace_the_backup_of_the_first(folder: Path) -> None:
    migrate(folder, now=NOW)
    shutil.rmtree(folder / "memory_entries.lance")
    make(folder)
    with pytest.raises(StoreForeign, match=BACKUP):
        migrate(folder, now=NOW)
    assert read(folder, BACKUP).num_rows == 3


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"version": 2, "renames": [], "kept": {}}', StoreTooNew),
        ('{"version": 1', StoreCorrupt),
        ("[]", StoreCorrupt),
        (
            '{"version": 1, "renames": [["memory_entries", "../elsewhere"]], "kept": {}}',
            StoreCorrupt,
        ),
        ('{"version": 1, "renames": [], "kept": {"memory_entries": 0}}', StoreCorrupt),
        ('{"version": 1, "renames": [], "kept": {"../../home": 0}}', StoreCorrupt),
    ],
)
def test_a_record_that_is_newer_or_tampered_with_is_refused(
    folder: Path, text: str, error: type[Exception]
) -> None:
    (folder / "memory_entries_migration.json").write_text(text)
    before = tree(folder)
    for run in (migrate, roll_back):
        with pytest.raises(error):
            run(folder, now=NOW)
    assert tree(folder) == before


@pytest.mark.deep
@pytest.mark.req("MESH-168")
def test_lancedb_reads_the_migrated_table_with_the_columns_of_v1_alone(tmp_path: Path) -> None:
    import lancedb

    db = lancedb.connect(tmp_path)
    db.create_table("memory_entries", pa.Table.from_pylist(SOUND, v1_tables.SCHEMA))
    migrate(tmp_path, now=NOW)
    found = (
        db.open_table("memory_entries")
        .search([1.0, 2.0, 0.0, -0.5])
        .select(["id", "content", "metadata"])
        .limit(1)
        .to_list()
    )
    assert (found[0]["id"], found[0]["content"]) == (SOUND[2]["id"], SOUND[2]["content"])
    assert json.loads(found[0]["metadata"]) == json.loads(SOUND[2]["metadata"])
    assert sorted(db.list_tables().tables) == ["memory_entries", BACKUP]


@pytest.mark.parametrize(
    ("store", "error"),
    [
        (5, InvalidInput),
        (["a"], InvalidInput),
        ("lancedb:///\ud800", InvalidInput),
        ("lancedb:///" + "y" * 300, StoreUnavailable),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_store_that_cannot_be_a_folder_is_an_error_of_ours(
    store: object, error: type[Exception], dry_run: bool
) -> None:
    with pytest.raises(error):
        memory_mesh.migrate(store, dry_run=dry_run)  # type: ignore[arg-type]
