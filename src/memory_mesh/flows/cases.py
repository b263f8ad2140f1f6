"""A memory under review: what is read about it, and what a decision changes.

A review acts for the owner of the memory, and any agent of the same user may call it. The history and the audit chain name the
agent that decided.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from memory_mesh.core.audit import Entry
from memory_mesh.core.claims import Claim, excludes
from memory_mesh.core.claims.reviews import KEEP, Reviewed
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model import (
    BY_NAME,
    ClaimConflict,
    Key,
    Kind,
    Memory,
    Reader,
    Row,
    Value,
    change_id,
    equals,
    fault,
    iso,
    of_user,
    partitions,
)
from memory_mesh.flows.chains import own_audit_rows
from memory_mesh.flows.claims import find_claims, schemas
from memory_mesh.flows.context import Context, Plan, check_texts, require_memory
from memory_mesh.flows.revisions import revise
from memory_mesh.flows.trust import records

RESOLUTIONS = dict(zip(KEEP, ("kept new", "kept existing", "kept both"), strict=True))
RESOLUTION = ("resolution", "reason", "by", "at", "decision")  # what `detail` of a resolved conflict says


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
        """Read a memory of the user, its conflicts, and the versions of the partitions with the claims that may exclude it."""
        if reason is not None and fault(BY_NAME["why"], reason):
            raise InvalidInput(f"reason is {shown(reason)}", expected="text without NUL or half surrogate pairs")
        masked = context.gate().redact(reason) if reason else None
        seen: dict[str, int] = {}
        memory = read_own(context, memory_id, seen)
        return cls(context, memory, seen, masked, context.clock(), rows_about(context, Kind.CONFLICT, memory_id))

    @property
    def decision(self) -> str:
        """The id of the change that makes the decision. The other changes and the conflicts name it."""
        return change_id(self.memory.id, self.memory.revision + 1)

    def pending(self) -> list[Row]:
        """Return the pending conflicts that the memory is the newer part of."""
        return [row for row in self.conflicts if row.value("status") == "pending" and row.value("ref") == self.memory.id]

    def revise(
        self, memory: Memory, action: str, *, why: str | None, detail: dict[str, Any] | None = None, **columns: Any
    ) -> None:
        """Add the next revision of a memory to the decision."""
        newer, change, entry = revise(self.context, self.ms, memory, action=action, why=why, detail=detail, **columns)
        self.changed.append(newer)
        self._rows += [newer.row(replaces=memory.revision), change]
        self._entries.append(entry)

    def resolve(self, row: Row, keep: str) -> None:
        """Add the resolution of a conflict to the decision."""
        before = ClaimConflict.of(row)
        self.put_conflict(row, replace(before, status="resolved", detail={**before.detail, **self.resolution(keep)}))

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
        return Plan(answer, [*self._rows, *own_audit_rows(self.context, self._entries)], self.deletes, self.seen)

    def reviewed(self, action: str, note: str | None = None) -> Plan[Reviewed]:
        """Return the plan, with the outcome of the review as its answer."""
        first, *others = records(self.context, self.changed, ms=self.ms)
        conflicts_ = tuple(self.resolved)
        return self.plan(Reviewed(action=action, memory=first, changed=tuple(others), conflicts=conflicts_, note=note))


# --- reading ---


def acting_for(context: Context, memory_id: str) -> Context:
    """Return the context with the owner of a memory as its reader, if that is an agent of the same user; else as it is."""
    check_texts(id=memory_id)
    row = context.store.get(Kind.MEMORY, [memory_id]).get(memory_id)
    if row is None or not of_user(reader := context.reader).matches(row):
        return context
    owner = owner_of(Memory.of(row))
    limited = replace(owner, project=reader.project, only_project=True) if reader.only_project else owner
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
    found = (row for end in ("ref", "target") for row in context.store.find(kind, equals(end, memory_id)))
    return sorted({row.id: row for row in found}.values(), key=lambda row: row.age_key, reverse=True)


def reopened(conflict: ClaimConflict) -> ClaimConflict:
    """Return a conflict as it was before it was resolved by a review."""
    kept = {name: value for name, value in conflict.detail.items() if name not in RESOLUTION}
    return replace(conflict, status="pending", detail=kept)


def find_rivals(context: Context, memory: Memory) -> list[Memory]:
    """Return the active and disputed memories whose claims exclude the claim of a memory.

    Those that a review or the policy of the predicate keeps together with it are left out.
    """
    claim = Claim.of(memory)
    if claim is None or (schema := schemas(context)[claim.predicate]).conflict_policy == "keep_both":
        return []
    owner = replace(context, reader=owner_of(memory))
    kept = {
        one
        for row in rows_about(context, Kind.CONFLICT, memory.id)
        if _is_kept(row)
        for one in (row.value("ref"), row.value("target"))
    }
    found = (other for other in find_claims(owner, [claim.key]) if other.id not in {memory.id, *kept})
    return [other for other in found if (known := Claim.of(other)) and excludes(claim, known, schema)]


def ends(context: Context, new: Memory, old: Memory) -> bool:
    """Return whether a memory says that the claim of another one is no longer valid."""
    claim, known = Claim.of(new), Claim.of(old)
    if claim is None or known is None or claim.exclusive or claim.key != known.key:
        return False
    schema = schemas(context)[claim.predicate]
    return claim.window.end is not None and schema.normalized(claim.value) == schema.normalized(known.value)


def _is_kept(row: Row) -> bool:
    detail = row.value("detail")
    return row.value("status") == "resolved" and isinstance(detail, dict) and detail.get("resolution") == RESOLUTIONS["both"]
