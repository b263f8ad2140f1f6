"""Vectors that cost nothing while the clock runs, and lie as real ones do: around centres, each at its own distance."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from memory_mesh.core.model import Vector
from memory_mesh.models import MODEL

DIMENSION = 384
_CENTRES = 2000
_WINDOW = 256
_SPREAD = 1.0  # two texts of one centre have a cosine of about ½, as two of one subject have

Floats = NDArray[np.float32]


class ReadyEmbedder:
    """Gives out vectors that were made before the clock started. What was not made ready is made when it is asked for.

    They go by the name of the local model, so that a cold `memory-mesh search` with that model compares its query with them.
    """

    def __init__(self) -> None:
        drawn = np.random.default_rng(0).standard_normal((_CENTRES, DIMENSION)).astype(np.float32)
        self._centres = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        self._ready: dict[str, Vector] = {}

    @property
    def model(self) -> str:
        return MODEL

    @property
    def window(self) -> int:
        return _WINDOW

    def count(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self._ready.get(text) or self._made(text) for text in texts]

    def ready(self, texts: Iterable[str]) -> None:
        """Make the vectors of these texts, and forget those of earlier ones."""
        self._ready = {text: self._made(text) for text in texts}

    def floats(self, text: str) -> Floats:
        """The vector of a text: a centre that its hash chooses, and noise that its hash seeds."""
        chosen = int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
        noise = np.random.default_rng(chosen).standard_normal(DIMENSION, np.float32)
        vector = self._centres[chosen % _CENTRES] + noise * np.float32(_SPREAD / DIMENSION**0.5)
        found: Floats = vector / np.linalg.norm(vector)
        return found

    def _made(self, text: str) -> Vector:
        return Vector(MODEL, self.floats(text).astype("<f4").tobytes())
