"""Mutation testing: put deliberate bugs into copies of the package, one at a time, and see that the
tests catch them.

    python tools/mutants.py [WORD ...]      only the bugs whose id or name contains one of the words
    python tools/mutants.py --changed       only those whose file, or the test that caught them,
                                            has changed since

The bugs are in tests/mutants/, in two parts. Those of stores.toml must fail the tests of the
stores; two may survive. Each bug of requirements.toml breaks one requirement, and a test that
carries its id must fail; none may survive, and every id that a test carries has a bug. The test
that caught a bug the last time, by the page, is tried before the others. The tool also fails if a
bug no longer fits the code, or if a test that catches one fails without it. It writes
build/mutants.json and docs/internals/mutations.md; with `--check` it compares the page instead; a
run of some bugs does neither. tests/mutants/checked.json has digests of the file of each bug and
of the test that caught it; a run without `--check` brings it up to date.
"""

import argparse
import ast
import compileall
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src") / "memory_mesh"
STORE_TESTS = tuple(
    f"tests/stores/test_{name}.py" for name in ("contract", "where_sql", "state_machine")
)
ENGINES = "tests/engines/"  # all of these are deep
SEARCHED_IN_ENGINE = ("index/remote", "index/pool")
CHECKED = Path("tests") / "mutants" / "checked.json"
AT_ONCE = 2
MAY_SURVIVE = 2

# A bug in one store cannot fail the tests of the other; a bug in shared code fails those of either.
RAM = "TestRam or in_ram"
LANCE = "TestLanceTables or in_lance"
JSON = "TestJson or in_json"
CHOSEN = {
    "stores/ram.py": RAM,
    "stores/base.py": f"not ({JSON} or Lance or in_lance)",  # RAM and SQLite
    "core/search/lexical.py": RAM,
}

# The tests of these folders start processes or wait for a disk: they come last.
SLOW = ("tests/stores", "tests/interfaces", "tests/durability")
_MAX_SECONDS = 600  # for the tests of one bug
_SHOWN_LINES = 8  # of the output of the tests, for each bug that survived
LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "results")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug: in `file` of the package `old` is replaced by `new`. If it has an id, it breaks
    that requirement."""

    name: str
    file: str
    old: str
    new: str
    id: str = ""

    @property
    def label(self) -> str:
        return f"{self.id} {self.name}".strip()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a test run: the first test that caught the bug, if any, and the output."""

    caught_by: str | None
    output: str


class Trees:
    """Copies of the repository, in each of which one bug is tried at a time."""

    def __init__(self, root: Path, folder: Path, count: int) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        for number in range(count):
            tree = folder / str(number)
            # With the cached bytecode; runs write none.
            shutil.copytree(root, tree, ignore=LEFT_OUT, symlinks=True)
            compileall.compile_dir(tree / PACKAGE, quiet=1)
            self._free.put(tree)

    def run(self, mutant: Mutant | None, *words: str) -> Outcome:
        """Run pytest in a free copy with the bug, and take the bug out again."""
        tree = self._free.get()
        path = tree / PACKAGE / (mutant.file if mutant else "__init__.py")
        sound, stat = path.read_text(encoding="utf-8"), path.stat()
        try:
            if mutant:
                path.write_text(sound.replace(mutant.old, mutant.new), encoding="utf-8")
                # Python takes cached bytecode for current if size and second are the same.
                os.utime(path, (stat.st_atime, stat.st_mtime + 60))
            return _tested(tree, mutant.id if mutant else "", words)
        finally:
            path.write_text(sound, encoding="utf-8")
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            self._free.put(tree)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    given = _arguments(arguments)
    mutants = [
        one
        for one in read(root)
        if not given.words or any(word in one.label for word in given.words)
    ]
    files = files_of_tests(root)
    faults = [*unfit(mutants, root), *untested(mutants, files)]
    faults += without_bug(mutants, files) if not given.words else ()
    mutants = [*changed(mutants, root)] if given.changed else mutants
    if faults:
        print(*faults, sep="\n")
        return 1
    with TemporaryDirectory() as folder:
        trees = Trees(root, Path(folder), AT_ONCE)
        outcomes = dict(_each(mutants, trees, files, caught_before(root)))
        faults = [*_failing_without(outcomes, trees), *_survivors(outcomes)]
    if not given.words and not given.changed:
        faults += _written(root, outcomes, check=given.check)
    if not given.check and not faults:
        remember(
            {
                mutant: outcome.caught_by
                for mutant, outcome in outcomes.items()
                if outcome.caught_by
            },
            root,
        )
    print(*_figures(outcomes), *faults, sep="\n")
    return 1 if faults else 0


def read(root: Path) -> Iterator[Mutant]:
    """Yield the bugs of all files."""
    for path in sorted((root / "tests" / "mutants").glob("*.toml")):
        yield from (
            Mutant(**one) for one in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
        )


