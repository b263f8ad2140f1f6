"""Handlers: commands that do more than call the mesh once.

Each takes a `Call` and returns an `Answer`.
"""

import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from threading import Thread
from typing import IO, TYPE_CHECKING, TextIO

from memory_mesh.core.errors import InvalidInput, MemoryMeshError, SettingsError, not_installed
from memory_mesh.core.model.background import wait
from memory_mesh.interfaces.operation import Kind
from memory_mesh.interfaces.render.output import (
    NAME,
    Answer,
    Form,
    aligned,
    answer,
    items,
    one_line,
    progress,
    safe,
    show,
    size,
    table,
)
from memory_mesh.interfaces.values import Call
from memory_mesh.interfaces.verbs import COMMANDS, GROUPS, parameters
from memory_mesh.system import open_regular

if TYPE_CHECKING:
    from memory_mesh.api.mesh_methods import Mesh
    from memory_mesh.core.notes import Fault, Synced


def doctor(call: Call) -> Answer:
    """Run every check that can be run."""
    from memory_mesh.interfaces.cli.doctor import examine

    return examine(call.target)


def demo(call: Call) -> Answer:
    from memory_mesh.interfaces.cli.demo import play

    return play()


def host(call: Call) -> Answer:
    from memory_mesh.interfaces.hosts import hooks

    return hooks.host(call)


def host_status(call: Call) -> Answer:
    """Show the process that answers hooks."""
    from memory_mesh.interfaces.hosts import resident

    pid, about = resident.state()
    data = {"pid": pid, "about": about}
    return answer(f"{about[0].upper()}{about[1:]}", data, failed=pid is None)


def host_stop(call: Call) -> Answer:
    """End the process that answers hooks."""
    from memory_mesh.interfaces.hosts import resident

    pid = resident.stop()
    about = "No process answers hooks" if pid is None else f"Process {pid} has ended"
    return answer(about, {"pid": pid})


def init(call: Call) -> Answer:
    from memory_mesh.interfaces.hosts import install

    return install.init(call)


def mcp(call: Call) -> Answer:
    from memory_mesh.interfaces.mcp import handshake

    with _server_installed():
        wire = handshake.begin(call)
        from memory_mesh.interfaces.mcp import server
    return server.serve(call, wire)


def serve(call: Call) -> Answer:
    with _server_installed():
        from memory_mesh.interfaces.rest import serve as server
    return server.serve(call)


def console(call: Call) -> Answer:
    with _server_installed():
        from memory_mesh.interfaces.rest import serve as server
    return server.console(call)


@contextmanager
def _server_installed() -> Iterator[None]:
    """Raise `SettingsError` if the extra `server` is not installed."""
    try:
        yield
    except ImportError as error:
        raise not_installed(SettingsError, error.name, "server") from None


def token_create(call: Call) -> Answer:
    from memory_mesh.interfaces import tokens

    return tokens.create(call)


def token_list(call: Call) -> Answer:
    from memory_mesh.interfaces import tokens

    return tokens.listed(call)


def token_revoke(call: Call) -> Answer:
    from memory_mesh.interfaces import tokens

    return tokens.revoke(call)


def review(call: Call) -> Answer:
    from memory_mesh.interfaces.cli import reviewing

    return reviewing.review(call)


def config_show(call: Call) -> Answer:
    """Show the settings, each with its origin."""
    from memory_mesh.api.settings import load

    settings = load(call.target.arguments)
    rows, project = settings.displayed(), settings.project
    about = (
        f"The project file {project.path} is {project.trust}."
        if project
        else "There is no project file."
    )
    text = f"{NAME} {len(rows)} settings\n{aligned(rows)}\n{about}"
    return Answer(
        text=text,
        data=items(
            [{"name": name, "value": value, "origin": origin} for name, value, origin in rows],
            project_file={"path": str(project.path), "trust": project.trust} if project else None,
        ),
        draw=lambda: table("Settings", ("setting", "value", "from"), rows) + safe(about),
    )


