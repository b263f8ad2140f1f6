"""Vectors without a model: words and their letters, hashed into a fixed number of places.

It knows nothing of meaning: two texts are near where they share words or parts of words. For tests, and for machines that
cannot have a model and say so in their settings.
"""

from collections.abc import Iterator, Sequence
from math import sqrt
from zlib import crc32

from memory_mesh.core.errors import SettingsError
from memory_mesh.core.model.rows import Vector
from memory_mesh.core.search.lexical import tokens
from memory_mesh.core.text import estimate

_PART = 3
_PART_WEIGHT = 0.3  # a word counts more than one of its parts
_NO_END = 2**31 - 1


class HashingEmbedder:
    """The same vector for the same text, in every process and on every platform."""

    def __init__(self, dimension: int = 256) -> None:
        if dimension < 1:
            raise SettingsError(f"dimension is {dimension}", expected="a whole number from 1")
        self._dimension = dimension

    @property
    def model(self) -> str:
        return f"hashing/{self._dimension}"

    @property
    def window(self) -> int:
        return _NO_END  # all of a text reaches its vector

    def count(self, text: str) -> int:
        return estimate(text)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [Vector.of(self.model, self._values(text)) for text in texts]

    def _values(self, text: str) -> list[float]:
        values = [0.0] * self._dimension
        for feature, weight in _features(text):
            found = crc32(feature.encode(errors="replace"))
            # The sign keeps features that fall into one place from only ever adding up.
            values[(found >> 1) % self._dimension] += weight if found & 1 else -weight
        length = sqrt(sum(value * value for value in values))
        return [value / length for value in values] if length else values


def _features(text: str) -> Iterator[tuple[str, float]]:
    for word in tokens(text):
        yield f"w:{word}", 1.0
        framed = f"^{word}$"
        for at in range(len(framed) - _PART + 1):
            yield f"p:{framed[at : at + _PART]}", _PART_WEIGHT
