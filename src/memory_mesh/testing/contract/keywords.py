"""Contract: `matching` is the BM25 of `core.search.lexical`, computed over the given partitions only."""

from collections import Counter
from collections.abc import Sequence

import pytest

from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.rows import Hit, Key, Row
from memory_mesh.core.model.where import ANYTHING, Compare, Where
from memory_mesh.core.ports import Store
from memory_mesh.core.search import Corpus, Posting, best, bm25
from memory_mesh.testing.contract.subject import Subject, memory

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
        assert _ids(_matching(store, ["red", "apple"])) == ["apple", "car", "green"]

    def test_a_word_that_is_asked_twice_weighs_twice(self, store: Store) -> None:
        store.apply(FRUIT)
        (once, *_), (twice, *_) = _matching(store, ["sour"]), _matching(store, ["sour", "sour"])
        assert twice.score == pytest.approx(2 * once.score)

    def test_what_holds_none_of_the_words_is_not_given(self, store: Store) -> None:
        store.apply(FRUIT)
        assert _ids(_matching(store, ["car"])) == ["car"]
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
        assert _ids(_matching(store, ["red"])) == ["apple"]
        assert _ids(_matching(store, ["paint"])) == ["car"]

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
        """Those that score best are hidden, so a limit that came first would leave nothing."""
        store.apply([memory(f"m{n}", ["word"] * (9 - n), status="active" if n > 6 else None) for n in range(9)])
        everything = _ids(_matching(store, ["word"]))
        assert len(everything) == 9
        hidden = [id_ for id_ in everything if id_ not in ("m7", "m8")]
        assert everything[: len(hidden)] == hidden
        active = Compare("status", "=", "active")
        assert len(_matching(store, ["word"], where=active, limit=1)) == 1
        assert _ids(_matching(store, ["word"], where=active, limit=2)) == everything[len(hidden) :]
        assert _matching(store, ["word"], limit=0) == []

    def test_what_is_sought_among_hundreds_is_found_behind_what_is_hidden(self, store: Store) -> None:
        store.apply([memory(f"a{n:04}", ["word", "word"]) for n in range(1100)])
        store.apply([memory("needle", ["word", *"abcdefgh"], status="active")])
        assert _ids(_matching(store, ["word"], where=Compare("status", "=", "active"), limit=1)) == ["needle"]

    def test_equal_matches_go_by_id_descending(self, store: Store) -> None:
        store.apply([memory(id_, ["word"]) for id_ in ("b", "c", "a", "é", "B")])
        assert _ids(_matching(store, ["word"])) == ["é", "c", "b", "a", "B"]
        assert _ids(_matching(store, ["word"], limit=2)) == ["é", "c"]

    @pytest.mark.parametrize("word", ["c++", "C++", "漢字", "a b", "it's", "%", "é", "e\u0301", "1", "1.0", "\U0001f600", "null"])
    def test_keywords_are_taken_as_they_are(self, store: Store, word: str) -> None:
        others = [other for other in ("c++", "C++", "1", "1.0", "é", "e\u0301", "%", "x") if other != word]
        store.apply([memory("this", [word]), memory("others", others)])
        assert _ids(_matching(store, [word])) == ["this"]

    def test_only_memories_are_matched(self, store: Store) -> None:
        store.apply([Row(kind=Kind.CHANGE, id="c1", partition="p", created_at="2026", fields={"why": "red"}), *FRUIT])
        assert _matching(store, ["red"]) == scores(FRUIT, ["red"])


def scores(rows: Sequence[Row], words: Sequence[str]) -> list[Hit]:
    """What `core.search.lexical` says of these rows, best first."""
    documents = {row.id: Counter(keywords(row)) for row in rows if keywords(row)}
    postings = {
        word: [Posting(id_, each[word], each.total()) for id_, each in documents.items() if each[word]] for word in set(words)
    }
    corpus = Corpus(len(documents), sum(each.total() for each in documents.values()))
    return [Hit(*found) for found in best(bm25(postings, corpus, words))]


def keywords(row: Row) -> list[str]:
    held = row.value("keywords")
    return [str(word) for word in held] if isinstance(held, list) else []


def _matching(store: Store, words: Sequence[str], *, where: Where = ANYTHING, limit: int = 99) -> list[Hit]:
    return store.matching(words, ["p"], where, limit=limit)


def _ids(hits: list[Hit]) -> list[str]:
    return [hit.id for hit in hits]
