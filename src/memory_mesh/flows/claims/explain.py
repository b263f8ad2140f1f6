"""Explain a memory: its trust, claim, status, links and conflicts, and what superseded what.

Like a review, an explanation acts for the owner of the memory, for any agent of the same user: what
its owner cannot see is left out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from memory_mesh.core.claims import Claim
from memory_mesh.core.claims.claim import as_of as valid_at
from memory_mesh.core.claims.rules import MemoryExplanation, Supersession
from memory_mesh.core.errors import NotFound
from memory_mesh.core.model import (
    Change,
    ClaimConflict,
    Kind,
    Link,
    Memory,
    Status,
    iso,
    since_visible,
    visible,
)
from memory_mesh.flows.claims.review import acting_for, find_rivals, reopened, rows_about
from memory_mesh.flows.context import Context, intact, require_memory
from memory_mesh.flows.search.readable import changes_of, read_known_at, read_time, rewind, trusts
from memory_mesh.flows.write.prepare import sightings

_MAX_STEPS = 200  # of a chain of supersessions


def explain_memory(
    context: Context, memory_id: str, *, as_of: object = None, known_at: object = None,
    for_owner: bool = True
) -> MemoryExplanation:  # fmt: skip
    """Explain a memory of the user as it is now, or as it was known at a time, or raise `NotFound`.

    Without `for_owner` only what the reader itself can see is told.
    """
    past = _Past.of(context, memory_id, known_at, for_owner=for_owner)
    asked = read_time("as_of", as_of) or past.at or iso(context.clock())
    memory, owner = past.memory, past.context
    provenance = memory.metadata.get("provenance")
    links, conflicts = past.links(), past.conflicts()
    rivals = (
        [one for one in find_rivals(owner, memory) if visible(owner.reader, one.row())]
        if past.at is None
        else []
    )
    ends = [(one.ref, one.target) for one in links] + [(one.ref, one.target) for one in conflicts]
    others = past.visible(id_ for pair in ends for id_ in pair if id_ != memory_id)
    trust = trusts(owner, [memory], known_at=past.at)[memory_id]
    return MemoryExplanation(
        memory=memory.record(trust.value),
        trust=trust,
        claim=Claim.of(memory),
        provenance=provenance if isinstance(provenance, dict) else {},
        status=memory.status,
        valid=valid_at(asked, (Status.ACTIVE,)).matches(memory.row()),
        status_change=next((one for one in past.changes(memory) if "status" in one.before), None),
        links=tuple(links),
        conflicts=tuple(conflicts),
        excluded_by=tuple(rival.id for rival in rivals),
        supersessions=tuple(_chain(past)),
        sightings=sum(
            past.at is None or one.created_at <= past.at for one in sightings(owner, memory_id)
        ),
        contents={one.id: one.content for one in (*others.values(), *rivals)},
    )


def explain_supersession(
    context: Context, memory_id: str, *, known_at: object = None
) -> tuple[Supersession, ...]:
    """Return the chain of supersessions that a memory of the user is part of, oldest first, or
    raise `NotFound`."""
    return tuple(_chain(_Past.of(context, memory_id, known_at)))


@dataclass(frozen=True, slots=True)
class _Past:
    """A memory, and what its owner could see beside it, at a time or now."""

    context: Context  # of the owner, or of a reader who may see no more than its own
    memory: Memory
    at: str | None  # None: now

    @classmethod
    def of(
        cls, context: Context, memory_id: str, known_at: object, *, for_owner: bool = True
    ) -> "_Past":
        owner, at = (
            acting_for(context, memory_id) if for_owner else context,
            read_known_at(context, known_at),
        )
        memory = require_memory(owner, memory_id)
        past = cls(owner, memory, at)
        then = past.visible([memory_id]).get(memory_id)
        if then is None:
            raise NotFound(
                f"{memory_id} was not known at {at}", remedy=f"it was stored at {memory.created_at}"
            )
        return replace(past, memory=then)

    def visible(self, ids: Iterable[str]) -> dict[str, Memory]:
        """Return the memories with these ids that the owner can see, as they were."""
        stored = intact(
            self.context, self.context.store.get(Kind.MEMORY, list(dict.fromkeys(ids))).values()
        )
        rows = [row for row in stored if visible(self.context.reader, row)]
        return {
            row.id: Memory.of(row)
            for row in (rows if self.at is None else rewind(self.context, rows, self.at))
        }

    def changes(self, memory: Memory) -> list[Change]:
        """Return the changes of a memory until then, newest first, with what the owner may see
        of them."""
        changes = changes_of(self.context, memory.id)[::-1]
        return [
            one
            for one in since_visible(self.context.reader, memory, changes)
            if self._known(one.created_at)
        ]

    def links(self) -> list[Link]:
        """Return the links from and to the memory whose other end the owner can see, best first."""
        rows = rows_about(self.context, Kind.LINK, self.memory.id)
        found = [Link.of(row) for row in rows if visible(self.context.reader, row)]
        shown = self.visible(id_ for one in found for id_ in (one.ref, one.target))
        known = [
            one
            for one in found
            if {one.ref, one.target} <= shown.keys() and self._known(one.created_at)
        ]
        return sorted(known, key=lambda one: -(one.similarity or 0.0))

    def conflicts(self) -> list[ClaimConflict]:
        """Return the conflicts of the memory with memories that the owner can see, newest first."""
        found = [
            ClaimConflict.of(row)
            for row in rows_about(self.context, Kind.CONFLICT, self.memory.id)
            if self._known(row.created_at)
        ]
        shown = self.visible(id_ for one in found for id_ in (one.ref, one.target))
        known = [one for one in found if {one.ref, one.target} <= shown.keys()]
        return [
            one if self._known(str(one.detail.get("at", ""))) else reopened(one) for one in known
        ]

    def _known(self, at: str) -> bool:
        return self.at is None or at <= self.at


def _chain(past: _Past) -> list[Supersession]:
    """Follow `superseded_by` and `supersedes` in both directions, each memory once, and return
    the steps in order of time."""
    known, steps = {past.memory.id: past.memory}, dict[tuple[str, str], None]()
    waiting = [past.memory]
    while waiting and len(steps) < _MAX_STEPS:
        one = waiting.pop(0)
        pairs = [(id_, one.id) for id_ in one.supersedes] + (
            [(one.id, one.superseded_by)] if one.superseded_by else []
        )
        steps |= dict.fromkeys(pairs)
        found = past.visible(id_ for pair in pairs for id_ in pair if id_ not in known)
        known |= found
        waiting += found.values()
    # An id without a memory that the owner sees is erased, or of another agent: only its id is
    # shown.
    after, chain = dict(steps.keys()), (_step(past, known, *pair) for pair in steps)
    return sorted(chain, key=lambda step: (step.at or "", -_length(after, step.older), step.older))


def _length(after: Mapping[str, str], id_: str) -> int:
    """Return how many steps follow a memory: of one moment, that with the most is the oldest. A
    circle ends."""
    seen: set[str] = set()
    while id_ in after and id_ not in seen:
        seen.add(id_)
        id_ = after[id_]
    return len(seen)


def _step(past: _Past, known: dict[str, Memory], older_id: str, newer_id: str) -> Supersession:
    older, newer = known.get(older_id), known.get(newer_id)
    change = _superseding(past, older, newer_id) if older else None
    then = replace(past, at=change.created_at) if change else past
    # As they were just then: feedback that came later does not count.
    of = trusts(
        past.context,
        list(then.visible(one.id for one in (older, newer) if one).values()),
        known_at=then.at,
    )
    trust = {id_: one.value for id_, one in of.items()}
    return Supersession(
        older=older_id,
        newer=newer_id,
        at=change.created_at if change else None,
        why=_reason(past, change, newer) if change else None,
        older_content=older.content if older else None,
        newer_content=newer.content if newer else None,
        older_trust=trust.get(older_id),
        newer_trust=trust.get(newer_id),
    )


def _superseding(past: _Past, older: Memory, newer_id: str) -> Change | None:
    """Return the last change that set `superseded_by` of a memory, if that is the newer one."""
    if older.superseded_by != newer_id:
        return None
    return next((one for one in past.changes(older) if "superseded_by" in one.before), None)


def _reason(past: _Past, change: Change, newer: Memory | None) -> str | None:
    """Return why a memory was superseded: as the review or the conflict says, else as its own
    history does."""
    if newer is None:
        return change.why
    decision = (change.detail or {}).get("decision")
    said = [one.why for one in past.changes(newer) if one.id == decision]
    said += [
        one.why
        for one in replace(past, memory=newer).conflicts()
        if one.target == change.ref and not decision
    ]
    return next(filter(None, said), change.why)
