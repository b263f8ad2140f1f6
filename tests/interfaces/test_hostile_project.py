"""A repository with files that carry the names of Python modules and of programs. None of them
may run."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import memory_mesh
from memory_mesh.models import remote_embedder

COMMAND = str(Path(sys.executable).with_name("memory-mesh"))
MODULES = ("json.py", "memory_mesh.py", "memory_mesh/__init__.py", "memory_mesh/__main__.py",
           "sitecustomize.py", "usercustomize.py", "sqlite3.py", "subprocess.py", "runpy.py",
           "typing.py", "pip.py", "onnxruntime.py")  # fmt: skip
PROGRAMS = ("memory-mesh", "python", "python3", "git", "lms", "sh", "xdg-open")


class Repository:
    """A folder whose modules and programs write their name into another folder when they run."""

    def __init__(self, folder: Path) -> None:
        self.root, self._marks = folder / "repository", folder / "marks"
        self._marks.mkdir()
        for name in MODULES:
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"open({str(self._marks / name.replace('/', '.'))!r}, 'w').close()\n")
        for name in PROGRAMS:
            (self.root / name).write_text(f"#!/bin/sh\n: > '{self._marks / name}'\n")
            (self.root / name).chmod(0o755)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MEMORY_MESH_", "PYTHONSAFE"))
        }
        self.environ = {**kept, "MEMORY_MESH_HOME": str(folder / "home"),
                        "MEMORY_MESH_EMBEDDER": "none",
                        "MEMORY_MESH_HOST_SECONDS": "60"}  # fmt: skip
        self.fault = folder / "home" / "host-fault.txt"

    def run(self, *words: str, text: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            words,
            cwd=self.root,
            env=self.environ,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def marks(self) -> set[str]:
        return {file.name for file in self._marks.iterdir()}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_plain_m_runs_the_files_of_the_folder(repository: Repository) -> None:
    """The control of the tests below: without -P these files do run."""
    repository.run(sys.executable, "-m", "memory_mesh", "--version")
    assert "memory_mesh.__init__.py" in repository.marks()
    repository.run(sys.executable, "-c", "import json")
    assert "json.py" in repository.marks()


@pytest.mark.req("LANE-34")
def test_the_hook_that_captures_runs_nothing_of_the_repository(repository: Repository) -> None:
    given = json.dumps(
        {
            "session_id": "s1",
            "transcript_path": str(repository.root / "none.jsonl"),
            "cwd": str(repository.root),
        }
    )
    answer = repository.run(COMMAND, "host", "claude-code", "stop", text=given)
    assert (answer.returncode, answer.stdout) == (0, "{}\n")
    until = time.monotonic() + 100
    while not repository.marks() and not repository.fault.exists() and time.monotonic() < until:
        time.sleep(0.05)  # the capture is a process of its own
    assert repository.marks() == set()
    # It ran, and was ours.
    assert "claude-code stop: the transcript" in repository.fault.read_text()


@pytest.mark.deep
@pytest.mark.parametrize(
    "words",
    [["store", "The deploy key rotates on Mondays."], ["search", "key"], ["init", "."], ["doctor"],
     ["heartbeat"], ["host", "claude-code", "session-start"],
     ["trace", "record", "--goal", "x", "--", "true"], ["ingest-dir", "."]],
)  # fmt: skip
def test_no_command_runs_anything_of_the_folder_it_is_used_in(
    repository: Repository, words: list[str]
) -> None:
    said = repository.run(COMMAND, *words, text="{}")
    assert "Traceback" not in said.stderr
    assert repository.marks() == set()


def test_a_program_is_not_looked_up_in_the_working_folder(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An empty part of PATH, which a stray colon makes, means the working folder."""
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "nobody"))
    monkeypatch.chdir(repository.root)
    monkeypatch.setenv("PATH", str(repository.root))
    remote_embedder.start_lm_studio()
    assert repository.marks() == {"lms"}  # it runs if PATH really names the folder
    (tmp_path / "marks" / "lms").unlink()
    for path in (":/nowhere", ".:/nowhere", "/nowhere:"):
        monkeypatch.setenv("PATH", path)
        remote_embedder.start_lm_studio()
        assert repository.marks() == set(), path


def test_every_python_that_is_started_ignores_the_working_folder() -> None:
    files = sorted(Path(memory_mesh.__file__).parent.rglob("*.py"))
    starts = [
        line
        for file in files
        for line in re.findall(r".*\bsys\.executable\b.*", file.read_text("utf-8"))
    ]
    assert len(starts) >= 2
    assert [line for line in starts if 'sys.executable, "-P"' not in line] == []
