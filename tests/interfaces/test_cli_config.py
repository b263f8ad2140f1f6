"""`config`: trust in the file of a project, and no password in anything that is shown."""

import json
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.api.settings import FILE
from memory_mesh.stores.ram import RamStore

URL = "postgresql://bob:hunter2@127.0.0.1:1/db?password=hunter2"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder / FILE


@pytest.mark.parametrize(
    "words",
    [
        ["config", "show"],
        ["store", "--content", "x"],
        ["list"],
        ["search", "x"],
        ["model", "status"],
        ["stats"],
    ],
)
def test_a_refused_file_stops_every_command_with_one_line(home, cli, project, words):
    project.write_text("store = 'sqlite:///theirs.db'\nredaction = 'off'\n")
    said = cli(*words)
    assert said.code == 3
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert f"file ({project}): store, redaction cannot be set by a project's file" in line
    assert (
        f"put it into {home / FILE}, or accept this file with: memory-mesh config trust {project}"
        in line
    )
    assert not home.exists()
    assert list(project.parent.iterdir()) == [project]


def test_doctor_reports_a_refused_file(cli, project):
    project.write_text("redaction = 'off'")
    said = cli("doctor")
    assert said.code == 1
    assert "redaction cannot be set by a project's file" in said.out


def test_a_file_is_trusted_listed_and_not_trusted_any_more(cli, project):
    project.write_text("redaction = 'off'")
    assert cli("config", "trust").code == 2
    assert cli("config", "trust", "--list").out == "[MemoryMesh] 0 files\n"
    said = cli("config", "trust", ".")
    assert (said.code, said.out) == (
        0,
        f"[MemoryMesh] {project} is trusted until it changes; it sets redaction\n",
    )
    assert f"The project file {project} is trusted." in cli("config", "show").out
    shown = json.loads(cli("config", "show", "--json").out)
    assert shown["project_file"] == {"path": str(project), "trust": "trusted"}
    assert {"name": "redaction", "value": "off", "origin": f"file ({project})"} in shown["results"]
    assert json.loads(cli("config", "trust", "--list", "--json").out) == {
        "count": 1,
        "results": [{"path": str(project), "trust": "trusted"}],
    }
    project.write_text("redaction = 'off' # changed")
    assert "changed since you trusted it" in cli("config", "show").err
    assert "changed since it was trusted" in cli("config", "trust", "--list").out
    assert cli("config", "untrust", str(project)).code == 0
    assert cli("config", "trust", "--list").out == "[MemoryMesh] 0 files\n"
    assert cli("config", "untrust", ".").code == 3


def test_settings_show_whether_the_file_of_the_project_is_trusted(cli, project):
    assert "There is no project file." in cli("config", "show").out
    project.write_text("agent_id = 'planner'")
    assert f"The project file {project} is not trusted." in cli("config", "show").out
    assert "is not trusted." in cli("config", "show", terminal=True).out


def test_no_password_of_a_store_is_shown(cli, home):
    class OwnStore(RamStore):
        url = URL

    with MemoryMesh(store=OwnStore(), embedder="none") as mesh:
        mesh.add("tea")
        assert mesh.stats().db_path == "postgresql://bob:***@127.0.0.1:1/db?password=***"
    for words in (
        ["config", "show"],
        ["config", "show", "--json"],
        ["stats"],
        ["doctor"],
        ["list"],
    ):
        said = cli(*words, "--store", URL)
        assert "hunter2" not in said.out + said.err
        assert "postgresql" in said.out + said.err
    home.mkdir(exist_ok=True)
    (home / FILE).write_text(
        f"store = '{URL}'\nllm_base_url = 'https://bob:hunter2@host/v1?api_key=hunter2'"
    )
    said = cli("config", "show")
    assert "https://bob:***@host/v1?api_key=***" in said.out
    assert "hunter2" not in said.out + cli("doctor").out


@pytest.mark.req("LANE-41")
def test_a_command_takes_a_preset(cli, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    shown = cli("config", "show", "--preset", "lane").out
    assert f"sqlite:///{tmp_path}/.opencode/memories.db" in shown
    assert "preset (lane)" in shown
    assert ".opencode" not in cli("config", "show").out
    wrong = cli("stats", "--preset", "line")
    assert (wrong.code, "expected one of lane" in wrong.err) == (3, True)
