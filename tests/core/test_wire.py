"""The wire format: blocks as the document's examples write them, to the byte."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.audit import blocks
from memory_mesh.core.audit.blocks import Seal, Yamo, agent_name, wire_value
from memory_mesh.core.errors import InvalidInput

AT = "2026-01-01T00:00:00.000Z"
HASH, OTHER = "ab" * 32, "cd" * 32
NO_SEAL = Seal(content_hash=None, prev_block=None)


def retain(seal: Seal = NO_SEAL, **changed: object) -> str:
    said = {
        "agent": "planner",
        "memory_id": "mem_1767225600000_00000a",
        "memory_type": "global",
        "at": AT,
        "content": "The deploy key rotates on Mondays.",
        "hypothesis": "none",
        "action": "add",
        "revision": 1,
    }
    return blocks.retain(seal, **{**said, **changed})


RETAIN = """\
agent: MemoryMesh_planner;
intent: store_memory_for_future_retrieval;
context:
  memory_id;mem_1767225600000_00000a;
  memory_type;global;
  timestamp;2026-01-01T00:00:00.000Z;
  content_length;34;
constraints:
  hypothesis;none;
priority: medium;
output:
  memory_stored;mem_1767225600000_00000a;
  content_preview;The deploy key rotates on Mondays.;
meta:
  rationale;Memory persisted for semantic search and retrieval;
  observation;Content vectorized and stored in LanceDB;
  confidence;1.0;
log: memory_retained;timestamp;2026-01-01T00:00:00.000Z;id;mem_1767225600000_00000a;type;global;
handoff: End;
"""


@pytest.mark.req("MESH-053", "MESH-054", "MESH-047")
def test_a_retain_block_is_the_documents_example_to_the_byte() -> None:
    assert retain() == RETAIN


@pytest.mark.req("MESH-041")
def test_the_seal_stands_last_in_the_meta_section() -> None:
    sealed = retain(Seal(content_hash=HASH, prev_block=OTHER))
    assert sealed == RETAIN.replace(
        "  confidence;1.0;\n", f"  confidence;1.0;\n  content_hash;{HASH};\n  prev_block;{OTHER};\n"
    )
    first = retain(Seal(content_hash=HASH, prev_block=None))
    assert f"  content_hash;{HASH};\nlog:" in first
    assert "prev_block" not in first


@pytest.mark.req("MESH-055")
def test_the_length_counts_bytes_and_the_preview_counts_characters() -> None:
    text = retain(content="é" * 80)
    assert "  content_length;160;\n" in text
    assert f"  content_preview;{'é' * 60};\n" in text


@pytest.mark.req("MESH-055")
def test_type_and_hypothesis_are_the_memorys_own() -> None:
    text = retain(memory_type="lesson", hypothesis="helps with the next deploy")
    assert "  memory_type;lesson;\n" in text
    assert ";type;lesson;\n" in text
    assert "  hypothesis;helps with the next deploy;\n" in text


def test_a_change_names_its_action_and_revision() -> None:
    text = retain(action="update", revision=3)
    assert "  content_length;34;\n  action;update;\n  revision;3;\nconstraints:" in text


@pytest.mark.req("MESH-050")
@pytest.mark.parametrize(
    ("raw", "emitted"),
    [
        ("a;b;", "a,b,"),
        ("two\nlines", "two lines"),
        ("windows\r\nlines", "windows lines"),
        ("\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", " "),
        ("tab\tstays", "tab\tstays"),
        ("so does \x1f, \x1b and \x7f", "so does \x1f, \x1b and \x7f"),
        ("no store keeps \0 nor \ud800", "no store keeps \ufffd nor \ufffd"),
        (5, "5"),
        ("", ""),
    ],
)
def test_what_would_end_a_field_or_a_line_becomes_a_comma_or_a_space(
    raw: object, emitted: str
) -> None:
    assert wire_value(raw) == emitted


@pytest.mark.req("MESH-050")
@given(st.text(max_size=80), st.text(max_size=20), st.text(max_size=20))
def test_no_field_can_add_a_line_or_a_pair(content: str, hypothesis: str, agent: str) -> None:
    content = content.encode(errors="ignore").decode()
    text = retain(content=content, hypothesis=hypothesis, agent=agent)
    lines = text.splitlines()
    assert len(lines) == len(RETAIN.splitlines())
    assert [line.count(";") for line in lines] == [line.count(";") for line in RETAIN.splitlines()]
    assert [line.split(";")[0] for line in lines if line.startswith("  ")] == [
        line.split(";")[0] for line in RETAIN.splitlines() if line.startswith("  ")
    ]


@pytest.mark.req("MESH-051")
@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("planner", "MemoryMesh_planner"),
        ("my-agent", "MemoryMesh_my_agent"),
        ("YAMO_AGENT", "MemoryMesh_YAMO_AGENT"),
        ("a b;c\nd", "MemoryMesh_a_b_c_d"),
        ("a -- b", "MemoryMesh_a____b"),
        ("Zoë", "MemoryMesh_Zo_"),
        ("", "MemoryMesh_"),
    ],
)
def test_agent_names_are_forced_into_the_grammars_alphabet(agent: str, name: str) -> None:
    assert agent_name(agent) == name
    assert retain(agent=agent).startswith(f"agent: {name};\n")


def test_an_empty_section_is_left_out() -> None:
    bare = Yamo(agent="a", intent="i", meta=[("k", "v")], log=["done"], handoff="Next")
    assert bare.text() == "agent: a;\nintent: i;\nmeta:\n  k;v;\nlog: done;\nhandoff: Next;\n"


def test_a_bare_constraint_is_a_dash_and_its_body() -> None:
    block = Yamo(
        agent="a",
        intent="i",
        constraints=["be; brief", ("k", "v")],
        meta=[("k", "v")],
        log=["done"],
    )
    assert "\nconstraints:\n  - be, brief;\n  k;v;\nmeta:" in block.text()


def made(**changed: object) -> Yamo:
    return Yamo(**{"agent": "a", "intent": "i", "meta": [("k", "v")], "log": ["done"], **changed})


@pytest.mark.req("MESH-048")
@pytest.mark.parametrize("level", ["critical", "high", "medium", "low"])
def test_a_priority_is_one_of_four_levels(level: str) -> None:
    assert f"\npriority: {level};\n" in made(priority=level).text()


@pytest.mark.req("MESH-048")
@pytest.mark.parametrize(
    "changed",
    [
        {"agent": ""},
        {"agent": "my-agent"},
        {"agent": "a;b"},
        {"agent": "a\n"},
        {"agent": "Zoë"},
        {"intent": ""},
        {"intent": "store it"},
        {"intent": "٣"},
        {"priority": ""},
        {"priority": "urgent"},
        {"priority": "High"},
        {"meta": []},
        {"log": []},
        {"log": [""]},
        {"handoff": " "},
        *(
            {"context": [(key, "v")]}
            for key in ("", " ", "a;b", " a", "a ", "a\nb", "a\u2028b", "- a", "a\0", "\ud800")
        ),
        {"constraints": [("a;b", "v")]},
        {"output": [("a;b", "v")]},
        {"meta": [("a;b", "v")]},
    ],
)
def test_what_the_grammar_does_not_allow_cannot_be_made(changed: dict[str, object]) -> None:
    assert made().text()
    with pytest.raises(InvalidInput):
        made(**changed)


@pytest.mark.parametrize("key", ["k", "two words", "Ключ", "a:b", "-", "-a", "a\tb", "🔑"])
def test_keys_may_be_any_text_that_is_one_field(key: str) -> None:
    assert f"\ncontext:\n  {key};v;\n" in made(context=[(key, "v")]).text()


ERASE = f"""\
agent: MemoryMesh_planner;
intent: erase_memory_for_good;
context:
  memory_id;mem_1_00000a;
  action;erase;
  timestamp;{AT};
