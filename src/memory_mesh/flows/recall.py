"""Reading: scope and status first, in one place; then by id, by age or by keywords."""

from collections.abc import Sequence

from memory_mesh.core import fuse
from memory_mesh.core.columns import Kind
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.history import creation, since_shared
from memory_mesh.core.lexical import tokens
from memory_mesh.core.records import Change, Memory, SearchResult, Status
from memory_mesh.core.scope import partitions, seen_by, visible
from memory_mesh.core.where import ANYTHING, In, Where, both, equals
from memory_mesh.flows.desk import Desk, lasting, memory_row

MOST = 10_000


def readable(desk: Desk, statuses: Sequence[str] = (Status.ACTIVE,)) -> Where:
    """What this caller may be shown now: within its scope, of these statuses, not expired."""
    known = list(Status)
    for status in statuses:
        if status not in known:
            raise InvalidInput(f"status {status!r:.60} is unknown", expected=f"one of {', '.join(known)}")
    return both(seen_by(desk.who), In("status", tuple(statuses)), lasting(desk))


def get(desk: Desk, memory_id: str) -> Memory | None:
    """A memory of any status by its id, within the caller's scope."""
    row = memory_row(desk, memory_id)
    return Memory.of(row) if row and visible(desk.who, row) else None


def get_all(
    desk: Desk, *, limit: int | None, where: Where = ANYTHING, statuses: Sequence[str] = (Status.ACTIVE,)
) -> list[Memory]:
    """What the caller may see, newest first."""
    bounded = None if limit is None else within(limit)
    return [Memory.of(row) for row in desk.store.find(Kind.MEMORY, both(readable(desk, statuses), where), limit=bounded)]


def history(desk: Desk, memory_id: str) -> list[Change] | None:
    """How a memory came to be what it is, oldest first; None where there is no such memory."""
    memory = get(desk, memory_id)
    if memory is None:
        return None
    changes = [Change.of(row) for row in desk.store.find(Kind.CHANGE, equals("ref", memory_id))]
    told = sorted(changes, key=lambda change: change.number)
    return [creation(memory), *(told if memory.agent_id == desk.who.agent_id else since_shared(told))]


def search(
    desk: Desk, query: object, *, limit: int, where: Where = ANYTHING, statuses: Sequence[str] = (Status.ACTIVE,),
    min_score: float = 0.0,
) -> list[SearchResult]:  # fmt: skip
    """The memories that answer a query best."""
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput("the query is blank", expected="some words to look for")
    if isinstance(min_score, bool) or not isinstance(min_score, int | float) or not 0 <= min_score <= 1:
        raise InvalidInput(f"min_score is {shown(min_score)}", expected="a number within 0–1")
    allowed = both(readable(desk, statuses), where)
    words = tokens(query, language=desk.language)
    hits = desk.store.matching(words, partitions(desk.who), allowed, limit=2 * within(limit))
    scores = fuse.rrf({"keywords": [hit.id for hit in hits]}) if hits else {}
    rows = desk.store.get(Kind.MEMORY, list(scores))
    # Read again under the same condition: a row may have changed since it was matched.
    found = [Memory.of(row).found(scores[row.id]) for row in rows.values() if allowed.matches(row)]
    ranked = sorted(found, key=lambda result: (result.score, result.id), reverse=True)
    return [result for result in ranked if result.score >= min_score][:limit]


def within(limit: object) -> int:
    """A limit that can be used."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST:
        raise InvalidInput(f"limit is {shown(limit)}", expected=f"a whole number from 1 to {MOST:,}")
    return limit