def files_of_tests(root: Path) -> dict[str, list[str]]:
    """Return the files of tests that name each requirement, those with slow tests last."""
    documents = tomllib.loads(
        (root / "conformance" / "requirements.toml").read_text(encoding="utf-8")
    )["documents"]
    files: dict[str, list[str]] = {id_: [] for document in documents for id_ in document["ids"]}
    names = sorted(
        path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py")
    )
    for name in sorted(names, key=lambda name: name.startswith(SLOW)):
        for id_ in {
            *re.findall(r'"([A-Z]+-\d+)"', (root / name).read_text(encoding="utf-8"))
        } & files.keys():
            files[id_].append(name)
    return {id_: named for id_, named in files.items() if named}


def unfit(mutants: Iterable[Mutant], root: Path) -> Iterator[str]:
    """Yield one line for each bug whose old text does not occur exactly once in its file."""
    for mutant in mutants:
        path = root / PACKAGE / mutant.file
        count = path.read_text(encoding="utf-8").count(mutant.old) if path.is_file() else 0
        if count != 1:
            yield (
                f"{mutant.file}: the bug no longer fits the code, its old text occurs {count} "
                f"times: {mutant.label}"
            )


def untested(mutants: Iterable[Mutant], files: Mapping[str, object]) -> Iterator[str]:
    """Yield one line for each requirement that has a bug and no test."""
    ids = {mutant.id for mutant in mutants if mutant.id}
    return (
        f"{id_} has a bug in tests/mutants/ but no test carries it"
        for id_ in sorted(ids - files.keys())
    )


def without_bug(mutants: Iterable[Mutant], files: Mapping[str, object]) -> Iterator[str]:
    """Yield one line for each requirement that has a test and no bug."""
    ids = {mutant.id for mutant in mutants}
    return (
        f"{id_} has a test but no bug in tests/mutants/requirements.toml"
        for id_ in sorted(files.keys() - ids)
    )


