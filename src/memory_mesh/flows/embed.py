"""Layer 1: vectors for what is stored and what is asked.

A memory never waits for an embedder that is down: it is stored, marked as pending, and found by its words. A store has one
model, the one of its first vector; vectors of two models are never mixed and never compared.
"""

import logging
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite

from memory_mesh.core.errors import EmbeddingError, MemoryMeshError, ModelMismatch
from memory_mesh.core.model import Kind, Memory, Meta, Row, Vector, checked, iso
from memory_mesh.core.ports import Embedder
from memory_mesh.flows.context import Context

_META = "embedding"
_log = logging.getLogger("memory_mesh")


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of one text: its own, and those of the passages behind its first one."""

    own: Vector | None = None
    passages: tuple[Vector, ...] = ()
    pending: bool = False

    @property
    def all(self) -> tuple[Vector, ...]:
        return (self.own, *self.passages) if self.own else ()


NO_VECTOR = Embedded()
WAITING = Embedded(pending=True)


class Vectors(dict[str, Embedded]):
    """What was embedded for a write, by text: a decision that is made again embeds nothing twice."""

    def __init__(self) -> None:
        self._held: str | None = None

    def add(self, context: Context, texts: Sequence[str]) -> None:
        """Embed what is new. Each decision asks anew which model the store has: it may have changed since the last."""
        self._held = _fitting(context) if texts or self else None
        new = list(dict.fromkeys(text for text in texts if text not in self))
        self.update(zip(new, _embedded(context, new), strict=True))

    def claim(self, context: Context) -> list[Row]:
        """The row that makes a model the store's own, to be written with its first vector."""
        first = next((found.own for found in self.values() if found.own), None)
        return [model_row(context, first.model)] if first and self._held is None else []


def _embedded(context: Context, texts: Sequence[str]) -> list[Embedded]:
    """Vectors for texts that are to be stored, in one batch. Without an embedder there are none, and nothing waits."""
    if context.embedder is None or not texts:
        return [NO_VECTOR] * len(texts)
    try:
        pieces = [passages(context, text) for text in texts]
        vectors = iter(embedded(context.embedder, [piece for parts in pieces for piece in parts]))
    except EmbeddingError as error:
        _log.warning("stored without vectors, found by keywords until `memory-mesh reembed`: %s", error)
        return [WAITING] * len(texts)
    return [_of_one(context.embedder.model, [next(vectors) for _ in parts]) for parts in pieces]


def asked(context: Context, query: str) -> Vector | None:
    """The vector of a query; None where the answer must come from keywords alone."""
    held = store_model(context)
    if context.embedder is None or held != context.embedder.model:
        if context.embedder and held:
            mention(context, f"the store holds vectors of {held}, not of {context.embedder.model}: searched by keywords alone")
        return None
    try:
        vector = embedded(context.embedder, [query])[0]
    except EmbeddingError as error:
        _log.warning("searched by keywords alone: %s", error)
        return None
    return vector if vector.model == context.embedder.model else None


def embedded(embedder: Embedder, texts: Sequence[str]) -> list[Vector]:
    """A vector for each text that can be kept and compared, or `EmbeddingError`, whatever the embedder does."""
    with _outages(embedder):
        vectors = list(embedder.embed(texts))
        sound = sum(_is_sound(vector) for vector in vectors)
    if not len(texts) == len(vectors) == sound:
        what = f"{embedder.model} gave {len(vectors):,} vectors for {len(texts):,} texts, {len(vectors) - sound:,} of no use"
        raise EmbeddingError(what, expected="a Vector of finite numbers for each", remedy="see to the embedder")
    return vectors


def mention(context: Context, what: str) -> None:
    """One line, once, where memories cannot be compared and `reembed` would mend it."""
    if not context.state.warned.is_set():
        context.state.warned.set()
        _log.warning("%s; memory-mesh reembed mends it", what)


def passages(context: Context, text: str) -> list[str]:
    """The text in pieces that fit the embedder's window; nearly always itself."""
    assert context.embedder is not None  # noqa: S101  (callers looked)
    with _outages(context.embedder):
        window = context.embedder.window
        # A token is at least a byte; two more frame the text. So most texts need no counting.
        if len(text.encode()) <= window - 2 or context.embedder.count(text) <= window:
            return [text]
        from memory_mesh.core.scrubbing.chunks import chunks  # few texts are that long

        rules = context.layer0.scrub.chunking
        most = min(rules.max_tokens, window)
        fitting = replace(rules, min_tokens=1, max_tokens=most, hard_max_tokens=most)
        return [chunk.text for chunk in chunks(text, fitting, context.embedder.count)] or [text]


def store_model(context: Context) -> str | None:
    """The model whose vectors the store holds; None before the first vector."""
    model = Meta.read(context.store, _META).detail.get("model")
    return str(model) if model else None


def model_row(context: Context, model: str) -> Row:
    """The store's model, as a row that replaces what it was."""
    return Meta.read(context.store, _META).row({"model": model}, at=iso(context.clock()))


def passage_rows(memory: Memory, made: Embedded) -> list[Row]:
    """The further vectors of a long memory, seen by whoever sees the memory."""
    return [passage_row(memory, f"{memory.id}.{n}", vector) for n, vector in enumerate(made.passages, start=1)]


def passage_row(memory: Memory, id_: str, vector: Vector) -> Row:
    return checked(
        Row(
            kind=Kind.PASSAGE, id=id_, partition=memory.partition, created_at=memory.updated_at, vector=vector,
            fields={"ref": memory.id, **memory.scope},
        )
    )  # fmt: skip


def over(row: Row, held: Row | None) -> Row:
    """A row that takes the place of another, where there is one."""
    return replace(row, revision=held.revision + 1, replaces=held.revision) if held else row


def _fitting(context: Context) -> str | None:
    """The store's model, if it has one: it must be the embedder's, for vectors of another would mix."""
    held = store_model(context) if context.embedder else None
    if context.embedder and held not in (None, context.embedder.model):
        raise ModelMismatch(
            f"the store holds vectors of {held}, and the embedder makes those of {context.embedder.model}",
            remedy="choose the store's model, or run `memory-mesh reembed` to change the store to the new one",
        )
    return held


def _of_one(model: str, vectors: Sequence[Vector]) -> Embedded:
    # A fallback's vectors carry its own name; where that is another model, the memory waits for the right one.
    return Embedded(vectors[0], tuple(vectors[1:])) if all(vector.model == model for vector in vectors) else WAITING


@contextmanager
def _outages(embedder: Embedder) -> Iterator[None]:
    """Whatever goes wrong within an embedder is an outage of it: no memory is lost by that."""
    try:
        yield
    except MemoryMeshError:
        raise
    except Exception as error:
        # By its type alone: what it says may quote the text, and this is logged.
        raise EmbeddingError(f"{embedder.model} failed: {type(error).__name__}", remedy="see to the embedder") from error


def _is_sound(vector: object) -> bool:
    if not isinstance(vector, Vector) or not vector.dimension or len(vector.data) % 4:
        return False
    return isfinite(sum(array("f", vector.data)))
