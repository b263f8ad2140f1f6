"""How a memory becomes its next revision: a new record, and one line of history with what it replaced."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memory_mesh.core.model.columns import Value
from memory_mesh.core.model.records import Change, Memory

# What decides who sees a memory.
_SCOPE = frozenset({"memory_type", "reach", "session_id"})
# Worked out from other fields; the history keeps those.
_DERIVED = frozenset({"keywords", "fingerprint", "updated_at", "vector"})


def revise(
    memory: Memory, *, at: str, by: str | None, action: str, why: str | None = None,
    detail: dict[str, Value] | None = None, **updates: Any,
) -> tuple[Memory, Change]:  # fmt: skip
    """The memory with the updates, and the change that tells of it."""
    before = {
        name: getattr(memory, name) for name, value in updates.items() if name not in _DERIVED and getattr(memory, name) != value
    }
    newer = replace(memory, revision=memory.revision + 1, **updates)
    change = Change(
        id=change_id(memory.id, newer.revision),
        created_at=at,
        ref=memory.id,
        number=newer.revision,
        action=action,
        user_id=memory.user_id,
        agent_id=by,
        why=why,
        before=before,
        detail=detail,
    )
    return newer, change


def since_shared(changes: Sequence[Change]) -> list[Change]:
    """A history for others: what a memory said before it last changed hands was not meant for them."""
    moves = [at for at, change in enumerate(changes) if _SCOPE & change.before.keys()]
    private = moves[-1] + 1 if moves else 0
    return [*(replace(change, before={}, detail=None, why=None) for change in changes[:private]), *changes[private:]]


def creation(memory: Memory) -> Change:
    """The first line of a history; nothing keeps it, for the record itself tells it."""
    return Change(
        id=change_id(memory.id, 1),
        created_at=memory.created_at,
        ref=memory.id,
        number=1,
        action="add",
        user_id=memory.user_id,
        agent_id=memory.agent_id,
    )


def change_id(memory_id: str, revision: int) -> str:
    return f"{memory_id}#{revision}"
