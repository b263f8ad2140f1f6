"""Result files name the commit, and the page of benchmarks refuses what was measured with
uncommitted changes."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from bench.commit import measured_at
from bench.stores import results as store_results
from bench.stores.testing import count_outcomes, read_report

import bench_docs

RESULT = {"command": "python -m bench.quality", "sets": {}, "commit": "0123456789abcdef"}


def git(folder: Path, *words: str) -> str:
    own = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words]
    return subprocess.run(
        own, cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_a_result_has_the_commit_and_whether_the_files_were_those_of_the_commit(
    tmp_path: Path,
) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "code.py").write_text("one\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "bench" / "results").mkdir(parents=True)
    # The benchmark before wrote its result.
    (tmp_path / "bench" / "results" / "speed.json").write_text("{}")
    assert measured_at(tmp_path) == {"commit": commit, "clean": True}
    (tmp_path / "code.py").write_text("two\n")
    assert measured_at(tmp_path) == {"commit": commit, "clean": False}
    git(tmp_path, "checkout", "-q", "code.py")
    (tmp_path / "new.py").touch()
    assert measured_at(tmp_path) == {"commit": commit, "clean": False}


def test_without_a_repository_the_commit_is_not_recorded(tmp_path: Path) -> None:
    assert measured_at(tmp_path) == {"commit": None, "clean": None}


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ({"clean": True}, "`python -m bench.quality`, commit 0123456."),
        ({}, "`python -m bench.quality`, commit 0123456 (uncommitted changes not recorded)."),
        ({"commit": None, "clean": None}, "`python -m bench.quality`, commit not recorded."),
    ],
)
def test_the_page_names_the_commit_and_says_what_was_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: dict[str, object], shown: str
) -> None:
    (tmp_path / "quality.json").write_text(json.dumps({**RESULT, **recorded}))
    monkeypatch.setattr(bench_docs, "RESULTS", tmp_path)
    assert shown in bench_docs.page()


_OF_THE_PAGE = [
    "quality",
    "quality_peers",
    "everyday",
    "everyday_peers",
    "speed",
    "speed_peers",
    "speed_stores",
    "rest",
    "users",
    "reflect",
    "claims",
    "redaction",
    "hostile",
]


@pytest.mark.parametrize(
    ("name", "write"),
    [
        *((name, bench_docs.page) for name in _OF_THE_PAGE),
        *((name, bench_docs.summary) for name in ("quality", "speed", "speed_peers", "everyday")),
        ("everyday", bench_docs.expected),
        ("stores", bench_docs.scale),
        ("context", bench_docs.context),
        ("upkeep", bench_docs.lifecycle),
        ("traces", bench_docs.traces),
        ("console", bench_docs.console),
        ("hygiene", bench_docs.hygiene),
        ("soak", bench_docs.soak),
        ("soak_alone", bench_docs.soak),
    ],
)
def test_a_result_of_uncommitted_changes_is_refused_in_the_docs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, write: Callable[[], str]
) -> None:
    (tmp_path / f"{name}.json").write_text(json.dumps({**RESULT, "clean": False}))
    monkeypatch.setattr(bench_docs, "RESULTS", tmp_path)
    with pytest.raises(SystemExit, match=rf"{name}\.json was measured with uncommitted changes"):
        write()


@pytest.mark.parametrize(
    ("path", "write", "figure"),
    [
        ("README", bench_docs.readme, "/s |"),
        *(
            [("SCALE", bench_docs.scale, "/s |")]
            if (bench_docs.RESULTS / "stores.json").exists()
            else []
        ),
        ("CONTEXT", bench_docs.context, " % |"),
        ("LIFECYCLE", bench_docs.lifecycle, " MB |"),
        ("TRACES", bench_docs.traces, " ms |"),
        *(
            [("CONSOLE", bench_docs.console, " ms |")]
            if (bench_docs.RESULTS / "console.json").exists()
            else []
        ),
        *(
            [("HYGIENE", bench_docs.hygiene, "| memory-mesh |")]
            if (bench_docs.RESULTS / "hygiene.json").exists()
            else []
        ),
    ],
)
def test_figures_that_are_not_those_of_the_results_are_written_anew(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    write: Callable[[], str],
    figure: str,
) -> None:
    page, current = getattr(bench_docs, path), write()
    assert current == page.read_text(encoding="utf-8")
    stale = tmp_path / page.name
    stale.write_text(current.replace(figure, f" more{figure}"), encoding="utf-8")
    monkeypatch.setattr(bench_docs, path, stale)
    assert write() == current != stale.read_text(encoding="utf-8")
    stale.write_text("without markers", encoding="utf-8")
    with pytest.raises(SystemExit, match="has no place for figures"):
        write()


def test_the_figures_of_the_corpus_that_an_evaluation_shows_are_those_of_the_result() -> None:
    assert bench_docs.expected() == bench_docs.EXPECTED.read_text(encoding="utf-8")


def test_a_part_that_is_measured_again_replaces_itself_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, timing = tmp_path / "stores.json", {"p50_ms": 1.0, "cpu_p50_ms": 1.0}
    times = {"bulk_per_s": 100.0, "add": timing, "search": timing, "filtered": timing}
    for store, size, disk in (
        ("sqlite", 1000, 5),
        ("postgresql", 1000, 7),
        ("sqlite", 100, 6),
        ("sqlite", 1000, 8),
    ):
        store_results.put(
            file,
            0.1,
            store,
            "sizes",
            size,
            {"memories": size, "times": times, "resident": -1, "disk": disk},
        )
    store_results.put(
        file, 0.1, "sqlite", "tests", "crash", {"passed": 3, "failed": 1, "skipped": 0}
    )
    store_results.put(file, 0.1, "s3", "sizes", 1000, {"memories": 1000, "left_out": "no server"})
    sqlite, postgresql, _ = store_results.read(file)
    assert [(one["memories"], one["disk"]) for one in sqlite["sizes"]] == [(100, 6), (1000, 8)]
    assert [one["disk"] for one in postgresql["sizes"]] == [7]
    store_results.draw(file)
    assert {path.name for path in tmp_path.glob("*.svg")} == {
        f"stores_{name}.svg" for name in ("insert", "search", "filtered", "disk")
    }
    monkeypatch.setattr(
        bench_docs, "_read", lambda _: {**json.loads(file.read_text()), "clean": True}
    )
    found = json.loads(file.read_text())
    for row in found["stores"]:
        for part in (*row["tests"].values(), *row["sizes"]):
            part["clean"] = True
    file.write_text(json.dumps(found))
    page = bench_docs.scale()
    assert "| sqlite | 1,000 | 100/s |" in page
    assert "| sqlite | – | – | **1 failed**, 3 passed |" in page
    assert "- s3 with 1,000 was not measured: no server" in page


def test_the_tests_of_a_store_are_counted_in_the_report_of_a_whole_run(tmp_path: Path) -> None:
    report, file = tmp_path / "deep.xml", "tests/stores/test_a.py"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.stores.test_a.TestRam" '
        'name="test_one[a::b-c]"/><testcase classname="tests.stores.test_a.TestRam" '
        'name="test_two"><failure/></testcase>'
        '<testcase classname="tests.stores.test_a.TestRam" name="test_three"/>'
        '<testcase classname="tests.stores.test_a.TestRam" name="test_three"><error/></testcase>'
        '<testcase classname="tests.stores.test_a" name="test_four"><skipped/></testcase>'
        '<testcase classname="tests.stores.test_a" '
        'name="test_of_another_store"/></testsuite></testsuites>'
    )
    outcomes = read_report(report)
    nodes = [
        f"{file}::TestRam::test_one[a::b-c]",
        *(f"{file}::TestRam::test_{name}" for name in ("two", "three")),
    ]
    assert count_outcomes(outcomes, [*nodes, f"{file}::test_four"]) == {
        "passed": 1,
        "failed": 2,
        "skipped": 1,
    }
    with pytest.raises(SystemExit, match="test_new: it is of another version"):
        count_outcomes(outcomes, [*nodes, f"{file}::test_new"])


def test_what_was_reached_comes_from_the_run_of_the_tables_of_speed() -> None:
    speed = json.loads((bench_docs.RESULTS / "speed.json").read_text(encoding="utf-8"))
    goals = {goal["what"]: goal for goal in speed["goals"]}
    tried, page = bench_docs.TRIED.read_text(encoding="utf-8"), bench_docs.page()
    listed = re.findall(r"^\| \{goal:([^{}]+)\} \|", tried, re.MULTILINE)
    table = tried.partition("| goal | reached |")[2]
    assert len(listed) > 5
    assert len(listed) == table.count("\n| ") - 1, "a figure is written by hand"
    for what in listed:
        assert not goals[what]["met"]
        assert f"| {what} {goals[what]['target']} | {goals[what]['measured']} |" in page
    assert "{goal:" not in page
    assert "{reached:" not in page
