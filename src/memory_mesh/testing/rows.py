"""Hypothesis strategies for rows, vectors and conditions: anything that `core.model.COLUMNS` allows, with many edge cases.

They need the extra `testing`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from struct import pack

from hypothesis import strategies as st

from memory_mesh.core.model import (
    ANYTHING,
    BASE,
    BY_NAME,
    COLUMNS,
    INT_MAX,
    METADATA,
    REQUIRED,
    WITH_VECTOR,
    And,
    Anything,
    Column,
    Compare,
    In,
    IsNull,
    Json,
    Kind,
    Like,
    Not,
    Op,
    Or,
    Row,
    Scalar,
    Type,
    Value,
    Vector,
    Where,
    fields_of,
    iso,
)

# Each of these has broken some store: quotes, wildcards, case, look-alikes, noncharacters, code points beyond 16 bits.
ODD_TEXTS = (
    *("", " ", "a", "A", "b", "ab", "aB", "%", "_", "a%", "a_b", "\\", "'", '"', "`", "a.b", "$", "[0]", "{}", "?"),
    *("null", "true", "0", "1", "1.0", "1e3", "é", "e\u0301", "ß", "SS", "İ", "ı", "漢字", "\t", "a\nb", "\x01", "\x7f"),
    *("\u200f", "\u2028", "\ufeff", "\uffee", "\ufffd", "\ufffe", "\uffff", "\U00010000", "\U0001f600", "\U0010ffff"),
    "'; DROP TABLE memories; --",
)
_FIRST, _LAST = 0, 253_402_300_799_999  # 1970 to the end of 9999


# Strategies are cached: making one costs more than drawing from it.
@cache
def texts() -> st.SearchStrategy[str]:
    """Generate any text that a store must keep: Unicode without NUL and without half surrogate pairs."""
    return st.sampled_from(ODD_TEXTS) | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


@cache
def moments() -> st.SearchStrategy[str]:
    """Generate times as text; some values are frequent, so that rows have equal times."""
    few = st.sampled_from((iso(0), iso(1), iso(1_767_225_600_000)))
    return few | st.integers(_FIRST, _LAST).map(iso)


@cache
def integers() -> st.SearchStrategy[int]:
    return st.sampled_from((0, 1, -1, 2, 10, INT_MAX, -INT_MAX)) | st.integers(-INT_MAX, INT_MAX)


@cache
def numbers() -> st.SearchStrategy[int | float]:
    odd = st.sampled_from((0.0, -0.0, 0.1, 0.5, 1.0, 1e-300, 5e-324, 1.7976931348623157e308))
    return integers() | odd | st.floats(allow_nan=False, allow_infinity=False)


@cache
def scalars() -> st.SearchStrategy[Scalar]:
    return texts() | numbers() | st.booleans()


@cache
def objects() -> st.SearchStrategy[dict[str, Json]]:
    """Generate JSON objects, slightly nested."""
    leaf: st.SearchStrategy[Json] = st.none() | scalars()
    inner = leaf | st.lists(leaf, max_size=2) | st.dictionaries(texts(), leaf | st.lists(leaf, max_size=2), max_size=2)
    return st.dictionaries(texts(), inner, max_size=3)


@cache
def vectors(models: tuple[str, ...] = ("one", "two"), *, dimensions: int = 3) -> st.SearchStrategy[Vector]:
    """Generate vectors of several models and dimensions, including the zero vector."""
    part = st.sampled_from((0.0, 1.0, -1.0, 2.0)) | st.floats(width=32, allow_nan=False, allow_infinity=False)
    values = st.lists(part, min_size=1, max_size=dimensions)
    # Packed here and not by `Vector.of`, to check the byte order that stores must keep.
    return st.builds(lambda model, given: Vector(model, pack(f"<{len(given)}f", *given)), st.sampled_from(models), values)


_VALUES: dict[Type, Callable[[], st.SearchStrategy[Value]]] = {
    Type.TEXT: texts,
    Type.TIME: moments,
    Type.INT: integers,
    Type.REAL: numbers,
    Type.BOOL: st.booleans,
    Type.TEXTS: lambda: _TEXT_LISTS,
    Type.JSON: objects,
}
_ANY_TEXT = texts()
_TEXT_LISTS: st.SearchStrategy[list[Json]] = st.lists(texts(), max_size=4)


def values_of(column: Column) -> st.SearchStrategy[Value]:
    """Generate values that a column may have."""
    return _VALUES[column.type]()


@st.composite
def rows(
    draw: st.DrawFn,
    kinds: Sequence[Kind] = tuple(Kind),
    *,
    ids: st.SearchStrategy[str] = _ANY_TEXT,
    partitions: st.SearchStrategy[str] = _ANY_TEXT,
) -> Row:
    """Generate a row that every store must keep."""
    kind = draw(st.sampled_from(kinds))
    names = {*REQUIRED.get(kind, ()), *(column.name for column in draw(_some_columns(kind)))}
    return Row(
        kind=kind,
        id=draw(ids),
        partition=draw(partitions),
        created_at=draw(moments()),
        revision=draw(st.integers(1, 3) | st.integers(1, INT_MAX)),
        number=draw(st.integers(0, 2) | integers()),
        fields={name: draw(values_of(BY_NAME[name])) for name in sorted(names)},
        vector=draw(st.none() | vectors()) if kind in WITH_VECTOR else None,
    )


@cache
def _some_columns(kind: Kind) -> st.SearchStrategy[list[Column]]:
    return st.lists(st.sampled_from(fields_of(kind)), max_size=8)


def batches(kinds: Sequence[Kind] = tuple(Kind), *, max_size: int = 5) -> st.SearchStrategy[list[Row]]:
    """Generate rows that can be in one store together: each key once, each number once in its chain."""
    return st.lists(rows(kinds), max_size=max_size, unique_by=(lambda row: row.key, _place))


def _place(row: Row) -> object:
    return (row.value("chain"), row.number) if row.kind is Kind.BLOCK else row.key


@st.composite
def conditions(draw: st.DrawFn, near: Sequence[Row] = ()) -> Where:
    """Generate conditions of every shape; half of their values come from the rows `near`, if given."""
    keys = {METADATA + key for row in near for key in _metadata(row)}
    return _where(draw, [*_values_in(near)], [*_COLUMNS, *sorted(keys)], _MAX_DEPTH)


def _where(draw: st.DrawFn, known: Sequence["_ColumnValue"], columns: Sequence[str], depth: int) -> Where:
    # Not `st.recursive`: it would be built again for each set of rows, which costs more than everything else.
    shape = draw(_SHAPES if depth else _LEAVES)
    if shape is Anything:
        return ANYTHING
    if shape is Not:
        return Not(_where(draw, known, columns, depth - 1))
    if shape is And or shape is Or:
        parts = tuple(_where(draw, known, columns, depth - 1) for _ in range(draw(_FEW)))
        return And(parts) if shape is And else Or(parts)
    return _leaf(draw, shape, known, columns)


def _leaf(draw: st.DrawFn, shape: type, known: Sequence["_ColumnValue"], columns: Sequence[str]) -> Where:
    if len(known) > 0 and draw(st.booleans()):
        column, value = draw(st.sampled_from(known))
    else:
        column, value = draw(st.sampled_from(columns)), draw(_LITERALS)
    if shape is Compare:
        return Compare(column, draw(_OPS), value)
    if shape is In:
        others = draw(_LITERAL_LISTS)
        return In(column, (value, *others) if draw(_FEW) else tuple(others))
    return IsNull(column) if shape is IsNull else Like(column, _pattern(draw, str(value)))


def _pattern(draw: st.DrawFn, text: str) -> str:
    """Return the text with a wildcard in place of a part."""
    cut, resume = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
    pattern = text[:cut] + draw(_WILD) + text[resume:]
    return pattern.swapcase() if draw(st.booleans()) else pattern


_ColumnValue = tuple[str, Scalar]
_MAX_DEPTH = 3
_FEW = st.integers(0, 3)
_LEAVES: st.SearchStrategy[type] = st.sampled_from((Compare, In, Like, IsNull))
_SHAPES: st.SearchStrategy[type] = st.sampled_from((Compare, Compare, In, Like, IsNull, Anything, And, Or, Not))
_OPS: st.SearchStrategy[Op] = st.sampled_from(("=", "<>", "<", "<=", ">", ">="))
_WILD = st.sampled_from(("", "%", "_", "%_", "%%"))
_LITERALS = scalars() | st.sampled_from((float("inf"), float("-inf")))
_LITERAL_LISTS = st.lists(_LITERALS, max_size=2)
# There is one boolean column and many text columns; repeat names so that each type is about equally frequent.
_BY_TYPE = [[column.name for column in COLUMNS if column.type is type_] for type_ in Type]
_COLUMNS = [name for names in _BY_TYPE for name in names * (12 // len(names) or 1)] + [METADATA + key for key in ODD_TEXTS[:20]]


def _values_in(near: Sequence[Row]) -> Iterator[_ColumnValue]:
    """Yield each comparable value of the rows with its column."""
    for row in near:
        values = {**{name: row.value(name) for name in BASE}, **row.fields}
        values |= {METADATA + key: value for key, value in _metadata(row).items()}
        for column, value in values.items():
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, str | int | float):
                    yield column, str(item) if isinstance(item, Kind) else item


def _metadata(row: Row) -> dict[str, Json]:
    values = row.value("metadata")
    return values if isinstance(values, dict) else {}
