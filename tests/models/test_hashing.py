"""The hashing embedder: the same vectors everywhere, similar for texts that share words."""

import hashlib
import math
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import SettingsError
from memory_mesh.models import HashingEmbedder


def cosine(one: str, other: str) -> float:
    a, b = (array("f", vector.data) for vector in HashingEmbedder().embed([one, other]))
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_the_vector_of_a_text_is_the_same_in_every_run_and_on_every_platform() -> None:
    (vector,) = HashingEmbedder().embed(["The deploy key rotates on Mondays. 日本語"])
    assert (vector.model, vector.dimension) == ("hashing/256", 256)
    rounded = [round(value, 4) + 0.0 for value in array("f", vector.data)]
    assert hashlib.sha256(repr(rounded).encode()).hexdigest()[:16] == "15f49c75784202b6"


def test_texts_with_shared_words_or_parts_are_similar() -> None:
    same_words = cosine("the deploy key rotates", "rotate the deploy key on Monday")
    same_parts = cosine("configuration", "configurable")
    nothing = cosine("the deploy key rotates", "herons nest by water")
    assert same_words > 0.7
    assert same_parts > 0.2
    assert abs(nothing) < 0.2


@given(st.text())
def test_any_text_has_a_vector_of_length_one_or_of_zeros(text: str) -> None:
    (vector,) = HashingEmbedder(64).embed([text])
    length = math.sqrt(sum(value * value for value in array("f", vector.data)))
    assert length == pytest.approx(1, abs=1e-5) or length == 0
    assert HashingEmbedder(64).embed([text, text]) == [vector, vector]


def test_a_text_without_words_has_no_direction() -> None:
    assert HashingEmbedder().embed(["", "!?"])[0].data == bytes(1024)


def test_another_dimension_is_another_model() -> None:
    assert HashingEmbedder(32).model == "hashing/32"
    assert HashingEmbedder(32).embed(["tea"])[0].dimension == 32
    with pytest.raises(SettingsError, match="dimension"):
        HashingEmbedder(0)


@pytest.mark.deep
def test_all_of_a_long_text_reaches_its_vector() -> None:
    long = "tea " * 50_000
    assert (
        HashingEmbedder().embed([long])[0] != HashingEmbedder().embed([long + "heron " * 9_000])[0]
    )
    assert HashingEmbedder().count("hello world") == 3
    assert HashingEmbedder().count(long) < HashingEmbedder().window
