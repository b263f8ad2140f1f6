"""Run `make test` with every supported Python that this machine has, each in an environment of its
own, and say which.

    python tools/pythons.py            # those other than the running one; see `make test-pythons`
    python tools/pythons.py --newest   # the newest of those, with one case of each test, as CI does
    python tools/pythons.py --list     # where each is; nothing is run

The supported ones are those that pyproject.toml names. One that is not on this machine is no
failure: it is named as not run.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
_CLASSIFIER = re.compile(r"Programming Language :: Python :: (3\.\d+)")


def main(arguments: list[str]) -> int:
    """Print where the Pythons are, or run the tests with each."""
    if arguments not in ([], ["--newest"], ["--list"]):
        sys.exit(__doc__)
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {version: find(version) for version in supported()}
    outcomes = {version: str(python or "not on this machine") for version, python in found.items()}
    if arguments != ["--list"]:
        outcomes[running] = "that of .venv, with which make test runs"
        here = [(name, python) for name, python in found.items() if python and name != running]
        for version, python in here:
            is_run = not arguments or version == here[-1][0]
            outcomes[version] = (
                _test(version, python, *(["CASES=1"] if arguments else []))
                if is_run
                else f"not run, at {python}"
            )
    for version, outcome in outcomes.items():
        print(f"Python {version}: {outcome}")
    return int("failed" in outcomes.values())


def _test(version: str, python: Path, *options: str) -> str:
    words = ["make", "test", f"VENV=build/python{version}", f"PYTHON={python}", *options]
    return (
        "failed"
        if subprocess.run(words, cwd=ROOT, check=False).returncode
        else f"passed with {python}"
    )


def supported() -> list[str]:
    """Return the versions that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [found[1] for one in project["classifiers"] if (found := _CLASSIFIER.fullmatch(one))]


def find(version: str) -> Path | None:
    """Return a Python of a version: the one on the path, or the newest of pyenv."""
    return next((path for path in _candidates(version) if _is(path, version)), None)


def _candidates(version: str) -> Iterator[Path]:
    if named := shutil.which(f"python{version}"):
        yield Path(named)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    installed = (pyenv / "versions").glob(f"{version}.*/bin/python")
    yield from sorted(
        installed,
        key=lambda path: [int(part) for part in re.findall(r"\d+", path.parts[-3])],
        reverse=True,
    )


def _is(python: Path, version: str) -> bool:
    """Ask it: a name on the path may be pyenv's, which runs only versions that are switched on."""
    words = [
        str(python),
        "-c",
        "import sys, ensurepip, venv; print('%d.%d' % sys.version_info[:2])",
    ]
    try:
        answer = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and answer.stdout.strip() == version


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
