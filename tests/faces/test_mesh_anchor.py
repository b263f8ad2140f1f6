"""Anchors: heads written outside the store find an older copy of it, and are written nowhere
else than they should be."""

import json
import os
import shutil
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core import audit
from memory_mesh.core.audit import Broken, Sound
from memory_mesh.core.errors import CallError, InvalidInput, MemoryMeshError, SettingsError
from memory_mesh.core.model import Key, Kind, iso
from memory_mesh.flows.audit.chains import audit_rows, blocks, new_entry


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMORY_MESH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[MemoryMesh]:
    with MemoryMesh(
        store=f"sqlite:///{tmp_path / 'memory.db'}",
        agent_id="ann",
        audit_anchor=str(tmp_path / "auto"),
    ) as mesh:
        mesh.add("one")
        yield mesh


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "anchors"


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_an_anchor_is_one_line_with_every_head(mesh: MemoryMesh, file: Path) -> None:
    mesh.search("one")
    done = mesh.audit_anchor(file)
    mesh.audit_anchor(file)
    first, second = lines(file)
    assert (first["anchored_at"], first["heads"]) == (done.time, second["heads"])
    names = ("number", "block_hash", "seal", "key_id", "signature")
    assert first["heads"] == [
        {"chain": head.id, **{name: getattr(head, name) for name in names}} for head in done.heads
    ]
    assert all(head[name] for head in first["heads"] for name in names)  # type: ignore[union-attr]
    assert len(done.heads) == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.req("MESH-042")
def test_an_older_copy_of_the_store_put_back_is_found_by_an_anchor_only(
    mesh: MemoryMesh, file: Path, tmp_path: Path
) -> None:
    mesh.audit_anchor(file)
    mesh.close()
    shutil.copytree(tmp_path, tmp_path.with_name("copy"))
    mesh.add("two")
    mesh.audit_anchor(file)
    assert all(isinstance(one, Sound) for one in mesh.verify(anchor=file))
    mesh.close()
    for old in tmp_path.glob("memory.db*"):
        old.unlink()
    shutil.copy(tmp_path.with_name("copy") / "memory.db", tmp_path / "memory.db")
    (sound,) = mesh.verify()
    assert isinstance(sound, Sound)
    assert sound.signature.checked  # the old head has its own, valid signature
    (broken,) = mesh.verify(anchor=file)
    assert isinstance(broken, Broken)
    assert (broken.number, "an older copy of the store was put back" in broken.reason) == (2, True)
    mesh.add("another two")
    (broken,) = mesh.verify(anchor=file)
    assert isinstance(broken, Broken)
    assert (broken.number, broken.reason) == (2, "it is not the anchored block")


@pytest.mark.req("MESH-042")
def test_a_chain_that_is_gone_is_found(mesh: MemoryMesh, file: Path, tmp_path: Path) -> None:
    mesh.audit_anchor(file)
    with MemoryMesh(store=f"sqlite:///{tmp_path / 'new.db'}", agent_id="ann") as other:
        other.init()
        (broken,) = other.verify(anchor=file)
        assert isinstance(broken, Broken)


def test_searches_that_were_removed_in_time_are_no_break(mesh: MemoryMesh, file: Path) -> None:
    mesh.search("one")
    mesh.audit_anchor(file)
    context = mesh._context()
    from memory_mesh.flows.audit.audit import prune

    assert prune(context, older_than_days=0).removed == 1
    mesh.search("two")
    assert all(isinstance(one, Sound) for one in mesh.verify(anchor=file))
    mesh.audit_anchor(file)
    assert all(isinstance(one, Sound) for one in mesh.verify(anchor=file))


@pytest.mark.req("MESH-042")
def test_a_forged_checkpoint_does_not_stand_for_an_anchored_search(
    mesh: MemoryMesh, file: Path, tmp_path: Path
) -> None:
    """A program without the key removes the searches and their head, and pretends that they were
    old."""
    mesh.search("one")
    mesh.search("two")
    mesh.audit_anchor(file)
    assert all(isinstance(one, Sound) for one in mesh.verify(anchor=file))
    (head,) = mesh.audit_heads(recalls=True)
    context = mesh._context().with_files(signing=None)
    ms = context.clock()
    through = {
        "through": 2,
        "through_hash": head.block_hash,
        "through_seal": head.seal,
        "removed": 2,
    }
    write = partial(audit.checkpoint, agent="ann", at=iso(ms), **through)  # type: ignore[arg-type]
    entry = new_entry(context, "recall", ms, write)
    puts = audit_rows(context, head.id, [entry], head=head)
    context.store.apply(puts, [Key(Kind.BLOCK, block.id) for block in blocks(context, head.id)])
    (_, broken) = mesh.verify(anchor=file)
    assert isinstance(broken, Broken)
    with MemoryMesh(
        store=f"sqlite:///{tmp_path / 'memory.db'}",
        agent_id="ann",
        audit_key_file=str(tmp_path / "none"),
    ) as other:
        (_, sound) = other.verify()
        assert isinstance(sound, Sound)  # by itself it cannot be told without the key
        assert isinstance(other.verify(anchor=file)[1], Broken)


