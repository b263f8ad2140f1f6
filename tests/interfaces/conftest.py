"""Fixtures for the command line: the same `run` as the installed command, in a separate home
folder."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.interfaces.cli.main import run


@dataclass(frozen=True, slots=True)
class Output:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def id(self) -> str:
        """The id at the end of the first line."""
        return self.out.splitlines()[0].split()[-1]


class Stream(TextIOWrapper):
    """A pipe, or what says that it is a terminal."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__(BytesIO(), encoding="ascii")  # the poorest locale there is
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    @property
    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined]


Cli = Callable[..., Output]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder that is nobody's, and no setting from outside."""
    for name in [name for name in os.environ if name.startswith("MEMORY_MESH_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MEMORY_MESH_HOME", str(tmp_path / "home"))
    # The real model takes a moment to load, in every command anew.
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "hash")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def cli(home: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command in this process, into pipes or on a terminal."""

    def said(*words: str, terminal: bool = False) -> Output:
        out, err = Stream(terminal=terminal), Stream(terminal=terminal)
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", out)
            patched.setattr(sys, "stderr", err)
            code = run(list(words))
        return Output(code, out.text, err.text)

    return said


SKILL = "name;deploy;\nintent;Deploy the site to production.;\ntags;ops;\n"
LESSON = "--pattern p --rule r --situation s --oversight o --fix f --severity low --scope all"


def learnt(cli: Cli, *target: str) -> tuple[str, str]:
    """Store a skill that is used with little success, and a lesson; return their ids. Files of
    skills are in `skills`."""
    Path("skills/pdf").mkdir(parents=True, exist_ok=True)
    Path("skills/deploy.yamo").write_text(SKILL)
    Path("skills/pdf/SKILL.md").write_text(
        "---\nname: pdf-forms\ndescription: Fill PDF forms. Use when asked.\n---\n# Forms\n"
    )
    skill = cli("ingest-skill", SKILL, "--metadata", '{"reliability": 0.1}', "--json", *target)
    lesson = cli("distill", *LESSON.split(), "--json", *target)
    return json.loads(skill.out)["id"], json.loads(lesson.out)["lesson_id"]


def contested(value="600"):
    """Store a claim and a less trusted one that excludes it. Return the ids of the quarantined
    memory and of the conflict."""
    claim = {"subject": "Apollo", "predicate": "budget"}
    with MemoryMesh() as mesh:
        told = {"source": "user_explicit"}
        mesh.graph.store(
            "planner", "Apollo gets 500.", claim={**claim, "value": "500"}, provenance=told
        )
        guess = mesh.graph.store(
            "planner", f"Apollo gets {value}.", claim={**claim, "value": value}
        )
    return guess.id, guess.conflicts[0].id


def archived():
    """Store a memory and archive it. Return its id."""
    with MemoryMesh() as mesh:
        stored = mesh.graph.store("planner", "Old news.", quarantine=True)
        mesh.graph.review_quarantine(stored.id, action="reject")
    return stored.id
