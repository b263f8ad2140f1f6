"""Compare the claims of new memories with the stored ones, and plan what follows.

New memories corroborate, supersede or end stored ones, or are quarantined. A write compares all its
claims under the versions of the partitions that it read, so that of two concurrent writes one
decides again: no two active memories have claims that exclude each other.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from memory_mesh.core.audit import Entry
from memory_mesh.core.claims import (
    Claim,
    Judgement,
    Known,
    Outcome,
    Schemas,
    Verdict,
    Window,
    check_window,
    judge,
    judge_trust,
    read_schemas,
    trust_of,
)
from memory_mesh.core.errors import InvalidInput, WrongStatus, shown
from memory_mesh.core.graph import link
from memory_mesh.core.intake import Terms, normal_text
from memory_mesh.core.model import (
    ClaimConflict,
    In,
    Kind,
    Memory,
    Reader,
    Row,
    Status,
    all_of,
    equals,
    iso,
    millis,
    not_expired,
    partitions,
)
from memory_mesh.core.text import hides_value
from memory_mesh.flows.context import Context, intact, require_memory
from memory_mesh.flows.write.revisions import revise

if TYPE_CHECKING:
    from memory_mesh.core.intake.gate import Layer0

_FIRST = "0001-01-01T00:00:00.000Z"  # there is no time before it
COMPARED = (Status.ACTIVE, Status.DISPUTED)  # a disputed memory may become active again


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What a new memory changes: the memories with their history rows and audit entries, and
    what is recorded of it."""

    status: str = Status.ACTIVE
    superseded: tuple[str, ...] = ()
    conflicts: tuple[ClaimConflict, ...] = ()
    memories: tuple[Memory, ...] = ()  # revised
    rows: tuple[Row, ...] = ()
    entries: tuple[Entry, ...] = ()


NO_EFFECTS = Effects()


class Claims:
    """The stored memories with claims about the subjects and predicates of one write."""

    def __init__(self, context: Context, claims: Iterable[Claim | None]) -> None:
        self._schemas = schemas(context)
        self.stored = find_claims(context, {claim.key for claim in claims if claim})
        # Ids, in the order of storing.
        self._by_key: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for memory in self.stored:
            self.add(memory)

    def add(self, memory: Memory) -> None:
        """Compare later claims of this write with a new memory too."""
        if memory.claim_key and memory.status in COMPARED:
            self._by_key[memory.claim_key][memory.id] = None

    def judge(
        self,
        claim: Claim,
        trust: float,
        memories: Mapping[str, Memory],
        ms: int,
        *,
        is_turn: bool = False,
    ) -> Verdict:
        """Compare a claim with the memories as this write has changed them so far. A turn is
        never merged with another one."""
        schema = self._schemas[claim.predicate]
        if not claim.ended and (schema.cardinality == "multi" or not claim.exclusive):
            return Verdict()  # a subject may have thousands of such values
        if is_turn:
            schema = replace(schema, dedup_policy="store")
        same = [
            memories[id_]
            for id_ in self._by_key.get(claim.key, ())
            if memories[id_].status in COMPARED
        ]
        known = [
            Known(each.id, own, trust_of(each, ms).value)
            for each in same
            if (own := Claim.of(each))
        ]
        verdict = judge(claim, trust, known, schema)
        if claim.window != Window():
            return verdict
        # A claim without a window says what is valid now, so it does not corroborate one that is
        # over.
        over = {each.id for each in same if each.valid_until and each.valid_until <= iso(ms)}
        return Verdict(
            tuple(
                each
                for each in verdict.judgements
                if each.outcome != Outcome.CORROBORATE or each.id not in over
            )
        )

    def merges(self, claim: Claim) -> bool:
        """Return whether a claim with the value of a stored one is counted there instead of
        stored."""
        return self._schemas[claim.predicate].dedup_policy != "store"

    def effects(
        self,
        context: Context,
        memory: Memory,
        verdict: Verdict,
        memories: MutableMapping[str, Memory],
        terms: Terms,
        ms: int,
    ) -> Effects:
        """Return what a verdict on a new memory changes. Changed memories are put into
        `memories`."""
        waits = verdict.outcome is Outcome.QUARANTINE or terms.quarantine
        status = (
            Status.QUARANTINED
            if terms.quarantine or (waits and not terms.keep_active)
            else Status.ACTIVE
        )
        changed, conflicts, claim = (
            _Changed(context, memory, memories, ms),
            list[ClaimConflict](),
            Claim.of(memory),
        )
        policy = self._schemas[claim.predicate].conflict_policy if claim else "supersede"
        for judgement in verdict.judgements:
            if not waits:  # a memory that waits for a review changes no other one
                changed.apply(judgement)
                # Else a long batch about one subject takes quadratic time.
                if judgement.outcome is Outcome.SUPERSEDE:
                    self._by_key[str(memories[judgement.id].claim_key)].pop(judgement.id, None)
            if judgement.outcome not in (Outcome.CORROBORATE, Outcome.END):
                conflicts.append(
                    _conflict(
                        context,
                        memory,
                        memories[judgement.id],
                        judgement,
                        policy,
                        waits=waits,
                        ms=ms,
                    )
                )
        return Effects(
            status=status.value,
            superseded=tuple(changed.superseded),
            conflicts=tuple(conflicts),
            memories=tuple(changed.memories.values()),
            rows=(*changed.rows, *(conflict.row(memory.partition) for conflict in conflicts)),
            entries=tuple(changed.entries),
        )


