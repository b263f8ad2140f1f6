"""Requirement marks: a run records which tests cover which id, and a resolved milestone keeps
the ids that it promised."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

import conformance

ROOT = Path(__file__).parents[1]
LIST = ROOT / "conformance" / "requirements.toml"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with our conftest and two requirements."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "conformance").mkdir()
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    markers = "".join(f"  {mark}\n" for mark in ("req(*ids)", "deep", "sample(n)", "one_in_ci(n)"))
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers =\n{markers}")
    write_list(tmp_path, holds=["ONE-1"])
    return tmp_path


def write_list(
    project: Path, *, holds: list[str], resolved: bool = True, missing: str = ""
) -> None:
    (project / "conformance" / "requirements.toml").write_text(
        '[[documents]]\nprefix = "ONE"\ntitle = "The first document"\nids = ["ONE-1", "ONE-2"]\n'
        f'[[milestones]]\nnumber = 1\ntitle = "first"\nresolved = {str(resolved).lower()}\n'
        f"holds = {json.dumps(holds)}\n"
        f"[missing]\n{missing}\n"
    )


def run_tests(
    project: Path, text: str, *options: str, ci: bool = False
) -> "subprocess.CompletedProcess[str]":
    (project / "tests" / "test_it.py").write_text("import pytest\n" + text)
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:cov",
        "-p",
        "no:hypothesispytest",
        "-p",
        "no:schemathesis",
        "-p",
        "no:langsmith_plugin",
    ]
    words += ["--req-results=results.json", *options]
    # The run is one of its own, not a worker of ours.
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "COV_"))
    }
    environment = {**inherited, "CI": "true" if ci else "false"}
    return subprocess.run(
        words, cwd=project, env=environment, capture_output=True, text=True, check=False
    )


def recorded(project: Path) -> dict[str, tuple[str, list[str]]]:
    tests = json.loads((project / "results.json").read_text())["tests"]
    return {
        node.split("::")[1]: (result["outcome"], result["ids"]) for node, result in tests.items()
    }


def judge(
    project: Path, results: dict[str, tuple[str, list[str]]], *options: str
) -> tuple[int, str]:
    """Run the tool on these results, and return its exit code and what it prints."""
    tests = {
        f"tests/test_it.py::{name}": {"outcome": outcome, "ids": ids}
        for name, (outcome, ids) in results.items()
    }
    (project / "results.json").write_text(json.dumps({"tests": tests}))
    words = ["--results", str(project / "results.json"), "--page", str(project / "page.md")]
    words += ["--requirements", str(project / "conformance" / "requirements.toml"), *options]
    with redirect_stdout(StringIO()) as printed:
        code = conformance.main(words)
    return code, printed.getvalue()


def test_the_list_names_every_requirement_once_under_its_document() -> None:
    documents = tomllib.loads(LIST.read_text(encoding="utf-8"))["documents"]
    assert {one["prefix"]: len(one["ids"]) for one in documents} == {
        "MESH": 171,
        "NOTE": 54,
        "TRACE": 38,
        "GRAPH": 93,
        "LANE": 41,
    }
    ids = Counter(id_ for one in documents for id_ in one["ids"])
    assert len(ids) == 397
    assert set(ids.values()) == {1}
    assert all(id_.startswith(one["prefix"] + "-") for one in documents for id_ in one["ids"])


def test_what_a_milestone_promises_stands_once_and_in_order() -> None:
    for milestone in tomllib.loads(LIST.read_text(encoding="utf-8"))["milestones"]:
        assert milestone["holds"] == sorted(set(milestone["holds"]))


MIXED = """
@pytest.mark.req("ONE-1")
def test_good(): pass

@pytest.mark.req("ONE-1", "ONE-2")
def test_bad(): assert False

@pytest.mark.req("ONE-2")
@pytest.mark.parametrize("n", [1, 2])
def test_each(n): pass

@pytest.fixture
def leaky():
    yield
    raise RuntimeError

@pytest.mark.req("ONE-2")
def test_bad_at_its_end(leaky): pass

@pytest.mark.req("ONE-3")
def test_unknown(): pass

def test_silent(): pass
"""
LEFT_OUT = """
def test_fine(): pass

@pytest.mark.skip
def test_marked(): pass