def config_trust(call: Call) -> Answer:
    """Trust the file of a project."""
    from memory_mesh.api.settings import trust

    if "path" not in call.arguments:
        raise InvalidInput(
            "PATH is missing", expected="a project's memory-mesh.toml or its folder, or --list"
        )
    file, names = trust(str(call.arguments["path"]))
    text = f"{NAME} {file} is trusted until it changes; it sets {', '.join(names) or 'nothing'}"
    return Answer(text=text, data={"path": str(file), "sets": names})


def config_trusted(call: Call) -> Answer:
    """Show every file that was trusted."""
    from memory_mesh.api.settings import home_folder, recorded

    rows = [(str(file.path), str(file.trust)) for file in recorded(home_folder())]
    return Answer(
        text="\n".join([f"{NAME} {len(rows)} files", *([aligned(rows)] if rows else [])]),
        data=items([{"path": path, "trust": trust} for path, trust in rows]),
    )


def config_untrust(call: Call) -> Answer:
    """End the trust in the file of a project."""
    from memory_mesh.api.settings import untrust

    file = untrust(str(call.arguments["path"]))
    return Answer(text=f"{NAME} {file} is not trusted any more", data={"path": str(file)})


def verify_file(call: Call) -> Answer:
    """Verify an exported file; no store is needed."""
    from memory_mesh.core.audit import verify_export
    from memory_mesh.interfaces.render.records import verdicts

    with _opened(Path(str(call.arguments["file"])), "a file of memory-mesh audit export") as lines:
        return verdicts(verify_export(lines, noted=call.arguments.get("head")), call)  # type: ignore[arg-type]


def evaluate(call: Call) -> Answer:
    """Evaluate a store with made questions, or with those of a file."""
    from memory_mesh.interfaces.cli.evaluating import evaluated

    file = call.arguments.get("questions")
    made = {name: value for name, value in call.arguments.items() if name != "questions"}
    with nullcontext() if file is None else _opened(file, "a file of questions") as lines:
        with call.mesh() as mesh, progress() as update:
            found = mesh.evaluate(lines, progress=update, **made)  # type: ignore[arg-type]
        return evaluated(found, call)


def import_file(call: Call) -> Answer:
    """Import a file, or an export from standard input."""
    from memory_mesh.interfaces.render.records import file_imported, imported

    with call.target.mesh() as mesh, progress("lines") as update:
        if call.arguments["file"] != "-":
            return file_imported(mesh.import_file(progress=update, **call.arguments), call)  # type: ignore[arg-type]
        with _opened("-", "an export") as lines:
            return imported(mesh.import_memories(lines, progress=update), call)


def repair(call: Call) -> Answer:
    """Repair a store, which may be too damaged for a mesh."""
    from memory_mesh.api.admin import repair_store
    from memory_mesh.interfaces.render.records import store_repaired

    to = call.arguments.get("to_file")
    with progress("bar") as update:
        return store_repaired(
            repair_store(call.target.store, to=str(to) if to else None, progress=update), call
        )


def copy(call: Call) -> Answer:
    """Copy a store, by default that of the settings; both are opened without a mesh."""
    from memory_mesh.api.admin import copy_store
    from memory_mesh.api.settings import load
    from memory_mesh.interfaces.render.records import store_copied

    named = call.arguments.get("from_store")
    if named and call.target.store:
        raise InvalidInput("--from and --store are both given", expected="one of them")
    source = str(named or load(call.target.arguments).store_url)
    with progress("bar") as update:
        return store_copied(
            copy_store(source, str(call.arguments["to_store"]), progress=update), call
        )


def export_graph(call: Call) -> Answer:
    """Write the knowledge graph as the official MCP memory server does."""
    from memory_mesh.interfaces.mcp.compat import KnowledgeGraph
    from memory_mesh.interfaces.render.records import write_export

    with call.mesh() as mesh:
        return write_export(KnowledgeGraph(mesh).lines(), call, "entities and relations")


