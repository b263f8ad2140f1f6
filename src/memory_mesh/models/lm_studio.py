"""LM Studio on a Mac: where it is not running, it is started, once in the life of a process."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import which
from threading import Lock

from memory_mesh.core.cancel import wait
from memory_mesh.core.errors import EmbeddingError, Unreachable
from memory_mesh.core.model.rows import Vector
from memory_mesh.core.ports import Embedder

_MAC = "darwin"
_TRIES, _SECONDS = 5, 2.0  # a model that was never loaded may take longer; the next call finds it
_LONGEST = 30

# Starts the program; whether it seems to have worked.
Launch = Callable[[], bool]
Pause = Callable[[float], None]


class Once:
    """Lets the first one through, and nobody after it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._passed = False

    def pass_through(self) -> bool:
        with self._lock:
            first, self._passed = not self._passed, True
            return first


THIS_PROCESS = Once()


def launch() -> bool:
    """LM Studio's own command starts the server with it; where that is not installed, the program is opened in the background."""
    own = which("lms") or str(Path.home() / ".lmstudio" / "bin" / "lms")
    return _ran([own, "server", "start"]) or _ran(["/usr/bin/open", "-g", "-a", "LM Studio"])


def _ran(words: list[str]) -> bool:
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_LONGEST)  # noqa: S603  (our own words, and no shell)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


class StartingLmStudio:
    """An embedder of an LM Studio on this machine. On any other system than macOS it only passes on."""

    def __init__(
        self,
        inner: Embedder,
        *,
        platform: str = sys.platform,
        launch: Launch = launch,
        once: Once = THIS_PROCESS,
        pause: Pause = wait,
    ) -> None:
        self._inner, self._platform = inner, platform
        self._launch, self._once, self._pause = launch, once, pause

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def window(self) -> int:
        return self._inner.window

    def count(self, text: str) -> int:
        return self._inner.count(text)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        try:
            return self._inner.embed(texts)
        except EmbeddingError as error:
            if self._platform != _MAC or not _unreached(error) or not self._once.pass_through() or not self._launch():
                raise
            return self._until_it_answers(texts, error)

    def _until_it_answers(self, texts: Sequence[str], failed: EmbeddingError) -> list[Vector]:
        for _ in range(_TRIES):
            self._pause(_SECONDS)
            try:
                return self._inner.embed(texts)
            except EmbeddingError as error:
                failed = error
                if not _unreached(error):
                    break
        raise failed


def _unreached(error: EmbeddingError) -> bool:
    """Whether nobody listens. A refusal, a timeout or a broken answer comes from a server that runs."""
    return isinstance(error.__cause__, Unreachable)
