"""The history of memories: the next revision with the change that records it, and what of the changes a reader may see."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from memory_mesh.core.model.records import Change, Memory
from memory_mesh.core.model.rows import Value
from memory_mesh.core.model.scope import Reader, visible

AnyMemory = TypeVar("AnyMemory", bound=Memory)

# The fields that decide who sees a memory.
_SCOPE = frozenset({"memory_type", "reach", "agent_id", "session_id"})
# The history does not keep their old values: they are computed from other fields, or mean nothing by themselves.
_DERIVED = frozenset({"keywords", "fingerprint", "updated_at", "vector", "salt"})


def revise(
    memory: AnyMemory, *, at: str, by: str | None, action: str, why: str | None = None,
    detail: dict[str, Value] | None = None, **updates: Any,
) -> tuple[AnyMemory, Change]:  # fmt: skip
    """Return the next revision of the memory with the updates applied, and the change that records it."""
    before = {
        name: getattr(memory, name) for name, value in updates.items() if name not in _DERIVED and getattr(memory, name) != value
    }
    newer = replace(memory, revision=memory.revision + 1, **updates)
    change = Change(
        id=change_id(memory.id, newer.revision), created_at=at, ref=memory.id, number=newer.revision, action=action,
        user_id=memory.user_id, agent_id=by, why=why, before=before, detail=detail,
    )  # fmt: skip
    return newer, change


def visible_from(reader: Reader, memory: Memory, changes: Iterable[Change]) -> int:
    """Return the first revision of a visible memory from which on the reader could see it."""
    for change in sorted(changes, key=lambda change: change.number, reverse=True):
        moved: dict[str, Any] = {name: value for name, value in change.before.items() if name in _SCOPE}
        if moved:
            memory = replace(memory, **moved)
            if not visible(reader, memory.row()):
                return change.number
    return 1


def since_visible(reader: Reader, memory: Memory, changes: Sequence[Change]) -> list[Change]:
    """Remove from the changes the old values that were not visible to the reader when they were stored."""
    first = visible_from(reader, memory, changes)
    return [change if change.number > first else replace(change, before={}, detail=None, why=None) for change in changes]


def rewound(memory: AnyMemory, changes: Iterable[Change], at: str) -> AnyMemory | None:
    """Return a memory as it was at a time, from its changes; None if it was stored later.

    Derived fields stay as they are now, but for `updated_at`, which is the time of the last change until then.
    """
    if memory.created_at > at:
        return None
    ordered = sorted(changes, key=lambda change: change.number)
    later = [change for change in ordered if change.created_at > at]
    if not later:
        return memory
    before: dict[str, Any] = {}
    for change in reversed(later):
        before |= change.before
    updated = max((change.created_at for change in ordered if change.created_at <= at), default=memory.created_at)
    return replace(memory, **{**before, "revision": later[0].number - 1, "updated_at": updated})


def creation(memory: Memory) -> Change:
    """Return the first change of a history. It is not stored: the memory has all that it needs."""
    return Change(
        id=change_id(memory.id, 1), created_at=memory.created_at, ref=memory.id, number=1, action="add",
        user_id=memory.user_id, agent_id=memory.agent_id,
    )  # fmt: skip


def change_id(memory_id: str, revision: int) -> str:
    return f"{memory_id}#{revision}"