def migrate(call: Call) -> Answer:
    """Migrate the tables of a LanceDB folder; a folder that is not migrated cannot be opened as
    a mesh."""
    from memory_mesh.api.admin import migrate as run
    from memory_mesh.interfaces.render.records import migrated

    with progress("lines") as update:
        return migrated(run(call.target.store, progress=update, **call.arguments), call)  # type: ignore[arg-type]


def postgres_prepare(call: Call) -> Answer:
    from memory_mesh.api import admin

    url = admin.prepare(call.target.store)
    return Answer(text=f"{NAME} The tables are in {url}", data={"store": url})


def postgres_grant(call: Call) -> Answer:
    from memory_mesh.api import admin

    role, scope = str(call.arguments["role"]), str(call.arguments["scope"])
    user, agent = (
        None if call.arguments.get(name) is None else str(call.arguments[name])
        for name in ("user_id", "agent_id")
    )
    url, limits = admin.grant(call.target.store, role, scope=scope, user_id=user, agent_id=agent)
    data = {
        "store": url,
        "role": role,
        "scope": scope,
        "user_id": user,
        "agent_id": agent,
        "limits_to_set": limits,
    }
    text = f"{NAME} The role {one_line(role)} may use {url} with the scope {scope}"
    lines = (
        [
            "It has no limits yet. Let an administrator run:",
            *(f"  {one_line(limit)};" for limit in limits),
        ]
        if limits
        else []
    )
    return Answer(text="\n".join([text, *lines]), data=data)


def postgres_distribute(call: Call) -> Answer:
    from memory_mesh.api import admin

    url = admin.distribute(call.target.store)
    return Answer(text=f"{NAME} The tables of {url} are distributed by user", data={"store": url})


def store_messages(call: Call) -> Answer:
    """Store the messages of a file, or of standard input: a JSON list, or one message on each
    line."""
    import json

    options, expected = dict(call.arguments), "a JSON list of messages, or one message on each line"
    with _opened(options.pop("file"), expected) as file:
        text = file.read().strip()
    try:
        messages = (
            json.loads(text)
            if text.startswith("[")
            else [json.loads(line) for line in text.splitlines() if line.strip()]
        )
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the messages are not JSON: {error}", expected=expected) from None
    from memory_mesh.interfaces.render.memories import stored_many

    with call.target.mesh() as mesh, progress("bar") as update:
        new = mesh.add_many(messages, progress=update, **options)  # type: ignore[arg-type]
    return stored_many(new, call)


def ingest_skill(call: Call) -> Answer:
    """Store the skill of a file, or of the file SKILL.md of a folder."""
    from memory_mesh.core.learning import FILE
    from memory_mesh.interfaces.render.graph import skill_ingested

    options = dict(call.arguments)
    path = Path(str(options.pop("file"))).expanduser()
    path = path / FILE if path.is_dir() else path
    with _opened(path, "a file with a skill, or a folder with SKILL.md") as file:
        text = file.read()
    with call.target.mesh() as mesh:
        return skill_ingested(mesh.ingest_skill(text, source_file_path=path, **options), call)  # type: ignore[arg-type]


@contextmanager
def _opened(file: object, expected: str) -> Iterator[TextIO]:
    """Open a file of text, or standard input for `-`."""
    try:
        # Some programs put a byte order mark before the first line.
        with (
            nullcontext(sys.stdin)
            if file == "-"
            else TextIOWrapper(open_regular(str(file), typed=True), "utf-8-sig") as lines
        ):
            yield lines
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidInput(f"{file} cannot be read: {reason}", expected=expected) from None


# --- heartbeat --watch ---


def watch(call: Call) -> Answer:
    """Run the heartbeat again and again, until interrupted or until its output is closed."""
    with call.target.mesh() as mesh:
        return repeat(mesh, call)


