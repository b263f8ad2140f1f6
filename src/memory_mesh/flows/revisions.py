"""The next revision of a memory, with its history row and its audit entry. Every flow that changes memories needs them."""

from collections.abc import Hashable
from dataclasses import replace
from functools import partial
from typing import Any

from memory_mesh.core import model
from memory_mesh.core.audit import Entry, blocks
from memory_mesh.core.lane import is_of_lane, synced
from memory_mesh.core.model import AnyMemory, Memory, Row, iso
from memory_mesh.flows.chains import new_entry, own_audit_rows
from memory_mesh.flows.context import Context, Plan

# The metadata that the audit block repeats: distillation looks for failures in blocks.
_METADATA_IN_BLOCK = ("status", "tags", "error_pattern")


def plan_revision(
    context: Context, memory: AnyMemory, data_version: Hashable = None, *, action: str, why: str | None = None, **updates: Any
) -> Plan[AnyMemory]:
    """Return the plan that writes the next revision of a memory with its history and its audit block."""
    ms = context.clock()
    reason = context.gate().redact(why) if why else None
    newer, change, entry = revise(context, ms, memory, action=action, why=reason, **updates)
    return Plan(newer, [newer.row(replaces=memory.revision), change, *own_audit_rows(context, [entry], data_version)])


def revise(context: Context, ms: int, memory: AnyMemory, *, action: str, **given: Any) -> tuple[AnyMemory, Row, Entry]:
    """Return the next revision of a memory, its history row and its audit entry. All three must be written together."""
    # Without a salt, erased columns could be guessed from the hashes in the block. Memory Lane's rows have none.
    given["salt"] = memory.salt or context.ids.salt()
    if is_of_lane(memory):
        given["metadata"] = synced(
            replace(memory, **{name: given[name] for name in given if name not in ("why", "detail")})
        ).metadata
    newer, change = model.revise(memory, at=iso(ms), by=context.reader.agent_id, action=action, **given)
    row = change.row(newer.partition)
    return newer, row, retain_entry(context, ms, newer, action, row)


def retain_entry(context: Context, ms: int, memory: Memory, action: str, change: Row | None = None) -> Entry:
    """Return the audit entry that records an action on a memory: add, observe, update, …"""
    repeated = {name: memory.metadata[name] for name in _METADATA_IN_BLOCK if name in memory.metadata}
    write = partial(
        blocks.retain,
        agent=str(context.reader.agent_id),
        memory_id=memory.id,
        memory_type=memory.memory_type,
        at=iso(ms),
        content=memory.content,
        hypothesis=str(memory.metadata.get("hypothesis") or "none"),
        action=action,
        revision=memory.revision,
    )
    return new_entry(context, "retain", ms, write, memory=memory, change=change, metadata={"action": action, **repeated})
