"""Time, ids and waiting that do only what a test tells them. With the same fakes, the same calls leave the same records."""

from collections.abc import Sequence
from random import Random
from threading import Lock

from memory_mesh.core.errors import EmbeddingError, MemoryMeshError
from memory_mesh.core.model.ids import Ids
from memory_mesh.core.model.rows import Vector
from memory_mesh.core.ports import Embedder, Prompt, Reply, Tokens
from memory_mesh.core.text import estimate

NEW_YEAR = 1_767_225_600_000  # 2026-01-01T00:00:00Z


class FakeClock:
    """Stands still until it is moved, and can be set back.

    It is a `core.ports.Clock` itself (milliseconds); `MemoryMesh(clock=fake.seconds)` wants seconds.
    """

    def __init__(self, ms: int = NEW_YEAR) -> None:
        self.ms = ms

    def __call__(self) -> int:
        return self.ms

    def seconds(self) -> float:
        return self.ms / 1000

    def advance(self, *, days: float = 0, seconds: float = 0, ms: int = 0) -> None:
        """Move on, or back where the sum is negative."""
        self.ms += round(days * 86_400_000 + seconds * 1000) + ms


def seeded_ids(seed: int = 0) -> Ids:
    """Ids and salts that are the same in every run."""
    return Ids(Random(seed).getrandbits)  # noqa: S311  (that it can be foretold is the point)


def no_pause(attempt: int) -> None:
    """Try again at once."""


class RecordingEmbedder:
    """Passes everything on to another embedder, and remembers what it was shown."""

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
        return self._inner.embed(texts)


class DownEmbedder:
    """An embedder that never answers."""

    def __init__(self, model: str = "down", window: int = 256) -> None:
        self.model, self.window = model, window

    def count(self, text: str) -> int:
        return estimate(text)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        raise EmbeddingError(f"{self.model} does not answer", remedy="try again later")


class ScriptedChat:
    """A language model that says what it was told to, in order, and remembers what it was asked. The last word is repeated."""

    def __init__(
        self, first: str | Reply | MemoryMeshError, *more: str | Reply | MemoryMeshError, model: str = "scripted"
    ) -> None:
        self._script, self.model = (first, *more), model
        self.asks: list[Prompt] = []
        self._lock = Lock()

    def reply(self, prompt: Prompt) -> Reply:
        with self._lock:
            said = self._script[min(len(self.asks), len(self._script) - 1)]
            self.asks.append(prompt)
        if isinstance(said, MemoryMeshError):
            raise said
        if isinstance(said, Reply):
            return said
        return Reply(text=said, model=self.model, tokens=Tokens(estimate(prompt.system) + estimate(prompt.user), estimate(said)))