NOT_ANCHORS = (
    "",
    "{}\n",
    "no JSON\n",
    '{"heads": 7}\n',
    '{"heads": [7]}\n',
    '{"heads": [{"chain": "x"}]}\n',
    "\xff",
)


@pytest.mark.parametrize("text", NOT_ANCHORS)
def test_a_file_without_anchors_of_the_user_is_refused(
    mesh: MemoryMesh, file: Path, text: str
) -> None:
    file.write_text(text, encoding="latin-1")
    with pytest.raises(InvalidInput, match="anchors"):
        mesh.verify(anchor=file)


def test_a_missing_anchor_file_is_an_error_and_a_url_cannot_be_read(
    mesh: MemoryMesh, file: Path
) -> None:
    for target in (file, "https://example.com/anchors"):
        with pytest.raises(InvalidInput):
            mesh.verify(anchor=target)
    assert not file.exists()


# --- where anchors are not written ---


def test_an_anchor_never_changes_another_file(mesh: MemoryMesh, tmp_path: Path, home: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "link").symlink_to(tmp_path / "memory.db")
    os.mkfifo(tmp_path / "pipe")
    targets = (
        "memory.db",
        "memory.db-wal",
        "memory.db-journal",
        "link",
        "notes.txt",
        "folder",
        "nowhere",
        "pipe",
        "no/folder",
    )
    before = {
        path: path.read_bytes()
        for path in (*tmp_path.glob("memory.db*[!m]"), home / "audit.key", tmp_path / "notes.txt")
    }
    for target in (*targets, "home/audit.key"):
        with pytest.raises(InvalidInput, match="cannot be written"):
            mesh.audit_anchor(target)
    assert {path: path.read_bytes() for path in before} == before
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/x",
        "http://169.254.169.254/x",
        "ftp://example.com/x",
        "https://u:p@example.com/",
    ],
)
def test_an_anchor_is_sent_to_no_unsafe_address(mesh: MemoryMesh, url: str) -> None:
    with pytest.raises((SettingsError, CallError)):
        mesh.audit_anchor(url)


def test_without_a_target_nothing_is_written(tmp_path: Path) -> None:
    with MemoryMesh(store=f"sqlite:///{tmp_path / 'memory.db'}") as mesh:
        mesh.init()
        with pytest.raises(InvalidInput, match="no target"):
            mesh.audit_anchor()
        with pytest.raises(InvalidInput, match="no chains"):
            mesh.audit_anchor("anchors")
        mesh.heartbeat(force=True)
    assert not (tmp_path / "anchors").exists()


# --- on a schedule ---


def test_the_heartbeat_anchors_when_heads_have_moved(mesh: MemoryMesh, tmp_path: Path) -> None:
    def beat() -> str:
        run = next(
            run for run in mesh.heartbeat(jobs=["anchor"], force=True).runs if run.job == "anchor"
        )
        assert run.ok
        return run.detail

    assert beat() == "1 heads anchored"
    assert beat() == "no chain has grown since the last anchor"
    mesh.add("two")
    assert beat() == "1 heads anchored"
    assert len(lines(tmp_path / "auto")) == 2


def test_a_target_that_fails_is_a_failed_job_and_is_tried_again(
    mesh: MemoryMesh, tmp_path: Path
) -> None:
    (tmp_path / "auto").mkdir()
    first = mesh.heartbeat(jobs=["anchor"])
    assert [(run.job, run.ok) for run in first.runs] == [("guard", True), ("anchor", False)]
    (tmp_path / "auto").rmdir()
    assert all(run.ok for run in mesh.heartbeat(jobs=["anchor"]).runs)
    assert len(lines(tmp_path / "auto")) == 1
    assert not isinstance(first, MemoryMeshError)
