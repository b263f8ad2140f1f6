"""What the lane returns for a query."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from memory_mesh.core.lane.metadata import DEFAULT_COLLECTION, confidence_score, lane_metadata
from memory_mesh.core.lane.scoring import LaneScore
from memory_mesh.core.model import Memory, Value
from memory_mesh.core.reprs import short_repr


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LaneResult:
    """A memory that the lane found. `metadata` has the keys of Memory Lane, and `parts` the factors of the score."""

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
            id=memory.id, content=memory.content, score=parts.value, collection=memory.project or DEFAULT_COLLECTION,
            metadata=lane_metadata(memory), effective_confidence=round(confidence_score(memory) * parts.decay_factor),
            decay_factor=parts.decay_factor,
            status=memory.status, parts=parts,
        )  # fmt: skip


class LaneResults(list[LaneResult]):
    """The results of a query, highest score first. `entities` are those that the filter stands for."""

    def __init__(self, results: Iterable[LaneResult] = (), *, entities: Iterable[str] = ()) -> None:
        super().__init__(results)
        self.entities = list(entities)
