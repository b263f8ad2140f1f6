"""`memory-mesh host`: answer the hooks of a coding agent.

A hook gives a JSON object on standard input and reads one from standard output. The host never
waits for the memory and never fails because of it: a hook that fails or takes too long gets an
empty answer, and `memory-mesh doctor` names the last failure. A process of one hook has no time to
load the local model, so it searches prompts by keywords; the resident process keeps the model.
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
    from memory_mesh.core.ports import Embedder
    from memory_mesh.models import ModelPaths

_BUSY_SECONDS = 0.2
_MAX_PROMPT_CHARS = 2_000
_MAX_RESULTS = 5
_MAX_INPUT_CHARS = 2**24
_MAX_PATH_BYTES = 2**16
_CAPTURED = {"stop": "session.idle", "session-end": "session.deleted"}
_NAMES = {word: name for name, word in EVENTS.items()}

# The model that the resident process keeps loaded; None in a process of one hook.
models: "dict[ModelPaths, Embedder] | None" = None


def host(call: Call) -> Answer:
    """Answer one hook. The answer is written before the memory is closed."""
    hook = f"{_host(call)} {call.arguments['event']}"
    deadline = current(hook)
    deadline.hook = hook
    try:
        given = _read(call)
        deadline.session_id = given.get("session_id", "")
        if call.arguments["event"] in _CAPTURED and not call.arguments["wait"]:
            _detach(call, given)
        else:
            _run(call, given, deadline)
            clear_fault(hook)
    except MemoryMeshError as error:
        _fail(deadline, str(error))
    except Exception as error:  # noqa: BLE001  (a bug of ours must not stop the work of the host)
        _fail(deadline, f"unexpected {type(error).__name__}")
    finally:
        deadline.answer(EMPTY)
        deadline.end()
    return Answer(text="", data={})


def _host(call: Call) -> str:
    return str(call.operation.fixed["host"])


def _fail(deadline: Deadline, what: str) -> None:
    line = output.one_line(what)
    record_fault(deadline.hook, line)
    with suppress(OSError):
        sys.stderr.write(f"{output.ERROR} {line}\n")
    deadline.answer(deadline.skipped(line))


def _run(call: Call, given: Mapping[str, str], deadline: Deadline) -> None:
    event, settings = str(call.arguments["event"]), load(call.target.arguments)
    if event in _CAPTURED:
        _capture(call, settings, given)
    elif settings.options.enable_memory:
        # Without `writethrough`: the process ends before a webhook has answered, and the next one
        # would send the same again.
        embedder = _embedder(settings)
        with _mesh(
            call, settings, given, embedder=embedder, busy_seconds=_BUSY_SECONDS, writethrough=[]
        ) as mesh:
            text = _recalled(mesh, event, given, settings.options.host_max_tokens)
            answer = {"hookEventName": _NAMES[event], "additionalContext": recalled_block(text)}
            deadline.answer(output.to_json({"hookSpecificOutput": answer}) if text else EMPTY)


def _embedder(settings: Settings) -> str:
    """Return the embedder of a hook: the local model if this process keeps it loaded, else none.
    A hook fetches no model, and sends no prompt to another program."""
    if models is None or settings.options.embedder != "local":
        return "none"
    from memory_mesh.api.build import make_embedder, model_paths
    from memory_mesh.models import has_files

    if not has_files(paths := model_paths(settings)):
        return "none"
    if paths not in models and (embedder := make_embedder(settings)):
        models.clear()
        models[paths] = embedder
    return "local"


def rehearse() -> None:
    """Load what hooks need: answer both events that recall from a store in memory."""
    from memory_mesh.api.mesh import MemoryMesh

    embedder = _embedder(load({}))
    with MemoryMesh(
        "memory://", embedder=embedder, update_judge="off", enable_llm=False, writethrough=[]
    ) as mesh:
        mesh.add("The hooks of this session are answered by a process that runs already.")
        for event in EVENTS.values():
            _recalled(mesh, event, {"prompt": "Which process answers the hooks?"}, 100)


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
    read = sys.stdin.readline if _host(call) == "opencode" else sys.stdin.read
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
    if not path and _host(call) == "claude-code":
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
    words = [sys.executable, "-P", "-m", "memory_mesh", *call.typed[:2], "--wait", *call.typed[2:]]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(  # noqa: S603  (the words of this very command)
        words, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True, text=True
    )
    if process.stdin:
        with process.stdin as stdin:
            stdin.write(json.dumps({name: given[name] for name in names if name in given}))
    process.returncode = 0  # it is not waited for
