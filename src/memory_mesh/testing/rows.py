"""Rows, conditions and stores for tests: Hypothesis strategies, plain rows, and plain scores.

The strategies generate anything that `core.model.COLUMNS` allows, with many edge cases. All of it
needs the extra `testing`.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import fsum, sqrt
from pathlib import Path
from struct import pack, unpack
from threading import Barrier
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from memory_mesh.core.model import (
    ANYTHING,
    BASE,
    BY_NAME,
    COLUMNS,
    INT_MAX,
    METADATA,
    REQUIRED,
    TOKEN_BYTES,
    WITH_VECTOR,
    And,
    Anything,
    Column,
    Compare,
    Hit,
    In,
    IsNull,
    Json,
    Key,
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
from memory_mesh.core.ports import Store
from memory_mesh.core.search import Corpus, Posting, best, bm25
from memory_mesh.testing.fakes import NEW_YEAR

Test = TypeVar("Test", bound=Callable[..., None])

MODEL = "unit"
REMEMBERED = 100  # moves that every store must be able to name
# A slow machine must not fail a store.
SLOW_ALLOWED = (HealthCheck.too_slow, HealthCheck.data_too_large)

# Each of these has broken some store: quotes, wildcards, case, look-alikes, noncharacters, code
# points beyond 16 bits.
ODD_TEXTS = (
    "", " ", "a", "A", "b", "ab", "aB", "%", "_", "a%", "a_b", "\\", "'", '"', "`", "a.b", "$",
    "[0]", "{}", "?", "null", "true", "0", "1", "1.0", "1e3", "é", "e\u0301", "ß", "SS", "İ", "ı",
    "漢字", "\t", "a\nb", "\x01", "\x7f", "\u200f", "\u2028", "\ufeff", "\uffee", "\ufffd",
    "\ufffe", "\uffff", "\U00010000", "\U0001f600", "\U0010ffff", "'; DROP TABLE memories; --",
)  # fmt: skip
_LAST = 253_402_300_799_999  # the end of 9999


# Strategies are cached: making one costs more than drawing from it.
@cache
def texts() -> st.SearchStrategy[str]:
    """Generate any text that a store must keep: Unicode without NUL and without half surrogate
    pairs."""
    return st.sampled_from(ODD_TEXTS) | st.text(
        st.characters(codec="utf-8", exclude_characters="\0"), max_size=12
    )


@cache
def moments() -> st.SearchStrategy[str]:
    """Generate times as text; some values are frequent, so that rows have equal times."""
    return st.sampled_from((iso(0), iso(1), iso(NEW_YEAR))) | st.integers(0, _LAST).map(iso)


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
    inner = (
        leaf
        | st.lists(leaf, max_size=2)
        | st.dictionaries(texts(), leaf | st.lists(leaf, max_size=2), max_size=2)
    )
    return st.dictionaries(texts(), inner, max_size=3)


@cache
def vectors(
    models: tuple[str, ...] = ("one", "two"), *, dimensions: int = 3
) -> st.SearchStrategy[Vector]:
    """Generate vectors of several models and dimensions, including the zero vector, some with
    tokens."""
    part = st.sampled_from((0.0, 1.0, -1.0, 2.0)) | st.floats(
        width=32, allow_nan=False, allow_infinity=False
    )
    values = st.lists(part, min_size=1, max_size=dimensions)
    # Packed here and not by `Vector.of`, to check the byte order that stores must keep.
    return st.builds(
        lambda model, given, tokens: Vector(model, pack(f"<{len(given)}f", *given), tokens),
        st.sampled_from(models),
        values,
        st.binary(max_size=2).map(lambda part: part * TOKEN_BYTES),
    )


_TEXTS = texts()
_VALUES: dict[Type, st.SearchStrategy[Value]] = {
    Type.TEXT: _TEXTS,
    Type.TIME: moments(),
    Type.INT: integers(),
    Type.REAL: numbers(),
    Type.BOOL: st.booleans(),
    Type.TEXTS: st.lists(_TEXTS, max_size=4),
    Type.JSON: objects(),
}


@st.composite
def rows(
    draw: st.DrawFn, kinds: Sequence[Kind] = tuple(Kind), *, ids: st.SearchStrategy[str] = _TEXTS,
    partitions: st.SearchStrategy[str] = _TEXTS,
) -> Row:  # fmt: skip
    """Generate a row that every store must keep."""
    kind = draw(st.sampled_from(kinds))
    names = {*REQUIRED.get(kind, ()), *(column.name for column in draw(_some_columns(kind)))}
    return Row(
        kind=kind, id=draw(ids), partition=draw(partitions), created_at=draw(moments()),
        revision=draw(st.integers(1, 3) | st.integers(1, INT_MAX)),
        number=draw(st.integers(0, 2) | integers()),
        fields={name: draw(_VALUES[BY_NAME[name].type]) for name in sorted(names)},
        vector=draw(st.none() | vectors()) if kind in WITH_VECTOR else None,
    )  # fmt: skip


@cache
def _some_columns(kind: Kind) -> st.SearchStrategy[list[Column]]:
    return st.lists(st.sampled_from(fields_of(kind)), max_size=8)


def batches(
    kinds: Sequence[Kind] = tuple(Kind), *, max_size: int = 5
) -> st.SearchStrategy[list[Row]]:
    """Generate rows that can be in one store together: each key once, each number once in its
    chain."""

    def place(row: Row) -> object:
        return (row.value("chain"), row.number) if row.kind is Kind.BLOCK else row.key

    return st.lists(rows(kinds), max_size=max_size, unique_by=(lambda row: row.key, place))


@st.composite
def conditions(draw: st.DrawFn, near: Sequence[Row] = ()) -> Where:
    """Generate conditions of every shape; half of their values come from the rows `near`, if
    given."""
    keys = {METADATA + key for row in near for key in _metadata(row)}
    return _where(draw, [*_values_in(near)], [*_COLUMNS, *sorted(keys)], _MAX_DEPTH)


def _where(
    draw: st.DrawFn, known: Sequence["_ColumnValue"], columns: Sequence[str], depth: int
) -> Where:
    # Not `st.recursive`: it would be built again for each set of rows, which costs more than
    # everything else.
    shape = draw(_SHAPES if depth else _LEAVES)
    if shape is Anything:
        return ANYTHING
    if shape is Not:
        return Not(_where(draw, known, columns, depth - 1))
    if shape is And or shape is Or:
        parts = tuple(_where(draw, known, columns, depth - 1) for _ in range(draw(_FEW)))
        return And(parts) if shape is And else Or(parts)
    return _leaf(draw, shape, known, columns)


def _leaf(
    draw: st.DrawFn, shape: type, known: Sequence["_ColumnValue"], columns: Sequence[str]
) -> Where:
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
_SHAPES: st.SearchStrategy[type] = st.sampled_from(
    (Compare, Compare, In, Like, IsNull, Anything, And, Or, Not)
)
_OPS: st.SearchStrategy[Op] = st.sampled_from(("=", "<>", "<", "<=", ">", ">="))
_WILD = st.sampled_from(("", "%", "_", "%_", "%%"))
_LITERALS = scalars() | st.sampled_from((float("inf"), float("-inf")))
_LITERAL_LISTS = st.lists(_LITERALS, max_size=2)
# There is one boolean column and many text columns; repeat names so that each type is about equally
# frequent.
_BY_TYPE = [[column.name for column in COLUMNS if column.type is type_] for type_ in Type]
_COLUMNS = [name for names in _BY_TYPE for name in names * (12 // len(names) or 1)] + [
    METADATA + key for key in ODD_TEXTS[:20]
]


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


# --- the store under test, and plain rows ---


class Subject(ABC):
    """A store under test. Subclasses define how it is opened."""

    # False for a store whose data ends when it is closed.
    durable = True

    @abstractmethod
    def open(self, place: Path) -> Store:
        """Open the store in the folder `place`, which is empty at first.

        Called again with the same folder it returns another handle on the same data; a store that
        is not durable returns the same object.
        """

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        folder = tmp_path / "store"
        folder.mkdir()
        return folder

    @pytest.fixture
    def store(self, place: Path) -> Iterator[Store]:
        """Return a new store."""
        store = self.open(place)
        yield store
        store.close()

    @pytest.fixture
    def other(self, place: Path, store: Store) -> Iterator[Store]:
        """Return a second handle on the store."""
        other = self.open(place)
        yield other
        other.close()


def property_test(test: Test) -> Test:
    """Mark a property test that uses one store for all examples; each example starts with
    `cleared`."""
    # One store serves all examples, and one contract serves many stores; both are intended.
    intended = (HealthCheck.function_scoped_fixture, HealthCheck.differing_executors)
    return settings(deadline=None, suppress_health_check=[*intended, *SLOW_ALLOWED])(test)


def cleared(store: Store) -> Store:
    """Delete all rows of the store and return it."""
    store.apply(deletes=[Key(kind, id_) for kind in Kind for id_ in store.ids(kind)])
    return store


def memory(
    id_: str = "m1", words: Sequence[str] = (), *, partition: str = "p", ms: int = 0,
    number: int = 0, revision: int = 1, replaces: int = 0, vector: Sequence[float] | None = None,
    model: str = MODEL, tokens: bytes = b"", **fields: Value,
) -> Row:  # fmt: skip
    """Return a memory with the given fields and few others."""
    plain: dict[str, Value] = {"content": f"content of {id_}", "updated_at": iso(NEW_YEAR)}
    if words:
        plain["keywords"] = list(words)
    return Row(
        kind=Kind.MEMORY, id=id_, partition=partition, created_at=iso(NEW_YEAR + ms),
        revision=revision, number=number, fields=plain | fields,
        vector=None if vector is None else Vector.of(model, list(vector), tokens),
        replaces=replaces,
    )  # fmt: skip


def passage(
    id_: str, of: str, vector: Sequence[float], *, partition: str = "p", model: str = MODEL,
    tokens: bytes = b"",
) -> Row:  # fmt: skip
    """Return a passage: a further vector of the memory `of`."""
    return Row(
        kind=Kind.PASSAGE, id=id_, partition=partition, created_at=iso(NEW_YEAR),
        fields={"ref": of}, vector=Vector.of(model, list(vector), tokens),
    )  # fmt: skip


def plain(
    kind: Kind,
    id_: str = "r1",
    *,
    partition: str = "p",
    number: int = 0,
    revision: int = 1,
    replaces: int = 0,
) -> Row:
    """Return a row of a kind with only its required fields."""
    fields: dict[Kind, dict[str, Value]] = {
        Kind.MEMORY: {"content": "c", "updated_at": iso(NEW_YEAR)},
        Kind.SKILL: {"name": "n", "intent": "i", "content": "c", "updated_at": iso(NEW_YEAR)},
        Kind.BLOCK: {
            "chain": partition,
            "operation_type": "retain",
            "yamo_text": "t",
            "block_hash": "h",
        },
    }
    return Row(
        kind=kind, id=id_, partition=partition, created_at=iso(NEW_YEAR), revision=revision,
        number=number, fields=fields.get(kind, {}), replaces=replaces,
    )  # fmt: skip


def full(kind: Kind, *, revision: int = 1) -> Row:
    """Return a row with a value in every field of its kind."""
    values: dict[Type, Value] = {
        Type.TEXT: "a text",
        Type.TIME: iso(NEW_YEAR),
        Type.INT: 7,
        Type.REAL: 0.25,
        Type.BOOL: True,
        Type.TEXTS: ["one", "two"],
        Type.JSON: {"key": ["value", {"deeper": None}]},
    }
    fields = {column.name: values[column.type] for column in fields_of(kind)}
    return Row(
        kind=kind,
        id="full",
        partition="p",
        created_at=iso(NEW_YEAR),
        revision=revision,
        number=5,
        fields=fields,
    )


def query(*values: float, model: str = MODEL) -> Vector:
    """Return the vector of a query."""
    return Vector.of(model, list(values))


def within(*partitions: str) -> Where:
    """Return the condition of the rows of these partitions."""
    return In("partition", partitions)


def ids(found: Sequence[Row | Hit]) -> list[str]:
    return [each.id for each in found]


def scores(rows: Sequence[Row], words: Sequence[str]) -> list[Hit]:
    """Return the BM25 scores of these rows by `core.search`, best first."""
    documents = {row.id: Counter(row.keywords) for row in rows if row.keywords}
    postings = {
        word: [
            Posting(id_, each[word], each.total()) for id_, each in documents.items() if each[word]
        ]
        for word in set(words)
    }
    corpus = Corpus(len(documents), sum(each.total() for each in documents.values()))
    return [Hit(*found) for found in best(bm25(postings, corpus, words))]


def cosine(left: Vector, right: Vector) -> float:
    """Compute the cosine in plain Python."""
    a, b = (unpack(f"<{vector.dimension}f", vector.data) for vector in (left, right))
    lengths = sqrt(fsum(x * x for x in a)) * sqrt(fsum(x * x for x in b))
    return fsum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


def together(jobs: list[Callable[[], None]]) -> None:
    """Run the jobs at the same time, and raise what one of them raises."""
    start = Barrier(len(jobs))

    def run(job: Callable[[], None]) -> None:
        start.wait()
        job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        for done in [pool.submit(run, job) for job in jobs]:
            done.result()
