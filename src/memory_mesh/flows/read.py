"""Reading: scope and status first, in one place; then by id or by age. `search` builds on it."""

from collections.abc import Callable, Iterable, Sequence

from memory_mesh.core.checks import whole_number
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.records import Change, Memory, Status, creation, since_shared
from memory_mesh.core.model.rows import Row
from memory_mesh.core.model.scope import visible, visible_to
from memory_mesh.core.model.times import iso
from memory_mesh.core.model.where import ANYTHING, In, Where, all_of, equals
from memory_mesh.flows import usage
from memory_mesh.flows.context import Context, lasting, memory_row

MOST = 10_000


def readable(context: Context, statuses: Sequence[str] = (Status.ACTIVE,)) -> Where:
    """What this caller may be shown now: within its scope, of these statuses, not expired."""
    return all_of(visible_to(context.reader), In("status", known_statuses(statuses)), lasting(context))


def shown_to(context: Context, statuses: Sequence[str], where: Where) -> Callable[[Row], bool]:
    """`readable` and a filter as a question to one row, which is quicker than the condition."""
    wanted, at = frozenset(known_statuses(statuses)), iso(context.clock())

    def shown(row: Row) -> bool:
        lasts = (ends := row.value("expires_at")) is None or str(ends) > at
        return visible(context.reader, row) and row.value("status") in wanted and lasts and where.matches(row)

    return shown


def known_statuses(statuses: Sequence[str]) -> tuple[str, ...]:
    """Statuses that exist; another is an error."""
    known = list(Status)
    if isinstance(statuses, str) or not isinstance(statuses, Iterable):
        raise InvalidInput(f"status is {shown(statuses)}", expected=f"a list of {', '.join(known)}")
    for status in statuses:
        if status not in known:
            raise InvalidInput(f"status {status!r:.60} is unknown", expected=f"one of {', '.join(known)}")
    return tuple(statuses)


def get(context: Context, memory_id: str) -> Memory | None:
    """A memory of any status by its id, within the caller's scope."""
    row = memory_row(context, memory_id)
    return usage.with_counts(context, [Memory.of(row)])[0] if row and visible(context.reader, row) else None


def get_all(
    context: Context, *, limit: int | None, where: Where = ANYTHING, statuses: Sequence[str] = (Status.ACTIVE,)
) -> list[Memory]:
    """What the caller may see, newest first."""
    bounded = None if limit is None else within(limit)
    rows = context.store.find(Kind.MEMORY, all_of(readable(context, statuses), where), limit=bounded)
    return usage.with_counts(context, [Memory.of(row) for row in rows])


def history(context: Context, memory_id: str) -> list[Change] | None:
    """How a memory came to be what it is, oldest first; None where there is no such memory."""
    memory = get(context, memory_id)
    if memory is None:
        return None
    changes = [Change.of(row) for row in context.store.find(Kind.CHANGE, equals("ref", memory_id))]
    told = sorted(changes, key=lambda change: change.number)
    return [creation(memory), *(told if memory.agent_id == context.reader.agent_id else since_shared(told))]


def within(limit: object) -> int:
    """A limit that can be used."""
    return whole_number("limit", limit, max_=MOST)
