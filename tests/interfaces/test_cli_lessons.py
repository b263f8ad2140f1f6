"""`lessons`, `distill` and `heartbeat` on the command line: text, JSON and exit codes."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from memory_mesh.core.audit import check_lesson, parse
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.learning import Distilled, Heartbeat, JobRun, LessonBlock, Outcome
from memory_mesh.interfaces import values
from memory_mesh.interfaces.cli import handlers
from memory_mesh.interfaces.render import memories
from memory_mesh.interfaces.values import Call
from memory_mesh.interfaces.verbs import COMMANDS

FLAGS = [
    "--pattern", "token_expired", "--rule", "Refresh the token before a deploy.", "--situation",
    "The deploy failed.", "--oversight", "Nobody looked at the expiry.", "--fix", "A new token.",
    "--severity", "high", "--scope", "deploys",
]  # fmt: skip
FAILURE = (
    '{"status": "error", "error_pattern": "disk_full", "preventative_rule": "Watch the disk."}'
)
Cli = Callable[..., Any]  # as the fixture has it
WATCH = Call(operation=COMMANDS["heartbeat"][-1], arguments={"every": 5})
EVERY = WATCH.operation.parameters[-1]
MAIN = "from memory_mesh.interfaces.cli.main import main; main()"


def block(**said: object) -> LessonBlock:
    usual = {
        "lesson_id": "lesson_1_aaaaaa", "pattern_id": "0123456789abcdef", "severity": "low",
        "preventative_rule": "Look twice.", "rule_confidence": 0.7, "applicable_scope": "x",
        "wire_format": None, "memory_id": "mem_1_aaaaaa",
    }  # fmt: skip
    return LessonBlock(**{**usual, **said})  # type: ignore[arg-type]


# --- lessons ---


def test_a_lesson_kept_by_flags_is_told(cli: Cli) -> None:
    kept = cli(
        "distill", *FLAGS, "--confidence", "0.9", "--inverse", "Tokens that renew themselves."
    )
    assert (kept.code, kept.err) == (0, "")
    assert kept.out.startswith("[MemoryMesh] Lesson lesson_")
    assert kept.out.endswith(
        " of pattern 3d6e64ed79973675, 0.90 sure: Refresh the token before a deploy.\n"
    )
    assert (
        cli("lessons").out
        == "[MemoryMesh] 1 lessons.\nhigh  0.90  Refresh the token before a deploy.  deploys\n"
    )
    assert cli("lessons", "deploy", "the", "token").out == cli("lessons").out


def test_a_lesson_as_json_has_every_field_and_its_block(cli: Cli) -> None:
    kept = json.loads(cli("distill", *FLAGS, "--json").out)
    check_lesson(parse(kept["wire_format"]))
    told = json.loads(cli("lessons", "--json").out)
    assert told == {"count": 1, "results": [kept]}
    assert {*kept} == {
        "lesson_id", "pattern_id", "severity", "preventative_rule", "rule_confidence",
        "applicable_scope", "wire_format", "memory_id",
    }  # fmt: skip


def test_a_lesson_that_is_known_is_given_back(cli: Cli) -> None:
    first = cli("distill", *FLAGS)
    assert cli("distill", *FLAGS).out == first.out
    surer = cli("distill", *FLAGS, "--confidence", "0.8", "--idempotency-key", "k")
    assert surer.out != first.out
    assert cli("distill", *FLAGS, "--confidence", "0.8", "--idempotency-key", "k").out == surer.out
    assert cli("lessons").out.startswith("[MemoryMesh] 1 lessons.")


def test_lessons_are_ordered_and_cut_as_asked(cli: Cli) -> None:
    for n, severity in enumerate(["low", "critical", "medium"]):
        cli("distill", *FLAGS, "--pattern", f"p{n}", "--severity", severity)
    for words in ((), ("token",)):
        said = cli("lessons", *words, "--order-by", "severity DESC").out.splitlines()[1:]
        assert [line.split()[0] for line in said] == ["critical", "medium", "low"]
    assert cli("lessons", "--limit", "1").out.splitlines()[1].startswith("critical")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lessons", "--limit", "0"], "limit"),
        (["lessons", "--limit", "many"], "--limit"),
        (["lessons", "--order-by", "severity"], "severity DESC"),
        (["distill", "--rule", "Look twice."], "situation"),
        (["distill", *FLAGS, "--severity", "urgent"], "critical, high, medium, low"),
        (["distill", *FLAGS, "--confidence", "2"], "--confidence"),
        (["distill", *FLAGS, "--confidence", "sure"], "--confidence"),
        (["distill", *FLAGS, "--rule", ""], "preventative_rule"),
        (["heartbeat", "--job", "decays"], "distillation"),
        (["heartbeat", "--every", "soon"], "--every"),
        (["heartbeat", "--watch", "--every", "0s"], "--every"),
        (["heartbeat", "--watch", "--every", "8"], "--every"),
        (["heartbeat", "--watch", "--every", "-1h"], "--every"),
        (["heartbeat", "--watch", "--every", "999999d"], "366d"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_asked_is_one_line_and_exit_code_2(
    cli: Cli, words: list[str], said: str
) -> None:
    answer = cli(*words)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert said in answer.err


def test_json_that_stands_where_flags_should_is_refused(cli: Cli) -> None:
    assert cli("distill", '{"error_pattern": "x"}').code == 2
    assert cli("lessons").out == "[MemoryMesh] 0 lessons.\n"


def test_a_rule_cannot_drive_a_terminal_or_leave_its_line(cli: Cli) -> None:
    cli("distill", *FLAGS, "--rule", "Look\x1b[31m twice.\n[MemoryMesh] 99 lessons.")
    said = cli("lessons")
    assert "Look\\x1b[31m twice. [MemoryMesh] 99 lessons." in said.out
    assert said.out.count("\n") == 2
    drawn = cli("lessons", terminal=True)
    assert "\x1b[31m twice" not in drawn.out
    assert "rule" in drawn.out


# --- the cycle ---


def test_a_cycle_tells_what_it_learnt_and_what_it_skipped(cli: Cli) -> None:
    cli("store", "--content", "The disk was full.", "--metadata", FAILURE)
    skipped = cli("store", "--content", "Something broke.", "--metadata", '{"status": "error"}').id
    said = cli("distill")
    assert said.code == 0
    assert said.out == (
        "[MemoryMesh] Scanned 2 blocks: 2 candidates, 1 learnt, 0 known, 1 skipped\n"
        "Learnt: Watch the disk.\n"
        f"Skipped: {skipped}, because error_pattern is missing\n"
        "\n"
        "To begin the next session with:\n"
        "medium  0.70  Watch the disk.  general\n"
    )
    data = json.loads(cli("distill", "--json").out)
    assert (data["known"], data["learnt"], data["unseen"], data["skipped"][0]["memory_id"]) == (
        1,
        [],
        0,
        skipped,
    )
    assert data["inject"][0]["preventative_rule"] == "Watch the disk."


def test_what_was_learnt_for_others_is_counted_and_not_told(cli: Cli) -> None:
    private = FAILURE.replace("disk.", "heron.").replace('"status"', '"type": "agent", "status"')
    cli("store", "--content", "Bob's disk was full.", "--metadata", private, "--agent", "bob")
    said = cli("distill", "--agent", "ann")
    assert said.out.splitlines() == [
        "[MemoryMesh] Scanned 1 blocks: 1 candidates, 1 learnt, 0 known, 0 skipped",
        "Learnt for other agents, visible to them alone: 1",
    ]
    assert "heron" in cli("lessons", "--agent", "bob").out
    assert "heron" not in cli("lessons", "--agent", "ann").out


def test_a_cycle_without_anything_to_tell_is_one_line() -> None:
    assert (
        memories.distilled(Distilled(), WATCH).text
        == "[MemoryMesh] Scanned 0 blocks: 0 candidates, 0 learnt, 0 known, 0 skipped"
    )
    assert memories.distilled(Distilled(learnt=(block(),)), WATCH).text.splitlines()[1:] == [
        "Learnt: Look twice."
    ]


# --- the heartbeat ---


@pytest.mark.req("MESH-138")
def test_a_beat_tells_each_job_in_its_order(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("store", "--content", "The disk was full.", "--metadata", FAILURE)
    monkeypatch.setenv("MEMORY_MESH_ENABLE_WISDOM_DISTILLATION", "true")
    said = cli("heartbeat")
    assert said.code == 0
    assert said.out.splitlines()[0] == "[MemoryMesh] Heartbeat: 6 done, 0 failed, 0 not run"
    assert [line.split()[0] for line in said.out.splitlines()[1:]] == [
        "guard", "distillation", "decay", "retention", "reembedding", "compaction",
    ]  # fmt: skip
    again = cli("heartbeat")
    assert again.out.startswith("[MemoryMesh] Heartbeat: 1 done, 0 failed, 5 not run\n")
    assert cli("lessons").out.endswith("Watch the disk.  general\n")
    forced = json.loads(cli("heartbeat", "--force", "--job", "distillation", "--json").out)
    assert forced["ok"]
    assert [(run["job"], run["outcome"]) for run in forced["results"]] == [
        ("guard", "done"),
        ("distillation", "done"),
    ]


def test_the_log_tells_earlier_runs(cli: Cli) -> None:
    assert cli("heartbeat", "--log").out == "[MemoryMesh] 0 runs.\n"
    cli("heartbeat", "--job", "retention")
    lines = cli("heartbeat", "--log").out.splitlines()
    assert lines[0] == "[MemoryMesh] 2 runs."
    assert sorted(line.split()[1] for line in lines[1:]) == ["guard", "retention"]
    data = json.loads(cli("heartbeat", "--log", "--json").out)
    assert (data["count"], {run["outcome"] for run in data["results"]}) == (2, {"done"})


@pytest.mark.req("MESH-139")
def test_where_the_guard_finds_damage_the_command_fails_and_says_where(
    cli: Cli, home: Path
) -> None:
    cli("store", "--content", "The disk was full.", "--metadata", FAILURE)
    assert cli("heartbeat", "--job", "guard").code == 0
    with closing(sqlite3.connect(home / "memory.db")) as other, other:
        other.execute("UPDATE yamo_blocks SET yamo_text = replace(yamo_text, 'disk', 'risk')")
    said = cli("heartbeat")
    assert said.code == 1
    assert said.out.startswith(
        "[MemoryMesh] Heartbeat: 0 done, 6 failed, 0 not run\n"
        "guard         failed   block 1 of the chain "
    )
    assert said.out.count("blocked  the guard found damage") == 5
    assert json.loads(cli("heartbeat", "--json").out)["ok"] is False


def test_a_terminal_gets_a_table(cli: Cli) -> None:
    drawn = cli("heartbeat", terminal=True)
    assert "what it did" in drawn.out
    assert "\x1b[" in drawn.out


def test_a_job_that_failed_makes_the_exit_code_1() -> None:
    run = JobRun(job="guard", priority=0, outcome=Outcome.DONE, began="", ended="")
    failed = JobRun(
        job="retention", priority=4, outcome=Outcome.FAILED, began="", ended="", detail="two\nlines"
    )
    assert memories.heartbeat(Heartbeat(runs=(run,)), WATCH).code == 0
    answer = memories.heartbeat(Heartbeat(runs=(run, failed)), WATCH)
    assert answer.code == 1
    assert answer.text == (
        "[MemoryMesh] Heartbeat: 1 done, 1 failed, 0 not run\nguard      done\n"
        "retention  failed  two lines"
    )


def test_a_store_that_is_only_read_is_told_by_its_own_code(cli: Cli, home: Path) -> None:
    cli("store", "--content", "x")
    assert cli("heartbeat", "--store", f"sqlite:///{home / 'memory.db'}?mode=ro").code == 8


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("8h", 28_800), (" 2D ", 172_800), ("366d", 31_622_400)],
)
def test_a_span_of_time_is_read(text: str, seconds: int) -> None:
    assert values.read(EVERY, text) == seconds


@pytest.mark.parametrize(
    ("unit", "largest"), [("s", 999_999), ("m", 527_040), ("h", 8784), ("d", 366)]
)
def test_a_span_of_time_has_at_most_366_days_in_each_unit(unit: str, largest: int) -> None:
    numbers = {0, 1, *(largest + step for step in range(-1000, 1001)), *range(0, 10**6, 997)}
    read = {number for number in numbers if values.DURATION.fullmatch(f"{number}{unit}")}
    assert read == {number for number in numbers if 0 < number <= largest}


@pytest.mark.parametrize(
    "text", ["", "h", "8", "8 h", "1.5h", "٣h", "8h30m", "367d", "0d", "1w", "1e3s", f"{0:05000}8h"]
)
def test_what_is_no_span_of_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--every"):
        values.read(EVERY, text)


# --- beat after beat ---


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MEMORY_MESH_", "COV", "PYTHONUNBUFFERED"))
    }
    return {**kept, "MEMORY_MESH_HOME": str(tmp_path / "home"), "MEMORY_MESH_EMBEDDER": "none"}


def watching(environ: dict[str, str], *words: str) -> "subprocess.Popen[str]":
    # A shell that starts jobs in the background makes them deaf to Ctrl-C; this one shall hear it.
    hearing = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {MAIN}"
    return subprocess.Popen(
        [sys.executable, "-c", hearing, "heartbeat", "--watch", *words],
        env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.req("MESH-138")
@pytest.mark.parametrize(("every", "beats"), [("8h", 1), ("1s", 2)])
def test_a_watch_beats_until_it_is_interrupted(
    environ: dict[str, str], every: str, beats: int
) -> None:
    with watching(environ, "--every", every) as process:
        assert process.stdout
        assert process.stderr
        lines = list(islice(process.stdout, 6 * beats))
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == "[MemoryMesh Error] interrupted\n"
    assert process.returncode == 130
    heads = [line for line in lines if line.startswith("[MemoryMesh] Heartbeat: ")]
    assert heads[0] == "[MemoryMesh] Heartbeat: 5 done, 0 failed, 1 not run\n"
    assert heads[1:] == ["[MemoryMesh] Heartbeat: 1 done, 0 failed, 5 not run\n"] * (beats - 1)


def test_a_watch_ends_with_the_reader_of_its_pipe(environ: dict[str, str]) -> None:
    with watching(environ, "--every", "1s") as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(timeout=30) == 141
        assert process.stderr.read() == ""


@pytest.mark.deep
def test_heartbeat_watch_prints_json_and_runs_only_the_given_jobs(environ: dict[str, str]) -> None:
    with watching(environ, "--every", "1s", "--json", "--force", "--job", "retention") as process:
        assert process.stdout
        decoder, heard, found = json.JSONDecoder(), "", []
        for line in process.stdout:
            heard += line
            if line == "}\n":
                found.append(decoder.decode(heard))
                heard = ""
            if len(found) == 2:
                break
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 130
    assert [[(run["job"], run["outcome"]) for run in each["results"]] for each in found] == [
        [("guard", "done"), ("retention", "done")]
    ] * 2


def test_a_failed_heartbeat_is_reported_and_the_next_one_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Sick:
        beats = 0

        def heartbeat(self, **_: object) -> Heartbeat:
            self.beats += 1
            outcome = Outcome.FAILED if self.beats == 1 else Outcome.DONE
            return Heartbeat(
                runs=(JobRun(job="guard", priority=0, outcome=outcome, began="", ended=""),)
            )

    class Enough(Exception):
        """So that the test ends."""

    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            raise Enough

    with pytest.raises(Enough):
        handlers.repeat(Sick(), WATCH, pause=pause)  # type: ignore[arg-type]
    assert waited == [5, 5]
    shown = [
        line for line in capsys.readouterr().out.splitlines() if line.startswith("[MemoryMesh]")
    ]
    assert shown == [
        "[MemoryMesh] Heartbeat: 0 done, 1 failed, 0 not run",
        "[MemoryMesh] Heartbeat: 1 done, 0 failed, 0 not run",
    ]
