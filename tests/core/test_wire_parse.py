"""Reading blocks: all that the grammar and the examples allow, and nothing else."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.audit import Yamo, check_lesson, parse, parse_many
from memory_mesh.core.errors import InvalidInput

# Every section, and both forms where there are two.
FULL = """\
agent: MemoryMesh_planner;
intent: store_memory_for_future_retrieval;
context:
  memory_id;mem_1_00000a;
  note;;
constraints:
  hypothesis;none;
  - never store a key;
priority: medium;
output:
  memory_stored;mem_1_00000a;
meta:
  rationale;Memory persisted;
  confidence;1.0;
log: memory_retained;id;mem_1_00000a;
handoff: End;
"""
LEAST = "agent: a;\nintent: i;\nmeta:\n  k;v;\nlog: done;\nhandoff: End;\n"
LESSON = """\
agent: MemoryMesh_planner;
intent: distill_wisdom_from_execution;
context:
  original_context;Deploy with a rotated key;
  error_pattern;auth_fallback_bypass;
  severity;high;
constraints:
  - read keys anew;
  hypothesis_confidence;0.7;
output:
  lesson_id;lesson_1_00000a;
  preventative_rule;Read the key anew before each deploy;
  rule_confidence;0.9;
meta: applicability_scope;deploys;
meta: confidence;1;
log: lesson_learned;
handoff: SubconsciousReflector;
"""


@pytest.mark.req("MESH-046", "MESH-047", "MESH-049")
def test_a_block_is_read_section_by_section() -> None:
    assert parse(FULL) == Yamo(
        agent="MemoryMesh_planner",
        intent="store_memory_for_future_retrieval",
        context=[("memory_id", "mem_1_00000a"), ("note", "")],
        constraints=[("hypothesis", "none"), "never store a key"],
        priority="medium",
        output=[("memory_stored", "mem_1_00000a")],
        meta=[("rationale", "Memory persisted"), ("confidence", "1.0")],
        log=["memory_retained", "id", "mem_1_00000a"],
        handoff="End",
    )


@pytest.mark.req("MESH-052")
@pytest.mark.parametrize("text", [FULL, LEAST])
def test_a_block_in_our_form_is_emitted_as_it_was_read(text: str) -> None:
    assert parse(text).text() == text


@pytest.mark.req("MESH-049")
@pytest.mark.parametrize(
    "meta",
    [
        "meta: rationale;Memory persisted;\nmeta: confidence;1.0;\n",
        "meta: rationale;Memory persisted;\nmeta:\n  confidence;1.0;\n",
        "meta:\n  rationale;Memory persisted;\nmeta: confidence;1.0;\n",
        "meta:\n  rationale;Memory persisted;\nmeta:\n  confidence;1.0;\n",
    ],
)
def test_one_line_meta_is_read_too_and_emitted_in_our_form(meta: str) -> None:
    ours = "meta:\n  rationale;Memory persisted;\n  confidence;1.0;\n"
    assert ours in FULL
    assert parse(FULL.replace(ours, meta)).text() == FULL


@pytest.mark.parametrize(
    "said",
    [
        "",
        " ",
        "  two  ",
        "\t",
        "a:b",
        "- x",
        "\x1b[2J",
        "\x1f\x7f",
        "Zoë 👩‍🚀",
        "agent: b",
        "x" * 100_000,
    ],
)
def test_a_value_is_whatever_stands_between_its_semicolons(said: str) -> None:
    text = LEAST.replace("  k;v;", f"  k;{said};")
    assert parse(text).meta == [("k", said)]
    assert parse(text).text() == text


@pytest.mark.parametrize("key", ["two words", "Ключ", "a:b", "-", "-a", "🔑", "meta"])
def test_a_key_may_have_any_characters(key: str) -> None:
    assert parse(LEAST.replace("  k;", f"  {key};")).meta == [(key, "v")]


def test_a_key_may_come_twice_and_order_is_kept() -> None:
    assert parse(LEAST.replace("  k;v;", "  k;2;\n  a;1;\n  k;3;")).meta == [
        ("k", "2"),
        ("a", "1"),
        ("k", "3"),
    ]


# What is replaced in the full block, by what, the line that is named, and a word of what was
# expected.
FAULTS = [
    ("agent: MemoryMesh_planner;\n", "", 1, "agent: NAME;"),
    ("agent: MemoryMesh_planner;\n", "\nagent: MemoryMesh_planner;\n", 1, "agent: NAME;"),
    ("agent: MemoryMesh_planner;", "agent: my-agent;", 1, "letters, digits and _"),
    ("agent: MemoryMesh_planner;", "agent: ;", 1, "letters, digits and _"),
    ("agent: MemoryMesh_planner;", "agent:MemoryMesh_planner;", 1, "agent: NAME;"),
    ("agent: MemoryMesh_planner;", "agent: MemoryMesh_planner", 1, "agent: NAME;"),
    ("agent: MemoryMesh_planner;", "agent: MemoryMesh_planner; ", 1, "agent: NAME;"),
    ("agent: MemoryMesh_planner;", "agent: a;b;", 1, "agent: NAME;"),
    ("agent: MemoryMesh_planner;", "Agent: a;", 1, "agent: NAME;"),
    ("agent: MemoryMesh_planner;", "agent: ٣;", 1, "letters, digits and _"),
    ("agent: ", "\ufeffagent: ", 1, "agent: NAME;"),
    ("intent: store_memory_for_future_retrieval;\n", "", 2, "intent: NAME;"),
    ("store_memory_for_future_retrieval", "store memory", 2, "letters, digits and _"),
    ("context:\n", "", 3, "meta"),
    ("context:\n", "context: \n", 3, "meta"),
    ("context:\n", "context:\nconstraints:\n  a;b;\n", 4, "KEY;VALUE;"),
    ("context:\n", "secrets:\n", 3, "meta"),
    ("  note;;\n", " note;;\n", 5, "two spaces"),
    ("  note;;\n", "   note;;\n", 5, "two spaces"),
    ("  note;;\n", "\tnote;;\n", 5, "meta"),
    ("  note;;\n", "note;;\n", 5, "meta"),
    ("  note;;\n", "  note;\n", 5, "KEY;VALUE;"),
    ("  note;;\n", "  note;a;b;\n", 5, "without a semicolon"),
    ("  note;;\n", "  note;a\n", 5, "KEY;VALUE;"),
    ("  note;;\n", "  ;a;\n", 5, "KEY;VALUE;"),
    ("  note;;\n", "  note ;a;\n", 5, "KEY;VALUE;"),
    ("  note;;\n", "  - note;a;\n", 5, "KEY;VALUE;"),
    ("  note;;\n", "  - note;\n", 5, "KEY;VALUE;"),
    ("  note;;\n", "\n", 5, "meta"),
    ("  - never store a key;", "  - never; store a key;", 8, "- BODY;"),
    ("  - never store a key;", "  -never store a key;", 8, "- BODY;"),
    ("  - never store a key;", "- never store a key;", 8, "meta"),
    ("priority: medium;", "priority: urgent;", 9, "critical, high, medium, low"),
    ("priority: medium;", "priority: ;", 9, "critical, high, medium, low"),
    ("priority: medium;", "priority: Medium;", 9, "critical, high, medium, low"),
    ("priority: medium;", "priority:\n  a;b;", 9, "priority: LEVEL;"),
    ("priority: medium;\n", "priority: medium;\npriority: low;\n", 10, "meta"),
    (
        "priority: medium;\noutput:\n  memory_stored;mem_1_00000a;\n",
        "output:\n  a;b;\npriority: low;\n",
        11,
        "meta",
    ),
    ("output:\n", "context:\n", 10, "meta"),
    ("meta:\n  rationale;Memory persisted;\n  confidence;1.0;\n", "", 12, "meta"),
    ("meta:\n  rationale;Memory persisted;\n  confidence;1.0;\n", "meta:\n", 13, "KEY;VALUE;"),
    ("meta:\n", "meta: a;b\n", 12, "meta: KEY;VALUE;"),
    ("meta:\n", "meta: a;b;c;\n", 12, "meta: KEY;VALUE;"),
    ("meta:\n", "meta: a;b;\n", 13, "log: BODY;"),
    ("meta:\n", "meta:a;b;\n", 12, "meta: KEY;VALUE;"),
    ("log: memory_retained;id;mem_1_00000a;\n", "", 15, "log: BODY;"),
    ("log: memory_retained;id;mem_1_00000a;\n", "log: ;\n", 15, "log: BODY;"),
    ("log: memory_retained;id;mem_1_00000a;\n", "log: memory_retained\n", 15, "log: BODY;"),
    ("handoff: End;\n", "", 16, "handoff: TARGET;"),
    ("handoff: End;\n", "handoff: ;\n", 16, "handoff: TARGET;"),
    ("handoff: End;\n", "handoff: End;Next;\n", 16, "handoff: TARGET;"),
    ("handoff: End;\n", "handoff: End;", 16, "newline"),
    ("handoff: End;\n", "handoff: End;\n\n", 17, "agent: NAME;"),
    ("handoff: End;\n", "handoff: End;\nmore", 17, "newline"),
    ("handoff: End;\n", "handoff: End;\nmore\n", 17, "agent: NAME;"),
    ("handoff: End;\n", "handoff: End;\r\n", 16, "end in a newline"),
    ("  note;;\n", "  note;a\u2028b;\n", 5, "other line breaks"),
    ("  note;;\n", "  note;a\x85b;\n", 5, "other line breaks"),
    ("  note;;\n", "  note;a\0b;\n", 5, "NUL"),
    ("  note;;\n", "  note;a\ud800b;\n", 5, "half surrogate"),
]


@pytest.mark.req("MESH-046", "MESH-047", "MESH-048")
@pytest.mark.parametrize(("was", "becomes", "line", "expected"), FAULTS, ids=ascii)
def test_what_breaks_the_grammar_is_refused_with_its_line(
    was: str, becomes: str, line: int, expected: str
) -> None:
    assert FULL.count(was) == 1
    with pytest.raises(InvalidInput) as refused:
        parse(FULL.replace(was, becomes))
    assert refused.value.what.startswith(f"line {line} ")
    assert expected in refused.value.expected


SECTIONS = ["agent: a;\n", "intent: i;\n", "context:\n  k;v;\n", "constraints:\n  - be brief;\n",
            "priority: low;\n", "output:\n  k;v;\n", "meta:\n  k;v;\n", "log: done;\n",
            "handoff: End;\n"]  # fmt: skip


@pytest.mark.req("MESH-046")
@pytest.mark.parametrize("one", range(len(SECTIONS)))
def test_sections_stand_in_one_order_only(one: int) -> None:
    assert parse("".join(SECTIONS)).text() == "".join(SECTIONS)
    for other in range(one):
        swapped = SECTIONS.copy()
        swapped[one], swapped[other] = swapped[other], swapped[one]
        with pytest.raises(InvalidInput):
            parse("".join(swapped))
    doubled = [*SECTIONS[: one + 1], *SECTIONS[one:]]
    if not SECTIONS[one].startswith("meta:"):  # whose lines may come one by one
        with pytest.raises(InvalidInput):
            parse("".join(doubled))


@pytest.mark.req("MESH-046")
@pytest.mark.parametrize("section", SECTIONS, ids=ascii)
def test_only_four_sections_may_be_left_out(section: str) -> None:
    text = "".join(part for part in SECTIONS if part != section)
    if section.split(":")[0] in ("context", "constraints", "priority", "output"):
        assert parse(text).text() == text
    else:
        with pytest.raises(InvalidInput):
            parse(text)


# --- many ---


def test_blocks_one_after_another_are_read_in_order() -> None:
    assert [block.text() for block in parse_many(LEAST + FULL + LEAST)] == [LEAST, FULL, LEAST]
    assert parse_many("") == []


def test_one_block_is_one_block() -> None:
    for text, found in (("", "0 blocks"), (LEAST + FULL, "2 blocks")):
        with pytest.raises(InvalidInput, match=found):
            parse(text)


def test_a_fault_among_many_blocks_is_named_by_its_line_in_the_whole_text() -> None:
    with pytest.raises(InvalidInput, match=r"^line 22 is 'handoff: ;'"):
        parse_many(
            LEAST + FULL.replace("handoff: End;", "handoff: ;") + LEAST + LEAST.replace("End", " ")
        )


# --- any text ---

damage = st.lists(
    st.tuples(
        st.integers(0, len(FULL)),
        st.integers(0, 12),
        st.sampled_from(["", ";", "\n", " ", "  ", "- ", "meta: ", ":", "é", "\r"]),
    ),
    min_size=1,
    max_size=4,
)


@given(damage)
def test_a_damaged_block_is_refused_or_means_one_thing(damage: list[tuple[int, int, str]]) -> None:
    text = FULL
    for at, cut, put in damage:
        text = text[:at] + put + text[at + cut :]
    with suppress(InvalidInput):
        block = parse(text)
        assert parse(block.text()) == block
        if "meta: " not in text:
            assert block.text() == text


@given(st.text())
def test_no_text_is_more_than_refused(text: str) -> None:
    with suppress(InvalidInput):
        parse(text)


# --- lessons ---


@pytest.mark.req("MESH-062", "MESH-065")
def test_a_lesson_of_another_writer_is_one_if_it_has_what_is_required() -> None:
    check_lesson(parse(LESSON))


@pytest.mark.req("MESH-062", "MESH-065")
@pytest.mark.parametrize(
    ("was", "becomes", "named"),
    [
        ("distill_wisdom_from_execution", "recall_relevant_memories", "not a lesson"),
        ("handoff: SubconsciousReflector;", "handoff: End;", "not a lesson"),
        ("  original_context;Deploy with a rotated key;\n", "", "context.original_context"),
        ("Deploy with a rotated key", " ", "context.original_context"),
        ("  error_pattern;auth_fallback_bypass;\n", "", "context.error_pattern"),
        ("  severity;high;\n", "", "context.severity"),
        ("  severity;high;\n", "  severity;high;\n  severity;low;\n", "context.severity"),
        ("severity;high;", "severity;critical | high | medium | low;", "severity"),
        ("  lesson_id;lesson_1_00000a;\n", "", "output.lesson_id"),
        (
            "  preventative_rule;Read the key anew before each deploy;\n",
            "",
            "output.preventative_rule",
        ),
        ("  rule_confidence;0.9;\n", "", "output.rule_confidence"),
        ("rule_confidence;0.9;", "rule_confidence;1.1;", "output.rule_confidence"),
        ("rule_confidence;0.9;", "rule_confidence;-0.1;", "output.rule_confidence"),
        ("rule_confidence;0.9;", "rule_confidence;nan;", "output.rule_confidence"),
        ("rule_confidence;0.9;", "rule_confidence;9e-1;", "output.rule_confidence"),
        (
            "hypothesis_confidence;0.7;",
            "hypothesis_confidence;7;",
            "constraints.hypothesis_confidence",
        ),
        ("meta: applicability_scope;deploys;\n", "", "meta.applicability_scope"),
        ("meta: confidence;1;", "meta: confidence;1.01;", "meta.confidence"),
    ],
)
def test_a_lesson_without_what_is_required_is_refused_by_name(
    was: str, becomes: str, named: str
) -> None:
    assert LESSON.count(was) == 1
    with pytest.raises(InvalidInput) as refused:
        check_lesson(parse(LESSON.replace(was, becomes)))
    assert named in refused.value.what


def test_a_required_field_counts_only_in_its_own_section() -> None:
    block = parse(LESSON)
    moved = replace(block, context=[*block.context, *block.output], output=())
    with pytest.raises(InvalidInput, match=r"output\.lesson_id"):
        check_lesson(moved)
