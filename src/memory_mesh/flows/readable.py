"""What a reader may read now: memories in its scope, with the statuses that it asks for, not expired, and valid.

What is not valid now (`valid_from`, `valid_until`) is left out of every read, unless the time that a question names, a status
of the past, only statuses other than active, or a condition on these two columns ask for it; `as_of` is such a condition. By its
id it is always found.
"""

from collections.abc import Callable, Sequence

from memory_mesh.core import model
from memory_mesh.core.checks import listed
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model import ANYTHING, In, Kind, Not, Period, Row, Status, Where, all_of, columns_in, iso
from memory_mesh.core.search.query import Query, Span, period_of
from memory_mesh.flows.context import Context

_STATUSES, _KNOWN_STATUSES = ", ".join(Status), frozenset(Status)
_VALIDITY, _PAST = {"valid_from", "valid_until"}, {Status.SUPERSEDED, Status.ARCHIVED}


def readable(context: Context, statuses: Sequence[str] = (Status.ACTIVE,), where: Where = ANYTHING) -> Where:
    """Return the condition that the reader's memories meet now: in scope, with one of these statuses, not expired, valid."""
    at, allowed = iso(context.clock()), known_statuses(statuses)
    valid = model.valid_in(periods(at, allowed, where))
    return all_of(model.visible_to(context.reader), In("status", allowed), model.not_expired(at), valid, where)


def is_readable(
    context: Context, statuses: Sequence[str], where: Where, *, at: str | None = None, valid: Sequence[Period] | None = None
) -> Callable[[Row], bool]:
    """Return `readable` and a filter as a test of one row, which is faster than evaluating the condition.

    With `at`, memories may not have expired by then; the default is now. `valid` says in which periods they have to be valid, as
    `periods` returns them; the default is at that time, by the same rule.
    """
    allowed, at = frozenset(known_statuses(statuses)), at or iso(context.clock())
    when = periods(at, statuses, where) if valid is None else valid

    def test(row: Row) -> bool:
        lasting = (expires := row.fields.get("expires_at")) is None or str(expires) > at
        matches = where is ANYTHING or where.matches(row)
        seen = model.visible(context.reader, row) and row.fields.get("status") in allowed
        return seen and lasting and matches and model.is_valid_in(when, row)

    return test


def periods(at: str, statuses: Sequence[str], where: Where, spans: Sequence[Span] = ()) -> tuple[Period, ...]:
    """Return the periods in one of which a memory has to be valid: a time, and the times that a question names.

    There are none if the past is asked for by a status, if nothing active is, or if the condition is about validity itself.
    """
    is_asked_for = Status.ACTIVE not in statuses or _PAST & set(statuses) or columns_in(where) & _VALIDITY
    return () if is_asked_for else about(at, spans)


def about(at: str, spans: Sequence[Span]) -> tuple[Period, ...]:
    """Return a time, and the times that a question names, as periods."""
    return (at, at), *map(period_of, spans)


def count_not_valid(context: Context, query: Query) -> int:
    """Return how many memories a search left out because they are not valid at the times that it is about."""
    if not query.periods:
        return 0
    seen = all_of(model.visible_to(query.reader), In("status", tuple(query.statuses)), model.not_expired(query.at))
    return context.store.count(Kind.MEMORY, all_of(seen, Not(model.valid_in(query.periods))))


def known_statuses(statuses: Sequence[str], name: str = "status") -> tuple[str, ...]:
    """Return the statuses, or raise InvalidInput if one of them does not exist."""
    given = listed(name, statuses, expected=f"a list of {_STATUSES}")
    for status in given:
        if not isinstance(status, str) or status not in _KNOWN_STATUSES:
            raise InvalidInput(f"unknown status {shown(status)}", expected=f"one of {_STATUSES}")
    return tuple(given)
