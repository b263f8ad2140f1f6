"""An embedder of one's own that gives token vectors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.model import KEPT_TOKEN, TOKEN_BYTES, Vector
from memory_mesh.models import CachedEmbedder, FallbackEmbedder

FACTS = ["Ana keeps bees", "the boiler hums", "Bo sails on Sundays"]


@dataclass
class ByWords:
    """Each word is a token, and the same word the same one."""

    tokens: Callable[[bytes], Any] = field(default=lambda given: given)
    model: str = "words"
    window: int = 256

    def count(self, text: str) -> int:
        return len(text.split())

    def words(self, text: str) -> list[str]:
        return text.split()

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [
            replace(
                Vector.of(self.model, [1.0, float(len(text))]),
                tokens=self.tokens(b"".join(map(_token, text.split()))),
            )
            for text in texts
        ]


def _token(word: str) -> bytes:
    rng = np.random.default_rng(crc32(word.lower().encode()))
    numbers = rng.normal(size=TOKEN_BYTES - 1)
    packed = np.rint(127 * numbers / np.linalg.norm(numbers)).astype(np.int8).tobytes()
    return packed + bytes([16 | (KEPT_TOKEN if word != "the" else 0)])


def tokens_of(mesh: MemoryMesh, query: str) -> dict[str, float]:
    """Return the signal `tokens` of each memory."""
    answers = mesh.explain(query, min_score=0).answers
    return {hit.result.content: hit.features["tokens"] for hit in answers}


def test_the_words_that_are_nearest_are_compared_and_named(tmp_path: Path) -> None:
    with MemoryMesh(tmp_path / "m.db", embedder=ByWords()) as mesh:
        mesh.add_many(FACTS)
        found = tokens_of(mesh, "who keeps bees")
        assert max(found, key=found.__getitem__) == FACTS[0]
        assert found[FACTS[0]] > 0.6
        pairs = mesh.explain("who keeps bees", min_score=0).answers[0].word_pairs
        assert {(pair.question, pair.memory) for pair in pairs[:2]} == {
            ("keeps", "keeps"),
            ("bees", "bees"),
        }


@pytest.mark.parametrize(
    "tokens",
    [lambda given: given[1:], lambda given: np.frombuffer(given, np.int8), lambda _: "text",
     lambda _: None],
    ids=["cut", "array", "text", "none"],
)  # fmt: skip
def test_tokens_of_another_form_are_an_error_of_the_embedder_and_lose_no_memory(
    tokens: Callable[[bytes], Any], caplog: pytest.LogCaptureFixture
) -> None:
    with MemoryMesh("memory://", embedder=ByWords(tokens)) as mesh:
        mesh.add(FACTS[0])
        assert [hit.content for hit in mesh.search("bees")] == [FACTS[0]]
    assert "49 for each" in caplog.text


def _fail(_: str) -> list[str]:
    raise RuntimeError("no words")


@pytest.mark.parametrize(
    "words", [_fail, lambda _: None, lambda _: [1, 2, 3], lambda _: [], 7, lambda _: ["one"]],
    ids=["fails", "none", "numbers", "empty", "not callable", "too few"],
)  # fmt: skip
def test_words_that_are_wrong_cost_an_explanation_its_pairs_only(words: Any) -> None:
    embedder = ByWords()
    embedder.words = words
    with MemoryMesh("memory://", embedder=embedder) as mesh:
        mesh.add_many(FACTS)
        assert len(mesh.explain("bees", min_score=0).answers) == len(FACTS)


def test_an_embedder_behind_others_names_its_words() -> None:
    for embedder in (CachedEmbedder(ByWords()), FallbackEmbedder([ByWords()])):
        assert embedder.words("Ana keeps") == ["Ana", "keeps"]
        assert embedder.embed(["Ana"])[0].tokens


def test_reembed_adds_tokens_that_are_missing(tmp_path: Path) -> None:
    with MemoryMesh(tmp_path / "m.db", embedder=ByWords(lambda _: b"")) as mesh:
        mesh.add_many([*FACTS, "the the"])
        assert set(tokens_of(mesh, "bees").values()) == {0.0}
    with MemoryMesh(tmp_path / "m.db", embedder=ByWords()) as mesh:
        assert mesh.reembed().embedded == len(FACTS) + 1
        assert tokens_of(mesh, "bees")[FACTS[0]] > 0.9


def test_a_long_question_over_long_memories_is_compared_in_parts() -> None:
    text = " ".join(f"word{number}" for number in range(200))
    with MemoryMesh("memory://", embedder=ByWords()) as mesh:
        mesh.add_many([f"{text} {number}" for number in range(120)])
        assert min(tokens_of(mesh, text).values()) > 0.98
