"""The commands of notes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.interfaces.cli import handlers
from memory_mesh.interfaces.render.output import Form
from memory_mesh.interfaces.values import Call
from memory_mesh.interfaces.verbs import COMMANDS
from stores.files import snapshot

ADD = (
    "notes",
    "add",
    "Login rules",
    "--content",
    "Sessions end after **fifteen** minutes.",
    "--when",
    "login",
    "--when",
    "auth",
)


@pytest.mark.req("NOTE-38")
def test_a_shell_script_adds_lists_matches_and_injects(cli):
    said = cli(*ADD, "--importance", "high", "--tag", "auth", "--discovered-at", "2020-01-01")
    assert (said.code, said.out) == (0, "[MemoryMesh] Added to login-rules.md (a new file)\n")
    assert "Added to login-rules.md, section 1" in cli(*ADD).out
    assert cli("notes", "list").out.splitlines() == [
        "[MemoryMesh] 2 notes", "login-rules.md#0  high    Login rules",
        "login-rules.md#1  medium  Login rules",
    ]  # fmt: skip
    assert cli("notes", "match", "add", "a", "login").out.splitlines() == [
        "[MemoryMesh] 2 notes matched", "30  login-rules.md#0: Login rules",
        "    by 'login'; importance 25, keyword 5", "30  login-rules.md#1: Login rules",
        "    by 'login'; importance 15, recency 10, keyword 5",
    ]  # fmt: skip
    block = cli("notes", "inject", "add a login", "--limit", "1").out
    assert block.startswith(
        "## Background Knowledge from Previous Runs\n\n### Login rules\n*Importance: HIGH*\n"
    )
    assert cli("notes", "inject", "paint the door").out == ""
    cli("notes", "add", "Old", "--content", "Text.", "--when", "x", "--valid-until", "2020-01-01")
    assert cli("notes", "list").out.endswith("Old (until 2020-01-01)\n")
    found = cli("search", "session minutes").out
    assert ("fifteen" in found, "Type: global | Source: login-rules.md\n" in found) == (True, True)
    assert (
        cli("notes", "sync").out
        == "[MemoryMesh] Notes: 0 added, 0 updated, 0 moved, 0 archived, 2 unchanged\n"
    )


def test_a_title_and_a_text_are_enough_to_add_a_note(cli):
    assert cli("notes", "add", "Login rules", "--content", "Sessions end.").code == 0
    assert cli("notes", "lint").code == 0
    assert "Sessions end." in cli("notes", "inject", "check the rules of the login").out


def test_every_command_answers_as_json(cli):
    assert json.loads(cli(*ADD, "--json").out) == {
        "file": "login-rules.md",
        "section": 0,
        "created": True,
    }
    assert json.loads(cli("notes", "list", "--json").out)["results"][0]["when_to_use"] == [
        "login",
        "auth",
    ]
    assert json.loads(cli("notes", "match", "login", "--json").out)["results"][0]["score"] == 30
    assert json.loads(cli("notes", "inject", "login", "--json").out)["prompt"].startswith(
        "## Background"
    )
    assert json.loads(cli("notes", "lint", "--json").out) == {"count": 0, "results": []}
    assert json.loads(cli("notes", "sync", "--json").out)["unchanged"] == 1


@pytest.mark.req("NOTE-10")
def test_lint_exits_with_1_if_a_note_cannot_be_used(cli):
    cli(*ADD)
    assert cli("notes", "lint").code == 0
    folder = Path(".rawko/memories")
    (folder / "Wrong_Name.md").write_text((folder / "login-rules.md").read_text())
    assert cli("notes", "lint").code == 0  # warnings only
    (folder / "no.md").write_text("# Hello")
    said = cli("notes", "lint")
    assert (said.code, said.err) == (1, "")
    assert said.out.splitlines()[0] == "[MemoryMesh] 1 fault, 2 warnings"
    assert any(
        line.startswith("no.md:1: there is no frontmatter; expected ---")
        for line in said.out.splitlines()
    )
    assert "1 fault, see memory-mesh notes lint" in cli("notes", "list").out
    assert "1 fault, see memory-mesh notes lint" in cli("notes", "sync").out


@pytest.mark.req("NOTE-10")
def test_lint_names_file_and_line_of_all_that_is_broken_and_rewrites_nothing(
    cli, tmp_path: Path, monkeypatch
) -> None:
    cli(*ADD)
    folder = Path(".rawko/memories")
    good = (folder / "login-rules.md").read_text()
    (tmp_path / "outside.md").write_text(good)
    texts = {
        "a-missing.md": "Just text.",
        "b-wrong.md": good.replace("importance: medium", "importance: urgent"),
        "c-yaml.md": good.replace("tags: []", "tags: [a"), "d-twice.md": good,
        "e-large.md": good + "x" * 5_000_000,
        "f-second.md": good + "\n\n---\n\n"
        + good.replace("discoveredBy", "by").replace("Login", "Other"),
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "g-out.md").symlink_to(tmp_path / "outside.md")
    (folder / "h-broken.md").symlink_to("none.md")
    (folder / "closed").mkdir()
    before = snapshot(folder)
    said = cli("notes", "lint")
    assert (said.code, said.err) == (1, "")
    assert [line.partition(";")[0] for line in said.out.splitlines()] == [
        "[MemoryMesh] 7 faults, 2 warnings",
        "a-missing.md:1: there is no frontmatter",
        "b-wrong.md:1: importance is 'urgent'",
        "c-yaml.md:1: the frontmatter is not valid YAML, line 7",
        f"e-large.md: it has {len(good) + 5_000_000:,} bytes",
        "f-second.md:1: warning: the title is also that of d-twice.md, line 1",
        "f-second.md:17: discoveredBy missing in the frontmatter",
        "g-out.md: it leads out of the folder",
        "h-broken.md: it is a broken link: No such file or directory",
        "login-rules.md:1: warning: the title is also that of d-twice.md, line 1",
    ]
    assert snapshot(folder) == before
    assert "3 notes" in cli("notes", "list").out

    def closed(path: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", closed)
        said = cli("notes", "lint")
    assert (said.code, "cannot be read: Permission denied" in said.out) == (1, True)
    assert "3 notes" in cli("notes", "list").out


def test_a_wrong_note_is_refused_without_a_trace(cli):
    said = cli("notes", "add", "Title", "--content", " ", "--when", "x")
    assert (said.code, said.err) == (2, "[MemoryMesh Error] content is blank; expected some text\n")
    assert not Path(".rawko").exists()


@pytest.mark.req("NOTE-02")
def test_deleting_says_what_is_still_in_a_file(cli):
    cli(*ADD)
    cli("notes", "add", "Token rules", "--content", "One hour.", "--when", "token")
    path = Path(".rawko/memories/login-rules.md")
    path.write_text(path.read_text().replace("fifteen", "twenty"))
    cli("notes", "sync")
    ids = {
        one["metadata"]["title"]: one["id"]
        for one in json.loads(cli("list", "--json").out)["results"]
    }
    said = cli("delete", ids["Token rules"]).out.splitlines()
    assert said[1] == (
        f"[MemoryMesh] Removed the note {path.resolve().with_name('token-rules.md')}#0 "
        "from its file"
    )
    said = cli("delete", ids["Login rules"]).out.splitlines()
    assert said[1] == (
        f"The note {path.resolve()}#0 is still in its file: `memory-mesh forget ID --files` "
        "removes it, and of a user `forget --user NAME --files`."
    )
    assert "Removed the note" in cli("delete", ids["Login rules"], "--files").out
    assert list(path.parent.glob("*.md")) == []


def test_what_people_keep_for_coding_agents_is_imported(cli) -> None:
    assert (
        cli("notes", "import").out.splitlines()[1].startswith("There is no CLAUDE.md, AGENTS.md,")
    )
    Path("CLAUDE.md").write_text("# Packages\nUse pnpm.\n")
    Path("AGENTS.md").write_text("# Packages\nUse pnpm.\n")
    Path("skills/deploy").mkdir(parents=True)
    Path("skills/deploy/SKILL.md").write_text(
        "---\nname: deploy\ndescription: Deploy.\n---\nRun it.\n"
    )
    said = cli("notes", "import")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        "[MemoryMesh] Imported 1 file: 1 added, 0 updated, 0 moved, 0 archived, 0 unchanged",
        "AGENTS.md", f"{Path('skills').resolve()}: 1 skill added, 0 updated, 0 unchanged",
        "CLAUDE.md:1: warning: it has the same text as AGENTS.md, and is left out",
    ]  # fmt: skip
    Path("broken.mdc").write_text("---\nalwaysApply: perhaps\n---\nText.\n")
    said = cli("notes", "import", "broken.mdc", "--json")
    assert (said.code, json.loads(said.out)["sections"]["unchanged"]) == (1, 1)
    assert (
        json.loads(said.err)["what"]
        == "broken.mdc:1: alwaysApply is 'perhaps'; expected true or false"
    )
    said = cli("notes", "import", "..")
    assert (said.code, "is outside the project" in said.err) == (2, True)
    (found,) = json.loads(cli("list", "--json").out)["results"]
    assert (
        "is still in its file: edit the file by hand." in cli("delete", found["id"], "--files").out
    )


# --- watch ---


class Enough(Exception):
    """Ends a watch, as Ctrl-C does."""


def watched(
    capsys: pytest.CaptureFixture[str], steps: list[Callable[[], object]], form: Form = Form.TEXT
) -> list[str]:
    """The lines of a watch during whose pauses these steps happen."""
    waiting = iter(steps)

    def pause(seconds: float) -> None:
        assert seconds == 7
        if (step := next(waiting, None)) is None:
            raise Enough
        step()

    (operation,) = COMMANDS["notes watch"]
    call = Call(operation=operation, arguments={"every": 7}, form=form)
    with MemoryMesh("memory://", embedder="none") as mesh, pytest.raises(Enough):
        handlers.follow_notes(mesh, call, pause=pause)
    return capsys.readouterr().out.splitlines()


@pytest.mark.req("NOTE-12")
def test_a_watch_takes_over_what_people_change_and_shows_each_change_once(
    cli, capsys: pytest.CaptureFixture[str]
) -> None:
    cli(*ADD)
    path = Path(".rawko/memories/login-rules.md")
    text, other = path.read_text(), path.with_name("session.md")
    steps: list[Callable[[], object]] = [
        lambda: path.write_text(text.replace("fifteen", "twenty")), lambda: None,
        lambda: path.rename(other), other.unlink, lambda: path.write_text("# Hello"),
        lambda: path.write_text("# Hello, again"),
    ]  # fmt: skip
    counts = "[MemoryMesh] Notes: {} added, {} updated, {} moved, {} archived, {} unchanged{}"
    assert watched(capsys, steps) == [
        counts.format(1, 0, 0, 0, 0, " (login-rules.md)"),
        counts.format(0, 1, 0, 0, 0, " (login-rules.md)"),
        counts.format(0, 0, 1, 0, 0, " (session.md)"),
        counts.format(0, 0, 0, 1, 0, " (session.md)"),
        counts.format(0, 0, 0, 0, 0, "; 1 fault, see memory-mesh notes lint"),
    ]  # fmt: skip
    path.write_text(text)
    first, second = map(
        json.loads, watched(capsys, [lambda: path.write_text(text + "More.\n")], Form.JSON)
    )
    assert (first["added"], second["updated"], second["files"]) == (1, 1, ["login-rules.md"])


@pytest.mark.deep
def test_a_watch_ends_with_130_when_it_is_interrupted(home: Path) -> None:
    main = "from memory_mesh.interfaces.cli.main import main; main()"
    hearing = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {main}"
    words = [sys.executable, "-c", hearing, "notes", "watch", "--json"]
    with subprocess.Popen(
        words, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stderr
        assert json.loads(process.stdout.readline())["unchanged"] == 0
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == "[MemoryMesh Error] interrupted\n"
    assert process.returncode == 130
