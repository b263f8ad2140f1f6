"""`memory-mesh init`: the hooks of coding agents in a project."""

import json
import os
from pathlib import Path

import pytest

from memory_mesh.interfaces.hosts import EVENTS
from memory_mesh.interfaces.hosts.install import PLUGIN, SETTINGS, insert, remove

from .conftest import Cli

OTHER = '{"type": "command", "command": "say done"}'
# Settings as people write them; what is there must stay as it is, down to the last blank.
SETTINGS_OF_OTHERS = [
    '{"model": "opus"}',
    '{\n\t"permissions": {"allow": ["Bash(ls)", "Read"]},\n\t"model":"opus"\n}\n\n',
    '{\r\n    "env": {"A": "ü \\u00fc"}\r\n}',
    (
        f'{{\n  "hooks": {{\n    "Stop": [{{"hooks": [{OTHER}]}}],\n    "PreToolUse": []\n  }},\n'
        f'  "n": 1.50\n}}\n'
    ),
    '{ "hooks": { "SessionStart": [ {"matcher": "clear", "hooks": []} ] , "Other": [] } }',
    '{"hooks": {"a": []}, "b": 1, "hooks": {"Notification": []}}',
]


def commands(folder: Path) -> list[str]:
    """The commands of all hooks of Claude Code."""
    groups = json.loads((folder / SETTINGS).read_text())["hooks"].values()
    return [hook["command"] for group in groups for one in group for hook in one["hooks"]]


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


@pytest.mark.req("LANE-34")
def test_init_writes_both_hosts_once_and_remove_leaves_nothing(cli: Cli, tmp_path: Path) -> None:
    first = cli("init")
    assert (first.code, first.out.count("\n+ ")) == (0, 5)
    assert commands(tmp_path) == [
        f"memory-mesh host claude-code {word}" for word in EVENTS.values()
    ]
    assert "export const MemoryMesh" in (tmp_path / PLUGIN).read_text()
    before = {
        file: (file.read_bytes(), file.stat().st_mtime_ns)
        for file in (tmp_path / SETTINGS, tmp_path / PLUGIN)
    }
    again = cli("init")
    assert (again.code, again.out.count("\n= "), "+ " in again.out) == (0, 5, False)
    assert {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in before} == before
    removed = cli("init", "--remove")
    assert (removed.code, removed.out.count("\n- ")) == (0, 5)
    assert not list(tmp_path.glob(".*"))
    assert cli("init", "--remove").out == "[MemoryMesh] Nothing to do\n"


def test_a_dry_run_shows_the_same_and_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    shown = cli("init", "--dry-run", "--json")
    assert not list(tmp_path.glob(".*"))
    done = cli("init", "--json")
    assert json.loads(shown.out)["results"] == json.loads(done.out)["results"]
    files = {path: path.read_bytes() for path in tmp_path.rglob(".*/**/*") if path.is_file()}
    cli("init", "--remove", "--dry-run")
    assert {path: path.read_bytes() for path in files} == files


@pytest.mark.parametrize("host", ["claude-code", "opencode"])
def test_one_host_is_written_and_removed_without_the_other(
    cli: Cli, tmp_path: Path, host: str
) -> None:
    cli("init", "--host", host)
    assert [(tmp_path / name).exists() for name in (SETTINGS, PLUGIN)] == [
        host == "claude-code",
        host == "opencode",
    ]
    cli("init")
    cli("init", "--remove", "--host", host)
    assert [(tmp_path / name).exists() for name in (SETTINGS, PLUGIN)] == [
        host != "claude-code",
        host != "opencode",
    ]


@pytest.mark.parametrize("text", SETTINGS_OF_OTHERS)
def test_what_others_wrote_into_the_settings_stays_byte_by_byte(
    cli: Cli, tmp_path: Path, text: str
) -> None:
    file = write(tmp_path / SETTINGS, text)
    file.chmod(0o640)
    cli("init", "--host", "claude-code")
    assert all(
        f"memory-mesh host claude-code {word}" in commands(tmp_path) for word in EVENTS.values()
    )
    new, old = json.loads(file.read_text()), json.loads(text)
    for event in EVENTS:
        new["hooks"][event] = new["hooks"][event][:-1]
        if event not in old.get("hooks", {}):
            del new["hooks"][event]
    assert {**new, "hooks": new["hooks"]} == {**old, "hooks": old.get("hooks", {})}
    assert file.stat().st_mode & 0o777 == 0o640
    cli("init", "--remove")
    assert file.read_bytes().decode() == text


@pytest.mark.req("LANE-34")
def test_remove_takes_nothing_that_init_did_not_write(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / ".opencode" / "plugin").mkdir(parents=True)
    for text in ("{}", "", " \n", '{"hooks": {}}'):
        file = write(tmp_path / SETTINGS, text)
        assert cli("init", "--remove").out == "[MemoryMesh] Nothing to do\n"
        assert file.exists()
        assert file.read_text() == text
        cli("init")
        assert len(commands(tmp_path)) == 4
        cli("init", "--remove")
    file.parent.mkdir()
    cli("init", "--remove")
    assert file.parent.exists()


