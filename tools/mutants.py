"""Mutation testing: put deliberate bugs into copies of the package, one at a time, and run the tests of the stores.

    python tools/mutants.py [WORD ...]      only the mutants whose names contain one of the words

The bugs are in tests/mutants/. It fails if more than two survive, if the tests fail without a bug, or if a bug no longer fits
the code.
"""

import argparse
import compileall
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "memory_mesh"
MUTANTS = ROOT / "tests" / "mutants"
TESTS = [f"tests/stores/test_{name}.py" for name in ("contract", "where_sql", "state_machine")]
AT_ONCE = 2
MAY_SURVIVE = 2

# A bug in one store cannot fail the tests of the other; a bug in shared code fails those of either.
RAM = "TestRam or in_ram"
CHOSEN = {"stores/ram.py": RAM, "stores/base.py": RAM}

# A pytest plugin for each run: few fixed examples, no shrinking, and a check that the copy is tested.
PLUGIN = '''"""A quick Hypothesis profile, and a check that the tests import the right copy."""

import os
from hypothesis import Phase, settings

settings.register_profile(
    "mutants", max_examples=30, derandomize=True, database=None, deadline=None, phases=[Phase.explicit, Phase.generate]
)


def pytest_configure():
    import memory_mesh

    assert memory_mesh.__file__.startswith(os.environ["MUTANT"]), memory_mesh.__file__
'''


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug: in `file`, `old` is replaced by `new`."""

    name: str
    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a test run: the first test that failed, if any, and the output."""

    caught_by: str | None
    output: str


def main(arguments: Sequence[str] | None = None) -> int:
    words = _words(arguments)
    mutants = [mutant for mutant in read(MUTANTS) if not words or any(word in mutant.name for word in words)]
    console = Console(width=None if sys.stdout.isatty() else 150)
    with TemporaryDirectory() as name:
        # Copied once, so that edits during the run have no effect.
        sound = Path(name) / "sound"
        shutil.copytree(PACKAGE, sound, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(sound, quiet=1)
        if stale := [mutant for mutant in mutants if not fits(mutant, sound)]:
            console.print(*(f"{mutant.file}: no longer fits the code: {mutant.name}" for mutant in stale), sep="\n")
            return 1
        without = run(None, sound)
        if without.caught_by:
            console.print(f"the tests fail without a bug: {without.caught_by}\n{without.output}", markup=False)
            return 1
        outcomes = dict(_each(mutants, sound, console))
    return report(console, mutants, outcomes)


def read(folder: Path) -> Iterator[Mutant]:
    """Yield the mutants of all files."""
    for path in sorted(folder.glob("*.toml")):
        yield from (Mutant(**one) for one in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"])


def fits(mutant: Mutant, package: Path) -> bool:
    return (package / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1


def run(mutant: Mutant | None, package: Path) -> Outcome:
    """Run the tests on a copy of the package with the mutant."""
    with TemporaryDirectory(dir=package.parent) as name:
        copy = Path(name)
        shutil.copytree(package, copy / "memory_mesh")
        (copy / "mutant_plugin.py").write_text(PLUGIN, encoding="utf-8")
        if mutant:
            path = copy / "memory_mesh" / mutant.file
            path.write_text(path.read_text(encoding="utf-8").replace(mutant.old, mutant.new), encoding="utf-8")
        return _tested(copy, CHOSEN.get(mutant.file, f"not ({RAM})") if mutant else "")


def report(console: Console, mutants: Sequence[Mutant], outcomes: dict[Mutant, Outcome]) -> int:
    """Print the results, and return 1 if too many mutants survived."""
    table = Table("bug", "caught by")
    for mutant in mutants:
        table.add_row(mutant.name, outcomes[mutant].caught_by or "[red]survived[/]")
    survived = [mutant for mutant in mutants if not outcomes[mutant].caught_by]
    console.print(table)
    console.print(f"{len(mutants) - len(survived)} of {len(mutants)} bugs were caught, {len(survived)} survived.")
    return 1 if len(survived) > MAY_SURVIVE else 0


def _each(mutants: Sequence[Mutant], package: Path, console: Console) -> Iterator[tuple[Mutant, Outcome]]:
    with Progress(console=console, disable=not console.is_terminal) as progress, ThreadPoolExecutor(AT_ONCE) as pool:
        task = progress.add_task("bugs", total=len(mutants))
        runs = {pool.submit(run, mutant, package): mutant for mutant in mutants}
        for done in as_completed(runs):
            progress.advance(task)
            yield runs[done], done.result()


def _tested(copy: Path, chosen: str) -> Outcome:
    words = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider"]
    words += ["-p", "mutant_plugin", "--hypothesis-profile=mutants", f"--basetemp={copy / 'tmp'}", "-k", chosen, *TESTS]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "MUTANT": str(copy)}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    if done.returncode > 1:  # 1 is a failed test; anything else means that pytest itself could not run
        raise RuntimeError(f"the tests did not run:\n{output}")
    if done.returncode == 0:
        return Outcome(None, output)
    failed = re.search(r"^(?:FAILED|ERROR) \S+::(?:test_)?([^\s\[]+)", output, flags=re.MULTILINE)
    return Outcome(failed.group(1).replace("_", " ") if failed else output.strip()[-200:], output)


def _words(arguments: Sequence[str] | None) -> list[str]:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="only the mutants whose names contain one of these")
    return list(parser.parse_args(arguments).words)


if __name__ == "__main__":
    sys.exit(main())