def repeat(mesh: "Mesh", call: Call, *, pause: Callable[[float], None] = wait) -> Answer:
    """Show one heartbeat after another. A failed job is shown and does not end the loop."""
    from memory_mesh.interfaces.render.memories import heartbeat

    options = {name: value for name, value in call.arguments.items() if name != "every"}
    while True:
        answer = heartbeat(mesh.heartbeat(**options), call)  # type: ignore[arg-type]
        code = show(answer, call.form)
        # Nothing can be shown any more, such as when the reader of a pipe is gone.
        if code != answer.code:
            return Answer(text="", data={}, code=code)
        pause(float(str(call.arguments["every"])))


# --- notes watch ---


def watch_notes(call: Call) -> Answer:
    """Take over what people change in the folder of notes, until interrupted or until the output
    is closed."""
    with call.target.mesh() as mesh:
        return follow_notes(mesh, call)


def follow_notes(mesh: "Mesh", call: Call, *, pause: Callable[[float], None] = wait) -> Answer:
    """Show the state of the index, and then a line for each change."""
    from memory_mesh.interfaces.render.records import notes_synced

    form = Form.JSONL if call.form is Form.JSON else call.form  # each change is a line
    done: Synced | None = mesh.notes.sync()
    faults: tuple[Fault, ...] | None = None
    while True:
        if done and (done.files or done.faults != faults):
            if code := show(notes_synced(done, call), form):
                return Answer(text="", data={}, code=code)
            faults = done.faults
        pause(float(str(call.arguments["every"])))
        done = mesh.notes.refresh()


# --- the local model ---


def model_status(call: Call) -> Answer:
    """Show the state of the local model; nothing is loaded or downloaded."""
    from memory_mesh.api.build import model_paths
    from memory_mesh.api.settings import load
    from memory_mesh.models import JUDGE, MODEL, State
    from memory_mesh.models import model_status as status_of

    settings = load({})
    paths, embedder = model_paths(settings), settings.options.embedder
    status, judge = status_of(paths), status_of(replace(paths, model=JUDGE))
    rows = [("folder", str(status.folder))]
    made = " (made smaller from the download)" if status.state is State.READY else ""
    rows += [("size", size(status.size) + made)] if status.size else []
    rows += [("judge", f"{JUDGE} is {judge.state}")]
    rows += [("hashes", "correct")] if status.usable else []
    rows += [
        (name, text)
        for name, text in (("detail", status.detail), ("remedy", status.remedy))
        if text
    ]
    if embedder != "local":
        rows.append(("unused", f"embedder is {embedder}, by {settings.origins['embedder']}"))
    data = {
        "model": MODEL, "state": str(status.state), "folder": str(status.folder),
        "size": status.size, "sums": status.usable, "detail": status.detail,
        "remedy": status.remedy, "embedder": embedder, "judge": str(judge.state),
    }  # fmt: skip
    code = 0 if status.state is State.READY else 1
    return Answer(text=f"{NAME} {MODEL} is {status.state}\n{aligned(rows)}", data=data, code=code)


def model_fetch(call: Call) -> Answer:
    """Download the local model and build it and the judge, unless they are ready."""
    from memory_mesh.api.build import model_paths
    from memory_mesh.api.settings import load
    from memory_mesh.models import JUDGE, MODEL, find_model

    settings = load({})
    models = [MODEL] if settings.options.update_judge == "off" else [MODEL, JUDGE]
    with progress() as update:
        for model in models:
            find_model(replace(model_paths(settings), model=model), retry=True, progress=update)
    return model_status(call)


# --- completion ---

