"""A state machine that leads a store through any history and compares it, step by step, with a dict.

```python
from memory_mesh.testing import machine_for

TestHistory = machine_for(lambda place: MyStore(place / "rows")).TestCase
```
It needs the extra `testing`. It finds what no one thought of; what it finds, it gives back as a short program.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memory_mesh.core.errors import Conflict, InvalidInput
from memory_mesh.core.model.columns import WITH_VECTOR, Kind
from memory_mesh.core.model.rows import Hit, Key, Row, Vector
from memory_mesh.core.model.where import Where
from memory_mesh.core.ports import Store
from memory_mesh.testing.contract.changes import REMEMBERED
from memory_mesh.testing.contract.subject import UNHURRIED
from memory_mesh.testing.model import Model
from memory_mesh.testing.rows import conditions, rows, vectors

Open = Callable[[Path], Store]

# Few of each, so that a history meets the same ones again.
IDS = st.sampled_from(("a", "b", "B", "é", "x'y"))
PARTITIONS = st.sampled_from(("p", "q", '["ü", null]'))
WORDS = st.sampled_from(("red", "apple", "漢字", "c++"))
LIMITS = st.integers(0, 4) | st.just(99)
HANDLES = st.integers(0, 1)


def machine_for(open_store: Open, *, durable: bool = True) -> type["StoreMachine"]:
    """The machine for a store. `open_store` is as in `StoreContract.open`; so is `durable`."""
    return type("StoreHistory", (StoreMachine,), {"open_store": staticmethod(open_store), "durable": durable})


class StoreMachine(RuleBasedStateMachine):
    """A store with two handles, and the model of it."""

    open_store: Open
    durable: bool

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self._place = Path(self._folder.name)
        self._handles = self._opened()
        self._model = Model()
        self._numbers = count()
        self._marks: list[tuple[str, str, int]] = []  # given earlier: a partition, its mark and its version

    @rule(data=st.data(), handle=HANDLES)
    def change(self, data: st.DataObject, handle: int) -> None:
        """Any change, right or wrong: it is refused for a reason, or done."""
        puts = [data.draw(self._put()) for _ in range(data.draw(st.integers(0, 3), "puts"))]
        deletes = data.draw(st.lists(self._keys(), max_size=2), "deletes")
        seen = data.draw(self._seen(), "seen")
        faults = self._model.faults(puts, deletes, seen)
        try:
            self._handles[handle].apply(puts, deletes, seen=seen)
        except (Conflict, InvalidInput) as error:
            told = type(error)
        else:
            assert not faults, f"done in spite of {faults}"
            self._model.apply(puts, deletes)
            return
        assert told in faults, f"refused with {told} for {faults}"

    @rule(data=st.data(), handle=HANDLES, kind=st.sampled_from(Kind), limit=LIMITS | st.none())
    def find(self, data: st.DataObject, handle: int, kind: Kind, limit: int | None) -> None:
        held = [row for row in self._model.rows.values() if row.kind is kind]
        where = data.draw(conditions(held), "where")
        after = data.draw(st.sampled_from(held) | st.none(), "after") if held else None
        right = self._model.find(kind, where)
        behind = [row for row in right if after is None or row.age_key < after.age_key]
        assert self._handles[handle].find(kind, where, limit=limit, after=after) == behind[:limit]
        assert self._handles[handle].count(kind, where) == len(right)
        assert {*self._handles[handle].ids(kind, where)} == {row.id for row in right}

    @rule(handle=HANDLES, kind=st.sampled_from(Kind), wanted=st.lists(IDS, max_size=4))
    def get(self, handle: int, kind: Kind, wanted: list[str]) -> None:
        right = {id_: self._model.rows[Key(kind, id_)] for id_ in wanted if Key(kind, id_) in self._model.rows}
        assert self._handles[handle].get(kind, wanted) == right

    @rule(data=st.data(), handle=HANDLES, kind=st.sampled_from(sorted(WITH_VECTOR)), vector=vectors(dimensions=2), limit=LIMITS)
    def nearest(self, data: st.DataObject, handle: int, kind: Kind, vector: Vector, limit: int) -> None:
        where = data.draw(self._condition(), "where")
        right = self._model.nearest(kind, vector, where)
        _ranked(self._handles[handle].nearest(kind, vector, where, limit=limit), right, limit)

    @rule(data=st.data(), handle=HANDLES, tokens=st.lists(WORDS, max_size=3), limit=LIMITS)
    def matching(self, data: st.DataObject, handle: int, tokens: list[str], limit: int) -> None:
        among = data.draw(st.lists(PARTITIONS, max_size=3), "partitions")
        where = data.draw(self._condition(), "where")
        right = self._model.matching(tokens, among, where)
        _ranked(self._handles[handle].matching(tokens, among, where, limit=limit), right, limit)

    @rule(handle=HANDLES, partition=PARTITIONS)
    def mark(self, handle: int, partition: str) -> None:
        self._marks.append((partition, self._handles[handle].changes(partition).mark, self._model.version(partition)))

    @precondition(lambda self: self._marks)
    @rule(data=st.data(), handle=HANDLES)
    def changes(self, data: st.DataObject, handle: int) -> None:
        """Since any mark that was given earlier."""
        partition, mark, version = data.draw(st.sampled_from(self._marks), "mark")
        moved = self._model.moves[partition][version:]
        found = self._handles[handle].changes(partition, mark)
        assert (found.mark == mark) == (not moved)
        if len(moved) <= REMEMBERED or found.keys is not None:
            assert found.keys is not None
            assert {*found.keys} == {*moved}

    @rule(handle=HANDLES)
    def compact(self, handle: int) -> None:
        self._handles[handle].compact()

    @precondition(lambda self: self.durable)
    @rule()
    def reopen(self) -> None:
        self._close()
        self._handles = self._opened()

    @invariant()
    def the_whole_is_as_it_should_be(self) -> None:
        for kind in Kind:
            found = {row.key: row for row in self._handles[0].find(kind)}
            assert found == {key: row for key, row in self._model.rows.items() if key.kind is kind}
        for partition in ("p", "q", '["ü", null]', "nowhere"):
            assert self._handles[1].version(partition) == self._model.version(partition)

    def teardown(self) -> None:
        self._close()
        self._folder.cleanup()

    def _opened(self) -> tuple[Store, Store]:
        return self.open_store(self._place), self.open_store(self._place)

    def _close(self) -> None:
        for handle in self._handles:
            handle.close()

    def _put(self) -> st.SearchStrategy[Row]:
        """A new row, or the next revision of one that is there; now and then one that must be refused."""
        fresh = rows(ids=IDS, partitions=PARTITIONS)
        held = list(self._model.rows.values())
        if not held:
            return fresh.flatmap(self._meant)
        return (fresh | st.sampled_from(held).flatmap(_next)).flatmap(self._meant)

    def _meant(self, row: Row) -> st.SearchStrategy[Row]:
        """The row, such that searches come upon it and chains hold each number once."""
        if row.kind is Kind.BLOCK:
            return st.just(replace(row, number=next(self._numbers)))
        if row.kind is Kind.PASSAGE:
            return st.builds(lambda ref: replace(row, fields={**row.fields, "ref": ref}), IDS)
        if row.kind is Kind.MEMORY:
            return st.builds(lambda words: replace(row, fields={**row.fields, "keywords": words}), st.lists(WORDS, max_size=4))
        return st.just(row)

    def _keys(self) -> st.SearchStrategy[Key]:
        anything = st.builds(Key, st.sampled_from(Kind), IDS)
        held = list(self._model.rows)
        return anything | st.sampled_from(held) if held else anything

    def _seen(self) -> st.SearchStrategy[dict[str, int]]:
        versions = {name: len(moves) for name, moves in self._model.moves.items()}
        right = st.lists(PARTITIONS, unique=True).map(lambda names: {name: versions.get(name, 0) for name in names})
        wrong = st.builds(lambda name, off: {name: versions.get(name, 0) + off}, PARTITIONS, st.sampled_from((1, -1)))
        return st.one_of(right, right, right, wrong)

    def _condition(self) -> st.SearchStrategy[Where]:
        return conditions([row for row in self._model.rows.values() if row.kind in WITH_VECTOR])


StoreMachine.TestCase.settings = settings(deadline=None, suppress_health_check=UNHURRIED)


@st.composite
def _next(draw: st.DrawFn, held: Row) -> Row:
    """The next revision of a row, sometimes in another partition, sometimes of a revision that it is not at."""
    new = draw(rows([held.kind], ids=st.just(held.id), partitions=st.just(held.partition) | PARTITIONS))
    replaces = draw(st.sampled_from((held.revision, held.revision, held.revision, held.revision + 1, 0)))
    return replace(new, revision=held.revision + 1, replaces=replaces)


def _ranked(hits: Sequence[Hit], right: dict[str, float], limit: int) -> None:
    """The hits are the best of what is right, each with its score; equal scores go by id, descending."""
    scores = sorted(right.values(), reverse=True)[:limit]
    assert len(hits) == len(scores)
    for hit, score in zip(hits, scores, strict=True):
        assert abs(hit.score - score) < 1e-9
        assert abs(hit.score - right[hit.id]) < 1e-9
    order = [(hit.score, hit.id) for hit in hits]
    assert order == sorted(order, reverse=True)
    assert len({hit.id for hit in hits}) == len(hits)
