"""The cost of the local embedding model, and an embedder with prepared vectors that keeps this cost out of all other figures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from bench.speed.measuring import Timing, seconds, time_calls
from bench.speed.texts import Conversations
from memory_mesh.core.errors import EmbeddingError
from memory_mesh.core.model import Vector
from memory_mesh.models import MODEL, LocalEmbedder
from memory_mesh.settings import load
from memory_mesh.wiring.build import model_paths

DIMENSION = 384
_CENTRES = 2000
_WINDOW = 256
_SPREAD = 1.0  # two texts of one centre then have a cosine of about ½, like two real texts on one subject
_TEXTS, _SINGLES = 300, 100

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingCost:
    """The time to embed one text, and the rate in batches."""

    model: str
    single: Timing
    batch_per_s: float

    def remaining(self, ingest_per_s: float) -> float:
        """Return the fraction of the batch rate that is left if each text is also stored, one step after the other."""
        return ingest_per_s / (ingest_per_s + self.batch_per_s)


def measure_embedding() -> EmbeddingCost | str:
    """Return the cost, or why it cannot be measured: the model may be missing."""
    embedder = LocalEmbedder(model_paths(load({})))
    texts = [item.text for item in Conversations().items(_TEXTS)]
    try:
        embedder.embed(texts[:2])  # loads the model
    except EmbeddingError as error:
        return str(error)
    batch = min(seconds(lambda: embedder.embed(texts)) for _ in range(2))
    single = time_calls(lambda text: embedder.embed([text]), texts[:_SINGLES])
    return EmbeddingCost(model=embedder.model, single=single, batch_per_s=round(_TEXTS / batch, 1))


class PreparedEmbedder:
    """An embedder whose vectors are prepared before the clock starts; others are computed on demand.

    The vectors lie around centres, each at some distance, as real ones do. They carry the name of the local model, so that a
    `memory-mesh search` with that model, started from the shell, compares its query with them.
    """

    def __init__(self) -> None:
        drawn = np.random.default_rng(0).standard_normal((_CENTRES, DIMENSION)).astype(np.float32)
        self._centres = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        self._prepared: dict[str, Vector] = {}

    @property
    def model(self) -> str:
        return MODEL

    @property
    def window(self) -> int:
        return _WINDOW

    def count(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self._prepared.get(text) or self._vector(text) for text in texts]

    def prepare(self, texts: Iterable[str]) -> None:
        """Compute the vectors of these texts, and drop those of earlier ones."""
        self._prepared = {text: self._vector(text) for text in texts}

    def floats(self, text: str) -> Floats:
        """Return the vector of a text: a centre chosen by its hash, plus noise seeded by its hash."""
        return self.of_seed(seed_of(text))

    def of_seed(self, seed: int) -> Floats:
        """Return the vector of a text with this hash."""
        noise = np.random.default_rng(seed).standard_normal(DIMENSION, np.float32)
        vector = self._centres[seed % _CENTRES] + noise * np.float32(_SPREAD / DIMENSION**0.5)
        unit: Floats = vector / np.linalg.norm(vector)
        return unit

    def _vector(self, text: str) -> Vector:
        return Vector(MODEL, self.floats(text).astype("<f4").tobytes())


def seed_of(text: str) -> int:
    """Return the hash that the vector of a text is made from."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
