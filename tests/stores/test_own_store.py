"""Stores of other packages: the example passes the contract, and its entry point makes its URLs
work everywhere."""

import json
import sys
import tomllib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
import test_jsonl_store
from jsonl_store import JsonlStore

import memory_mesh
from memory_mesh import MemoryMesh
from memory_mesh.core.audit import Sound
from memory_mesh.core.errors import InvalidInput, StoreCorrupt, StoreForeign, StoreUnavailable
from memory_mesh.core.model import Kind
from memory_mesh.core.ports import STORE_PARTS, Store
from memory_mesh.interfaces.cli.main import run
from memory_mesh.stores import open_store
from memory_mesh.stores.ram import RamStore
from memory_mesh.testing.contract import ChangesAsOne, CountsMoves, RanksByCosine
from memory_mesh.testing.rows import memory

EXAMPLE = Path(test_jsonl_store.__file__).parent
Install = Callable[..., None]


@pytest.mark.req("GRAPH-77")
class TestJsonlBriefly(ChangesAsOne, CountsMoves, RanksByCosine):
    """A part of the contract that takes seconds."""

    def open(self, place: Path) -> Store:
        return test_jsonl_store.open_in(place)


# The test file that the example ships.
TestJsonlStore = pytest.mark.deep(pytest.mark.req("GRAPH-77")(test_jsonl_store.TestJsonlStore))
TestHistory = pytest.mark.deep(pytest.mark.req("GRAPH-77")(test_jsonl_store.TestHistory))


# --- the example's file ---