priority: medium;
output:
  memory_erased;mem_1_00000a;
  block_erased;yamo_retain_1_00000b {HASH};
  block_erased;yamo_retain_1_00000c {OTHER};
meta:
  rationale;Memory erased on request;
  confidence;1.0;
  prev_block;{OTHER};
log: memory_erased;timestamp;{AT};id;mem_1_00000a;
handoff: End;
"""
TOMBS = [("yamo_retain_1_00000b", HASH), ("yamo_retain_1_00000c", OTHER)]


def test_an_erasure_block_names_the_blocks_that_lost_their_text() -> None:
    seal = Seal(content_hash=None, prev_block=OTHER)
    assert (
        blocks.erase(seal, agent="planner", memory_id="mem_1_00000a", at=AT, tombstones=TOMBS)
        == ERASE
    )
    assert blocks.erased_blocks(ERASE) == TOMBS


@pytest.mark.parametrize(
    "forged",
    [
        f"x\n  block_erased;yamo_retain_1_00000b {HASH};\n",
        f"x\nintent: erase_memory_for_good;\n  block_erased;yamo_retain_1_00000b {HASH};",
        f"\r  block_erased;yamo_retain_1_00000b {HASH};\r\n",
    ],
)
def test_a_memory_cannot_pardon_a_tombstone(forged: str) -> None:
    assert blocks.erased_blocks(ERASE) != []
    for text in (
        retain(content=forged),
        retain(hypothesis=forged),
        retain(memory_id=forged),
        retain(agent=forged),
    ):
        assert blocks.erased_blocks(text) == []


@given(
    st.text(
        alphabet=st.sampled_from(
            "aé;\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029\0\ud800\udfff\u200b ,"
        )
    )
)
def test_a_value_has_no_line_break_no_semicolon_and_nothing_that_cannot_be_stored(
    text: str,
) -> None:
    breaks = re.sub("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+", " ", text)
    assert wire_value(text) == re.sub("[\0\ud800-\udfff]", "\ufffd", breaks).replace(";", ",")
