"""Folders of other programs and migrated folders, opened as a store: nothing is lost, and
reading changes nothing."""

import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from memory_mesh import MemoryMesh, Sound, StoreTooOld, StoreUnavailable, migrate
from memory_mesh.core.model import Kind
from memory_mesh.stores.lance import LanceStore
from memory_mesh.stores.lance.migration import BACKUP, migrate_folder
from memory_mesh.stores.lance.schema import memories_v2
from memory_mesh.testing.rows import memory

from .test_lance_migration import NOW, Died, dies_at
from .v1_tables import DAMAGED, SCHEMA, SOUND, make, read, tree

V2 = pa.schema([field.with_nullable(True) for field in memories_v2(4)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path / "db")


def opened(folder: Path, **scope: str) -> MemoryMesh:
    return MemoryMesh(f"lancedb:///{folder}", embedder="hash", **scope)


@pytest.mark.parametrize("write", [False, True])
def test_a_folder_with_schema_v1_is_refused_with_the_command_to_run(
    folder: Path, write: bool
) -> None:
    before = tree(folder)
    with pytest.raises(StoreTooOld, match="memory-mesh migrate"), opened(folder) as mesh:
        mesh.add("A new memory.") if write else mesh.search("gulls")
    assert tree(folder) == before


def test_a_migrated_folder_is_searched_changed_and_verified(folder: Path) -> None:
    make(folder, list(DAMAGED.values()))
    migrate(folder)
    with opened(folder, session_id="s1") as mesh:
        found = mesh.search("lighthouse keeper gulls", limit=20)
        assert SOUND[0]["content"] in [hit.content for hit in found]
        assert mesh.search("another text")[0].metadata["original_id"] == SOUND[0]["id"]
        assert mesh.get(SOUND[1]["id"]).session_id == "s1"
        assert mesh.get(SOUND[2]["id"]).memory_type == "lesson"
        mesh.update(SOUND[0]["id"], content="The lighthouse keeper counts puffins.")
        mesh.add("A memory of ours.")
        assert {type(verdict) for verdict in mesh.verify()} == {Sound}
    with opened(folder) as mesh:
        assert mesh.get(SOUND[0]["id"]).content == "The lighthouse keeper counts puffins."
        assert mesh.get(SOUND[1]["id"]) is None  # of a session
        assert {type(verdict) for verdict in mesh.verify()} == {Sound}
    table = read(folder)
    assert table.num_rows == len(SOUND) + len(DAMAGED) + 1
    assert table["partition"].null_count == 1  # the row without an id stays in the table


def test_reading_changes_nothing_and_a_write_makes_the_rows_ours(folder: Path) -> None:
    migrate(folder)
    before = tree(folder)
    with closing(LanceStore(folder)) as store:
        ids = store.ids(Kind.MEMORY)
        seen = store.get(Kind.MEMORY, ids)
    assert tree(folder) == before
    assert sorted(ids) == [row["id"] for row in SOUND]
    with opened(folder) as mesh:
        mesh.add("A memory of ours.")
    with closing(LanceStore(folder)) as store:
        assert store.get(Kind.MEMORY, ids) == seen
    promoted = {row["id"]: row["session_id"] for row in read(folder).to_pylist()}
    assert promoted[SOUND[1]["id"]] == "s1"


def test_rows_that_another_program_adds_later_are_found(folder: Path) -> None:
    migrate(folder)
    with opened(folder) as mesh:
        mesh.add("A memory of ours.")
    new = SOUND[0] | {"id": "late", "content": "A heron came late."}
    columns = {name: [new.get(name)] for name in read(folder).schema.names}
    lance.write_dataset(
        pa.table(columns, read(folder).schema), folder / "memory_entries.lance", mode="append"
    )
    before = tree(folder / "memory_entries.lance")
    with closing(LanceStore(folder)) as store:
        assert store.get(Kind.MEMORY, ["late"])
    assert tree(folder / "memory_entries.lance") == before
    with opened(folder) as mesh:
        assert mesh.search("heron")[0].id == "late"
        mesh.add("Another memory of ours.")
        assert mesh.search("heron")[0].id == "late"
    assert read(folder)["partition"].null_count == 0


def test_a_row_that_another_program_adds_during_a_write_is_not_lost(folder: Path) -> None:
    late: list[str] = []

    def step(name: str) -> None:
        if name == "flush.begun" and not late:
            late.append(name)
            make(folder, [SOUND[0] | {"id": "late"}], schema=V2)

    migrate(folder)
    with MemoryMesh(f"lancedb:///{folder}", embedder="none", step=step) as mesh:
        mesh.add("A memory of ours.")
    with opened(folder) as mesh:
        assert late
        assert mesh.get("late")


def test_a_row_with_the_id_of_one_of_ours_gets_another_and_both_are_kept(folder: Path) -> None:
    migrate(folder)
    with opened(folder) as mesh:
        mesh.pin(SOUND[0]["id"])
    make(folder, [SOUND[0] | {"content": "Another text."}], schema=V2)
    for _ in range(2):
        with opened(folder) as mesh:
            mesh.add("A memory of ours.")
            assert sorted(memory.content for memory in mesh.get_all(limit=9)) == sorted(
                ["A memory of ours.", "Another text.", SOUND[0]["content"], SOUND[2]["content"]]
            )
            assert mesh.get(SOUND[0]["id"]).pinned


def test_a_search_among_vectors_of_an_unknown_model_names_reembed_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    migrate(folder)
    with opened(folder) as mesh:
        assert mesh.search("gulls")[0].similarity is None
        mesh.search("harbour")
        assert [line for line in caplog.messages if "reembed" in line] == [
            (
                "no memory has a vector of hashing/256, but one of unknown/4: searched by keywords "
                "only; run memory-mesh reembed"
            )
        ]
        caplog.clear()
        mesh.reembed()
        assert mesh.search("gulls")[0].similarity
        assert "reembed" not in caplog.text


@pytest.mark.req("MESH-170")
def test_a_reader_of_v1_reads_what_is_stored_in_a_migrated_folder(folder: Path) -> None:
    migrate(folder)
    with opened(folder) as mesh:
        new = mesh.add("A memory of ours.", {"type": "event"})
    table = lance.dataset(folder / "memory_entries.lance").to_table(columns=SCHEMA.names)
    assert table.schema.types == SCHEMA.types
    rows = {row["id"]: row for row in table.to_pylist()}
    assert {id_: row["content"] for id_, row in rows.items()} == {
        **{row["id"]: row["content"] for row in SOUND}, new.id: "A memory of ours.",
    }  # fmt: skip
    assert json.loads(rows[new.id]["metadata"]) == {"type": "event"}
    assert rows[new.id]["created_at"].isoformat(timespec="milliseconds") + "Z" == new.created_at


def test_a_table_of_v2_without_our_columns_opens(tmp_path: Path) -> None:
    columns = {
        "memory_type": "agent",
        "agent_id": "pilot",
        "access_count": 2,
        "last_accessed": SOUND[0]["created_at"],
    }
    make(tmp_path / "db", [SOUND[0] | columns], schema=V2)
    with opened(tmp_path / "db", agent_id="pilot") as mesh:
        memory = mesh.get(SOUND[0]["id"])
        assert (memory.memory_type, memory.access_count) == ("agent", 2)
        mesh.pin(memory.id)
    with opened(tmp_path / "db", agent_id="other") as mesh:
        assert mesh.search("gulls") == []


@pytest.mark.req("MESH-011")
def test_an_erased_memory_is_gone_from_the_backup_too(folder: Path) -> None:
    migrate(folder)
    with opened(folder) as mesh:
        mesh.erase(SOUND[0]["id"])
    assert SOUND[0]["id"] not in read(folder, BACKUP)["id"].to_pylist()
    assert read(folder, BACKUP).num_rows == 2
    with opened(folder) as mesh:
        mesh.compact()
    files = b"".join(tree(folder).values())
    assert b"counts gulls" not in files
    assert b"about the harbour" in files


@pytest.mark.req("MESH-169")
def test_the_heartbeat_removes_the_backup_after_30_days(folder: Path) -> None:
    migrate(folder)
    record = folder / "memory_entries_migration.json"
    for days, there in ((29, True), (31, False)):
        since = int(datetime.now(UTC).timestamp() * 1000) - days * 86_400_000
        record.write_text(json.dumps({"version": 1, "renames": [], "kept": {BACKUP: since}}))
        with opened(folder) as mesh:
            mesh.heartbeat(force=True, jobs=["compaction"])
        assert (folder / f"{BACKUP}.lance").exists() == there


def test_an_interrupted_migration_is_named_when_the_folder_is_opened(folder: Path) -> None:
    with pytest.raises(Died):
        migrate_folder(folder, now=NOW, step=dies_at("renamed"))
    for mode in ("", "?mode=ro"):
        with (
            pytest.raises(StoreUnavailable, match="memory-mesh migrate"),
            MemoryMesh(f"lancedb:///{folder}{mode}") as mesh,
        ):
            mesh.search("gulls")
    migrate(folder)
    with opened(folder) as mesh:
        assert mesh.search("gulls")


def test_a_rollback_keeps_what_a_killed_process_left_in_the_journal(folder: Path) -> None:
    migrate(folder)
    store = LanceStore(folder)  # never closed
    store.apply([memory("ours")])
    assert "ours" not in read(folder)["id"].to_pylist()
    done = migrate(folder, rollback=True)
    assert done.left_behind == 1
    assert "ours" in read(folder, str(done.backup))["id"].to_pylist()


def test_a_process_that_has_the_store_open_notices_a_rollback_and_a_new_migration(
    folder: Path,
) -> None:
    migrate(folder)
    with opened(folder) as mesh:
        ours = mesh.add("A memory of ours.")
        mesh.search("gulls")
    mesh = opened(folder)
    assert mesh.search("memory of ours")
    migrate(folder, rollback=True)
    with pytest.raises(StoreTooOld):
        mesh.search("gulls")
    with pytest.raises(StoreTooOld):
        mesh.add("This is not lost silently.")
    migrate(folder)
    assert mesh.search("gulls")[0].content == SOUND[0]["content"]
    assert mesh.get(ours.id) is None
    assert mesh.search("memory of ours") == []
    mesh.add("A memory of ours.")
    assert mesh.search("memory of ours")
    mesh.close()
