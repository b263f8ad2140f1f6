"""Explain a memory: how far it is trusted and why, its claim and status, its links and conflicts, and what superseded what.

Like a review, an explanation acts for the owner of the memory, for any agent of the same user: what its owner cannot see is left
out.
"""

from collections.abc import Iterable

from memory_mesh.core.claims import Claim
from memory_mesh.core.claims.reviews import MemoryExplanation, Supersession
from memory_mesh.core.model import (
    Change,
    ClaimConflict,
    Kind,
    Link,
    Memory,
    Or,
    Row,
    all_of,
    equals,
    millis,
    since_visible,
    visible,
    visible_to,
)
from memory_mesh.flows.cases import acting_for, conflicts_of, find_rivals
from memory_mesh.flows.context import Context, intact, require_memory
from memory_mesh.flows.sightings import sightings
from memory_mesh.flows.trust import trusts

_MAX_STEPS = 200  # of a chain of supersessions


def explain_memory(context: Context, memory_id: str) -> MemoryExplanation:
    """Explain a memory of the user, or raise `NotFound`."""
    owner = acting_for(context, memory_id)
    memory = require_memory(owner, memory_id)
    provenance = memory.metadata.get("provenance")
    links, conflicts = _links(owner, memory_id), _conflicts(owner, memory_id)
    rivals = find_rivals(owner, memory)
    ends = [(one.ref, one.target) for one in links] + [(one.ref, one.target) for one in conflicts]
    others = _visible(owner, (id_ for pair in ends for id_ in pair if id_ != memory_id))
    return MemoryExplanation(
        memory=memory.record(),
        trust=trusts(owner, [memory])[memory_id],
        claim=Claim.of(memory),
        provenance=provenance if isinstance(provenance, dict) else {},
        status=memory.status,
        status_change=next((one for one in _changes(owner, memory) if "status" in one.before), None),
        links=tuple(links),
        conflicts=tuple(conflicts),
        excluded_by=tuple(rival.id for rival in rivals),
        supersessions=tuple(_chain(owner, memory)),
        sightings=len(sightings(owner, memory_id)),
        contents={one.id: one.content for one in (*others.values(), *rivals)},
    )


def explain_supersession(context: Context, memory_id: str) -> tuple[Supersession, ...]:
    """Return the chain of supersessions that a memory of the user is part of, oldest first, or raise `NotFound`."""
    owner = acting_for(context, memory_id)
    return tuple(_chain(owner, require_memory(owner, memory_id)))


def _chain(context: Context, memory: Memory) -> list[Supersession]:
    """Follow `superseded_by` and `supersedes` in both directions, each memory once, and return the steps in order of time."""
    known, steps = {memory.id: memory}, dict[tuple[str, str], None]()
    waiting = [memory]
    while waiting and len(steps) < _MAX_STEPS:
        one = waiting.pop(0)
        pairs = [(id_, one.id) for id_ in one.supersedes] + ([(one.id, one.superseded_by)] if one.superseded_by else [])
        steps |= dict.fromkeys(pairs)
        new = [id_ for pair in pairs for id_ in pair if id_ not in known]
        found = _visible(context, new)
        known |= found
        waiting += found.values()
    # An id without a memory that the owner sees is erased, or of another agent: it says nothing, and only its id is shown.
    return sorted((_step(context, known, *pair) for pair in steps), key=lambda step: (step.at or "", step.older))


def _step(context: Context, known: dict[str, Memory], older_id: str, newer_id: str) -> Supersession:
    older, newer = known.get(older_id), known.get(newer_id)
    change = _superseding(context, older, newer_id) if older else None
    # Feedback that came later counts in these trusts too; the reason has those of the decision.
    ms = millis(change.created_at) if change else None
    of = trusts(context, [one for one in (older, newer) if one], ms=ms)
    return Supersession(
        older=older_id,
        newer=newer_id,
        at=change.created_at if change else None,
        why=change.why if change else None,
        older_content=older.content if older else None,
        newer_content=newer.content if newer else None,
        older_trust=of[older_id].value if older else None,
        newer_trust=of[newer_id].value if newer else None,
    )


def _superseding(context: Context, older: Memory, newer_id: str) -> Change | None:
    """Return the last change that set `superseded_by` of a memory, if that is the newer one."""
    if older.superseded_by != newer_id:
        return None
    return next((one for one in _changes(context, older) if "superseded_by" in one.before), None)


def _changes(context: Context, memory: Memory) -> list[Change]:
    """Return the changes of a memory, newest first, with what the reader may see of them."""
    rows = context.store.find(Kind.CHANGE, equals("ref", memory.id))
    changes = sorted((Change.of(row) for row in rows), key=lambda change: change.number, reverse=True)
    return since_visible(context.reader, memory, changes)


def _links(context: Context, memory_id: str) -> list[Link]:
    """Return the links from and to a memory whose other end the reader can see, best first."""
    ends = Or((equals("ref", memory_id), equals("target", memory_id)))
    found = [Link.of(row) for row in context.store.find(Kind.LINK, all_of(visible_to(context.reader), ends))]
    shown = _visible(context, (id_ for one in found for id_ in (one.ref, one.target)))
    return sorted((one for one in found if {one.ref, one.target} <= shown.keys()), key=lambda one: -(one.similarity or 0.0))


def _conflicts(context: Context, memory_id: str) -> list[ClaimConflict]:
    """Return the conflicts of a memory with memories that the reader can see, newest first."""
    found = [ClaimConflict.of(row) for row in conflicts_of(context, memory_id)]
    shown = _visible(context, (id_ for one in found for id_ in (one.ref, one.target)))
    return [one for one in found if {one.ref, one.target} <= shown.keys()]


def _visible(context: Context, ids: Iterable[str]) -> dict[str, Memory]:
    """Return the memories with these ids that the reader can see."""
    rows: Iterable[Row] = context.store.get(Kind.MEMORY, list(dict.fromkeys(ids))).values()
    return {row.id: Memory.of(row) for row in intact(context, rows) if visible(context.reader, row)}