def clean_claim(gate: "Layer0", claim: Claim) -> Claim:
    """Return a claim without sensitive values. A mask in its subject may stand for any subject,
    so it then excludes no claim."""
    clean = gate.clean_metadata(
        {name: getattr(claim, name) for name in ("subject", "predicate", "value")}
    )
    subject, predicate, value = (str(clean[name]) for name in ("subject", "predicate", "value"))
    # A predicate such as "password" says what its value is, as a key of the metadata does.
    (value,) = map(str, gate.clean_metadata({claim.predicate.replace(" ", "_"): value}).values())
    exclusive = claim.exclusive and not hides_value(f"{subject} {predicate}")
    return replace(claim, subject=subject, predicate=predicate, value=value, exclusive=exclusive)


def schemas(context: Context) -> Schemas:
    """Return the schemas of predicates in the options."""
    return read_schemas(context.options.predicate_schemas)


def find_claims(context: Context, keys: Iterable[str]) -> list[Memory]:
    """Return the memories whose claims are compared with new ones: of the agent or global,
    oldest first."""
    wanted = tuple(sorted(keys))
    if not wanted:
        return []
    where = all_of(
        In("claim_key", wanted), In("status", COMPARED),
        In("partition", partitions(context.reader)), equals("user_id", context.reader.user_id),
        not_expired(iso(context.clock())),
    )  # fmt: skip
    found = [Memory.of(row) for row in intact(context, context.store.find(Kind.MEMORY, where))]
    # No block seals the key: a memory is compared only if it is that of its own claim.
    own = [
        memory for memory in found if (claim := Claim.of(memory)) and claim.key == memory.claim_key
    ]
    return sorted(own, key=lambda memory: (memory.created_at, memory.number, memory.id))


def judge_named(
    context: Context,
    ids: Iterable[str],
    content: str,
    trust: float,
    memories: MutableMapping[str, Memory],
    ms: int,
) -> list[Judgement]:
    """Judge the memories with these ids, which a new one is to supersede. They are put into
    `memories`."""
    judgements: list[Judgement] = []
    for id_ in ids:
        old = memories.setdefault(id_, memories.get(id_) or require_memory(context, id_))
        if old.status == Status.SUPERSEDED:
            raise WrongStatus(
                f"{shown(id_)} is superseded already",
                remedy=f"name {old.superseded_by}, which took its place",
            )
        if normal_text(old.content) == normal_text(content):
            raise InvalidInput(
                f"it says the same as {shown(id_)}, which it is to supersede",
                expected="another text",
            )
        judgements.append(
            judge_trust(
                id_,
                "the caller lets it take the place of this memory",
                trust,
                trust_of(old, ms).value,
            )
        )
    return judgements


def check_alone(context: Context, memory: Memory) -> None:
    """Raise `InvalidInput` if the claim of a memory that is to be active would exclude another
    active one of its owner."""
    claim = Claim.of(memory)
    if claim is None:
        return
    check_window(claim.window)
    if memory.status not in COMPARED:
        return
    others = Claims(replace(context, reader=Reader(memory.user_id, memory.agent_id)), [claim])
    every = {other.id: other for other in others.stored if other.id != memory.id}
    itself = {memory.id: replace(memory, status=Status.ARCHIVED.value)}
    verdict = others.judge(claim, 1.0, {**every, **itself}, context.clock())
    if excluding := verdict.of(Outcome.QUARANTINE, Outcome.SUPERSEDE):
        raise InvalidInput(
            f"the claim of {shown(excluding[0].id)} excludes it",
            remedy="store the change as a new memory, which is compared with it",
        )


