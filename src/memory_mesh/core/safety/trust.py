"""How far a memory is trusted: its source sets the base; corroboration, feedback and age adjust it."""

from collections.abc import Mapping
from dataclasses import dataclass

from memory_mesh.core.model import DAY_MS, MemoryRecord, Value, millis
from memory_mesh.core.reprs import short_repr
from memory_mesh.core.safety import BASE_TRUST, Source

_DIGITS = 6  # of the part of the age: in five minutes it changes by one in the last place, so that two reads are equal


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Trust:
    """The trust of a memory in parts: their sum, from 0 to 1, is its trust, unless a source of it is trusted less."""

    __repr__ = short_repr

    base: float
    corroboration: float = 0.0
    feedback: float = 0.0
    age: float = 0.0  # never above 0
    least_source: float | None = None  # the trust of the least trusted memory that it was derived from

    @property
    def value(self) -> float:
        """The trust."""
        own = min(1.0, max(0.0, self.base + self.corroboration + self.feedback + self.age))
        return own if self.least_source is None else min(own, self.least_source)


def compute_trust(
    base: float, *, corroborations: int = 1, reinforcements: int = 0, disputes: int = 0, age_days: float = 0.0
) -> Trust:
    """Return the trust of a memory from its base trust, what was said of it since, and its age."""
    given = reinforcements + disputes
    return Trust(
        base=base,
        corroboration=min(0.2, 0.05 * max(0, corroborations - 1)),
        feedback=0.15 * (reinforcements - disputes) / given if given else 0.0,
        age=-round(min(0.1, 0.1 * max(0.0, age_days) / 365), _DIGITS),
    )


def trust_of(memory: MemoryRecord, ms: int) -> Trust:
    """Return the trust of a memory with its base trust at a time, without regard to the memories that it was derived from."""
    return compute_trust(
        BASE_TRUST[Source.INFERENCE] if memory.trust is None else memory.trust,
        corroborations=memory.corroborations,
        reinforcements=memory.reinforcements,
        disputes=memory.disputes,
        age_days=_days_since(memory.created_at, ms),
    )


def _days_since(created_at: str, ms: int) -> float:
    try:
        return (ms - millis(created_at)) / DAY_MS
    except (ValueError, TypeError):  # another program wrote something else than a time
        return 0.0


def base_trust(provenance: Mapping[str, Value] | None) -> float:
    """Return the base trust of a source; an unknown one counts as an inference."""
    source = (provenance or {}).get("source")
    return BASE_TRUST[Source(source) if source in list(Source) else Source.INFERENCE]
