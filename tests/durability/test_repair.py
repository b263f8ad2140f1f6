"""Repair: what can be read is saved into a new store, what was lost is counted, and the damaged
store stays as it was."""

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memory_mesh import (
    InvalidInput,
    MemoryMesh,
    Repaired,
    StoreCorrupt,
    StoreForeign,
    StoreMissing,
    StoreTooNew,
    repair_store,
)
from memory_mesh.stores.json import FILES, JOURNAL
from stores.files import foreign_file, snapshot

from .children import url

COUNT = 40


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a sound store of each kind."""
    folder = tmp_path_factory.mktemp("whole")
    for name in ("a.db", "a.json"):
        fill(folder / name)
    return folder


def fill(file: Path) -> None:
    with MemoryMesh(url(file), agent_id="planner", embedder="hash") as mesh:
        mesh.add_many([(f"The lantern {n} is in room {n * 7}", {"n": n}) for n in range(COUNT)])
        for record in mesh.get_all(limit=5):
            mesh.update(record.id, content=f"{record.content}, as of today")
        mesh.search("lantern")


@pytest.fixture
def stores(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    return tmp_path


def assert_usable(done: Repaired) -> None:
    assert done.new
    with MemoryMesh(url(Path(done.new)), agent_id="planner", embedder="hash") as mesh:
        assert mesh.stats().total_memories == done.saved["memory"]
        assert mesh.search("lantern room")
        mesh.add("Stored after the repair")


def pages(file: Path) -> Iterator[tuple[int, str]]:
    """The pages of a SQLite file, and what each is used for, as far as `dbstat` would say it: by
    the text on it."""
    data = file.read_bytes()
    for at in range(1024, len(data), 1024):
        yield at, data[at : at + 1024].decode("latin-1")


# --- SQLite ---


def test_a_page_of_memories_is_lost_and_all_others_are_saved(stores: Path) -> None:
    file = stores / "a.db"
    found = [at for at, text in pages(file) if text[0] == "\x0d" and "The lantern 3" in text]
    data = bytearray(file.read_bytes())
    data[found[0] : found[0] + 1024] = bytes(1024)
    file.write_bytes(data)
    before = snapshot(stores)
    done = repair_store(url(file))
    assert (done.file, done.new) == (str(file), str(stores / "a.repaired.db"))
    assert 0 < done.lost["memory"] < 10
    assert done.saved["memory"] + done.lost["memory"] == COUNT
    assert (done.saved["block"], done.reasons[0][:47]) == (
        COUNT + 6,
        "a part of the table memories cannot be read: da",
    )
    assert before.items() <= snapshot(stores).items()
    assert sorted(path.name for path in stores.iterdir()) == ["a.db", "a.json", "a.repaired.db"]
    assert_usable(done)


def test_a_file_that_was_cut_gives_what_is_left_of_it(stores: Path) -> None:
    file = stores / "a.db"
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3])
    done = repair_store(url(file))
    assert 0 < done.saved["memory"] < COUNT
    assert done.lost["memory"] > 0
    assert_usable(done)


def test_a_damaged_index_of_the_file_loses_nothing(stores: Path) -> None:
    file = stores / "a.db"
    with closing(sqlite3.connect(file)) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'memories_by_age'"
        ).fetchone()
    data = bytearray(file.read_bytes())
    data[(root - 1) * 1024 : root * 1024] = bytes(1024)
    file.write_bytes(data)
    done = repair_store(url(file), to=stores / "new.db")
    assert (done.saved["memory"], done.lost, done.broken) == (COUNT, {}, ())
    assert_usable(done)


@pytest.mark.parametrize("column", ["content", "metadata", "revision"])
def test_a_row_with_a_value_that_cannot_be_read_is_lost_alone(stores: Path, column: str) -> None:
    with closing(sqlite3.connect(stores / "a.db")) as connection:
        rowid = "(SELECT rowid FROM memories WHERE content LIKE 'The lantern 30 %')"
        connection.execute(
            f"UPDATE memories SET {column} = CAST(x'ff7b' AS TEXT) WHERE rowid = {rowid}"
        )
        connection.commit()
    done = repair_store(url(stores / "a.db"))
    assert (done.saved["memory"], done.lost["memory"]) == (COUNT - 1, 1)


def test_a_chain_whose_head_is_lost_goes_on(stores: Path) -> None:
    with closing(sqlite3.connect(stores / "a.db")) as connection:
        connection.execute("UPDATE records SET extra = '{' WHERE kind = 'head'")
        connection.commit()
    done = repair_store(url(stores / "a.db"))
    assert (done.lost["head"], done.saved["block"]) == (2, COUNT + 6)  # of memories and of searches
    assert_usable(done)


def test_a_file_of_which_nothing_can_be_read_is_left_as_it_is(stores: Path) -> None:
    file = stores / "a.db"
    file.write_bytes(b"x" * 5000)
    before = snapshot(stores)
    with pytest.raises(StoreCorrupt, match=r"nothing of .* can be read"):
        repair_store(url(file))
    assert snapshot(stores) == before


# --- JSON ---


def edited(file: Path, edit: Callable[[list[bytes]], list[bytes]]) -> None:
    file.write_bytes(b"".join(edit(file.read_bytes().splitlines(keepends=True))))


def test_a_line_of_a_json_file_is_lost_alone(stores: Path) -> None:
    edited(
        stores / "a.json" / "memories.json",
        lambda lines: [*lines[:5], lines[5][:-9] + b"\n", *lines[6:]],
    )
    before = snapshot(stores / "a.json")
    done = repair_store(url(stores / "a.json"))
    assert (done.new, done.saved["memory"], done.lost) == (
        str(stores / "a.repaired.json"),
        COUNT - 1,
        {"memory": 1},
    )
    assert snapshot(stores / "a.json") == before
    assert_usable(done)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", FILES)
def test_a_json_file_that_is_missing_or_cut_loses_only_its_own_rows(
    stores: Path, name: str
) -> None:
    file = stores / "a.json" / name
    file.write_bytes(
        file.read_bytes()[: file.stat().st_size // 2]
    ) if file.stat().st_size > 10 else file.unlink()
    done = repair_store(url(stores / "a.json"))
    assert sum(done.saved.values()) > COUNT
    if name != "memories.json":
        assert (done.saved["memory"], done.lost.get("memory", 0)) == (COUNT, 0)
    else:
        assert done.saved["memory"] + done.lost["memory"] == COUNT
    assert_usable(done)


def test_a_change_of_the_journal_that_is_damaged_is_lost_and_later_ones_are_saved(
    stores: Path,
) -> None:
    folder = stores / "a.json"
    with MemoryMesh(url(folder), agent_id="planner", embedder="hash") as mesh:
        for text in ("First of the journal", "Second of the journal", "Third of the journal"):
            mesh.add(text)
        shutil.copytree(folder, stores / "b.json")  # closing writes the journal into the files
    edited(
        stores / "b.json" / JOURNAL,
        lambda lines: [line.replace(b"Second", b"Secomd") for line in lines],
    )
    done = repair_store(url(stores / "b.json"))
    assert (done.saved["memory"], done.lost["changes of the journal"]) == (COUNT + 2, 1)
    edited(stores / "b.json" / JOURNAL, lambda lines: [b"x" * 50 + b"\n", *lines[1:]])
    assert repair_store(url(stores / "b.json"), to=stores / "c.json").saved["memory"] == COUNT + 2


# --- what is not repaired ---


def test_a_sound_store_is_not_touched(stores: Path) -> None:
    before = snapshot(stores)
    for name in ("a.db", "a.json"):
        assert repair_store(url(stores / name)) == Repaired(file=str(stores / name))
    assert snapshot(stores) == before


def test_what_is_newer_foreign_missing_or_in_the_way_is_refused(stores: Path) -> None:
    with closing(sqlite3.connect(stores / "newer.db")) as connection:
        connection.executescript(
            "CREATE TABLE mesh_meta (key TEXT PRIMARY KEY, value TEXT); INSERT INTO mesh_meta "
            "VALUES ('schema', 99)"
        )
    foreign_file(stores / "other.db", "its tables")
    for name, error in (
        ("newer.db", StoreTooNew),
        ("other.db", StoreForeign),
        ("none.db", StoreMissing),
    ):
        with pytest.raises(error):
            repair_store(url(stores / name))
    with pytest.raises(InvalidInput, match="no files to repair"):
        repair_store("memory://")
    (stores / "a.db").write_bytes((stores / "a.db").read_bytes()[:-3000])
    (stores / "a.repaired.db").write_text("mine")
    with pytest.raises(InvalidInput, match=r"exists; .*--to"):
        repair_store(url(stores / "a.db"))
    assert (stores / "a.repaired.db").read_text() == "mine"


# --- any damage ---


def damaged(target: Path, chance: random.Random) -> None:
    """Flip a bit of a file, cut it, or overwrite a part of it."""
    files = (
        [target]
        if target.is_file()
        else sorted(path for path in target.rglob("*") if path.is_file() and path.stat().st_size)
    )
    file = chance.choice(files)
    data = bytearray(file.read_bytes())
    at = chance.randrange(len(data))
    match chance.randrange(3):
        case 0:
            data[at] ^= 1 << chance.randrange(8)
        case 1:
            del data[at:]
        case _:
            data[at : at + 1024] = bytes(min(1024, len(data) - at))
    file.write_bytes(data)


@pytest.mark.deep
@pytest.mark.parametrize("name", ["a.db", "a.json", "a.lance"])
def test_any_damage_is_repaired_or_refused_and_never_made_worse(
    name: str, whole: Path, tmp_path: Path
) -> None:
    if not (whole / name).exists():
        fill(whole / name)
    saved = []
    for seed in range(15 if name == "a.lance" else 60):
        folder = tmp_path / str(seed)
        folder.mkdir()
        copy = shutil.copytree if (whole / name).is_dir() else shutil.copy
        copy(whole / name, folder / name)
        damaged(folder / name, random.Random(seed))  # noqa: S311
        before = snapshot(folder)
        try:
            done = repair_store(url(folder / name))
        except StoreCorrupt:
            assert snapshot(folder) == before, seed
            continue
        after = snapshot(folder)
        assert {path: after[path][2] for path in before} == {
            path: kept[2] for path, kept in before.items()
        }, seed
        assert {Path(path).parts[0] for path in after} <= {
            name,
            f"a.repaired{Path(name).suffix}",
        }, seed
        if done.new and done.saved.get("memory"):
            saved.append(done.saved["memory"])
            assert_usable(done)
        shutil.rmtree(folder)
    assert len(saved) > 3
    assert sum(saved) / len(saved) > COUNT * 0.7
