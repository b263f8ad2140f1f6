"""The demo: every step is really checked, and a failed check is shown."""

import re
from pathlib import Path

from memory_mesh.flows.audit import audit
from memory_mesh.interfaces.cli.demo import SCENES
from memory_mesh.stores.sqlite import SqliteStore


def test_the_story_holds_and_leaves_nothing_behind(cli, home, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    said = cli("demo")
    assert (said.code, said.err) == (0, "")
    assert said.out.count("✓") == 20
    assert "✗" not in said.out
    assert re.findall(r"^(\d+)\. ", said.out, flags=re.MULTILINE) == [
        str(n) for n in range(1, len(SCENES) + 1)
    ]
    assert not home.exists()
    assert list(tmp_path.iterdir()) == []


def test_no_setting_of_the_user_reaches_the_story(cli, monkeypatch):
    for name, value in {
        "ENABLE_MEMORY": "false",
        "MAX_CONTENT_CHARS": "1",
        "LLM_MODEL": "x",
        "STORE": "mysql://x",
    }.items():
        monkeypatch.setenv(f"MEMORY_MESH_{name}", value)
    assert cli("demo").code == 0


def test_a_store_that_keeps_erased_bytes_is_told(cli, monkeypatch):
    # As if nothing were overwritten: the bytes stay in the log.
    monkeypatch.setattr(SqliteStore, "_free", lambda self, connection, wait_seconds: True)
    said = cli("demo")
    assert said.code == 1
    assert re.search(r"✗ the files hold the secret [1-9]", said.out)


def test_the_demo_fails_if_verify_finds_nothing(cli, monkeypatch):
    monkeypatch.setattr(audit, "verify_all", lambda context, *_, **__: [])
    said = cli("demo")
    assert said.code == 1
    assert "✗ verify finds it: no break" in said.out


def test_each_scene_is_told(cli):
    out = cli("demo").out
    assert [title for title in SCENES if f". {title}\n" not in out] == []


def test_the_demo_needs_no_folder_of_the_user(cli, home, tmp_path: Path):
    home.write_text("a file stands where the home should be")
    assert cli("demo").code == 0
