"""The hooks as fresh processes, as a host runs them, and the plugin of opencode in a JavaScript
runtime."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import which

import pytest

from memory_mesh.interfaces.hosts import install

pytestmark = pytest.mark.deep

COMMAND = str(Path(sys.executable).with_name("memory-mesh"))
PROMPT = json.dumps({"session_id": "s1", "prompt": "When does the deploy key rotate?"})


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("MEMORY_MESH_")
    }
    ours = {"HOME": str(tmp_path / "home"), "EMBEDDER": "none", "HOST_SECONDS": "60"}
    ours["HOST_IDLE_SECONDS"] = "0"  # each hook answers by itself
    return {**kept, **{f"MEMORY_MESH_{name}": value for name, value in ours.items()}}


def ran(environ: dict[str, str], *words: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [COMMAND, *words],
        env=environ,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_hook_that_takes_too_long_answers_empty_once(
    environ: dict[str, str], tmp_path: Path
) -> None:
    ran(environ, "store", "The deploy key rotates on Mondays.")
    patient = ran(environ, "host", "claude-code", "user-prompt-submit", text=PROMPT)
    assert (patient.returncode, "Mondays" in patient.stdout) == (0, True)
    hasty = ran(
        {**environ, "MEMORY_MESH_HOST_SECONDS": "0.001"},
        "host",
        "claude-code",
        "user-prompt-submit",
        text=PROMPT,
    )
    assert (hasty.returncode, hasty.stdout) == (0, "{}\n")
    assert "it took longer than" in (tmp_path / "home" / "host-fault.txt").read_text()


def test_a_host_that_gives_no_input_gets_its_answer(environ: dict[str, str]) -> None:
    words = [COMMAND, "host", "claude-code", "session-start"]
    del environ["MEMORY_MESH_HOST_SECONDS"]
    with subprocess.Popen(
        words, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.read() == "{}\n"
        assert waiting.wait() == 0


def test_a_store_that_another_process_writes_to_is_read(
    environ: dict[str, str], tmp_path: Path
) -> None:
    import sqlite3

    ran(environ, "store", "The deploy key rotates on Mondays.")
    with sqlite3.connect(tmp_path / "home" / "memory.db", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        said = ran(environ, "host", "claude-code", "user-prompt-submit", text=PROMPT)
        other.execute("ROLLBACK")
    other.close()
    assert (said.returncode, "Mondays" in said.stdout) == (0, True)


@pytest.mark.req("LANE-34")
def test_capture_goes_on_in_the_background_after_the_answer(
    environ: dict[str, str], tmp_path: Path
) -> None:
    transcript = tmp_path / "s1.jsonl"
    said = {
        "role": "user",
        "content": "From now on I want you to always run the linter before committing.",
    }
    given = json.dumps(
        {"session_id": "s1", "transcript_path": str(transcript), "cwd": str(tmp_path)}
    )
    stopped = ran(environ, "host", "claude-code", "stop", text=given)
    # The other process finds no transcript.
    assert (stopped.returncode, stopped.stdout, stopped.stderr) == (0, "{}\n", "")
    fault = tmp_path / "home" / "host-fault.txt"
    assert until(
        environ, lambda: fault.exists() and "claude-code stop: the transcript" in fault.read_text()
    )
    transcript.write_text(json.dumps({"type": "user", "uuid": "u1", "message": said}) + "\n")
    ran(environ, "host", "claude-code", "stop", text=given)
    assert until(
        environ,
        lambda: (
            "run the linter"
            in ran(environ, "host", "claude-code", "session-start", text=given).stdout
        ),
    )
    assert until(environ, lambda: not fault.exists())


def until(environ: dict[str, str], done: Callable[[], bool]) -> bool:
    """Wait until something is done by another process; starting one takes a moment."""
    return any(done() or ran(environ, "--version").returncode for _ in range(200))


RUNTIME = which("node") or which("bun")

FAKE = """#!{python}
import json, pathlib, sys
lines = sys.stdin.read().splitlines()
with open({log!r}, "a") as log:
    log.write(json.dumps([sys.argv[1:], [json.loads(line) for line in lines]]) + "\\n")
