"""A pipe, a device, a folder or a loop of links where a file is expected: one line of error, and
nothing is waited for."""

import io
import json
import os
import sys
from pathlib import Path

import pytest

from memory_mesh import InvalidInput, MemoryMesh
from memory_mesh.system import open_regular

from .conftest import Cli

REASONS = {
    "pipe": "not a regular file", "device": "not a regular file",
    "link to a device": "not a regular file", "folder": "Is a directory",
    "loop": "Too many levels of symbolic links",
}  # fmt: skip
COMMANDS = {
    "import": ["import", "{}"],
    "import as a format": ["import", "{}", "--format", "mem0"],
    "restore": ["restore", "{}"],
    "store --messages": ["store", "--messages", "{}"],
    "ingest-skill --file": ["ingest-skill", "--file", "{}"],
    "eval --questions": ["eval", "--questions", "{}"],
    "audit verify --file": ["audit", "verify", "--file", "{}"],
    "audit verify --anchor": ["audit", "verify", "--anchor", "{}"],
    "audit anchor": ["audit", "anchor", "--to", "{}"],
    "notes import": ["notes", "import", "{}"],
    "config trust": ["config", "trust", "{}"],
}
# Some commands refuse a path before they look at the file.
REFUSED_BEFORE = (
    "is outside the project",
    "it leads out of the folder",
    "Not a directory",
    "it is a link to a file that does not exist",
)
A_FOLDER_IS_FINE = (
    "import",
    "import as a format",
    "restore",
    "ingest-skill --file",
    "notes import",
    "config trust",
)


