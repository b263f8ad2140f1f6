"""Everything that memory-mesh creates is for its owner only: a tour of the faces and commands,
then every file is looked at."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from stat import S_IMODE

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.interfaces.cli.main import run

pytestmark = pytest.mark.deep
STORES = ("memory.db", "memory.json", "memory.lance")
COMMANDS = (
    "lane store --type decision 'We deploy on Mondays'",
    (
        "notes add 'Stale locks' --content 'Remove the lock file when the build stops.' --when "
        "'build fails'"
    ),
    "notes sync",
    "trace record --goal 'Create a plot' --status success",
    "trace archive",
    "export --out made/all.jsonl --all",
    "audit export --out made/audit.jsonl",
    "audit anchor --to made/anchors.txt",
    "backup made/backup{suffix}",
    "restore made/backup{suffix} --store made/restored{suffix}",
    "copy --from data/{store} --to made/copy.json",
    "eval --count 2 --html made/report.html",
    "token create ci",
    "config trust .",
    "init .",
    "heartbeat --force",
    "compact",
)
MADE = {
    "made/all.jsonl", "made/audit.jsonl", "made/anchors.txt", "made/report.html", "made/copy.json",
    "home/of/tokens.json", "home/of/trusted", "home/of/pseudonym.key", ".claude/settings.json",
}  # fmt: skip


@pytest.fixture(params=[0o000, 0o022])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: None) -> Path:
    """A folder of work in which only a project file and a report were before."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "memory-mesh.toml").write_text('agent_id = "ann"\n')
    (work / "report.txt").write_text(
        "The build failed because the lock file was stale; we removed it.\n"
    )
    monkeypatch.chdir(work)
    for name in [name for name in os.environ if name.startswith("MEMORY_MESH_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MEMORY_MESH_HOME", str(work / "home" / "of"))
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "hash")
    monkeypatch.setenv("MEMORY_MESH_REDACTION", "pseudonym")
    monkeypatch.setenv("MEMORY_MESH_NOTES_DIR", "notes")
    monkeypatch.setenv("MEMORY_MESH_WRITETHROUGH", str(work / "hooks"))
    return work


def open_to_others(folder: Path, before: set[Path]) -> dict[str, str]:
    """Return the mode of each file and folder that is new and that others could read, write or
    enter."""
    return {
        str(path.relative_to(folder)): oct(S_IMODE(path.lstat().st_mode))
        for path in folder.rglob("*")
        if path not in before and not path.is_symlink() and S_IMODE(path.lstat().st_mode) & 0o077
    }


def use(mesh: MemoryMesh) -> None:
    """Write enough for an index on disk, erase, and fill the caches."""
    mesh.add_many(
        [(f"The shelf of ann@example.org holds book{number}", None) for number in range(1000)]
    )
    mesh.erase(mesh.add("gone").id)
    mesh.search("book7")


@pytest.mark.parametrize("store", STORES)
def test_whatever_is_created_is_for_its_owner_only(
    work: Path, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "made").mkdir(0o700)
    before, suffix = set(work.rglob("*")), Path(store).suffix
    monkeypatch.setenv("MEMORY_MESH_STORE", str(work / "data" / store))
    with MemoryMesh() as mesh:
        use(mesh)
        assert open_to_others(work, before) == {}  # while it is open: the log of SQLite
    lines = [
        [word.format(suffix=suffix, store=store) for word in shlex.split(line)] for line in COMMANDS
    ]
    assert {" ".join(words): code for words in lines if (code := run(words))} == {}
    made = {path.relative_to(work).as_posix() for path in work.rglob("*") if path not in before}
    assert made >= MADE | {f"data/{store}", f"made/backup{suffix}", f"made/restored{suffix}"}
    assert {name for name in made if name.startswith(("home/of/traces/", "notes/", "hooks/"))}
    assert open_to_others(work, before) == {}
    loose = work / "data" / "loose"
    loose.touch()
    loose.chmod(0o644)
    assert open_to_others(work, before) == {"data/loose": "0o644"}
