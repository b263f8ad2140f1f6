"""Feedback and review: reinforce and dispute memories, decide about quarantine and conflicts.

Each decision is one change of the store, and the versions of the partitions that it read are
checked: of claims that exclude each other, two are active only if a review or a policy keeps both.
`undo` takes a decision back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from memory_mesh.core.audit import Entry
from memory_mesh.core.claims import Claim, excludes
from memory_mesh.core.claims.rules import (
    ACTIONS,
    KEEP,
    Reviewed,
    status_after_dispute,
    status_after_reinforcement,
)
from memory_mesh.core.errors import (
    InvalidInput,
    NotFound,
    WrongStatus,
    fraction,
    one_of,
    shown,
    whole_number,
)
from memory_mesh.core.graph import link
from memory_mesh.core.model import (
    BY_NAME,
    UNKNOWN_IMPORTANCE,
    Change,
    ClaimConflict,
    Key,
    Kind,
    Memory,
    Reader,
    Row,
    Status,
    Value,
    all_of,
    change_id,
    equals,
    fault,
    iso,
    not_expired,
    of_user,
    partitions,
)
from memory_mesh.flows.audit.chains import own_audit_rows
from memory_mesh.flows.claims.claims import COMPARED, find_claims, schemas, superseded_columns
from memory_mesh.flows.context import Context, Plan, check_texts, commit, intact, require_memory
from memory_mesh.flows.search import usage
from memory_mesh.flows.search.readable import changes_of, records, trusts
from memory_mesh.flows.write.revisions import revise

# --- a memory under review ---
# A review acts for the owner of the memory, and any agent of the same user may call it. The history
# and the audit chain name the agent that decided.

RESOLUTIONS = dict(zip(KEEP, ("kept new", "kept existing", "kept both"), strict=True))
# What `detail` of a resolved conflict says.
RESOLUTION = ("resolution", "reason", "by", "at", "decision")


@dataclass(slots=True)
class Case:
    """A memory under review, what was read about it, and what the decision changes."""

    context: Context
    memory: Memory
    seen: dict[str, int]
    reason: str | None
    ms: int
    conflicts: list[Row] = field(default_factory=list)  # of the memory, pending or resolved
    changed: list[Memory] = field(default_factory=list)
    resolved: list[ClaimConflict] = field(default_factory=list)
    deletes: list[Key] = field(default_factory=list)
    _rows: list[Row] = field(default_factory=list)
    _entries: list[Entry] = field(default_factory=list)

    @classmethod
    def read(cls, context: Context, memory_id: str, reason: str | None = None) -> "Case":
        """Read a memory of the user, its conflicts, and the versions of the partitions with the
        claims that may exclude it."""
        if reason is not None and fault(BY_NAME["why"], reason):
            raise InvalidInput(
                f"reason is {shown(reason)}", expected="text without NUL or half surrogate pairs"
            )
        masked = context.gates.content().redact(reason) if reason else None
        seen: dict[str, int] = {}
        memory = read_own(context, memory_id, seen)
        return cls(
            context,
            memory,
            seen,
            masked,
            context.clock(),
            rows_about(context, Kind.CONFLICT, memory_id),
        )

    @property
    def decision(self) -> str:
        """The id of the change that makes the decision. The other changes and the conflicts name
        it."""
        return change_id(self.memory.id, self.memory.revision + 1)

    def pending(self) -> list[Row]:
        """Return the pending conflicts that the memory is the newer part of."""
        return [
            row
            for row in self.conflicts
            if row.value("status") == "pending" and row.value("ref") == self.memory.id
        ]

    def revise(
        self,
        memory: Memory,
        action: str,
        *,
        why: str | None,
        detail: dict[str, Any] | None = None,
        **columns: Any,
    ) -> None:
        """Add the next revision of a memory to the decision."""
        newer, change, entry = revise(
            self.context, self.ms, memory, action=action, why=why, detail=detail, **columns
        )
        self.changed.append(newer)
        self._rows += [newer.row(replaces=memory.revision), change]
        self._entries.append(entry)

    def resolve(self, row: Row, keep: str) -> None:
        """Add the resolution of a conflict to the decision."""
        before = ClaimConflict.of(row)
        self.put_conflict(
            row,
            replace(before, status="resolved", detail={**before.detail, **self.resolution(keep)}),
        )

    def resolution(self, keep: str) -> dict[str, Value]:
        """Return how a conflict was resolved, for its `detail`."""
        by = self.context.reader.agent_id
        values = (RESOLUTIONS[keep], self.reason, by, iso(self.ms), self.decision)
        return dict(zip(RESOLUTION, values, strict=True))

    def put_conflict(self, row: Row, newer: ClaimConflict) -> None:
        """Add the next revision of a conflict to the decision."""
        newer = replace(newer, revision=row.revision + 1)
        self.resolved.append(newer)
        self._rows.append(newer.row(row.partition, replaces=row.revision))

    def put(self, row: Row) -> None:
        self._rows.append(row)

    def plan(self, answer: Any) -> Plan[Any]:
        """Return the plan that writes the decision with its audit blocks."""
        return Plan(
            answer,
            [*self._rows, *own_audit_rows(self.context, self._entries)],
            self.deletes,
            self.seen,
        )

    def reviewed(self, action: str, note: str | None = None) -> Plan[Reviewed]:
        """Return the plan, with the outcome of the review as its answer."""
        first, *others = records(self.context, self.changed, ms=self.ms)
        conflicts_ = tuple(self.resolved)
        return self.plan(
            Reviewed(
                action=action, memory=first, changed=tuple(others), conflicts=conflicts_, note=note
            )
        )


# --- reading ---


def acting_for(context: Context, memory_id: str) -> Context:
    """Return the context with the owner of a memory as its reader, if that is an agent of the
    same user; else as it is."""
    check_texts(id=memory_id)
    row = context.store.get(Kind.MEMORY, [memory_id]).get(memory_id)
    if row is None or not of_user(reader := context.reader).matches(row):
        return context
    owner = owner_of(Memory.of(row))
    limited = (
        replace(owner, project=reader.project, only_project=True) if reader.only_project else owner
    )
    return replace(context, reader=limited)


def owner_of(memory: Memory) -> Reader:
    """Return the reader that stored a memory."""
    return Reader(memory.user_id, memory.agent_id, memory.session_id)


def read_own(context: Context, memory_id: str, seen: dict[str, int]) -> Memory:
    """Return a memory of the same user, of any agent and session, or raise `NotFound`.

    The versions of the partitions that its owner can see are read before it, and put into `seen`.
    """
    owner = acting_for(context, memory_id)
    for name in partitions(owner.reader):
        seen.setdefault(name, context.store.version(name))
    return require_memory(owner, memory_id)


def rows_about(context: Context, kind: Kind, memory_id: str) -> list[Row]:
    """Return the links or conflicts from and to a memory, newest first."""
    # Each of the two queries uses an index; one query with an `Or` reads every row of the kind.
    found = (
        row for end in ("ref", "target") for row in context.store.find(kind, equals(end, memory_id))
    )
    return sorted(
        {row.id: row for row in found}.values(), key=lambda row: row.age_key, reverse=True
    )


def reopened(conflict: ClaimConflict) -> ClaimConflict:
    """Return a conflict as it was before it was resolved by a review."""
    kept = {name: value for name, value in conflict.detail.items() if name not in RESOLUTION}
    return replace(conflict, status="pending", detail=kept)


def find_rivals(context: Context, memory: Memory) -> list[Memory]:
    """Return the active and disputed memories whose claims exclude the claim of a memory.

    Those that a review or the policy of the predicate keeps together with it are left out.
    """
    claim = Claim.of(memory)
    if (
        claim is None
        or (schema := schemas(context)[claim.predicate]).conflict_policy == "keep_both"
    ):
        return []
    owner = replace(context, reader=owner_of(memory))
    kept = {
        one
        for row in rows_about(context, Kind.CONFLICT, memory.id)
        if _is_kept(row)
        for one in (row.value("ref"), row.value("target"))
    }
    found = (
        other for other in find_claims(owner, [claim.key]) if other.id not in {memory.id, *kept}
    )
    return [
        other for other in found if (known := Claim.of(other)) and excludes(claim, known, schema)
    ]


def ends(context: Context, new: Memory, old: Memory) -> bool:
    """Return whether a memory says that the claim of another one is no longer valid."""
    claim, known = Claim.of(new), Claim.of(old)
    if claim is None or known is None or claim.exclusive or claim.key != known.key:
        return False
    schema = schemas(context)[claim.predicate]
    return claim.window.end is not None and schema.normalized(claim.value) == schema.normalized(
        known.value
    )


def _is_kept(row: Row) -> bool:
    detail = row.value("detail")
    return (
        row.value("status") == "resolved"
        and isinstance(detail, dict)
        and detail.get("resolution") == RESOLUTIONS["both"]
    )


_STATUSES = ("pending", "resolved")
_DECIDABLE = (*COMPARED, Status.QUARANTINED)
_STORE_AGAIN = "store the claim again if it is valid again"


# --- feedback ---


def reinforce(context: Context, memory_id: str, boost: object = 0.1) -> Memory:
    """Count that a memory was confirmed, raise its importance, and count it as used.

    A disputed memory is active again when reinforcements and disputes are even, unless an active
    claim excludes it.
    """
    more = fraction("boost", boost)

    def decide() -> Plan[Memory]:
        case = Case.read(context, memory_id)
        importance = (
            UNKNOWN_IMPORTANCE if case.memory.importance is None else case.memory.importance
        )
        columns: dict[str, Any] = {
            "reinforcements": case.memory.reinforcements + 1,
            "importance": min(1.0, round(importance + more, 6)),
        }
        newer = replace(case.memory, **columns)
        status, why = status_after_reinforcement(newer), None
        if status != newer.status and (rivals := find_rivals(context, case.memory)):
            status, why = (
                newer.status,
                f"stays {newer.status}: {rivals[0].id} is active and excludes it",
            )
        case.revise(case.memory, "reinforce", why=why, **columns, status=status)
        return case.plan(case.changed[0])

    memory = commit(context, decide)
    usage.count(replace(context, reader=owner_of(memory)), [memory.id])
    return memory


def dispute(context: Context, memory_id: str, reason: str | None = None) -> Memory:
    """Count that a memory was disputed, and keep the reason in its history.

    With more disputes than reinforcements it is disputed, and quarantined with three more or with a
    trust below 0.3.
    """

    def decide() -> Plan[Memory]:
        case = Case.read(context, memory_id, reason)
        newer = replace(case.memory, disputes=case.memory.disputes + 1)
        status = status_after_dispute(newer, trusts(context, [newer], ms=case.ms)[newer.id].value)
        case.revise(case.memory, "dispute", why=case.reason, disputes=newer.disputes, status=status)
        return case.plan(case.changed[0])

    return commit(context, decide)


# --- review ---


def list_quarantined(
    context: Context, agent: str | None = None, limit: object = 50
) -> list[Memory]:
    """Return the quarantined memories of the user, of one agent where given, newest first."""
    most = whole_number("limit", limit)
    of_agent = []
    if agent is not None:
        check_texts(agent_id=agent)
        of_agent.append(equals("agent_id", agent))
    alive = not_expired(iso(context.clock()))
    waiting = all_of(
        of_user(context.reader), equals("status", Status.QUARANTINED), alive, *of_agent
    )
    return [
        Memory.of(row)
        for row in intact(context, context.store.find(Kind.MEMORY, waiting, limit=most))
    ]


def review_quarantine(
    context: Context, memory_id: str, action: object, reason: str | None = None
) -> Reviewed:
    """Decide about a quarantined memory: activate it, reject it, or keep it together with the
    claims that it excludes."""
    chosen = one_of("action", action, ACTIONS)

    def decide() -> Plan[Reviewed]:
        case = Case.read(context, memory_id, reason)
        if case.memory.status != Status.QUARANTINED:
            raise WrongStatus(
                f"{memory_id} is {case.memory.status}, not quarantined",
                remedy=(
                    "`memory-mesh quarantined` or `graph.list_quarantined` shows what waits for "
                    "a review"
                ),
            )
        _check_alive(case)
        return _DECISIONS[chosen](case)

    return commit(context, decide)


def conflicts(context: Context, status: object = "pending") -> list[ClaimConflict]:
    """Return the conflicts between memories of the user, newest first. One of an erased or expired
    memory is left out.

    So is a pending one of a new memory that was archived or superseded since: there is nothing left
    to decide.
    """
    chosen = one_of("status", status, _STATUSES)
    where = all_of(equals("user_id", context.reader.user_id), equals("status", chosen))
    found = [ClaimConflict.of(row) for row in context.store.find(Kind.CONFLICT, where)]
    known = context.store.get(
        Kind.MEMORY, list({id_ for one in found for id_ in (one.ref, one.target)})
    )
    own = all_of(of_user(context.reader), not_expired(iso(context.clock())))
    alive = {row.id: row for row in intact(context, known.values()) if own.matches(row)}
    left = [one for one in found if {one.ref, one.target} <= alive.keys()]
    return [
        one for one in left if chosen == "resolved" or alive[one.ref].value("status") in _DECIDABLE
    ]


def resolve_conflict(
    context: Context, conflict_id: str, keep: object, reason: str | None = None
) -> Reviewed:
    """Resolve a pending conflict: keep the new memory, the existing one or both.

    The new one then is active, or archived, with all that follows from it. If both are kept and
    other conflicts of the new one are pending, it stays quarantined until they are resolved too.
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
            raise WrongStatus(
                f"{conflict_id} is resolved already: {how}",
                remedy="`memory-mesh review --undo` or `graph.undo_review` takes the decision back",
            )
        case = Case.read(context, conflict.ref, reason)
        if case.memory.status not in _DECIDABLE:
            raise WrongStatus(f"{conflict.ref} is {case.memory.status} by now", remedy=_STORE_AGAIN)
        _check_alive(case)
        if chosen != "both":
            return _DECISIONS["activate" if chosen == "new" else "reject"](case)
        return _keep_both(case, conflict.target)

    return commit(context, decide)


