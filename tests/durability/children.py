"""Helpers to run a program in a separate process, read its output, and inspect the files it
leaves."""

import atexit
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from signal import SIGKILL
from types import TracebackType
from typing import Any, Self

PROGRAMS = Path(__file__).with_name("programs.py")


class Child:
    """A running program of `programs.py`. It is gone when the `with` ends, whatever happened."""

    def __init__(self, program: str, **options: object) -> None:
        request = [str(PROGRAMS), program, str(Path.cwd()), dict(os.environ)]
        (stdin, given), (said, stdout), (ended, status) = (os.pipe() for _ in range(3))
        socket.send_fds(_server(), [json.dumps(request).encode()], [stdin, stdout, 2, status])
        for passed_on in (stdin, stdout, status):
            os.close(passed_on)
        self._in = open(given, "w", encoding="utf-8")  # noqa: SIM115
        self._out = open(said, encoding="utf-8")  # noqa: SIM115
        self._ended = open(ended, encoding="utf-8")  # noqa: SIM115
        self._pid = int(self._ended.readline())
        self._code: int | None = None
        self.tell(json.dumps(options))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        self.end()
        for stream in (self._in, self._out, self._ended):
            with suppress(BrokenPipeError):  # it did not read all
                stream.close()

    def hear(self) -> Any:
        """The next thing that it says."""
        line = self._out.readline()
        assert line.endswith("\n"), f"the program ended with {self.end()}"
        return json.loads(line)

    def rest(self) -> list[Any]:
        """All that it still says until its end; a line that its death cut short was not said."""
        return [json.loads(line) for line in self._out if line.endswith("\n")]

    def tell(self, line: str = "go on") -> None:
        """Let it go on."""
        self._in.write(f"{line}\n")
        self._in.flush()

    def kill(self) -> None:
        """End it at once, wherever it is."""
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, SIGKILL)

    def end(self) -> int:
        """Wait for its end; a negative number is the signal that killed it."""
        if self._code is None:
            self._code = int(self._ended.readline())
        return self._code


@cache
def _server() -> socket.socket:
    """Start the process that is forked for each program, for as long as this one runs."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = [sys.executable, str(Path(__file__).with_name("fork_server.py"))]
    server = subprocess.Popen(words, stdin=its.fileno(), cwd=Path(__file__).parent)
    its.close()

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours


def together(
    stack: ExitStack, options: list[dict[str, Any]], program: str = "write"
) -> list[Child]:
    """Children that all start at the same moment."""
    children = [stack.enter_context(Child(program, **each)) for each in options]
    assert [child.hear() for child in children] == ["ready"] * len(children)
    for child in children:
        child.tell()
    return children


def url(file: Path) -> str:
    scheme = {".db": "sqlite", ".json": "json"}.get(file.suffix, "lancedb")
    return f"{scheme}:///{file}"


def bytes_of(file: Path) -> bytes:
    """All bytes of a store: of the file, its log, its shared memory and its index.

    Another process reads them: closing the file in this one would drop the locks that SQLite holds
    here.
    """
    program = (
        "import sys, pathlib; [sys.stdout.buffer.write(pathlib.Path(name).read_bytes()) for name "
        "in sys.argv[1:]]"
    )
    words = [sys.executable, "-I", "-S", "-c", program, *map(str, files_of(file))]
    return subprocess.run(words, capture_output=True, check=True).stdout


def files_of(file: Path) -> Iterator[Path]:
    beside = [path for path in sorted(file.parent.iterdir()) if path.name.startswith(file.name)]
    return (
        inner for path in beside for inner in (path, *sorted(path.rglob("*"))) if inner.is_file()
    )
