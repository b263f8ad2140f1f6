"""Builds the wheel as a user would get it and tries it in a clean virtual environment, away from the sources.

    python tools/check_wheel.py

The wheel is built from the source archive, so that the archive is known to be whole too.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
PUBLIC = (
    "from memory_mesh import AsyncMemoryMesh, Broken, Erasure, MemoryMesh, MemoryMeshError, MemoryRecord, SearchResult, Sound"
)
# What only developers need must not come along.
DEVELOPERS = ("pytest", "hypothesis", "mypy", "ruff")


class Trial:
    """A clean environment with the wheel in it, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self._bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self._cwd = folder / "work"
        self._cwd.mkdir()
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MEMORY_MESH_", "VIRTUAL_ENV"))
        }
        self._environment = {**kept, "MEMORY_MESH_HOME": str(folder / "home")}
        venv.create(folder / "venv", with_pip=True)

    def install(self, *what: str) -> None:
        self.run("python", "-m", "pip", "install", "--quiet", "--constraint", str(CONSTRAINTS), *what)

    def run(self, command: str, *arguments: str, fails: bool = False) -> str:
        words = [str(self._bin / command), *arguments]
        done = subprocess.run(words, cwd=self._cwd, env=self._environment, capture_output=True, text=True, check=False)
        if bool(done.returncode) != fails:
            sys.exit(f"{command} {' '.join(arguments)}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder / "dist")
        inside(wheel)
        trial = Trial(folder)
        trial.install(str(wheel))
        clean(trial)
        use(trial)
        trial.install(f"{wheel}[testing]")
        trial.run("python", "-W", "error", "-c", "from memory_mesh.testing import FakeClock, StoreContract, machine_for")
        print(f"{wheel.name} works in a clean environment")


def build(folder: Path) -> Path:
    """The wheel, by way of the source archive."""
    words = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the wheel cannot be built:\n{done.stdout}{done.stderr}")
    (wheel,) = folder.glob("*.whl")
    return wheel


def inside(wheel: Path) -> None:
    """What is in the wheel, and what is not."""
    names = zipfile.ZipFile(wheel).namelist()
    expect("memory_mesh/py.typed" in names, "py.typed is missing: type checkers would not look inside")
    expect("memory_mesh/core/safety/data/injection.toml" in names, "the word lists of the injection detector are missing")
    stray = [name for name in names if not re.match(r"memory_mesh/|memory_mesh-[^/]+\.dist-info/", name)]
    expect(not stray, f"the wheel holds what is not the package: {stray[:5]}")
    expect(any(name.endswith("licenses/LICENSE") for name in names), "the licence is missing")


def clean(trial: Trial) -> None:
    """Nothing of the developers' came along."""
    held = {one["name"].lower() for one in json.loads(trial.run("python", "-m", "pip", "list", "--format", "json"))}
    expect("memory-mesh" in held, "the wheel is not installed")
    expect(not held & set(DEVELOPERS), f"the wheel brings {held & set(DEVELOPERS)} along")


def use(trial: Trial) -> None:
    """A user's first five minutes."""
    trial.run("python", "-W", "error", "-c", PUBLIC)
    expect(bool(re.search(r"\d+\.\d+\.\d+", trial.run("memory-mesh", "--version"))), "--version gives no version")
    stored = trial.run("memory-mesh", "store", "--content", "The deploy key rotates on Mondays.")
    id_ = shown_id(stored)
    expect("on Mondays" in trial.run("memory-mesh", "search", "deploy key"), "search does not find what was stored")
    expect("on Mondays" in trial.run("memory-mesh", "get", "--id", id_), "get does not show what was stored")
    expect("Total Memories: 1" in trial.run("memory-mesh", "stats"), "stats does not count it")
    trial.run("memory-mesh", "delete", "--id", id_)
    # What the cleaning of texts needs has come along: none of it is loaded before a text asks for it.
    asked = shown_id(trial.run("memory-mesh", "store", "--content", "<p>Call <b>+1 604 696 5272</b>, AHV 756.9217.0769.85</p>"))
    expect("Call [PHONE], AHV [NATIONAL_ID]" in trial.run("memory-mesh", "get", "--id", asked), "a text is not cleaned")
    trial.run("memory-mesh", "delete", "--id", asked)
    expect("Total Memories: 0" in trial.run("memory-mesh", "stats"), "delete left it there")
    trial.run("memory-mesh", "doctor")
    trial.run("memory-mesh", "get", "--id", id_, fails=True)


def shown_id(text: str) -> str:
    found = re.search(r"mem_\d+_[0-9a-f]{6}", text)
    if found is None:
        sys.exit(f"store names no id: {text!r}")
    return found.group()


def expect(held: bool, otherwise: str) -> None:  # noqa: FBT001  (a truth value is what it is about)
    if not held:
        sys.exit(otherwise)


if __name__ == "__main__":
    main()