# --- deciding ---


def _check_alive(case: Case) -> None:
    """Raise `WrongStatus` if the memory has expired: it would replace others, and be found by
    nobody."""
    if case.memory.expires_at is not None and case.memory.expires_at <= iso(case.ms):
        raise WrongStatus(
            f"{case.memory.id} expired at {case.memory.expires_at}", remedy=_STORE_AGAIN
        )


def _activate(case: Case) -> Plan[Reviewed]:
    """Make the memory active, resolve its conflicts in its favour, and supersede or end what it
    is in conflict with."""
    new = case.memory
    about = [str(row.value("target")) for row in case.pending()]
    stored = intact(case.context, case.context.store.get(Kind.MEMORY, about).values())
    targets = [Memory.of(row) for row in stored if row.value("status") in COMPARED]
    ended = {one.id: one for one in targets if ends(case.context, new, one)}
    # Without claims that say so, a conflict is about a memory that the new one is the next version
    # of.
    changed = {
        row.value("target")
        for row in case.pending()
        if "existing" in cast("dict[str, Value]", row.value("detail") or {})
    }
    versions = [one for one in targets if new.claim_key is None or one.claim_key != new.claim_key]
    # One with a new text has lost its claim.
    versions = [one for one in versions if one.claim or one.id not in changed]
    losers = {one.id: one for one in (*find_rivals(case.context, new), *versions)}
    supersedes = [*new.supersedes, *(id_ for id_ in losers if id_ not in new.supersedes)]
    detail = {"with": [*losers, *ended], "decision": case.decision}
    case.revise(
        new,
        "activate",
        why=case.reason,
        detail=detail,
        status=Status.ACTIVE.value,
        supersedes=supersedes,
    )
    # Without the reason: others may see the histories of these, and they outlive an erasure of the
    # memory that it is about.
    why = f"a review activated {new.id}, which takes its place"
    for loser in losers.values():
        case.revise(
            loser,
            "supersede",
            why=why,
            detail={"decision": case.decision},
            **superseded_columns(new, loser),
        )
        case.put(link(new, loser, "supersedes", case.ms).row(new.partition))
    for one in ended.values():
        case.revise(
            one, "end", why=why, detail={"decision": case.decision}, valid_until=new.valid_until
        )
    for row in case.pending():
        case.resolve(row, "new")
    return case.reviewed("activate")


