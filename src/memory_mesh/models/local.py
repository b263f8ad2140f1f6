"""Embedders that run in this process.

`LocalEmbedder` runs all-MiniLM-L6-v2, with a learnt change, in ONNX Runtime. It needs no key, and
no network once the model is fetched. Each text runs alone and unpadded, so that its vector does not
depend on the other texts of the batch. Several texts run in parallel, one thread for each core.

`HashingEmbedder` needs no model: it hashes words and their letter groups into a vector of fixed
size. It does not know meanings: two texts are similar if they share words or parts of words. It is
for tests, and for computers that cannot have a model.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from math import sqrt
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar
from zlib import crc32

from memory_mesh.core.errors import EmbeddingError, SettingsError
from memory_mesh.core.model import KEPT_TOKEN, Vector
from memory_mesh.core.model.background import cancel_check
from memory_mesh.core.search import tokens
from memory_mesh.core.text import estimate
from memory_mesh.models.model_files import (
    MODEL,
    PUBLISHED_MODEL,
    ModelPaths,
    find_model,
    show_download,
)
from memory_mesh.system import fork_safe

WINDOW = 256
CLS, SEP = 101, 102  # the tokens before and after every text
# Of a token: the number that stands for 1, and the one that stands for a weight of 1.
_ONE, _WEIGHT_OF_ONE, _MAX_WEIGHT = 127, 16, KEPT_TOKEN - 1
_GROUP = 3  # letters
_GROUP_WEIGHT = 0.3  # a word counts more than one of its letter groups
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class LocalEmbedder:
    """The default embedder. The first `embed` or `count` loads the model, and fetches it if it
    is not on this computer."""

    window = WINDOW

    def __init__(
        self, paths: ModelPaths, *, fetch: bool = True, workers: int | None = None
    ) -> None:
        self._paths, self._fetch, self._workers = paths, fetch, workers or count_cores()
        self.model = paths.model
        self._engine: Engine | None = None
        self._lock = fork_safe(Lock())

    def of_model(self, model: str) -> "LocalEmbedder | None":
        """Return the embedder of another local model, whose vectors a store has; None for a
        model that cannot run here."""
        return (
            LocalEmbedder(replace(self._paths, model=model), workers=self._workers)
            if model in (MODEL, PUBLISHED_MODEL)
            else None
        )

    def count(self, text: str) -> int:
        return len(self._load().tokens(text))

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of texts."""
        if not texts:
            return []
        engine = self._load()

        def one(text: str) -> Vector:
            return Vector(self.model, *engine.run(engine.tokens(text)[:WINDOW]))

        return in_parallel(one, texts, workers=self._workers)

    def words(self, text: str) -> list[str]:
        """Return for each token of a text's vector the word that it is a part of."""
        return self._load().words(text)[:WINDOW]

    def _load(self) -> "Engine":
        if self._engine is None:
            with self._lock:
                if self._engine is None:
                    # This embedder fetches at most once, or every write would wait for it. It still
                    # looks in the other places.
                    fetch, self._fetch = self._fetch, False
                    model = find_model(self._paths, fetch=fetch, progress=show_download)
                    self._engine = Engine(model.graph, model.tokenizer)
        return self._engine


