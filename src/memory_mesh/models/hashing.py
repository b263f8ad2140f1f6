"""An embedder without a model: words and their letter groups, hashed into a vector of fixed size.

It does not know meanings: two texts are similar if they share words or parts of words. It is for tests, and for computers that
cannot have a model.
"""

from collections.abc import Iterator, Sequence
from math import sqrt
from zlib import crc32

from memory_mesh.core.errors import SettingsError
from memory_mesh.core.model import Vector
from memory_mesh.core.search import tokens
from memory_mesh.core.text import estimate

_GROUP = 3  # letters
_GROUP_WEIGHT = 0.3  # a word counts more than one of its letter groups
_UNLIMITED = 2**31 - 1


class HashingEmbedder:
    """Makes the same vector for the same text in every process and on every platform."""

    def __init__(self, dimension: int = 256) -> None:
        if dimension < 1:
            raise SettingsError(f"dimension is {dimension}", expected="a whole number from 1")
        self._dimension = dimension

    @property
    def model(self) -> str:
        return f"hashing/{self._dimension}"

    @property
    def window(self) -> int:
        return _UNLIMITED

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