# Each script calls the command itself for the words to offer, and falls back to file names. A word
# such as `severity DESC` is quoted: bash does not do that by itself.
_SCRIPTS = {
    "bash": """\
_memory_mesh() {
    local IFS=$'\\n' word
    COMPREPLY=()
    for word in $(memory-mesh completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do
        COMPREPLY+=("$(printf %q "$word")")
    done
}
complete -o default -F _memory_mesh memory-mesh""",
    "zsh": """\
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
_memory_mesh() {
    local -a offered
    offered=("${(@f)$(memory-mesh completion zsh -- "${(@)words[2,$CURRENT]}" 2>/dev/null)}")
    if [[ -n "$offered" ]]; then compadd -- $offered; else _files; fi
}
compdef _memory_mesh memory-mesh""",
    "fish": """\
function __memory_mesh
    set -l offered (memory-mesh completion fish -- (commandline -opc)[2..-1] (commandline -ct) \
2>/dev/null)
    if set -q offered[1]
        printf '%s\\n' $offered
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c memory-mesh -f -a '(__memory_mesh)'""",
}


def completion(call: Call) -> Answer:
    """Print the script of a shell, or the completions of the last word of a line."""
    shell, line = str(call.arguments["shell"]), call.arguments.get("line")
    if not isinstance(line, list):
        script = f"# {NAME} Completion for {shell}\n{_SCRIPTS[shell]}"
        return Answer(text=script, data={"shell": shell, "script": script})
    words = completions(line)
    return Answer(text="\n".join(words), data={"words": words} if words else {})


def completions(line: list[str]) -> list[str]:
    """Return the words that can stand in place of the last word of a line."""
    *before, last = line
    command = next(
        (one for one in (" ".join(before[:2]), "".join(before[:1])) if one in COMMANDS), None
    )
    if command is None:
        depth = len(before)
        offered = [
            one.split()[depth]
            for one in COMMANDS
            if one.split()[:depth] == before and len(one.split()) > depth
        ]
        offered += ["--help"] if before in [[], *([group] for group in GROUPS)] else []
        offered += ["--version", "--debug"] if not before else []
        offered = [word for word in offered if word.startswith("-") == last.startswith("-")]
    else:
        offered = _values_or_flags(command, before, last)
    return [word for word in dict.fromkeys(offered) if word.startswith("" if last == "=" else last)]


def _values_or_flags(command: str, before: list[str], last: str) -> list[str]:
    """Return the choices of the flag that is being completed, or the flags of the command, or
    the choices of its words."""
    flags = {one.word: one for one in parameters(command) if not one.positional}
    takes_value = {word: one for word, one in flags.items() if one.kind is not Kind.SWITCH}
    flag, equals, _ = last.partition("=")
    if equals and flag in takes_value:  # zsh and fish complete `--flag=value` as one word
        return [f"{flag}={choice}" for choice in takes_value[flag].choices]
    # Bash makes `--flag`, `=` and `value` of it.
    previous = before[-2] if before[-1] == "=" else before[-1]
    if previous in takes_value:
        return list(takes_value[previous].choices)
    if last.startswith("-") and "--" not in before:
        return [*flags, "--help"]
    return [choice for one in parameters(command) if one.positional for choice in one.choices]


# --- trace record, trace similar ---

_NOT_STARTED, _INTERRUPTED, _SIGNALLED = 127, 130, 128
_PIECE = 65_536


def record_trace(call: Call) -> Answer:
    """Record what the flags say or, with a command, run it and record how it went."""
    from memory_mesh.interfaces.render.records import trace_recorded

    given = dict(call.arguments)
    words = [str(word) for word in given.pop("command", ()) or ()]  # type: ignore[attr-defined]
    if not words:
        with call.target.mesh() as mesh:
            return trace_recorded(mesh.traces.record(**given), call)  # type: ignore[arg-type]
    if unused := [name for name in ("status", "duration_ms", "results") if name in given]:
        raise InvalidInput(
            f"--{unused[0].replace('_', '-')} is given with a command", expected="one of them"
        )
    return _run(call, words, given)


def similar_traces(call: Call) -> Answer:
    """Find executions with a similar goal, within a range of times."""
    from memory_mesh.interfaces.render.records import traces_similar

    given = dict(call.arguments)
    window = given.pop("since", None), given.pop("until", None)
    with call.mesh() as mesh:
        found = mesh.traces.similar(**given, time_window=window)  # type: ignore[arg-type]
    return traces_similar(found, call)


