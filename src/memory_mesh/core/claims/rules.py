"""The rules of claims: when they exclude each other, how far they are trusted, what reviews change.

Structural rules come first, in the order of the document; trust only decides between claims that
exclude each other. The rules are deterministic: the same claims in the same order have the same
outcome, and no model is asked.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations

from memory_mesh.core.claims.claim import Claim, Schema, Schemas
from memory_mesh.core.language.safety import BASE_TRUST, Source
from memory_mesh.core.model import (
    DAY_MS,
    Change,
    ClaimConflict,
    Link,
    MemoryRecord,
    Status,
    Value,
    millis,
)
from memory_mesh.core.text import ShortRepr


class Outcome(StrEnum):
    """What follows from a new claim and one stored claim, from the mildest to the strictest."""

    CORROBORATE = "corroborate"  # the same value: the stored claim is confirmed
    KEEP_BOTH = "keep_both"
    END = "end"  # the new claim says that the stored one is no longer valid
    SUPERSEDE = "supersede"
    QUARANTINE = "quarantine"  # the new claim waits for a review


@dataclass(frozen=True, slots=True)
class Known:
    """A stored claim with the id and the trust of its memory."""

    id: str
    claim: Claim
    trust: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """The outcome of a new claim and the stored claim of the memory `id`, and why."""

    id: str
    outcome: Outcome
    why: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happens to a new claim. The strictest outcome wins; all of them are recorded."""

    judgements: tuple[Judgement, ...] = ()

    @property
    def outcome(self) -> Outcome | None:
        """The strictest outcome; None if no stored claim says anything about the new one."""
        return (
            max((each.outcome for each in self.judgements), key=list(Outcome).index)
            if self.judgements
            else None
        )

    def of(self, *outcomes: Outcome) -> tuple[Judgement, ...]:
        """Return the judgements with one of these outcomes."""
        return tuple(each for each in self.judgements if each.outcome in outcomes)


def judge(new: Claim, trust: float, known: Sequence[Known], schema: Schema) -> Verdict:
    """Compare a new claim with the stored claims about the same subject and predicate."""
    judgements = (_judge_one(new, trust, each, schema) for each in known)
    return Verdict(tuple(each for each in judgements if each))


def judge_trust(known_id: str, what: str, trust: float, known_trust: float) -> Judgement:
    """Return whether a new memory supersedes a stored one, or waits for a review because it is
    trusted less."""
    if trust >= known_trust:
        return Judgement(
            known_id,
            Outcome.SUPERSEDE,
            f"{what}, and is not trusted less: {trust:.2f} against {known_trust:.2f}",
        )
    return Judgement(
        known_id,
        Outcome.QUARANTINE,
        f"{what}, but is trusted less: {trust:.2f} against {known_trust:.2f}",
    )


def excludes(one: Claim, other: Claim, schema: Schema) -> bool:
    """Return whether two claims about one subject and predicate cannot both be valid."""
    return _may_exclude(one, other, schema) and not _same_value(one, other, schema)


def excluding_pairs(
    claims: Iterable[tuple[str, Claim]], schemas: Schemas
) -> list[tuple[tuple[str, Claim], tuple[str, Claim]]]:
    """Return the pairs of memories, given by id, whose claims exclude each other, in the given
    order."""
    by_key: dict[str, list[tuple[str, Claim]]] = {}
    for one in claims:
        by_key.setdefault(one[1].key, []).append(one)
    pairs = (pair for group in by_key.values() for pair in combinations(group, 2))
    return [
        (one, other)
        for one, other in pairs
        if excludes(one[1], other[1], schemas[one[1].predicate])
    ]


def _judge_one(new: Claim, trust: float, known: Known, schema: Schema) -> Judgement | None:
    old = known.claim
    if new.ended:
        return _judge_end(new, trust, known, schema)
    if not _may_exclude(new, old, schema):
        return None
    if _same_value(new, old, schema):
        same = Judgement(known.id, Outcome.CORROBORATE, f"both say {old.value}")
        return same if schema.dedup_policy == "corroborate" else None
    values = f"{new.value} excludes {old.value}"
    if schema.conflict_policy == "keep_both":
        return Judgement(known.id, Outcome.KEEP_BOTH, f"{values}, and both are kept")
    if schema.conflict_policy == "require_review":
        return Judgement(known.id, Outcome.QUARANTINE, f"{values}, which needs a review")
    return judge_trust(known.id, values, trust, known.trust)


def _judge_end(new: Claim, trust: float, known: Known, schema: Schema) -> Judgement | None:
    """Judge a claim that says that a value is no longer valid: it ends the stored claim of that
    value."""
    old = known.claim
    open_ended = old.window.end is None or (
        new.window.end is not None and old.window.end > new.window.end
    )
    started = (
        old.window.start is None or new.window.end is None or old.window.start <= new.window.end
    )
    if (
        _scope(new) != _scope(old)
        or not _same_value(new, old, schema)
        or not (open_ended and started)
    ):
        return None
    if trust >= known.trust:
        return Judgement(known.id, Outcome.END, f"{old.value} is no longer valid")
    why = (
        f"{old.value} is said to be no longer valid, but by a less trusted memory: {trust:.2f} "
        f"against {known.trust:.2f}"
    )
    return Judgement(known.id, Outcome.QUARANTINE, why)


