"""The commands of traces."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PYTHON = sys.executable


def recorded(cli, *words: str) -> dict[str, object]:
    return json.loads(cli("trace", "record", *words, "--json").out)


def test_an_execution_is_recorded_listed_shown_and_found(cli, home: Path):
    answer = cli(
        "trace", "record", "--goal", "Deploy the shop. Now.", "--status", "failure", "--learning",
        "The token expired", "--decision", "Rotate it", "--tool", "make", "--step", "build",
        "--file", "a.tar", "--duration-ms", "7", "--plan", "Push.", "--project", "shop",
    )  # fmt: skip
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("[MemoryMesh] Recorded trace-")
    assert answer.out.endswith(": failure, Deploy the shop.\n")
    (trace,) = json.loads(cli("trace", "list", "--json").out)["results"]
    assert trace["learnings"] == ["The token expired", "Decision: Rotate it"]
    assert (trace["tools_used"], trace["files_created"], trace["duration_ms"]) == (
        ["make"],
        ["a.tar"],
        7,
    )
    assert (
        f"{trace['trace_id']}  {trace['timestamp'][:19]}  failure  7 ms  Deploy the shop."
        in cli("trace", "list").out
    )
    assert cli("trace", "list", "--project", "other").out == "[MemoryMesh] 0 traces\n"
    shown = cli("trace", "show", trace["trace_id"])
    assert shown.out.startswith(f"[MemoryMesh] {trace['trace_id']}\n---\ntrace_id: ")
    assert json.loads(cli("trace", "show", trace["trace_id"], "--json").out) == trace
    (match,) = json.loads(cli("trace", "similar", "deploy", "the", "shop", "--json").out)["results"]
    assert (match["trace_id"], match["success"]) == (trace["trace_id"], False)
    assert (
        "1 similar trace\n"
        in cli("trace", "similar", "deploy the shop", "--since", "2020-01-01").out
    )
    assert (
        cli("trace", "similar", "deploy the shop", "--until", "2020-01-01").out
        == "[MemoryMesh] 0 similar traces\n"
    )
    assert (
        home / "traces" / "projects" / "shop" / "memory" / "short_term" / "execution_log.md"
    ).is_file()


def test_a_command_runs_and_its_output_and_exit_code_pass_through(cli, home: Path):
    program = (
        "import sys; print('to out'); print('to err key sk-proj-AbCdEf0123456789AbCdEf0123456789', "
        "file=sys.stderr); sys.exit(3)"
    )
    answer = cli(
        "trace",
        "record",
        "--goal",
        "Test it",
        "--learning",
        "Look at line 3",
        "--",
        PYTHON,
        "-c",
        program,
    )
    assert (answer.code, answer.out) == (3, "to out\n")
    assert "to err key sk-proj" in answer.err
    assert "[MemoryMesh] Recorded trace-" in answer.err
    (trace,) = json.loads(cli("trace", "list", "--json").out)["results"]
    assert (trace["status"], trace["learnings"]) == ("failure", ["Look at line 3"])
    assert trace["steps"][0]["status"] == "failed, exit code 3"
    assert trace["results"] == "Exit code 3, 59 bytes of output."
    assert "exit code 3" in cli("trace", "plan", "test it").out
    (result,) = (home / "traces").rglob("1-*.txt")
    assert result.read_text().startswith("to out\n\nStandard error:\nto err key [API_KEY]")
    assert (
        "AbCdEf0123456789"
        not in result.read_text()
        + (home / "traces/projects/default/memory/short_term/execution_log.md").read_text()
    )


def test_with_json_the_output_of_the_command_is_on_standard_error(cli):
    answer = cli(
        "trace",
        "record",
        "--goal",
        "Say it",
        "--json",
        "--",
        PYTHON,
        "-c",
        "print('{\"a\": 1}')",
        '{"b": 2}',
    )
    assert answer.code == 0
    assert json.loads(answer.out)["status"] == "success"
    assert '{"a": 1}' in answer.err


def test_a_command_that_does_not_exist_is_a_failure_and_one_killed_by_a_signal_too(cli):
    answer = cli("trace", "record", "--goal", "Run it", "--", "no-such-command")
    assert answer.code == 127
    assert "no-such-command: No such file or directory" in answer.err
    assert (
        cli(
            "trace",
            "record",
            "--goal",
            "Run it",
            "--",
            PYTHON,
            "-c",
            "import os; os.kill(os.getpid(), 9)",
        ).code
        == 137
    )
    assert {
        trace["status"] for trace in json.loads(cli("trace", "list", "--json").out)["results"]
    } == {"failure"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["record"], "--goal TEXT is missing"),
        (["record", "--goal", " "], "goal is empty; expected a text"),
        (["record", "--goal", "a", "--status", "ok"], "unknown value 'ok' of --status"),
        (["record", "--goal", "a", "--duration-ms", "-1"], "duration_ms is -1"),
        (
            ["record", "--goal", "a", "--status", "success", "--", "true"],
            "--status is given with a command",
        ),
        (["record", "--goal", " ", "--", "touch", "it-ran"], "goal is empty"),
        (["similar", "a", "--since", "soon"], "time_window 'soon' is not a time"),
    ],
)
def test_wrong_usage_is_one_line_and_records_and_runs_nothing(
    cli, home: Path, words: list[str], message: str
):
    answer = cli("trace", *words)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"[MemoryMesh Error] {message}")
    assert len(answer.err.splitlines()) == 1
    assert not (home / "traces").exists()
    assert not Path("it-ran").exists()


def test_an_unknown_trace_is_not_found_and_a_broken_file_is_reported(cli, home: Path):
    assert cli("trace", "show", "trace-1-000000").code == 4
    kept = recorded(cli, "--goal", "First")
    log = home / "traces/projects/default/memory/short_term/execution_log.md"
    log.write_text(log.read_text() + "---\ntrace_id: [\n---\n\n## Learnings\n")
    answer = cli("trace", "list")
    assert str(kept["trace_id"]) in answer.out
    assert "execution_log.md:24: the frontmatter is not valid YAML" in answer.err


def test_archiving_says_what_moved(cli):
    cli("trace", "record", "--goal", "Say it")
    assert cli("trace", "archive").out.endswith("The short-term memory of default is archived.\n")


def test_erasing_a_trace_says_what_left_the_files(cli):
    recorded(cli, "--goal", "First")
    (memory,) = [
        one
        for one in json.loads(cli("list", "--json").out)["results"]
        if one["category"] == "trace"
    ]
    assert "from the files of traces" in cli("delete", memory["id"]).out
    assert cli("trace", "list").out == "[MemoryMesh] 0 traces\n"


@pytest.mark.deep
def test_the_output_passes_through_a_pipe_byte_for_byte(tmp_path: Path):
    program = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)"
    words = [
        PYTHON,
        "-m",
        "memory_mesh",
        "trace",
        "record",
        "--goal",
        "Bytes",
        "--store",
        f"sqlite:///{tmp_path}/m.db",
        "--",
        PYTHON,
    ]
    environment = {"MEMORY_MESH_HOME": str(tmp_path), "PATH": "", "MEMORY_MESH_EMBEDDER": "none"}
    done = subprocess.run(
        [*words, "-c", program], capture_output=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout) == (0, bytes(range(256)) * 1000)
    result = next((tmp_path / "m.db-traces").rglob("1-*.txt")).read_text()
    assert len(result) < 21_000
    assert "characters left out" in result
    assert (
        "256,000 bytes of output"
        in next((tmp_path / "m.db-traces").rglob("execution_log.md")).read_text()
    )


def test_retention_and_the_doctor_name_the_file_and_line_of_a_broken_entry_and_say_why(cli, home):
    cli("trace", "record", "--goal", "Ship it")
    assert cli("trace", "retention").err == ""
    assert "traces" not in {
        check["name"] for check in json.loads(cli("doctor", "--json").out)["results"]
    }
    log = home / "traces" / "system" / "memory_log.md"
    log.write_text(log.read_text().replace("execution_time_ms: 0", "execution_time_ms: soon"))
    said = cli("trace", "retention", "--dry-run")
    where = "system/memory_log.md:1: execution_time_ms is 'soon'"
    assert (said.code, said.err.startswith(f"[MemoryMesh Error] {where}")) == (0, True)
    assert json.loads(cli("trace", "retention", "--json").out)["faults"][0]["line"] == 1
    (check,) = [
        each for each in json.loads(cli("doctor", "--json").out)["results"] if not each["ok"]
    ]
    assert check["name"] == "traces"
    assert where in check["detail"]
    assert str(home / "traces") in check["remedy"]


def test_the_traces_of_a_store_are_not_taken_over_by_another_one(cli, home, tmp_path):
    cli("trace", "record", "--goal", "Ship the shop", "--store", "shop.db")
    cli("trace", "record", "--goal", "Water the plants")
    cli("trace", "record", "--goal", "Paint the house", "--store", "memory://")
    goals = {
        store: [
            trace["goal"]
            for trace in json.loads(cli("trace", "list", "--json", "--store", store).out)["results"]
        ]
        for store in ("shop.db", str(tmp_path / "shop.db"), "other.db", f"{home}/memory.db")
    }
    assert [*goals.values()] == [["Ship the shop"], ["Ship the shop"], [], ["Water the plants"]]
    assert "Ship the shop" not in cli("list", "--store", "other.db").out
    cli("trace", "record", "--goal", "Water the roses", "--store", "other.db")
    found = json.loads(
        cli("trace", "similar", "Ship the shop", "--json", "--store", "other.db").out
    )
    assert "Ship the shop" not in json.dumps(found)
    assert (tmp_path / "shop.db-traces" / "projects" / "default").is_dir()
    assert "Paint the house" in next((home / "traces").glob("*/system/memory_log.md")).read_text()


def test_a_folder_that_is_named_serves_every_store_that_names_it(cli, monkeypatch):
    monkeypatch.setenv("MEMORY_MESH_TRACES_DIR", "runs")
    cli("trace", "record", "--goal", "Ship the shop", "--store", "shop.db")
    assert "Ship the shop" in cli("trace", "list", "--store", "moved.db").out
