"""Damaged files of any kind: every command reads what is sound or says what is damaged, and nothing
changes without a word.

Notes and the logs of traces are for people to edit, so a change of them is no damage.
"""

import json
import os
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import IN_CI
from interfaces.conftest import Stream
from memory_mesh import MemoryMesh
from memory_mesh.interfaces.cli.main import run

from .children import url

COMMANDS = (
    "list --limit 100 --json", "search lantern --json", "stats --json", "trace list --json",
    "notes list", "lessons x", "audit verify", "export", "doctor",
)  # fmt: skip
LESSON = dict.fromkeys(
    ("situation", "error_pattern", "oversight", "fix", "preventative_rule", "applicable_scope"),
    "Measure twice.",
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Return a function that makes a folder with a home, a store of a kind, notes and traces."""

    def made(name: str) -> Path:
        folder = tmp_path / "place"
        names = {"HOME": "home", "NOTES_DIR": "notes", "TRACES_DIR": "traces"}
        for option, path in names.items():
            monkeypatch.setenv(f"MEMORY_MESH_{option}", str(folder / path))
        monkeypatch.setenv("MEMORY_MESH_STORE", url(folder / name))
        monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "hash")
        folder.mkdir()
        monkeypatch.chdir(tmp_path)
        with MemoryMesh(agent_id="planner") as mesh:
            mesh.add_many([(f"The lantern {n} is in room {n * 7}", {"n": n}) for n in range(20)])
            for record in mesh.get_all(limit=5):
                mesh.update(record.id, content=f"{record.content}, as of today")
            mesh.notes.append(
                "Tokens expire", "Refresh them before a deploy.", when_to_use="deploy"
            )
            mesh.traces.record(
                "Deploy the shop", steps=["build"], project="shop", tool_results={"make": "built"}
            )
            mesh.traces.archive("shop")
            mesh.traces.record("Paint the shop", project="shop")
            mesh.distill_lesson({**LESSON, "severity": "low"})
            mesh.search("lantern")
        return folder

    return made


def said(monkeypatch: pytest.MonkeyPatch, command: str) -> tuple[int, str, str]:
    out, err = Stream(terminal=False), Stream(terminal=False)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", out)
        patched.setattr(sys, "stderr", err)
        return run(command.split()), out.text, err.text


def damage(file: Path, files: list[Path], chance: random.Random) -> None:
    """Flip a bit of a file, cut it, overwrite or insert a part, or give it the contents of
    another file."""
    data = bytearray(file.read_bytes())
    at = chance.randrange(len(data))
    match chance.randrange(5):
        case 0:
            data[at] ^= 1 << chance.randrange(8)
        case 1:
            del data[at:]
        case 2:
            data[at : at + 512] = bytes(min(512, len(data) - at))
        case 3:
            data[at:at] = chance.randbytes(9)
        case _:
            data = bytearray(chance.choice(files).read_bytes())
    file.write_bytes(data)


def contents(listed: str) -> list[tuple[object, ...]]:
    """The memories that are not notes or traces, whose files people edit."""
    found = json.loads(listed)["results"]
    return sorted(
        (one["id"], one["content"], one["revision"]) for one in found if "lantern" in one["content"]
    )


@pytest.mark.parametrize(
    "name",
    ["a.db", *(pytest.param(name, marks=pytest.mark.deep) for name in ("a.json", "a.lance"))],
)
def test_damage_is_reported_or_does_not_matter(
    place: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    deep: bool,
) -> None:
    folder, reported = place(name), 0
    shutil.copytree(folder, tmp_path / "whole")
    sound = contents(said(monkeypatch, COMMANDS[0])[1])
    assert len(sound) == 20
    for seed in range((15 if IN_CI else 40) if deep else 6):
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "whole", folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
        chance = random.Random(seed)  # noqa: S311
        damaged = chance.choice(files)
        damage(damaged, files, chance)
        # An exception would end the test.
        answers = {command: said(monkeypatch, command) for command in COMMANDS}
        assert not any("Traceback" in err for _, _, err in answers.values()), (seed, damaged)
        code, listed, _ = answers[COMMANDS[0]]
        found_out = any(answers[command][0] for command in COMMANDS)
        reported += found_out
        assert found_out or (code == 0 and contents(listed) == sound), (
            seed,
            damaged,
            os.listdir(folder),
        )
    assert reported or not deep