def caught_before(root: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """Return the file and the name of the test that caught each bug at the last run, by the
    page: it is tried first."""
    page = root / "docs" / "internals" / "mutations.md"
    lines = re.findall(
        r"^\| (?:[A-Z]+-\d+ \| )?(.+) \| `(.+)` \| ([\w ]+) \(`(.+)`\) \|$",
        page.read_text("utf-8") if page.is_file() else "",
        re.M,
    )
    return {
        (name, file): (test, f"test_{sentence.replace(' ', '_')}")
        for name, file, sentence, test in lines
    }


def changed(mutants: Iterable[Mutant], root: Path) -> Iterator[Mutant]:
    """Yield the bugs that are not known to be caught with the files as they are."""
    known = _remembered(root)
    return (
        mutant
        for mutant in mutants
        if known.get(_key(mutant)) != _digest(mutant, known.get(_key(mutant), ""), root)
    )


def remember(caught: Mapping[Mutant, str], root: Path) -> None:
    """Write down by which test, and with which files, these bugs were caught; bugs that are gone
    are forgotten."""
    known = _remembered(root) | {
        _key(mutant): _digest(mutant, test, root) for mutant, test in caught.items()
    }
    keys = {_key(mutant) for mutant in read(root)}
    text = json.dumps(
        {key: known[key] for key in sorted(keys & known.keys())}, indent=0, ensure_ascii=False
    )
    (root / CHECKED).write_text(text + "\n", encoding="utf-8")


def _key(mutant: Mutant) -> str:
    return f"{mutant.label} in {mutant.file}"


def _remembered(root: Path) -> dict[str, str]:
    path = root / CHECKED
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def _digest(mutant: Mutant, caught_by: str, root: Path) -> str:
    """Return the test that caught the bug, and a digest of the bug, its file and that test."""
    file, _, name = re.split(r"\[| ", caught_by)[0].partition("::")
    name = name.rpartition("::")[2]
    changed, test = root / PACKAGE / mutant.file, root / file
    contents = [changed.read_text("utf-8")] if changed.is_file() else []
    contents += [_code_of(test.read_text("utf-8"), name)] if test.is_file() else []
    digest = hashlib.sha256("/".join([repr(mutant), *contents]).encode()).hexdigest()[:16]
    return f"{file}::{name} {digest}"


@cache
def _code_of(source: str, name: str) -> str:
    """Return the lines of a test and of all that it uses of its file, such as fixtures and
    tables; the whole file if the test is defined elsewhere."""
    lines, defined = source.splitlines(), dict(_definitions(source))
    used, found = [name, ""], dict[int, ast.stmt]()
    if name not in defined:
        return source
    while used:
        for node in defined.pop(used.pop(), ()):
            found[node.lineno] = node
            for part in ast.walk(node):
                match part:
                    case ast.Name(id=word) | ast.arg(arg=word) | ast.Constant(value=str(word)):
                        used.append(word)
    first = {
        line: min([line, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        for line, node in found.items()
    }
    return "\n".join(
        "\n".join(lines[first[line] - 1 : found[line].end_lineno]) for line in sorted(found)
    )


@cache
def _definitions(source: str) -> dict[str, list[ast.stmt]]:
    """Return the statements of a file by the names that they define, a class also by those of its
    methods; under an empty name those that concern every test."""
    named: dict[str, list[ast.stmt]] = {"": []}
    for node in ast.parse(source).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names = {name, *([""] if "autouse" in ast.dump(node) else [])}
            case ast.ClassDef(name=name, body=body):
                names = {name, *(part.name for part in body if isinstance(part, ast.FunctionDef))}
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names = {alias.asname or alias.name.partition(".")[0] for alias in aliases}
            case ast.Assign() | ast.AnnAssign():
                stored = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
                names = {part.id for part in stored if isinstance(part.ctx, ast.Store)}
                names |= {"" for name in names if name == "pytestmark"}
            case ast.Expr(value=ast.Constant()):  # the docstring
                names = set()
            case _:
                names = {""}
        for name in names:
            named.setdefault(name, []).append(node)
    return named


def _each(
    mutants: Sequence[Mutant],
    trees: Trees,
    files: Mapping[str, Sequence[str]],
    before: Mapping[tuple[str, str], tuple[str, str]],
) -> Iterator[tuple[Mutant, Outcome]]:
    """Yield each bug with its outcome, in the order given, and print a line for each as it is
    done."""

    def run(mutant: Mutant) -> Outcome:
        words, test = _words(mutant, files), before.get((mutant.name, mutant.file))
        first = trees.run(mutant, *_only(test, words)) if test else Outcome(None, "")
        return first if first.caught_by else trees.run(mutant, *words)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = {pool.submit(run, mutant): mutant for mutant in mutants}
        for number, done in enumerate(as_completed(runs), 1):
            caught = done.result().caught_by
            print(
                f"[{number}/{len(runs)}] {runs[done].label}: "
                f"{_sentence(caught) if caught else 'SURVIVED'}",
                flush=True,
            )
    yield from ((mutant, run.result()) for run, mutant in runs.items())


def _only(test: tuple[str, str], words: Sequence[str]) -> list[str]:
    """Return the words that choose one test, of the same stores as `words`."""
    file, name = test
    of_stores = f" and ({words[words.index('-k') + 1]})" if "-k" in words else ""
    return [
        *["--deep"] * ("--deep" in words or file.startswith(ENGINES)),
        file,
        "-k",
        name + of_stores,
    ]


def _words(mutant: Mutant, files: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return which tests to run for a bug."""
    if mutant.id:
        quick = [file for file in files[mutant.id] if not file.startswith(ENGINES)]
        return quick or ("--deep", *files[mutant.id])
    if mutant.file.startswith(SEARCHED_IN_ENGINE):
        return ("tests/index/test_remote.py", "tests/index/test_parity.py")
    if mutant.name.startswith(("bucket:", "Supabase:")):
        return (f"tests/stores/test_{mutant.name.partition(':')[0].lower()}.py",)
    if mutant.file == "stores/files.py":
        return ("tests/durability/test_permissions.py",)
    # A plain run has only a part of the contract for this store.
    if mutant.file.startswith("stores/lance/"):
        return ("--deep", "-k", LANCE, *STORE_TESTS)
    if mutant.file.startswith("stores/postgres/"):
        return (
            "--deep",
            *(
                f"tests/engines/test_postgres_{name}.py"
                for name in ("faults", "contract", "search")
            ),
        )
    if mutant.file == "stores/json.py":
        return ("--deep", "-k", JSON, *STORE_TESTS)
    return (
        "-k",
        CHOSEN.get(mutant.file, f"not ({RAM} or {JSON} or Lance or in_lance)"),
        *STORE_TESTS,
    )


def _tested(tree: Path, id_: str, words: Sequence[str]) -> Outcome:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--no-header",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        "-p",
        "mutant_plugin",
    ]
    command += ["--hypothesis-profile=mutants", "--timeout=60", *words]
    caught = tree / "caught"
    caught.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(tree / "tools")]),
        "MUTANT_ID": id_,
    }
    environment |= {
        "PYTHONDONTWRITEBYTECODE": "1",
        "MUTANT_ROOT": str(tree),
        "MUTANT_CAUGHT": str(caught),
    }
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_MAX_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Outcome(None, f"the tests did not end within {_MAX_SECONDS} seconds")
    output = done.stdout + done.stderr
    if caught.exists():
        return Outcome(caught.read_text(encoding="utf-8"), output)
    # Anything else means that pytest itself could not run.
    if done.returncode not in (0, 1) and not id_:
        raise RuntimeError(f"the tests did not run:\n{output}")
    return Outcome(None, output)


def _failing_without(outcomes: Mapping[Mutant, Outcome], trees: Trees) -> Iterator[str]:
    """Yield a line if a test that caught a bug fails without one too."""
    tests = sorted(
        {outcome.caught_by.partition("[")[0] for outcome in outcomes.values() if outcome.caught_by}
    )
    deep = [
        test
        for test in tests
        if "TestLanceTables" in test or "TestJson" in test or test.startswith(ENGINES)
    ]
    for words in (["--deep", *deep] if deep else [], [test for test in tests if test not in deep]):
        without = trees.run(None, *words) if words else Outcome(None, "")
        if without.caught_by:
            yield f"{without.caught_by} fails without a bug:\n{without.output}"


def _survivors(outcomes: Mapping[Mutant, Outcome]) -> Iterator[str]:
    """Yield a line for each bug that survived, except the few that may."""
    survivors = [mutant for mutant, outcome in outcomes.items() if not outcome.caught_by]
    in_stores = [mutant for mutant in survivors if not mutant.id]
    for mutant in survivors:
        if mutant.id or len(in_stores) > MAY_SURVIVE:
            yield "\n  ".join(
                [
                    f"survived: {mutant.label} ({mutant.file})",
                    *outcomes[mutant].output.splitlines()[-_SHOWN_LINES:],
                ]
            )


def _figures(outcomes: Mapping[Mutant, Outcome]) -> Iterator[str]:
    for title, of_requirements in (
        ("bugs in the stores", False),
        ("bugs that break a requirement", True),
    ):
        caught = [
            bool(outcome.caught_by)
            for mutant, outcome in outcomes.items()
            if bool(mutant.id) == of_requirements
        ]
        yield f"{sum(caught)} of {len(caught)} {title} were caught"


# --- the result file and the page ---

_INTRO = """\
# Mutations

Deliberate bugs, put into copies of the package one at a time, and the first test that fails with \
each. `make mutants` generates
this page; do not edit it. The bugs are in `tests/mutants/`.
"""
_REQUIREMENTS = """\
## Requirements

At least one bug for each requirement that a test carries. Only the tests that carry the id are \
run. It is caught if an assertion
of such a test fails, or if the program refuses what the test asks of it; an import error or a \
time-out is not enough. None may
survive.
"""
_STORES = """\
## Stores

Plausible mistakes in the stores. The tests of the stores must catch all but two.
"""


def _written(root: Path, outcomes: Mapping[Mutant, Outcome], *, check: bool) -> list[str]:
    """Write the results and the page, or with `check` return a line if the page is not current."""
    results = [
        {**asdict(mutant), "caught_by": outcome.caught_by} for mutant, outcome in outcomes.items()
    ]
    (root / "build").mkdir(exist_ok=True)
    (root / "build" / "mutants.json").write_text(
        json.dumps(results, indent=1) + "\n", encoding="utf-8"
    )
    page, text = root / "docs" / "internals" / "mutations.md", "\n".join(_page(outcomes)) + "\n"
    if not check:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    elif not page.is_file() or _bugs(page.read_text(encoding="utf-8")) != _bugs(text):
        return ["docs/internals/mutations.md is out of date: run `make mutants`"]
    return []


def _bugs(page: str) -> list[str]:
    """Return the lines of a page without the last column: which of several tests fails first may
    differ between machines."""
    return [line.rpartition(" | ")[0] or line for line in page.splitlines()]


def _page(outcomes: Mapping[Mutant, Outcome]) -> Iterator[str]:
    yield _INTRO
    yield from (f"- {line}" for line in _figures(outcomes))
    for intro, of_requirements in ((_REQUIREMENTS, True), (_STORES, False)):
        yield f"\n{intro}"
        yield f"| {'id | ' * of_requirements}bug | file | caught by |"
        yield f"|{'---|' * (3 + of_requirements)}"
        for mutant, outcome in outcomes.items():
            if bool(mutant.id) == of_requirements:
                caught = _sentence(outcome.caught_by) if outcome.caught_by else "survived"
                yield (
                    f"| {f'{mutant.id} | ' * of_requirements}{mutant.name} | `{mutant.file}` | "
                    f"{caught} |"
                )


def _sentence(node: str) -> str:
    """Return the name of a test as a sentence, with its file."""
    file, _, function = node.partition("[")[0].partition("::")
    return f"{function.split('::')[-1].removeprefix('test_').replace('_', ' ')} (`{file}`)"


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "words", nargs="*", help="only the bugs whose id or name contains one of these"
    )
    parser.add_argument(
        "--changed",
        action="store_true",
        help="only the bugs whose file, or the test that caught them, has changed since",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare docs/internals/mutations.md instead of writing it",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
