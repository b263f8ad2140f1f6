"""`memory-mesh changes`: what changed, through time, and how a person confirms or undoes it."""

import json

import pytest

from judging import BERLIN, GYM, GYM_ENDED, HAMBURG, MUNICH, give_judge
from memory_mesh import MemoryMesh
from memory_mesh.testing.fakes import FakeClock

from .conftest import Cli


@pytest.fixture
def ids(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    give_judge(monkeypatch)
    clock, ids = FakeClock(), []
    with MemoryMesh(clock=clock.seconds) as mesh:
        for text in (BERLIN, MUNICH, HAMBURG, GYM, GYM_ENDED):
            ids.append(mesh.add(text).id)
            clock.advance(days=40)
    return ids


def test_each_line_of_changes_is_shown_through_time(cli: Cli, ids: list[str]) -> None:
    berlin, munich, hamburg, gym, ended = ids
    said = cli("changes")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        "[MemoryMesh] 3 changes",
        f"2026-06-10  My gym membership ran out             {ended}  ends (0.98)",
        f"            until 10 Jun 2026: My gym is Fit One  {gym}",
        f"2026-03-22  I live in Hamburg                     {hamburg}  replaces (0.98)",
        f"2026-02-10  until 22 Mar 2026: I live in Munich   {munich}  replaces (0.98)",
        f"            until 10 Feb 2026: I live in Berlin   {berlin}",
    ]


def test_a_subject_or_an_id_chooses_the_lines(cli: Cli, ids: list[str]) -> None:
    _, munich, _, _, ended = ids
    by_id = cli("changes", munich).out
    assert by_id.startswith("[MemoryMesh] 2 changes")
    assert "gym" not in by_id
    assert ended in cli("changes", "which", "gym").out
    data = json.loads(cli("changes", munich, "--limit", "1", "--json").out)
    [change] = data["results"]
    assert (data["count"], change["type"], change["probability"]) == (1, "updates", 0.98)
    assert (change["newer"]["content"], change["older"]["content"]) == (HAMBURG, MUNICH)
    lines = cli("changes", munich, "--jsonl").out.splitlines()
    assert [json.loads(line)["older"]["content"] for line in lines] == [MUNICH, BERLIN]


def test_a_terminal_shows_a_table(cli: Cli, ids: list[str]) -> None:
    shown = cli("changes", terminal=True).out
    assert "statement" in shown
    assert f"\x1b[36m2026-03-22\x1b[0m  {HAMBURG}" in shown
    nothing = cli("changes", "zebras", terminal=True).out
    assert nothing == "\x1b[1;36m[MemoryMesh]\x1b[0m 0 changes\n"


def test_a_person_confirms_and_undoes(cli: Cli, ids: list[str]) -> None:
    berlin, munich, _, gym, ended = ids
    confirmed = cli("changes", "--confirm", munich, berlin)
    assert confirmed.out == f"[MemoryMesh] Confirmed: {munich} replaces {berlin}\n"
    undone = cli("changes", "--undo", ended, gym)
    assert undone.out == f"[MemoryMesh] Undone: {ended} and {gym} both hold\n"
    lines = cli("changes").out.splitlines()
    assert lines[1].endswith(f"{ended}  both hold (undone)")
    assert lines[2].split("  ")[-1] == gym
    assert "until" not in lines[2]
    assert f"{munich}  replaces (confirmed)" in lines[4]
    again = json.loads(cli("changes", "--confirm", ended, gym, "--json").out)
    assert (again["type"], again["probability"]) == ("updates", 1.0)


def test_wrong_words_say_what_was_expected(cli: Cli, ids: list[str]) -> None:
    berlin, munich, *_ = ids
    for words, code, said in (
        (("--confirm", munich), 2, "OLDER is missing"),
        (("--confirm", munich, berlin, "x"), 2, "unexpected word 'x'"),
        (("--confirm", munich, "--undo", munich, berlin), 2, "cannot be used with"),
        (("--confirm", berlin, munich), 2, "expected the newer memory first"),
        (("--undo", munich, "mem_missing"), 4, "no memory 'mem_missing'"),
    ):
        output = cli("changes", *words)
        assert (output.code, output.out) == (code, "")
        assert said in output.err


def test_a_store_for_reading_only_shows_changes_and_keeps_them(cli: Cli, ids: list[str]) -> None:
    store = ("--store", "sqlite:///home/memory.db?mode=ro")
    cli("changes")
    assert cli("changes", *store).out.startswith("[MemoryMesh] 3 changes")
    assert cli("changes", "--undo", ids[1], ids[0], *store).code == 8


# --- where memories are shown ---


@pytest.fixture
def judged(cli: Cli, ids: list[str]) -> list[str]:
    cli("changes")
    return ids


def test_a_result_says_until_when_it_held(cli: Cli, judged: list[str]) -> None:
    berlin, munich, hamburg, *_ = judged
    query = ("search", "where", "do", "I", "live")
    screen = cli(*query, terminal=True).out
    assert "until 22 Mar 2026" in screen
    assert (
        "Type: global | Source: unknown | Until: 10 Feb 2026\nI live in Berlin" in cli(*query).out
    )
    fenced = cli(*query, "--for-model").out.splitlines()
    assert fenced[2:5] == [
        f"22 Mar 2026: {HAMBURG}",
        f"10 Feb 2026, until 22 Mar 2026: {MUNICH}",
        f"1 Jan 2026, until 10 Feb 2026: {BERLIN}",
    ]
    assert f"22 Mar 2026, {hamburg}: " in cli(*query, "--for-model", "--ids").out
    results = json.loads(cli(*query, "--json").out)["results"]
    older = next(result for result in results if result["id"] == berlin)
    assert (older["until"], older["updated_by"]) == ("2026-02-10T00:00:00.000Z", munich)


def test_an_explanation_says_why_the_newer_one_stands_above(cli: Cli, judged: list[str]) -> None:
    _, munich, hamburg, *_ = judged
    query = ("search", "--explain", "--mode", "recall", "in", "Berlin", "I", "live")
    shown = cli(*query).out
    assert f"It held until 22 Mar 2026, then {hamburg} changed it\n" in shown
    assert (
        f"It held until 10 Feb 2026, then {munich} changed it; above it stands {hamburg}" in shown
    )
    assert "order of changes: what holds now, or held at the asked time, first" in shown
    past = cli(*query, "previously").out
    assert f"Above it stands what is newer, or held at the asked time: {munich}" in past


def test_a_context_says_until_when_a_memory_held(cli: Cli, judged: list[str]) -> None:
    assert f"- until 10 Feb 2026: {BERLIN}" in cli("context", "where do I live").out
