"""The deep ranker: a model that reads a query and a memory together.

It is all-MiniLM-L6-v2 with a small learnt change of its weights. The package contains only the
change (`data/reader.npz`, see docs/deep_ranker.md). The graph is built once from the published
weights of the model, as the embedder's is, and stored beside it. Change and graph are accepted only
with their known hashes. What fails is logged once, and the search keeps the order of the learnt
ranker.
"""

import logging
import time
from collections.abc import Sequence
from threading import Lock

from memory_mesh.core.errors import MemoryMeshError, ModelMissing
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.models.local import Engine, count_cores
from memory_mesh.models.model_files import (
    TOKENIZER,
    WEIGHTS,
    ModelPaths,
    find_package,
    read_file,
    store_graph,
)
from memory_mesh.models.onnx_graph import GRAPH, GRAPH_HASH, read_known
from memory_mesh.system import fork_safe

QUERY, MEMORY, PREVIOUS = 48, 128, 32  # tokens that are read
_CHARACTERS = 20  # of a token, at most: a longer text is cut before it is split into tokens
_CLS, _SEP = 101, 102
_log = logging.getLogger("memory_mesh")


class LocalDeepRanker:
    """Runs the graph in ONNX Runtime. Pairs run one by one and unpadded: in a batch, one would
    change the scale of another."""

    def __init__(self, paths: ModelPaths, *, workers: int | None = None) -> None:
        self._paths, self._workers = paths, workers or count_cores()
        self._engine: PairEngine | None = None
        self._failed = False
        self._lock = fork_safe(Lock())

    @property
    def is_loaded(self) -> bool:
        return self._engine is not None

    def load(self) -> None:
        """Load the model, if it is on this computer. A model that is missing is not logged: the
        caller did not ask for it."""
        try:
            self._load()
        except ModelMissing:
            pass  # it may be there at a later search
        except MemoryMeshError as error:
            self._fail(error)

    def read(self, query: str, pairs: Sequence[tuple[str, str]], *, seconds: float) -> list[float]:
        """Return the logits of the first pairs, as many as are read in so many seconds."""
        try:
            engine = self._load()
            if engine is None:
                return []
            return self._read(engine, engine.first(query, QUERY), pairs, time.monotonic() + seconds)
        except MemoryMeshError as error:
            self._fail(error)
            return []

    def _fail(self, error: MemoryMeshError) -> None:
        self._failed = True
        _log.warning("the deep ranker is not used: %s", error)

    def _read(
        self, engine: "PairEngine", query: list[int], pairs: Sequence[tuple[str, str]], until: float
    ) -> list[float]:
        from concurrent.futures import ThreadPoolExecutor

        def one(pair: tuple[str, str]) -> float | None:
            return engine.logit(query, *pair) if time.monotonic() < until else None

        if self._workers == 1 or len(pairs) < 2:
            found = list(map(one, pairs))
        else:
            with ThreadPoolExecutor(min(self._workers, len(pairs)), "memory-mesh-read") as pool:
                found = list(pool.map(one, pairs))
        end = found.index(None) if None in found else len(found)
        return [logit for logit in found[:end] if logit is not None]

    def _load(self) -> "PairEngine | None":
        if self._engine is None and not self._failed:
            with self._lock:
                if self._engine is None and not self._failed:
                    graph = find_graph(self._paths)
                    self._engine = PairEngine(graph, _tokenizer(self._paths))
        return self._engine


class PairEngine(Engine):
    """The tokenizer and the graph that reads pairs."""

    def first(self, text: str, count: int) -> list[int]:
        """Return the first tokens of a text."""
        return self.tokens(text[: count * _CHARACTERS])[:count]

    def last(self, text: str, count: int) -> list[int]:
        """Return the last tokens of a text: a question is often the end of a turn."""
        return self.tokens(text[-count * _CHARACTERS :])[-count:]

    def logit(self, query: list[int], memory: str, previous: str) -> float:
        """Return how well a memory answers the query, as log-odds."""
        import numpy as np

        text, before = self.first(memory, MEMORY), self.last(previous, PREVIOUS) if previous else []
        ids, segments = (
            [_CLS, *query, _SEP, *text, _SEP],
            [0] * (len(query) + 2) + [1] * (len(text) + 1),
        )
        if before:
            ids, segments = [*ids, *before, _SEP], segments + [0] * (len(before) + 1)
        (logits,) = self.call(
            ids=np.array([ids], np.int64), segments=np.array([segments], np.int64)
        )
        return float(logits[0, 0])


def find_graph(paths: ModelPaths, progress: Progress = no_progress) -> bytes:
    """Return the graph: the stored one, or one that is built from the published weights if they
    are on this computer."""
    if (graph := read_known(paths.built / GRAPH, GRAPH_HASH)) is not None:
        return graph
    if (folder := paths.model_path or find_package(paths.package)) is None:
        # Without the removal nothing would be fetched: the embedder's graph is there.
        remedy = f"remove {paths.built} and run `memory-mesh model fetch`"
        raise ModelMissing(
            "its graph is not built, and the weights are not on this computer", remedy=remedy
        )
    return store_graph(read_file(folder, WEIGHTS), paths, progress)


def _tokenizer(paths: ModelPaths) -> bytes:
    """Return the tokenizer of the model, from where the model is."""
    folders = (paths.built, paths.model_path, find_package(paths.package))
    folder = next((each for each in folders if each and (each / TOKENIZER).is_file()), paths.built)
    return read_file(folder, TOKENIZER)
