"""The life of a mesh: opening, closing, disabled memory, logging, and names that are not
implemented yet."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from time import time_ns

import pytest

from memory_mesh import MemoryMesh, MemoryMeshError
from memory_mesh.api.handle import _ELSEWHERE
from memory_mesh.api.mesh import MemoryMesh as Built
from memory_mesh.core.errors import MemoryDisabled, NotFound, SettingsError, StoreClosed
from memory_mesh.core.model import Kind, as_clock
from memory_mesh.core.options import Options
from memory_mesh.flows.search import usage
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores.ram import RamStore
from memory_mesh.testing.fakes import NEW_YEAR

from .house import House


@pytest.mark.req("MESH-074")
def test_init_and_close_may_be_called_again_and_again(tmp_path: Path) -> None:
    mesh = MemoryMesh(store=f"sqlite:///{tmp_path / 'memory.db'}")
    mesh.close()
    mesh.init()
    mesh.init()
    id_ = mesh.add("text").id
    mesh.close()
    mesh.close()
    assert mesh.get(id_).content == "text"  # any operation opens it again
    mesh.close()
    with mesh as again:
        assert again is mesh
        assert again.search("text")[0].id == id_
    with mesh:
        mesh.init()
    mesh.close()


@pytest.mark.req("MESH-074")
def test_nothing_is_opened_before_it_is_used(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    mesh = MemoryMesh(store=f"sqlite:///{file}")
    assert not file.exists()
    mesh.init()
    assert file.exists()
    mesh.close()


@pytest.mark.req("MESH-022")
def test_a_mesh_is_closed_when_its_block_ends_even_by_an_error(tmp_path: Path) -> None:
    def fail() -> None:
        with MemoryMesh(store=f"sqlite:///{tmp_path / 'memory.db'}") as mesh:
            stores.append(mesh._context().store)
            raise KeyError("inside")

    stores: list[object] = []
    with pytest.raises(KeyError, match="inside"):
        fail()
    with pytest.raises(StoreClosed):
        stores[0].count("memory")


def test_threads_that_come_first_together_open_one_store(tmp_path: Path) -> None:
    mesh = MemoryMesh(store=f"sqlite:///{tmp_path / 'memory.db'}")
    with ThreadPoolExecutor(8) as pool:
        stores = {id(context.store) for context in pool.map(lambda _: mesh._context(), range(16))}
        list(pool.map(lambda n: mesh.add(f"text {n}"), range(16)))
    assert len(stores) == 1
    assert len(mesh.get_all()) == 16
    assert mesh.verify()[0].number == 16
    mesh.close()


def test_a_mesh_without_a_store_keeps_its_memories_in_the_home_folder(nothing_set: Path) -> None:
    with MemoryMesh() as mesh:
        mesh.add("text")
        assert mesh.stats().db_path.endswith("home/memory.db")
    assert (nothing_set / "home" / "memory.db").is_file()


# --- switched off ---


@pytest.mark.req("MESH-070")
@pytest.mark.parametrize("given", ["url", "store"])
def test_with_memory_off_nothing_is_kept_and_nothing_is_found(tmp_path: Path, given: str) -> None:
    file = tmp_path / "memory.db"
    store = RamStore()
    stored = MemoryMesh(store=store).add("kept before")
    mesh = MemoryMesh(store=f"sqlite:///{file}" if given == "url" else store, enable_memory=False)
    for write in (
        lambda: mesh.add("text"),
        lambda: mesh.ingest("text"),
        lambda: mesh.add_many([("text", None)]),
        lambda: mesh.update(stored.id, content="text"),
        lambda: mesh.pin(stored.id),
        lambda: mesh.delete(stored.id),
        lambda: mesh.erase(stored.id),
        lambda: mesh.delete_all(agent_id="a"),
    ):
        with pytest.raises(MemoryDisabled, match="enable_memory=True"):
            write()
    assert mesh.search("kept text") == mesh.get_all() == mesh.verify() == []
    assert mesh.get(stored.id) is None
    with pytest.raises(NotFound):
        mesh.history(stored.id)
    stats = mesh.stats()
    assert (stats.status, stats.connected, stats.total_memories) == ("disconnected", False, 0)
    mesh.close()
    assert not file.exists()
    assert MemoryMesh(store=store).get(stored.id) == stored


@pytest.mark.req("MESH-069")
def test_with_yamo_off_no_block_is_written(house: House) -> None:
    mesh = house.mesh(enable_yamo=False)
    id_ = mesh.add("text").id
    mesh.update(id_, content="changed")
    mesh.pin(id_)
    mesh.add_many([("one", None), ("one", None)])
    mesh.delete(id_)
    mesh.search("one")
    mesh.close()
    assert house.store.count(Kind.BLOCK) == 0
    assert mesh.verify() == []
    assert [record.content for record in mesh.get_all()] == ["one"]
    with house.mesh() as audited:  # the same house writes blocks where they are on
        audited.add("told")
        audited.search("one")
    assert house.store.count(Kind.BLOCK) == 2


@pytest.mark.req("GRAPH-71")
def test_making_and_using_a_mesh_starts_no_job_and_no_thread_of_its_own() -> None:
    before = threading.enumerate()
    with MemoryMesh(store="memory://", decay_enabled=True, audit_recalls=False) as mesh:
        mesh.graph.store("ann", "Ana saw a cat.", importance=0.1)
        assert mesh.heartbeat_log() == []
        assert [thread for thread in threading.enumerate() if thread not in before] == []
        assert mesh.heartbeat(jobs=["decay"]).ok  # the control
        assert {run.job for run in mesh.heartbeat_log()} == {"guard", "decay"}


def test_a_name_that_nobody_promised_is_a_plain_attribute_error() -> None:
    mesh = MemoryMesh(store="memory://")
    with pytest.raises(AttributeError, match="'MemoryMesh' object has no attribute 'nonsense'"):
        mesh.nonsense  # noqa: B018  (asking is what it is about)


@pytest.mark.req("MESH-068", "MESH-067")
def test_the_options_of_the_document_have_its_defaults() -> None:
    defaults = {
        "enable_llm": True,
        "enable_yamo": True,
        "enable_memory": True,
        "agent_id": "YAMO_AGENT",
        "enable_wisdom_distillation": False,
        "lesson_min_confidence": 0.7,
        "lesson_retention_days": 365,
        "enable_heritage_tracking": False,
        "max_heritage_depth": 5,
    }
    assert {name: getattr(Options(), name) for name in defaults} == defaults
    MemoryMesh(store="memory://", **defaults)


@pytest.mark.req("MESH-021")
def test_a_store_and_the_documents_folder_are_not_given_together() -> None:
    for store in ("memory://", RamStore()):
        with pytest.raises(SettingsError, match="both store and db_dir"):
            MemoryMesh(store=store, db_dir="folder")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("agent_id", wrong) for wrong in ("", " ", 5, b"a")),
        *(("user_id", wrong) for wrong in ("", 5)),
        *(("enable_yamo", wrong) for wrong in ("yes", 1, 0)),
        *(("max_content_chars", wrong) for wrong in (0, -1, 1.5, "9", True)),
        *(("busy_seconds", wrong) for wrong in (-1, "9", True, float("nan"))),
    ],
)
def test_an_option_of_the_wrong_kind_is_an_error_that_names_it(option: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"argument: {option}"):
        MemoryMesh(store="memory://", **{option: value})


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(SettingsError, match="did you mean 'agent_id'"):
        MemoryMesh(store="memory://", agnet_id="a")


@pytest.mark.parametrize("option", ["agent_id", "user_id", "session_id"])
def test_a_reader_with_an_invalid_name_cannot_read_or_write(option: str) -> None:
    mesh = MemoryMesh(store="memory://", **{option: "half \ud800"})
    with pytest.raises(MemoryMeshError):
        mesh.add("text")
    with pytest.raises(MemoryMeshError):
        mesh.get_all()


def test_the_longest_content_is_a_setting(house: House) -> None:
    mesh = house.mesh(max_content_chars=5)
    assert mesh.add("12345").content == "12345"
    with pytest.raises(MemoryMeshError, match="max_content_chars"):
        mesh.add("123456")


def test_the_stemmers_language_is_a_setting(house: House) -> None:
    mesh = house.mesh(stemmer_language="german")
    mesh.add("Die Häuser stehen am See")
    assert [hit.content for hit in mesh.search("Haus")] == ["Die Häuser stehen am See"]
    with pytest.raises(SettingsError, match="klingon"):
        house.mesh(stemmer_language="klingon").add("text")


# --- clocks ---


@pytest.mark.parametrize(
    "now",
    [
        NEW_YEAR / 1000,
        NEW_YEAR // 1000,
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
        datetime(2026, 1, 1),  # noqa: DTZ001  (a naive one is read as UTC)
    ],
)
def test_a_clock_may_give_seconds_or_a_datetime(now: object) -> None:
    assert as_clock(lambda: now, time_ns)() == NEW_YEAR
    record = MemoryMesh(store="memory://", clock=lambda: now).add("text")
    assert record.created_at == "2026-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    "now", [NEW_YEAR, -1.0, float("nan"), float("inf"), None, "now", 253_402_300_800]
)
def test_a_clock_that_returns_no_seconds_is_an_error_that_says_what_is_expected(
    house: House, now: object
) -> None:
    mesh = house.mesh(clock=lambda: now)
    with pytest.raises(
        SettingsError, match=r"the clock returned .*; expected seconds since 1970, or a datetime"
    ):
        mesh.add("text")
    assert house.memories() == []


def test_milliseconds_of_a_clock_are_not_lost() -> None:
    assert as_clock(lambda: 1767225600.123, time_ns)() == NEW_YEAR + 123
    assert (
        as_clock(lambda: datetime(2026, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC), time_ns)()
        == NEW_YEAR + 123
    )


def test_without_a_clock_it_is_now() -> None:
    before = datetime.now(UTC)
    created = MemoryMesh(store="memory://").add("text").created_at
    assert (
        before - timedelta(seconds=1)
        < datetime.fromisoformat(created)
        < datetime.now(UTC) + timedelta(seconds=1)
    )


def test_the_package_names_the_class_that_is_built() -> None:
    assert MemoryMesh is Built
    import memory_mesh

    for name in memory_mesh.__all__:
        assert getattr(memory_mesh, name).__name__ == name
    with pytest.raises(AttributeError, match="nonsense"):
        memory_mesh.nonsense  # noqa: B018  (asking is what it is about)


def test_closing_a_mesh_leaves_open_what_others_handed_it(house):
    first, second = house.mesh("ann"), house.mesh("bob")
    first.add("shared")
    first.close()
    assert [found.content for found in second.get_all()] == ["shared"]
    assert [found.content for found in first.get_all()] == ["shared"]


@pytest.mark.req("MESH-021")
@pytest.mark.parametrize(
    "embedder",
    [object(), HashingEmbedder, 7, lambda texts: texts],
    ids=["object", "class", "number", "function"],
)
def test_what_is_no_embedder_is_told_at_once(embedder: object) -> None:
    with pytest.raises(
        SettingsError,
        match=r"embedder is .*expected local, hash, none, or an object with model, window",
    ):
        MemoryMesh(store="memory://", embedder=embedder)
    assert MemoryMesh(store="memory://", embedder=HashingEmbedder()).add("text").content == "text"


@pytest.mark.req("MESH-044")
def test_a_search_that_ends_after_a_close_is_told_and_counted_with_the_next_opening(
    tmp_path: Path,
) -> None:
    mesh = MemoryMesh(store=f"sqlite:///{tmp_path / 'memory.db'}", agent_id="ann", embedder="none")
    id_ = mesh.add("tea").id
    mesh.search("tea")
    context = mesh._context()
    mesh.close()
    usage.count(context, [id_])
    usage.log_search(context, query="late", limit=1, filter=None, ms=context.clock(), results=[])
    for flush in (usage.flush,):
        flush(context)  # as its own thread might, once enough have gathered
    assert len(mesh.audit_log(recalls=True)) == 2
    assert mesh.get(id_).access_count == 2
    mesh.close()
    assert mesh.get(id_).access_count == 2
    mesh.close()


def test_a_method_of_another_library_names_the_one_here(mesh: MemoryMesh) -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'upsert'; use add\(…, key=…\)"):
        mesh.upsert  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'foo'$"):
        mesh.foo  # type: ignore[attr-defined]  # noqa: B018
    assert not [name for name in _ELSEWHERE if name in dir(mesh)]
