"""The values that a store exchanges with its callers: rows, keys, hits and vectors."""

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
    """An embedding with the name of its model. The data are packed little-endian 32-bit floats, so vectors compare by bytes."""

    model: str
    data: bytes

    @property
    def dimension(self) -> int:
        return len(self.data) // 4

    @classmethod
    def of(cls, model: str, values: list[float]) -> "Vector":
        # `array` uses the native byte order; every platform that our dependencies support is little-endian.
        return cls(model, array("f", values).tobytes())


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a store. In a put, `replaces` is the revision that the row replaces; 0 means that the row is new."""

    kind: Kind
    id: str
    partition: str
    created_at: str
    revision: int = 1
    number: int = 0
    fields: Mapping[str, Value] = field(default_factory=dict)
    vector: Vector | None = None
    replaces: int = field(default=0, compare=False)  # an instruction to the store; not stored

    @property
    def key(self) -> "Key":
        return Key(self.kind, self.id)

    def value(self, name: str) -> Value:
        """Return the value of a column, or None if the row has none."""
        if name in BASE:
            return getattr(self, name)  # type: ignore[no-any-return]
        return self.fields.get(name)

    @property
    def age_key(self) -> tuple[str, int, str]:
        """The sort key of age; descending order is newest first."""
        return self.created_at, self.number, self.id


class Key(NamedTuple):
    """The kind and id that identify a row."""

    kind: Kind
    id: str


class Hit(NamedTuple):
    """One result of a search in a store; a higher score is better."""

    id: str
    score: float


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield `items` in slices of at most `size`."""
    return (items[start : start + size] for start in range(0, len(items), size))


def checked(row: Row) -> Row:
    """Return the row without empty fields, or raise `InvalidInput` if a field or vector does not belong to its kind or type."""
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
        raise InvalidInput(f"a {kind} cannot have a vector of dimension {vector.dimension}")
    if len(vector.data) % 4:
        raise InvalidInput(f"a vector of {len(vector.data)} bytes", expected="32-bit floats, four bytes each")
    # One value that is not finite makes the sum not finite. Finite 32-bit floats cannot: 64 bits have room for their sum.
    if not isfinite(sum(array("f", vector.data))):
        raise InvalidInput("a vector with a number that is not finite", expected="no NaN and no infinity")
