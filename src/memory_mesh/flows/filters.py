"""Filter text into conditions: parsed, never pasted. Known columns, literals, AND/OR/NOT, comparisons, LIKE, IN, IS NULL."""

from collections.abc import Callable
from math import inf, isfinite
from typing import Any

from memory_mesh.core.errors import InvalidFilter, InvalidInput
from memory_mesh.core.model.columns import BY_NAME, FILTERABLE, INT_MAX, Column, Scalar, Type, fault
from memory_mesh.core.model.times import parse_time
from memory_mesh.core.model.where import METADATA, And, Compare, In, IsNull, Like, Not, Op, Or, Where

_LONGEST = 10_000
_LONGEST_PATTERN = 1_000
_DEEPEST = 60
_ALLOWED = "columns, literals, AND, OR, NOT, comparisons, LIKE, IN and IS NULL"
_OPS: dict[str, Op] = {"eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_PARTS = {"this", "expression", "expressions", "low", "high", "query"}
_TURNS = {"like": {"negate"}}
_FLIPPED: dict[Op, Op] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def parse(text: object) -> Where:
    """The condition that a filter says; anything outside its small language is an error that says so."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidFilter("the filter is blank", expected="an expression such as memory_type = 'global'")
    if len(text) > _LONGEST:
        raise InvalidFilter(f"the filter has {len(text):,} characters", expected=f"at most {_LONGEST:,}")
    if wrong := fault(BY_NAME["content"], text):
        raise InvalidFilter(f"the filter{wrong.removeprefix('content')}", expected="valid Unicode")
    trees = _trees(text)
    if len(trees) != 1 or trees[0] is None:
        raise InvalidFilter("the filter is more than one expression", expected="one")
    return _where(trees[0], _DEEPEST)


def _trees(text: str) -> list[Any]:
    # Loaded by the first filter: a command without one does not pay for the parser.
    from sqlglot import Dialect, exp
    from sqlglot.errors import SqlglotError

    dialect = Dialect.get_or_raise("sqlite")
    try:
        tokens = dialect.tokenize(text)
        # Read as a condition, never as a statement: of some statements the parser would print what it thinks of them.
        trees = dialect.parser().parse_into(exp.Condition, tokens, text)
    except (SqlglotError, RecursionError) as error:
        raise InvalidFilter(f"the filter cannot be read: {_reason(error):.200}", expected=_ALLOWED) from None
    if any(token.comments for token in tokens):
        raise InvalidFilter("the filter holds a comment", expected=_ALLOWED)
    return trees


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    places = getattr(error, "errors", None)
    return f"it goes wrong at character {places[0]['col']}" if places else str(error).splitlines()[0]


def _where(node: Any, depth: int) -> Where:
    if depth == 0:
        raise InvalidFilter("the filter is nested too deeply", expected=f"at most {_DEEPEST} levels")
    read = _READERS.get(node.key)
    # What a parser says beyond the two sides (NOT LIKE, BETWEEN SYMMETRIC) turns the meaning: it is known, or it is refused.
    said = {name for name, value in node.args.items() if value}
    if read is None or said - _PARTS - _TURNS.get(node.key, set()):
        raise InvalidFilter(f"{node.sql()[:80]!r} is not allowed in a filter", expected=_ALLOWED)
    return read(node, depth - 1)


def _both(node: Any, depth: int) -> Where:
    # A long chain of ANDs is a deep tree to the right; it is read flat, so that its length is not mistaken for depth.
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
    column = _column(left)
    value = _literal(column, right)
    if isinstance(value, bool) and op not in ("=", "<>"):
        raise InvalidFilter(f"{node.sql()[:80]!r} orders true and false", expected="= or <>")
    return Compare(_name(column), op, value)


def _in(node: Any, depth: int) -> Where:
    column = _column(node.this)
    if node.args.get("query") or not node.expressions:
        raise InvalidFilter(f"{node.sql()[:80]!r} is not allowed in a filter", expected="IN with a list of literals")
    return In(_name(column), tuple(_literal(column, item) for item in node.expressions))


def _like(node: Any, depth: int) -> Where:
    column = _column(node.this)
    pattern = _literal(column, node.expression, whole=False)
    if not isinstance(pattern, str) or len(pattern) > _LONGEST_PATTERN:
        raise InvalidFilter(f"LIKE {str(pattern)[:60]!r}", expected=f"a text of at most {_LONGEST_PATTERN:,} characters")
    like = Like(_name(column), pattern)
    return Not(like) if node.args.get("negate") else like


def _is(node: Any, depth: int) -> Where:
    if node.expression.key != "null":
        raise InvalidFilter(f"{node.sql()[:80]!r} is not allowed in a filter", expected="IS NULL or IS NOT NULL")
    return IsNull(_name(_column(node.this)))


def _between(node: Any, depth: int) -> Where:
    column = _column(node.this)
    low, high = _literal(column, node.args["low"]), _literal(column, node.args["high"])
    return And((Compare(_name(column), ">=", low), Compare(_name(column), "<=", high)))


def _column(node: Any) -> "Column | str":
    """A column of ours, or `metadata.key` as text."""
    if node.key != "column":
        raise InvalidFilter(f"{node.sql()[:80]!r} is no column", expected=_ALLOWED)
    parts = [part.name for part in node.parts]
    if len(parts) == 1 and parts[0] in FILTERABLE:
        return FILTERABLE[parts[0]]
    if len(parts) > 1 and parts[0] == METADATA.rstrip("."):
        return METADATA + ".".join(parts[1:])
    name = ".".join(parts)[:80]
    raise InvalidFilter(
        f"{name!r} is no column",
        expected=f"one of {', '.join(sorted(FILTERABLE))}",
        remedy=f"a key that lives only in the metadata is written metadata.{name}",
    )


def _name(column: "Column | str") -> str:
    return column if isinstance(column, str) else column.name


def _literal(column: "Column | str", node: Any, *, whole: bool = True) -> Scalar:
    value = _constant(node)
    if isinstance(column, str):
        return value
    wanted = _LITERALS[column.type]
    fits = isinstance(value, bool) if wanted is bool else isinstance(value, wanted) and not isinstance(value, bool)
    if not fits:
        raise InvalidFilter(f"{column.name} is compared with {value!r:.60}", expected=f"a {column.type.value}")
    return _moment(column, value) if column.type is Type.TIME and whole else value


def _moment(column: Column, value: Scalar) -> str:
    try:
        return parse_time(value, column.name)
    except InvalidInput as error:
        raise InvalidFilter(error.what, expected=error.expected) from None


def _constant(node: Any) -> Scalar:
    if node.key == "boolean":
        return bool(node.this)
    if node.key == "neg":
        value = _constant(node.this)
        if isinstance(value, str | bool):
            raise InvalidFilter(f"{node.sql()[:80]!r} is no number")
        return -value
    if node.key != "literal":
        raise InvalidFilter(f"{node.sql()[:80]!r} is no literal", expected="a text in single quotes, a number, TRUE or FALSE")
    return str(node.this) if node.is_string else _number(str(node.this))


def _number(text: str) -> int | float:
    try:
        value = int(text) if text.isdecimal() else float(text)
        value = value if abs(value) <= INT_MAX else float(value)
    except (ValueError, OverflowError):
        value = inf
    if not isfinite(value):
        raise InvalidFilter(f"{text[:60]!r} is no number that can be compared")
    return value


_LITERALS: dict[Type, Any] = {
    Type.TEXT: str,
    Type.TIME: str,
    Type.TEXTS: str,
    Type.JSON: str,
    Type.INT: int | float,
    Type.REAL: int | float,
    Type.BOOL: bool,
}

_READERS: dict[str, Callable[[Any, int], Where]] = {
    "and": _both,
    "or": _both,
    "not": lambda node, depth: Not(_where(node.this, depth)),
    "paren": lambda node, depth: _where(node.this, depth),
    "in": _in,
    "like": _like,
    "is": _is,
    "between": _between,
    **dict.fromkeys(_OPS, _compare),
}
