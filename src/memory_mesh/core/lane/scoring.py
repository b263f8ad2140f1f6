"""The score of the lane, and the results that it orders.

The score is similarity × weight of the type × decay × feedback × boost of the intent.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memory_mesh.core.intake import TAXONOMY
from memory_mesh.core.lane.metadata import DEFAULT_COLLECTION, confidence_score, lane_metadata
from memory_mesh.core.model import DAY_MS, Memory, Value, millis
from memory_mesh.core.search import tokens
from memory_mesh.core.text import short_repr

_HEAVY, _MEDIUM, _LIGHT = 1.0, 0.7, 0.4
WEIGHTS = dict(zip(TAXONOMY, (*[_HEAVY] * 3, *[_MEDIUM] * 3, *[_LIGHT] * 4), strict=True))
OTHER_WEIGHT = _MEDIUM  # of a category that is none of the ten types
BANDS = ((7, 1.0), (30, 0.8), (90, 0.6))  # (below so many days since the last access, factor)
OLDEST = 0.4  # the factor beyond the last band
BOOST = 1.15
FEEDBACK = {"helpful": 1.1, "harmful": 0.5}
MIN_FEEDBACK, MAX_FEEDBACK = 0.1, 3.0
MIN_SIMILARITY_OF_ENTITY = 0.15
# The types that a query with one of these words, in any form, asks for.
INTENTS: Mapping[str, Sequence[str]] = {
    "mistake mistaken wrong error": ("correction", "gap"),
    "decided chose chosen choose choice": ("decision",),
    "pattern usually habit": ("pattern_seed", "commitment"),
    "learned learnt realized realised": ("learning", "insight"),
}


def weight_of(category: str | None) -> float:
    """Return the weight of a category."""
    return WEIGHTS.get(category or "", OTHER_WEIGHT)


def decay_factor(ms: int, *, created_at: str, last_accessed: str | None) -> float:
    """Return the decay at a time: by the last access, or else by the creation."""
    days = (ms - millis(last_accessed or created_at)) / DAY_MS
    return next((factor for limit, factor in BANDS if days < limit), OLDEST)


def intended_types(query: str, intents: Mapping[str, Sequence[str]] = INTENTS) -> frozenset[str]:
    """Return the types that the words of a query ask for. `intents` has lists of types by words."""
    asked = set(tokens(query))
    return frozenset(
        type_
        for words, types in intents.items()
        if asked.intersection(tokens(words))
        for type_ in types
    )


def changed_feedback(score: float, signal: str) -> float:
    """Return the feedback score after a signal."""
    return round(min(MAX_FEEDBACK, max(MIN_FEEDBACK, score * FEEDBACK[signal])), 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneScore:
    """The factors of a score."""

    similarity: float
    weight: float
    decay_factor: float
    feedback_score: float
    intent_boost: float

    @property
    def value(self) -> float:
        """The score."""
        return (
            self.similarity
            * self.weight
            * self.decay_factor
            * self.feedback_score
            * self.intent_boost
        )


def score(
    similarity: float, *, category: str | None, intended: Collection[str], ms: int, created_at: str,
    last_accessed: str | None, feedback_score: float,
) -> LaneScore:  # fmt: skip
    """Return the score of a memory at a time."""
    return LaneScore(
        similarity=similarity, weight=weight_of(category), feedback_score=feedback_score,
        decay_factor=decay_factor(ms, created_at=created_at, last_accessed=last_accessed),
        intent_boost=BOOST if category in intended else 1.0,
    )  # fmt: skip


# --- results ---


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LaneResult:
    """A memory that the lane found. `metadata` has the keys of Memory Lane, and `parts` the
    factors of the score."""

    __repr__ = short_repr

    id: str
    content: str
    score: float
    collection: str
    metadata: dict[str, Value] = field(repr=False)
    effective_confidence: int  # from 0 to 100: the confidence × the decay
    decay_factor: float  # the one that was applied
    status: str
    parts: LaneScore = field(repr=False)

    @property
    def memory_type(self) -> str:
        """The type of the taxonomy, or the category that another face gave it."""
        return str(self.metadata["memory_type"])

    @classmethod
    def of(cls, memory: Memory, parts: LaneScore) -> "LaneResult":
        return cls(
            id=memory.id, content=memory.content, score=parts.value,
            collection=memory.project or DEFAULT_COLLECTION, metadata=lane_metadata(memory),
            effective_confidence=round(confidence_score(memory) * parts.decay_factor),
            decay_factor=parts.decay_factor,
            status=memory.status, parts=parts,
        )  # fmt: skip


class LaneResults(list[LaneResult]):
    """The results of a query, highest score first. `entities` are those that the filter stands
    for."""

    def __init__(self, results: Iterable[LaneResult] = (), *, entities: Iterable[str] = ()) -> None:
        super().__init__(results)
        self.entities = list(entities)
