"""Conditions on rows, as a closed set of values.

`matches` defines their meaning; the queries of every store must agree with it. Logic is
three-valued as in SQL: a comparison with a missing value is unknown, and only rows whose condition
is true match. Text is compared by code point, numbers as 64-bit floats; LIKE is case-sensitive. A
list (`tags`) satisfies a comparison when one of its items does. `metadata.KEY` is the value of a
top-level key and compares only with values of its own type.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Literal

from memory_mesh.core.model.rows import BY_NAME, Row, Scalar, Type, Value

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
    return _regex(pattern).fullmatch(text) is not None


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


def _regex(pattern: str) -> re.Pattern[str]:
    first, *others = (re.escape(part).replace("_", ".") for part in pattern.split("%"))
    # Atomic groups match each part at its first place and never backtrack: a few `%` on a long text
    # would take hours otherwise.
    between = "".join(f"(?>.*?{part})" for part in others[:-1] if part)
    return re.compile(first + (f"{between}.*{others[-1]}" if others else ""), re.DOTALL)