answer = {{"hookSpecificOutput": {{"additionalContext": "recalled for " + sys.argv[3]}}}}
print(json.dumps({{**answer, "systemMessage": "a note"}} if "second" in lines[0] else answer))
"""

DRIVER = """
import {{ MemoryMesh }} from {plugin!r}
const messages = [{{ info: {{ id: "m1", role: "user" }}, parts: [{{ type: "text", text: "Use \
tabs." }}] }}]
const notes = []
const tui = {{ showToast: async ({{ body }}) => notes.push(body.message) }}
const client = {{ tui, session: {{
  messages: async () => ({{ data: messages }}),
  get: async ({{ path }}) => ({{ data: path.id === "child" ? {{ parentID: "s1" }} : {{}} }}),
}} }}
const hooks = await MemoryMesh({{ client, directory: {folder!r} }})
const shown = []
for (const text of ["first", "second"]) {{
  const output = {{ message: {{ id: "m1" }}, parts: [{{ type: "text", text }}] }}
  await hooks["chat.message"]({{ sessionID: "s1" }}, output)
  shown.push(output.parts)
}}
await hooks.event({{ event: {{ type: "session.idle", properties: {{ sessionID: "s1" }} }} }})
await hooks.event({{ event: {{ type: "session.idle", properties: {{ sessionID: "child" }} }} }})
await hooks.event({{ event: {{ type: "session.deleted", properties: {{ info: {{ id: "s1" }} }} }} \
}})
await hooks.event({{ event: {{ type: "session.idle" }} }})
console.log(JSON.stringify([...shown, notes]))
"""

if RUNTIME:  # opencode brings its own; without one there is nothing to run the plugin with

    def test_the_plugin_calls_the_hooks_of_opencode_and_adds_what_they_answer(
        tmp_path: Path,
    ) -> None:
        plugin, log, fake = (
            tmp_path / "plugin.mjs",
            tmp_path / "log",
            tmp_path / "bin" / "memory-mesh",
        )
        plugin.write_text(install.plugin_text())
        fake.parent.mkdir()
        fake.write_text(FAKE.format(python=sys.executable, log=str(log)))
        fake.chmod(0o755)
        (driver := tmp_path / "driver.mjs").write_text(
            DRIVER.format(plugin=plugin.as_uri(), folder=str(tmp_path))
        )
        environ = {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            [str(RUNTIME), driver],
            env=environ,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        first, second, notes = json.loads(done.stdout)
        assert notes == ["a note"]
        assert [part["text"] for part in first] == [
            "first",
            "recalled for session-start",
            "recalled for user-prompt-submit",
        ]
        assert [part["text"] for part in second] == ["second", "recalled for user-prompt-submit"]
        assert all(
            part["synthetic"] and part["messageID"] == "m1" and part["id"].startswith("prt_")
            for part in first[1:]
        )
        calls = sorted(map(json.loads, log.read_text().splitlines()), key=lambda one: one[0])
        assert [words[2] for words, _ in calls] == [
            "session-end",
            "session-start",
            "stop",
            *["user-prompt-submit"] * 2,
        ]
        assert all(
            words[:2] == ["host", "opencode"] and given[0]["cwd"] == str(tmp_path)
            for words, given in calls
        )
        stopped = {words[2]: given for words, given in calls}["stop"]
        assert [stopped[0]["session_id"], stopped[1]["parts"][0]["text"]] == ["s1", "Use tabs."]

    def test_without_the_command_the_session_goes_on(tmp_path: Path) -> None:
        (plugin := tmp_path / "plugin.mjs").write_text(install.plugin_text())
        (driver := tmp_path / "driver.mjs").write_text(
            DRIVER.format(plugin=plugin.as_uri(), folder=str(tmp_path))
        )
        (bare := tmp_path / "bin").mkdir()
        done = subprocess.run(
            [str(RUNTIME), driver],
            env={**os.environ, "PATH": str(bare)},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        *shown, notes = json.loads(done.stdout)
        assert [[part["text"] for part in parts] for parts in shown] == [["first"], ["second"]]
        assert notes == []
        assert done.stderr == ""