def test_a_hook_changed_by_hand_is_not_written_again_and_not_removed(
    cli: Cli, tmp_path: Path
) -> None:
    cli("init", "--host", "claude-code")
    file = tmp_path / SETTINGS
    changed = file.read_text().replace("claude-code stop", "claude-code stop --agent me")
    file.write_text(changed)
    assert (
        "Stop: memory-mesh host claude-code stop (changed by hand)"
        in cli("init", "--host", "claude-code").out
    )
    assert file.read_text() == changed
    removed = cli("init", "--remove")
    assert (removed.code, commands(tmp_path)) == (
        1,
        ["memory-mesh host claude-code stop --agent me"],
    )
    assert "! .claude/settings.json  Stop:" in removed.out


def test_our_hook_is_removed_from_a_group_of_others(cli: Cli, tmp_path: Path) -> None:
    cli("init", "--host", "claude-code")
    file = tmp_path / SETTINGS
    settings = json.loads(file.read_text())
    settings["hooks"]["Stop"][0]["hooks"].insert(0, json.loads(OTHER))
    file.write_text(json.dumps(settings))
    cli("init", "--remove")
    assert json.loads(file.read_text()) == {"hooks": {"Stop": [{"hooks": [json.loads(OTHER)]}]}}


@pytest.mark.req("LANE-34")
@pytest.mark.parametrize("text", ["// mine\n", "changed"])
def test_a_plugin_that_is_not_as_we_wrote_it_is_left_and_named(
    cli: Cli, tmp_path: Path, text: str
) -> None:
    cli("init", "--host", "opencode")
    file = tmp_path / PLUGIN
    file.write_text(text if text != "changed" else file.read_text() + "// mine\n")
    before = file.read_bytes()
    for words in (("init",), ("init", "--remove")):
        said = cli(*words, "--host", "opencode")
        assert (said.code, said.out.count("! .opencode/plugin/memory-mesh.js")) == (1, 1)
    assert file.read_bytes() == before


def test_the_plugin_of_another_version_is_replaced(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hashlib import sha256

    old = "export const Old = 1\n"
    file = write(
        tmp_path / PLUGIN,
        f"// Written by memory-mesh init; sha256 {sha256(old.encode()).hexdigest()}\n{old}",
    )
    assert "~ .opencode/plugin/memory-mesh.js" in cli("init", "--host", "opencode").out
    assert "Old" not in file.read_text()


BROKEN = ['{"hooks": ', "[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}', "// a comment\n{}"]


@pytest.mark.parametrize("text", [*BROKEN, b"\xff"])
def test_settings_that_cannot_be_read_are_an_error_and_nothing_is_written(
    cli: Cli, tmp_path: Path, text: str | bytes
) -> None:
    file = write(tmp_path / SETTINGS, "")
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    for words in (("init",), ("init", "--remove")):
        said = cli(*words)
        assert said.code == 2
        assert ".claude/settings.json" in said.err
        assert "nothing was changed" in said.err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]


def test_a_link_out_of_the_project_is_refused(cli: Cli, tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", write(tmp_path / "elsewhere.json", "{}")
    (project / ".claude").mkdir(parents=True)
    (project / SETTINGS).symlink_to(elsewhere)
    said = cli("init", str(project))
    assert (said.code, "leads out of the project" in said.err, elsewhere.read_text()) == (
        2,
        True,
        "{}",
    )
    (project / SETTINGS).unlink()
    (project / SETTINGS).symlink_to(write(project / "real.json", "{}"))
    for words in ([], ["--remove"], []):  # removing leaves the link, which then leads to no file
        assert cli("init", str(project), *words).code == 0
        assert (project / SETTINGS).is_symlink()
    assert "memory-mesh host" in (project / "real.json").read_text()


def test_a_folder_that_is_missing_or_cannot_be_written_is_an_error(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "is not a folder" in cli("init", "missing").err

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    file = write(tmp_path / SETTINGS, "{}")
    monkeypatch.setattr(os, "replace", full)
    assert "No space left on device" in cli("init").err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]
    assert file.read_text() == "{}"


def test_items_are_inserted_and_removed_at_any_place() -> None:
    text = '{"a": [1, 2], "b": {}}'
    assert json.loads(insert(text, ("a", 2), [3])) == {"a": [1, 2, [3]], "b": {}}
    assert json.loads(insert(text, ("b", 'x"y'), {"z": "{"})) == {
        "a": [1, 2],
        "b": {'x"y': {"z": "{"}},
    }
    for place, expected in (
        (("a", 0), {"a": [2], "b": {}}),
        (("a", 1), {"a": [1], "b": {}}),
        (("b",), {"a": [1, 2]}),
    ):
        assert json.loads(remove(text, place)) == expected
    assert remove('{\n "a": {"b": [1]}\n}', ("a", "b", 0)) == "{}"
