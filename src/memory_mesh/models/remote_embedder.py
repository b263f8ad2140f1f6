"""Embedders behind a server with `/embeddings`. Every answer is checked before it is used.

On macOS an LM Studio that is not running is started, once in each process.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite, sqrt
from threading import Lock

from memory_mesh.core.errors import (
    AnswerUnreadable,
    BudgetSpent,
    CallError,
    CallRefused,
    EmbeddingError,
    Unreachable,
    is_number,
)
from memory_mesh.core.model import Json, Vector
from memory_mesh.core.model.background import check_cancelled, wait
from memory_mesh.core.ports import Embedder
from memory_mesh.models.model_files import run_program
from memory_mesh.models.providers import (
    BYTES_PER_TOKEN,
    JsonClient,
    overestimate_tokens,
    replace_surrogates,
)
from memory_mesh.models.wrappers import WrappedEmbedder
from memory_mesh.system import fork_safe

BATCH_SIZE = 64
_BATCH_BYTES = 256 * 1024
# Servers refuse a text that is too long with one of these, among much else.
_TOO_LONG = (400, 413, 422)
_MAX_CUTS = 3
_MAX = sys.float_info.max  # JSON can express larger integers
# Loading a model for the first time may take longer; the next call finds it.
START_TRIES, _START_SECONDS = 5, 2.0
_MAX_START_SECONDS = 30


class RemoteEmbedder:
    """Computes vectors of length 1 with a model of another process or computer.

    `model` is its name on the server, `name` the name in the vectors: `provider/model`. Without a
    `dimension` the first answer sets it, and all others must have the same. Its tokenizer is not
    known.
    """

    counts_too_many = True

    def __init__(
        self,
        client: JsonClient,
        *,
        model: str,
        name: str,
        window: int,
        dimension: int | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> None:
        self.model, self.window = name, window
        self._client, self._model_name, self._dimension, self._batch_size = (
            client,
            model,
            dimension,
            batch_size,
        )
        self._lock = fork_safe(Lock())

    def count(self, text: str) -> int:
        return overestimate_tokens(text)  # so that a passage cut by this count fits in every script

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        try:
            return [
                vector
                for batch in self._batches(texts)
                for vector in self._embed_batch(batch, cuts=_MAX_CUTS)
            ]
        except (CallError, BudgetSpent, AnswerUnreadable) as error:
            raise EmbeddingError(
                f"{self.model} returned no vectors: {error.what}", remedy=error.remedy
            ) from error

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for text in texts:
            fitting = _cut(replace_surrogates(text), self.window * BYTES_PER_TOKEN)
            length = len(fitting.encode())
            if batch and (len(batch) == self._batch_size or size + length > _BATCH_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(fitting)
            size += length
        if batch:
            yield batch

    def _embed_batch(self, batch: list[str], *, cuts: int) -> list[Vector]:
        check_cancelled()
        texts: list[Json] = [text or " " for text in batch]  # some servers refuse an empty text
        body: dict[str, Json] = {
            "model": self._model_name,
            "input": texts,
            "encoding_format": "float",
        }
        try:
            answer = self._client.post("/embeddings", body)
        except CallRefused as error:
            if error.status not in _TOO_LONG:
                raise
            # Repeat with half of the batch, or half of a single text: one text that is refused must
            # not affect the others.
            if half := len(batch) // 2:
                return self._embed_batch(batch[:half], cuts=cuts) + self._embed_batch(
                    batch[half:], cuts=cuts
                )
            if not cuts or len(batch[0]) < 2:
                raise
            return self._embed_batch([batch[0][: len(batch[0]) // 2]], cuts=cuts - 1)
        return [self._to_vector(values) for values in self._in_order(answer, len(batch))]

    def _in_order(self, answer: Mapping[str, Json], expected: int) -> list[Json]:
        data = answer.get("data")
        items = [item for item in data if isinstance(item, dict)] if isinstance(data, list) else []
        found = {
            index: item.get("embedding")
            for n, item in enumerate(items)
            if type(index := item.get("index", n)) is int
        }
        if len(items) != expected or found.keys() != set(range(expected)):
            raise self._unusable(f"there are {len(found)} vectors for {expected} texts")
        return [found[index] for index in range(expected)]

    def _to_vector(self, values: Json) -> Vector:
        given = values if isinstance(values, list) else []
        numbers = [
            float(value)
            for value in given
            if isinstance(value, int | float) and is_number(value, min_=-_MAX, max_=_MAX)
        ]
        if not numbers or len(numbers) != len(given):
            raise self._unusable("a vector contains something other than numbers")
        with self._lock:
            self._dimension = self._dimension or len(numbers)
        if len(numbers) != self._dimension:
            raise self._unusable(
                f"a vector has {len(numbers)} dimensions", expected=f"{self._dimension}"
            )
        length = sqrt(sum(number * number for number in numbers))
        if not length or not isfinite(length):
            raise self._unusable("the length of a vector is zero or infinite")
        return Vector.of(self.model, [number / length for number in numbers])

    def _unusable(self, why: str, expected: str = "") -> EmbeddingError:
        remedy = (
            "check that the configured model is an embedding model, and that the server runs it"
        )
        return EmbeddingError(
            f"the answer of {self.model} cannot be used: {why}", expected=expected, remedy=remedy
        )


def _cut(text: str, max_bytes: int) -> str:
    """Return as much of a text as fits. Some servers refuse longer texts, and others read only
    their start."""
    return text if len(text) * 4 <= max_bytes else text.encode()[:max_bytes].decode(errors="ignore")


def start_lm_studio() -> bool:
    """Start LM Studio with its own command, or else open the application; return whether that
    seems to have worked."""
    from pathlib import Path
    from shutil import which

    command = which("lms")
    # A part of PATH that is empty means the working folder.
    if command is None or not Path(command).is_absolute():
        command = str(Path.home() / ".lmstudio" / "bin" / "lms")
    programs = ([command, "server", "start"], ["/usr/bin/open", "-g", "-a", "LM Studio"])
    return any(run_program(program, seconds=_MAX_START_SECONDS) == "" for program in programs)


# The first caller that acquires it may start LM Studio; it is never released.
_START_ONCE = Lock()


class LmStudioEmbedder(WrappedEmbedder):
    """An embedder of a local LM Studio, which is started if it does not run. On systems other
    than macOS it only delegates."""

    def __init__(
        self,
        inner: Embedder,
        *,
        platform: str = sys.platform,
        start: Callable[[], bool] = start_lm_studio,
        once: Lock = _START_ONCE,
        pause: Callable[[float], None] = wait,
    ) -> None:
        super().__init__(inner)
        self._platform, self._start, self._once, self._pause = platform, start, once, pause

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector for each text. When nothing listens at the address, start LM Studio
        and repeat the call a few times."""
        try:
            return Vector.made(self.model, self._inner.embed(texts))
        except EmbeddingError as error:
            failure = error
        may_start = (
            self._platform == "darwin"
            and _not_running(failure)
            and self._once.acquire(blocking=False)
        )
        tries = START_TRIES if may_start and self._start() else 0
        while tries and _not_running(failure):
            self._pause(_START_SECONDS)
            try:
                return Vector.made(self.model, self._inner.embed(texts))
            except EmbeddingError as error:
                failure, tries = error, tries - 1
        raise failure


def _not_running(error: EmbeddingError) -> bool:
    """Return whether nothing listens at the address. Any other error comes from a server that
    runs."""
    return isinstance(error.__cause__, Unreachable)
