"""A state machine that compares random histories of a store with a model in a dict.

```python
from memory_mesh.testing import machine_for

TestHistory = machine_for(lambda place: MyStore(place / "rows")).TestCase
```
It needs the extra `testing`. A failure is reported as a short program.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memory_mesh.core.errors import Conflict, IdTaken, InvalidInput, MemoryMeshError
from memory_mesh.core.model import MOVING, WITH_VECTOR, Hit, Key, Kind, Row, Vector, Where
from memory_mesh.core.ports import Store
from memory_mesh.testing.rows import (
    REMEMBERED,
    SLOW_ALLOWED,
    conditions,
    cosine,
    rows,
    scores,
    vectors,
    within,
)


class Model:
    """The expected state: rows by key, and the moves of each partition."""

    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}
        self.moves: defaultdict[str, list[Key]] = defaultdict(list)

    def version(self, partition: str) -> int:
        return len(self.moves[partition])

    def faults(
        self, puts: Sequence[Row], deletes: Sequence[Key], seen: Mapping[str, int]
    ) -> set[type[MemoryMeshError]]:
        """Return every reason to refuse a change; a store may raise any of them."""
        faults: set[type[MemoryMeshError]] = set()
        keys = [*(row.key for row in puts), *deletes]
        if len(keys) != len({*keys}):
            faults.add(InvalidInput)
        if any(self.version(partition) != version for partition, version in seen.items()):
            faults.add(Conflict)
        for row in puts:
            stored = self.rows.get(row.key)
            if row.replaces == 0 and stored:
                faults.add(IdTaken)
            if row.replaces and (stored is None or stored.revision != row.replaces):
                faults.add(Conflict)
        return faults

    def apply(self, puts: Sequence[Row], deletes: Sequence[Key]) -> None:
        for key in deletes:
            self._move(key, self.rows.pop(key, None))
        for row in puts:
            self._move(row.key, self.rows.get(row.key), row)
            self.rows[row.key] = replace(row, replaces=0)

    def find(self, kind: Kind, where: Where) -> list[Row]:
        found = [row for row in self.rows.values() if row.kind is kind and where.matches(row)]
        return sorted(
            found, key=lambda row: (row.created_at, row.partition, row.number, row.id), reverse=True
        )

    def nearest(self, kind: Kind, vector: Vector, where: Where) -> dict[str, float]:
        """Return the score of each comparable row."""
        best: dict[str, float] = {}
        owners = {row.id for row in self.find(kind, where)}
        for row in self.rows.values():
            passage = kind is Kind.MEMORY and row.kind is Kind.PASSAGE
            owner = str(row.value("ref")) if passage else row.id
            comparable = row.vector and (row.vector.model, row.vector.dimension) == (
                vector.model,
                vector.dimension,
            )
            if (passage or row.kind is kind) and owner in owners and row.vector and comparable:
                best[owner] = max(best.get(owner, -2.0), cosine(row.vector, vector))
        return best

    def matching(self, tokens: Sequence[str], visible: Where, where: Where) -> dict[str, float]:
        """Return the score of each memory that contains one of the tokens."""
        among = self.find(Kind.MEMORY, visible)
        selected = {row.id for row in among if where.matches(row)}
        return {id_: score for id_, score in scores(among, tokens) if id_ in selected}

    def _move(self, key: Key, *ends: Row | None) -> None:
        for partition in {row.partition for row in ends if row} if key.kind in MOVING else ():
            self.moves[partition].append(key)


Open = Callable[[Path], Store]

# Few of each, so that a history uses the same ones again.
IDS = st.sampled_from(("a", "b", "B", "é", "x'y"))
PARTITIONS = st.sampled_from(("p", "q", '["ü", null]'))
WORDS = st.sampled_from(("red", "apple", "漢字", "c++"))
LIMITS = st.integers(0, 4) | st.just(99)
HANDLES = st.integers(0, 1)


def machine_for(open_store: Open, *, durable: bool = True) -> type["StoreMachine"]:
    """Return the state machine of a store. `open_store` and `durable` are as in `StoreContract`."""
    return type(
        "StoreHistory",
        (StoreMachine,),
        {"open_store": staticmethod(open_store), "durable": durable},
    )


class StoreMachine(RuleBasedStateMachine):
    """A store with two handles, and its model."""

    open_store: Open
    durable: bool

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self._place = Path(self._folder.name)
        self._handles = self._opened()
        self._model = Model()
        self._numbers = count()
        self._marks: list[tuple[str, str, int]] = []  # earlier marks: partition, mark and version

    @rule(data=st.data(), handle=HANDLES)
    def change(self, data: st.DataObject, handle: int) -> None:
        """Apply any change, valid or not: the store must refuse it for a right reason, or do it."""
        puts = [data.draw(self._put()) for _ in range(data.draw(st.integers(0, 3), "puts"))]
        deletes = data.draw(st.lists(self._keys(), max_size=2), "deletes")
        seen = data.draw(self._seen(), "seen")
        faults = self._model.faults(puts, deletes, seen)
        try:
            self._handles[handle].apply(puts, deletes, seen=seen)
        except (Conflict, InvalidInput) as error:
            raised = type(error)
        else:
            assert not faults, f"accepted despite {faults}"
            self._model.apply(puts, deletes)
            return
        assert raised in faults, f"refused with {raised} for {faults}"

    @rule(data=st.data(), handle=HANDLES, kind=st.sampled_from(Kind), limit=LIMITS | st.none())
    def find(self, data: st.DataObject, handle: int, kind: Kind, limit: int | None) -> None:
        stored = [row for row in self._model.rows.values() if row.kind is kind]
        where = data.draw(conditions(stored), "where")
        after = data.draw(st.sampled_from(stored) | st.none(), "after") if stored else None
        right = self._model.find(kind, where)
        behind = [row for row in right if after is None or row.age_key < after.age_key]
        assert self._handles[handle].find(kind, where, limit=limit, after=after) == behind[:limit]
        assert self._handles[handle].count(kind, where) == len(right)
        assert {*self._handles[handle].ids(kind, where)} == {row.id for row in right}

    @rule(handle=HANDLES, kind=st.sampled_from(Kind), ids=st.lists(IDS, max_size=4))
    def get(self, handle: int, kind: Kind, ids: list[str]) -> None:
        right = {
            id_: self._model.rows[Key(kind, id_)]
            for id_ in ids
            if Key(kind, id_) in self._model.rows
        }
        assert self._handles[handle].get(kind, ids) == right

    @rule(
        data=st.data(),
        handle=HANDLES,
        kind=st.sampled_from(sorted(WITH_VECTOR)),
        vector=vectors(dimensions=2),
        limit=LIMITS,
    )
    def nearest(
        self, data: st.DataObject, handle: int, kind: Kind, vector: Vector, limit: int
    ) -> None:
        where = data.draw(self._condition(), "where")
        right = self._model.nearest(kind, vector, where)
        _ranked(self._handles[handle].nearest(kind, vector, where, limit=limit), right, limit)

    @rule(data=st.data(), handle=HANDLES, tokens=st.lists(WORDS, max_size=3), limit=LIMITS)
    def matching(self, data: st.DataObject, handle: int, tokens: list[str], limit: int) -> None:
        partitions = st.lists(PARTITIONS, max_size=3).map(lambda names: within(*names))
        visible, where = (
            data.draw(partitions | self._condition(), "visible"),
            data.draw(self._condition(), "where"),
        )
        right = self._model.matching(tokens, visible, where)
        _ranked(self._handles[handle].matching(tokens, visible, where, limit=limit), right, limit)

    @rule(handle=HANDLES, partition=PARTITIONS)
    def mark(self, handle: int, partition: str) -> None:
        self._marks.append(
            (
                partition,
                self._handles[handle].changes(partition).mark,
                self._model.version(partition),
            )
        )

    @precondition(lambda self: self._marks)
    @rule(data=st.data(), handle=HANDLES)
    def changes(self, data: st.DataObject, handle: int) -> None:
        """Compare the changes since any earlier mark."""
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
        """Generate a new row or the next revision of a stored one; sometimes a row that must be
        refused."""
        fresh, stored = rows(ids=IDS, partitions=PARTITIONS), list(self._model.rows.values())
        return (fresh | st.sampled_from(stored).flatmap(_next) if stored else fresh).flatmap(
            self._searchable
        )

    def _searchable(self, row: Row) -> st.SearchStrategy[Row]:
        """Give the row keywords or a reference from the few values above, and each block its own
        number."""
        if row.kind is Kind.BLOCK:
            return st.just(replace(row, number=next(self._numbers)))
        if row.kind is Kind.PASSAGE:
            return st.builds(lambda ref: replace(row, fields={**row.fields, "ref": ref}), IDS)
        if row.kind is Kind.MEMORY:
            return st.builds(
                lambda words: replace(row, fields={**row.fields, "keywords": words}),
                st.lists(WORDS, max_size=4),
            )
        return st.just(row)

    def _keys(self) -> st.SearchStrategy[Key]:
        anything = st.builds(Key, st.sampled_from(Kind), IDS)
        stored = list(self._model.rows)
        return anything | st.sampled_from(stored) if stored else anything

    def _seen(self) -> st.SearchStrategy[dict[str, int]]:
        versions = {name: len(moves) for name, moves in self._model.moves.items()}
        right = st.lists(PARTITIONS, unique=True).map(
            lambda names: {name: versions.get(name, 0) for name in names}
        )
        wrong = st.builds(
            lambda name, off: {name: versions.get(name, 0) + off},
            PARTITIONS,
            st.sampled_from((1, -1)),
        )
        return st.one_of(right, right, right, wrong)

    def _condition(self) -> st.SearchStrategy[Where]:
        return conditions([row for row in self._model.rows.values() if row.kind in WITH_VECTOR])


StoreMachine.TestCase.settings = settings(deadline=None, suppress_health_check=SLOW_ALLOWED)


@st.composite
def _next(draw: st.DrawFn, stored: Row) -> Row:
    """Generate the next revision of a row; sometimes in another partition, sometimes with a
    wrong revision."""
    new = draw(
        rows(
            [stored.kind], ids=st.just(stored.id), partitions=st.just(stored.partition) | PARTITIONS
        )
    )
    replaces = draw(
        st.sampled_from((stored.revision, stored.revision, stored.revision, stored.revision + 1, 0))
    )
    return replace(new, revision=stored.revision + 1, replaces=replaces)


def _ranked(hits: Sequence[Hit], right: dict[str, float], limit: int) -> None:
    """Check that the hits are the best of `right` with their scores; equal scores are ordered by
    id, descending."""
    scores = sorted(right.values(), reverse=True)[:limit]
    assert len(hits) == len(scores)
    for hit, score in zip(hits, scores, strict=True):
        assert abs(hit.score - score) < 1e-9
        assert abs(hit.score - right[hit.id]) < 1e-9
    order = [(hit.score, hit.id) for hit in hits]
    assert order == sorted(order, reverse=True)
    assert len({hit.id for hit in hits}) == len(hits)
