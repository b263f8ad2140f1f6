"""Traces and entries of the experience log without files: their text, what people edit in it,
and goals."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.notes import Fault
from memory_mesh.core.traces import (
    DECISION,
    OUTCOMES,
    STATUSES,
    Step,
    Trace,
    checked_experience,
    checked_trace,
    cut_at,
    normalised,
    read_experiences,
    read_traces,
    summarised_goal,
    with_texts,
    word_similarity,
)

PLOT = checked_trace(
    trace_id="trace-1704110400000-3fa9c2", timestamp="2024-01-01T12:00:00Z", goal="Create a plot",
    duration_ms=12345, tools_used=["python", "matplotlib"],
    files_created=["path/to/file1.py", "path/to/file2.md"], plan="Read the data, then plot it.",
    steps=["Read the data", ("Draw the plot", "failed")], results="plot.png has 3 lines.",
    learnings=["CSV reads fast", "Decision: use SVG"],
)  # fmt: skip
PLOT_TEXT = """---
trace_id: trace-1704110400000-3fa9c2
timestamp: "2024-01-01T12:00:00.000Z"
goal: "Create a plot"
status: success
duration_ms: 12345
tools_used:
  - python
  - matplotlib
files_created:
  - path/to/file1.py
  - path/to/file2.md
---

# Execution Trace: Create a plot

## Plan
Read the data, then plot it.

## Steps Executed
1. Read the data - done
2. Draw the plot - failed

## Results
plot.png has 3 lines.

## Learnings
- CSV reads fast
- Decision: use SVG

"""
ENTRY = checked_experience(
    experience_id="exp_7", project_name="atlas", primary_goal="Create a plot",
    final_outcome="success_with_recovery", components_used=["planner", "python"], files_created=2,
    output_summary="plot.png has 3 lines.", execution_time_ms=12345,
    learnings_or_issues="CSV reads fast\nThe second run was needed",
    timestamp="2024-01-01T12:00:00.000Z",
)  # fmt: skip
ENTRY_TEXT = """---
experience_id: exp_7
project_name: atlas
primary_goal: "Create a plot"
final_outcome: success_with_recovery
components_used:
  - planner
  - python
files_created: 2
output_summary: "plot.png has 3 lines."
execution_time_ms: 12345
learnings_or_issues: |
  CSV reads fast
  The second run was needed
timestamp: "2024-01-01T12:00:00.000Z"
---

