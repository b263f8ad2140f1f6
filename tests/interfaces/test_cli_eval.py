"""`memory-mesh eval`: the report, the files and the exit codes."""

import json
import os
from pathlib import Path

import pytest

TEXTS = (
    "The staging database listens on port 5433.",
    "Invoices are paid by bank transfer within fourteen days.",
)


@pytest.fixture
def filled(cli):
    for text in TEXTS:
        assert cli("store", text).code == 0
    return cli


def test_the_report_names_each_figure_and_each_check_on_a_terminal_too(filled):
    said = filled("eval")
    assert said.code == 0
    assert said.out.startswith("[MemoryMesh] Evaluated 2 memories with 4 questions: passed\n")
    on_terminal = filled("eval", terminal=True).out
    for name in (
        "recall@10",
        "mean reciprocal rank",
        "near duplicates",
        "hidden memories found",
        "files that others can reach",
    ):
        assert name in said.out
        assert name in on_terminal


def test_json_has_the_figures_and_each_question(filled):
    data = json.loads(filled("eval", "--json").out)
    assert (data["passed"], data["retrieval"]["recall_at_10"], data["nothing"]["fraction"]) == (
        True,
        1.0,
        1.0,
    )
    assert len(data["answered"]) == 4


@pytest.mark.parametrize(
    "flags", [("--min-recall", "0.9"), ("--min-mrr", "0.9"), ("--min-nothing", "1")]
)
def test_a_figure_below_its_minimum_fails(filled, flags):
    lines = [{"question": "On which port does the database listen?", "expect": ["no such text"]}]
    lines.append({"question": "Which port?", "nothing": True})
    Path("questions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    said = filled("eval", "--questions", "questions.jsonl", *flags)
    assert (said.code, "failed, " in said.out) == (1, True)
    assert filled("eval", *flags).code == 0  # the control: made questions reach it


def test_a_figure_that_cannot_be_measured_is_below_every_minimum(cli):
    assert cli("eval").code == 0
    assert cli("eval", "--min-recall", "0").code == 1


def test_a_bad_line_is_an_error_with_its_number(filled):
    Path("questions.jsonl").write_text('{"question": "a", "nothing": true}\n{"question": \n')
    said = filled("eval", "--questions", "questions.jsonl")
    assert (said.code, said.out) == (2, "")
    assert "line 2 of the questions is not valid JSON" in said.err
    Path("latin").write_bytes(b'{"question": "caf\xe9", "nothing": true}')
    assert "not UTF-8" in filled("eval", "--questions", "latin").err
    assert filled("eval", "--questions", "missing").code == 2
    assert filled("eval", "--count", "0").code == 2


def test_the_page_has_charts_escapes_texts_and_replaces_no_file(filled):
    lines = {"question": "Who wrote <script>alert(1)</script>?", "expect": ["no such text"]}
    Path("questions.jsonl").write_text(json.dumps(lines))
    said = filled("eval", "--questions", "questions.jsonl", "--html", "report.html")
    assert "The report is in report.html" in said.out
    page = Path("report.html").read_text()
    assert "<svg" in page
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert os.name != "posix" or Path("report.html").stat().st_mode & 0o077 == 0
    assert filled("eval", "--html", "report.html").code == 2


def test_files_that_others_can_reach_are_named(filled, home: Path):
    (home / "memory.db").chmod(0o644)
    said = filled("eval")
    assert "chmod go-rwx" in said.out
    assert said.code == 0
