"""What stores keep (rows), what they answer (hits), and how a vector travels."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import NamedTuple, TypeVar

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model.columns import BASE, BY_NAME, REQUIRED, WITH_VECTOR, Kind, Value, fault

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Vector:
    """An embedding and the model it belongs to: packed little-endian 32-bit floats, so that equal means equal."""

    model: str
    data: bytes

    @property
    def dimension(self) -> int:
        return len(self.data) // 4

    @classmethod
    def of(cls, model: str, values: list[float]) -> "Vector":
        # `array` is native-endian; every platform that the wheel's dependencies exist for is little-endian.
        return cls(model, array("f", values).tobytes())


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One thing kept. A put says which revision it `replaces`; 0 is none: the row is new."""

    kind: Kind
    id: str
    partition: str
    created_at: str
    revision: int = 1
    number: int = 0
    fields: Mapping[str, Value] = field(default_factory=dict)
    vector: Vector | None = None
    replaces: int = field(default=0, compare=False)  # said to the store, not kept by it

    @property
    def key(self) -> "Key":
        return Key(self.kind, self.id)

    def value(self, name: str) -> Value:
        """A field by its column's name; None where it has none."""
        if name in BASE:
            return getattr(self, name)  # type: ignore[no-any-return]
        return self.fields.get(name)

    @property
    def age_key(self) -> tuple[str, int, str]:
        """Newest first is this, descending."""
        return self.created_at, self.number, self.id


class Key(NamedTuple):
    """What names a row."""

    kind: Kind
    id: str


class Hit(NamedTuple):
    """An answer of a search within a store; a higher score is better."""

    id: str
    score: float


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield `items` in slices of at most `size`."""
    return (items[start : start + size] for start in range(0, len(items), size))


def checked(row: Row) -> Row:
    """The row without empty fields; a field or a vector that its kind lacks, or of a wrong type, is an error."""
    fields = {name: value for name, value in row.fields.items() if value is not None}
    for name, value in fields.items():
        column = BY_NAME.get(name)
        if column is None or row.kind not in column.kinds or name in BASE:
            raise InvalidInput(f"a {row.kind} has no field {name!r}")
        if wrong := fault(column, value):
            raise InvalidInput(wrong)
    for name in BASE:
        if wrong := fault(BY_NAME[name], row.value(name)):
            raise InvalidInput(wrong)
    if missing := [name for name in REQUIRED.get(row.kind, ()) if name not in fields]:
        raise InvalidInput(f"a {row.kind} needs {', '.join(missing)}")
    if row.vector:
        _check_vector(row.kind, row.vector)
    return replace(row, fields=fields)


def _check_vector(kind: Kind, vector: Vector) -> None:
    if kind not in WITH_VECTOR or not vector.dimension:
        raise InvalidInput(f"a {kind} has no vector of dimension {vector.dimension}")
    if len(vector.data) % 4:
        raise InvalidInput(f"a vector of {len(vector.data)} bytes", expected="32-bit floats, four bytes each")
    # Whatever is not finite makes the sum so, and finite 32-bit floats cannot: there is room for them in 64 bits.
    if not isfinite(sum(array("f", vector.data))):
        raise InvalidInput("a vector with a number that is not finite", expected="no NaN and no infinity")
