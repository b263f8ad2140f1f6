"""The real embedder with a file cache: the same texts are embedded for every measurement."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memory_mesh.api.build import model_paths
from memory_mesh.api.settings import load
from memory_mesh.core.model import Vector, batches
from memory_mesh.core.ports import Embedder
from memory_mesh.flows.write.embed import embed_texts
from memory_mesh.models import LocalEmbedder

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
_BATCH = 2000


class KeptEmbedder:
    """An embedder that caches every vector; `save` writes the cache to a file, which serves one
    model. Texts are stored as digests."""

    def __init__(self, inner: Embedder, path: Path | None = None) -> None:
        self._inner, self._path = inner, path
        self._kept: dict[bytes, Vector] = {}
        if path and path.exists():
            with np.load(path) as saved:
                if "model" in saved and str(saved["model"]) == self.model:
                    self._read(*(saved[name] for name in ("keys", "vectors", "tokens", "ends")))

    def _read(self, keys: Bytes, vectors: Floats, tokens: Bytes, ends: Ints) -> None:
        packed, starts = tokens.tobytes(), [0, *ends.tolist()]
        for key, row, start, end in zip(keys, vectors, starts, starts[1:], strict=False):
            self._kept[key.tobytes()] = Vector(self.model, row.tobytes(), packed[start:end])

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def window(self) -> int:
        return self._inner.window

    def count(self, text: str) -> int:
        return self._inner.count(text)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        keys = [sha256(text.encode()).digest() for text in texts]
        missing = (
            list(dict(zip(keys, texts, strict=True)).items())
            if not all(key in self._kept for key in keys)
            else []
        )
        missing = [(key, text) for key, text in missing if key not in self._kept]
        for batch in batches(missing, _BATCH):
            made = embed_texts(self._inner, [text for _, text in batch])
            self._kept |= {key: vector for (key, _), vector in zip(batch, made, strict=True)}
            if len(missing) > _BATCH:
                self.save()
        return [self._kept[key] for key in keys]

    def save(self) -> None:
        if self._path and self._kept:
            keys = np.frombuffer(b"".join(self._kept), np.uint8).reshape(len(self._kept), -1)
            data = [vector.data for vector in self._kept.values()]
            tokens = [vector.tokens for vector in self._kept.values()]
            with self._path.open("wb") as file:
                np.savez(
                    file, model=self.model, keys=keys,
                    vectors=np.frombuffer(b"".join(data), np.float32).reshape(len(data), -1),
                    tokens=np.frombuffer(b"".join(tokens), np.uint8),
                    ends=np.cumsum([len(each) for each in tokens]),
                )  # fmt: skip


def local(path: Path | None = None) -> KeptEmbedder:
    """Return the default model."""
    return KeptEmbedder(LocalEmbedder(model_paths(load({}))), path)


def matrix(embedder: Embedder, texts: Sequence[str]) -> Floats:
    """Return a row for each text."""
    return np.stack(
        [np.frombuffer(vector.data, np.float32) for vector in embed_texts(embedder, texts)]
    )
