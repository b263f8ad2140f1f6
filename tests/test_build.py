"""Store URLs: which file each names, what is refused, and what is not here yet."""

from pathlib import Path
from urllib.parse import quote

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import (
    InvalidInput,
    MemoryMeshError,
    SettingsError,
    StoreReadOnly,
    StoreUnavailable,
)
from memory_mesh.core.model import Kind
from memory_mesh.stores import open_store, store_file
from memory_mesh.stores.ram import RamStore
from memory_mesh.stores.sqlite import SqliteStore


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    monkeypatch.setenv("MEMORY_MESH_HOME", str(tmp_path / "home"))
    return work


def opened(url: str) -> None:
    store = open_store(url)
    assert isinstance(store, SqliteStore)
    store.prepare()
    assert store.count(Kind.MEMORY) == 0
    store.close()


@pytest.mark.req("MESH-020")
def test_three_slashes_are_relative_and_four_absolute(working_folder: Path) -> None:
    opened("sqlite:///memory.db")
    assert (working_folder / "memory.db").is_file()
    opened("sqlite:///deep/down/memory.sqlite")
    assert (working_folder / "deep" / "down" / "memory.sqlite").is_file()
    absolute = working_folder.parent / "elsewhere.db"
    opened(f"sqlite:////{str(absolute)[1:]}")
    assert absolute.is_file()


@pytest.mark.req("MESH-020")
def test_a_path_is_a_file(working_folder: Path, tmp_path: Path) -> None:
    opened("memory.db")
    opened("memory.sqlite")
    opened("memory.sqlite3")
    opened("./memory")
    opened("deep/memory.data")
    opened("~/mine")
    opened("./deep/down.db")
    opened(str(tmp_path / "absolute.db"))
    opened("~/mine.db")
    made = [
        *(
            working_folder / name
            for name in (
                "memory.db",
                "memory.sqlite",
                "memory.sqlite3",
                "memory",
                "deep/memory.data",
            )
        ),
        tmp_path / "me" / "mine",
        working_folder / "deep" / "down.db",
        tmp_path / "absolute.db",
        tmp_path / "me" / "mine.db",
    ]
    assert all(path.is_file() for path in made)
    assert not (working_folder / "~").exists()


@pytest.mark.parametrize(
    "name",
    [
        "with space.db",
        "100%.db",
        "a%20b.db",
        "what?.db",
        "no#1.db",
        "a&b=c.db",
        "ünïcödé 漢.db",
        "+.db",
        "a;b.db",
    ],
)
def test_odd_names_mean_themselves_as_a_path_and_quoted_in_a_url(
    working_folder: Path, name: str
) -> None:
    opened(name)
    opened(f"sqlite:///url/{quote(name)}")
    assert [path.name for path in working_folder.glob("*.db")] == [name]
    assert [path.name for path in (working_folder / "url").glob("*.db")] == [name]
    store = open_store(name)
    opened(store.url)  # the URL that a store tells opens the same file
    store.close()
    assert len(list(working_folder.iterdir())) == 2 + len(list(working_folder.glob("*.db-*")))


def test_percent_signs_in_a_url_are_read_once(working_folder: Path) -> None:
    opened("sqlite:///a%20b%2525.db")
    assert (working_folder / "a b%25.db").is_file()


def test_a_tilde_is_the_users_home(working_folder: Path, tmp_path: Path) -> None:
    opened("sqlite:///~/mine.db")
    assert (tmp_path / "me" / "mine.db").is_file()
    for nobody in ("sqlite:///~nobody-of-that-name/x.db", "~nobody-of-that-name/x.db"):
        with pytest.raises(InvalidInput, match="nobody-of-that-name"):
            open_store(nobody)


@pytest.mark.req("MESH-020")
def test_memory_is_kept_nowhere(working_folder: Path) -> None:
    one, other = open_store("memory://"), open_store("memory://")
    assert isinstance(one, RamStore)
    assert one is not other
    assert one.url == "memory://"
    assert list(working_folder.iterdir()) == []


UNKNOWN = [
    *(
        "",
        " ",
        "memory",
        "file",
        "file.txt",
        "/",
        ".",
        "postgresq://h/d",
        "mysql://h/d",
        "http://h/x.db",
        "file:///x.db",
        "://x.db",
    ),
    *(
        "sqlite",
        "sqlite:",
        "sqlite:/",
        "sqlite://",
        "sqlite:///",
        "sqlite:x.db",
        "sqlite:/x.db",
        "sqlite://x.db",
        "sqlite://host/x.db",
    ),
    *(
        "sqlite:///x.db#part",
        "sqlite:///x.db?mode=rx",
        "sqlite:///x.db?cache=shared",
        "sqlite:///x.db?mode=ro&mode=rw",
        "sqlite:///x.db?"[:-1] + "?mode",
    ),
    *("sqlite:///a%00b.db", "x.db?mode=ro"),
]


