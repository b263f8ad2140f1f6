"""Proving an erasure: every place is looked at before and after, and what is left is found."""

import gzip
import os
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh, markdown_writethrough
from memory_mesh.core.model import ErasureCheck, Forgotten
from memory_mesh.flows.upkeep import forget
from memory_mesh.models import HashingEmbedder

EVERYWHERE = {
    "memories and skills", "history", "passages and their vectors", "links and conflicts",
    "counters and sightings", "waiting events", "digests, reflections and lessons",
    "search by words and vectors", "cached search", "texts of rows and audit blocks", "export",
    "files of notes", "files of traces", "files of hooks",
    "bytes of the files of the store and its index",
}  # fmt: skip
NOT_HERE = {"waiting events", "files of notes", "files of traces", "files of hooks"}


class Narrow(HashingEmbedder):
    """As a real model: it sees the first words of a text only."""

    window = 128


def opened(tmp_path: Path, **options: object) -> MemoryMesh:
    return MemoryMesh(
        f"sqlite:///{tmp_path / 'memory.db'}", embedder=Narrow(), agent_id="ann", **options
    )


def fill(mesh: MemoryMesh) -> str:
    """A long memory with an older revision, a link, a sighting, uses and a reflection."""
    id_ = mesh.add("The quetzal nests in the cloud forest.", {"session_id": "walk"}).id
    mesh.update(
        id_,
        content="The quetzal nests above the river. "
        + "Its tail is described here at length. " * 60,
    )
    mesh.graph.link(id_, mesh.add("Another bird sings.").id, "related")
    mesh.scoped(agent_id="bob").add(mesh.get(id_).content)
    mesh.search("where does the quetzal nest?")
    mesh.reflect("quetzal", lookback=10)
    return id_


def places(check: ErasureCheck | None) -> dict[str, tuple[int, int]]:
    assert check is not None
    return {place.name: (place.before, place.after) for place in check.places}


@pytest.mark.req("MESH-011")
def test_every_place_is_looked_at_before_and_after(tmp_path: Path) -> None:
    with opened(tmp_path) as mesh:
        proof = mesh.erase(fill(mesh), verify=True)
        looked = places(proof.check)
        assert looked.keys() == EVERYWHERE
        assert {name for name, (before, _) in looked.items() if not before} == NOT_HERE
        assert {after for _, after in looked.values()} == {0}
        assert proof.check
        assert proof.check.clean
        assert proof.check.texts == proof.check.found_before > 1


@pytest.mark.req("MESH-011")
def test_what_an_erasure_leaves_is_found_in_every_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget, "delete", lambda *_, **__: Forgotten())
    with opened(tmp_path) as mesh:
        id_ = fill(mesh)
        check = mesh.erase(id_, verify=True).check
        looked = places(check)
        assert {
            name for name, (before, after) in looked.items() if after < before or not after
        } == NOT_HERE
        assert check
        assert not check.clean
        assert (id_, "cached search") in check.found
        assert any(place.startswith("memory.db") for _, place in check.found)


def test_words_of_another_memory_or_of_a_search_are_not_taken_for_what_was_erased(
    tmp_path: Path,
) -> None:
    with opened(tmp_path) as mesh:
        text = "The weather is fine today"
        erased, kept = mesh.add(text).id, mesh.add(f"{text}, says Ana").id
        check = mesh.erase(erased, verify=True).check
        assert check
        assert (check.shared, check.clean) == (1, True)
        assert mesh.get(kept)


def test_looking_writes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as mesh:
        id_ = mesh.add("The quetzal nests in the cloud forest.").id
        mesh.erase(id_, verify=True)
        assert {block.operation_type for block in mesh.audit_log(auditor="test")} == {"retain"}
        proof = mesh.erase("mem_1_ffffff", verify=True)
        assert (proof.memories, proof.check and proof.check.texts) == ((), 0)


# --- every file of notes, traces and hooks ---

