"""The time of validity: which memories were valid at a time, and which of several claims a question asks for."""

from collections.abc import Iterable, Sequence

from memory_mesh.core.claims.claim import Window
from memory_mesh.core.claims.schemas import Schemas
from memory_mesh.core.model import Compare, In, IsNull, Not, Or, Row, Status, Where, all_of, equals
from memory_mesh.core.search.query import Span, period_of


def as_of(at: str, statuses: Sequence[str]) -> Where:
    """Return the condition that a memory was valid at a time, as is known now.

    Its validity contains the time, and it has one of the statuses or was superseded by what became valid later. One that was
    superseded without an end of its validity was corrected, and never valid.
    """
    outdated = all_of(equals("status", Status.SUPERSEDED), Not(IsNull("valid_until")))
    return all_of(_contains(at), Or((In("status", tuple(statuses)), outdated)))


def _contains(at: str) -> Where:
    """Return the condition that `window_of` a memory contains a time."""
    no_event = Or((IsNull("claim_key"), IsNull("event_time"), Compare("event_time", "<=", at)))
    started = Or((Compare("valid_from", "<=", at), all_of(IsNull("valid_from"), no_event)))
    return all_of(started, Or((IsNull("valid_until"), Compare("valid_until", ">=", at))))


def window_of(row: Row) -> Window:
    """Return when a memory is valid. A claim without `valid_from` begins with its event."""
    start = row.value("valid_from") or (row.value("event_time") if row.value("claim_key") else None)
    end = row.value("valid_until")
    return Window(start=None if start is None else str(start), end=None if end is None else str(end))


def asked_time(spans: Sequence[Span], present: str) -> Window:
    """Return the time that a question is about: of the times that it names the latest one that has begun, else now."""
    windows = [Window(start=first, end=last) for first, last in map(period_of, spans)]
    begun = [each for each in windows if str(each.start) <= present]
    return begun[-1] if begun else windows[0] if windows else Window(start=present, end=present)


def claim_groups(rows: Iterable[Row], asked: Window, schemas: Schemas) -> list[list[Row]]:
    """Return the groups of at least two exclusive claims about one subject and predicate, those valid at the asked time first.

    The others follow, and the latest claim comes first among both. A predicate that may have several values has no group.
    """
    groups: dict[tuple[object, object], list[Row]] = {}
    for row in rows:
        claim = row.value("claim")
        if not isinstance(claim, dict) or claim.get("exclusive") is False:
            continue
        if schemas[str(claim.get("predicate"))].cardinality == "single":
            groups.setdefault((row.value("claim_key"), claim.get("session_id")), []).append(row)

    def order(row: Row) -> tuple[bool, str, tuple[str, str, int, str]]:
        window = window_of(row)
        corrected = row.value("status") == Status.SUPERSEDED and window.end is None
        return window.overlaps(asked) and not corrected, str(window.start or row.created_at), row.age_key

    return [sorted(group, key=order, reverse=True) for group in groups.values() if len(group) > 1]
