"""Parts of the contract that all tests share: the store under test, plain rows, and scores in plain Python."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import fsum, sqrt
from pathlib import Path
from struct import unpack
from threading import Barrier
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

from memory_mesh.core.model import Hit, Key, Kind, Row, Type, Value, Vector, fields_of, iso
from memory_mesh.core.ports import Store
from memory_mesh.testing.fakes import NEW_YEAR

Test = TypeVar("Test", bound=Callable[..., None])

MODEL = "unit"
REMEMBERED = 100  # moves that every store must be able to name
# A slow machine must not fail a store.
SLOW_ALLOWED = (HealthCheck.too_slow, HealthCheck.data_too_large)


class Subject(ABC):
    """A store under test. Subclasses define how it is opened."""

    # False for a store whose data ends when it is closed.
    durable = True

    @abstractmethod
    def open(self, place: Path) -> Store:
        """Open the store in the folder `place`, which is empty at first.

        Called again with the same folder it returns another handle on the same data; a store that is not durable returns the
        same object.
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
    """Mark a property test that uses one store for all examples; each example starts with `cleared`."""
    relaxed = settings(
        deadline=None,
        # One store serves all examples, and one contract serves many stores; both are intended.
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, *SLOW_ALLOWED],
    )
    return relaxed(test)


def cleared(store: Store) -> Store:
    """Delete all rows of the store and return it."""
    store.apply(deletes=[Key(kind, id_) for kind in Kind for id_ in store.ids(kind)])
    return store


def memory(
    id_: str = "m1", words: Sequence[str] = (), *, partition: str = "p", ms: int = 0, number: int = 0,
    revision: int = 1, replaces: int = 0, vector: Sequence[float] | None = None, model: str = MODEL, **fields: Value,
) -> Row:  # fmt: skip
    """Return a memory with the given fields and few others."""
    plain: dict[str, Value] = {"content": f"content of {id_}", "updated_at": iso(NEW_YEAR)}
    if words:
        plain["keywords"] = list(words)
    return Row(
        kind=Kind.MEMORY, id=id_, partition=partition, created_at=iso(NEW_YEAR + ms), revision=revision, number=number,
        fields=plain | fields, vector=None if vector is None else Vector.of(model, list(vector)), replaces=replaces,
    )  # fmt: skip


def passage(id_: str, of: str, vector: Sequence[float], *, partition: str = "p", model: str = MODEL) -> Row:
    """Return a passage: a further vector of the memory `of`."""
    return Row(
        kind=Kind.PASSAGE, id=id_, partition=partition, created_at=iso(NEW_YEAR), fields={"ref": of},
        vector=Vector.of(model, list(vector)),
    )  # fmt: skip


def plain(kind: Kind, id_: str = "r1", *, partition: str = "p", number: int = 0, revision: int = 1, replaces: int = 0) -> Row:
    """Return a row of a kind with only its required fields."""
    fields: dict[Kind, dict[str, Value]] = {
        Kind.MEMORY: {"content": "c", "updated_at": iso(NEW_YEAR)},
        Kind.BLOCK: {"chain": partition, "operation_type": "retain", "yamo_text": "t", "block_hash": "h"},
    }
    return Row(
        kind=kind, id=id_, partition=partition, created_at=iso(NEW_YEAR), revision=revision, number=number,
        fields=fields.get(kind, {}), replaces=replaces,
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
    return Row(kind=kind, id="full", partition="p", created_at=iso(NEW_YEAR), revision=revision, number=5, fields=fields)


def query(*values: float, model: str = MODEL) -> Vector:
    """Return the vector of a query."""
    return Vector.of(model, list(values))


def ids(found: Sequence[Row | Hit]) -> list[str]:
    return [each.id for each in found]


def keywords(row: Row) -> list[str]:
    words = row.value("keywords")
    return [str(word) for word in words] if isinstance(words, list) else []


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
