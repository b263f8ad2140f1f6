"""`Where` as SQL. The text holds column names of ours and placeholders only; every value travels as a parameter."""

from collections.abc import Callable
from dataclasses import dataclass

from memory_mesh.core.columns import BY_NAME, Scalar, Type
from memory_mesh.core.where import METADATA, And, Anything, Compare, In, IsNull, Like, Not, Or, Where, is_list

# SQLite's name for the JSON types that a literal of ours may be compared with.
_JSON_TYPES = {str: "'text'", bool: "'true', 'false'", int: "'integer', 'real'", float: "'integer', 'real'"}


@dataclass(frozen=True, slots=True)
class Sql:
    """A piece of SQL and its parameters."""

    text: str
    params: tuple[Scalar, ...] = ()


class Compiler:
    """Conditions into SQLite's dialect, for a table; `column` says how a field is reached there."""

    def __init__(self, column: Callable[[str], str]) -> None:
        self._column = column

    def where(self, condition: Where) -> Sql:
        match condition:
            case Anything():
                return Sql("1")
            case Compare(column, "<>", value) if is_list(column):
                return self.where(Not(Compare(column, "=", value)))
            case Compare(column, op, value):
                return self._each(column, f"{{}} {op} ?", value)
            case In(column, values):
                return self._in(column, values)
            case Like(column, pattern):
                return self._each(column, "{} LIKE ?", pattern)
            case IsNull(column):
                return self._is_null(column)
            case And(parts):
                return self._joined(parts, " AND ", "1")
            case Or(parts):
                return self._joined(parts, " OR ", "0")
            case Not(part):
                inner = self.where(part)
                return Sql(f"NOT ({inner.text})", inner.params)

    def _joined(self, parts: tuple[Where, ...], word: str, empty: str) -> Sql:
        compiled = [self.where(part) for part in parts]
        text = word.join(f"({part.text})" for part in compiled) or empty
        return Sql(text, tuple(param for part in compiled for param in part.params))

    def _in(self, column: str, values: tuple[Scalar, ...]) -> Sql:
        plain = not is_list(column) and not column.startswith(METADATA)
        if not plain or not values or len({type(value) for value in values}) > 1:
            return self.where(Or(tuple(Compare(column, "=", value) for value in values)))
        if not _comparable(column, values[0]):
            return Sql("NULL")
        marks = ", ".join("?" * len(values))
        return Sql(f"{self._column(column)} IN ({marks})", tuple(values))

    def _each(self, column: str, test: str, value: Scalar) -> Sql:
        """One test of a column's value, of each of its items, or of a key of the metadata."""
        if column.startswith(METADATA):
            inside = test.format("value")
            text = (
                f"(SELECT {inside} FROM json_each({self._column('metadata')}) "
                f"WHERE key = ? AND type IN ({_JSON_TYPES[type(value)]}))"
            )
            return Sql(text, (value, column.removeprefix(METADATA)))
        if not _comparable(column, value):
            return Sql("NULL")
        reached = self._column(column)
        if is_list(column):
            text = (
                f"CASE WHEN {reached} IS NOT NULL THEN EXISTS "
                f"(SELECT 1 FROM json_each({reached}) WHERE {test.format('value')}) END"
            )
            return Sql(text, (value,))
        return Sql(test.format(reached), (value,))

    def _is_null(self, column: str) -> Sql:
        if column.startswith(METADATA):
            held = f"SELECT 1 FROM json_each({self._column('metadata')}) WHERE key = ? AND type <> 'null'"
            return Sql(f"NOT EXISTS ({held})", (column.removeprefix(METADATA),))
        return Sql(f"{self._column(column)} IS NULL")


def _comparable(column: str, value: Scalar) -> bool:
    """Whether a column's values are of the literal's type; if not, the answer is unknown for every row."""
    kind = BY_NAME[column].type
    if isinstance(value, bool):
        return kind is Type.BOOL
    if isinstance(value, str):
        return kind in (Type.TEXT, Type.TIME, Type.TEXTS)
    return kind in (Type.INT, Type.REAL)
