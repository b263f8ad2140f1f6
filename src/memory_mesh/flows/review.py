"""Feedback and review: reinforce and dispute memories, decide about quarantined ones and about conflicts.

Each decision is one change of the store, and the versions of the partitions that it read are checked: of claims that exclude
each other, two are active only if a review or a policy keeps both. `undo` takes a decision back.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from memory_mesh.core.checks import fraction, one_of, whole_number
from memory_mesh.core.claims.reviews import (
    ACTIONS,
    KEEP,
    Reviewed,
    status_after_dispute,
    status_after_reinforcement,
)
from memory_mesh.core.errors import InvalidInput, NotFound, shown
from memory_mesh.core.graph import link
from memory_mesh.core.model import (
    UNKNOWN_IMPORTANCE,
    ClaimConflict,
    Kind,
    Memory,
    Status,
    Value,
    all_of,
    equals,
    iso,
    not_expired,
    of_user,
)
from memory_mesh.flows import usage
from memory_mesh.flows.cases import Case, ends, find_rivals, owner_of
from memory_mesh.flows.claims import COMPARED, superseded_columns
from memory_mesh.flows.context import Context, Plan, check_texts, commit, intact
from memory_mesh.flows.trust import trusts

_STATUSES = ("pending", "resolved")
_DECIDABLE = (*COMPARED, Status.QUARANTINED)
_STORE_AGAIN = "store the claim again if it is valid again"


# --- feedback ---


def reinforce(context: Context, memory_id: str, boost: object = 0.1) -> Memory:
    """Count that a memory was confirmed, raise its importance, and count it as used.

    A disputed memory is active again when reinforcements and disputes are even, unless an active claim excludes it.
    """
    more = fraction("boost", boost)

    def decide() -> Plan[Memory]:
        case = Case.read(context, memory_id)
        importance = UNKNOWN_IMPORTANCE if case.memory.importance is None else case.memory.importance
        columns: dict[str, Any] = {
            "reinforcements": case.memory.reinforcements + 1,
            "importance": min(1.0, round(importance + more, 6)),
        }
        newer = replace(case.memory, **columns)
        status, why = status_after_reinforcement(newer), None
        if status != newer.status and (rivals := find_rivals(context, case.memory)):
            status, why = newer.status, f"stays {newer.status}: {rivals[0].id} is active and excludes it"
        case.revise(case.memory, "reinforce", why=why, **columns, status=status)
        return case.plan(case.changed[0])

    memory = commit(context, decide)
    usage.count(replace(context, reader=owner_of(memory)), [memory.id])
    return memory


def dispute(context: Context, memory_id: str, reason: str | None = None) -> Memory:
    """Count that a memory was disputed, and keep the reason in its history.

    With more disputes than reinforcements it is disputed, and quarantined with three more or with a trust below 0.3.
    """

    def decide() -> Plan[Memory]:
        case = Case.read(context, memory_id, reason)
        newer = replace(case.memory, disputes=case.memory.disputes + 1)
        status = status_after_dispute(newer, trusts(context, [newer], ms=case.ms)[newer.id].value)
        case.revise(case.memory, "dispute", why=case.reason, disputes=newer.disputes, status=status)
        return case.plan(case.changed[0])

    return commit(context, decide)


# --- review ---


def list_quarantined(context: Context, agent: str | None = None, limit: object = 50) -> list[Memory]:
    """Return the quarantined memories of the user, of one agent where given, newest first."""
    most = whole_number("limit", limit)
    of_agent = []
    if agent is not None:
        check_texts(agent_id=agent)
        of_agent.append(equals("agent_id", agent))
    alive = not_expired(iso(context.clock()))
    waiting = all_of(of_user(context.reader), equals("status", Status.QUARANTINED), alive, *of_agent)
    return [Memory.of(row) for row in intact(context, context.store.find(Kind.MEMORY, waiting, limit=most))]


def review_quarantine(context: Context, memory_id: str, action: object, reason: str | None = None) -> Reviewed:
    """Decide about a quarantined memory: activate it, reject it, or keep it together with the claims that it excludes."""
    chosen = one_of("action", action, ACTIONS)

    def decide() -> Plan[Reviewed]:
        case = Case.read(context, memory_id, reason)
        if case.memory.status != Status.QUARANTINED:
            remedy = "`memory-mesh quarantined` or `graph.list_quarantined` shows what waits for a review"
            raise InvalidInput(f"{memory_id} is {case.memory.status}, not quarantined", remedy=remedy)
        _check_alive(case)
        return _DECISIONS[chosen](case)

    return commit(context, decide)


def conflicts(context: Context, status: object = "pending") -> list[ClaimConflict]:
    """Return the conflicts between memories of the user, newest first. One of an erased or expired memory is left out.

    So is a pending one of a new memory that was archived or superseded since: there is nothing left to decide.
    """
    chosen = one_of("status", status, _STATUSES)
    where = all_of(equals("user_id", context.reader.user_id), equals("status", chosen))
    found = [ClaimConflict.of(row) for row in context.store.find(Kind.CONFLICT, where)]
    known = context.store.get(Kind.MEMORY, list({id_ for one in found for id_ in (one.ref, one.target)}))
    own = all_of(of_user(context.reader), not_expired(iso(context.clock())))
    alive = {row.id: row for row in intact(context, known.values()) if own.matches(row)}
    left = [one for one in found if {one.ref, one.target} <= alive.keys()]
    return [one for one in left if chosen == "resolved" or alive[one.ref].value("status") in _DECIDABLE]


def resolve_conflict(context: Context, conflict_id: str, keep: object, reason: str | None = None) -> Reviewed:
    """Resolve a pending conflict: keep the new memory, the existing one or both.

    The new one then is active, or archived, with all that follows from it. If both are kept and other conflicts of the new one
    are pending, it stays quarantined until they are resolved too.
    """
    chosen = one_of("keep", keep, KEEP)
    check_texts(id=conflict_id)

    def decide() -> Plan[Reviewed]:
        row = context.store.get(Kind.CONFLICT, [conflict_id]).get(conflict_id)
        if row is None or row.value("user_id") != context.reader.user_id:
            raise NotFound(
                f"no conflict {shown(conflict_id, max_length=80)}",
                remedy="`memory-mesh conflicts` or `graph.conflicts` lists them",
            )
        conflict = ClaimConflict.of(row)
        if conflict.status != "pending":
            how = conflict.detail.get("resolution")
            remedy = "`memory-mesh review --undo` or `graph.undo_review` takes the decision back"
            raise InvalidInput(f"{conflict_id} is resolved already: {how}", remedy=remedy)
        case = Case.read(context, conflict.ref, reason)
        if case.memory.status not in _DECIDABLE:
            raise InvalidInput(f"{conflict.ref} is {case.memory.status} by now", remedy=_STORE_AGAIN)
        _check_alive(case)
        if chosen != "both":
            return _DECISIONS["activate" if chosen == "new" else "reject"](case)
        return _keep_both(case, conflict.target)

    return commit(context, decide)


# --- deciding ---


def _check_alive(case: Case) -> None:
    """Raise `InvalidInput` if the memory has expired: it would replace others, and be found by nobody."""
    if case.memory.expires_at is not None and case.memory.expires_at <= iso(case.ms):
        raise InvalidInput(f"{case.memory.id} expired at {case.memory.expires_at}", remedy=_STORE_AGAIN)


def _activate(case: Case) -> Plan[Reviewed]:
    """Make the memory active, resolve its conflicts in its favour, and supersede or end what it is in conflict with."""
    new = case.memory
    targets = _targets(case)
    ended = {one.id: one for one in targets if ends(case.context, new, one)}
    # Without claims that say so, a conflict is about a memory that the new one is the next version of.
    changed = {row.value("target") for row in case.pending() if "existing" in cast("dict[str, Value]", row.value("detail") or {})}
    versions = [one for one in targets if new.claim_key is None or one.claim_key != new.claim_key]
    versions = [one for one in versions if one.claim or one.id not in changed]  # one with a new text has lost its claim
    losers = {one.id: one for one in (*find_rivals(case.context, new), *versions)}
    supersedes = [*new.supersedes, *(id_ for id_ in losers if id_ not in new.supersedes)]
    detail = {"with": [*losers, *ended], "decision": case.decision}
    case.revise(new, "activate", why=case.reason, detail=detail, status=Status.ACTIVE.value, supersedes=supersedes)
    # Without the reason: others may see the histories of these, and they outlive an erasure of the memory that it is about.
    why = f"a review activated {new.id}, which takes its place"
    for loser in losers.values():
        case.revise(loser, "supersede", why=why, detail={"decision": case.decision}, **superseded_columns(new, loser))
        case.put(link(new, loser, "supersedes", case.ms).row(new.partition))
    for one in ended.values():
        case.revise(one, "end", why=why, detail={"decision": case.decision}, valid_until=new.valid_until)
    for row in case.pending():
        case.resolve(row, "new")
    return case.reviewed("activate")


def _targets(case: Case) -> list[Memory]:
    """Return the active and disputed memories that the pending conflicts are with."""
    stored = case.context.store.get(Kind.MEMORY, [str(row.value("target")) for row in case.pending()])
    return [Memory.of(row) for row in intact(case.context, stored.values()) if row.value("status") in COMPARED]


def _reject(case: Case) -> Plan[Reviewed]:
    """Archive the memory and resolve its conflicts against it."""
    detail: dict[str, Any] = {"with": [], "decision": case.decision}
    case.revise(case.memory, "reject", why=case.reason, detail=detail, status=Status.ARCHIVED.value)
    for row in case.pending():
        case.resolve(row, "existing")
    return case.reviewed("reject")


def _keep_both(case: Case, target: str | None = None) -> Plan[Reviewed]:
    """Keep the memory together with the claims that exclude it; with a target, with that one only."""
    here = [row for row in case.pending() if target in (None, row.value("target"))]
    left = [row for row in case.pending() if row not in here]
    known = {row.value("target") for row in here}
    rivals = [rival for rival in find_rivals(case.context, case.memory) if rival.id not in known]
    status, note = Status.ACTIVE.value, None
    if target is not None and (left or rivals):
        other = left[0].value("target") if left else rivals[0].id
        status, note = case.memory.status, f"stays {case.memory.status}: it also excludes {other}"
    detail: dict[str, Any] = {"with": [], "decision": case.decision}
    case.revise(case.memory, "keep_both", why=case.reason or note, detail=detail, status=status)
    for row in here:
        case.resolve(row, "both")
    for rival in rivals if target is None else []:
        case.put(_kept(case, rival).row(case.memory.partition))
    return case.reviewed("keep_both", note)


_DECISIONS: dict[str, Callable[[Case], Plan[Reviewed]]] = {"activate": _activate, "reject": _reject, "keep_both": _keep_both}


def _kept(case: Case, rival: Memory) -> ClaimConflict:
    """Return the resolved conflict that records that a memory is kept together with another one."""
    at = iso(case.ms)
    return ClaimConflict(
        id=case.context.ids.new("conflict", case.ms), created_at=at, ref=case.memory.id, target=rival.id, status="resolved",
        why="a review keeps both", detail={"policy": "review", **case.resolution("both")},
        user_id=case.memory.user_id, agent_id=case.memory.agent_id,
    )  # fmt: skip
