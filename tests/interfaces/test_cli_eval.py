"""`memory-mesh eval`: the report, the files and the exit codes."""

import json
import os
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[2] / "bench" / "results" / "everyday.json"
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
        "finds itself first by its own words",
        "nothing answered by nothing",
        "near duplicates",
        "hidden memories found",
        "files that others can reach",
    ):
        assert name in said.out
        assert name in on_terminal


def row(out: str, name: str) -> str:
    return next(line for line in out.splitlines() if line.startswith(name))


def remark(out: str, name: str) -> str:
    return row(out, f"{name}: ")


def test_the_report_does_not_say_more_than_it_measured(filled):
    out = filled("eval").out
    assert "–" in row(out, "recall@1 ")
    assert "not measured: give --questions FILE" in remark(out, "recall@1")
    own = "finds itself first by its own words"
    assert row(out, own).removeprefix(own).split() == ["1.00", "0.34", "to", "1.00", "2"]
    assert "fewer than 30: too few to conclude; an upper bound" in remark(out, own)
    known = "outdated above current, known changes"
    assert row(out, known).removeprefix(known).split() == ["–", "0"]
    assert "no pairs are known: that is not the same as" in remark(out, known)
    assert "set ranker" not in out


def test_the_figures_of_the_corpus_are_named_as_such_and_come_from_its_results(filled):
    result = json.loads(RESULTS.read_text(encoding="utf-8"))
    out = filled("eval").out
    assert "To compare, not measured here: questions of the corpus of everyday use" in out
    assert f"commit {result['commit'][:7]}" in out
    whole = result["splits"]["test"]["one"]["table"]["all with an answer"]
    share = whole["rankers"]["ours"]["first"] / whole["questions"]
    assert f"{share:.2f}" in row(out, "all with an answer")
    assert str(whole["questions"]) in row(out, "all with an answer")
    ask(filled, {"question": "Which port?", "expect": [TEXTS[0]]})
    assert "corpus" not in filled("eval", "--questions", "questions.jsonl").out


def ask(filled, *lines):
    Path("questions.jsonl").write_text("\n".join(map(json.dumps, lines)))


def test_outdated_answers_to_given_questions_are_counted_and_listed(filled):
    ask(filled, {"question": "Which port?", "expect": ["no such text"], "stale": [TEXTS[0]]})
    out = filled("eval", "--questions", "questions.jsonl").out
    assert "1.00" in row(out, "outdated above current, given")
    assert f"outdated above no such text: {TEXTS[0]}, for “Which port?”" in out
    assert "your questions" in remark(out, "recall@1")
    assert "finds itself" not in out
    data = json.loads(filled("eval", "--questions", "questions.jsonl", "--json").out)
    assert data["stale"]["given"] == {
        "above": 1, "pairs": 1, "share": 1.0, "interval": [pytest.approx(0.2065, abs=1e-4), 1.0],
    }  # fmt: skip


def test_json_has_the_figures_with_their_intervals_and_each_question(filled):
    data = json.loads(filled("eval", "--json").out)
    assert (data["passed"], data["retrieval"]["questions"], data["nothing"]["fraction"]) == (
        True,
        0,
        1.0,
    )
    assert "recall_at_10" not in data["retrieval"]
    own = data["own_words"]
    assert (own["recall_at_10"], own["intervals"]["recall_at_10"][1]) == (1.0, 1.0)
    assert data["stale"]["known"] == {"above": 0, "pairs": 0}
    assert data["everyday"]["kinds"]["direct"]["questions"] > 100
    assert {one["source"] for one in data["answered"]} == {"rules", "given"}
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
    lines[0]["expect"] = [TEXTS[0]]
    lines[1] = {"question": "Who tunes the zither?", "nothing": True}
    Path("questions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert filled("eval", "--questions", "questions.jsonl", *flags).code == 0


def test_questions_in_the_words_of_the_memories_reach_no_minimum(filled):
    said = filled("eval", "--min-recall", "0.1")
    assert (said.code, "failed, recall@10 was not measured" in said.out) == (1, True)


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
