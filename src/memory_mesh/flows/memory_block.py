"""The block that tells of a memory: stored, seen again, changed."""

from memory_mesh.core import audit
from memory_mesh.core.audit import Entry, blocks
from memory_mesh.core.model.records import Memory
from memory_mesh.core.model.times import iso
from memory_mesh.flows.context import Context

# Of the metadata, what the distillation of lessons looks for in blocks.
_CARRIED = ("status", "tags", "error_pattern")


def entry(context: Context, ms: int, memory: Memory, action: str) -> Entry:
    """A retain block, to be sealed."""
    carried = {name: memory.metadata[name] for name in _CARRIED if name in memory.metadata}
    return Entry(
        id=context.ids.new("yamo_retain", ms),
        operation_type="retain",
        ms=ms,
        write=lambda seal: blocks.retain(
            seal,
            agent=str(context.reader.agent_id),
            memory_id=memory.id,
            memory_type=memory.memory_type,
            at=iso(ms),
            content=memory.content,
            hypothesis=str(memory.metadata.get("hypothesis") or "none"),
            action=action,
            revision=memory.revision,
        ),
        content_hash=audit.content_hash(memory.salt, memory.content) if memory.salt else None,
        ref=memory.id,
        metadata={"action": action, **carried},
    )
