"""Hostile callers and odd embedders: they do no lasting damage to writes and searches."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from memory_mesh.core.errors import EmbeddingError, ModelMismatch
from memory_mesh.core.model import Vector
from memory_mesh.models import HashingEmbedder

from .house import House

WORDS = "The red fox jumps over fences."


class Odd(HashingEmbedder):
    """An embedder made by the caller; `answer` gets the right vectors and returns something
    else."""

    def __init__(self, answer: Callable[[list[Vector]], object] = list) -> None:
        super().__init__(8)
        self.answer = answer

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return self.answer(super().embed(texts))  # type: ignore[return-value]


class Miscounting(HashingEmbedder):
    """An embedder whose tokenizer fails."""

    window = 4

    def count(self, text: str) -> int:
        raise KeyError(text)


def raising(error: Exception) -> Callable[[list[Vector]], object]:
    def answer(vectors: list[Vector]) -> object:
        raise error

    return answer


ODD_ANSWERS = {
    "too few": lambda vectors: vectors[:-1],
    "too many": lambda vectors: [*vectors, *vectors],
    "nothing": lambda vectors: None,
    "bare texts": lambda vectors: ["0.5" for _ in vectors],
    "not a number": lambda vectors: [
        Vector.of(vector.model, [float("nan")] * 8) for vector in vectors
    ],
    "no dimension": lambda vectors: [Vector.of(vector.model, []) for vector in vectors],
    "half a number": lambda vectors: [Vector(vector.model, b"abcdef") for vector in vectors],
    "half a token": lambda vectors: [replace(vector, tokens=bytes(48)) for vector in vectors],
    "a text as tokens": lambda vectors: [replace(vector, tokens="49") for vector in vectors],
    "a lost connection": raising(ConnectionError(f"POST {WORDS}")),
    "a bug": raising(RuntimeError(WORDS)),
    "an early end": raising(StopIteration(WORDS)),
}


@pytest.fixture(params=ODD_ANSWERS.values(), ids=list(ODD_ANSWERS))
def odd(request: pytest.FixtureRequest) -> Callable[[list[Vector]], object]:
    answer: Callable[[list[Vector]], object] = request.param
    return answer


@pytest.mark.req("MESH-016")
def test_a_memory_is_stored_whatever_its_embedder_returns(
    house: House, odd: Callable[[list[Vector]], object]
) -> None:
    mesh = house.mesh(embedder=Odd(odd))
    kept = mesh.add(WORDS)
    assert kept.pending
    assert [found.id for found in mesh.search("red fox")] == [kept.id]
    mended = house.mesh(embedder=Odd())
    mended.reembed()
    assert house.memory(kept.id).vector == Odd().embed([WORDS])[0]


@pytest.mark.req("MESH-115")
def test_a_search_falls_back_to_keywords_whatever_the_embedder_does(
    house: House, odd: Callable[[list[Vector]], object]
) -> None:
    embedder = Odd()
    mesh = house.mesh(embedder=embedder)
    kept = mesh.add(WORDS)
    assert mesh.search("red fox", use_cache=False)[0].similarity is not None
    embedder.answer = odd
    found = mesh.search("red fox", use_cache=False)
    assert [(each.id, each.similarity) for each in found] == [(kept.id, None)]


def test_reembed_reports_the_error_and_changes_nothing(
    house: House, odd: Callable[[list[Vector]], object]
) -> None:
    kept = house.mesh(embedder=None).add(WORDS)
    with pytest.raises(EmbeddingError):
        house.mesh(embedder=Odd(odd)).reembed()
    assert house.memory(kept.id).vector is None


def test_reembed_stops_if_another_run_has_switched_the_model(house: House) -> None:
    kept = house.mesh(embedder=HashingEmbedder(8)).add(WORDS)
    other = house.mesh(embedder=HashingEmbedder(32))
    overtaken: list[str] = []

    def step(name: str) -> None:
        if name == "reembed.switched":
            overtaken.append(other.reembed().model)

    with pytest.raises(ModelMismatch, match="hashing/32"):
        house.mesh(embedder=HashingEmbedder(16), step=step).reembed()
    assert overtaken == ["hashing/32"]
    assert house.memory(kept.id).vector == HashingEmbedder(32).embed([WORDS])[0]
    assert other.explain("red fox").answers[0].channels["vectors"].score > 0


def test_a_tokenizer_that_fails_loses_no_memory(house: House) -> None:
    mesh = house.mesh(embedder=Miscounting())
    kept = mesh.add(WORDS)
    assert kept.pending
    assert [found.id for found in mesh.search("fox")] == [kept.id]


def test_no_log_line_quotes_the_text_that_an_embedder_failed_on(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    error = ConnectionError(WORDS)
    with caplog.at_level(logging.DEBUG):
        house.mesh(embedder=Odd(raising(error))).add(WORDS)
    assert "ConnectionError" in caplog.text
    assert "fox" not in caplog.text


@pytest.mark.parametrize(
    "metadata", [{}, {"plan": {"steps": ["one"]}, "tags": ["first"]}], ids=["without", "with"]
)
def test_changing_a_result_does_not_affect_other_callers(
    house: House, metadata: dict[str, object]
) -> None:
    mesh = house.mesh()
    mesh.add(WORDS, metadata)
    for _ in range(2):  # from the store, then from the cache
        found = mesh.search("red fox")[0]
        assert found.metadata == metadata
        found.metadata["mine"] = True
        found.tags.append("mine")
        for plan in found.metadata.values():
            if isinstance(plan, dict):
                plan["steps"].append("two")
    assert mesh.get_cache_stats().hits == 1
    assert mesh.search("red fox")[0].metadata == metadata
    assert mesh.search("red fox")[0].tags == metadata.get("tags", [])
