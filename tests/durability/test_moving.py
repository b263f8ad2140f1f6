"""Copies and imports that are killed, that find no space, or that meet a store of a newer
version: nothing is half or double."""

import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from memory_mesh import (
    InvalidInput,
    MemoryMesh,
    Sound,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
    copy_store,
)
from memory_mesh.core.model import Kind
from memory_mesh.core.ports import no_progress
from memory_mesh.core.transfer.archive import archive_lines
from memory_mesh.stores import open_store
from memory_mesh.stores.json import JOURNAL, line_of

from .children import Child, url

STEPS = ["store.begun", "store.put", "store.counted", "store.committed"]
JSON_STEPS = [
    "store.begun",
    "store.committed",
    "flush.begun",
    "flush.memories.json",
    "flush.committed",
    "copy.applied",
]
LANCE_STEPS = ["store.begun", "store.committed", "copy.applied"]


def lines(file: Path) -> list[str]:
    with closing(open_store(url(file))) as store:
        return [*archive_lines(store, vectors=True, progress=no_progress)]


def source(folder: Path) -> Path:
    """An archive of a store with two users."""
    with MemoryMesh(url(folder / "source.db"), agent_id="planner", embedder="hash") as mesh:
        mesh.add_many([(f"The lantern {n} is in room {n * 7}", {}) for n in range(6)])
        mesh.scoped(user_id="ana").add("Ana likes tea")
    (folder / "all.jsonl").write_text("".join(lines(folder / "source.db")))
    return folder / "all.jsonl"


def killed(steps: Sequence[str], file: Path, target: Path) -> int:
    """Import a file in processes that are killed, each a step further, and at last in one that
    is not."""
    times = 0
    for step in steps:
        for nth in (1, 2, 4):
            with Child(
                "import_file", store=url(target), file=str(file), crash=[step, nth], batch=2
            ) as child:
                times += child.end() < 0
    return times


@pytest.mark.deep
@pytest.mark.parametrize(
    ("name", "steps"),
    [("a.db", [*STEPS, "copy.applied"]), ("a.json", JSON_STEPS), ("a.lance", LANCE_STEPS)],
)
def test_an_archive_whose_import_is_killed_again_and_again_is_complete_in_the_end(
    name: str, steps: list[str], tmp_path: Path
) -> None:
    file = source(tmp_path)
    assert killed(steps, file, tmp_path / name) > 4
    with MemoryMesh(url(tmp_path / name), agent_id="planner", embedder="hash") as mesh:
        mesh.import_file(file)
    assert "".join(lines(tmp_path / name)) == file.read_text()


@pytest.mark.deep
@pytest.mark.req("MESH-044")
@pytest.mark.parametrize(
    ("name", "steps"), [("a.db", ["flow.decided", *STEPS, "flow.applied"]), ("a.json", JSON_STEPS)]
)
def test_memories_whose_import_is_killed_are_stored_once_each_with_its_block(
    name: str, steps: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "mem0.json"
    file.write_text(
        json.dumps(
            [{"id": str(n), "memory": f"The lantern {n} is in room {n * 7}"} for n in range(9)]
        )
    )
    assert killed(steps, file, tmp_path / name) > 3
    with MemoryMesh(url(tmp_path / name), agent_id="planner", embedder="hash") as mesh:
        mesh.import_file(file)
        assert sorted(one.id for one in mesh.get_all()) == [str(n) for n in range(9)]
        assert all(isinstance(verdict, Sound) for verdict in mesh.verify())
    with closing(open_store(url(tmp_path / name))) as store:
        assert store.count(Kind.BLOCK) == 9


def test_doctor_names_a_copy_that_is_not_complete(tmp_path: Path) -> None:
    from memory_mesh.interfaces.cli.doctor import examine
    from memory_mesh.interfaces.values import Target

    def failed() -> list[str]:
        checks: list[dict[str, Any]] = examine(Target(store=url(tmp_path / "new.db"))).data[
            "results"
        ]  # type: ignore[assignment]
        return [one["detail"] for one in checks if one["name"] == "copy"]

    def stop(what: str, done: int, of: int) -> None:
        raise KeyboardInterrupt

    source(tmp_path)
    with suppress(KeyboardInterrupt):
        copy_store(url(tmp_path / "source.db"), url(tmp_path / "new.db"), progress=stop)
    assert [one.endswith("source.db is not complete") for one in failed()] == [True]
    copy_store(url(tmp_path / "source.db"), url(tmp_path / "new.db"))
    assert failed() == []


# --- faults of the target ---


def test_a_target_that_is_full_is_completed_when_there_is_space_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source(tmp_path)

    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StoreFull, match="the disk is full"):
            copy_store(url(tmp_path / "source.db"), url(tmp_path / "new.json"))
    copy_store(url(tmp_path / "source.db"), url(tmp_path / "new.json"))
    assert lines(tmp_path / "new.json") == lines(tmp_path / "source.db")


def test_a_target_opened_read_only_is_refused(tmp_path: Path) -> None:
    source(tmp_path)
    for name in ("new.db", "new.json"):
        with MemoryMesh(url(tmp_path / name)) as mesh:
            mesh.init()
        with pytest.raises(StoreReadOnly, match="read-only"):
            copy_store(url(tmp_path / "source.db"), f"{url(tmp_path / name)}?mode=ro")
        with closing(open_store(url(tmp_path / name))) as store:
            assert sum(map(store.count, Kind)) == 0


def newer(file: Path) -> None:
    """Let a store be that of a newer version."""
    if file.suffix == ".db":
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("UPDATE mesh_meta SET value = '99' WHERE key = 'schema'")
            connection.commit()
    elif file.suffix == ".json":
        header, *rest = (file / JOURNAL).read_bytes().splitlines(keepends=True)
        (file / JOURNAL).write_bytes(
            line_of({**json.loads(header)[1], "format": 99}) + b"".join(rest)
        )
    else:
        state = json.loads((file / "memory_mesh" / "state.json").read_text())
        (file / "memory_mesh" / "state.json").write_text(json.dumps({**state, "format": 99}))


@pytest.mark.parametrize(
    "name", ["new.db", "new.json", pytest.param("new.lance", marks=pytest.mark.deep)]
)
def test_a_store_of_a_newer_version_is_neither_read_nor_written(name: str, tmp_path: Path) -> None:
    source(tmp_path)
    copy_store(url(tmp_path / "source.db"), url(tmp_path / name))
    newer(tmp_path / name)
    for one, other in (("source.db", name), (name, "other.db")):
        with pytest.raises(StoreTooNew, match="upgrade memory-mesh"):
            copy_store(url(tmp_path / one), url(tmp_path / other))
    with pytest.raises(StoreTooNew), MemoryMesh(url(tmp_path / "empty.db")) as mesh:
        mesh.import_file(tmp_path / name)
    with pytest.raises(StoreTooNew), MemoryMesh(url(tmp_path / name)) as mesh:
        mesh.import_file(tmp_path / "all.jsonl")
    assert not (tmp_path / "other.db").exists()
    assert issubclass(StoreTooNew, StoreError)


def test_an_archive_is_refused_by_a_store_that_has_memories(tmp_path: Path) -> None:
    file = source(tmp_path)
    with MemoryMesh(url(tmp_path / "own.db"), agent_id="planner") as mesh:
        mesh.add("Mine")
        with pytest.raises(InvalidInput, match="is not empty"):
            mesh.import_file(file)
        assert [one.content for one in mesh.get_all()] == ["Mine"]
