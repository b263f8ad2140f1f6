"""The cost of the local embedding model, alone and with storing, and an embedder with prepared
vectors for all other figures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from bench.speed.measuring import Timing, seconds, time_calls
from bench.speed.texts import Conversations, Item
from memory_mesh import MemoryMesh
from memory_mesh.api.build import model_paths
from memory_mesh.api.settings import load
from memory_mesh.core.errors import EmbeddingError
from memory_mesh.core.model import Vector
from memory_mesh.models import MODEL, LocalEmbedder

DIMENSION = 384
_CENTRES = 2000
_WINDOW = 256
# Two texts of one centre then have a cosine of about ½, like two real texts on one subject.
_SPREAD = 1.0
_TEXTS, _SINGLES = 300, 100

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingCost:
    """The time to embed one text, the rate in batches, and the rate of `add_many`, which embeds
    and stores the same texts."""

    model: str
    single: Timing
    batch_per_s: float
    stored_per_s: float

    @property
    def fraction(self) -> float:
        """The rate of `add_many` as a fraction of the rate of the embedder alone."""
        return self.stored_per_s / self.batch_per_s


def measure_embedding() -> EmbeddingCost | str:
    """Return the cost, or why it cannot be measured: the model may be missing."""
    embedder = LocalEmbedder(model_paths(load({})))
    items = Conversations().items(_TEXTS)
    texts = [item.text for item in items]
    try:
        embedder.embed(texts[:2])  # loads the model
    except EmbeddingError as error:
        return str(error)
    # In turns, so that a slow moment of the machine affects both.
    turns = [(seconds(lambda: embedder.embed(texts)), _storing(embedder, items)) for _ in range(3)]
    batch, stored = map(min, zip(*turns, strict=True))
    single = time_calls(lambda text: embedder.embed([text]), texts[:_SINGLES])
    rates = {"batch_per_s": round(_TEXTS / batch, 1), "stored_per_s": round(_TEXTS / stored, 1)}
    return EmbeddingCost(model=embedder.model, single=single, **rates)


def _storing(embedder: LocalEmbedder, items: Sequence[Item]) -> float:
    """Return the seconds in which `add_many` embeds and stores texts in a new file."""
    with (
        TemporaryDirectory() as folder,
        MemoryMesh(Path(folder) / "memory.db", embedder=embedder) as mesh,
    ):
        mesh.add("Loads the code and creates the file.")
        return seconds(lambda: mesh.add_many([(item.text, dict(item.metadata)) for item in items]))


class PreparedEmbedder:
    """An embedder whose vectors are prepared before the clock starts; others are computed on
    demand.

    The vectors lie around centres, each at some distance, as real ones do. They carry the name of
    the local model, so that a `memory-mesh search` with that model, started from the shell,
    compares its query with them.
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
        """Return the vector of a text: a centre chosen by its hash, plus noise seeded by its
        hash."""
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