"""
# Every kind of character, and what could be taken for structure.
PIECES = st.sampled_from(
    [
        "---",
        "# ",
        "## Plan",
        "## Learnings",
        "- ",
        "1. ",
        " - ",
        "\\",
        "\n",
        "\r\n",
        "  ",
        "\t",
        "trace_id: x",
        "null",
        "...",
    ]
)
TEXTS = st.one_of(
    st.text(max_size=20), st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=8).map("".join)
)
FULL = TEXTS.filter(lambda text: text.encode("utf-8", "replace").decode().strip())
STEP_STATUS = st.sampled_from(["done", "failed", "skipped: no data", "ok -", "50 %"])
TRACES = st.builds(
    checked_trace, trace_id=st.from_regex(r"trace-[0-9]{13}-[0-9a-f]{6}", fullmatch=True),
    timestamp=st.datetimes().map(lambda at: at.isoformat()), goal=FULL,
    status=st.sampled_from(STATUSES), duration_ms=st.integers(0, 10**12),
    tools_used=st.lists(FULL, max_size=3), files_created=st.lists(FULL, max_size=3), plan=TEXTS,
    steps=st.lists(st.tuples(FULL, STEP_STATUS), max_size=3), results=TEXTS,
    learnings=st.lists(FULL, max_size=3),
)  # fmt: skip
ENTRIES = st.builds(
    checked_experience, experience_id=st.integers(1, 10**9).map("exp_{}".format), project_name=FULL,
    primary_goal=FULL, final_outcome=st.sampled_from(OUTCOMES),
    components_used=st.lists(FULL, max_size=3), files_created=st.integers(0, 99),
    output_summary=TEXTS, execution_time_ms=st.integers(0, 10**12), learnings_or_issues=TEXTS,
    timestamp=st.datetimes().map(lambda at: at.isoformat()),
)  # fmt: skip


# --- traces ---


@pytest.mark.req("TRACE-05", "TRACE-06", "TRACE-08")
def test_a_trace_is_written_as_the_document_shows_it() -> None:
    assert PLOT.text == PLOT_TEXT
    assert list(read_traces(PLOT_TEXT)) == [PLOT]


@pytest.mark.req("TRACE-09")
@given(st.lists(TRACES, max_size=3, unique_by=lambda trace: trace.trace_id))
def test_every_trace_is_read_back_equal(traces: list[Trace]) -> None:
    text = "".join(trace.text for trace in traces)
    assert list(read_traces(text)) == traces
    assert list(read_traces(text.replace("\n", "\r\n"))) == traces


@pytest.mark.req("TRACE-06")
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"status": "ok"}, "status is 'ok'; expected one of success, failure"),
        ({"status": "partial"}, "status is 'partial'"),
        ({"status": "success_with_recovery"}, "status is 'success_with_recovery'"),
        ({"duration_ms": -1}, "duration_ms is -1"),
        ({"duration_ms": 1.5}, "duration_ms is 1.5"),
        ({"duration_ms": True}, "duration_ms is True"),
        ({"goal": " \n"}, "goal is empty"),
        ({"goal": "x" * 1_000_000}, "goal has 1,000,000 characters"),
        ({"goal": None}, "goal is None"),
        ({"timestamp": "yesterday"}, "timestamp 'yesterday' is not a time"),
        ({"trace_id": "../x"}, "trace_id is '../x'"),
        ({"trace_id": "trace-../x"}, "trace_id is"),
        ({"tools_used": "python"}, "tools_used is 'python'"),
        ({"tools_used": [""]}, "tools_used has an empty text"),
        ({"steps": [("a", "b", "c")]}, "a step is"),
        ({"steps": [("a", "b - c")]}, "the status of a step is"),
        ({"plan": 3}, "plan is 3"),
    ],
)
def test_an_invalid_trace_is_refused_with_the_reason(
    values: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidInput, match=r"(?s).*") as raised:
        checked_trace(**{"goal": "a", **values})
    assert message in str(raised.value)


def test_a_trace_edited_by_hand_is_read_and_an_invalid_one_does_not_hide_the_others() -> None:
    edited = PLOT_TEXT.replace("- CSV reads fast\n", "\n- CSV reads fast\n  and well\n").replace(
        "12345", "7"
    )
    broken = PLOT_TEXT.replace("status: success", "status: [").replace("3fa9c2", "000002")
    last = replace(PLOT, trace_id="trace-1704110400000-000003")
    found = list(read_traces(edited + broken + last.text, "execution_log.md"))
    assert found[0] == replace(
        PLOT, duration_ms=7, learnings=("CSV reads fast\nand well", "Decision: use SVG")
    )
    assert isinstance(found[1], Fault)
    assert (found[1].line, found[1].file) == (33, "execution_log.md")
    assert "the frontmatter is not valid YAML, line 39" in found[1].what
    assert found[2:] == [last]
    assert list(read_traces(PLOT_TEXT + PLOT_TEXT)) == [PLOT], "the first of two with one id counts"


@pytest.mark.parametrize("name", ["goal", "status", "duration_ms", "timestamp", "trace_id"])
def test_a_trace_without_a_key_is_a_fault(name: str) -> None:
    text = "\n".join(line for line in PLOT_TEXT.split("\n") if not line.startswith(f"{name}:"))
    (fault,) = read_traces(text)
    assert isinstance(fault, Fault)
    assert f"{name} missing" in fault.what


@pytest.mark.parametrize(("text", "last"), [(PLOT_TEXT, "## Learnings"), (ENTRY_TEXT, '0Z"\n---')])
@pytest.mark.parametrize("before", ["", PLOT_TEXT, ENTRY_TEXT])
def test_a_document_is_cut_until_its_last_part_is_there(before: str, text: str, last: str) -> None:
    whole = text.index(last) + len(last)
    assert {cut_at(before + text[:length]) for length in range(1, whole)} == {len(before)}
    assert {cut_at(before + text[:length]) for length in (0, whole, whole + 1, len(text))} == {None}
    assert cut_at((before + text).replace("\n", "\r\n")) is None
    assert cut_at(f"\ufeff{before}{text.rstrip()}\n".encode().decode("latin-1")) is None


def test_every_text_of_a_record_is_changed_together() -> None:
    shouted = with_texts(PLOT, str.upper)
    assert shouted == replace(
        PLOT, goal="CREATE A PLOT", tools_used=("PYTHON", "MATPLOTLIB"),
        files_created=("PATH/TO/FILE1.PY", "PATH/TO/FILE2.MD"), plan=PLOT.plan.upper(),
        results=PLOT.results.upper(), learnings=("CSV READS FAST", "DECISION: USE SVG"),
        steps=(Step("READ THE DATA", "DONE"), Step("DRAW THE PLOT", "FAILED")),
    )  # fmt: skip
    assert with_texts(ENTRY, str.upper).learnings_or_issues == ENTRY.learnings_or_issues.upper()


def test_decisions_are_the_learnings_that_begin_with_the_word() -> None:
    assert PLOT.decisions == ("use SVG",)
    assert DECISION == "Decision: "


# --- the experience log ---


@pytest.mark.req("TRACE-12", "TRACE-13")
def test_an_entry_is_written_as_the_document_shows_it() -> None:
    assert ENTRY.text == ENTRY_TEXT
    assert list(read_experiences(ENTRY_TEXT)) == [ENTRY]
    assert ENTRY.number == 7


@pytest.mark.req("TRACE-12")
@given(st.lists(ENTRIES, max_size=3, unique_by=lambda entry: entry.experience_id))
def test_every_entry_is_read_back_equal(entries: list[object]) -> None:
    assert list(read_experiences("".join(entry.text for entry in entries))) == entries  # type: ignore[attr-defined]


@pytest.mark.req("TRACE-13")
def test_an_outcome_is_one_of_three() -> None:
    for outcome in ("success", "failure", "success_with_recovery"):
        assert checked_experience(primary_goal="a", final_outcome=outcome).final_outcome == outcome
    with pytest.raises(
        InvalidInput,
        match="final_outcome is 'partial'; expected one of success, failure, success_with_recovery",
    ):
        checked_experience(primary_goal="a", final_outcome="partial")


def test_an_invalid_entry_is_a_fault_and_the_others_are_read() -> None:
    broken = ENTRY_TEXT.replace("exp_7", "seven")
    fault, entry = read_experiences(broken + ENTRY_TEXT, "memory_log.md")
    assert isinstance(fault, Fault)
    assert "experience_id is 'seven'" in fault.what
    assert entry == ENTRY


# --- goals ---


@pytest.mark.req("TRACE-15")
@pytest.mark.parametrize(
    ("query", "normal"),
    [
        ("Create, PLOT!", "create plot"),
        ("re-run", "rerun"),
        ("  a \n\t b ", "a b"),
        ("«Été» — ok?", "été ok"),
        ("?!", ""),
    ],
)
def test_a_query_is_lower_case_without_punctuation(query: str, normal: str) -> None:
    assert normalised(query) == normal


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("Fix the login. Then call Bob.", "Fix the login."),
        ("Fix the login\nof the shop", "Fix the login"),
        ("  Fix v1.2 of it  ", "Fix v1.2 of it"),
    ],
)
def test_a_goal_is_the_first_sentence_of_the_request(text: str, goal: str) -> None:
    assert summarised_goal(text) == goal


def test_a_long_goal_ends_with_a_word() -> None:
    goal = summarised_goal("word " * 100)
    assert len(goal) <= 200
    assert goal.endswith("word …")


@pytest.mark.req("TRACE-19")
def test_without_vectors_the_similarity_is_the_fraction_of_query_words_in_the_goal() -> None:
    assert word_similarity("plot the sales", "Plot sales of May") == pytest.approx(2 / 3)
    assert word_similarity("Create, PLOT!", "create plot") == 1.0
    assert word_similarity("", "create plot") == word_similarity("?", "?") == 0.0