SECRET = "The locker of Ana is number 4711"
NOTE = (
    "---\ntitle: Stand\nwhenToUse: stand\ntags: []\nimportance: high\n"
    "discoveredAt: 2026-01-23T10:30:00Z\ndiscoveredBy: ann\n---\n\nThe stand is in the hall.\n"
)
TRACES = "traces/users/*/projects/shop/memory"
# By the pattern of its folder: a file that people, a crash or a backup may leave.
COPIES = {
    "notes/copy.md": "notes/copy.md",
    "earlier/login.md": "earlier/login.md",
    "./CLAUDE.md": "CLAUDE.md",
    "top": f"{TRACES[:14]}/copy.md",
    "context": f"{TRACES[:-7]}/context.md",
    "learnings": f"{TRACES}/long_term/copy.md",
    "archive": f"{TRACES}/archive/old.md.gz",
    "log/2026-01-01.md": "log/2026-01-01.md",
    "log/2026-01-01.md.bak": "log/2026-01-01.md.bak",
    "memory.db-hooks/dead-letters.jsonl": "memory.db-hooks/dead-letters.jsonl",
}


def busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryMesh:
    """A mesh with notes in three folders, traces and a hook."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "CLAUDE.md").write_text("# Stand\nThe stand is in the hall.\n")
    for name in ("earlier", "notes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "login.md").write_text(NOTE)
        given = {"notes_dir": name, "traces_dir": "traces", "user_id": "ana", "project": "shop"}
        mesh = opened(tmp_path, **given, writethrough=[markdown_writethrough(tmp_path / "log")])
        mesh.notes.sync()
    mesh.notes.import_files()
    mesh.traces.record("Plot the sales")
    return mesh


def place_of(tmp_path: Path, pattern: str) -> Path:
    (folder,) = tmp_path.glob(str(Path(pattern).parent)) if "/" in pattern else (tmp_path,)
    return folder / Path(pattern).name


@pytest.mark.req("MESH-011")
@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("by", ["id", "agent_id"])
def test_the_check_looks_into_every_file_of_notes_traces_and_hooks_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, by: str
) -> None:
    with busy(tmp_path, monkeypatch) as mesh:
        for folder in (f"{TRACES}/long_term", f"{TRACES}/archive"):
            place_of(tmp_path, folder).mkdir(exist_ok=True)
        (tmp_path / "memory.db-hooks").mkdir(exist_ok=True)
        path = place_of(tmp_path, COPIES[name])
        for is_copied in (False, True):
            secret = mesh.scoped(agent_id="writer").add(f"{SECRET}.").id
            mesh.retry_hooks()
            if is_copied:
                text = path.read_bytes() if path.exists() else b""
                text += f'\n{{"cut": "{SECRET}.'.encode()
                path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
            given = {"agent_id": "writer"} if by == "agent_id" else {"id": secret}
            check = mesh.forget(**given, verify=True).check
            assert check
            assert (check.clean, check.unread) == (not is_copied, ())
            named = [place for id_, place in check.found if id_ == secret]
            assert [place.endswith(name if "/" in name else path.name) for place in named] == (
                [True] if is_copied else []
            )


@pytest.mark.req("MESH-011")
@pytest.mark.parametrize("name", ["notes/a.md", f"{TRACES}/a.md.gz", "log/2026-01-01.md"])
def test_a_file_that_cannot_be_read_is_named_and_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with busy(tmp_path, monkeypatch) as mesh:
        secret = mesh.add(f"{SECRET}.").id
        path = place_of(tmp_path, name)
        if path.suffix == ".gz":
            path.write_bytes(gzip.compress(os.urandom(900))[:-20])
        else:
            path.unlink(missing_ok=True)
            path.write_bytes(b" " * 1_000_001) if path.name == "a.md" else path.mkdir()
        path.with_name("2026-01-02.md").write_text(SECRET)
        check = mesh.forget(secret, verify=True).check
        assert check
        assert not check.clean
        assert [place.rpartition("/")[2] for place in check.unread] == [path.name]
        assert any("2026-01-02.md" in place for _, place in check.found)


@pytest.mark.req("MESH-011")
def test_the_delete_event_of_the_erasure_itself_is_not_found_as_a_rest(tmp_path: Path) -> None:
    def broken(event: object) -> None:
        raise ConnectionError

    with opened(tmp_path, writethrough=[broken]) as mesh:
        id_ = mesh.add("The quetzal nests in the cloud forest.").id
        check = mesh.forget(id_, verify=True).check
        assert places(check)["waiting events"] == (1, 0)
        assert check
        assert check.clean
        assert [hook.waiting for hook in mesh.hooks_status()] == [1]  # the hook still gets it
