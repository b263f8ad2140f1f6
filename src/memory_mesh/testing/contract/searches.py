"""Contract of searches: `nearest` ranks by cosine, `matching` by the BM25 of `core.search`."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.model import ANYTHING, Compare, Hit, IsNull, Key, Kind, Row, Vector, Where
from memory_mesh.core.ports import Store
from memory_mesh.core.search import Corpus, Posting, best, bm25
from memory_mesh.testing.contract.subject import Subject, cleared, cosine, ids, keywords, memory, passage, property_test, query
from memory_mesh.testing.rows import vectors


class RanksByCosine(Subject):
    """`nearest`."""

    def test_the_score_is_the_cosine(self, store: Store) -> None:
        """It is not a distance, and does not depend on the lengths."""
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
        assert ids(store.nearest(Kind.MEMORY, query(1, 0, model="one"), limit=9)) == ["ours"]
        assert ids(store.nearest(Kind.MEMORY, query(1, 0, model="two"), limit=9)) == ["theirs"]
        assert store.nearest(Kind.MEMORY, query(1, 0, model="three"), limit=9) == []

    def test_vectors_of_two_dimensions_are_never_compared(self, store: Store) -> None:
        store.apply([memory("two", vector=[1, 0]), memory("three", vector=[1, 0, 0]), passage("p", "two", [1, 0, 0, 0])])
        assert ids(_nearest(store, 1, 0)) == ["two"]
        assert ids(_nearest(store, 1, 0, 0)) == ["three"]

    def test_a_row_without_a_vector_is_near_nothing(self, store: Store) -> None:
        store.apply([memory("bare"), memory("some", vector=[1, 0])])
        assert ids(_nearest(store, 1, 0)) == ["some"]

    def test_a_passage_speaks_for_its_memory_which_is_given_once_with_its_best_score(self, store: Store) -> None:
        store.apply([memory("long", vector=[0, 1]), memory("short", vector=[4, 3]), memory("bare")])
        store.apply([passage("x1", "long", [1, 0]), passage("x2", "long", [3, 4]), passage("x3", "bare", [3, 4])])
        store.apply([passage("x4", "short", [0, 1])])
        found = _rounded(_nearest(store, 1, 0))
        assert found == [("long", 1.0), ("short", 0.8), ("bare", 0.6)]

    def test_a_memory_that_its_passages_fill_the_list_with_takes_one_place(self, store: Store) -> None:
        store.apply([memory("long"), memory("short", vector=[1, 1])])
        store.apply([passage(f"x{n}", "long", [1, 0]) for n in range(5)])
        assert ids(_nearest(store, 1, 0, limit=2)) == ["long", "short"]

    def test_a_passage_of_another_model_does_not_speak(self, store: Store) -> None:
        store.apply([memory("m1", vector=[0, 1]), passage("x1", "m1", [1, 0], model="foreign")])
        assert _rounded(_nearest(store, 1, 0)) == [("m1", 0.0)]

    def test_a_passage_whose_memory_is_gone_says_nothing(self, store: Store) -> None:
        store.apply([memory("m1"), passage("x1", "m1", [1, 0])])
        assert ids(_nearest(store, 1, 0)) == ["m1"]
        store.apply(deletes=[Key(Kind.MEMORY, "m1")])
        assert _nearest(store, 1, 0) == []

    def test_a_passage_can_be_looked_for_by_itself(self, store: Store) -> None:
        store.apply([memory("m1", vector=[1, 0]), passage("x1", "m1", [0, 1])])
        assert _rounded(store.nearest(Kind.PASSAGE, query(0, 1), limit=9)) == [("x1", 1.0)]

    @pytest.mark.parametrize("kind", sorted(frozenset(Kind) - {Kind.MEMORY, Kind.PASSAGE}))
    def test_a_kind_without_vectors_has_nothing_near(self, store: Store, kind: Kind) -> None:
        store.apply([memory("m1", vector=[1, 0])])
        assert store.nearest(kind, query(1, 0), limit=9) == []

    def test_a_limit_counts_only_neighbours_that_the_condition_lets_through(self, store: Store) -> None:
        store.apply([memory(f"m{n}", vector=[1, n], status="active" if n > 6 else None) for n in range(9)])
        assert ids(_nearest(store, 1, 0, limit=3)) == ["m0", "m1", "m2"]
        assert ids(_nearest(store, 1, 0, limit=1, where=Compare("status", "=", "active"))) == ["m7"]
        assert _nearest(store, 1, 0, limit=0) == []

    def test_a_condition_is_about_the_memory_and_not_about_its_passage(self, store: Store) -> None:
        store.apply([memory("seen", session_id="s"), memory("hidden")])
        store.apply([passage("x1", "seen", [1, 1]), passage("x2", "hidden", [1, 0])])
        assert ids(_nearest(store, 1, 0)) == ["hidden", "seen"]
        assert ids(_nearest(store, 1, 0, where=Compare("session_id", "=", "s"))) == ["seen"]
        assert ids(_nearest(store, 1, 0, where=IsNull("session_id"))) == ["hidden"]

    def test_equal_cosines_go_by_id_descending(self, store: Store) -> None:
        store.apply([memory(id_, vector=[1, 1]) for id_ in ("b", "c", "a", "é", "B")])
        assert ids(_nearest(store, 1, 1)) == ["é", "c", "b", "a", "B"]
        assert ids(_nearest(store, 1, 1, limit=2)) == ["é", "c"]

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


def _nearest(store: Store, *values: float, where: Where = ANYTHING, limit: int = 9) -> list[Hit]:
    return store.nearest(Kind.MEMORY, query(*values), where, limit=limit)


def _rounded(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.id, round(hit.score, 9)) for hit in hits]


RED_APPLE = memory("apple", ["red", "apple", "red"])
GREEN_APPLE = memory("green", ["green", "apple", "sour", "fruit", "small"])
RED_CAR = memory("car", ["red", "car"])
FRUIT = [RED_APPLE, GREEN_APPLE, RED_CAR]


class RanksByKeywords(Subject):
    """`matching`."""

    def test_the_score_is_the_bm25_of_the_lexicon(self, store: Store) -> None:
        store.apply(FRUIT)
        for words in (["red"], ["apple", "red"], ["car", "fruit", "nothing"], ["sour"]):
            found = _matching(store, words)
            assert found
            assert found == scores(FRUIT, words)

    def test_the_best_comes_first(self, store: Store) -> None:
        store.apply(FRUIT)
        assert ids(_matching(store, ["red", "apple"])) == ["apple", "car", "green"]

    def test_a_word_that_occurs_twice_in_a_query_weighs_twice(self, store: Store) -> None:
        store.apply(FRUIT)
        (once, *_), (twice, *_) = _matching(store, ["sour"]), _matching(store, ["sour", "sour"])
        assert twice.score == pytest.approx(2 * once.score)

    def test_what_holds_none_of_the_words_is_not_given(self, store: Store) -> None:
        store.apply(FRUIT)
        assert ids(_matching(store, ["car"])) == ["car"]
        assert _matching(store, ["nothing"]) == _matching(store, []) == []

    def test_other_partitions_are_not_answered_and_do_not_move_a_score(self, store: Store) -> None:
        store.apply(FRUIT)
        alone = _matching(store, ["red", "apple"])
        store.apply([memory(f"x{n}", ["red", "apple"] * n, partition="q") for n in range(1, 6)])
        assert _matching(store, ["red", "apple"]) == alone
        assert store.matching(["red"], [], limit=9) == store.matching(["red"], ["nowhere"], limit=9) == []

    def test_the_statistics_of_all_named_partitions_add_up(self, store: Store) -> None:
        far = [memory("far", ["red", "kite"], partition="q"), memory("farther", ["blue", "kite", "sky"], partition="r")]
        store.apply([*FRUIT, *far])
        assert store.matching(["red", "kite"], ["p", "q"], limit=9) == scores([*FRUIT, far[0]], ["red", "kite"])
        assert store.matching(["red", "kite"], ["r", "p", "q"], limit=9) == scores([*FRUIT, *far], ["red", "kite"])
        assert store.matching(["red"], ["p", "p"], limit=9) == scores(FRUIT, ["red"])

    def test_an_update_changes_what_is_found_and_how_it_counts(self, store: Store) -> None:
        store.apply(FRUIT)
        painted = memory("car", ["blue", "car", "new", "paint"], revision=2, replaces=1)
        store.apply([painted])
        now = [RED_APPLE, GREEN_APPLE, painted]
        assert _matching(store, ["red", "car"]) == scores(now, ["red", "car"])
        assert ids(_matching(store, ["red"])) == ["apple"]
        assert ids(_matching(store, ["paint"])) == ["car"]

    def test_an_update_without_keywords_takes_the_old_ones_away(self, store: Store) -> None:
        store.apply(FRUIT)
        store.apply([memory("apple", revision=2, replaces=1)])
        assert _matching(store, ["red", "car"]) == scores(FRUIT[1:], ["red", "car"])

    def test_a_deleted_memory_leaves_no_trace_in_the_scores(self, store: Store) -> None:
        store.apply(FRUIT)
        store.apply(deletes=[Key(Kind.MEMORY, "apple")])
        assert _matching(store, ["red", "apple"]) == scores(FRUIT[1:], ["red", "apple"])
        store.apply([RED_APPLE])
        assert _matching(store, ["red", "apple"]) == scores(FRUIT, ["red", "apple"])

    def test_a_memory_that_moves_takes_its_keywords_along(self, store: Store) -> None:
        store.apply(FRUIT)
        moved = memory("car", ["red", "car"], partition="q", revision=2, replaces=1)
        store.apply([moved])
        assert _matching(store, ["red"]) == scores(FRUIT[:2], ["red"])
        assert store.matching(["red"], ["q"], limit=9) == scores([moved], ["red"])

    @pytest.mark.parametrize("words", [(), None])
    def test_a_memory_without_keywords_is_no_document(self, store: Store, words: Sequence[str] | None) -> None:
        silent = memory("silent", keywords=None if words is None else [])
        store.apply([*FRUIT, silent])
        assert _matching(store, ["red"]) == scores(FRUIT, ["red"])

    def test_a_condition_hides_rows_and_does_not_move_a_score(self, store: Store) -> None:
        store.apply(FRUIT)
        hits = dict(_matching(store, ["red", "apple"]))
        shown = _matching(store, ["red", "apple"], where=Compare("id", "<>", "apple"))
        assert shown == [("car", hits["car"]), ("green", hits["green"])]

    def test_a_limit_counts_only_matches_that_the_condition_lets_through(self, store: Store) -> None:
        """The best rows are hidden, so a limit applied before the condition would return nothing."""
        store.apply([memory(f"m{n}", ["word"] * (9 - n), status="active" if n > 6 else None) for n in range(9)])
        everything = ids(_matching(store, ["word"]))
        assert len(everything) == 9
        hidden = [id_ for id_ in everything if id_ not in ("m7", "m8")]
        assert everything[: len(hidden)] == hidden
        active = Compare("status", "=", "active")
        assert len(_matching(store, ["word"], where=active, limit=1)) == 1
        assert ids(_matching(store, ["word"], where=active, limit=2)) == everything[len(hidden) :]
        assert _matching(store, ["word"], limit=0) == []

    def test_what_is_sought_among_hundreds_is_found_behind_what_is_hidden(self, store: Store) -> None:
        store.apply([memory(f"a{n:04}", ["word", "word"]) for n in range(1100)])
        store.apply([memory("needle", ["word", *"abcdefgh"], status="active")])
        assert ids(_matching(store, ["word"], where=Compare("status", "=", "active"), limit=1)) == ["needle"]

    def test_equal_matches_go_by_id_descending(self, store: Store) -> None:
        store.apply([memory(id_, ["word"]) for id_ in ("b", "c", "a", "é", "B")])
        assert ids(_matching(store, ["word"])) == ["é", "c", "b", "a", "B"]
        assert ids(_matching(store, ["word"], limit=2)) == ["é", "c"]

    @pytest.mark.parametrize("word", ["c++", "C++", "漢字", "a b", "it's", "%", "é", "e\u0301", "1", "1.0", "\U0001f600", "null"])
    def test_keywords_are_taken_as_they_are(self, store: Store, word: str) -> None:
        others = [other for other in ("c++", "C++", "1", "1.0", "é", "e\u0301", "%", "x") if other != word]
        store.apply([memory("this", [word]), memory("others", others)])
        assert ids(_matching(store, [word])) == ["this"]

    def test_only_memories_are_matched(self, store: Store) -> None:
        store.apply([Row(kind=Kind.CHANGE, id="c1", partition="p", created_at="2026", fields={"why": "red"}), *FRUIT])
        assert _matching(store, ["red"]) == scores(FRUIT, ["red"])


def scores(rows: Sequence[Row], words: Sequence[str]) -> list[Hit]:
    """Return the BM25 scores of these rows by `core.search`, best first."""
    documents = {row.id: Counter(keywords(row)) for row in rows if keywords(row)}
    postings = {
        word: [Posting(id_, each[word], each.total()) for id_, each in documents.items() if each[word]] for word in set(words)
    }
    corpus = Corpus(len(documents), sum(each.total() for each in documents.values()))
    return [Hit(*found) for found in best(bm25(postings, corpus, words))]


def _matching(store: Store, words: Sequence[str], *, where: Where = ANYTHING, limit: int = 99) -> list[Hit]:
    return store.matching(words, ["p"], where, limit=limit)
