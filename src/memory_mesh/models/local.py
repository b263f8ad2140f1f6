"""all-MiniLM-L6-v2 on this machine, by ONNX Runtime: no key, no network once it is here.

Each text is run alone and unpadded, so that its vector does not depend on what else is in the batch; several texts are run
side by side, a thread for each core.
"""

import os
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

from memory_mesh.core.errors import EmbeddingError
from memory_mesh.core.model.rows import Vector
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.models.find_model import supply
from memory_mesh.models.weights import MODEL, Places

if TYPE_CHECKING:
    from memory_mesh.models.engine import Engine

WINDOW = 256


class LocalEmbedder:
    """The default embedder. The first `embed` or `count` loads the model, and fetches it where it is nowhere on this machine."""

    def __init__(
        self, places: Places, *, fetch: bool = True, progress: Progress = no_progress, workers: int | None = None
    ) -> None:
        self._places, self._progress = places, progress
        self._fetch = fetch
        self._workers = workers or _cores()
        self._made: Engine | None = None
        self._lock = Lock()

    @property
    def model(self) -> str:
        return MODEL

    @property
    def window(self) -> int:
        return WINDOW

    def count(self, text: str) -> int:
        return len(self._engine().tokens(text))

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        if not texts:
            return []
        engine, workers = self._engine(), min(self._workers, len(texts))
        if workers == 1:
            return [self._vector(engine, text) for text in texts]
        from concurrent.futures import ThreadPoolExecutor  # a single query needs none

        # Threads of this call only: none is left behind to be forked or waited for.
        with ThreadPoolExecutor(workers, "memory-mesh-embed") as pool:
            return list(pool.map(lambda text: self._vector(engine, text), texts))

    def _vector(self, engine: "Engine", text: str) -> Vector:
        return Vector(MODEL, engine.run(engine.tokens(text)[:WINDOW]))

    def _engine(self) -> "Engine":
        if self._made is None:
            with self._lock:
                if self._made is None:
                    self._made = self._loaded()
        return self._made

    def _loaded(self) -> "Engine":
        # A fetch that failed is not tried again by this embedder: every write would wait for it. The other places are.
        fetch, self._fetch = self._fetch, False
        found = supply(self._places, fetch=fetch, progress=self._progress)
        try:
            from memory_mesh.models.engine import Engine
        except ImportError as error:
            raise EmbeddingError(f"the model cannot be run: {error}", remedy="install onnxruntime and tokenizers") from error
        return Engine(found.graph, found.tokenizer)


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))  # a container may have fewer than the machine
    except AttributeError:  # not every system tells
        return os.cpu_count() or 1
