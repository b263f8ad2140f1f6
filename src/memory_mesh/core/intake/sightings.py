"""Who stored the text of a memory. Agents and sessions that store the same text share one memory, which keeps a sighting of each.

The owner of a memory is the agent and session in its columns. A memory that only its owner stored has no rows of sightings.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from memory_mesh.core.intake.drafts import columns_of
from memory_mesh.core.model import Memory, Reader, Sighting

# What the metadata of a sighting fills when a memory passes to it. The other columns are equal in all sightings of a text.
_FROM_METADATA = ("category", "tags", "importance", "confidence", "valid_from", "valid_until")


@dataclass(frozen=True, slots=True)
class Author:
    """The agent and session that store a text."""

    agent_id: str | None
    session_id: str | None

    @classmethod
    def of(cls, record: Memory | Sighting) -> "Author":
        """Return the owner of a memory, or the author of a sighting."""
        return cls(record.agent_id, record.session_id)

    def sighting_id(self, memory_id: str) -> str:
        """Return the id of the sighting of a memory by this author."""
        return f"{memory_id}@{sha256(repr((self.agent_id, self.session_id)).encode()).hexdigest()[:32]}"

    def within(self, scope: Mapping[str, str]) -> bool:
        """Return whether it has the agent and the session that a scope names."""
        return all(getattr(self, name) == value for name, value in scope.items())


def own_sighting(memory: Memory) -> Sighting:
    """Return the sighting of the owner, as the columns of the memory have it."""
    return Sighting(
        id=Author.of(memory).sighting_id(memory.id), ref=memory.id, user_id=memory.user_id, agent_id=memory.agent_id,
        session_id=memory.session_id, created_at=memory.created_at, times_observed=memory.times_observed,
        last_observed=memory.last_observed, trust=memory.trust,
    )  # fmt: skip


def every_sighting(memory: Memory, rows: Iterable[Sighting]) -> list[Sighting]:
    """Return the sightings of the present text, the owner's own among them, oldest first."""
    own = own_sighting(memory)
    current = {own.id: own, **{row.id: row for row in rows if row.times_observed}}
    current[own.id] = replace(current[own.id], metadata=memory.metadata)
    return sorted(current.values(), key=lambda row: (row.created_at, row.id))


def retired(row: Sighting) -> Sighting:
    """Return a sighting whose text was replaced."""
    return replace(row, times_observed=0, metadata={}, trust=None)


def best_trust(first: float | None, *later: float | None) -> float | None:
    """Return the trust of the best author. A memory that was stored without a trust keeps none."""
    return None if first is None else max([first, *(trust or 0.0 for trust in later)])


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory that stays when the sightings of a scope are removed."""

    memory: Memory
    updates: dict[str, Any]  # the columns that change
    removed: Sequence[Sighting]
    purged: bool  # the past of the memory came from the removed sightings too, and is erased


def keep_without(memory: Memory, rows: Sequence[Sighting], scope: Mapping[str, str]) -> Kept | None:
    """Decide what remains of a memory without the sightings of a scope: None if no other sighting has its text."""
    left = [row for row in every_sighting(memory, rows) if not Author.of(row).within(scope)]
    if not left:
        return None
    columns = [columns_of(row.metadata, Reader(row.user_id, row.agent_id, row.session_id)) for row in left]
    expiries = [each["expires_at"] for each in columns]
    updates: dict[str, Any] = {
        "expires_at": None if None in expiries else max(map(str, expiries)),
        "times_observed": sum(row.times_observed for row in left),
        "last_observed": max(row.last_observed or row.created_at for row in left),
        "trust": best_trust(*(row.trust for row in left)),
        "corroborations": min(memory.corroborations, sum(row.times_observed for row in left)),
    }
    own = Author.of(memory)
    if own.within(scope):  # it passes to the oldest sighting
        updates |= {name: getattr(left[0], name) for name in ("agent_id", "session_id", "metadata", "created_at")}
        names = [name for name in _FROM_METADATA if not (memory.claim and name in ("valid_from", "valid_until"))]
        updates |= {name: columns[0][name] for name in names}  # the window of a claim is that of the same claim
        if "content" in left[0].metadata:  # it said the same in other words
            metadata = dict(left[0].metadata)
            updates |= {"content": metadata.pop("content"), "metadata": metadata}
    within = [row for row in rows if Author.of(row).within(scope)]
    purged = own.within(scope) or any(not row.times_observed for row in within if Author.of(row) != own)
    # Without its past, a memory has nothing left of sightings of earlier texts.
    past = [row for row in rows if purged and not row.times_observed and row not in within]
    return Kept(memory, updates, [*within, *past], purged)