def _reject(case: Case) -> Plan[Reviewed]:
    """Archive the memory and resolve its conflicts against it."""
    detail: dict[str, Any] = {"with": [], "decision": case.decision}
    case.revise(case.memory, "reject", why=case.reason, detail=detail, status=Status.ARCHIVED.value)
    for row in case.pending():
        case.resolve(row, "existing")
    return case.reviewed("reject")


def _keep_both(case: Case, target: str | None = None) -> Plan[Reviewed]:
    """Keep the memory together with the claims that exclude it; with a target, with that one
    only."""
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


_DECISIONS: dict[str, Callable[[Case], Plan[Reviewed]]] = {
    "activate": _activate,
    "reject": _reject,
    "keep_both": _keep_both,
}


def _kept(case: Case, rival: Memory) -> ClaimConflict:
    """Return the resolved conflict that records that a memory is kept together with another one."""
    at = iso(case.ms)
    return ClaimConflict(
        id=case.context.ids.new("conflict", case.ms), created_at=at, ref=case.memory.id,
        target=rival.id, status="resolved", why="a review keeps both",
        detail={"policy": "review", **case.resolution("both")}, user_id=case.memory.user_id,
        agent_id=case.memory.agent_id,
    )  # fmt: skip


# --- undo ---
# Every memory and conflict that a decision changed is as before, by a new change in its history.


