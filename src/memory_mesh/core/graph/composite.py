"""The composite score of the graph: a weighted sum of relevance, confidence, recency and importance."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, isfinite

from memory_mesh.core.checks import is_number, suggestion
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model import DAY_MS
from memory_mesh.core.reprs import short_repr
from memory_mesh.core.safety.trust import Trust

WEIGHTS: Mapping[str, float] = {"relevance": 0.40, "confidence": 0.25, "recency": 0.20, "importance": 0.15}
_BY_RELEVANCE: Mapping[str, float] = {**dict.fromkeys(WEIGHTS, 0.0), "relevance": 1.0}
_FADING = 0.01  # of the recency in a day


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Composite:
    """The four numbers of a result, each from 0 to 1, and their weights."""

    __repr__ = short_repr

    relevance: float
    confidence: float  # the trust alone
    recency: float
    importance: float
    weights: Mapping[str, float]
    trust: Trust  # the parts of the confidence

    @property
    def parts(self) -> dict[str, float]:
        """What each number adds to the score."""
        return {name: weight * float(getattr(self, name)) for name, weight in self.weights.items()}

    @property
    def score(self) -> float:
        """The sum of the parts."""
        return sum(self.parts.values())


def recency(updated_ms: int, ms: int) -> float:
    """Return 1 for a memory that was just updated, and less with each day since."""
    return exp(-_FADING * max(0, ms - updated_ms) / DAY_MS)


def read_weights(rerank: object) -> Mapping[str, float]:
    """Return the weights of the option `rerank`, or raise `InvalidInput`.

    True gives the defaults, and False counts relevance alone. A mapping replaces the weights that it names.
    """
    if isinstance(rerank, bool):
        return WEIGHTS if rerank else _BY_RELEVANCE
    if not isinstance(rerank, Mapping):
        raise InvalidInput(f"rerank is {shown(rerank)}", expected="True, False, or weights such as {'relevance': 0.5}")
    for name, weight in rerank.items():
        if name not in WEIGHTS:
            what, remedy = f"rerank has the unknown weight {shown(name)}", suggestion(name, WEIGHTS)
            raise InvalidInput(what, expected=", ".join(WEIGHTS), remedy=remedy)
        if not (is_number(weight, min_=0) and isfinite(weight)):
            raise InvalidInput(f"the weight of {name} is {shown(weight)}", expected="a number from 0")
    return {**WEIGHTS, **{name: float(weight) for name, weight in rerank.items()}}
