"""Wrappers around embedders and language models: cache, fallback and metering."""

import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from memory_mesh.core.errors import (
    AnswerUnreadable,
    CallRefused,
    EmbeddingError,
    RateLimited,
    SettingsError,
    Unreachable,
    UnsafeAddress,
)
from memory_mesh.core.model import Json, Vector
from memory_mesh.core.ports import NO_TOKENS, ChatModel, Embedder, Meter, Prompt, Reply, Tokens
from memory_mesh.system import fork_safe

if TYPE_CHECKING:
    from memory_mesh.models.providers import JsonClient

CACHE_SIZE = 1000
EMBED = "embed"  # the operation under which embedding is counted
_log = logging.getLogger("memory_mesh")
_Answer = TypeVar("_Answer")


class WrappedEmbedder:
    """Takes the model, the window and the token count from another embedder."""

    def __init__(self, inner: Embedder) -> None:
        self._inner, self.model, self.window = inner, inner.model, inner.window
        self.counts_too_many = getattr(inner, "counts_too_many", False)

    def count(self, text: str) -> int:
        return self._inner.count(text)

    @property
    def words(self) -> Callable[[str], list[str]] | None:
        """What gives the word of each token of a text; None if the inner embedder has none."""
        return getattr(self._inner, "words", None)


class CachedEmbedder(WrappedEmbedder):
    """Keeps the vectors of the most recently used texts in memory. Only other texts reach the
    inner embedder, each once."""

    def __init__(self, inner: Embedder, size: int = CACHE_SIZE) -> None:
        super().__init__(inner)
        self._size = size
        self._cache: OrderedDict[str, Vector] = OrderedDict()
        self._others: dict[str, CachedEmbedder | None] = {}
        self._lock = fork_safe(Lock())

    def of_model(self, model: str) -> "CachedEmbedder | None":
        """Return the embedder of another model that the inner one can run too, with a cache of
        its own; None if it cannot."""
        with self._lock:
            if model not in self._others:
                other = getattr(self._inner, "of_model", lambda _: None)(model)
                self._others[model] = CachedEmbedder(other, self._size) if other else None
            return self._others[model]

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector for each text. Each of them is then among the most recently used."""
        with self._lock:
            vectors = {text: self._cache[text] for text in texts if text in self._cache}
        if missing := [text for text in dict.fromkeys(texts) if text not in vectors]:
            # Outside of the lock: calls for cached texts do not wait for the model.
            vectors.update(
                zip(missing, Vector.made(self.model, self._inner.embed(missing)), strict=True)
            )
        with self._lock:
            for text, vector in vectors.items():
                self._cache[text] = vector
                self._cache.move_to_end(text)
            while len(self._cache) > self._size:
                self._cache.popitem(last=False)
        return [vectors[text] for text in texts]


class SameModelEmbedder(WrappedEmbedder):
    """Runs the model of another embedder: its vectors have the name of that one, and can be
    compared with its vectors."""

    def __init__(self, inner: Embedder, name: str) -> None:
        super().__init__(inner)
        self.model, self.own_model = name, inner.model

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [
            replace(vector, model=self.model)
            for vector in Vector.made(self.model, self._inner.embed(texts))
        ]


class FallbackEmbedder(WrappedEmbedder):
    """Uses the first embedder that works. It has the name of the first one; each vector has the
    name of its own model."""

    def __init__(self, embedders: Sequence[Embedder]) -> None:
        if not embedders:
            raise SettingsError("the list of embedders is empty", expected="at least one")
        super().__init__(embedders[0])
        self.first, self._embedders = embedders[0], tuple(embedders)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of the first embedder that works; a warning names it, and why those
        before it failed."""
        failures: list[EmbeddingError] = []
        for embedder in self._embedders:
            try:
                vectors = Vector.made(embedder.model, embedder.embed(texts))
            except EmbeddingError as error:
                failures.append(error)
                continue
            if failures:
                name = getattr(embedder, "own_model", embedder.model)
                _log.warning("embedded by the fallback %s, because %s", name, _join(failures))
            return vectors
        raise EmbeddingError(
            f"every embedder failed: {_join(failures)}", remedy=failures[0].remedy
        ) from failures[0]


class MeteredChat:
    """A language model whose calls are counted, each under its operation."""

    def __init__(self, inner: ChatModel, meter: Meter) -> None:
        self._inner, self._meter, self.model = inner, meter, inner.model

    def reply(self, prompt: Prompt) -> Reply:
        from memory_mesh.models.providers import overestimate_tokens

        # The model reads the schema too.
        parts = (prompt.system, prompt.user, json.dumps(prompt.schema) if prompt.schema else "")
        limit = Tokens(sum(map(overestimate_tokens, parts)), prompt.max_tokens)
        ticket = self._meter.reserve(prompt.operation, self.model, limit)
        reply = _call(lambda: self._inner.reply(prompt), self._meter, ticket, limit)
        self._meter.commit(ticket, reply.tokens)
        return reply


class MeteredClient:
    """Counts the calls to `/embeddings`. It wraps the client because only there the server's own
    count is visible."""

    def __init__(self, client: "JsonClient", meter: Meter, model: str) -> None:
        self._client, self._meter, self._model = client, meter, model

    def post(self, path: str, body: Mapping[str, Json]) -> Mapping[str, Json]:
        from memory_mesh.models.providers import overestimate_tokens, reported_tokens

        texts = body.get("input")
        limit = Tokens(
            sum(overestimate_tokens(str(text)) for text in texts) if isinstance(texts, list) else 0
        )
        ticket = self._meter.reserve(EMBED, self._model, limit)
        answer = _call(lambda: self._client.post(path, body), self._meter, ticket, limit)
        sent = reported_tokens(answer.get("usage"), "prompt_tokens")
        self._meter.commit(ticket, limit if sent is None else Tokens(sent))
        return answer


def _call(call: Callable[[], _Answer], meter: Meter, ticket: str, limit: Tokens) -> _Answer:
    """Call a model, and commit what a failed call may cost; `limit` is the maximum."""
    try:
        return call()
    except BaseException as error:
        if isinstance(error, Unreachable | UnsafeAddress | CallRefused | RateLimited):
            cost = NO_TOKENS  # the model did not read the request
        elif isinstance(error, AnswerUnreadable):
            cost = limit  # it answered, at an unknown length
        else:
            # Timed out, broken off or cancelled: it read the request, and may have answered.
            cost = Tokens(limit.sent)
        meter.commit(ticket, cost, failed=True)
        raise


def _join(errors: Sequence[EmbeddingError]) -> str:
    return "; ".join(error.what for error in errors)
