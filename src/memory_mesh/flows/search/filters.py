"""Parse filters into conditions.

A filter has known columns, literals, AND, OR, NOT, comparisons, LIKE, IN, BETWEEN and IS NULL. A
filter is a text, or a mapping of columns and metadata keys to the values that they must have, or to
operators such as `$gt`, as in Chroma and LangGraph. The text is never part of a query of the store.
"""

import json
from collections.abc import Callable, Mapping
from datetime import date
from math import inf, isfinite
from typing import Any

from memory_mesh.core import model
from memory_mesh.core.errors import InvalidFilter, InvalidInput, shown
from memory_mesh.core.model import (
    FILTERABLE,
    METADATA,
    And,
    Compare,
    Filter,
    In,
    IsNull,
    Like,
    Not,
    Op,
    Or,
    Scalar,
    Type,
    Where,
)

_MAX_CHARS = 10_000
_MAX_PATTERN_CHARS = 1_000
_MAX_DEPTH = 60
_ALLOWED = "columns, literals, AND, OR, NOT, comparisons, LIKE, IN and IS NULL"
_OPS: dict[str, Op] = {"eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_OPERANDS = {"this", "expression", "expressions", "low", "high", "query"}
_MODIFIERS = {"like": {"negate"}}
_ORDERS: dict[str, Op] = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_OPERATORS = ("$eq", "$ne", "$in", "$nin", *_ORDERS)
_JOINS: dict[str, type[And | Or]] = {"$and": And, "$or": Or}
_FLIPPED: dict[Op, Op] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def where_of(given: Filter | None) -> Where:
    """Return the condition of an optional filter: every row without one."""
    if isinstance(given, Mapping):
        where = _entries(given, _MAX_DEPTH)
        _check_text(text_of(given) or "")
        return where
    return model.ANYTHING if given is None else parse(given)


def text_of(given: Filter | None) -> str | None:
    """Return a valid filter as text, for the audit log."""
    return (
        json.dumps(dict(given), ensure_ascii=False, default=_listed)
        if isinstance(given, Mapping)
        else given
    )


def parse(text: object) -> Where:
    """Return the condition of a filter, or raise `InvalidFilter` for anything outside the
    allowed language."""
    if not isinstance(text, str) or not text.strip():
        what = "the filter is blank" if isinstance(text, str) else f"the filter is {shown(text)}"
        raise InvalidFilter(
            what,
            expected="""a text such as "memory_type = 'global'", or a \
mapping such as {"tags": "ops"}""",
        )
    _check_text(text)
    trees = _trees(text)
    if len(trees) != 1 or trees[0] is None:
        raise InvalidFilter("the filter is more than one expression", expected="one")
    return _where(trees[0], _MAX_DEPTH)


def _check_text(text: str) -> None:
    if len(text) > _MAX_CHARS:
        raise InvalidFilter(
            f"the filter has {len(text):,} characters", expected=f"at most {_MAX_CHARS:,}"
        )
    if wrong := model.fault(model.BY_NAME["content"], text):
        raise InvalidFilter(f"the filter{wrong.removeprefix('content')}", expected="valid Unicode")


# --- mappings ---


def _entries(given: Mapping[str, object], depth: int) -> Where:
    return model.all_of(*(_entry(key, value, depth) for key, value in given.items()))


def _entry(key: object, value: object, depth: int) -> Where:
    """Return the condition of one entry. A key that is not a column is a key of the metadata."""
    if not isinstance(key, str) or not key.removeprefix(METADATA).strip():
        raise InvalidFilter(
            f"the filter has the key {shown(key)}",
            expected="the name of a column or of a metadata key",
        )
    if key in _JOINS:
        return _joined(key, value, depth - 1)
    if key.startswith("$"):
        raise InvalidFilter(
            f"unknown operator {shown(key)}",
            expected=f"{' or '.join(_JOINS)}, or the name of a column",
        )
    _check_text(key)
    column = FILTERABLE.get(key)
    name = column.name if column else METADATA + key.removeprefix(METADATA)
    operations = value if isinstance(value, Mapping) and value else {"$eq": value}
    return model.all_of(
        *(_operation(name, column.type if column else None, *each) for each in operations.items())
    )


def _joined(key: str, value: object, depth: int) -> Where:
    expected = f"a list of mappings, nested at most {_MAX_DEPTH} deep"
    if not isinstance(value, list | tuple) or not value or depth == 0:
        raise InvalidFilter(f"{key} is {shown(value)}", expected=expected)
    for part in value:
        if not isinstance(part, Mapping):
            raise InvalidFilter(f"{key} has {shown(part)}", expected=expected)
    return _JOINS[key](tuple(_entries(part, depth) for part in value))


def _operation(name: str, type_: Type | None, operator: object, value: object) -> Where:
    if operator in ("$eq", "$in"):
        return _equal(name, type_, value)
    if operator in ("$ne", "$nin"):
        return Not(_equal(name, type_, value))
    if not isinstance(operator, str) or operator not in _ORDERS:
        raise InvalidFilter(
            f"unknown operator {shown(operator)} of {name}",
            expected=f"one of {', '.join(_OPERATORS)}",
        )
    limit = _value(name, type_, value)
    if isinstance(limit, bool):
        raise InvalidFilter(f"{operator} orders true and false", expected="$eq or $ne")
    return Compare(name, _ORDERS[operator], limit)


def _equal(name: str, type_: Type | None, value: object) -> Where:
    if value is None:
        return IsNull(name)
    if not isinstance(value, list | tuple | set | frozenset):
        return Compare(name, "=", _value(name, type_, value))
    if not value:
        raise InvalidFilter(f"{name} is compared with an empty list", expected="one value or more")
    return In(name, tuple(_value(name, type_, item) for item in value))


def _value(name: str, type_: Type | None, value: object) -> Scalar:
    if isinstance(value, str):
        _check_text(value)
    if isinstance(value, bool | str) or (isinstance(value, date) and type_ is Type.TIME):
        return _checked(name, type_, value)
    if isinstance(value, int | float):
        return _checked(name, type_, _finite(value))
    raise InvalidFilter(
        f"{name} is {shown(value)}",
        expected="a text, a number, true, false, None, a list of them, or an operator such as "
        '{"$gt": 3}',
    )


def _listed(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return sorted(value, key=str) if isinstance(value, set | frozenset) else str(value)


# --- texts ---


def _trees(text: str) -> list[Any]:
    # Imported on first use: a command without a filter does not load the parser.
    from sqlglot import Dialect, exp
    from sqlglot.errors import SqlglotError

    dialect = Dialect.get_or_raise("sqlite")
    try:
        tokens = dialect.tokenize(text)
        # Parsed as a condition, not as a statement: for some statements the parser prints warnings.
        trees = dialect.parser().parse_into(exp.Condition, tokens, text)
    except (SqlglotError, RecursionError) as error:
        raise InvalidFilter(
            f"the filter cannot be parsed: {_reason(error):.200}", expected=_ALLOWED
        ) from None
    if any(token.comments for token in tokens):
        raise InvalidFilter("the filter contains a comment", expected=_ALLOWED)
    return trees


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    positions = getattr(error, "errors", None)
    return f"error at character {positions[0]['col']}" if positions else str(error).splitlines()[0]


def _where(node: Any, depth: int) -> Where:
    if depth == 0:
        raise InvalidFilter(
            "the filter is nested too deeply", expected=f"at most {_MAX_DEPTH} levels"
        )
    read = _READERS.get(node.key)
    # Arguments other than the operands (NOT LIKE, BETWEEN SYMMETRIC) change the meaning, so unknown
    # ones are refused.
    given = {name for name, value in node.args.items() if value}
    if read is None or given - _OPERANDS - _MODIFIERS.get(node.key, set()):
        raise InvalidFilter(f"{node.sql()[:80]!r} is not allowed in a filter", expected=_ALLOWED)
    return read(node, depth - 1)


def _and_or(node: Any, depth: int) -> Where:
    # A long chain of ANDs is parsed as a deep tree. It is flattened, so that its length does not
    # count as depth.
    parts: list[Where] = []
    kind = node.key
    while node.key == kind:
        parts.append(_where(node.expression, depth))
        node = node.this
    parts.append(_where(node, depth))
    flat = tuple(reversed(parts))
    return And(flat) if kind == "and" else Or(flat)


def _compare(node: Any, depth: int) -> Where:
    op = _OPS[node.key]
    left, right = node.this, node.expression
    if left.key != "column" and right.key == "column":
        left, right, op = right, left, _FLIPPED[op]
    name, type_ = _column(left)
    value = _literal(name, type_, right)
    if isinstance(value, bool) and op not in ("=", "<>"):
        raise InvalidFilter(f"{node.sql()[:80]!r} orders true and false", expected="= or <>")
    return Compare(name, op, value)


def _in(node: Any, depth: int) -> Where:
    name, type_ = _column(node.this)
    if node.args.get("query") or not node.expressions:
        raise InvalidFilter(
            f"{node.sql()[:80]!r} is not allowed in a filter", expected="IN with a list of literals"
        )
    return In(name, tuple(_literal(name, type_, item) for item in node.expressions))


def _like(node: Any, depth: int) -> Where:
    name, type_ = _column(node.this)
    pattern = _literal(name, type_, node.expression, is_pattern=True)
    if not isinstance(pattern, str) or len(pattern) > _MAX_PATTERN_CHARS:
        raise InvalidFilter(
            f"LIKE {str(pattern)[:60]!r}",
            expected=f"a text of at most {_MAX_PATTERN_CHARS:,} characters",
        )
    like = Like(name, pattern)
    return Not(like) if node.args.get("negate") else like


def _is(node: Any, depth: int) -> Where:
    if node.expression.key != "null":
        raise InvalidFilter(
            f"{node.sql()[:80]!r} is not allowed in a filter", expected="IS NULL or IS NOT NULL"
        )
    return IsNull(_column(node.this)[0])


def _between(node: Any, depth: int) -> Where:
    name, type_ = _column(node.this)
    low, high = _literal(name, type_, node.args["low"]), _literal(name, type_, node.args["high"])
    return And((Compare(name, ">=", low), Compare(name, "<=", high)))


def _column(node: Any) -> tuple[str, Type | None]:
    """Return the name and the type of a column; a key of the metadata has no type."""
    if node.key != "column":
        raise InvalidFilter(f"{node.sql()[:80]!r} is not a column", expected=_ALLOWED)
    parts = [part.name for part in node.parts]
    if len(parts) == 1 and parts[0] in FILTERABLE:
        return FILTERABLE[parts[0]].name, FILTERABLE[parts[0]].type
    if len(parts) == 2 and parts[0] == METADATA.rstrip("."):
        return METADATA + parts[1], None
    if len(parts) > 2 and parts[0] == METADATA.rstrip("."):
        raise InvalidFilter(
            f"{node.sql()[:80]!r} is inside of the key {parts[1][:40]!r}",
            expected=f'metadata.KEY; metadata."{".".join(parts[1:])[:80]}" is a key with dots',
        )
    name = ".".join(parts)[:80]
    key = "KEY" if name == METADATA.rstrip(".") else f'"{name}"' if len(parts) > 1 else name
    raise InvalidFilter(
        f"unknown column {name!r}",
        expected=f"metadata.{key} for a key of the metadata, or one of "
        f"{', '.join(sorted(FILTERABLE))}",
    )


def _literal(name: str, type_: Type | None, node: Any, *, is_pattern: bool = False) -> Scalar:
    return _checked(name, type_, _constant(node), is_pattern=is_pattern)


def _checked(name: str, type_: Type | None, value: Any, *, is_pattern: bool = False) -> Scalar:
    """Return the value as the column stores it, or raise `InvalidFilter` if it has another type."""
    if type_ is Type.TIME and not is_pattern and isinstance(value, str | date):
        try:
            return model.parse_time(value, name)
        except InvalidInput as error:
            raise InvalidFilter(error.what, expected=error.expected) from None
    wrong = (
        type_ is not Type.BOOL
        if isinstance(value, bool)
        else not isinstance(value, _LITERALS.get(type_ or Type.TEXT, str))
    )
    if type_ is not None and wrong:
        raise InvalidFilter(
            f"{name} is compared with {shown(value)}", expected=_EXPECTED.get(type_, "a text")
        )
    checked: Scalar = value
    return checked


def _constant(node: Any) -> Scalar:
    if node.key == "boolean":
        return bool(node.this)
    if node.key == "neg":
        value = _constant(node.this)
        if isinstance(value, str | bool):
            raise InvalidFilter(f"{node.sql()[:80]!r} is not a number")
        return -value
    if node.key != "literal":
        raise InvalidFilter(
            f"{node.sql()[:80]!r} is not a literal",
            expected="a text in single quotes, a number, TRUE or FALSE",
        )
    return str(node.this) if node.is_string else _number(str(node.this))


def _number(text: str) -> int | float:
    try:
        return _finite(int(text) if text.isdecimal() else float(text), text)
    except ValueError:  # more digits than Python converts
        return _finite(inf, text)


def _finite(value: float, text: str = "") -> int | float:
    try:
        number = value if abs(value) <= model.INT_MAX else float(value)
    except OverflowError:
        number = inf
    if not isfinite(number):
        raise InvalidFilter(f"{repr(text[:60]) if text else shown(value)} is not a finite number")
    return number


# The types of literals; columns of every other type are compared with texts.
_LITERALS: dict[Type, Any] = {Type.INT: int | float, Type.REAL: int | float, Type.BOOL: bool}
_EXPECTED = {
    Type.INT: "a number",
    Type.REAL: "a number",
    Type.BOOL: "true or false",
    Type.TIME: "a time",
}

_READERS: dict[str, Callable[[Any, int], Where]] = {
    "and": _and_or,
    "or": _and_or,
    "not": lambda node, depth: Not(_where(node.this, depth)),
    "paren": lambda node, depth: _where(node.this, depth),
    "in": _in,
    "like": _like,
    "is": _is,
    "between": _between,
    **dict.fromkeys(_OPS, _compare),
}
