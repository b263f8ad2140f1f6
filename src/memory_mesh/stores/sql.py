"""Compile `Where` to SQL. The text has only our own column names and placeholders; every value is a parameter."""

from collections.abc import Callable
from dataclasses import dataclass

from memory_mesh.core.model import (
    BY_NAME,
    METADATA,
    And,
    Anything,
    Compare,
    In,
    IsNull,
    Like,
    Not,
    Or,
    Scalar,
    Type,
    Where,
    batches,
    is_list,
    like,
)

# SQLite rejects a thousand terms in a row. Bracketed in groups of a hundred, ten thousand are accepted.
_MAX_TERMS = 100
# The LIKE of SQLite treats these three characters as equal.
_CONFUSED = frozenset("\ufffd\ufffe\uffff")


@dataclass(frozen=True, slots=True)
class Sql:
    """A fragment of SQL with its parameters."""

    text: str
    params: tuple[Scalar, ...] = ()
    depth: int = 0  # of nested brackets


class Compiler:
    """Compiles conditions to the dialect of SQLite; `column` returns the SQL expression of a field."""

    def __init__(self, column: Callable[[str], str]) -> None:
        self._column = column

    def where(self, condition: Where) -> Sql:
        match condition:
            case Anything():
                return Sql("1")
            case Compare(column, "<>", value) if is_list(column):
                return self.where(Not(Compare(column, "=", value)))
            case Compare(column, op, value):
                return self._each(column, f"{{}} {op} ?", (value,))
            case In(column, values):
                return self._in(column, values)
            case Like(column, pattern):
                exactly = "exactly_like({}, ?)" if _CONFUSED & {*pattern} else "{} LIKE ?"
                return self._each(column, exactly, (pattern,))
            case IsNull(column):
                return self._is_null(column)
            case And(parts):
                return self._joined(parts, " AND ", "1")
            case Or(parts):
                return self._joined(parts, " OR ", "0")
            case Not(part):
                return self._not(part)

    def _not(self, part: Where) -> Sql:
        """Compile a negation with NOT at the leaves only: the stack of the SQLite parser has 100 entries."""
        match part:
            case And(parts):
                return self.where(Or(tuple(Not(each) for each in parts)))
            case Or(parts):
                return self.where(And(tuple(Not(each) for each in parts)))
            case Not(inner):
                return self.where(inner)
        compiled = self.where(part)
        return Sql(f"NOT ({compiled.text})", compiled.params, compiled.depth + 2)

    def _joined(self, parts: tuple[Where, ...], word: str, empty: str) -> Sql:
        if len(parts) > _MAX_TERMS:
            kind = And if word == " AND " else Or
            parts = tuple(kind(tuple(batch)) for batch in batches(parts, _MAX_TERMS))
            return self._joined(parts, word, empty)
        # The deepest part first, so that the parser stack does not also hold the other parts.
        compiled = sorted((self.where(part) for part in parts), key=lambda part: part.depth, reverse=True)
        text = word.join(f"({part.text})" for part in compiled) or empty
        depth = 1 + max((part.depth for part in compiled), default=0)
        return Sql(text, tuple(param for part in compiled for param in part.params), depth)

    def _in(self, column: str, values: tuple[Scalar, ...]) -> Sql:
        by_type: dict[str, list[Scalar]] = {}
        for value in values:
            by_type.setdefault(_json_types(value), []).append(value)
        if len(by_type) != 1:
            return self.where(Or(tuple(In(column, tuple(same)) for same in by_type.values())))
        marks = ", ".join("?" * len(values))
        return self._each(column, f"{{}} IN ({marks})", values)

    def _each(self, column: str, test: str, values: tuple[Scalar, ...]) -> Sql:
        """Compile one test of a column, of each item of a list, or of a metadata key. The values are of one type."""
        if column.startswith(METADATA):
            inside = test.format("value")
            text = (
                f"(SELECT {inside} FROM json_each({self._column('metadata')}) "
                f"WHERE key = ? AND type IN ({_json_types(values[0])}))"
            )
            return Sql(text, (*values, column.removeprefix(METADATA)))
        if not _comparable(column, values[0]):
            return Sql("NULL")
        expression = self._column(column)
        if is_list(column):
            # Most lists are empty (`[]`), and checking the length is much cheaper than parsing them.
            text = (
                f"CASE WHEN length({expression}) < 3 THEN 0 WHEN {expression} IS NOT NULL THEN EXISTS "
                f"(SELECT 1 FROM json_each({expression}) WHERE {test.format('value')}) END"
            )
            return Sql(text, values)
        return Sql(test.format(expression), values)

    def _is_null(self, column: str) -> Sql:
        if column.startswith(METADATA):
            present = f"SELECT 1 FROM json_each({self._column('metadata')}) WHERE key = ? AND type <> 'null'"
            return Sql(f"NOT EXISTS ({present})", (column.removeprefix(METADATA),))
        return Sql(f"{self._column(column)} IS NULL")


def exactly_like(text: str | None, pattern: str) -> bool | None:
    """Evaluate LIKE for the patterns that SQLite gets wrong. Stores register it with their connections."""
    return None if text is None else like(text, pattern)


def _json_types(value: Scalar) -> str:
    """Return the JSON types, as SQLite names them, that compare with a literal."""
    if isinstance(value, bool):
        return "'true', 'false'"
    return "'text'" if isinstance(value, str) else "'integer', 'real'"


def _comparable(column: str, value: Scalar) -> bool:
    """Return whether a column has the type of the literal; if not, the condition is unknown for every row."""
    kind = BY_NAME[column].type
    if isinstance(value, bool):
        return kind is Type.BOOL
    if isinstance(value, str):
        return kind in (Type.TEXT, Type.TIME, Type.TEXTS)
    return kind in (Type.INT, Type.REAL)
