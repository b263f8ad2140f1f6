"""The next revision of a memory, with its history row and its audit entry, and archiving."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from memory_mesh.core import model
from memory_mesh.core.audit import Entry
from memory_mesh.core.lane import is_of_lane, synced
from memory_mesh.core.model import AnyMemory, Kind, Memory, Row, Status, batches, iso
from memory_mesh.flows.audit.chains import own_audit_rows, retain_entry
from memory_mesh.flows.context import Context, Plan, commit, intact


def plan_revision(
    context: Context,
    memory: AnyMemory,
    data_version: Hashable = None,
    *,
    action: str,
    why: str | None = None,
    **updates: Any,
) -> Plan[AnyMemory]:
    """Return the plan that writes the next revision of a memory with its history and its audit
    block."""
    ms = context.clock()
    reason = context.gates.content().redact(why) if why else None
    newer, change, entry = revise(context, ms, memory, action=action, why=reason, **updates)
    return Plan(
        newer,
        [
            newer.row(replaces=memory.revision),
            change,
            *own_audit_rows(context, [entry], data_version),
        ],
    )


def revise(
    context: Context, ms: int, memory: AnyMemory, *, action: str, **given: Any
) -> tuple[AnyMemory, Row, Entry]:
    """Return the next revision of a memory, its history row and its audit entry. All three must
    be written together."""
    # Without a salt, erased columns could be guessed from the hashes in the block. Memory Lane's
    # rows have none.
    given["salt"] = memory.salt or context.ids.salt()
    if is_of_lane(memory):
        given["metadata"] = synced(
            replace(
                memory, **{name: given[name] for name in given if name not in ("why", "detail")}
            )
        ).metadata
    newer, change = model.revise(
        memory, at=iso(ms), by=context.reader.agent_id, action=action, **given
    )
    row = change.row(newer.partition)
    return newer, row, retain_entry(context, ms, newer, action, row)


# --- archiving ---
# Archived memories and skills are kept with their history, and only reads that ask for them show
# them.

_AT_ONCE = 500

Reason = Callable[[Memory], str | None]  # None: the memory stays


def archive(
    context: Context, kind: Kind, ids: Iterable[str], reason: Reason, *, action: str = "archive",
    status: Status = Status.ACTIVE,
) -> list[str]:  # fmt: skip
    """Archive those of these memories or skills that are active, or have another status, and have a
    reason, and return their ids.

    The history records the action and the reason.
    """
    plan = partial(_plan, context, kind, reason=reason, action=action, status=status)
    archived = (commit(context, partial(plan, batch)) for batch in batches(ids, _AT_ONCE))
    return [id_ for batch in archived for id_ in batch]


def _plan(
    context: Context, kind: Kind, ids: Sequence[str], *, reason: Reason, action: str, status: Status
) -> Plan[list[str]]:
    """Return the plan for one batch. What was erased, archived or changed meanwhile, so that it
    has no reason, stays as it is."""
    partitions = {row.partition for row in context.store.get(kind, ids).values()}
    # Before the rows that are decided on.
    seen = {name: context.store.version(name) for name in partitions}
    rows = (row for row in context.store.get(kind, ids).values() if row.partition in seen)
    archived, puts, entries = list[str](), list[Row](), list[Entry]()
    for memory in map(Memory.of, intact(context, rows)):
        if memory.status == status and (why := reason(memory)):
            newer, change, entry = revise(
                context,
                context.clock(),
                memory,
                action=action,
                why=why,
                status=Status.ARCHIVED.value,
            )
            puts += [newer.row(replaces=memory.revision), change]
            entries.append(entry)
            archived.append(memory.id)
    return (
        Plan(archived, [*puts, *own_audit_rows(context, entries)], seen=seen)
        if puts
        else Plan(archived)
    )