def undo_review(context: Context, memory_id: str) -> Reviewed:
    """Take back the last review decision about a memory: each memory and conflict that it changed
    is as before.

    Raise `WrongStatus` if there is none, or if something that it changed was changed again since.
    """

    def decide() -> Plan[Reviewed]:
        case = Case.read(context, memory_id)
        changes = changes_of(context, memory_id)
        decision = next(
            (one for one in reversed(_in_force(changes)) if one.action in ACTIONS), None
        )
        if decision is None:
            raise WrongStatus(
                f"there is no review decision about {memory_id} to undo",
                remedy="`memory-mesh history` shows its changes",
            )
        others = _others(case, decision)
        for memory in (case.memory, *others):
            before = _before(context, memory, decision.id)
            case.revise(
                memory,
                "undo",
                why=f"undoes {decision.action}",
                detail={"undoes": decision.id},
                **before,
            )
        _check_restored(case)
        for row in case.conflicts:
            one = ClaimConflict.of(row)
            if one.detail.get("decision") != decision.id:
                continue
            if one.detail.get("policy") == "review":  # the decision made it
                case.deletes.append(row.key)
            else:
                case.put_conflict(row, reopened(one))
        links = context.store.find(
            Kind.LINK, all_of(equals("ref", memory_id), equals("link_type", "supersedes"))
        )
        case.deletes += [
            row.key for row in links if row.value("target") in {memory.id for memory in others}
        ]
        return case.reviewed("undo")

    return commit(context, decide)


