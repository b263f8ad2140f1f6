"""An agent that keeps notes: before a run it gets those that its task needs, and after the run what it found out is kept.

The first run finds out why the build fails, and its report becomes a note. The second run has it in its prompt, and succeeds.

    python examples/notes_agent.py                          # the loop, in a folder of notes of its own
    echo '{"hook_event_name": "UserPromptSubmit", "prompt": "Fix the build"}' | python examples/notes_agent.py --hook

With `--hook` the same is done for one event of a host such as Claude Code: its JSON is read from standard input, and the answer
is written to standard output.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_mesh import MemoryMesh

AGENT = "developer"
SYSTEM_PROMPT = "You fix builds. If you find a cause, report it in a line such as: Cause (words of the tasks it matters for): …"
TASKS = ("Fix the build of the billing service", "Fix the build of the search service")


@dataclass(frozen=True)
class Cause:
    """A cause that a report names; `mesh.notes.save` takes it as the note to write."""

    memory_title: str
    frontmatter: Mapping[str, object]
    content: str
    should_create_memory: bool = True


def run(mesh: MemoryMesh, task: str) -> str:
    """Do one task with the notes that it needs, keep what was found out, and return the report."""
    report = agent(mesh.notes.build_agent_prompt(AGENT, task=task, system_prompt=SYSTEM_PROMPT), task)
    keep(mesh, task, report)
    return report


def keep(mesh: MemoryMesh, task: str, report: str) -> None:
    """Write a note for each cause in a report, unless a note says the same already."""
    for words, cause in re.findall(r"^Cause \(([^)]+)\): (.+)$", report, flags=re.MULTILINE):
        frontmatter = {"whenToUse": words, "tags": ["cause"], "importance": "high", "discoveredIn": task}
        mesh.notes.save(Cause(cause.partition(",")[0], frontmatter, cause))


def agent(prompt: str, task: str) -> str:
    """Stand in for a language model with tools: it only knows about the version of Node if its prompt says so."""
    if "Node 18" in prompt:
        return f"{task}: done with Node 20."
    return f"{task}: failed.\nCause (build|node): The image has Node 18, and the lock file requires Node 20."


# --- the same for the events of a host ---


def on_event(mesh: MemoryMesh, event: Mapping[str, str]) -> dict[str, object]:
    """Return the answer to an event: notes for a prompt, or nothing, after what a finished run found out is kept."""
    name = event.get("hook_event_name", "")
    if name == "UserPromptSubmit":
        notes = mesh.notes.build_agent_prompt(AGENT, task=event.get("prompt", ""))
        return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": notes}} if notes else {}
    if name == "Stop" and event.get("transcript_path"):
        keep(mesh, *last_turn(Path(event["transcript_path"])))
    return {}


def last_turn(transcript: Path) -> tuple[str, str]:
    """Return the last prompt of the user and the last text of the agent: each line of a transcript is a message in JSON."""
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", default="memory://", help="a file such as memory.db keeps the memory for the next time")
    parser.add_argument("--notes", default="notes", help="the folder of notes")
    parser.add_argument("--hook", action="store_true", help="answer the event on standard input")
    given = parser.parse_args(words)
    with MemoryMesh(given.store, agent_id=AGENT, notes_dir=given.notes) as mesh:
        mesh.init()
        if given.hook:
            print(json.dumps(on_event(mesh, json.load(sys.stdin))))
            return
        for number, task in enumerate(TASKS, start=1):
            print(f"Run {number}: {run(mesh, task)}")
        for note in mesh.notes.load():
            print(f"Note: {note.title} ({note.file}), for {', '.join(note.when_to_use)}")


if __name__ == "__main__":
    main()
