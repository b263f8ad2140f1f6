"""Archive memories and skills: they are kept with their history, and only reads that ask for archived ones show them."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from memory_mesh.core.audit import Entry
from memory_mesh.core.model import Kind, Memory, Row, Status, batches
from memory_mesh.flows import revisions
from memory_mesh.flows.chains import own_audit_rows
from memory_mesh.flows.context import Context, Plan, commit, intact

_AT_ONCE = 500

Reason = Callable[[Memory], str | None]  # None: the memory stays


def archive(
    context: Context, kind: Kind, ids: Iterable[str], reason: Reason, *, action: str = "archive", status: Status = Status.ACTIVE,
) -> list[str]:  # fmt: skip
    """Archive those of these memories or skills that are active, or have another status, and have a reason, and return their ids.

    The history records the action and the reason.
    """
    plan = partial(_plan, context, kind, reason=reason, action=action, status=status)
    archived = (commit(context, partial(plan, batch)) for batch in batches(ids, _AT_ONCE))
    return [id_ for batch in archived for id_ in batch]


def _plan(context: Context, kind: Kind, ids: Sequence[str], *, reason: Reason, action: str, status: Status) -> Plan[list[str]]:
    """Return the plan for one batch. What was erased, archived or changed meanwhile, so that it has no reason, stays as it is."""
    partitions = {row.partition for row in context.store.get(kind, ids).values()}
    seen = {name: context.store.version(name) for name in partitions}  # before the rows that are decided on
    rows = (row for row in context.store.get(kind, ids).values() if row.partition in seen)
    archived, puts, entries = list[str](), list[Row](), list[Entry]()
    for memory in map(Memory.of, intact(context, rows)):
        if memory.status == status and (why := reason(memory)):
            newer, change, entry = revisions.revise(
                context, context.clock(), memory, action=action, why=why, status=Status.ARCHIVED.value
            )
            puts += [newer.row(replaces=memory.revision), change]
            entries.append(entry)
            archived.append(memory.id)
    return Plan(archived, [*puts, *own_audit_rows(context, entries)], seen=seen) if puts else Plan(archived)
