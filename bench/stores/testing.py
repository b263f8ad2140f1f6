"""The tests of a store: run now, or counted in the report of an earlier run of all tests, which
takes most of an hour."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from bench.stores.places import ROOT

Counts = dict[str, int]
_OUTCOMES = ("passed", "failed", "skipped")


def run_tests(arguments: Sequence[str]) -> Counts:
    """Run tests, the slow ones too, with few examples; return how many passed, failed and were
    skipped: zeros if none ran."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "results.xml")
        _pytest("--hypothesis-profile=quick", f"--junitxml={report}", *arguments)
        found = Counter(read_report(report).values()) if report.exists() else Counter[str]()
    return {outcome: found[outcome] for outcome in _OUTCOMES}


def count_tests(report: Path, arguments: Sequence[str]) -> Counts:
    """Return how many of the tests that pytest selects by these arguments passed, failed and
    were skipped by a report."""
    listed = _pytest("--collect-only", *arguments).splitlines()
    return count_outcomes(read_report(report), [line for line in listed if "::" in line])


def count_outcomes(outcomes: dict[tuple[str, str], str], nodes: Iterable[str]) -> Counts:
    """Count the outcomes of tests. A test without one means that the report is of other tests,
    and nothing is counted."""
    found = Counter[str]()
    for node in nodes:
        if key_of(node) not in outcomes:
            raise SystemExit(
                f"the report has no result of {node}: it is of another version, or of some "
                "tests only"
            )
        found[outcomes[key_of(node)]] += 1
    return {outcome: found[outcome] for outcome in _OUTCOMES}


def read_report(report: Path) -> dict[tuple[str, str], str]:
    """Return the outcome of each test in a JUnit report, by the names of its class and function."""
    outcomes: dict[tuple[str, str], str] = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):  # noqa: S314  (pytest's file)
        tags = {child.tag for child in case}
        outcome = (
            "failed"
            if tags & {"failure", "error"}
            else "skipped"
            if "skipped" in tags
            else "passed"
        )
        key = case.get("classname", ""), case.get("name", "")
        # A test that passes and whose fixtures then fail is there twice.
        outcomes[key] = outcome if outcomes.get(key, "passed") == "passed" else outcomes[key]
    return outcomes


def key_of(node: str) -> tuple[str, str]:
    """Return the names of the class and the function of a test in a JUnit report."""
    head, bracket, parameters = node.partition("[")
    file, *classes, function = head.split("::")
    return ".".join(
        (file.removesuffix(".py").replace("/", "."), *classes)
    ), function + bracket + parameters


def _pytest(*arguments: str) -> str:
    options = ("-q", "-n", "0", "--deep", "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    return subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True).stdout
