"""`memory-mesh host`: answer the hooks of a coding agent.

A hook gives a JSON object on standard input and reads one from standard output. The host never
waits for the memory and never fails because of it: a hook that fails or takes too long gets an
empty answer, and `memory-mesh doctor` names the last failure. The time limit leaves no room for
loading the local model, so prompts are searched by keywords.
"""

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from memory_mesh.api.settings import Settings, load
from memory_mesh.core.errors import InvalidInput, MemoryMeshError
from memory_mesh.core.language.capture.transcripts import Transcript, recalled_block
from memory_mesh.interfaces.hosts import EVENTS
from memory_mesh.interfaces.hosts.deadline import (
    EMPTY,
    Deadline,
    clear_fault,
    current,
    record_fault,
)
from memory_mesh.interfaces.render import output
from memory_mesh.interfaces.render.output import Answer
from memory_mesh.interfaces.values import Call
from memory_mesh.system import open_regular

if TYPE_CHECKING:
    from memory_mesh.api.mesh import MemoryMesh

_BUSY_SECONDS = 0.2
_MAX_PROMPT_CHARS = 2_000
_MAX_RESULTS = 5
_MAX_INPUT_CHARS = 2**24
_MAX_PATH_BYTES = 2**16
_CAPTURED = {"stop": "session.idle", "session-end": "session.deleted"}
_NAMES = {word: name for name, word in EVENTS.items()}


def host(call: Call) -> Answer:
    """Answer one hook. The answer is written before the memory is closed."""
    hook = f"{call.arguments['host']} {call.arguments['event']}"
    deadline = current(hook)
    try:
        if call.arguments["event"] in _CAPTURED and not call.arguments["wait"]:
            _detach(call, _read(call))
        else:
            _run(call, _read(call), deadline)
            clear_fault(hook)
    except MemoryMeshError as error:
        _fail(hook, str(error))
    except Exception as error:  # noqa: BLE001  (a bug of ours must not stop the work of the host)
        _fail(hook, f"unexpected {type(error).__name__}")
    finally:
        deadline.answer(EMPTY)
        deadline.end()
    return Answer(text="", data={})


def _fail(hook: str, what: str) -> None:
    line = output.one_line(what)
    record_fault(hook, line)
    with suppress(OSError):
        sys.stderr.write(f"{output.ERROR} {line}\n")


def _run(call: Call, given: Mapping[str, str], deadline: Deadline) -> None:
    event, settings = str(call.arguments["event"]), load(call.target.arguments)
    if event in _CAPTURED:
        _capture(call, settings, given)
    elif settings.options.enable_memory:
        # Without `writethrough`: the process ends before a webhook has answered, and the next one
        # would send the same again.
        with _mesh(
            call, settings, given, embedder="none", busy_seconds=_BUSY_SECONDS, writethrough=[]
        ) as mesh:
            text = _recalled(mesh, event, given, settings.options.host_max_tokens)
            answer = {"hookEventName": _NAMES[event], "additionalContext": recalled_block(text)}
            deadline.answer(output.to_json({"hookSpecificOutput": answer}) if text else EMPTY)


def _recalled(mesh: "MemoryMesh", event: str, given: Mapping[str, str], max_tokens: int) -> str:
    """Return memories for the model: those that matter when a session begins, or those that
    answer a prompt."""
    if event == "session-start":
        return mesh.lane.session_context(max_tokens=max_tokens)
    prompt = given.get("prompt", "")[:_MAX_PROMPT_CHARS].strip()
    if not prompt or prompt.startswith("/"):  # a command of the host
        return ""
    return mesh.format_for_model(
        mesh.search(prompt, limit=_MAX_RESULTS, mode="precise"), max_tokens=max_tokens
    )


def _read(call: Call) -> dict[str, str]:
    """Return the texts of the object on standard input; of opencode it is the first line, and
    messages follow."""
    read = sys.stdin.readline if call.arguments["host"] == "opencode" else sys.stdin.read
    text = read(_MAX_INPUT_CHARS)
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise InvalidInput(
            "the input of the hook is not a JSON object",
            expected="the JSON of a hook on standard input",
        )
    return {name: value for name, value in given.items() if isinstance(value, str)}


def _mesh(
    call: Call, settings: Settings, given: Mapping[str, str], **options: object
) -> "MemoryMesh":
    """Return the memory of the user. Its project is the configured one, or is named after the
    folder of the git repository."""
    from memory_mesh.api.mesh import MemoryMesh

    scope = {**call.target.arguments, "session_id": given.get("session_id") or call.target.session}
    project = settings.options.project or _project(Path(given.get("cwd") or settings.cwd))
    return MemoryMesh(**{**scope, "project": project, **options})  # type: ignore[arg-type]


def _project(folder: Path) -> str | None:
    """Return the name of the repository that contains a folder, the same in all its worktrees,
    or else of the folder."""
    with suppress(OSError, ValueError):
        folder = next((one for one in (folder, *folder.parents) if (one / ".git").exists()), folder)
        # A file names the folder that the worktree belongs to; most often it is a folder, which
        # cannot be read.
        with open_regular(folder / ".git") as file:
            main, worktrees, _ = file.read(_MAX_PATH_BYTES).decode().partition("/.git/worktrees/")
        folder = Path(main.removeprefix("gitdir:").strip()) if worktrees else folder
    return folder.name.strip() or None


# --- capture ---


def _capture(call: Call, settings: Settings, given: Mapping[str, str]) -> None:
    """Learn from the transcript: the file that is named, or the messages on standard input."""
    path = given.get("transcript_path")
    if not path and call.arguments["host"] == "claude-code":
        raise InvalidInput(
            "the hook names no transcript", expected="transcript_path in the JSON of the hook"
        )
    transcript = (
        Path(path).expanduser()
        if path
        else Transcript(iter(lambda: sys.stdin.readline(_MAX_INPUT_CHARS), ""))
    )
    with _mesh(call, settings, given) as mesh:
        event = _CAPTURED[str(call.arguments["event"])]
        mesh.lane.on_session_event(event, transcript, session_id=given.get("session_id"))


def _detach(call: Call, given: Mapping[str, str]) -> None:
    """Start a process that captures, so that the host does not wait for it."""
    import subprocess  # the other hooks do not need it

    names = ("session_id", "transcript_path", "cwd")
    # -P: the working folder is that of any repository, and must not be the first place where
    # modules are looked for.
    words = [sys.executable, "-P", "-m", "memory_mesh", call.typed[0], "--wait", *call.typed[1:]]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(  # noqa: S603  (the words of this very command)
        words, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True, text=True
    )
    if process.stdin:
        with process.stdin as stdin:
            stdin.write(json.dumps({name: given[name] for name in names if name in given}))
    process.returncode = 0  # it is not waited for
