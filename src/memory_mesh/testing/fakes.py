"""Fakes of time, ids, models and crashes.

With the same fakes, the same calls write the same records. A crash test records the steps of a
write once, then lets a new process die at each step and checks what is left:

    recorder = Recorder()
    MemoryMesh(store=…, step=recorder).add("…")
    for name in recorder.names:
        …  # in a new process: MemoryMesh(store=…, step=crash_at(name)).add("…")
"""

import os
import signal
from collections.abc import Sequence
from random import Random
from threading import Lock

from memory_mesh.core.errors import EmbeddingError, MemoryMeshError
from memory_mesh.core.model import Ids, Vector
from memory_mesh.core.ports import Embedder, Prompt, Reply, Step, Tokens
from memory_mesh.core.text import estimate

Answer = str | Reply | MemoryMeshError
NEW_YEAR = 1_767_225_600_000  # 2026-01-01T00:00:00Z


class FakeClock:
    """A clock that moves only by `advance`, also backwards.

    It is a `core.ports.Clock` (milliseconds); `MemoryMesh(clock=fake.seconds)` expects seconds.
    """

    def __init__(self, ms: int = NEW_YEAR) -> None:
        self.ms = ms

    def __call__(self) -> int:
        return self.ms

    def seconds(self) -> float:
        return self.ms / 1000

    def advance(self, *, days: float = 0, seconds: float = 0, ms: int = 0) -> None:
        """Move the clock by the sum, which may be negative."""
        self.ms += round(days * 86_400_000 + seconds * 1000) + ms


def seeded_ids(seed: int = 0) -> Ids:
    """Return ids and salts that are the same in every run."""
    return Ids(Random(seed).getrandbits)  # noqa: S311  (predictable on purpose)


def no_pause(attempt: int) -> None:
    """Retry at once."""


class RecordingEmbedder:
    """Passes calls on to another embedder, and records the texts."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self.batches: list[list[str]] = []

    @property
    def texts(self) -> list[str]:
        return [text for batch in self.batches for text in batch]

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def window(self) -> int:
        return self._inner.window

    def count(self, text: str) -> int:
        return self._inner.count(text)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.batches.append(list(texts))
        return Vector.made(self.model, self._inner.embed(texts))


class DownEmbedder:
    """An embedder that always fails."""

    def __init__(self, model: str = "down", window: int = 256) -> None:
        self.model, self.window = model, window

    def count(self, text: str) -> int:
        return estimate(text)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        raise EmbeddingError(f"{self.model} does not answer", remedy="try again later")


class ScriptedChat:
    """A language model that returns the given answers in order, repeats the last one, and
    records its prompts."""

    def __init__(self, first: Answer, *more: Answer, model: str = "scripted") -> None:
        self._script, self.model = (first, *more), model
        self.asks: list[Prompt] = []
        self._lock = Lock()

    def reply(self, prompt: Prompt) -> Reply:
        with self._lock:
            answer = self._script[min(len(self.asks), len(self._script) - 1)]
            self.asks.append(prompt)
        if isinstance(answer, MemoryMeshError):
            raise answer
        if isinstance(answer, Reply):
            return answer
        tokens = Tokens(estimate(prompt.system) + estimate(prompt.user), estimate(answer))
        return Reply(text=answer, model=self.model, tokens=tokens)


class Recorder:
    """A step that records the names of the steps, in order."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, name: str) -> None:
        self.names.append(name)


def crash_at(name: str, *, nth: int = 1) -> Step:
    """Return a step that kills the process when `name` is reached for the nth time."""
    reached = 0

    def step(at: str) -> None:
        nonlocal reached
        reached += at == name
        if at == name and reached == nth:
            # SIGKILL, because an exit or an exception would flush, close or roll back.
            os.kill(os.getpid(), signal.SIGKILL)

    return step
