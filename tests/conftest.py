"""What all tests share: a test names the requirements it holds, and in CI no test may be skipped.

`@pytest.mark.req("MESH-042")` says that the test would fail if MESH-042 were broken. `--req-results=FILE` writes which tests
spoke for which id, and how they ended; `tools/conformance.py` reads it.
"""

import json
import os
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# On a busy machine an example may take its time; in CI the same examples are drawn in every run.
settings.register_profile("house", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("house")

# Loading the real model takes a moment. Tests that are about vectors hand in an embedder; the others, and the processes that
# they start, go by keywords.
os.environ.setdefault("MEMORY_MESH_EMBEDDER", "none")

REQUIREMENTS = Path(__file__).parents[1] / "conformance" / "requirements.toml"


def known_ids() -> frozenset[str]:
    documents = tomllib.loads(REQUIREMENTS.read_text(encoding="utf-8"))["documents"]
    return frozenset(id_ for document in documents for id_ in document["ids"])


def pytest_addoption(parser: pytest.Parser) -> None:
    # Give it with `=`: pytest looks for conftest files before it knows the option, and takes a file that stands alone for a test.
    parser.addoption("--req-results", metavar="FILE", help="write which tests hold which requirement, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    # Under xdist the workers run the tests and the controller hears of each: there alone everything comes together.
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Witness(config), "requirements")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if unknown := [id_ for id_ in claimed(item) if id_ not in _KNOWN]:
        pytest.fail(f"no requirement is called {', '.join(unknown)}; see {REQUIREMENTS.name}", pytrace=False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # User properties travel with each report, from a worker to the controller too.
        item.user_properties.extend(("req", id_) for id_ in claimed(item))


def claimed(item: pytest.Item) -> Iterator[str]:
    return (str(id_) for mark in item.iter_markers("req") for id_ in mark.args)


class Witness:
    """Hears how every test ends."""

    def __init__(self, config: pytest.Config) -> None:
        self._file = config.getoption("--req-results")
        self._strict = os.environ.get("CI") == "true"
        self._ids: dict[str, set[str]] = defaultdict(set)
        self._outcomes: dict[str, str] = {}
        self._left_out: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._ids[report.nodeid].update(str(value) for name, value in report.user_properties if name == "req")
        if self._outcomes.get(report.nodeid, "passed") == "passed":
            self._outcomes[report.nodeid] = report.outcome
        if report.skipped:  # an expected failure counts as skipped too
            self._left_out.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._left_out.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._file:
            tests = {
                node: {"outcome": self._outcomes[node], "ids": sorted(ids)} for node, ids in sorted(self._ids.items()) if ids
            }
            Path(self._file).write_text(json.dumps({"tests": tests}, indent=1) + "\n", encoding="utf-8")
        if self._strict and self._left_out:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._strict and self._left_out:
            terminalreporter.section("skipped, which CI does not allow", red=True)
            for node in sorted(set(self._left_out)):
                terminalreporter.write_line(node)


_KNOWN = known_ids()
