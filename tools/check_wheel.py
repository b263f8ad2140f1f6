"""Build the wheel and try it in a clean virtual environment, away from the sources.

    python tools/check_wheel.py

The wheel is built from the source archive, which is thereby known to be complete.
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

import page_examples

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
PUBLIC = (
    "from memory_mesh import AsyncMemoryMesh, Broken, Forgotten, MemoryMesh, MemoryMeshError, "
    "MemoryRecord, SearchResult, Sound"
)
# Packages that the wheel must not install.
DEVELOPERS = ("pytest", "hypothesis", "mypy", "ruff")


class Trial:
    """A clean environment with the wheel in it, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self._bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self._cwd = folder / "work"
        self._cwd.mkdir()
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "MEMORY_MESH_", "VIRTUAL_ENV"))
        }
        self._environment = {**inherited, "MEMORY_MESH_HOME": str(folder / "home")}
        venv.create(folder / "venv", with_pip=True)

    def install(self, *what: str) -> None:
        self.run(
            "python", "-m", "pip", "install", "--quiet", "--constraint", str(CONSTRAINTS), *what
        )

    def run(
        self, command: str, *arguments: str, fails: bool = False, cwd: Path | None = None
    ) -> str:
        words = [str(self._bin / command), *arguments]
        done = subprocess.run(
            words,
            cwd=cwd or self._cwd,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if bool(done.returncode) != fails:
            sys.exit(
                f"{command} {' '.join(arguments)}\nended with {done.returncode}:\n"
                f"{done.stdout}{done.stderr}"
            )
        return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder / "dist")
        check_content(wheel)
        trial = Trial(folder)
        trial.install(str(wheel))
        check_installed(trial)
        use(trial)
        run_pages(trial, folder)
        trial.install(f"{wheel}[testing]")
        trial.run(
            "python",
            "-W",
            "error",
            "-c",
            "from memory_mesh.testing import FakeClock, StoreContract, machine_for",
        )
        print(f"{wheel.name} works in a clean environment")


def build(folder: Path) -> Path:
    """Build the source archive, then the wheel from it, and return the wheel."""
    words = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the wheel cannot be built:\n{done.stdout}{done.stderr}")
    (wheel,) = folder.glob("*.whl")
    return wheel


def check_content(wheel: Path) -> None:
    """Check that the wheel contains the package with its data, and nothing else."""
    names = zipfile.ZipFile(wheel).namelist()
    expect(
        "memory_mesh/py.typed" in names, "py.typed is missing: type checkers would not look inside"
    )
    expect(
        "memory_mesh/core/language/safety/data/injection.toml" in names,
        "the word lists of the injection detector are missing",
    )
    console = "memory_mesh/interfaces/console/web"
    for file in (
        "index.html",
        "app.js",
        "style.css",
        "pages/search.js",
        "vendor/htm.js",
        "vendor/htm.LICENSE.txt",
    ):
        expect(f"{console}/{file}" in names, f"{file} of the web console is missing")
    stray = [
        name for name in names if not re.match(r"memory_mesh/|memory_mesh-[^/]+\.dist-info/", name)
    ]
    expect(not stray, f"the wheel contains files outside the package: {stray[:5]}")
    expect(any(name.endswith("licenses/LICENSE") for name in names), "the licence is missing")
    check_bill(wheel)


