"""Read memories as of a time: `as_of`, what was valid then, and `known_at`, what was believed then.

Only the history is read for that. Erased memories and texts are gone from every time.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import (
    Change,
    Compare,
    In,
    Kind,
    Memory,
    Row,
    Status,
    Where,
    all_of,
    equals,
    in_project,
    iso,
    parse_time,
    rewound,
    visible,
    visible_from,
)
from memory_mesh.flows.context import Context

KNOWN_POOL = 1_000  # candidates of a search at an earlier time: status and filter apply to what they were then


def read_time(name: str, given: object) -> str | None:
    """Return the time of an option, or raise `InvalidInput`."""
    return None if given is None else parse_time(given, name)


def read_known_at(context: Context, given: object) -> str | None:
    """Return the time of the option `known_at`, or raise `InvalidInput`, also if it lies in the future."""
    at, present = read_time("known_at", given), iso(context.clock())
    if at is not None and at > present:
        raise InvalidInput(
            f"known_at {at} is in the future", expected=f"a time until now ({present})", remedy="leave known_at out"
        )
    return at


def narrowed(at: str | None, where: Where, statuses: Sequence[str]) -> tuple[Where, tuple[str, ...]]:
    """Return the condition and the statuses of a search, narrowed to what was valid at a time; unchanged without one."""
    if at is None:
        return where, tuple(statuses)
    from memory_mesh.core.claims.past import as_of  # few searches name a time

    return all_of(where, as_of(at, statuses)), tuple(dict.fromkeys([*statuses, Status.SUPERSEDED.value]))


def stored_by(at: str) -> Where:
    """Return the condition that a memory was stored at a time or before."""
    return Compare("created_at", "<=", at)


def changes_of(context: Context, memory_id: str) -> list[Change]:
    """Return the changes of a memory or skill, oldest first. The reader is not checked."""
    rows = context.store.find(Kind.CHANGE, equals("ref", memory_id))
    return sorted((Change.of(row) for row in rows), key=lambda change: change.number)


def rewind(context: Context, rows: Iterable[Row], at: str) -> list[Row]:
    """Return memories as they were at a time, without those that were stored later, or that the reader could not see then."""
    here = in_project(context.reader.project)
    memories = {row.id: (row, Memory.of(row)) for row in rows if visible(context.reader, row) and here.matches(row)}
    changes = _changes(context, [memory for _, memory in memories.values()])
    found: list[Row] = []
    for id_, (row, memory) in memories.items():
        then = rewound(memory, changes[id_], at)
        # Never more than `history` shows.
        if then and then.revision >= visible_from(context.reader, memory, changes[id_]):
            found.append(replace(then.row(), sealed=row.sealed, used=row.used))
    return found


def as_known(context: Context, memories: Sequence[Memory], at: str) -> list[Memory]:
    """Return memories as they were at a time, without those that were stored later. The reader is not checked."""
    changes = _changes(context, memories)
    return [then for memory in memories if (then := rewound(memory, changes[memory.id], at))]


def _changes(context: Context, memories: Sequence[Memory]) -> dict[str, list[Change]]:
    """Return the changes of memories by id."""
    revised = tuple(memory.id for memory in memories if memory.revision > 1)
    changes: dict[str, list[Change]] = defaultdict(list)
    for row in context.store.find(Kind.CHANGE, In("ref", revised)) if revised else ():
        changes[str(row.value("ref"))].append(Change.of(row))
    return changes
