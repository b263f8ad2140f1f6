"""Evaluate a caller's filter for every slot of a table, if its columns suffice. `Where.matches` defines the result.

A truth is 0 (false), 1 (unknown) or 2 (true): AND is the minimum, OR the maximum, and NOT is 2 minus the truth. A condition on
one column is decided once for each different value, by the condition itself.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import numpy as np

from memory_mesh.core.model import And, Anything, Compare, In, IsNull, Kind, Like, Not, Or, Row, Value, Where, iso, millis
from memory_mesh.index.arrays import Array, Flags, Ints
from memory_mesh.index.table import MISSING, Table

_FALSE, _UNKNOWN, _TRUE = np.arange(3, dtype=np.int8)
_TIMES = {"created_at": "created", "event_time": "event"}
_ALL_TIMES = range(millis("0001-01-01T00:00:00Z"), millis("9999-12-31T23:59:59.999Z") + 1)


def flags_of(where: Where, table: Table) -> Flags | None:
    """Return by slot whether the memory matches; None if the table lacks a column that the filter names."""
    truth = _truth(where, table)
    return None if truth is None else truth == _TRUE


def _truth(where: Where, table: Table) -> Array | None:
    match where:
        case Anything():
            return np.full(len(table), _TRUE, np.int8)
        case Not(part):
            truth = _truth(part, table)
            return None if truth is None else _TRUE - truth
        case And(parts):
            return _joined(np.minimum, _TRUE, (_truth(part, table) for part in parts), len(table))
        case Or(parts):
            return _joined(np.maximum, _FALSE, (_truth(part, table) for part in parts), len(table))
    return _of_column(where, table)


def _joined(join: np.ufunc, start: np.int8, truths: Iterable[Array | None], size: int) -> Array | None:
    joined = np.full(size, start, np.int8)
    for truth in truths:
        if truth is None:
            return None
        join(joined, truth, out=joined)
    return joined


def _of_column(where: Compare | In | Like | IsNull, table: Table) -> Array | None:
    if where.column in _TIMES:
        return None if where.column in table.names.odd_times else _of_time(where, table.column(_TIMES[where.column]))
    if where.column == "session_id":
        return _of_session(where, table)
    if (coded := table.coded(where.column)) is None:
        return None
    codes, values = coded
    return _decided(where, values).take(codes)  # -1, for no value, is the last place


def _decided(where: Compare | In | Like | IsNull, values: Sequence[Value]) -> Array:
    """Return the truth of a condition for each of these values, and for a missing value."""
    fields: dict[str, Value] = {}
    row = Row(kind=Kind.MEMORY, id="", partition="", created_at="", fields=fields)
    truths = np.empty(len(values) + 1, np.int8)
    for at, value in enumerate((*values, None)):
        fields[where.column] = value
        truth = where.truth(row)
        truths[at] = _UNKNOWN if truth is None else _TRUE if truth else _FALSE
    return truths


def _of_session(where: Compare | In | Like | IsNull, table: Table) -> Array | None:
    """Only equality can be decided: the table has hashes of the ids."""
    match where:
        case Compare(_, "=", str(id_)):
            ids: tuple[object, ...] = (id_,)
        case In(_, ids):
            pass
        case IsNull():
            ids = ()
        case _:
            return None
    codes = [table.session_code(id_) for id_ in ids if isinstance(id_, str)]
    truths = np.zeros(len(table.names.sessions) + 1, np.int8)
    truths[-1] = _TRUE if isinstance(where, IsNull) else _UNKNOWN if ids else _FALSE
    if not all(isinstance(id_, str) for id_ in ids):
        truths[:-1] = _UNKNOWN
    truths[[code for code in codes if code >= 0]] = _TRUE
    return truths.take(table.column("session"))


def _of_time(where: Compare | In | Like | IsNull, times: Ints) -> Array | None:
    """The texts of times sort as the times do, so a comparison of texts is one of numbers."""
    missing = times == MISSING
    match where:
        case IsNull():
            return np.where(missing, _TRUE, _FALSE)
        case Compare(_, op, str(text)):
            first, last = (_ALL_TIMES[0] + find(_ALL_TIMES, text, key=iso) for find in (bisect_left, bisect_right))
            earlier, later = times < first, times >= last
            holds = {"<": earlier, "<=": ~later, ">": later, ">=": ~earlier, "=": ~(earlier | later), "<>": earlier | later}[op]
            return np.where(missing, _UNKNOWN, np.where(holds, _TRUE, _FALSE))
        case Compare():  # a time is a text, and compares with texts only
            return np.full(len(times), _UNKNOWN, np.int8)
        case In(column, values):
            return _joined(np.maximum, _FALSE, (_of_time(Compare(column, "=", value), times) for value in values), len(times))
    return None