def _may_exclude(one: Claim, other: Claim, schema: Schema) -> bool:
    """Apply the first four rules: several values allowed, not exclusive, never valid at the same
    time, different scopes.

    A project has its own deadline, so claims of different projects never exclude each other.
    """
    if schema.cardinality == "multi":
        return False
    if not (one.exclusive and other.exclusive):
        return False
    if not one.window.overlaps(other.window):
        return False
    return _scope(one) == _scope(other)


def _scope(claim: Claim) -> tuple[str | None, str | None]:
    return claim.session_id, claim.project


def _same_value(one: Claim, other: Claim, schema: Schema) -> bool:
    return schema.normalized(one.value) == schema.normalized(other.value)


# --- trust ---
# The source sets the base; corroboration, feedback and age adjust it.

# Of the part of the age: in five minutes it changes by one in the last place, so that two reads are
# equal.
_DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Trust(ShortRepr):
    """The trust of a memory in parts: their sum, from 0 to 1, is its trust, unless a source of
    it is trusted less."""

    base: float
    corroboration: float = 0.0
    feedback: float = 0.0
    age: float = 0.0  # never above 0
    # The trust of the least trusted memory that it was derived from.
    least_source: float | None = None

    @property
    def value(self) -> float:
        """The trust."""
        own = min(1.0, max(0.0, self.base + self.corroboration + self.feedback + self.age))
        return own if self.least_source is None else min(own, self.least_source)


def compute_trust(
    base: float,
    *,
    corroborations: int = 1,
    reinforcements: int = 0,
    disputes: int = 0,
    age_days: float = 0.0,
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
    """Return the trust of a memory with its base trust at a time, without regard to the memories
    that it was derived from."""
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


# --- feedback and reviews ---

ACTIONS = ("activate", "reject", "keep_both")  # what a review decides about a quarantined memory
KEEP = ("new", "existing", "both")  # what a review decides about a conflict
_MIN_TRUST = 0.3
_MAX_DISPUTES = 3  # more than reinforcements


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reviewed(ShortRepr):
    """The outcome of a review: the memory, and the other memories and conflicts that the
    decision changed."""

    action: str
    memory: MemoryRecord
    changed: tuple[MemoryRecord, ...] = ()  # such as those that it supersedes now
    conflicts: tuple[ClaimConflict, ...] = ()
    note: str | None = None  # why the memory did not get the status that the decision would lead to


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Supersession(ShortRepr):
    """One step of a chain: a newer memory superseded an older one. The trusts are those at that
    time."""

    older: str
    newer: str
    at: str | None = None  # None: the history of the older one does not say
    why: str | None = None
    older_content: str | None = None  # None: the memory is erased
    newer_content: str | None = None
    older_trust: float | None = None
    newer_trust: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MemoryExplanation(ShortRepr):
    """What is known about a memory: how far it is trusted and why, its claim, its status, its
    links and conflicts."""

    memory: MemoryRecord
    trust: Trust
    claim: Claim | None = None
    provenance: dict[str, Value] = field(default_factory=dict)
    status: str = Status.ACTIVE.value
    # Whether it is active or was once, and its validity contains the time that was asked for, or
    # now.
    valid: bool = True
    # The change that led to the status; None if it was stored with it.
    status_change: Change | None = None
    links: tuple[Link, ...] = ()  # from it and to it
    conflicts: tuple[ClaimConflict, ...] = ()
    # The active and disputed memories whose claims exclude its claim; not with `known_at`.
    excluded_by: tuple[str, ...] = ()
    supersessions: tuple[Supersession, ...] = ()  # the chain in both directions, oldest first
    sightings: int = 1  # the agents and sessions that stored its text
    # Of the other memories that it names, by id.
    contents: dict[str, str] = field(default_factory=dict, repr=False)


def status_after_dispute(memory: MemoryRecord, trust: float) -> str:
    """Return the status of a memory that was disputed once more. Only that of active and
    disputed memories changes."""
    if memory.status not in (Status.ACTIVE, Status.DISPUTED):
        return memory.status
    more = memory.disputes - memory.reinforcements
    if trust < _MIN_TRUST or more >= _MAX_DISPUTES:
        return Status.QUARANTINED.value
    return Status.DISPUTED.value if more > 0 else memory.status


def status_after_reinforcement(memory: MemoryRecord) -> str:
    """Return the status of a memory that was reinforced once more: a disputed one is active
    again when the counts are even."""
    even = memory.reinforcements >= memory.disputes
    return Status.ACTIVE.value if even and memory.status == Status.DISPUTED else memory.status
