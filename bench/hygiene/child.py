"""A system in a separate process, which may be killed: `python -m bench.hygiene.child SYSTEM FOLDER
EMBEDDER`.

It reads one JSON list a line, `[method, arguments…]`, and answers with one JSON value a line once
the call has returned.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Self

from bench.hygiene.systems import SYSTEMS, embedder, python_for
from bench.peers import ROOT, Plain, pipes


class Remote:
    """A system in another process, with the methods of `System`."""

    def __init__(self, name: str, folder: Path, *, model: str = "hash") -> None:
        words = [python_for(name), "-m", "bench.hygiene.child", name, str(folder), model]
        self._errors = TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115  (closed with the process)
        # Its own group: what the system starts itself is killed with it.
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=ROOT,
            text=True,
            start_new_session=True,
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
        self.kill()
        self._process.communicate()
        self._errors.close()

    def send(self, calls: Iterable[tuple[object, ...]]) -> None:
        """Send calls without waiting for their answers. What a dead process cannot take is
        dropped."""
        try:
            self._in.write("".join(json.dumps(call) + "\n" for call in calls))
            self._in.flush()
        except BrokenPipeError:
            return

    def answers(self, count: int) -> list[Any]:
        """Return so many answers, fewer if the process ended."""
        lines = (self._out.readline() for _ in range(count))
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def rest(self) -> list[Any]:
        return [json.loads(line) for line in self._out if line.endswith("\n")]

    def call(self, *words: object) -> Any:
        self.send([words])
        found = self.answers(1)
        if not found:
            self._errors.seek(0)
            raise RuntimeError(self._errors.read()[-500:])
        return found[0]

    def add(self, key: str, text: str) -> None:
        self.call("add", key, text)

    def capture(self, session: str, messages: Sequence[tuple[str, str]]) -> None:
        self.call("capture", session, messages)

    def delete(self, key: str) -> None:
        self.call("delete", key)

    def texts(self) -> list[str]:
        return list(self.call("texts"))

    def search(self, query: str) -> list[str]:
        return list(self.call("search", query))

    def end(self) -> None:
        """Close the system, and wait for the end of the process."""
        self._in.close()
        self._process.stdin = None
        self._process.wait(timeout=60)

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)


CALLS: dict[str, Callable[..., Any]] = {
    "add": lambda system, key, text: system.add([(key, Plain(text))]),
    "capture": lambda system, session, messages: system.capture(session, messages),
    "delete": lambda system, key: system.delete(key),
    "texts": lambda system: system.texts(),
    "search": lambda system, query: [hit.text for hit in system.search(query)],
}


def main() -> None:
    name, folder, model = sys.argv[1:]
    system = SYSTEMS[name](Path(folder), embedder(model))
    for line in sys.stdin:
        method, *arguments = json.loads(line)
        print(json.dumps(CALLS[method](system, *arguments)), flush=True)
    system.close()


if __name__ == "__main__":
    main()
