"""`trace record`, which may run a command and record it, and `trace similar`."""

import shlex
import subprocess
import sys
from collections.abc import Sequence
from threading import Thread
from typing import IO, TextIO

from memory_mesh.core.errors import InvalidInput, MemoryMeshError
from memory_mesh.flows.trace_files import MAX_RESULT_CHARS
from memory_mesh.interfaces.render import NAME, Answer, Form, one_line
from memory_mesh.interfaces.trace_views import trace_recorded, traces_similar
from memory_mesh.interfaces.values import Call

_NOT_STARTED, _INTERRUPTED, _SIGNALLED = 127, 130, 128
_PIECE = 65_536
_MAX_KEPT = 4 * MAX_RESULT_CHARS  # bytes of the beginning, and of the end


def record(call: Call) -> Answer:
    """Record what the flags say or, with a command, run it and record how it went."""
    given = dict(call.arguments)
    words = [str(word) for word in given.pop("command", ()) or ()]  # type: ignore[attr-defined]
    if not words:
        with call.target.mesh() as mesh:
            return trace_recorded(mesh.traces.record(**given), call)  # type: ignore[arg-type]
    if unused := [name for name in ("status", "duration_ms", "results") if name in given]:
        raise InvalidInput(f"--{unused[0].replace('_', '-')} is given with a command", expected="one of them")
    return _run(call, words, given)


def similar(call: Call) -> Answer:
    """Find executions with a similar goal, within a range of times."""
    given = dict(call.arguments)
    window = given.pop("since", None), given.pop("until", None)
    with call.target.mesh() as mesh:
        found = mesh.traces.similar(**given, time_window=window)  # type: ignore[arg-type]
    return traces_similar(found, call)


def _run(call: Call, words: Sequence[str], given: dict[str, object]) -> Answer:
    """Run a command; its output goes through, and its exit code is that of this program."""
    code = 0
    run = {name: given.pop(name) for name in ("goal", "plan") if name in given}
    try:
        with call.target.mesh() as mesh, mesh.traces.run(**run) as current:  # type: ignore[arg-type]
            code, out, err = _passed_through(words, to_stderr=call.form is not Form.TEXT)
            current.status = "failure" if code else "success"
            current.step(shlex.join(words), f"failed, exit code {code}" if code else "exit code 0")
            current.tool(words[0].rpartition("/")[2] or words[0], _joined(out.text, err.text))
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
    """Run a command and copy what it writes; return its exit code and what is kept of its output and of its errors."""
    out, err = _Kept(), _Kept()
    try:
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603  (the caller's)
            streams = ((process.stdout, sys.stderr if to_stderr else sys.stdout, out), (process.stderr, sys.stderr, err))
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


def _joined(out: str, err: str) -> str:
    """Return what is kept of both streams. They are not mixed: a secret of one must not be cut in two by the other."""
    return f"{out.rstrip()}\n\nStandard error:\n{err}".lstrip() if err else out


class _Kept:
    """The beginning and the end of what a command writes, more than is recorded, so that no secret is cut before it is masked."""

    def __init__(self) -> None:
        self._start, self._end = bytearray(), bytearray()
        self.size = 0  # of all that was written

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        room = _MAX_KEPT - len(self._start)
        self._start += piece[:room]
        self._end += piece[room:]
        if len(self._end) > 2 * _MAX_KEPT:  # not for each piece, because it moves the rest
            del self._end[:-_MAX_KEPT]

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
