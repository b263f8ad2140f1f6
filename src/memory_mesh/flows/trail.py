"""Read blocks of the audit trail within the reader's scope, or as a named auditor, whose reading is recorded first."""

from collections.abc import Sequence
from functools import partial

from memory_mesh.core import audit
from memory_mesh.core.audit import blocks as wire_blocks
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model import BY_NAME, Block, Change, In, Kind, Memory, Row, fault, iso, visible_from
from memory_mesh.flows.chains import audit_rows, new_entry, own_chain
from memory_mesh.flows.context import Context, Plan, commit, find_rows

_MAX_NAME = 200


def within_scope(context: Context, blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks; the texts that the reader may not see are withheld."""
    refs = list(dict.fromkeys(block.ref for block in blocks if block.ref))
    rows = find_rows(context, refs)
    first = _first_revisions(context, rows)
    return [
        block if audit.may_read(context.reader, block, rows.get(block.ref or ""), first.get(block.ref or "", 0))
        else audit.withhold(block)
        for block in blocks
    ]  # fmt: skip


def _first_revisions(context: Context, rows: dict[str, Row]) -> dict[str, int]:
    """Return the first revision of each changed memory from which on the reader could see it."""
    changed = tuple(id_ for id_, row in rows.items() if row.revision > 1)
    changes: dict[str, list[Change]] = {id_: [] for id_ in changed}
    for row in context.store.find(Kind.CHANGE, In("ref", changed)) if changed else ():
        changes[str(row.value("ref"))].append(Change.of(row))
    return {id_: visible_from(context.reader, Memory.of(rows[id_]), found) for id_, found in changes.items()}


def record_auditor(context: Context, auditor: object, what: str) -> None:
    """Append a block to the reader's chain that names the auditor. It is durable before any text is shown."""
    if not isinstance(auditor, str) or not auditor.strip() or len(auditor) > _MAX_NAME or fault(BY_NAME["agent_id"], auditor):
        raise InvalidInput(f"auditor is {shown(auditor)}", expected=f"the name of a person, at most {_MAX_NAME} characters")
    name = context.gate().redact(auditor.strip())
    commit(context, lambda: Plan(None, _auditor_rows(context, name, what)))


def _auditor_rows(context: Context, auditor: str, what: str) -> list[Row]:
    ms, agent = context.clock(), str(context.reader.agent_id)
    write = partial(wire_blocks.audit_read, agent=agent, auditor=auditor, what=what, at=iso(ms))
    entry = new_entry(context, "retain", ms, write, metadata={"action": wire_blocks.AUDIT_READ})
    # Written even if audit blocks are disabled: every reading of other scopes is recorded.
    return audit_rows(context, own_chain(context), [entry])
