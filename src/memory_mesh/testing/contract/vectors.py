"""The contract's fourth part: `nearest` ranks by cosine and compares only what can be compared."""

from dataclasses import replace
from math import fsum, sqrt
from struct import unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.rows import Hit, Key, Vector
from memory_mesh.core.model.where import ANYTHING, Compare, IsNull, Where
from memory_mesh.core.ports import Store
from memory_mesh.testing.contract.subject import Subject, asked, cleared, memory, passage, property_test
from memory_mesh.testing.rows import vectors


class RanksByCosine(Subject):
    """`nearest`."""

    def test_the_score_is_the_cosine(self, store: Store) -> None:
        """Not the distance, and not of this length or that."""
        given = {"same": [2, 0], "slanted": [3, 4], "across": [0, 5], "against": [-1, 0]}
        store.apply([memory(id_, vector=vector) for id_, vector in given.items()])
        assert _rounded(_nearest(store, 1, 0)) == [
            ("same", 1.0),
            ("slanted", 0.6),
            ("across", 0.0),
            ("against", -1.0),
        ]

    @property_test
    @given(given=st.lists(vectors(("one",), dimensions=2), max_size=5), query=vectors(("one",), dimensions=2))
    def test_any_vector_is_ranked_by_its_cosine(self, store: Store, given: list[Vector], query: Vector) -> None:
        put = {f"m{n}": vector for n, vector in enumerate(given)}
        cleared(store).apply([replace(memory(id_), vector=vector) for id_, vector in put.items()])
        hits = store.nearest(Kind.MEMORY, query, limit=9)
        expected = {id_: cosine(vector, query) for id_, vector in put.items() if vector.dimension == query.dimension}
        assert dict(hits) == pytest.approx(expected, abs=1e-9)
        assert [hit[::-1] for hit in hits] == sorted((hit[::-1] for hit in hits), reverse=True)

    def test_nothing_is_near_a_vector_of_length_zero(self, store: Store) -> None:
        store.apply([memory("zero", vector=[0, 0]), memory("some", vector=[1, 1])])
        assert _rounded(_nearest(store, 1, 0)) == [("some", round(sqrt(0.5), 9)), ("zero", 0.0)]
        assert _rounded(_nearest(store, 0, 0)) == [("zero", 0.0), ("some", 0.0)]

    def test_vectors_of_two_models_are_never_compared(self, store: Store) -> None:
        store.apply([memory("ours", vector=[1, 0], model="one"), memory("theirs", vector=[1, 0], model="two")])
        assert _ids(store.nearest(Kind.MEMORY, asked(1, 0, model="one"), limit=9)) == ["ours"]
        assert _ids(store.nearest(Kind.MEMORY, asked(1, 0, model="two"), limit=9)) == ["theirs"]
        assert store.nearest(Kind.MEMORY, asked(1, 0, model="three"), limit=9) == []

    def test_vectors_of_two_dimensions_are_never_compared(self, store: Store) -> None:
        store.apply([memory("two", vector=[1, 0]), memory("three", vector=[1, 0, 0]), passage("p", "two", [1, 0, 0, 0])])
        assert _ids(_nearest(store, 1, 0)) == ["two"]
        assert _ids(_nearest(store, 1, 0, 0)) == ["three"]

    def test_a_row_without_a_vector_is_near_nothing(self, store: Store) -> None:
        store.apply([memory("bare"), memory("some", vector=[1, 0])])
        assert _ids(_nearest(store, 1, 0)) == ["some"]

    def test_a_passage_speaks_for_its_memory_which_is_given_once_with_its_best_score(self, store: Store) -> None:
        store.apply([memory("long", vector=[0, 1]), memory("short", vector=[4, 3]), memory("bare")])
        store.apply([passage("x1", "long", [1, 0]), passage("x2", "long", [3, 4]), passage("x3", "bare", [3, 4])])
        store.apply([passage("x4", "short", [0, 1])])
        found = _rounded(_nearest(store, 1, 0))
        assert found == [("long", 1.0), ("short", 0.8), ("bare", 0.6)]

    def test_a_memory_that_its_passages_fill_the_list_with_takes_one_place(self, store: Store) -> None:
        store.apply([memory("long"), memory("short", vector=[1, 1])])
        store.apply([passage(f"x{n}", "long", [1, 0]) for n in range(5)])
        assert _ids(_nearest(store, 1, 0, limit=2)) == ["long", "short"]

    def test_a_passage_of_another_model_does_not_speak(self, store: Store) -> None:
        store.apply([memory("m1", vector=[0, 1]), passage("x1", "m1", [1, 0], model="foreign")])
        assert _rounded(_nearest(store, 1, 0)) == [("m1", 0.0)]

    def test_a_passage_whose_memory_is_gone_says_nothing(self, store: Store) -> None:
        store.apply([memory("m1"), passage("x1", "m1", [1, 0])])
        assert _ids(_nearest(store, 1, 0)) == ["m1"]
        store.apply(deletes=[Key(Kind.MEMORY, "m1")])
        assert _nearest(store, 1, 0) == []

    def test_a_passage_can_be_looked_for_by_itself(self, store: Store) -> None:
        store.apply([memory("m1", vector=[1, 0]), passage("x1", "m1", [0, 1])])
        assert _rounded(store.nearest(Kind.PASSAGE, asked(0, 1), limit=9)) == [("x1", 1.0)]

    @pytest.mark.parametrize("kind", sorted(frozenset(Kind) - {Kind.MEMORY, Kind.PASSAGE}))
    def test_a_kind_without_vectors_has_nothing_near(self, store: Store, kind: Kind) -> None:
        store.apply([memory("m1", vector=[1, 0])])
        assert store.nearest(kind, asked(1, 0), limit=9) == []

    def test_a_limit_counts_only_neighbours_that_the_condition_lets_through(self, store: Store) -> None:
        store.apply([memory(f"m{n}", vector=[1, n], status="active" if n > 6 else None) for n in range(9)])
        assert _ids(_nearest(store, 1, 0, limit=3)) == ["m0", "m1", "m2"]
        assert _ids(_nearest(store, 1, 0, limit=1, where=Compare("status", "=", "active"))) == ["m7"]
        assert _nearest(store, 1, 0, limit=0) == []

    def test_a_condition_is_about_the_memory_and_not_about_its_passage(self, store: Store) -> None:
        store.apply([memory("seen", session_id="s"), memory("hidden")])
        store.apply([passage("x1", "seen", [1, 1]), passage("x2", "hidden", [1, 0])])
        assert _ids(_nearest(store, 1, 0)) == ["hidden", "seen"]
        assert _ids(_nearest(store, 1, 0, where=Compare("session_id", "=", "s"))) == ["seen"]
        assert _ids(_nearest(store, 1, 0, where=IsNull("session_id"))) == ["hidden"]

    def test_equal_cosines_go_by_id_descending(self, store: Store) -> None:
        store.apply([memory(id_, vector=[1, 1]) for id_ in ("b", "c", "a", "é", "B")])
        assert _ids(_nearest(store, 1, 1)) == ["é", "c", "b", "a", "B"]
        assert _ids(_nearest(store, 1, 1, limit=2)) == ["é", "c"]

    def test_a_score_does_not_hang_on_what_else_is_compared(self, store: Store) -> None:
        odd = [0.1, 0.7, -0.3, 0.9, 0.2, 0.6, 0.8]
        store.apply([memory("m1", vector=odd)])
        alone = _nearest(store, *reversed(odd))
        store.apply([memory(f"n{n}", vector=[n + 1, *odd[1:]]) for n in range(40)])
        assert Hit(*alone[0]) in _nearest(store, *reversed(odd), limit=99)

    def test_a_vector_that_was_replaced_or_taken_away_is_no_longer_near(self, store: Store) -> None:
        store.apply([memory("m1", vector=[1, 0]), memory("m2", vector=[1, 0])])
        store.apply([memory("m1", vector=[0, 1], revision=2, replaces=1), memory("m2", revision=2, replaces=1)])
        assert _rounded(_nearest(store, 1, 0)) == [("m1", 0.0)]


def cosine(left: Vector, right: Vector) -> float:
    """In plain Python, as a check on stores that are quicker."""
    a, b = (unpack(f"<{vector.dimension}f", vector.data) for vector in (left, right))
    lengths = sqrt(fsum(x * x for x in a)) * sqrt(fsum(x * x for x in b))
    return fsum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


def _nearest(store: Store, *values: float, where: Where = ANYTHING, limit: int = 9) -> list[Hit]:
    return store.nearest(Kind.MEMORY, asked(*values), where, limit=limit)


def _rounded(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.id, round(hit.score, 9)) for hit in hits]


def _ids(hits: list[Hit]) -> list[str]:
    return [hit.id for hit in hits]
