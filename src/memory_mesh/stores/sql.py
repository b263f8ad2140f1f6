"""`Where` as SQL. The text holds column names of ours and placeholders only; every value travels as a parameter."""

from collections.abc import Callable
from dataclasses import dataclass

from memory_mesh.core.model.columns import BY_NAME, Scalar, Type
from memory_mesh.core.model.rows import batches
from memory_mesh.core.model.where import METADATA, And, Anything, Compare, In, IsNull, Like, Not, Or, Where, is_list, like

# SQLite gives up on a thousand terms in a row; as brackets of a hundred they may be ten thousand.
_ROW = 100
# SQLite's LIKE takes these three for one another.
_CONFUSED = frozenset("\ufffd\ufffe\uffff")


@dataclass(frozen=True, slots=True)
class Sql:
    """A piece of SQL and its parameters."""

    text: str
    params: tuple[Scalar, ...] = ()
    depth: int = 0  # of brackets


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
        """The other way round, with NOT at the leaves only: SQLite's parser holds no more than 100 open words."""
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
        if len(parts) > _ROW:
            kind = And if word == " AND " else Or
            parts = tuple(kind(tuple(batch)) for batch in batches(parts, _ROW))
            return self._joined(parts, word, empty)
        # The deepest first, so that the parser need not hold the others while it reads it.
        compiled = sorted((self.where(part) for part in parts), key=lambda part: part.depth, reverse=True)
        text = word.join(f"({part.text})" for part in compiled) or empty
        depth = 1 + max((part.depth for part in compiled), default=0)
        return Sql(text, tuple(param for part in compiled for param in part.params), depth)

    def _in(self, column: str, values: tuple[Scalar, ...]) -> Sql:
        alike: dict[str, list[Scalar]] = {}
        for value in values:
            alike.setdefault(_json_types(value), []).append(value)
        if len(alike) != 1:
            return self.where(Or(tuple(In(column, tuple(some)) for some in alike.values())))
        marks = ", ".join("?" * len(values))
        return self._each(column, f"{{}} IN ({marks})", values)

    def _each(self, column: str, test: str, values: tuple[Scalar, ...]) -> Sql:
        """One test of a column's value, of each of its items, or of a key of the metadata; the values are of one type."""
        if column.startswith(METADATA):
            inside = test.format("value")
            text = (
                f"(SELECT {inside} FROM json_each({self._column('metadata')}) "
                f"WHERE key = ? AND type IN ({_json_types(values[0])}))"
            )
            return Sql(text, (*values, column.removeprefix(METADATA)))
        if not _comparable(column, values[0]):
            return Sql("NULL")
        reached = self._column(column)
        if is_list(column):
            # Most lists are empty: `[]`. To see that is much cheaper than to read them.
            text = (
                f"CASE WHEN length({reached}) < 3 THEN 0 WHEN {reached} IS NOT NULL THEN EXISTS "
                f"(SELECT 1 FROM json_each({reached}) WHERE {test.format('value')}) END"
            )
            return Sql(text, values)
        return Sql(test.format(reached), values)

    def _is_null(self, column: str) -> Sql:
        if column.startswith(METADATA):
            held = f"SELECT 1 FROM json_each({self._column('metadata')}) WHERE key = ? AND type <> 'null'"
            return Sql(f"NOT EXISTS ({held})", (column.removeprefix(METADATA),))
        return Sql(f"{self._column(column)} IS NULL")


def exactly_like(text: str | None, pattern: str) -> bool | None:
    """LIKE for the patterns that SQLite's own reads wrongly; stores make it known to their connections."""
    return None if text is None else like(text, pattern)


def _json_types(value: Scalar) -> str:
    """SQLite's names for the JSON types that a literal may be compared with."""
    if isinstance(value, bool):
        return "'true', 'false'"
    return "'text'" if isinstance(value, str) else "'integer', 'real'"


def _comparable(column: str, value: Scalar) -> bool:
    """Whether a column's values are of the literal's type; if not, the answer is unknown for every row."""
    kind = BY_NAME[column].type
    if isinstance(value, bool):
        return kind is Type.BOOL
    if isinstance(value, str):
        return kind in (Type.TEXT, Type.TIME, Type.TEXTS)
    return kind in (Type.INT, Type.REAL)