def test_a_line_that_was_written_by_half_is_not_read_and_the_next_change_replaces_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "memory.jsonl"
    JsonlStore(file).apply([memory("m1")])
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"nonce": "x", "puts": [')
    store = JsonlStore(file)
    assert store.ids(Kind.MEMORY) == ["m1"]
    store.apply([memory("m2")])
    assert file.read_bytes().startswith(whole + b'{"nonce"')
    assert set(JsonlStore(file).ids(Kind.MEMORY)) == {"m1", "m2"}


def test_a_damaged_file_and_one_of_another_program_are_refused_and_left_as_they_are(
    tmp_path: Path,
) -> None:
    file = tmp_path / "memory.jsonl"
    store = JsonlStore(file)
    store.apply([memory("m1")])
    ours = file.read_bytes()
    for given, error in (
        (b"[1, 2]\n", StoreForeign),
        (ours + b"[]\n", StoreCorrupt),
        (ours + b"{\n", StoreCorrupt),
    ):
        file.write_bytes(given)
        for use in (
            lambda: JsonlStore(file).count(Kind.MEMORY),
            lambda: JsonlStore(file).apply([memory("m2")]),
        ):
            with pytest.raises(error):
                use()
        assert file.read_bytes() == given


def test_what_is_erased_is_in_no_byte_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    store = JsonlStore(file)
    with MemoryMesh(store) as mesh:
        mesh.add("The finch sings.")
        erased, deleted = mesh.add("The quetzal nests.").id, mesh.add("The ibis wades.").id
        assert {b"quetzal" in file.read_bytes(), b"ibis" in file.read_bytes()} == {True}
        assert mesh.erase(erased).bytes_freed
        assert b"quetzal" not in file.read_bytes()
        mesh.delete(deleted)
    store.close()
    assert b"ibis" not in file.read_bytes()
    assert b"finch" in file.read_bytes()


def add_some(file: Path, name: str) -> None:
    """Store memories; runs in a process of its own."""
    store = JsonlStore(file)
    with MemoryMesh(store, agent_id="ann", embedder="hash") as mesh:
        for number in range(20):
            mesh.add(f"Gull {number} of {name} sits on the harbour wall.")
            store.compact()  # while others read and write
    store.close()


@pytest.mark.deep
def test_processes_that_write_and_compact_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_MESH_HOME", str(tmp_path / "home"))
    file, names = tmp_path / "memory.jsonl", ("first", "second", "third")
    with ProcessPoolExecutor(len(names), mp_context=get_context("spawn")) as pool:
        list(pool.map(add_some, [file] * len(names), names))
    with MemoryMesh(JsonlStore(file), agent_id="ann") as mesh:
        assert mesh.stats().total_memories == 60
        assert all(isinstance(verdict, Sound) for verdict in mesh.verify())


# --- objects and URLs ---


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that installs a package: its metadata on the path, as pip would write
    it, and a module."""

    def install(package: str, entries: dict[str, str], module: str = "", code: str = "") -> None:
        folder = tmp_path / "site" / package
        metadata = folder / f"{package}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        )
        lines = [f"{name} = {value}" for name, value in entries.items()]
        (metadata / "entry_points.txt").write_text("\n".join(["[memory_mesh.stores]", *lines, ""]))
        if module:
            (folder / f"{module}.py").write_text(code)
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(folder)

    return install


@pytest.fixture
def example(install: Install) -> None:
    """The example with the entry points of its `pyproject.toml`."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    install(project["name"], project["entry-points"]["memory_mesh.stores"])


@pytest.mark.req("GRAPH-77")
@pytest.mark.usefixtures("example")
def test_the_url_of_an_installed_store_works_in_python_and_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_MESH_HOME", str(tmp_path / "home"))
    url = f"jsonl:///{tmp_path}/a%20b/memory.jsonl"
    with MemoryMesh(url, agent_id="planner") as mesh:
        assert mesh.search("key") == []
        assert not (tmp_path / "a b").exists()  # a read creates nothing
        mesh.add("The deploy key rotates on Mondays.")
        assert mesh.stats().db_path == url
    assert run(["search", "deploy key", "--agent", "planner", "--json", "--store", url]) == 0
    assert [hit["content"] for hit in json.loads(capsys.readouterr().out)["results"]] == [
        "The deploy key rotates on Mondays."
    ]
    assert run(["audit", "verify", "--agent", "planner", "--store", url]) == 0
    assert run(["doctor", "--store", url]) == 0
    for wrong in ("jsonl://", "jsonl://host/file", f"{url}?mode=ro"):
        with pytest.raises(InvalidInput, match="does not name a file"):
            open_store(wrong)


@pytest.mark.req("GRAPH-77")
def test_a_store_object_is_used_as_it_is_and_stays_open(tmp_path: Path) -> None:
    store = JsonlStore(tmp_path / "memory.jsonl")
    with MemoryMesh(store=store) as mesh:
        id_ = mesh.add("Stored in my own store.").id
    assert store.get(Kind.MEMORY, [id_])[id_].fields["content"] == "Stored in my own store."


@pytest.mark.parametrize("part", STORE_PARTS)
def test_an_object_that_lacks_a_part_of_the_port_is_refused_by_its_name(part: str) -> None:
    complete = {name: getattr(RamStore(), name) for name in STORE_PARTS}
    assert MemoryMesh(store=type("Whole", (), complete)()).search("x") == []
    partial = type(
        "Partial", (), {name: value for name, value in complete.items() if name != part}
    )()
    with pytest.raises(memory_mesh.SettingsError, match=f"without {part};"):
        MemoryMesh(store=partial)


@pytest.mark.req("GRAPH-77")
def test_a_package_is_imported_when_its_scheme_is_opened_and_not_before(install: Install) -> None:
    for name in ("mine", "other"):
        code = "from memory_mesh.stores.ram import RamStore\ndef opened(url): return RamStore()\n"
        install(name, {name: f"{name}_rows:opened"}, f"{name}_rows", code)
    for url in ("memory://", "memory.db"):
        open_store(url).close()
    with pytest.raises(
        InvalidInput,
        match=r"unknown store '?unknown://x'?.*memory://; of installed packages mine://, other://",
    ):
        open_store("unknown://x")
    assert not {"mine_rows", "other_rows"} & sys.modules.keys()
    assert isinstance(open_store("mine://anything"), RamStore)
    assert {"mine_rows", "other_rows"} & sys.modules.keys() == {"mine_rows"}


def test_a_package_cannot_replace_a_store_of_ours(install: Install) -> None:
    install(
        "mine",
        {"memory": "mine_rows:opened", "sqlite": "mine_rows:opened"},
        "mine_rows",
        "raise SystemExit",
    )
    assert isinstance(open_store("memory://"), RamStore)
    open_store("memory.db").close()


BROKEN = {
    "a module that is missing": (
        "mine_rows_missing:opened",
        "",
        r"failed with ModuleNotFoundError: No module named",
    ),
    "a name that is missing": ("mine_rows:nothing", "", r"failed with AttributeError"),
    "a module with an error": ("mine_rows:opened", "1 / 0", r"failed with ZeroDivisionError"),
    "no function": (
        "mine_rows:opened",
        "opened = 3",
        r"failed with TypeError: 'int' object is not callable",
    ),
    "an error": (
        "mine_rows:opened",
        "def opened(url): raise OSError(url)",
        r"failed with OSError: mine://me:\*\*\*@host",
    ),
    "nothing": (
        "mine_rows:opened",
        "def opened(url): pass",
        r"returned None, which lacks url, .* expected an object of",
    ),
    "a class": (
        "mine_rows:opened",
        "from memory_mesh.stores.ram import RamStore\ndef opened(url): return RamStore",
        "which lacks url",
    ),
    "an error of ours": (
        "mine_rows:opened",
        "from memory_mesh import StoreMissing\ndef opened(url): raise StoreMissing('no such host')",
        "^no such host",
    ),
}


@pytest.mark.req("GRAPH-77")
@pytest.mark.parametrize("fault", BROKEN)
def test_a_package_that_opens_no_store_is_named(
    install: Install, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    value, code, message = BROKEN[fault]
    install("mine-store", {"mine": value}, "mine_rows", code)
    with pytest.raises(StoreUnavailable, match=message) as raised:
        open_store("mine://me:hunter2@host")
    assert "hunter2" not in str(raised.value)
    assert ("package mine-store, which adds mine://" in str(raised.value)) == (
        fault != "an error of ours"
    )
    assert run(["list", "--store", "mine://me:hunter2@host"]) > 0
    assert "hunter2" not in (err := capsys.readouterr().err)
    assert "Traceback" not in err


def test_two_packages_with_one_scheme_are_named(install: Install) -> None:
    for name in ("second", "first"):
        install(name, {"mine": f"{name}_rows:opened"})
    with pytest.raises(
        StoreUnavailable,
        match=r"several packages add mine://: first, second; uninstall all but one",
    ):
        open_store("mine://x")


# --- the store in memory ---


@pytest.mark.req("GRAPH-76")
def test_a_store_in_memory_is_empty_after_a_restart(tmp_path: Path) -> None:
    for url, left in (("memory://", 0), (f"{tmp_path}/memory.db", 1)):
        with MemoryMesh(url) as mesh:
            mesh.graph.store("planner", "The deploy key rotates on Mondays.")
            assert len(mesh.graph.search("planner", "deploy key")) == 1
        with MemoryMesh(url) as again:
            assert len(again.graph.search("planner", "deploy key")) == left
        with mesh:  # the same object, opened again
            assert len(mesh.graph.search("planner", "deploy key")) == left
