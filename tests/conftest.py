"""Options and hooks shared by all tests: quick and deep runs, requirement ids, and no skipped tests
in CI.

A plain run is quick and the same every time: few Hypothesis examples from a fixed seed, no test
marked `deep`, and of a test marked `sample(n)` only n of its parameter sets. `--cases N`, which
`make test` gives, runs at most N parameter sets of every test. `--deep` runs every test, with many
random examples.

CI runs the quick tests with `--passed=FILE` and then the deep ones with `--not-again=FILE`: a test
that has passed, and that a deep run would repeat with the same inputs, is left out, and counts as
passed in the results of the requirements.

`@pytest.mark.req("MESH-042")` states that the test would fail if MESH-042 were broken.
`--req-results=FILE` writes the tests of each id with their outcomes; `tools/conformance.py` reads
that file.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

# Nothing fails for its time: on a busy machine a single example may take long, and so may making
# it.
_SLOW = [HealthCheck.too_slow]
settings.register_profile(
    "quick",
    max_examples=15,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=_SLOW,
)
# In CI the examples are the same in every run, so that a change is judged by what it changes, and
# fewer; elsewhere they are random. Of tests with a mark `one_in_ci(n)` it runs one in n.
IN_CI = os.environ.get("CI") == "true"
settings.register_profile(
    "deep",
    max_examples=40 if IN_CI else 200,
    derandomize=IN_CI,
    deadline=None,
    print_blob=True,
    suppress_health_check=_SLOW,
)
settings.load_profile("quick")

# Loading the local model takes a moment. Tests of vectors pass an embedder; the others, and the
# processes that they start, search by keywords. `shipped_defaults` restores the default for a test.
os.environ.setdefault("MEMORY_MESH_EMBEDDER", "none")

REQUIREMENTS = Path(__file__).parents[1] / "conformance" / "requirements.toml"


def known_ids() -> frozenset[str]:
    documents = tomllib.loads(REQUIREMENTS.read_text(encoding="utf-8"))["documents"]
    return frozenset(id_ for document in documents for id_ in document["ids"])


def pytest_addoption(parser: pytest.Parser) -> None:
    # Write it with `=`: before this hook runs, pytest takes a separate file name for a test.
    parser.addoption(
        "--req-results", metavar="FILE", help="write which tests cover which requirement, as JSON"
    )
    parser.addoption(
        "--cases", type=int, metavar="N", help="run at most N parameter sets of a test"
    )
    parser.addoption(
        "--examples",
        type=int,
        metavar="N",
        help="try N random Hypothesis examples in each property test",
    )
    parser.addoption(
        "--deep", action="store_true", help="run every test, with many random Hypothesis examples"
    )
    parser.addoption(
        "--passed",
        metavar="FILE",
        help="write which tests passed and are the same in a deep run, as JSON",
    )
    parser.addoption(
        "--not-again",
        metavar="FILE",
        help="leave out the tests that a run with --passed has written",
    )


def pytest_configure(config: pytest.Config) -> None:
    # The first write creates the audit key in the home folder: not in that of the person who runs
    # the tests.
    if "MEMORY_MESH_HOME" not in os.environ:
        os.environ["MEMORY_MESH_HOME"] = home = tempfile.mkdtemp(prefix="memory-mesh-home-")
        config.add_cleanup(partial(shutil.rmtree, home))
    # The first hook of a host starts a process, which ends when its folder is gone.
    os.environ["XDG_RUNTIME_DIR"] = runtime = tempfile.mkdtemp(prefix="memory-mesh-run-")
    config.add_cleanup(partial(shutil.rmtree, runtime))
    if config.getoption("--deep"):  # Hypothesis applies --hypothesis-profile after this
        settings.load_profile("deep")
    if examples := config.getoption("--examples"):
        settings.register_profile(
            "fuzz", settings.get_profile("deep"), max_examples=examples, derandomize=False
        )
        settings.load_profile("fuzz")
    use_memory_for_temporary_files(4 if config.getoption("--deep") else 1)
    # Under xdist the workers run the tests, and only the controller receives all reports.
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Results(config), "requirements")


def use_memory_for_temporary_files(gigabytes: int) -> None:
    """Put temporary files into memory if so much is free: on a disk every commit waits for it,
    and no test can tell."""
    memory = Path("/dev/shm")  # noqa: S108  (pytest makes a private folder in it)
    if (
        "TMPDIR" not in os.environ
        and os.access(memory, os.W_OK)
        and shutil.disk_usage(memory).free > gigabytes * 2**30
    ):
        os.environ["TMPDIR"] = tempfile.tempdir = str(memory)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if unknown := [id_ for id_ in required_by(item) if id_ not in _KNOWN]:
        pytest.fail(
            f"unknown requirement {', '.join(unknown)}; see {REQUIREMENTS.name}", pytrace=False
        )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--deep"):
        left_out = not_in_ci(items) if IN_CI else set()
    else:
        left_out = deep_only(items, config.getoption("--cases"))
    if passed := passed_before(config):
        left_out |= {item for item in items if item.nodeid in passed}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        # User properties are part of each report, also of those that a worker sends to the
        # controller.
        item.user_properties.extend(("req", id_) for id_ in required_by(item))
        if config.getoption("--passed") and not depends_on_depth(item):
            item.user_properties.append(("same_when_deep", True))


@pytest.fixture
def shipped_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder and no setting: the local model and the learnt ranker, as a user gets
    them. Returns the folder."""
    for name in [name for name in os.environ if name.startswith("MEMORY_MESH_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MEMORY_MESH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture(scope="session")
def deep(pytestconfig: pytest.Config) -> bool:
    """Whether this is a deep run; for tests whose effort is a number, such as of processes."""
    return bool(pytestconfig.getoption("--deep"))


def deep_only(items: list[pytest.Item], most: int | None = None) -> set[pytest.Item]:
    """Return the tests that only a deep run contains; of each test, `most` parameter sets stay
    or what its `sample` says."""
    found = {item for item in items if item.get_closest_marker("deep") or _is_left_out(item)}
    sets: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item not in found:
            sets[item.nodeid.partition("[")[0]].append(item)
    for same in sets.values():
        mark = same[0].get_closest_marker("sample")
        # Ordered by hash, not taken at equal steps: a step could always meet the same store.
        found.update(
            sorted(same, key=_shuffled)[int(mark.args[0]) if mark else most or len(same) :]
        )
    return found


def not_in_ci(items: list[pytest.Item]) -> set[pytest.Item]:
    """Return the tests that CI leaves out of a deep run: of n parameter sets of a test with a mark
    `one_in_ci(n)`, or of n tests of a class with one, it runs one. They are the first ones of
    the order in which a quick run takes them, so that both together run no more."""
    groups: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if mark := item.get_closest_marker("one_in_ci"):
            is_own = any(own.name == mark.name for own in item.own_markers)
            group = item.nodeid.partition("[")[0] if is_own else item.parent.nodeid
            groups[group, mark.args[0]].append(item)
    return {
        item
        for (_, number), group in groups.items()
        for item in sorted(group, key=_shuffled)[-(-len(group) // number) :]
    }


def _is_left_out(item: pytest.Item) -> bool:
    """Return whether a test with a mark `one_in(n)` is one of the n - 1 of n tests that are left
    out."""
    mark = item.get_closest_marker("one_in")
    return mark is not None and _shuffled(item)[0] % int(mark.args[0]) > 0


def _shuffled(item: pytest.Item) -> bytes:
    return hashlib.sha256(item.nodeid.encode(errors="surrogatepass")).digest()


def passed_before(config: pytest.Config) -> dict[str, list[str]]:
    """Return the tests that passed in the run that wrote the file of `--not-again`, each with
    its requirement ids."""
    file = config.getoption("--not-again")
    return dict(json.loads(Path(file).read_text(encoding="utf-8"))) if file else {}


def depends_on_depth(item: pytest.Item) -> bool:
    """Return whether a deep run gives this test other inputs than a quick run: more examples, or
    more of what it counts."""
    return (
        is_hypothesis_test(getattr(item, "obj", None))
        or "deep" in getattr(item, "fixturenames", ())
        or _draws(item.path)
    )


@cache
def _draws(file: Path) -> bool:
    """Return whether tests of a file run Hypothesis from within, which the test itself does not
    show."""
    return (
        re.search(
            r"(?m)^\s+@given\b|\brun_state_machine_as_test\b", file.read_text(encoding="utf-8")
        )
        is not None
    )


def required_by(item: pytest.Item) -> Iterator[str]:
    return (str(id_) for mark in item.iter_markers("req") for id_ in mark.args)


class Results:
    """Collects the outcome of every test."""

    def __init__(self, config: pytest.Config) -> None:
        self._file = config.getoption("--req-results")
        self._passed_file = config.getoption("--passed")
        self._strict = os.environ.get("CI") == "true"
        before = passed_before(config)
        self._ids = defaultdict(set, {node: set(ids) for node, ids in before.items()})
        self._outcomes = dict.fromkeys(before, "passed")
        self._same: set[str] = set()
        self._skipped: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._ids[report.nodeid].update(
            str(value) for name, value in report.user_properties if name == "req"
        )
        if any(name == "same_when_deep" for name, _ in report.user_properties):
            self._same.add(report.nodeid)
        if self._outcomes.get(report.nodeid, "passed") == "passed":
            self._outcomes[report.nodeid] = report.outcome
        if report.skipped:  # an expected failure counts as skipped too
            self._skipped.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._skipped.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.config.getoption("collectonly"):
            self._outcomes = {item.nodeid: "collected" for item in session.items}
            self._ids.update((item.nodeid, set(required_by(item))) for item in session.items)
        if self._file:
            tests = {
                node: {"outcome": self._outcomes[node], "ids": sorted(ids)}
                for node, ids in sorted(self._ids.items())
                if ids
            }
            Path(self._file).write_text(
                json.dumps({"tests": tests}, indent=1) + "\n", encoding="utf-8"
            )
        if self._passed_file:
            passed = {
                node: sorted(self._ids[node])
                for node in sorted(self._same)
                if self._outcomes[node] == "passed"
            }
            Path(self._passed_file).write_text(
                json.dumps(passed, indent=1) + "\n", encoding="utf-8"
            )
        if self._strict and self._skipped:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._strict and self._skipped:
            terminalreporter.section("skipped, which CI does not allow", red=True)
            for node in sorted(set(self._skipped)):
                terminalreporter.write_line(node)


_KNOWN = known_ids()
