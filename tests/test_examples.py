"""The examples run as their pages say."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO
from pathlib import Path
from runpy import run_path
from threading import Thread

import pytest

from memory_mesh import MemoryMesh

EXAMPLES = Path(__file__).parents[1] / "examples"
LOOP, NOTES = (run_path(str(EXAMPLES / name)) for name in ("agent_loop.py", "notes_agent.py"))
RULE = "Refresh the token before you deploy a service."


@pytest.fixture(autouse=True)
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_MESH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "hash")  # the real model takes seconds to load
    monkeypatch.chdir(tmp_path)


@pytest.mark.req("MESH-166")
def test_the_agent_loop_fails_once_and_then_follows_the_lesson(
    capsys: pytest.CaptureFixture[str],
) -> None:
    LOOP["main"](["--store", "memory.db"])
    assert capsys.readouterr().out == (
        "Run 1: The deploy of the billing service failed with 401.\n"
        "Run 2: The billing service was deployed with a fresh token.\n"
        f"Lessons: {[RULE]}\n"
    )
    with MemoryMesh("memory.db", agent_id="MyAgent") as mesh:
        events = [memory for memory in mesh.get_all() if memory.metadata.get("type") == "event"]
        assert [memory.session_id for memory in events] == ["session-2", "session-1"]
        assert {memory.metadata["source"] for memory in events} == {"MyAgent"}
    LOOP["main"](["--store", "memory.db"])  # the memory is kept for the next time
    assert capsys.readouterr().out.count("with a fresh token") == 2


class Model(BaseHTTPRequestHandler):
    """A server of a language model that repeats the last rule of its prompt."""

    prompts: list[str] = []  # noqa: RUF012  (one server a test)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][0]["content"]
        self.prompts.append(prompt)
        rules = [line for line in prompt.splitlines() if line.startswith("Rule: ")]
        answer = {"choices": [{"message": {"content": " ".join([*rules, "Deploy."])}}]}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Model) as http:
        thread = Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}/v1"
        http.shutdown()
        thread.join()


def test_the_agent_loop_asks_a_language_model(
    server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    LOOP["main"](["--url", server])
    assert (
        capsys.readouterr().out.splitlines()[1]
        == "Run 2: The billing service was deployed with a fresh token."
    )
    first, second = Model.prompts
    assert RULE not in first
    assert f"Rule: {RULE}" in second
    assert "failed with 401" in second  # what happened in the first run


@pytest.mark.req("NOTE-38")
def test_the_agent_with_notes_has_what_it_found_out_in_its_next_prompt(
    capsys: pytest.CaptureFixture[str],
) -> None:
    NOTES["main"]([])
    first, second, note = capsys.readouterr().out.splitlines()
    assert (first.endswith("failed."), second.endswith("done.")) == (True, True)
    (file,) = Path("notes").glob("*.md")
    assert file.name in note
    before = file.read_bytes()
    NOTES["main"]([])  # the note is there from the beginning
    assert capsys.readouterr().out.count("done.") == 2
    assert file.read_bytes() == before


def test_the_same_agent_answers_the_events_of_a_host(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(**event: str) -> str:
        monkeypatch.setattr("sys.stdin", StringIO(json.dumps(event)))
        NOTES["main"](["--hook"])
        return capsys.readouterr().out

    report = (
        "Causes:\n- The services are built with Node 20 only, because the lock file requires it."
    )
    messages = [
        {"role": "user", "content": "Fix the build"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": report}, {"type": "tool_use", "id": "1"}],
        },
        {"role": "user", "content": [{"type": "tool_result", "content": "ok"}]},
    ]
    (tmp_path / "t.jsonl").write_text(
        "\n".join(json.dumps({"type": "x", "message": message}) for message in messages)
    )
    assert answer(hook_event_name="UserPromptSubmit", prompt="Fix the build") == "{}\n"
    assert answer(hook_event_name="Stop", transcript_path=str(tmp_path / "t.jsonl")) == "{}\n"
    (tmp_path / "empty.jsonl").touch()
    assert answer(hook_event_name="Stop", transcript_path=str(tmp_path / "empty.jsonl")) == "{}\n"
    given = json.loads(answer(hook_event_name="UserPromptSubmit", prompt="Fix the build"))[
        "hookSpecificOutput"
    ]
    assert (given["hookEventName"], "Node 20 only" in given["additionalContext"]) == (
        "UserPromptSubmit",
        True,
    )
    assert answer(hook_event_name="UserPromptSubmit", prompt="Paint the door") == "{}\n"


@pytest.mark.req("TRACE-23", "TRACE-28")
def test_twelve_traces_become_two_learnings_and_one_skill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = run_path(str(Path(__file__).parents[1] / "examples" / "trace_learning.py"))
    example["main"](["--traces", "traces"])
    shown = capsys.readouterr().out
    assert shown.startswith(
        "12 traces, 2 learnings, 1 skill\n\n# Learning: Deploy the shop to production\n"
    )
    assert "- Observed in 7 executions\n- Success rate: 86%\n- Common tools: make, ssh\n" in shown
    assert "- Observed in 5 executions\n- Success rate: 40%\n- Common tools: csv\n" in shown
    learnings = (
        tmp_path / "traces" / "projects" / "default" / "memory" / "long_term" / "learnings.md"
    ).read_text()
    assert learnings.count("# Learning: ") == 2