def check_bill(wheel: Path) -> None:
    """Check that the bill of materials lists the libraries in the wheel and every package that
    the wheel asks for."""
    with zipfile.ZipFile(wheel) as archive:
        bill = [
            name
            for name in archive.namelist()
            if re.fullmatch(r"[^/]+\.dist-info/sboms/memory-mesh\.cdx\.json", name)
        ]
        expect(len(bill) == 1, "the bill of materials is missing")
        data = json.loads(archive.read(bill[0]))
        (about,) = [
            archive.read(name).decode()
            for name in archive.namelist()
            if name.endswith(".dist-info/METADATA")
        ]
        vendored = json.loads(
            archive.read("memory_mesh/interfaces/console/web/vendor/versions.json")
        )
    listed = {one["purl"].partition("@")[0] for one in data["components"]}
    asked = re.findall(r"(?m)^Requires-Dist: ([\w.-]+)(?![^\n]*extra ==)", about)
    needed = {f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}" for name in asked}
    needed |= {f"pkg:npm/{one['name']}" for one in vendored}
    expect(
        data["bomFormat"] == "CycloneDX" and len(asked) > 5,
        "the bill of materials is not one of CycloneDX",
    )
    expect(
        listed == needed, f"the bill of materials differs from the wheel: {sorted(listed ^ needed)}"
    )
    version = data["metadata"]["component"]["version"]
    expect(f"\nVersion: {version}\n" in about, f"the bill of materials is of version {version}")


def check_installed(trial: Trial) -> None:
    """Check that the wheel is installed, without the packages for developers."""
    installed = {
        one["name"].lower()
        for one in json.loads(trial.run("python", "-m", "pip", "list", "--format", "json"))
    }
    expect("memory-mesh" in installed, "the wheel is not installed")
    expect(not installed & set(DEVELOPERS), f"the wheel installs {installed & set(DEVELOPERS)}")


def use(trial: Trial) -> None:
    """Use the command line as in a user's first five minutes."""
    trial.run("python", "-W", "error", "-c", PUBLIC)
    expect(
        bool(re.search(r"\d+\.\d+\.\d+", trial.run("memory-mesh", "--version"))),
        "--version prints no version",
    )
    stored = trial.run("memory-mesh", "store", "--content", "The deploy key rotates on Mondays.")
    id_ = shown_id(stored)
    expect(
        "on Mondays" in trial.run("memory-mesh", "search", "deploy key"),
        "search does not find what was stored",
    )
    expect(
        "on Mondays" in trial.run("memory-mesh", "get", "--id", id_),
        "get does not show what was stored",
    )
    expect("Total Memories: 1" in trial.run("memory-mesh", "stats"), "stats does not count it")
    trial.run("memory-mesh", "delete", "--id", id_)
    # The packages for redaction are installed; they are imported only when a text needs them.
    redacted = shown_id(
        trial.run(
            "memory-mesh",
            "store",
            "--content",
            "<p>Call <b>+1 604 696 5272</b>, AHV 756.9217.0769.85</p>",
        )
    )
    expect(
        "Call [PHONE], AHV [NATIONAL_ID]" in trial.run("memory-mesh", "get", "--id", redacted),
        "a text is not redacted",
    )
    trial.run("memory-mesh", "delete", "--id", redacted)
    expect("Total Memories: 0" in trial.run("memory-mesh", "stats"), "delete left it there")
    trial.run("memory-mesh", "doctor")
    trial.run("memory-mesh", "get", "--id", id_, fails=True)


def run_pages(trial: Trial, folder: Path) -> None:
    """Run the Python examples of the first pages, each page in a folder of its own, and compare
    what they print."""
    for page in page_examples.PAGES:
        work = folder / "pages" / Path(page).stem
        work.mkdir(parents=True)
        (work / "page.py").write_text(page_examples.program(page), encoding="utf-8")
        printed = trial.run("python", "page.py", cwd=work)
        # The last digits of a score depend on the processor.
        shown, real = (
            re.sub(r"(?m)^[01]\.\d\d ", "", text) for text in (page_examples.output(page), printed)
        )
        expect(
            bool(shown) and shown == real, f"{page} shows\n{shown}\nand its examples print\n{real}"
        )


def shown_id(text: str) -> str:
    found = re.search(r"mem_\d+_[0-9a-f]{6}", text)
    if found is None:
        sys.exit(f"store prints no id: {text!r}")
    return found.group()


def expect(condition: bool, message: str) -> None:  # noqa: FBT001  (an assertion that prints one line)
    if not condition:
        sys.exit(message)


if __name__ == "__main__":
    main()
