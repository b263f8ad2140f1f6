"""The examples run as their pages say."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from runpy import run_path
from threading import Thread

import pytest

from memory_mesh import MemoryMesh

LOOP = run_path(str(Path(__file__).parents[1] / "examples" / "agent_loop.py"))
RULE = "Refresh the token before you deploy a service."


@pytest.fixture(autouse=True)
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_MESH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "hash")  # the real model takes seconds to load
    monkeypatch.chdir(tmp_path)


@pytest.mark.req("MESH-166")
def test_the_agent_loop_fails_once_and_then_follows_the_lesson(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_the_agent_loop_asks_a_language_model(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    LOOP["main"](["--url", server])
    assert capsys.readouterr().out.splitlines()[1] == "Run 2: The billing service was deployed with a fresh token."
    first, second = Model.prompts
    assert RULE not in first
    assert f"Rule: {RULE}" in second
    assert "failed with 401" in second  # what happened in the first run
