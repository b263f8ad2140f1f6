"""Programs of the tests in processes that start in milliseconds: one process imports everything
once, and is forked for each.

    python -m bench.hygiene.forked MODULE…

It imports modules, and stores a text in memory, which compiles the patterns of redaction. It opens
no file and starts no thread before a fork, so that its children begin as new processes do.
"""

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import active_count
from types import TracebackType
from typing import IO, Any, Self, TextIO

from bench.hygiene.record import folder
from bench.peers import ROOT, pipes
from memory_mesh import MemoryMesh

_PRELOADED = ("memory_mesh.testing.fakes", "memory_mesh.stores.sqlite.store", "numpy", "pyarrow")


class ForkServer:
    """Starts programs, one at a time."""

    def __init__(self, programs: Sequence[Path]) -> None:
        words = [sys.executable, "-m", "bench.hygiene.forked", *map(str, programs)]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True
        )
        self._in, self._out = pipes(self._process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def start(self, file: Path, program: str, options: dict[str, Any]) -> "Forked":
        """Start a program of a file."""
        return Forked(self._in, self._out, [str(file), program], options)


class Forked:
    """A running program, with the methods of `durability.children.Child`."""

    def __init__(
        self, requests: IO[str], answers: IO[str], words: list[str], options: dict[str, Any]
    ) -> None:
        self._answers = answers
        with folder() as place:  # the names are not needed once both ends are open
            names = [str(place / name) for name in ("in", "out")]
            for name in names:
                os.mkfifo(name)
            requests.write(json.dumps([*words, *names]) + "\n")
            requests.flush()
            self._in, self._out = (
                open(names[0], "w", encoding="utf-8"),  # noqa: SIM115
                open(names[1], encoding="utf-8"),  # noqa: SIM115
            )
        self.tell(json.dumps(options))

    def hear(self) -> Any:
        """Return the next thing that it says."""
        return json.loads(self._out.readline())

    def tell(self, line: str = "go on") -> None:
        """Let it go on."""
        self._in.write(f"{line}\n")
        self._in.flush()

    def rest(self) -> list[Any]:
        """Return all that it still says until its end; a line that its death cut short was not
        said."""
        return [json.loads(line) for line in self._out if line.endswith("\n")]

    def end(self) -> int:
        """Wait for its end; a negative number is the signal that killed it."""
        self._out.close()
        with suppress(BrokenPipeError):  # it did not read all
            self._in.close()
        return int(self._answers.readline())


def main() -> None:
    for name in _PRELOADED:
        import_module(name)
    for file in sys.argv[1:]:
        runpy.run_path(file)  # imports what the programs use, and runs none of them
    with MemoryMesh("memory://", agent_id="keeper", embedder="hash") as mesh:
        mesh.add("Ann met bob@example.org.")
        mesh.search("Whom did Ann meet?")
        mesh.erase(mesh.add("This is erased.").id)
    if active_count() > 1:
        raise RuntimeError("a thread is running: a fork would not have it")
    for line in sys.stdin:
        file, program, given, said = json.loads(line)
        if (child := os.fork()) == 0:
            _run(file, program, given, said)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(file: str, program: str, given: str, said: str) -> None:
    """Run a program with its input and output, and end the process."""
    for stream, (name, flags) in enumerate(((given, os.O_RDONLY), (said, os.O_WRONLY))):
        opened = os.open(name, flags)
        os.dup2(opened, stream)
        os.close(opened)
    sys.stdin, sys.stdout = _stream(0, "r"), _stream(1, "w")
    sys.argv = [file, program]
    code = 1
    try:
        runpy.run_path(file, run_name="__main__")
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)


def _stream(number: int, mode: str) -> TextIO:
    return os.fdopen(number, mode, encoding="utf-8", closefd=False)  # type: ignore[return-value]


if __name__ == "__main__":
    main()
