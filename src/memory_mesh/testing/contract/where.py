"""The contract's sixth part: a condition means on every store what `Where.matches` says it means."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.rows import Row, Vector
from memory_mesh.core.model.where import ANYTHING, And, Compare, In, IsNull, Like, Not, Or, Where
from memory_mesh.core.ports import Store
from memory_mesh.testing.contract.subject import Subject, cleared, ids, memory, property_test
from memory_mesh.testing.rows import batches, conditions

ROWS: dict[str, dict[str, Any]] = {
    "bare": {"project": "a\uffff"},
    "empty": {"status": "", "tags": [], "turn": 0, "trust": 0.0, "pinned": False, "metadata": {}},
    "low": {"status": "active", "tags": ["a", "b"], "turn": 1, "trust": 0.5, "pinned": True, "metadata": {"k": "v"}},
    "caps": {"status": "ACTIVE", "tags": ["A"], "turn": 10, "trust": 1, "metadata": {"k": True}},
    "one": {"status": "a_c", "tags": ["a%"], "turn": -1, "metadata": {"k": 1, "v": "1"}},
    "real": {"status": "a%c", "tags": [""], "turn": 2**53, "metadata": {"k": 1.0, "v": None}},
    "far": {"status": "\U0001f600", "tags": ["\uffee", "\U0001f600"], "metadata": {"k": "10", "a.b": 1, "a": {"b": 2}}},
    "near": {
        "status": "\uffee",
        "project": "a\ufffe",
        "metadata": {"q\"u'o": "yes", "": "empty", "K": "v", "k": [1, "v"], "é": False},
    },
    "fine": {"status": "abc", "project": "a\ufffd", "tags": ["b", "c"], "metadata": {"k": False, "v": 0}},
}

CELLS: dict[str, tuple[Where, str]] = {
    "everything": (ANYTHING, "bare empty low caps one real far near fine"),
    # Missing is neither equal nor different, also the other way round.
    "equal": (Compare("status", "=", "active"), "low"),
    "different": (Compare("status", "<>", "active"), "empty caps one real far near fine"),
    "not equal": (Not(Compare("status", "=", "active")), "empty caps one real far near fine"),
    "not different": (Not(Compare("status", "<>", "active")), "low"),
    "missing": (IsNull("status"), "bare"),
    "not missing": (Not(IsNull("status")), "empty low caps one real far near fine"),
    "of another kind": (IsNull("yamo_text"), "bare empty low caps one real far near fine"),
    "unknown or true": (Or((Compare("turn", ">", 0), Compare("status", "=", "abc"))), "low caps real fine"),
    "unknown and true": (And((Compare("turn", ">", 0), ANYTHING)), "low caps real"),
    "neither": (Not(Or((Compare("turn", ">", 0), Compare("status", "=", "")))), "one"),
    "not both": (Not(And((Compare("turn", ">", 0), Compare("status", "=", "")))), "empty low caps one real far near fine"),
    "twice not": (Not(Not(Compare("turn", "=", 1))), "low"),
    "all of none": (And(()), "bare empty low caps one real far near fine"),
    "one of none": (Or(()), ""),
    "not one of none": (Not(Or(())), "bare empty low caps one real far near fine"),
    # Text goes by code point; one beyond 16 bits is higher than any below.
    "above capitals": (Compare("status", ">", "ACTIVE"), "low one real far near fine"),
    "above a": (Compare("status", ">", "a"), "low one real far near fine"),
    "beyond": (Compare("status", ">", "\uffee"), "far"),
    "up to": (Compare("status", "<=", "\uffee"), "empty low caps one real near fine"),
    # LIKE minds case, and only % and _ are wild.
    "like": (Like("status", "a%"), "low one real fine"),
    "like one": (Like("status", "a_c"), "one real fine"),
    "like nothing": (Like("status", ""), "empty"),
    "like anything": (Like("status", "%"), "empty low caps one real far near fine"),
    "like one sign": (Like("status", "_"), "far near"),
    "not like": (Not(Like("status", "a%")), "empty caps far near"),
    "like what is no character": (Like("project", "_\uffff%"), "bare"),
    "like a number": (Like("turn", "1%"), ""),
    "not like a number": (Not(Like("turn", "1%")), ""),
    # Numbers are numbers, truth is truth, and neither is text.
    "number": (Compare("turn", "=", 1.0), "low"),
    "greatest": (Compare("turn", ">=", 2**53), "real"),
    "least": (Compare("turn", "<", 0), "one"),
    "whole": (Compare("trust", "=", 1), "caps"),
    "endless": (Compare("turn", "<", float("inf")), "empty low caps one real"),
    "true": (Compare("pinned", "=", True), "low"),  # noqa: FBT003
    "not true": (Not(Compare("pinned", "=", True)), "empty"),  # noqa: FBT003
    "true as a number": (Compare("pinned", "=", 1), ""),
    "number as true": (Not(Compare("turn", "=", True)), ""),  # noqa: FBT003
    "number as text": (Compare("turn", "=", "1"), ""),
    "text as a number": (Not(Compare("status", "=", 1)), ""),
    # A list satisfies what one of its items does; "differs" means that none is equal.
    "tagged": (Compare("tags", "=", "a"), "low"),
    "not tagged": (Not(Compare("tags", "=", "a")), "empty caps one real far fine"),
    "tagged otherwise": (Compare("tags", "<>", "a"), "empty caps one real far fine"),
    "tagged above": (Compare("tags", ">", "b"), "far fine"),
    "tagged beyond": (Compare("tags", ">", "\uffee"), "far"),
    "tagged like": (Like("tags", "a%"), "low one"),
    "not tagged like": (Not(Like("tags", "a%")), "empty caps real far fine"),
    "untagged": (IsNull("tags"), "bare near"),
    "tags given": (Not(IsNull("tags")), "empty low caps one real far fine"),
    "tagged with a number": (Not(Compare("tags", "=", 1)), ""),
    # The values of a key: only its own type compares.
    "key": (Compare("metadata.k", "=", "v"), "low"),
    "key differs": (Compare("metadata.k", "<>", "v"), "far"),
    "key is 1": (Compare("metadata.k", "=", 1), "one real"),
    "key is not 1": (Not(Compare("metadata.k", "=", 1)), ""),
    "key above 0": (Compare("metadata.k", ">", 0.5), "one real"),
    "key is true": (Compare("metadata.k", "=", True), "caps"),  # noqa: FBT003
    "key is not true": (Not(Compare("metadata.k", "=", True)), "fine"),  # noqa: FBT003
    "key is missing": (IsNull("metadata.k"), "bare empty"),
    "key is null": (IsNull("metadata.v"), "bare empty low caps real far near"),
    "key is given": (Not(IsNull("metadata.v")), "one fine"),
    "key like": (Like("metadata.k", "1_"), "far"),
    "key not like": (Not(Like("metadata.k", "1_")), "low"),
    "key with a dot": (Compare("metadata.a.b", "=", 1), "far"),
    "key with quotes": (Compare("metadata.q\"u'o", "=", "yes"), "near"),
    "key without a name": (Compare("metadata.", "=", "empty"), "near"),
    "key in capitals": (Compare("metadata.K", "=", "v"), "near"),
    "key beyond ASCII": (Compare("metadata.é", "=", False), "near"),  # noqa: FBT003
    "key like a path": (Not(IsNull("metadata.$.k")), ""),
    # IN is one of several equals.
    "in": (In("status", ("active", "abc", "none")), "low fine"),
    "not in": (Not(In("status", ("active", "abc"))), "empty caps one real far near"),
    "in nothing": (In("status", ()), ""),
    "not in nothing": (Not(In("status", ())), "bare empty low caps one real far near fine"),
    "in mixed": (In("status", ("active", 1, True)), "low"),
    "not in mixed": (Not(In("status", ("active", 1))), ""),
    "in numbers": (In("turn", (1, 10.0)), "low caps"),
    "not in numbers": (Not(In("turn", (1, 10.0))), "empty one real"),
    "in truths": (In("pinned", (True, False)), "empty low"),
    "in others": (Not(In("pinned", (1, 0))), ""),
    "tagged in": (In("tags", ("b", "A")), "low caps fine"),
    "not tagged in": (Not(In("tags", ("b", "A"))), "empty one real far"),
    "tagged in mixed": (In("tags", ("b", 1)), "low fine"),
    "not tagged in mixed": (Not(In("tags", ("b", 1))), ""),
    "key in mixed": (In("metadata.k", ("v", 1)), "low one real"),
    "key in truths": (In("metadata.k", (True, "10")), "caps far"),
    # The first six columns are no different.
    "id": (Compare("id", ">=", "near"), "near one real"),
    "ids": (In("id", ("near", "far", "nowhere")), "near far"),
    "kind": (Compare("kind", "=", "memory"), "bare empty low caps one real far near fine"),
    "other kind": (Compare("kind", "=", "link"), ""),
    "revision": (Compare("revision", "<>", 1), ""),
    "made": (Compare("created_at", "<", "2026-01-01T00:00:00.001Z"), "bare empty low caps one real far near fine"),
}

THOUSANDS = 1400  # a filter of 10,000 characters can hold about as many parts


_TURN = Compare("turn", "=", 1)

# Each goes three levels down.
NESTS: dict[str, Callable[[Where], Where]] = {
    "not": lambda part: Not(Not(Not(Not(part)))),
    "and or and": lambda part: And((_TURN, Or((And((part, ANYTHING)), Compare("turn", "=", 2))))),
    "not or": lambda part: Not(Or((Not(_TURN), Not(And((_TURN, part)))))),
}


class MeansWhatItSays(Subject):
    """`Where`."""

    @property_test
    @given(data=st.data(), batch=batches())
    def test_any_condition_picks_the_rows_that_it_matches(self, store: Store, data: st.DataObject, batch: list[Row]) -> None:
        cleared(store).apply(batch)
        for where in data.draw(st.lists(conditions(batch), min_size=1, max_size=4)):
            for kind in {row.kind for row in batch}:
                right = sorted(row.id for row in batch if row.kind is kind and where.matches(row))
                assert sorted(ids(store.find(kind, where))) == sorted(store.ids(kind, where)) == right
                assert store.count(kind, where) == len(right)

    @property_test
    @given(data=st.data(), batch=batches([Kind.MEMORY]))
    def test_searches_let_through_what_finding_does(self, store: Store, data: st.DataObject, batch: list[Row]) -> None:
        given = [_sought(row) for row in batch]
        cleared(store).apply(given)
        where = data.draw(conditions(given))
        found = {row.id for row in store.find(Kind.MEMORY, where)}
        assert {hit.id for hit in store.matching(["word"], ["p"], where, limit=9)} == found
        assert {hit.id for hit in store.nearest(Kind.MEMORY, Vector.of("m", [1.0]), where, limit=9)} == found

    @pytest.mark.parametrize("cell", CELLS)
    def test_the_cells_of_the_table_hold(self, store: Store, cell: str) -> None:
        where, expected = CELLS[cell]
        given = [memory(id_, **fields) for id_, fields in ROWS.items()]
        assert {row.id for row in given if where.matches(row)} == {*expected.split()}
        store.apply(given)
        assert {*ids(store.find(Kind.MEMORY, where))} == {*expected.split()}

    @pytest.mark.parametrize("column", ["id", "status", "tags", "metadata.k"])
    def test_one_of_thousands_is_found(self, store: Store, column: str) -> None:
        store.apply([memory("m1", status="m1", tags=["m1"], metadata={"k": "m1"}), memory("m2")])
        assert ids(store.find(Kind.MEMORY, In(column, (*(f"x{n}" for n in range(THOUSANDS)), "m1")))) == ["m1"]

    @pytest.mark.parametrize("join", [And, Or])
    def test_thousands_of_parts_are_one_condition(self, store: Store, join: type[And | Or]) -> None:
        store.apply([memory("m1", turn=1), memory("m2", turn=THOUSANDS + 1)])
        parts = tuple(Compare("turn", "<>" if join is And else "=", n) for n in range(1, THOUSANDS))
        assert ids(store.find(Kind.MEMORY, join(parts))) == (["m2"] if join is And else ["m1"])

    @pytest.mark.parametrize("wrap", NESTS)
    def test_a_condition_may_be_nested_deeply(self, store: Store, wrap: str) -> None:
        where: Where = Compare("tags", "=", "a")
        store.apply([memory("m1", turn=1, tags=["a"]), memory("m2", turn=2, tags=["a"]), memory("m3")])
        for _ in range(20):
            where = NESTS[wrap](where)
        assert store.find(Kind.MEMORY, where) == [row for row in store.find(Kind.MEMORY) if where.matches(row)]
        assert "m1" in ids(store.find(Kind.MEMORY, where))


def _sought(row: Row) -> Row:
    """The row, such that every search comes upon it."""
    fields = {**row.fields, "keywords": ["word", *row.fields.get("keywords", [])]}  # type: ignore[misc]
    return Row(
        kind=row.kind, id=row.id, partition="p", created_at=row.created_at, number=row.number, fields=fields,
        vector=Vector.of("m", [1.0]),
    )  # fmt: skip
