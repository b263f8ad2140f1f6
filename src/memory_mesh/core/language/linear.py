"""Linear models over named features and the vector of a text.

The weights are packaged data, so every run gives the same result.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp

NONE = "none"
VECTOR_SCALE = 20**0.5  # makes the numbers of a vector as large as the other features

Vector = Callable[[str], Sequence[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weights of each feature and of each number of the vector, by class, and the lowest
    chance to keep a text."""

    features: Mapping[str, Sequence[float]]
    vector: Sequence[Sequence[float]] = ()
    limit: float

    def chances(
        self, classes: Sequence[str], values: Mapping[str, float], vector: Sequence[float] = ()
    ) -> dict[str, float]:
        """Return how likely each class is."""
        sums = [0.0] * len(classes)
        for name, value in values.items():
            for at, weight in enumerate(self.features.get(name, ())):
                sums[at] += value * weight
        for value, row in zip(vector, self.vector, strict=False):
            for at, weight in enumerate(row):
                sums[at] += VECTOR_SCALE * value * weight
        top = max(sums)
        powers = [exp(each - top) for each in sums]
        total = sum(powers)
        return dict(zip(classes, (each / total for each in powers), strict=True))


def read_weights(package: str) -> tuple[str, dict[str, Weights]]:
    """Return the model whose vectors the weights of a package are for, and its tables: with the
    vectors, and `plain`."""
    from importlib.resources import files  # it takes milliseconds to load

    data = json.loads((files(package) / "data" / "weights.json").read_text("utf-8"))
    return data["model"], {name: Weights(**data[name]) for name in ("vectors", "plain")}
