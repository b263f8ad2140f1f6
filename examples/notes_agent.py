"""An agent that keeps notes: before a run it gets those that its task needs, and after the run a
new one is extracted.

The first run finds out why the build fails, and its report is worth a note. The second run has it
in its prompt, and succeeds. Without a language model a deterministic judge decides what is worth a
note.

    # the loop, in a folder of notes of its own
    python examples/notes_agent.py
    echo '{"hook_event_name": "UserPromptSubmit", "prompt": "Fix the build"}' |
        python examples/notes_agent.py --hook

With `--hook` the same is done for one event of a host such as Claude Code: its JSON is read from
standard input, and the answer is written to standard output.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_mesh import MemoryMesh

AGENT = "developer"
SYSTEM_PROMPT = "You fix builds. Report what you did and what you found out."
TASKS = ("Fix the build of the billing service", "Fix the build of the search service")


@dataclass(frozen=True)
class Run:
    """What an agent reports about a task."""

    output: str
    result: str = "success"  # or failure, or partial
    error: str | None = None


def run(mesh: MemoryMesh, task: str) -> Run:
    """Do one task with the notes that it needs, and keep what was learnt."""
    prompt = mesh.notes.build_agent_prompt(AGENT, task=task, system_prompt=SYSTEM_PROMPT)
    done = agent(prompt, task)
    mesh.notes.extract_and_save(
        agent=AGENT, task=task, agent_output=done.output, result=done.result, error=done.error
    )
    return done


def agent(prompt: str, task: str) -> Run:
    """Stand in for a language model with tools: it only takes the right version of Node if its
    prompt names it."""
    if "Node 20" in prompt:
        return Run(f"{task}: done.")
    found = (
        "- The services are built with Node 20 only, because the lock file requires it.",
        "- `npm ci` fails with EBADENGINE because the build image has Node 18.",
    )
    return Run("\n".join([f"{task}: failed.", "", "Causes:", *found]), "failure", "exit code 1")


# --- the same for the events of a host ---


def on_event(mesh: MemoryMesh, event: Mapping[str, str]) -> dict[str, object]:
    """Return the answer to an event: notes for a prompt, or nothing, after the note of a
    finished run is kept."""
    name = event.get("hook_event_name", "")
    if name == "UserPromptSubmit":
        notes = mesh.notes.build_agent_prompt(AGENT, task=event.get("prompt", ""))
        return (
            {"hookSpecificOutput": {"hookEventName": name, "additionalContext": notes}}
            if notes
            else {}
        )
    if name == "Stop" and event.get("transcript_path"):
        task, report = last_turn(Path(event["transcript_path"]))
        if task:  # there is none in a session without a prompt
            mesh.notes.extract_and_save(agent=AGENT, task=task, agent_output=report)
    return {}


def last_turn(transcript: Path) -> tuple[str, str]:
    """Return the last prompt of the user and the last text of the agent: each line of a
    transcript is a message in JSON."""
    texts = {"user": "", "assistant": ""}
    for line in transcript.read_text(encoding="utf-8").splitlines():
        message = json.loads(line).get("message", {})
        content = message.get("content", "")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text = "\n".join(part["text"] for part in parts if part.get("type") == "text").strip()
        if text and message.get("role") in texts:
            texts[message["role"]] = text
    return texts["user"], texts["assistant"]


def main(words: Sequence[str] | None = None) -> None:
    """Run both tasks, or answer one event."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--store",
        default="memory://",
        help="a file such as memory.db keeps the memory for the next time",
    )
    parser.add_argument("--notes", default="notes", help="the folder of notes")
    parser.add_argument("--hook", action="store_true", help="answer the event on standard input")
    given = parser.parse_args(words)
    with MemoryMesh(given.store, agent_id=AGENT, notes_dir=given.notes) as mesh:
        mesh.init()
        if given.hook:
            print(json.dumps(on_event(mesh, json.load(sys.stdin))))
            return
        for number, task in enumerate(TASKS, start=1):
            print(f"Run {number}: {run(mesh, task).output.splitlines()[0]}")
        for note in mesh.notes.load():
            print(f"Note: {note.title} ({note.file}), for {', '.join(note.when_to_use)}")


if __name__ == "__main__":
    main()
