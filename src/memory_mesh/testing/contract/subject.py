"""What every part of the contract works with: the store under test, and plain rows to put into it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

from memory_mesh.core.model.columns import Kind, Type, Value, fields_of
from memory_mesh.core.model.rows import Key, Row, Vector
from memory_mesh.core.model.times import iso
from memory_mesh.core.ports import Store
from memory_mesh.testing.fakes import NEW_YEAR

Test = TypeVar("Test", bound=Callable[..., None])

MODEL = "unit"
# A busy machine is no fault of the store's.
UNHURRIED = (HealthCheck.too_slow, HealthCheck.data_too_large)


class Subject(ABC):
    """A store under test. Subclasses say how it is opened."""

    # False for a store that lives in its process only: closing it ends its data.
    durable = True

    @abstractmethod
    def open(self, place: Path) -> Store:
        """Open the store that lives at `place`, a folder of its own that is empty at first.

        Called again with the same place it gives a further handle on the same data; a store that is not durable gives the
        same object again.
        """

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        folder = tmp_path / "store"
        folder.mkdir()
        return folder

    @pytest.fixture
    def store(self, place: Path) -> Iterator[Store]:
        """A fresh store."""
        store = self.open(place)
        yield store
        store.close()

    @pytest.fixture
    def other(self, place: Path, store: Store) -> Iterator[Store]:
        """A second handle on it."""
        other = self.open(place)
        yield other
        other.close()


def property_test(test: Test) -> Test:
    """A test of many examples on one store: each example makes room for itself, see `cleared`."""
    relaxed = settings(
        deadline=None,
        # One store serves all examples, and one contract serves many stores; both are meant.
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, *UNHURRIED],
    )
    return relaxed(test)


def cleared(store: Store) -> Store:
    """The store, empty."""
    store.apply(deletes=[Key(kind, id_) for kind in Kind for id_ in store.ids(kind)])
    return store


def memory(
    id_: str = "m1", words: Sequence[str] = (), *, partition: str = "p", ms: int = 0, number: int = 0,
    revision: int = 1, replaces: int = 0, vector: Sequence[float] | None = None, model: str = MODEL, **fields: Value,
) -> Row:  # fmt: skip
    """A memory that says little more than what a test is about."""
    plain: dict[str, Value] = {"content": f"content of {id_}", "updated_at": iso(NEW_YEAR)}
    if words:
        plain["keywords"] = list(words)
    return Row(
        kind=Kind.MEMORY,
        id=id_,
        partition=partition,
        created_at=iso(NEW_YEAR + ms),
        revision=revision,
        number=number,
        fields=plain | fields,
        vector=None if vector is None else Vector.of(model, list(vector)),
        replaces=replaces,
    )


def passage(id_: str, of: str, vector: Sequence[float], *, partition: str = "p", model: str = MODEL) -> Row:
    """A further vector of a memory."""
    return Row(
        kind=Kind.PASSAGE,
        id=id_,
        partition=partition,
        created_at=iso(NEW_YEAR),
        fields={"ref": of},
        vector=Vector.of(model, list(vector)),
    )


def plain(kind: Kind, id_: str = "r1", *, partition: str = "p", number: int = 0, revision: int = 1, replaces: int = 0) -> Row:
    """The least that a row of a kind holds."""
    fields: dict[Kind, dict[str, Value]] = {
        Kind.MEMORY: {"content": "c", "updated_at": iso(NEW_YEAR)},
        Kind.BLOCK: {"chain": partition, "operation_type": "retain", "yamo_text": "t", "block_hash": "h"},
    }
    return Row(
        kind=kind,
        id=id_,
        partition=partition,
        created_at=iso(NEW_YEAR),
        revision=revision,
        number=number,
        fields=fields.get(kind, {}),
        replaces=replaces,
    )


def full(kind: Kind, *, revision: int = 1) -> Row:
    """A row with a value in every field that its kind has."""
    a_value: dict[Type, Value] = {
        Type.TEXT: "a text",
        Type.TIME: iso(NEW_YEAR),
        Type.INT: 7,
        Type.REAL: 0.25,
        Type.BOOL: True,
        Type.TEXTS: ["one", "two"],
        Type.JSON: {"key": ["value", {"deeper": None}]},
    }
    fields = {column.name: a_value[column.type] for column in fields_of(kind)}
    return Row(kind=kind, id="full", partition="p", created_at=iso(NEW_YEAR), revision=revision, number=5, fields=fields)


def asked(*values: float, model: str = MODEL) -> Vector:
    """A vector to look for."""
    return Vector.of(model, list(values))


def ids(found: Sequence[Row]) -> list[str]:
    return [row.id for row in found]


def together(jobs: list[Callable[[], None]]) -> None:
    """Run the jobs at the same time; what one of them raises is raised here."""
    start = Barrier(len(jobs))

    def run(job: Callable[[], None]) -> None:
        start.wait()
        job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        for done in [pool.submit(run, job) for job in jobs]:
            done.result()
