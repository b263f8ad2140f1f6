"""Store texts as the mesh does."""

from memory_mesh.core.intake import read_items
from memory_mesh.core.model import Memory
from memory_mesh.flows.context import Context
from memory_mesh.flows.write import write


def add_many(context: Context, items: object, *, key: str | None = None) -> list[Memory]:
    """Store each item. `key` is the idempotency key."""
    return write.add(context, read_items(items), idempotency_key=key)
