"""Conditions on rows, as a closed set of values, and visibility, the one that every read applies.

`matches` defines their meaning; the queries of every store must agree with it. Logic is
three-valued as in SQL: a comparison with a missing value is unknown, and only rows whose condition
is true match. Text is compared by code point, numbers as 64-bit floats; LIKE is case-sensitive. A
list (`tags`) satisfies a comparison when one of its items does. `metadata.KEY` is the value of a
top-level key and compares only with values of its own type.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Literal

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model.rows import BY_NAME, Row, Scalar, Type, Value, fault

# A condition as a caller gives it; `flows.search.filters` parses it.
Filter = str | Mapping[str, object]
Op = Literal["=", "<>", "<", "<=", ">", ">="]
METADATA = "metadata."

_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "=": eq,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}


class _Condition(ABC):
    """The base of all conditions."""

    __slots__ = ()

    @abstractmethod
    def truth(self, row: Row) -> bool | None:
        """Evaluate the condition; None means unknown."""

    def matches(self, row: Row) -> bool:
        return self.truth(row) is True


@dataclass(frozen=True, slots=True)
class Anything(_Condition):
    """Every row."""

    def truth(self, row: Row) -> bool | None:
        return True


@dataclass(frozen=True, slots=True)
class Compare(_Condition):
    """`column op value`."""

    column: str
    op: Op
    value: Scalar

    def truth(self, row: Row) -> bool | None:
        if is_list(self.column) and not isinstance(self.value, str):
            return None
        if self.op == "<>" and is_list(self.column):
            # True when no item is equal. "Some item differs" would be true for nearly every list.
            return _not(Compare(self.column, "=", self.value).truth(row))
        return _any(_compared(item, self.op, self.value) for item in _items(row, self.column))


@dataclass(frozen=True, slots=True)
class In(_Condition):
    """`column IN (values)`."""

    column: str
    values: tuple[Scalar, ...]

    def truth(self, row: Row) -> bool | None:
        items = _items(row, self.column)
        if any(isinstance(item, str) and item in self.values for item in items):
            return True  # the fast path: lists of ids are long
        if is_list(self.column) and not all(isinstance(value, str) for value in self.values):
            return Or(tuple(Compare(self.column, "=", value) for value in self.values)).truth(row)
        return _any(_compared(item, "=", value) for item in items for value in self.values)


@dataclass(frozen=True, slots=True)
class Like(_Condition):
    """`column LIKE pattern`: `%` any text, `_` one character."""

    column: str
    pattern: str

    def truth(self, row: Row) -> bool | None:
        return _any(
            like(item, self.pattern) if isinstance(item, str) else None
            for item in _items(row, self.column)
        )


@dataclass(frozen=True, slots=True)
class IsNull(_Condition):
    """`column IS NULL`."""

    column: str

    def truth(self, row: Row) -> bool | None:
        return _value(row, self.column) is None


@dataclass(frozen=True, slots=True)
class And(_Condition):
    """True when all parts are; true without parts."""

    parts: "tuple[Where, ...]"

    def truth(self, row: Row) -> bool | None:
        return _not(_any(_not(part.truth(row)) for part in self.parts))


@dataclass(frozen=True, slots=True)
class Or(_Condition):
    """True when one part is; false without parts."""

    parts: "tuple[Where, ...]"

    def truth(self, row: Row) -> bool | None:
        return _any(part.truth(row) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Not(_Condition):
    """The negation; unknown stays unknown."""

    part: "Where"

    def truth(self, row: Row) -> bool | None:
        return _not(self.part.truth(row))


Where = Anything | Compare | In | Like | IsNull | And | Or | Not

ANYTHING = Anything()


def equals(column: str, value: Scalar | None) -> Where:
    """Return `column = value`, or `column IS NULL` when the value is None."""
    return IsNull(column) if value is None else Compare(column, "=", value)


def all_of(*parts: Where) -> Where:
    """Return the conjunction of the parts, flattened and without `ANYTHING`."""
    flat: list[Where] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, And) else [] if part == ANYTHING else [part])
    return flat[0] if len(flat) == 1 else And(tuple(flat)) if flat else ANYTHING


def columns_in(where: Where) -> set[str]:
    """Return the columns that a condition reads."""
    match where:
        case And(parts) | Or(parts):
            return {column for part in parts for column in columns_in(part)}
        case Not(part):
            return columns_in(part)
        case Anything():
            return set()
    return {where.column}


def like(text: str, pattern: str) -> bool:
    first, *others = (re.escape(part).replace("_", ".") for part in pattern.split("%"))
    # Atomic groups match each part at its first place and never backtrack: a few `%` on a long text
    # would take hours otherwise.
    between = "".join(f"(?>.*?{part})" for part in others[:-1] if part)
    expression = first + (f"{between}.*{others[-1]}" if others else "")
    return re.fullmatch(expression, text, re.DOTALL) is not None


def is_list(column: str) -> bool:
    return column in BY_NAME and BY_NAME[column].type is Type.TEXTS


def _value(row: Row, column: str) -> Value:
    if column.startswith(METADATA):
        metadata = row.value("metadata")
        return metadata.get(column.removeprefix(METADATA)) if isinstance(metadata, dict) else None
    return row.value(column)


def _items(row: Row, column: str) -> list[Value]:
    value = _value(row, column)
    return value if is_list(column) and isinstance(value, list) else [value]


def _compared(left: Value, op: Op, right: Scalar) -> bool | None:
    if isinstance(right, bool) or isinstance(left, bool):
        same = isinstance(left, bool) and isinstance(right, bool)
        return bool(_OPS[op](left, right)) if same else None
    if isinstance(right, str):
        return bool(_OPS[op](left, right)) if isinstance(left, str) else None
    return bool(_OPS[op](float(left), float(right))) if isinstance(left, int | float) else None


def _any(truths: Iterator[bool | None]) -> bool | None:
    unknown = False
    for truth in truths:
        if truth:
            return True
        unknown = unknown or truth is None
    return None if unknown else False


def _not(truth: bool | None) -> bool | None:  # noqa: FBT001  (the argument is a truth value)
    return None if truth is None else not truth


# --- visibility ---
# A breach of this rule leaks memories.
#
# A reader sees only rows of its own user; a reader without a user sees only rows without one.
# Within that, the `memory_type` of a row decides who sees it, and its `reach` may narrow this (a
# lesson derived from narrower memories):
#
# | reach    | visible to                     | memory types               |
# |----------|--------------------------------|----------------------------|
# | global   | every agent of the user        | global, reflection, lesson |
# | agent    | the same agent                 | agent                      |
# | session  | the same agent, same session   | session                    |


class MemoryType(StrEnum):
    """The type of a memory, from RFC-0011."""

    GLOBAL = "global"
    SESSION = "session"
    AGENT = "agent"
    LESSON = "lesson"
    REFLECTION = "reflection"


class Reach(StrEnum):
    """How widely a row is visible, widest first."""

    GLOBAL = "global"
    AGENT = "agent"
    SESSION = "session"


_ORDER = list(Reach)
_BY_TYPE: dict[str, Reach] = {
    **dict.fromkeys(MemoryType, Reach.GLOBAL), MemoryType.AGENT: Reach.AGENT,
    MemoryType.SESSION: Reach.SESSION,
}  # fmt: skip
_BY_NAME: dict[str, Reach] = {reach: reach for reach in Reach}


@dataclass(frozen=True, slots=True)
class Reader:
    """The user, agent and session on whose behalf memories are read and written.

    The project is not part of visibility: it selects what searches and lists show, and new memories
    belong to it. A reader with `only_project` sees no memory of another project, by no method.
    """

    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    project: str | None = None
    only_project: bool = False

    def __post_init__(self) -> None:
        for name in ("user_id", "agent_id", "session_id", "project"):
            value = getattr(self, name)
            if value is not None and (wrong := fault(BY_NAME[name], value)):
                raise InvalidInput(wrong)


def reach_of(memory_type: Value, reach: Value) -> Reach:
    """Return the narrower of the reach of the type and the reach of the row. An unknown value,
    which only another program can have written, is the narrowest."""
    by_type = _BY_TYPE.get(str(memory_type), Reach.SESSION) if memory_type else Reach.GLOBAL
    if not reach:
        return by_type
    return max(by_type, _BY_NAME.get(str(reach), Reach.SESSION), key=_ORDER.index)


def visible(reader: Reader, row: Row) -> bool:
    """Return whether the reader may see the row."""
    fields = row.fields
    if fields.get("user_id") != reader.user_id or not _in_only_project(
        reader, fields.get("project")
    ):
        return False
    reach = reach_of(fields.get("memory_type"), fields.get("reach"))
    if reach is Reach.GLOBAL:
        return True
    same_agent = reader.agent_id is not None and fields.get("agent_id") == reader.agent_id
    if reach is Reach.AGENT:
        return same_agent
    return (
        same_agent
        and reader.session_id is not None
        and fields.get("session_id") == reader.session_id
    )


def is_readable(
    reader: Reader, statuses: Container[Value], at: str, periods: "Sequence[Period]", where: Where,
    row: Row,
) -> bool:  # fmt: skip
    """Return whether the reader may see the row, and it has one of the statuses, has not expired at
    a time, is valid in one of the periods and meets the condition."""
    return (
        visible(reader, row)
        and row.fields.get("status") in statuses
        and not is_expired(row, at)
        and (where is ANYTHING or where.matches(row))
        and is_valid_in(periods, row)
    )


def may_erase(reader: Reader, row: Row) -> bool:
    """Return whether the reader may erase the row: it is visible, or it belongs to the same
    agent in any session."""
    own = row.value("user_id") == reader.user_id and row.value("agent_id") == reader.agent_id
    return (own and _in_only_project(reader, row.value("project"))) or visible(reader, row)


def visible_to(reader: Reader) -> Where:
    """Return `visible` as a condition for stores. A test compares the two in every cell of the
    table."""
    wide_type = Or(
        (
            IsNull("memory_type"),
            In("memory_type", (MemoryType.GLOBAL, MemoryType.REFLECTION, MemoryType.LESSON)),
        )
    )
    cases: list[Where] = [all_of(wide_type, _reaches(Reach.GLOBAL))]
    if reader.agent_id is not None:
        mine = Compare("agent_id", "=", reader.agent_id)
        not_session = Or((wide_type, Compare("memory_type", "=", MemoryType.AGENT)))
        cases.append(all_of(mine, not_session, _reaches(Reach.GLOBAL, Reach.AGENT)))
        if reader.session_id is not None:
            cases.append(all_of(mine, Compare("session_id", "=", reader.session_id)))
    own = equals("user_id", reader.user_id)
    return all_of(In("partition", partitions(reader)), own, Or(tuple(cases)), _only_project(reader))


def _only_project(reader: Reader) -> Where:
    """Return the condition that a memory is of no project that the reader must not see."""
    return in_project(reader.project) if reader.only_project else ANYTHING


def of_user(reader: Reader) -> Where:
    """Return the condition that a memory is of the reader's user, whatever its agent and
    session, and of no project that the reader must not see. Reviews and upkeep act on these."""
    return all_of(equals("user_id", reader.user_id), _only_project(reader))


def in_project(project: str | None) -> Where:
    """Return the condition that a memory belongs to a project or to none; without a project,
    every memory meets it."""
    return (
        ANYTHING if project is None else Or((IsNull("project"), Compare("project", "=", project)))
    )


def not_expired(at: str) -> Where:
    """Return the condition that a memory has not expired at a time."""
    return Or((IsNull("expires_at"), Compare("expires_at", ">", at)))


def is_expired(row: Row, at: str) -> bool:
    """Return the opposite of `not_expired` of one row, which is faster than evaluating it."""
    expires = row.fields.get("expires_at")
    return expires is not None and str(expires) <= at


Period = tuple[str, str]  # the first and the last moment


def valid_in(periods: Sequence[Period]) -> Where:
    """Return the condition that a memory is valid at some moment of one of these periods;
    without periods, every one is."""
    return Or(tuple(_overlaps(*period) for period in periods)) if periods else ANYTHING


def is_valid_in(periods: Sequence[Period], row: Row) -> bool:
    """Return `valid_in` of one row, which is faster than evaluating the condition."""
    begins, ends = row.fields.get("valid_from"), row.fields.get("valid_until")
    if (begins is None and ends is None) or not periods:
        return True
    return any(
        (begins is None or str(begins) <= last) and (ends is None or str(ends) >= first)
        for first, last in periods
    )


def _overlaps(first: str, last: str) -> Where:
    begun, lasting = Compare("valid_from", "<=", last), Compare("valid_until", ">=", first)
    return all_of(Or((IsNull("valid_from"), begun)), Or((IsNull("valid_until"), lasting)))


@lru_cache(maxsize=1024)
def partitions(reader: Reader) -> tuple[str, ...]:
    """Return the partitions that the reader can see: the shared one of the user and the one of
    the agent."""
    shared = partition(reader.user_id, None)
    return (
        (shared,)
        if reader.agent_id is None
        else (shared, partition(reader.user_id, reader.agent_id))
    )


@lru_cache(maxsize=1024)
def partition(user_id: str | None, agent_id: str | None) -> str:
    """Return the name of the partition of a user's agent, or of the partition that all agents of
    the user share."""
    return json.dumps([user_id, agent_id], ensure_ascii=False)


def partition_for(
    user_id: str | None, agent_id: str | None, memory_type: str | None, reach: str | None
) -> str:
    """Return the partition that stores a row of this scope."""
    shared = reach_of(memory_type, reach) is Reach.GLOBAL
    return partition(user_id, None if shared else agent_id)


def _in_only_project(reader: Reader, project: Value) -> bool:
    return not reader.only_project or project in (None, reader.project)


def _reaches(*reaches: Reach) -> Where:
    return Or((IsNull("reach"), In("reach", reaches)))
