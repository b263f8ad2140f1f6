"""`reflect`, `synthesize` and `heritage` on the command line."""

import json
import re

import pytest

from .conftest import Cli


@pytest.mark.req("MESH-153", "MESH-163", "MESH-084")
def test_a_reflection_is_printed_with_the_ids_of_its_sources(cli: Cli) -> None:
    first = cli("store", "Deploys on Fridays break often.").id
    second = cli("store", "Every deploy needs a second reviewer.").id
    said = cli("reflect", "--topic", "deploys", "--lookback", "5")
    assert (said.code, said.err) == (0, "")
    head, *lines = said.out.splitlines()
    assert re.fullmatch(
        r"\[MemoryMesh\] Reflection reflect_\d+_[0-9a-f]{6} on deploys: 2 sources, confidence "
        r"0\.\d\d, extractive",
        head,
    )
    assert set(lines) == {
        f"- Deploys on Fridays break often. [{first}]",
        f"- Every deploy needs a second reviewer. [{second}]",
    }
    data = json.loads(cli("reflect", "--topic", "deploys", "--json").out)
    assert data["sources"] in ([first, second], [second, first])
    assert {
        "id",
        "memory_id",
        "topic",
        "content",
        "statements",
        "confidence",
        "method",
        "wire_format",
    } <= data.keys()
    assert cli("synthesize", "--topic", "deploys").out.startswith(
        "[MemoryMesh] Synthesis synthesis_"
    )


@pytest.mark.req("MESH-153")
def test_nothing_found_is_said_and_no_error(cli: Cli) -> None:
    for text in ("Deploys on Fridays break often.", "Ana prefers green tea."):
        cli("store", text)
    said = cli("reflect", "--topic", "quantum chromodynamics")
    assert (said.code, said.out) == (
        0,
        (
            "[MemoryMesh] Note: no memory is relevant to 'quantum chromodynamics'; nothing "
            "was stored\n"
        ),
    )
    assert cli("reflect", "--lookback", "none").code == 2
    assert json.loads(cli("list", "--json").out)["count"] == 2


@pytest.mark.req("MESH-091")
def test_a_heritage_is_set_by_flags_and_shown_as_lines_and_as_a_tree(cli: Cli) -> None:
    id_ = cli("store", "Deploys on Fridays break often.").id
    assert "Heritage" not in cli("get", id_).out
    assert cli(
        "heritage", id_, "--intent", "plan", "--intent", "ship", "--rationale", "two\x1b[2J reports"
    ).out == (f"[MemoryMesh] Heritage of {id_} set\n")
    lines = "Heritage\n  Intents\n    plan\n    ship\n  Rationales\n    two"
    assert f"\n{lines}" in cli("get", id_).out
    assert f"\n{lines}" in cli("search", "deploys", "--explain").out
    chain = {
        "intentChain": ["plan", "ship"],
        "hypotheses": [],
        "rationales": json.loads(cli("get", id_, "--json").out)["heritage_chain"]["rationales"],
    }
    assert json.loads(cli("get", id_, "--json").out)["heritage_chain"] == chain
    drawn = cli("get", id_, terminal=True).out
    assert "├── " in drawn
    assert "Deploys on Fridays break often." in drawn
    assert "\x1b[2J" not in drawn
    assert cli("heritage", id_).err == (
        "[MemoryMesh Error] heritage has nothing to set; expected one of --intent, "
        "--hypothesis, --rationale\n"
    )
    assert cli("heritage", "mem_1_abcdef", "--intent", "x").code == 4