def made(kind: str, path: Path) -> Path:
    """Create what is no regular file at a path, which may end in a name that a command asks for."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "link to a device":
        path.symlink_to("/dev/zero")
    return Path("/dev/zero") if kind == "device" else path


@pytest.mark.parametrize("kind", REASONS)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.sample(99)
def test_a_command_refuses_what_is_no_file_in_one_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, command: str
) -> None:
    if kind == "folder" and command in A_FOLDER_IS_FINE:
        return
    monkeypatch.setenv("MEMORY_MESH_NOTES_DIR", str(tmp_path / "notes"))
    cli("store", "The deploy key rotates on Mondays.")
    file = made(
        kind, tmp_path / "odd" / ("memory-mesh.toml" if command == "config trust" else "odd.md")
    )
    said = cli(*(word.format(file) for word in COMMANDS[command]))
    assert said.code != 0
    assert len(said.err.splitlines()) == 1
    assert any(reason in said.err for reason in (REASONS[kind], *REFUSED_BEFORE))
    assert json.loads(cli("stats", "--json").out)["total_memories"] == 1


NOT_A_STORE = {
    "sqlite": "is not a regular file",
    "json": "is a file; expected a folder",
    "lancedb": "is not a folder of LanceDB",
}
USES = (
    ["search", "tea"], ["stats"], ["audit", "verify"], ["store", "Tea at five."],
    ["backup", "copy"], ["doctor", "--repair"],
)  # fmt: skip


@pytest.mark.parametrize("kind", ["pipe", "device", "link to a device"])
@pytest.mark.parametrize("scheme", NOT_A_STORE)
@pytest.mark.sample(99)
def test_a_pipe_or_a_device_in_place_of_a_store_is_refused_in_one_line(
    cli: Cli, tmp_path: Path, kind: str, scheme: str
) -> None:
    path = made(kind, tmp_path / "odd" / "memory")
    for words in USES:
        said = cli(*words, "--store", f"{scheme}:///{path}")
        assert (said.code, said.out) == (11, ""), (words, said)
        assert f"{path} {NOT_A_STORE[scheme]}" in said.err
        assert len(said.err.splitlines()) == 1
    doctor = cli("doctor", "--store", f"{scheme}:///{path}")
    assert doctor.code != 0
    assert NOT_A_STORE[scheme] in doctor.out
    assert "chmod" not in doctor.out, "nobody is told to change the permissions of a device"
    assert not (tmp_path / "copy").exists()
    assert [one.name for one in (tmp_path / "odd").iterdir()] == (
        [] if kind == "device" else ["memory"]
    )


@pytest.mark.parametrize("scheme", NOT_A_STORE)
def test_doctor_names_a_store_that_is_a_loop_of_links(
    cli: Cli, tmp_path: Path, scheme: str
) -> None:
    path = made("loop", tmp_path / "odd" / "memory")
    said = cli("doctor", "--store", f"{scheme}:///{path}")
    assert said.code != 0
    assert f"{path} is a link that leads nowhere" in said.out


def test_a_store_behind_a_link_to_a_regular_file_is_used(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to("memory.db")
    cli("store", "Tea at five.", "--store", f"sqlite:///{tmp_path / 'memory.db'}")
    (tmp_path / "memory.db").chmod(0o644)
    said = cli("search", "tea", "--store", f"sqlite:///{tmp_path / 'link.db'}")
    assert "Tea at five." in said.out
    assert "chmod go-rwx" in cli("doctor", "--store", f"sqlite:///{tmp_path / 'link.db'}").out


@pytest.mark.req("LANE-34")
@pytest.mark.parametrize("kind", REASONS)
@pytest.mark.sample(99)
def test_a_hook_refuses_such_a_transcript(
    cli: Cli, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    file = made(kind, tmp_path / "odd" / "session.jsonl")
    given = json.dumps({"session_id": "s1", "transcript_path": str(file), "cwd": str(tmp_path)})
    monkeypatch.setattr(sys, "stdin", io.StringIO(given))
    said = cli("host", "claude-code", "stop", "--wait")
    assert (said.code, said.out) == (0, "{}\n")
    assert REASONS[kind] in said.err
    assert len(said.err.splitlines()) == 1
    assert REASONS[kind] in (home / "host-fault.txt").read_text()


@pytest.mark.parametrize("kind", [kind for kind in REASONS if kind != "device"])
@pytest.mark.sample(99)
def test_a_repository_with_such_files_stops_no_command(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    project = tmp_path / "project"
    for name in (
        ".claude/settings.json",
        ".git",
        "graph/graph.json",
        "journal/journal.jsonl",
        "CLAUDE.md",
        "skill/SKILL.md",
    ):
        made(kind, project / name)
    monkeypatch.setenv("MEMORY_MESH_NOTES_DIR", str(tmp_path / "notes"))
    monkeypatch.chdir(project)
    for words in (
        ["init", "."],
        ["import", "graph"],
        ["import", "journal"],
        ["ingest-skill", "--file", "skill"],
    ):
        said = cli(*words)
        assert said.code != 0, words
        assert len(said.err.splitlines()) == 1, (words, said.err)
    monkeypatch.setattr(
        sys, "stdin", io.StringIO(json.dumps({"session_id": "s1", "cwd": str(project)}))
    )
    assert cli("host", "claude-code", "session-start").code == 0


@pytest.mark.parametrize("kind", ["pipe", "loop", "link to a device"])
def test_such_a_file_among_the_traces_is_named(tmp_path: Path, kind: str) -> None:
    with MemoryMesh("memory://", embedder="none", traces_dir=str(tmp_path / "traces")) as mesh:
        mesh.traces.record(goal="deploy the site", status="success", project="site")
        names = [
            file
            for file in (tmp_path / "traces").rglob("*")
            if file.is_file() and file.name != ".lock"
        ]
        assert len(names) >= 1
        for file in names:
            file.unlink()
            made(kind, file)
        with pytest.raises(
            InvalidInput, match=r"regular file|is a link|levels of symbolic|No such device"
        ):
            mesh.traces.record(goal="deploy the site again", status="success", project="site")


@pytest.mark.parametrize(
    "words",
    [["audit", "verify", "--file"], ["audit", "verify", "--anchor"], ["eval", "--questions"]],
)
def test_a_pipe_that_the_shell_has_opened_is_read(
    cli: Cli, tmp_path: Path, words: list[str]
) -> None:
    """`memory-mesh audit verify --file <(zcat export.gz)` gets the name of an open pipe."""
    cli("store", "The deploy key rotates on Mondays.")
    cli("audit", "anchor", "--to", str(tmp_path / "--anchor"))
    (tmp_path / "--file").write_text(cli("audit", "export").out)
    (tmp_path / "--questions").write_text(
        '{"question": "when does the deploy key rotate?", "expect": ["Mondays"]}\n'
    )
    there = cli(*words, str(tmp_path / words[-1]))
    assert there.code == 0, there.err
    reading, writing = os.pipe()
    os.write(writing, (tmp_path / words[-1]).read_bytes())
    os.close(writing)
    piped = cli(*words, f"/dev/fd/{reading}")
    os.close(reading)
    assert (piped.code, piped.err) == (0, there.err)


def test_a_regular_file_is_opened_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    with open_regular(tmp_path / "link") as file:
        assert file.read() == b"text"
    before = len(os.listdir("/dev/fd"))
    for kind in REASONS:
        with pytest.raises(OSError, match=REASONS[kind]):
            open_regular(made(kind, tmp_path / kind))
    assert len(os.listdir("/dev/fd")) == before  # none is left open