def _others(case: Case, decision: Change) -> list[Memory]:
    """Return the other memories that a decision changed, without those that are erased since."""
    ids = (decision.detail or {}).get("with")
    left = case.context.store.get(
        Kind.MEMORY, [str(id_) for id_ in ids] if isinstance(ids, list) else []
    )
    return [read_own(case.context, id_, case.seen) for id_ in left]


def _in_force(changes: Sequence[Change]) -> list[Change]:
    """Return the changes that were not undone, without those that undo."""
    undone = {(one.detail or {}).get("undoes") for one in changes} - {None}
    by_decision = {
        one.id for one in changes if {one.id, (one.detail or {}).get("decision")} & undone
    }
    return [
        one for one in changes if one.id not in by_decision and "undoes" not in (one.detail or {})
    ]


def _before(context: Context, memory: Memory, decision: str) -> dict[str, Any]:
    """Return the columns of a memory as they were before a decision, or raise `WrongStatus` if
    one was changed since."""
    changes = _in_force(changes_of(context, memory.id))
    made = next((one for one in changes if (one.detail or {}).get("decision") == decision), None)
    before = {} if made is None else dict(made.before)
    for later in (one for one in changes if made and one.number > made.number):
        if touched := sorted(before.keys() & later.before.keys()):
            what = (
                f"{memory.id} was changed since: {touched[0]} by {later.action} at "
                f"{later.created_at}"
            )
            raise WrongStatus(
                f"the decision cannot be undone: {what}",
                remedy="`memory-mesh history` shows its changes",
            )
    return before


def _check_restored(case: Case) -> None:
    """Raise `WrongStatus` if a memory that is active again excludes a claim that became active
    since."""
    changed = {memory.id for memory in case.changed}
    for memory in case.changed:
        rivals = find_rivals(case.context, memory) if memory.status == Status.ACTIVE else []
        if rival := next((one for one in rivals if one.id not in changed), None):
            what = (
                f"{memory.id} would be active again, but {rival.id} excludes it and is "
                f"{rival.status} since"
            )
            raise WrongStatus(
                f"the decision cannot be undone: {what}", remedy="review that one first"
            )