def _run(call: Call, words: Sequence[str], given: dict[str, object]) -> Answer:
    """Run a command; its output goes through, and its exit code is that of this program."""
    from memory_mesh.interfaces.render.records import trace_recorded

    code = 0
    run = {name: given.pop(name) for name in ("goal", "plan") if name in given}
    try:
        with call.target.mesh() as mesh, mesh.traces.run(**run) as current:  # type: ignore[arg-type]
            code, out, err = _passed_through(words, to_stderr=call.form is not Form.TEXT)
            current.status = "failure" if code else "success"
            current.step(shlex.join(words), f"failed, exit code {code}" if code else "exit code 0")
            # The streams are not mixed: a secret of one must not be cut in two by the other.
            text = out.text
            if err.text:
                text = f"{text.rstrip()}\n\nStandard error:\n{err.text}".lstrip()
            current.tool(words[0].rpartition("/")[2] or words[0], text)
            current.results = f"Exit code {code}, {out.size + err.size:,} bytes of output."
            for name, value in given.items():
                getattr(current, name).extend(value)
    except MemoryMeshError as error:
        if not code:
            raise
        sys.stderr.write(f"{NAME} the trace is not recorded: {one_line(str(error))}\n")
        return Answer(text="", data={}, code=code)
    assert current.trace is not None  # noqa: S101  (it has ended)
    answer = trace_recorded(current.trace, call)
    if call.form is Form.TEXT:  # standard output is that of the command
        sys.stderr.write(f"{answer.text}\n")
        return Answer(text="", data={}, code=code)
    return Answer(text=answer.text, data=answer.data, code=code)


def _passed_through(words: Sequence[str], *, to_stderr: bool) -> "tuple[int, _Kept, _Kept]":
    """Run a command and copy what it writes; return its exit code and what is kept of its output
    and of its errors."""
    out, err = _Kept(), _Kept()
    try:
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603  (the caller's)
            streams = (
                (process.stdout, sys.stderr if to_stderr else sys.stdout, out),
                (process.stderr, sys.stderr, err),
            )
            threads = [Thread(target=_copy, args=stream, daemon=True) for stream in streams]
            for thread in threads:
                thread.start()
            try:
                code = process.wait()
            except KeyboardInterrupt:  # the command got the signal too, and decides when it ends
                process.wait()
                code = _INTERRUPTED
            for thread in threads:
                thread.join()
    except OSError as error:
        what = f"{words[0]}: {error.strerror or error}\n"
        sys.stderr.write(what)
        err.add(what.encode("utf-8", "replace"))
        return _NOT_STARTED, out, err
    return _SIGNALLED - code if code < 0 else code, out, err


class _Kept:
    """The beginning and the end of what a command writes, more than is recorded, so that no
    secret is cut before it is masked."""

    def __init__(self) -> None:
        from memory_mesh.flows.traces.index import MAX_RESULT_CHARS

        self._start, self._end = bytearray(), bytearray()
        self._max = 4 * MAX_RESULT_CHARS  # bytes of the beginning, and of the end
        self.size = 0  # of all that was written

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        room = self._max - len(self._start)
        self._start += piece[:room]
        self._end += piece[room:]
        if len(self._end) > 2 * self._max:  # not for each piece, because it moves the rest
            del self._end[: -self._max]

    @property
    def text(self) -> str:
        return (self._start + self._end).decode("utf-8", "replace")


def _copy(source: IO[bytes], to: TextIO, kept: _Kept) -> None:
    binary = getattr(to, "buffer", None)
    while piece := source.read1(_PIECE):  # type: ignore[attr-defined]
        kept.add(piece)
        try:
            if binary is not None:
                binary.write(piece)
            else:
                to.write(piece.decode("utf-8", "replace"))
            to.flush()
        except (BrokenPipeError, ValueError):  # who reads the output is gone; the command goes on
            continue