class Engine:
    """The tokenizer and the running model. Both may be used by many threads at once."""

    def __init__(self, graph: bytes, tokenizer: bytes) -> None:
        # ONNX Runtime sends usage data to Microsoft unless this is set before it is loaded.
        # Memories are private.
        os.putenv("ORT_DISABLE_TELEMETRY", "1")
        try:
            import onnxruntime
            from onnxruntime.capi.onnxruntime_pybind11_state import (
                Fail,
                InvalidGraph,
                InvalidProtobuf,
                RuntimeException,
            )
            from tokenizers import Tokenizer
        except ImportError as error:
            raise EmbeddingError(
                f"the model cannot be run: {error}", remedy="install onnxruntime and tokenizers"
            ) from error
        # If another part of the program has loaded it before.
        onnxruntime.disable_telemetry_events()
        self._failures = (Fail, InvalidGraph, InvalidProtobuf, RuntimeException, ValueError)
        self._tokenizer = Tokenizer.from_buffer(tokenizer)
        self._kept_bits: dict[int, int] = {}  # by token
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        # A text that contains "[SEP]" does not end there.
        self._tokenizer.encode_special_tokens = True
        options = onnxruntime.SessionOptions()
        # Texts run in parallel instead.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # The graph is optimal as built.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3  # errors, which are raised as well
        try:
            self._session = onnxruntime.InferenceSession(
                graph, options, providers=["CPUExecutionProvider"]
            )
        except self._failures as error:
            raise EmbeddingError(
                f"the model cannot be loaded: {error}", remedy="upgrade onnxruntime"
            ) from error

    def tokens(self, text: str) -> list[int]:
        """Return all tokens of a text, without the two around it."""
        # The tokenizer refuses lone surrogates. Its batch form does not compute offsets, and takes
        # half the time.
        valid = text.encode(errors="replace").decode()
        ids: list[int] = self._tokenizer.encode_batch_fast([valid], add_special_tokens=False)[0].ids
        return ids

    def words(self, text: str) -> list[str]:
        """Return for each token of a text the word that it is a part of."""
        valid = text.encode(errors="replace").decode()
        encoded = self._tokenizer.encode(valid, add_special_tokens=False)
        spans = (encoded.word_to_chars(word or 0) or (0, 0) for word in encoded.word_ids)
        return [valid[start:end] for start, end in spans]

    def run(self, tokens: list[int]) -> tuple[bytes, bytes]:
        """Return the vector of the tokens as little-endian 32-bit floats, and those of the tokens
        as `Vector.tokens` has them, if the model gives some."""
        import numpy as np

        vectors, *of_tokens = self.call(ids=np.array([[CLS, *tokens, SEP]], np.int64))
        packed: bytes = np.asarray(vectors[0], "<f4").tobytes()
        if not of_tokens:
            return packed, b""
        numbers, weights = (each[0, 1:-1] for each in of_tokens)
        rows = np.empty((len(tokens), numbers.shape[1] + 1), np.uint8)
        rows[:, :-1] = np.rint(_ONE * numbers).astype(np.int8).view(np.uint8)
        rows[:, -1] = np.minimum(np.rint(_WEIGHT_OF_ONE * weights[:, 0]), _MAX_WEIGHT)
        rows[:, -1] |= np.array([self._kept(token) for token in tokens], np.uint8)
        return packed, rows.tobytes()

    def _kept(self, token: int) -> int:
        """Return the bit for a token that a memory keeps: function words and punctuation are in
        nearly every text."""
        if token not in self._kept_bits:
            word = self._tokenizer.id_to_token(token) or ""
            kept = any(map(str.isalnum, word)) and word not in function_words()
            self._kept_bits[token] = KEPT_TOKEN if kept else 0
        return self._kept_bits[token]

    def call(self, **inputs: Any) -> Any:
        """Run the graph on arrays."""
        try:
            return self._session.run(None, inputs)
        except self._failures as error:
            raise EmbeddingError(f"the model failed: {error}") from error


def in_parallel(
    function: Callable[[_Item], _Result], items: Sequence[_Item], *, workers: int
) -> list[_Result]:
    """Return the result for each item, in the order of the items. A cancelled call stops before
    the next item: a large batch takes minutes."""
    check = cancel_check()

    def one(item: _Item) -> _Result:
        check()
        return function(item)

    if min(workers, len(items)) < 2:
        return [one(item) for item in items]
    from concurrent.futures import ThreadPoolExecutor  # not needed for a single query

    # The threads live only for this call: none is left to be forked or joined later.
    with ThreadPoolExecutor(min(workers, len(items)), "memory-mesh-model") as pool:
        return list(pool.map(one, items))


@cache
def function_words() -> frozenset[str]:
    """Return the words whose tokens memories do not keep."""
    path = Path(__file__).parent / "data" / "function_words.txt"
    return frozenset(path.read_text(encoding="utf-8").split())


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))  # a container may use fewer cores than the computer has
    except AttributeError:  # not available on every system
        return os.cpu_count() or 1


class HashingEmbedder:
    """Computes the same vector for the same text in every process and on every platform."""

    window = 2**31 - 1  # no limit

    def __init__(self, dimension: int = 256) -> None:
        if dimension < 1:
            raise SettingsError(f"dimension is {dimension}", expected="a whole number from 1")
        self.model, self._dimension = f"hashing/{dimension}", dimension

    def count(self, text: str) -> int:
        return estimate(text)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [Vector.of(self.model, self._values(text)) for text in texts]

    def _values(self, text: str) -> list[float]:
        values = [0.0] * self._dimension
        for feature, weight in _features(text):
            hashed = crc32(feature.encode(errors="replace"))
            # The sign keeps features that share a place from always adding up.
            values[(hashed >> 1) % self._dimension] += weight if hashed & 1 else -weight
        length = sqrt(sum(value * value for value in values))
        return [value / length for value in values] if length else values


def _features(text: str) -> Iterator[tuple[str, float]]:
    for word in tokens(text):
        yield f"w:{word}", 1.0
        marked = f"^{word}$"
        for start in range(len(marked) - _GROUP + 1):
            yield f"p:{marked[start : start + _GROUP]}", _GROUP_WEIGHT