def test_called(): pytest.skip("why")

@pytest.mark.xfail
def test_expected_to_fail(): assert False
"""
DEEP = """
@pytest.mark.deep
def test_slow(): pass

@pytest.mark.sample(3)
@pytest.mark.parametrize("n", range(20))
def test_many(n): pass
"""
# With workers the tests run in other processes, and only the controller writes the results.
WORKERS = [
    pytest.param([], id="alone"),
    pytest.param(["-n", "2"], id="workers", marks=pytest.mark.deep),
]


@pytest.mark.parametrize("workers", WORKERS)
def test_each_id_is_recorded_with_the_outcomes_of_its_tests_and_an_unknown_id_fails(
    project: Path, workers: list[str]
) -> None:
    done = run_tests(project, MIXED, *workers)
    assert done.returncode == 1
    assert recorded(project) == {
        "test_good": ("passed", ["ONE-1"]),
        "test_bad": ("failed", ["ONE-1", "ONE-2"]),
        "test_each[1]": ("passed", ["ONE-2"]),
        "test_each[2]": ("passed", ["ONE-2"]),
        "test_bad_at_its_end": ("failed", ["ONE-2"]),
        "test_unknown": ("failed", ["ONE-3"]),
    }
    assert "unknown requirement ONE-3" in done.stdout


def test_collected_tests_are_recorded_without_a_run(project: Path) -> None:
    run_tests(project, MIXED, "--collect-only")
    assert recorded(project)["test_bad"] == ("collected", ["ONE-1", "ONE-2"])


@pytest.mark.parametrize("workers", WORKERS)
def test_in_ci_a_skipped_test_fails_the_run_and_a_deselected_one_does_not(
    project: Path, workers: list[str]
) -> None:
    (project / "tests" / "test_other.py").write_text(
        "import pytest\npytest.importorskip('no_such_module')\n"
    )
    done = run_tests(project, LEFT_OUT + DEEP, *workers, ci=True)
    assert done.returncode == 1
    assert "4 passed" in done.stdout
    named = done.stdout.split("which CI does not allow")[1]
    assert all(
        name in named
        for name in ("test_other.py", "test_marked", "test_called", "test_expected_to_fail")
    )
    assert not any(name in named for name in ("test_fine", "test_slow", "test_many"))


@pytest.mark.deep
def test_outside_ci_a_test_may_be_skipped(project: Path) -> None:
    assert run_tests(project, LEFT_OUT).returncode == 0


@pytest.mark.deep
def test_a_deep_run_leaves_nothing_out(project: Path) -> None:
    assert "21 passed" in run_tests(project, DEEP, "--deep").stdout


ALIKE = """
@pytest.mark.req("ONE-1")
@pytest.mark.sample(1)
@pytest.mark.one_in_ci(3)
@pytest.mark.parametrize("step", range(7))
def test_killed(step): pass

@pytest.mark.one_in_ci(2)
class TestContract:
    def test_one(self): pass
    def test_two(self): pass
    def test_three(self): pass
"""


def test_in_ci_a_deep_run_takes_one_in_n_of_what_is_alike_and_what_the_quick_run_took(
    project: Path,
) -> None:
    run_tests(project, ALIKE)
    quick = recorded(project).keys()
    assert len(quick) == 1
    done = run_tests(project, ALIKE, "--deep", ci=True)
    assert "5 passed" in done.stdout  # three of seven sets and two of three tests
    assert quick < recorded(project).keys()
    assert "10 passed" in run_tests(project, ALIKE, "--deep").stdout


TWICE = """
from hypothesis import given, strategies

@pytest.mark.req("ONE-1")
@pytest.mark.sample(2)
@pytest.mark.parametrize("n", range(5))
def test_many(n): pass

@pytest.mark.req("ONE-2")
@given(strategies.integers())
def test_property(n): pass

@pytest.mark.req("ONE-2")
def test_effort(deep): pass

def test_bad(deep): assert deep

@pytest.mark.deep
def test_slow(): pass
"""
INSIDE = """
from hypothesis import given, strategies

def test_property_inside():
    @given(strategies.integers())
    def any_number(n): pass
    any_number()