@dataclass(slots=True)
class _Changed:
    """The stored memories that a new memory changes."""

    context: Context
    new: Memory
    stored: MutableMapping[str, Memory]
    ms: int
    superseded: list[str] = field(default_factory=list)
    memories: dict[str, Memory] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    def apply(self, judgement: Judgement) -> None:
        """Change the stored memory as its outcome says."""
        old = self.stored[judgement.id]
        match judgement.outcome:
            case Outcome.SUPERSEDE:
                until = _end(self.new, old)
                # It begins later: the old one is valid until then.
                if self.new.valid_from and until and until >= iso(self.ms):
                    self._revise(
                        old,
                        f"{self.new.id} takes its place from {self.new.valid_from} on",
                        "end",
                        valid_until=until,
                    )
                    return
                # Without words of the new memory: others may see the history of this one, and it
                # outlives an erasure of that.
                trusts = [f"{trust_of(each, self.ms).value:.2f}" for each in (self.new, old)]
                why = (
                    f"{self.new.id} takes its place, and is not trusted less: {trusts[0]} against "
                    f"{trusts[1]}"
                )
                self._revise(old, why, "supersede", **superseded_columns(self.new, old))
                self.superseded.append(old.id)
                self.rows.append(link(self.new, old, "supersedes", self.ms).row(self.new.partition))
            case Outcome.END:
                self._revise(old, judgement.why, "end", valid_until=self.new.valid_until)
            case Outcome.CORROBORATE:
                self._revise(
                    old, judgement.why, "corroborate", corroborations=old.corroborations + 1
                )

    def _revise(self, old: Memory, why: str, action: str, **updates: Any) -> None:
        newer, change, entry = revise(self.context, self.ms, old, action=action, why=why, **updates)
        self.stored[old.id] = self.memories[old.id] = newer
        self.rows.append(change)
        self.entries.append(entry)


def superseded_columns(new: Memory, old: Memory) -> dict[str, Any]:
    """Return the columns that change when a memory supersedes another one."""
    until = _end(new, old)
    end = {} if until is None and not _corrects(new, old) else {"valid_until": until}
    return {"status": Status.SUPERSEDED.value, "superseded_by": new.id, **end}


def _corrects(new: Memory, old: Memory) -> bool:
    """Return whether a memory that ends no other one says something else about all of its time,
    which then has no end either."""
    if old.valid_until is None:
        return False
    # What is valid now replaces it.
    is_over = old.valid_until < new.created_at and (new.valid_from or new.event_time) is None
    return not is_over and (new.valid_until is None or new.valid_until >= old.valid_until)


def _end(new: Memory, old: Memory) -> str | None:
    """Return until when a superseded claim was valid; None if the new one is a correction, which
    says not since when.

    The older claim ends just before the newer one begins: the ends of a window belong to it.
    """
    begins = new.valid_from or new.event_time
    began = old.valid_from or old.event_time
    if (
        new.claim is None
        or begins is None
        or begins <= _FIRST
        or (began is not None and began >= begins)
    ):
        return None
    until = iso(millis(begins) - 1)
    return until if old.valid_until is None else min(old.valid_until, until)


def _conflict(
    context: Context,
    new: Memory,
    old: Memory,
    judgement: Judgement,
    policy: str,
    *,
    waits: bool,
    ms: int,
) -> ClaimConflict:
    pending = waits and judgement.outcome is not Outcome.KEEP_BOTH
    resolution = None if pending else _resolution(old, judgement)
    detail = {
        "policy": policy, "outcome": judgement.outcome.value,
        "new": new.claim and new.claim.get("value"),
        "existing": old.claim and old.claim.get("value"),
        "new_trust": round(trust_of(new, ms).value, 4),
        "existing_trust": round(trust_of(old, ms).value, 4), "resolution": resolution,
    }  # fmt: skip
    return ClaimConflict(
        id=context.ids.new("conflict", ms), created_at=iso(ms), ref=new.id, target=old.id,
        status="pending" if pending else "resolved", why=judgement.why, user_id=new.user_id,
        agent_id=new.agent_id,
        detail={name: value for name, value in detail.items() if value is not None},
    )  # fmt: skip


def _resolution(old: Memory, judgement: Judgement) -> str:
    """Return how a conflict with a memory, as it is now, was resolved by the rules."""
    if judgement.outcome is Outcome.KEEP_BOTH:
        return "kept both"
    return "superseded" if old.status == Status.SUPERSEDED else "ended"
