"""Feedback, review and explanations on the command line: at a terminal, in a pipe and in a
script."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_mesh import InvalidInput, MemoryMesh
from memory_mesh.api.graph_methods import MemoryGraph

from .conftest import Cli, Output, Stream

OLD, NEW = "The budget of Apollo is 500.", "The budget of Apollo is 700."
CLAIM = {"subject": "Apollo", "predicate": "budget"}


@pytest.fixture
def ids(home: Path) -> tuple[str, str, str]:
    """An active claim, a quarantined one in conflict with it, and one that is quarantined for
    itself."""
    with MemoryMesh(agent_id="planner") as mesh:
        store = mesh.graph.store
        old = store(
            "planner", OLD, claim={**CLAIM, "value": "500"}, provenance={"source": "user_explicit"}
        )
        new = store("planner", NEW, claim={**CLAIM, "value": "700"})
        alone = store("planner", "From a web page.", quarantine=True)
    return old.id, new.id, alone.id


@pytest.fixture
def terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Output]:
    """Run `review` for a person that types these lines."""

    def said(*lines: str) -> Output:
        keyboard = Stream(terminal=True)
        keyboard.write("".join(f"{line}\n" for line in lines))
        keyboard.seek(0)
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdin", keyboard)
            return cli("review", terminal=True)

    return said


def status(*ids: str) -> list[str]:
    with MemoryMesh() as mesh:
        return [mesh.graph.explain_memory(id_).status for id_ in ids]


def test_a_pipe_gets_a_list_of_what_waits_with_both_sides_and_is_told_how_to_decide(
    cli, ids
) -> None:
    old, new, alone = ids
    said = cli("review")
    assert said.code == 0
    assert said.out.startswith("[MemoryMesh] 2 memories to review\n")
    for expected in (
        new,
        alone,
        f"Against {old}, which is active and trusted 1.00",
        "excludes 500, but is trusted less: 0.50",
    ):
        assert expected in said.out
    assert said.out.endswith(
        "Decide with: memory-mesh review --activate ID, --reject ID or --keep-both ID, and "
        "--reason TEXT\n"
    )
    assert status(*ids) == ["active", "quarantined", "quarantined"]
    data = json.loads(cli("review", "--json").out)
    assert {one["memory"]["id"]: one["excluded_by"] for one in data["results"]} == {
        new: [old],
        alone: [],
    }
    cli("review", "--reject", new)
    cli("review", "--reject", alone)
    assert cli("review").out == "[MemoryMesh] 0 memories to review\n"


def test_a_person_decides_about_each_memory_and_nothing_is_guessed(terminal, ids) -> None:
    old, new, alone = ids
    said = terminal("maybe", "", "skip", "a checked by phone")
    assert "1 of 2" in said.out
    assert "'maybe' is not one of a, r, b, s, u, q; nothing was changed" in said.out
    assert f"Activated: record {new} is active" in said.out
    assert "Decided: 1 activated; 1 memory left to review" in said.out
    assert status(old, new, alone) == ["superseded", "active", "quarantined"]
    with MemoryMesh() as mesh:
        assert mesh.graph.explain_memory(new).status_change.why == "checked by phone"


def test_a_person_takes_a_decision_back_and_decides_anew(terminal, ids) -> None:
    old, new, alone = ids
    said = terminal("u", "r", "u", "both", "a", "u", "r not true", "q")
    assert "Nothing was decided yet" in said.out
    assert f"Undone: record {alone} is quarantined" in said.out
    assert f"Undone: record {new} is quarantined" in said.out  # after the last one
    assert "Decided: 1 kept both, 1 rejected; 0 memories left to review" in said.out
    assert status(old, new, alone) == ["active", "archived", "active"]


def test_the_end_of_the_input_ends_the_review_and_changes_nothing(terminal, ids) -> None:
    said = terminal()
    assert (said.code, status(*ids)) == (0, ["active", "quarantined", "quarantined"])
    assert "Decided: nothing; 2 memories left to review" in said.out


def test_a_decision_that_is_too_late_is_reported_and_asked_again(
    terminal, ids, monkeypatch
) -> None:
    from memory_mesh.interfaces.cli import reviewing

    ask, asked = reviewing._ask, []

    def answer(question: str) -> str:
        if not asked:
            with MemoryMesh() as mesh:
                mesh.graph.review_quarantine(ids[2], action="reject")
        asked.append(question)
        return ask(question)

    monkeypatch.setattr(reviewing, "_ask", answer)
    said = terminal("a", "s", "q")
    assert "is archived, not quarantined" in said.err
    assert (len(asked), status(*ids)) == (3, ["active", "quarantined", "archived"])


def test_the_conflict_of_a_memory_that_stayed_active_is_reviewed_too(terminal, ids) -> None:
    with MemoryMesh() as mesh:
        new = mesh.graph.store(
            "planner", "It is 800.", claim={**CLAIM, "value": "800"}, on_conflict="keep_active"
        ).id
    assert "'' is not one of" in terminal("s", "s", "", "r").out
    assert status(ids[0], new) == ["active", "archived"]


def test_what_is_decided_meanwhile_is_passed_over(terminal, ids, monkeypatch) -> None:
    from memory_mesh.interfaces.cli import reviewing

    items = reviewing.waiting
    gone = reviewing.Item("mem_1_erased")
    monkeypatch.setattr(
        reviewing, "waiting", lambda graph: [gone, reviewing.Item(ids[0]), *items(graph)]
    )
    said = terminal("q")
    assert "mem_1_erased was decided or erased meanwhile" in said.out
    assert f"{ids[0]} was decided or erased meanwhile" in said.out
    assert "3 of 4" in said.out


@pytest.mark.parametrize(
    ("flag", "after"),
    [
        ("--activate", ["superseded", "active"]),
        ("--reject", ["active", "archived"]),
        ("--keep-both", ["active", "active"]),
    ],
)
def test_a_script_decides_and_takes_it_back(cli, ids, flag: str, after: list[str]) -> None:
    data = json.loads(cli("review", flag, ids[1], "--reason", "checked", "--json").out)
    assert (data["memory"]["id"], data["conflicts"][0]["status"], status(*ids[:2])) == (
        ids[1],
        "resolved",
        after,
    )
    assert cli("review", "--undo", ids[1]).out.startswith(
        f"[MemoryMesh] Undone: record {ids[1]} is quarantined\n"
    )
    assert status(*ids[:2]) == ["active", "quarantined"]


def test_conflicts_are_listed_and_resolved(cli, ids) -> None:
    old, new, _ = ids
    listed = json.loads(cli("conflicts", "--json").out)
    (one,) = listed["results"]
    assert (one["ref"], one["target"], one["status"]) == (new, old, "pending")
    said = cli("conflicts")
    assert f"new       {new}" in said.out
    assert "memory-mesh conflicts --resolve CONFLICT --keep new|existing|both" in said.out
    assert (
        cli("conflicts", "--resolve", one["id"], "--keep", "existing", "--reason", "a rumour").code
        == 0
    )
    assert cli("conflicts").out == "[MemoryMesh] 0 pending conflicts\n"
    assert "resolved  kept existing: a rumour" in cli("conflicts", "--status", "resolved").out


def test_quarantined_memories_are_listed_of_every_agent_or_one(cli, ids) -> None:
    assert [one["id"] for one in json.loads(cli("quarantined", "--json").out)["results"]] == [
        ids[2],
        ids[1],
    ]
    assert "2 memories quarantined" in cli("quarantined", terminal=True).out
    assert cli("quarantined", "--agent", "nobody").out == "[MemoryMesh] 0 memories quarantined\n"
    assert len(cli("quarantined", "--limit", "1", "--jsonl").out.splitlines()) == 1


@pytest.mark.req("GRAPH-26", "GRAPH-27", "GRAPH-30")
def test_a_memory_is_explained_with_its_trust_in_parts_and_a_tree(cli, ids) -> None:
    old, new, _ = ids
    cli("review", "--activate", new, "--reason", "checked by phone")
    cli("reinforce", new)
    lines = cli("explain", old).out.splitlines()
    assert lines[0].startswith(f"[MemoryMesh] Record {old} is superseded since ")
    assert lines[0].endswith(f", by supersede: a review activated {new}, which takes its place")
    assert "Claim: Apollo · budget = 500" in lines
    assert "Trust  ██████████  1.00" in lines
    assert "  base           +1.00  ██████████" in lines
    root = lines.index(f"{new} “{NEW}”")
    assert lines[root + 1].startswith("└─ supersedes since ")
    assert lines[root + 1].endswith(f"(checked by phone) {old} “{OLD}”  ◀ this one")
    assert [line.split()[1] for line in lines[root + 2 :]] == ["similar"]
    assert "  feedback       +0.15  ██" in cli("explain", new).out.splitlines()
    data = json.loads(cli("explain", new, "--json").out)
    trust = data["trust"]
    assert trust["value"] == pytest.approx(
        trust["base"] + trust["corroboration"] + trust["feedback"] + trust["age"]
    )
    assert data["supersessions"][0]["older"] == old
    assert (
        "It was valid at 2020-01-01"
        in cli("explain", new, "--as-of", "2020-01-01").out.splitlines()
    )
    stored = data["memory"]["created_at"]
    assert f"Record {new} is quarantined\n" in cli("explain", new, "--known-at", stored).out


def test_a_stored_reason_does_not_control_the_terminal(terminal, cli, ids) -> None:
    assert "\x1b[31mred" not in terminal("s", "a \x1b[31mred").out
    assert "\\x1b[31mred" in cli("explain", ids[1], terminal=True).out
    assert "\x1b[31mred" not in cli("explain", ids[1], terminal=True).out


@pytest.mark.req("GRAPH-19", "GRAPH-20")
def test_feedback_says_what_became_of_the_memory(cli, ids) -> None:
    old = ids[0]
    assert cli("reinforce", old, "--boost", "0.2").out == (
        f"[MemoryMesh] Record {old} is active: 1 reinforcement, 0 disputes, importance 0.90\n"
    )
    assert json.loads(cli("dispute", old, "--reason", "no", "--json").out)["disputes"] == 1
    assert cli("dispute", old).out.startswith(
        f"[MemoryMesh] Record {old} is disputed: 1 reinforcement, 2 disputes"
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("review --activate mem_1_x", 4, "no memory 'mem_1_x'"),
        ("review --activate {old}", 2, "is active, not quarantined"),
        ("review --activate {new} --reject {new}", 2, "--reject cannot be used with --activate"),
        ("review --reason because", 2, "--reason needs --activate or --reject or --keep-both"),
        ("review --undo {old}", 2, "there is no review decision about"),
        ("conflicts --resolve conflict_1_x --keep new", 4, "no conflict 'conflict_1_x'"),
        ("conflicts --resolve conflict_1_x", 2, "--keep WHICH is missing"),
        ("conflicts --resolve conflict_1_x --keep all", 2, "unknown value 'all' of --keep"),
        ("conflicts --status open", 2, "unknown value 'open' of --status"),
        ("quarantined --limit 0", 2, "limit is 0"),
        ("explain mem_1_x", 4, "no memory 'mem_1_x'"),
        ("explain {old} --known-at 2000-01-01", 4, "was not known at 2000-01-01"),
        ("explain {old} --as-of yesterdayish", 2, "as_of"),
        ("explain {old} --user someone", 4, "no memory"),
        ("reinforce {old} --boost 2", 2, "--boost is 2"),
        ("dispute", 2, "ID is missing"),
    ],
)
def test_what_cannot_be_done_is_an_error_in_one_line(
    cli, ids, words: str, code: int, said: str
) -> None:
    answer = cli(*words.format(old=ids[0], new=ids[1]).split())
    assert (answer.code, answer.out, len(answer.err.splitlines())) == (code, "", 1)
    assert said in answer.err
    assert status(*ids) == ["active", "quarantined", "quarantined"]


def test_an_undo_that_fails_after_the_last_one_does_not_end_the_review(
    terminal, ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed_since(*_: object) -> None:
        raise InvalidInput("the decision cannot be undone")

    monkeypatch.setattr(MemoryGraph, "undo_review", changed_since)
    said = terminal("r", "r", "u", "q")
    assert "the decision cannot be undone" in said.err
    assert (said.code, "Decided: 2 rejected; 0 memories left to review" in said.out) == (0, True)


def test_store_says_what_its_claim_supersedes_or_that_it_waits_for_a_review(
    cli: Cli, ids: tuple[str, str, str], monkeypatch
) -> None:
    monkeypatch.setenv("MEMORY_MESH_CLAIMS", "auto")
    older = cli("store", "Ana works at Acme.").out.split()[-1]
    assert cli("store", "Ana works at Globex now.").out.endswith(f"\nIt supersedes {older}\n")
    waits = cli("store", "The budget of Apollo is 800.", "--agent", "planner").out
    assert waits.endswith("\nIt is quarantined. Decide with: memory-mesh review\n")