@pytest.mark.parametrize("url", UNKNOWN)
def test_a_url_that_names_no_store_is_an_error_and_makes_no_file(
    working_folder: Path, url: str
) -> None:
    with pytest.raises(InvalidInput, match="expected"):
        open_store(url)
    assert list(working_folder.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "postgresq://me:hunter2@host/db", "sqlite://me:hunter2@host/x.db",
        "mysql://hunter2@h/x?a=@", "mysql://me:p/hunter2@h/x", "mysql://me:p@hunter2@h/x",
    ],
)  # fmt: skip
def test_a_password_in_a_url_is_not_shown_in_an_error(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        open_store(url)
    assert "hunter2" not in str(refused.value)


def test_a_store_may_be_opened_for_reading_only(working_folder: Path) -> None:
    with MemoryMesh(store="memory.db") as mesh:
        id_ = mesh.add("text").id
    with MemoryMesh(store="sqlite:///memory.db?mode=ro") as reader:
        assert reader.get(id_).content == "text"
        assert reader.search("text")
        with pytest.raises(StoreReadOnly):
            reader.add("more")
    with MemoryMesh(store="sqlite:///memory.db?mode=rw") as writer:
        assert writer.add("more")


def test_a_file_that_cannot_be_made_is_an_error_that_names_it(working_folder: Path) -> None:
    (working_folder / "file").write_text("in the way")
    with pytest.raises(StoreUnavailable, match=r"memory\.db"):
        open_store("sqlite:///file/memory.db")
    with pytest.raises(MemoryMeshError):
        open_store(f"sqlite:///{working_folder}")


@pytest.mark.parametrize("name", ["plain", "with space", "50%", "a%20b", "what?", "no#1"])
def test_a_home_folder_of_any_name_holds_the_memories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    home = tmp_path / name
    monkeypatch.setenv("MEMORY_MESH_HOME", str(home))
    with MemoryMesh() as mesh:
        mesh.add("text")
    assert (home / "memory.db").is_file()
    assert [path.name for path in tmp_path.iterdir() if path.name not in (name, "work")] == []


def test_the_file_of_a_url_is_the_one_that_opens(working_folder: Path, tmp_path: Path) -> None:
    assert store_file("memory.db") == Path("memory.db")
    assert store_file("~/mine.db") == tmp_path / "me" / "mine.db"
    assert store_file("sqlite:///a%20b.db") == Path("a b.db")
    assert store_file("memory://") is None
    assert store_file("postgresql://h/d") is None


@pytest.mark.parametrize("wrong", [0, False, [], b"x.db", object(), RamStore, MemoryMesh])
def test_an_object_that_is_not_a_store_is_an_error_before_anything_is_stored(
    tmp_path: Path, wrong: object
) -> None:
    with pytest.raises(
        SettingsError, match=r"expected a URL, a path, or an object with url, index_folder, apply"
    ):
        MemoryMesh(store=wrong)
    assert not (tmp_path / "home").exists()


def test_a_store_of_ones_own_may_be_empty(tmp_path: Path) -> None:
    class Sized(RamStore):
        def __len__(self) -> int:
            return self.count(Kind.MEMORY)

    store = Sized()
    with MemoryMesh(store=store, embedder="none") as mesh:
        mesh.add("text")
    assert len(store) == 1
    assert not (tmp_path / "home").exists()


def test_a_store_of_ones_own_is_used_as_it_is() -> None:
    store = RamStore()
    one, other = MemoryMesh(store=store, agent_id="ann"), MemoryMesh(store=store, agent_id="bob")
    id_ = one.add("text").id
    assert other.get(id_).content == "text"
    assert one.stats().db_path == "memory://"


def test_the_store_may_be_given_by_position_and_as_a_path_object(
    working_folder: Path, tmp_path: Path
) -> None:
    stores = [
        "memory.db",
        Path("other.sqlite"),
        Path("without a suffix"),
        tmp_path / "absolute",
        Path("~/mine.db"),
    ]
    for store in stores:
        with MemoryMesh(store) as mesh:
            mesh.add("text")
    names = ["memory.db", "other.sqlite", "without a suffix"]
    made = [
        *(working_folder / name for name in names),
        tmp_path / "absolute",
        tmp_path / "me" / "mine.db",
    ]
    assert all(path.is_file() for path in made)


def test_the_environment_and_a_file_may_name_a_plain_path(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_MESH_STORE", "deep/notes.sqlite3")
    with MemoryMesh() as mesh:
        mesh.add("text")
    assert (working_folder / "deep" / "notes.sqlite3").is_file()


def test_a_folder_and_a_url_made_to_a_path_are_refused(working_folder: Path) -> None:
    (working_folder / "data").mkdir()
    for folder in ("./data", "data/", "sqlite:///data", Path("data")):
        with pytest.raises(
            InvalidInput, match=r"is a folder; expected a file in it|does not name a file"
        ):
            MemoryMesh(folder).add("text")
    with pytest.raises(SettingsError, match="a URL as a text"):
        MemoryMesh(Path("sqlite:///memory.db"))
    assert [path.name for path in working_folder.iterdir()] == ["data"]


def test_a_mesh_stays_on_the_file_of_the_folder_it_was_made_in(
    working_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh = MemoryMesh("memory.db")
    monkeypatch.chdir(tmp_path)
    mesh.add("before")
    mesh.close()
    assert mesh.scoped(session_id="s").add("after")
    assert len(mesh.get_all()) == 2
    assert (working_folder / "memory.db").is_file()
    assert not (tmp_path / "memory.db").exists()