"""


@pytest.mark.parametrize("workers", WORKERS)
def test_what_passed_with_the_same_inputs_is_not_run_again_and_counts_as_passed(
    project: Path, workers: list[str]
) -> None:
    (project / "tests" / "test_inside.py").write_text(INSIDE)
    assert (
        "1 failed, 5 passed" in run_tests(project, TWICE, "--passed=passed.json", *workers).stdout
    )
    passed = json.loads((project / "passed.json").read_text())
    assert len(passed) == 2
    assert all(
        node.startswith("tests/test_it.py::test_many[") and ids == ["ONE-1"]
        for node, ids in passed.items()
    )
    assert (
        "8 passed"
        in run_tests(project, TWICE, "--deep", "--not-again=passed.json", *workers).stdout
    )
    again = {f"test_many[{n}]": ("passed", ["ONE-1"]) for n in range(5)}
    assert recorded(project) == {
        **again,
        "test_property": ("passed", ["ONE-2"]),
        "test_effort": ("passed", ["ONE-2"]),
    }


def test_a_promise_kept_passes_and_is_written_down(project: Path) -> None:
    code, printed = judge(project, {"test_it_holds": ("passed", ["ONE-1"])})
    assert code == 0
    assert "ONE: 1 of 2 covered, 0 in part, 1 not yet\n  not yet: 2" in printed
    page = (project / "page.md").read_text()
    assert "| ONE-1 | it holds (`test_it.py`) |" in page
    assert "| ONE-2 | not yet |" in page
    assert "| all | 2 | 1 | 0 | 1 |" in page


def test_what_is_covered_in_part_is_shown_as_such_and_keeps_no_promise(project: Path) -> None:
    results = {"test_one": ("passed", ["ONE-1"]), "test_two": ("passed", ["ONE-2"])}
    write_list(project, holds=["ONE-1"], missing='ONE-2 = "the other half"')
    assert judge(project, results)[0] == 0
    page = (project / "page.md").read_text()
    assert "| ONE-2 | in part; missing: the other half<br>two (`test_it.py`) |" in page
    assert "| all | 2 | 1 | 1 | 0 |" in page
    write_list(project, holds=["ONE-1"], missing='ONE-1 = "the other half"')
    assert "milestone 1 promises ONE-1, but no passing test covers it" in judge(project, results)[1]
    write_list(project, holds=[], missing='ONE-2 = "the other half"')
    assert (
        "ONE-2 is listed as covered in part, but no passing test covers it" in judge(project, {})[1]
    )


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ({}, "milestone 1 promises ONE-1, but no passing test covers it"),
        (
            {"test_x": ("failed", ["ONE-1"])},
            "tests/test_it.py::test_x did not pass; it covers ONE-1",
        ),
        (
            {
                "test_y": ("passed", ["ONE-1"]),
                "test_x[a]": ("passed", ["ONE-2"]),
                "test_x[b]": ("failed", ["ONE-2"]),
            },
            "tests/test_it.py::test_x did not pass; it covers ONE-2",
        ),
        (
            {"test_y": ("passed", ["ONE-1"]), "test_z": ("skipped", ["ONE-2"])},
            "test_z did not pass; it covers ONE-2",
        ),
        ({"test_y": ("passed", ["ONE-1", "TWO-1"])}, "unknown requirement TWO-1"),
    ],
)
def test_a_promise_broken_fails_with_its_name(
    project: Path, results: dict[str, tuple[str, list[str]]], said: str
) -> None:
    code, printed = judge(project, results)
    assert code == 1
    assert said in printed


def test_a_milestone_that_is_not_resolved_promises_nothing(project: Path) -> None:
    write_list(project, holds=["ONE-2"], resolved=False)
    assert judge(project, {})[0] == 0


def test_the_page_is_the_same_for_the_same_results_and_an_old_one_is_found(project: Path) -> None:
    results = {"test_b": ("passed", ["ONE-1"]), "test_a": ("passed", ["ONE-1"])}
    judge(project, results)
    first = (project / "page.md").read_text()
    assert judge(project, dict(reversed(results.items())), "--check")[0] == 0
    code, printed = judge(project, {"test_c": ("passed", ["ONE-1"])}, "--check")
    assert code == 1
    assert "page.md is out of date" in printed
    assert (project / "page.md").read_text() == first
