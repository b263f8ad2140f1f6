"""Undo a review: every memory and conflict that a decision changed is as before, by a new change in its history."""

from collections.abc import Sequence
from typing import Any

from memory_mesh.core.claims.reviews import ACTIONS, Reviewed
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import Change, ClaimConflict, Kind, Memory, Status, all_of, equals
from memory_mesh.flows.cases import Case, find_rivals, read_own, reopened
from memory_mesh.flows.context import Context, Plan, commit
from memory_mesh.flows.past import changes_of


def undo_review(context: Context, memory_id: str) -> Reviewed:
    """Take back the last review decision about a memory: each memory and conflict that it changed is as before.

    Raise `InvalidInput` if there is none, or if something that it changed was changed again since.
    """

    def decide() -> Plan[Reviewed]:
        case = Case.read(context, memory_id)
        changes = changes_of(context, memory_id)
        decision = next((one for one in reversed(_in_force(changes)) if one.action in ACTIONS), None)
        if decision is None:
            raise InvalidInput(
                f"there is no review decision about {memory_id} to undo", remedy="`memory-mesh history` shows its changes"
            )
        others = _others(case, decision)
        for memory in (case.memory, *others):
            before = _before(context, memory, decision.id)
            case.revise(memory, "undo", why=f"undoes {decision.action}", detail={"undoes": decision.id}, **before)
        _check_restored(case)
        for row in case.conflicts:
            one = ClaimConflict.of(row)
            if one.detail.get("decision") != decision.id:
                continue
            if one.detail.get("policy") == "review":  # the decision made it
                case.deletes.append(row.key)
            else:
                case.put_conflict(row, reopened(one))
        links = context.store.find(Kind.LINK, all_of(equals("ref", memory_id), equals("link_type", "supersedes")))
        case.deletes += [row.key for row in links if row.value("target") in {memory.id for memory in others}]
        return case.reviewed("undo")

    return commit(context, decide)


def _others(case: Case, decision: Change) -> list[Memory]:
    """Return the other memories that a decision changed, without those that are erased since."""
    ids = (decision.detail or {}).get("with")
    left = case.context.store.get(Kind.MEMORY, [str(id_) for id_ in ids] if isinstance(ids, list) else [])
    return [read_own(case.context, id_, case.seen) for id_ in left]


def _in_force(changes: Sequence[Change]) -> list[Change]:
    """Return the changes that were not undone, without those that undo."""
    undone = {(one.detail or {}).get("undoes") for one in changes} - {None}
    by_decision = {one.id for one in changes if {one.id, (one.detail or {}).get("decision")} & undone}
    return [one for one in changes if one.id not in by_decision and "undoes" not in (one.detail or {})]


def _before(context: Context, memory: Memory, decision: str) -> dict[str, Any]:
    """Return the columns of a memory as they were before a decision, or raise `InvalidInput` if one was changed since."""
    changes = _in_force(changes_of(context, memory.id))
    made = next((one for one in changes if (one.detail or {}).get("decision") == decision), None)
    before = {} if made is None else dict(made.before)
    for later in (one for one in changes if made and one.number > made.number):
        if touched := sorted(before.keys() & later.before.keys()):
            what = f"{memory.id} was changed since: {touched[0]} by {later.action} at {later.created_at}"
            raise InvalidInput(f"the decision cannot be undone: {what}", remedy="`memory-mesh history` shows its changes")
    return before


def _check_restored(case: Case) -> None:
    """Raise `InvalidInput` if a memory that is active again excludes a claim that became active since."""
    changed = {memory.id for memory in case.changed}
    for memory in case.changed:
        rivals = find_rivals(case.context, memory) if memory.status == Status.ACTIVE else []
        if rival := next((one for one in rivals if one.id not in changed), None):
            what = f"{memory.id} would be active again, but {rival.id} excludes it and is {rival.status} since"
            raise InvalidInput(f"the decision cannot be undone: {what}", remedy="review that one first")
