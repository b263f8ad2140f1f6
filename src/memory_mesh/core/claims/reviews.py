"""Feedback and reviews: the status that feedback leads to, and the results of a review and of an explanation."""

from dataclasses import dataclass, field

from memory_mesh.core.claims.claim import Claim
from memory_mesh.core.model import Change, ClaimConflict, Link, MemoryRecord, Status, Value
from memory_mesh.core.reprs import short_repr
from memory_mesh.core.safety.trust import Trust

ACTIONS = ("activate", "reject", "keep_both")  # what a review decides about a quarantined memory
KEEP = ("new", "existing", "both")  # what a review decides about a conflict
_MIN_TRUST = 0.3
_MAX_DISPUTES = 3  # more than reinforcements


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reviewed:
    """The outcome of a review: the memory, and the other memories and conflicts that the decision changed."""

    __repr__ = short_repr

    action: str
    memory: MemoryRecord
    changed: tuple[MemoryRecord, ...] = ()  # such as those that it supersedes now
    conflicts: tuple[ClaimConflict, ...] = ()
    note: str | None = None  # why the memory did not get the status that the decision would lead to


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Supersession:
    """One step of a chain: a newer memory superseded an older one. The trusts are those at that time."""

    __repr__ = short_repr

    older: str
    newer: str
    at: str | None = None  # None: the history of the older one does not say
    why: str | None = None
    older_content: str | None = None  # None: the memory is erased
    newer_content: str | None = None
    older_trust: float | None = None
    newer_trust: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MemoryExplanation:
    """What is known about a memory: how far it is trusted and why, its claim, its status, its links and conflicts."""

    __repr__ = short_repr

    memory: MemoryRecord
    trust: Trust
    claim: Claim | None = None
    provenance: dict[str, Value] = field(default_factory=dict)
    status: str = Status.ACTIVE.value
    valid: bool = True  # whether it is active or was once, and its validity contains the time that was asked for, or now
    status_change: Change | None = None  # the change that led to the status; None if it was stored with it
    links: tuple[Link, ...] = ()  # from it and to it
    conflicts: tuple[ClaimConflict, ...] = ()
    excluded_by: tuple[str, ...] = ()  # the active and disputed memories whose claims exclude its claim; not with `known_at`
    supersessions: tuple[Supersession, ...] = ()  # the chain in both directions, oldest first
    sightings: int = 1  # the agents and sessions that stored its text
    contents: dict[str, str] = field(default_factory=dict, repr=False)  # of the other memories that it names, by id


def status_after_dispute(memory: MemoryRecord, trust: float) -> str:
    """Return the status of a memory that was disputed once more. Only that of active and disputed memories changes."""
    if memory.status not in (Status.ACTIVE, Status.DISPUTED):
        return memory.status
    more = memory.disputes - memory.reinforcements
    if trust < _MIN_TRUST or more >= _MAX_DISPUTES:
        return Status.QUARANTINED.value
    return Status.DISPUTED.value if more > 0 else memory.status


def status_after_reinforcement(memory: MemoryRecord) -> str:
    """Return the status of a memory that was reinforced once more: a disputed one is active again when the counts are even."""
    even = memory.reinforcements >= memory.disputes
    return Status.ACTIVE.value if even and memory.status == Status.DISPUTED else memory.status
