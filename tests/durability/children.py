"""Helpers to run a program in a separate process, read its output, and inspect the files it
leaves."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROGRAMS = Path(__file__).with_name("programs.py")


class Child:
    """A running program of `programs.py`. It is gone when the `with` ends, whatever happened."""

    def __init__(self, program: str, **options: object) -> None:
        words = [sys.executable, str(PROGRAMS), program]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.tell(json.dumps(options))

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

    def hear(self) -> Any:
        """The next thing that it says."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line.endswith("\n"), f"the program ended with {self._process.wait()}"
        return json.loads(line)

    def rest(self) -> list[Any]:
        """All that it still says until its end; a line that its death cut short was not said."""
        assert self._process.stdout
        return [json.loads(line) for line in self._process.stdout if line.endswith("\n")]

    def tell(self, line: str = "go on") -> None:
        """Let it go on."""
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """End it at once, wherever it is."""
        self._process.kill()

    def end(self) -> int:
        """Wait for its end; a negative number is the signal that killed it."""
        return self._process.wait()


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
