"""The rules that decide whether a new claim agrees with the stored ones, and what happens when it does not.

Structural rules come first, in the order of the document; trust only decides between claims that exclude each other. The rules
are deterministic: the same claims in the same order have the same outcome, and no model is asked.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from memory_mesh.core.claims.claim import Claim
from memory_mesh.core.claims.schemas import Schema, Schemas


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
        return max((each.outcome for each in self.judgements), key=list(Outcome).index) if self.judgements else None

    def of(self, *outcomes: Outcome) -> tuple[Judgement, ...]:
        """Return the judgements with one of these outcomes."""
        return tuple(each for each in self.judgements if each.outcome in outcomes)


def judge(new: Claim, trust: float, known: Sequence[Known], schema: Schema) -> Verdict:
    """Compare a new claim with the stored claims about the same subject and predicate."""
    judgements = (_judge_one(new, trust, each, schema) for each in known)
    return Verdict(tuple(each for each in judgements if each))


def judge_trust(known_id: str, what: str, trust: float, known_trust: float) -> Judgement:
    """Return whether a new memory supersedes a stored one, or waits for a review because it is trusted less."""
    if trust >= known_trust:
        return Judgement(known_id, Outcome.SUPERSEDE, f"{what}, and is not trusted less: {trust:.2f} against {known_trust:.2f}")
    return Judgement(known_id, Outcome.QUARANTINE, f"{what}, but is trusted less: {trust:.2f} against {known_trust:.2f}")


def excludes(one: Claim, other: Claim, schema: Schema) -> bool:
    """Return whether two claims about one subject and predicate cannot both be valid."""
    return _may_exclude(one, other, schema) and not _same_value(one, other, schema)


def excluding_pairs(claims: Iterable[tuple[str, Claim]], schemas: Schemas) -> list[tuple[tuple[str, Claim], tuple[str, Claim]]]:
    """Return the pairs of memories, given by id, whose claims exclude each other, in the given order."""
    by_key: dict[str, list[tuple[str, Claim]]] = {}
    for one in claims:
        by_key.setdefault(one[1].key, []).append(one)
    pairs = (pair for group in by_key.values() for pair in combinations(group, 2))
    return [(one, other) for one, other in pairs if excludes(one[1], other[1], schemas[one[1].predicate])]


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
    """Judge a claim that says that a value is no longer valid: it ends the stored claim of that value."""
    old = known.claim
    open_ended = old.window.end is None or (new.window.end is not None and old.window.end > new.window.end)
    started = old.window.start is None or new.window.end is None or old.window.start <= new.window.end
    if _scope(new) != _scope(old) or not _same_value(new, old, schema) or not (open_ended and started):
        return None
    if trust >= known.trust:
        return Judgement(known.id, Outcome.END, f"{old.value} is no longer valid")
    why = f"{old.value} is said to be no longer valid, but by a less trusted memory: {trust:.2f} against {known.trust:.2f}"
    return Judgement(known.id, Outcome.QUARANTINE, why)


def _may_exclude(one: Claim, other: Claim, schema: Schema) -> bool:
    """Apply the first four rules: several values allowed, not exclusive, never valid at the same time, different scopes.

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
