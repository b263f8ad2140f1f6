"""A store that does not exist yet reads as empty, and reading it creates nothing."""

import asyncio
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from memory_mesh import (
    AsyncMemoryMesh,
    InvalidInput,
    MemoryMesh,
    NotFound,
    StoreForeign,
    StoreMissing,
    StoreUnavailable,
)
from memory_mesh.stores import open_store

URLS = ("sqlite:///{}/deep/new.db", "json:///{}/deep/new", "lancedb:///{}/deep/new")
Read = Callable[[MemoryMesh], object]

READS: dict[str, tuple[Read, object]] = {
    "search": (lambda mesh: mesh.search("tea"), []),
    "get_all": (lambda mesh: mesh.get_all(), []),
    "get": (lambda mesh: mesh.get("mem_1_ffffff"), None),
    "stats": (lambda mesh: mesh.stats().total_memories, 0),
    "changes": (lambda mesh: mesh.changes("tea"), []),
    "query_lessons": (lambda mesh: mesh.query_lessons("tea"), []),
    "list_skills": (lambda mesh: mesh.list_skills(), []),
    "graph": (lambda mesh: mesh.graph.search("planner", "tea"), []),
    "lane": (lambda mesh: mesh.lane.find("tea"), []),
    "notes": (lambda mesh: [*mesh.notes.load(), *mesh.notes.find_relevant("tea")], []),
    "traces": (lambda mesh: mesh.traces.similar("tea"), []),
    "export": (lambda mesh: len([*mesh.export()]), 1),
    "export_store": (lambda mesh: json.loads([*mesh.export_store()][-1])["end"]["rows"], {}),
    "audit_log": (lambda mesh: mesh.audit_log(), []),
    "evaluate": (lambda mesh: mesh.evaluate().memories, 0),
}


@pytest.mark.parametrize("url", URLS)
def test_reading_a_store_that_does_not_exist_finds_nothing_and_creates_nothing(
    tmp_path: Path, url: str
) -> None:
    with MemoryMesh(url.format(tmp_path / "stores"), agent_id="planner", embedder="hash") as mesh:
        found = {name: read(mesh) for name, (read, _) in READS.items()}
        assert found == {name: empty for name, (_, empty) in READS.items()}
        with pytest.raises(NotFound):
            mesh.pin("mem_1_ffffff")
    assert not (tmp_path / "stores").exists()
    assert not (tmp_path / "home").exists()
    with MemoryMesh(url.format(tmp_path / "stores"), agent_id="planner", embedder="hash") as mesh:
        mesh.add("Ana likes tea")
        assert (tmp_path / "stores" / "deep").is_dir()
        assert [hit.content for hit in mesh.search("tea")] == ["Ana likes tea"]


@pytest.mark.parametrize("url", URLS)
def test_an_open_mesh_sees_the_first_write_of_another_process(tmp_path: Path, url: str) -> None:
    with MemoryMesh(url.format(tmp_path), embedder="none") as mesh:
        assert (mesh.search("tea"), mesh.get_all()) == ([], [])
        with closing(open_store(url.format(tmp_path))) as other:  # not shared in this process
            new = MemoryMesh(other, embedder="none").add("Ana likes tea")
        assert [one.id for one in mesh.get_all()] == [new.id]
        assert [one.id for one in mesh.search("tea")] == [new.id]
        assert mesh.stats().total_memories == 1


@pytest.mark.parametrize("url", URLS)
def test_a_store_that_must_exist_or_is_opened_read_only_is_an_error_without_one(
    tmp_path: Path, url: str
) -> None:
    url = url.format(tmp_path / "stores")
    with MemoryMesh(url, embedder="none") as lenient:
        assert lenient.get_all() == []
        strict = MemoryMesh(url, embedder="none", must_exist=True)
        for use in (strict.get_all, lambda: strict.search("tea"), lambda: strict.add("tea")):
            with pytest.raises(StoreMissing, match="does not exist; check the name"):
                use()
        with pytest.raises(StoreMissing), MemoryMesh(f"{url}?mode=ro", embedder="none"):
            pass
        assert not (tmp_path / "stores").exists()
        lenient.add("Ana likes tea")
        assert len(strict.get_all()) == 1  # the same mesh, now that there is a store
    with MemoryMesh(f"{url}?mode=ro", embedder="none") as mesh:
        assert len(mesh.get_all()) == 1


def test_the_environment_can_ask_for_a_store_that_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_MESH_MUST_EXIST", "yes")
    with pytest.raises(StoreMissing):
        MemoryMesh(tmp_path / "new.db").stats()
    with pytest.raises(StoreMissing):
        MemoryMesh().stats()  # that of the home
    assert MemoryMesh("memory://").stats().total_memories == 0


@pytest.mark.parametrize("url", URLS)
def test_what_needs_a_store_to_work_on_names_the_missing_one(tmp_path: Path, url: str) -> None:
    with MemoryMesh(url.format(tmp_path / "stores"), embedder="none") as mesh:
        for use in (
            lambda: mesh.backup(tmp_path / "copy"),
            lambda: mesh.forget(user_id="ana"),
            lambda: mesh.delete("mem_1_ffffff"),
            mesh.audit_rekey,
        ):
            with pytest.raises(StoreMissing, match=r"deep.new.* does not exist; check the name"):
                use()
        assert mesh.compact()
    assert {path.name for path in tmp_path.iterdir()} == {"work"}


def test_what_is_no_store_at_all_is_still_an_error(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("mine, and longer than the header of a database" * 20)
    (tmp_path / "folder.db").mkdir()
    for url, error in (
        (str(tmp_path / "folder.db"), InvalidInput),
        (f"json:///{tmp_path}/text.db", StoreForeign),
        (f"lancedb:///{tmp_path}/text.db", StoreForeign),
        (f"{tmp_path}/text.db/below.db", StoreUnavailable),
        ("sqllite:///new.db", InvalidInput),
        ("sqlite", InvalidInput),
    ):
        with pytest.raises(error):
            MemoryMesh(url, embedder="none").search("tea")


def test_asynchronous_code_searches_before_it_stores(tmp_path: Path) -> None:
    async def found() -> tuple[list[str], list[str]]:
        async with AsyncMemoryMesh(tmp_path / "new.db", embedder="none") as mesh:
            before = [hit.content for hit in await mesh.search("tea")]
            assert not (tmp_path / "new.db").exists()
            await mesh.add("Ana likes tea")
            return before, [hit.content for hit in await mesh.search("tea")]

    assert asyncio.run(found()) == ([], ["Ana likes tea"])
