"""Several embedders, tried in order."""

import logging
from collections.abc import Sequence

from memory_mesh.core.errors import EmbeddingError, SettingsError
from memory_mesh.core.model.rows import Vector
from memory_mesh.core.ports import Embedder

_log = logging.getLogger("memory_mesh")


class FallbackEmbedder:
    """The first embedder that answers. It speaks for the first of them, but a fallback's vectors carry their own model's name."""

    def __init__(self, embedders: Sequence[Embedder]) -> None:
        if not embedders:
            raise SettingsError("there is no embedder to try", expected="at least one")
        self._primary, *self._others = embedders

    @property
    def model(self) -> str:
        return self._primary.model

    @property
    def window(self) -> int:
        return self._primary.window

    def count(self, text: str) -> int:
        return self._primary.count(text)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        failed: list[EmbeddingError] = []
        for embedder in (self._primary, *self._others):
            try:
                vectors = embedder.embed(texts)
            except EmbeddingError as error:
                failed.append(error)
                continue
            if failed:
                _log.warning("embedded by the fallback %s, because %s", embedder.model, _told(failed))
            return vectors
        raise EmbeddingError(f"no embedder could make a vector: {_told(failed)}", remedy=failed[0].remedy) from failed[0]


def _told(failed: Sequence[EmbeddingError]) -> str:
    return "; ".join(error.what for error in failed)
