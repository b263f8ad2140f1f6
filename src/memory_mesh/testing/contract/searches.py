"""Contract of searches: `nearest` ranks by cosine, `matching` by the BM25 of `core.search`."""

from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.model import (
    ANYTHING,
    Compare,
    Hit,
    IsNull,
    Key,
    Kind,
    Reader,
    Row,
    Vector,
    Where,
    partition_for,
    visible,
    visible_to,
)
from memory_mesh.core.ports import Store
from memory_mesh.testing.rows import (
    Subject,
    cleared,
    conditions,
    cosine,
    ids,
    memory,
    passage,
    plain,
    property_test,
    query,
    scores,
    vectors,
    within,
)

_LENGTHS = [memory("zero", vector=[0, 0]), memory("some", vector=[1, 1])]
_DIMENSIONS = [
    memory("two", vector=[1, 0]),
    memory("three", vector=[1, 0, 0]),
    passage("p", "two", [1, 0, 0, 0]),
]
_MODELS = [memory("m1", vector=[0, 1]), passage("x1", "m1", [1, 0], model="foreign")]
_PASSAGES = [
    *(memory("long", vector=[0, 1]), passage("x1", "long", [1, 0]), passage("x2", "long", [3, 4])),
    *(
        memory("short", vector=[4, 3]),
        passage("x4", "short", [0, 1]),
        memory("bare"),
        passage("x3", "bare", [3, 4]),
    ),
]
_ANGLES = {"same": [2, 0], "slanted": [3, 4], "across": [0, 5], "against": [-1, 0]}
_TURNED = [memory(id_, vector=vector) for id_, vector in _ANGLES.items()]

# The rows, the vector of the query, and the memories near it with their scores, best first.
NEAR: dict[str, tuple[list[Row], Sequence[float], dict[str, float]]] = {
    "the score is the cosine": (
        _TURNED,
        [1, 0],
        {"same": 1.0, "slanted": 0.6, "across": 0.0, "against": -1.0},
    ),
    "it does not depend on lengths": (
        _TURNED,
        [7, 0],
        {"same": 1.0, "slanted": 0.6, "across": 0.0, "against": -1.0},
    ),
    "a vector of length zero is near nothing": (_LENGTHS, [1, 0], {"some": sqrt(0.5), "zero": 0.0}),
    "nothing is near a query of length zero": (_LENGTHS, [0, 0], {"zero": 0.0, "some": 0.0}),
    "vectors of two dimensions are never compared": (_DIMENSIONS, [1, 0], {"two": 1.0}),
    "vectors of three dimensions are compared with such": (_DIMENSIONS, [1, 0, 0], {"three": 1.0}),
    "a row without a vector is near nothing": (
        [memory("bare"), memory("some", vector=[1, 0])],
        [1, 0],
        {"some": 1.0},
    ),
    "a memory with passages is given once, with its best score": (
        _PASSAGES,
        [1, 0],
        {"long": 1.0, "short": 0.8, "bare": 0.6},
    ),
    "a passage of another model does not count": (_MODELS, [1, 0], {"m1": 0.0}),
}


class RanksByCosine(Subject):
    """`nearest`."""

    @pytest.mark.parametrize("case", NEAR)
    def test_memories_are_ranked_by_their_best_comparable_vector(
        self, store: Store, case: str
    ) -> None:
        given, values, expected = NEAR[case]
        store.apply(given)
        assert _rounded(_nearest(store, *values)) == [
            (id_, round(score, 9)) for id_, score in expected.items()
        ]

    @property_test
    @given(
        given=st.lists(vectors(("one",), dimensions=2), max_size=5),
        query=vectors(("one",), dimensions=2),
    )
    def test_any_vector_is_ranked_by_its_cosine(
        self, store: Store, given: list[Vector], query: Vector
    ) -> None:
        put = {f"m{n}": vector for n, vector in enumerate(given)}
        cleared(store).apply([replace(memory(id_), vector=vector) for id_, vector in put.items()])
        hits = store.nearest(Kind.MEMORY, query, limit=9)
        expected = {
            id_: cosine(vector, query)
            for id_, vector in put.items()
            if vector.dimension == query.dimension
        }
        assert dict(hits) == pytest.approx(expected, abs=1e-9)
        assert [hit[::-1] for hit in hits] == sorted((hit[::-1] for hit in hits), reverse=True)

    def test_vectors_of_two_models_are_never_compared(self, store: Store) -> None:
        store.apply(
            [
                memory("ours", vector=[1, 0], model="one"),
                memory("theirs", vector=[1, 0], model="two"),
            ]
        )
        assert ids(store.nearest(Kind.MEMORY, query(1, 0, model="one"), limit=9)) == ["ours"]
        assert ids(store.nearest(Kind.MEMORY, query(1, 0, model="two"), limit=9)) == ["theirs"]
        assert store.nearest(Kind.MEMORY, query(1, 0, model="three"), limit=9) == []

    def test_a_memory_that_its_passages_fill_the_list_with_takes_one_place(
        self, store: Store
    ) -> None:
        store.apply([memory("long"), memory("short", vector=[1, 1])])
        store.apply([passage(f"x{n}", "long", [1, 0]) for n in range(5)])
        assert ids(_nearest(store, 1, 0, limit=2)) == ["long", "short"]

    def test_a_passage_whose_memory_is_gone_says_nothing(self, store: Store) -> None:
        store.apply([memory("m1"), passage("x1", "m1", [1, 0])])
        assert ids(_nearest(store, 1, 0)) == ["m1"]
        store.apply(deletes=[Key(Kind.MEMORY, "m1")])
        assert _nearest(store, 1, 0) == []

    def test_a_passage_can_be_looked_for_by_itself(self, store: Store) -> None:
        store.apply([memory("m1", vector=[1, 0]), passage("x1", "m1", [0, 1])])
        assert _rounded(store.nearest(Kind.PASSAGE, query(0, 1), limit=9)) == [("x1", 1.0)]

    def test_skills_are_looked_for_by_themselves(self, store: Store) -> None:
        skills = [
            replace(plain(Kind.SKILL, id_), vector=query(*values))
            for id_, values in {"s1": (1, 0), "s2": (0, 1)}.items()
        ]
        store.apply([*skills, memory("m1", vector=[1, 0])])
        assert _rounded(store.nearest(Kind.SKILL, query(1, 0), limit=9)) == [
            ("s1", 1.0),
            ("s2", 0.0),
        ]
        assert ids(_nearest(store, 1, 0)) == ["m1"]

    @pytest.mark.parametrize("kind", sorted(frozenset(Kind) - {Kind.MEMORY}))
    def test_the_vector_of_a_memory_is_near_to_no_other_kind(
        self, store: Store, kind: Kind
    ) -> None:
        store.apply([memory("m1", vector=[1, 0])])
        assert store.nearest(kind, query(1, 0), limit=9) == []

    def test_a_limit_counts_only_neighbours_that_the_condition_lets_through(
        self, store: Store
    ) -> None:
        store.apply(
            [memory(f"m{n}", vector=[1, n], status="active" if n > 6 else None) for n in range(9)]
        )
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
        store.apply(
            [
                memory("m1", vector=[0, 1], revision=2, replaces=1),
                memory("m2", revision=2, replaces=1),
            ]
        )
        assert _rounded(_nearest(store, 1, 0)) == [("m1", 0.0)]


def _nearest(store: Store, *values: float, where: Where = ANYTHING, limit: int = 9) -> list[Hit]:
    return store.nearest(Kind.MEMORY, query(*values), where, limit=limit)


def _rounded(hits: list[Hit]) -> list[tuple[str, float]]:
    return [(hit.id, round(hit.score, 9)) for hit in hits]


RED_APPLE = memory("apple", ["red", "apple", "red"])
GREEN_APPLE = memory("green", ["green", "apple", "sour", "fruit", "small"])
RED_CAR = memory("car", ["red", "car"])
FRUIT = [RED_APPLE, GREEN_APPLE, RED_CAR]
PAINTED = memory("car", ["blue", "car", "new", "paint"], revision=2, replaces=1)
MOVED = memory("car", ["red", "car"], partition="q", revision=2, replaces=1)

# A change, and the memories of the partition after it.
CHANGED: dict[str, tuple[list[Row], list[Key], list[Row]]] = {
    "an update changes what is found and how it counts": (
        [PAINTED],
        [],
        [RED_APPLE, GREEN_APPLE, PAINTED],
    ),
    "an update without keywords removes the old ones": (
        [memory("apple", revision=2, replaces=1)],
        [],
        FRUIT[1:],
    ),
    "a deleted memory leaves no trace in the scores": ([], [RED_APPLE.key], FRUIT[1:]),
    "a memory that moves takes its keywords along": ([MOVED], [], FRUIT[:2]),
}


_OWN_SESSION = visible_to(Reader(None, "a", "s"))
_WORDS = ("red", "key", "漢字", "c++")
_READERS = (
    Reader(None, "a", "s"),
    Reader(None, "a"),
    Reader(None, "b", "s"),
    Reader("u", "a", "t"),
    Reader(),
)


def _scoped(
    id_: str, words: Sequence[str], memory_type: str = "session", *, session: str | None = "s",
    agent: str = "a", user: str | None = None, status: str = "active",
    vector: Sequence[float] | None = None,
) -> Row:  # fmt: skip
    """Return a memory in the partition of its scope."""
    row = memory(id_, words, vector=vector, partition=partition_for(user, agent, memory_type, None))
    scope = {
        "user_id": user,
        "agent_id": agent,
        "session_id": session,
        "memory_type": memory_type,
        "status": status,
    }
    return replace(
        row,
        fields={
            **row.fields,
            **{name: value for name, value in scope.items() if value is not None},
        },
    )


def _any_scope(id_: str) -> st.SearchStrategy[Row]:
    """Generate memories of any scope."""
    return st.builds(
        _scoped,
        st.just(id_),
        st.lists(st.sampled_from(_WORDS), max_size=4),
        st.sampled_from(("global", "agent", "session", "session", "lesson")),
        session=st.sampled_from(("s", "s", "t", None)),
        agent=st.sampled_from(("a", "a", "b")),
        user=st.sampled_from((None, None, "u")),
        status=st.sampled_from(("active", "active", "archived", "quarantined")),
        vector=st.sampled_from((None, (1, 0), (1, 1))),
    )


class RanksByKeywords(Subject):
    """`matching`."""

    @pytest.fixture
    def fruit(self, store: Store) -> Store:
        store.apply(FRUIT)
        return store

    def test_the_score_is_the_bm25_of_the_lexicon(self, fruit: Store) -> None:
        for words in (["red"], ["apple", "red"], ["car", "fruit", "nothing"], ["sour"]):
            found = _matching(fruit, words)
            assert found
            assert found == scores(FRUIT, words)

    def test_the_best_comes_first(self, fruit: Store) -> None:
        assert ids(_matching(fruit, ["red", "apple"])) == ["apple", "car", "green"]

    def test_a_word_that_occurs_twice_in_a_query_weighs_twice(self, fruit: Store) -> None:
        (once, *_), (twice, *_) = _matching(fruit, ["sour"]), _matching(fruit, ["sour", "sour"])
        assert twice.score == pytest.approx(2 * once.score)

    def test_what_holds_none_of_the_words_is_not_given(self, fruit: Store) -> None:
        assert ids(_matching(fruit, ["car"])) == ["car"]
        assert _matching(fruit, ["nothing"]) == _matching(fruit, []) == []

    def test_other_partitions_are_not_answered_and_do_not_move_a_score(self, fruit: Store) -> None:
        alone = _matching(fruit, ["red", "apple"])
        fruit.apply([memory(f"x{n}", ["red", "apple"] * n, partition="q") for n in range(1, 6)])
        assert _matching(fruit, ["red", "apple"]) == alone
        assert (
            fruit.matching(["red"], within(), limit=9)
            == fruit.matching(["red"], within("nowhere"), limit=9)
            == []
        )

    def test_the_statistics_of_all_named_partitions_add_up(self, store: Store) -> None:
        far = [
            memory("far", ["red", "kite"], partition="q"),
            memory("farther", ["blue", "kite", "sky"], partition="r"),
        ]
        store.apply([*FRUIT, *far])
        assert store.matching(["red", "kite"], within("p", "q"), limit=9) == scores(
            [*FRUIT, far[0]], ["red", "kite"]
        )
        assert store.matching(["red", "kite"], within("r", "p", "q"), limit=9) == scores(
            [*FRUIT, *far], ["red", "kite"]
        )
        assert store.matching(["red"], within("p", "p"), limit=9) == scores(FRUIT, ["red"])

    @pytest.mark.parametrize("case", CHANGED)
    def test_scores_follow_every_change(self, fruit: Store, case: str) -> None:
        puts, deletes, remaining = CHANGED[case]
        fruit.apply(puts, deletes)
        for words in (["red", "car"], ["red", "apple"], ["red"], ["paint"]):
            assert _matching(fruit, words) == scores(remaining, words)
        assert fruit.matching(["red"], within("q"), limit=9) == scores(
            [row for row in puts if row.partition == "q"], ["red"]
        )

    def test_a_memory_that_is_added_again_counts_again(self, fruit: Store) -> None:
        fruit.apply(deletes=[RED_APPLE.key])
        fruit.apply([RED_APPLE])
        assert _matching(fruit, ["red", "apple"]) == scores(FRUIT, ["red", "apple"])

    @pytest.mark.parametrize(
        "other",
        [
            memory("silent", keywords=[]),
            memory("silent"),
            Row(kind=Kind.CHANGE, id="c1", partition="p", created_at="2026", fields={"why": "red"}),
        ],
        ids=["no keywords", "keywords missing", "not a memory"],
    )
    def test_only_memories_with_keywords_are_documents(self, fruit: Store, other: Row) -> None:
        fruit.apply([other])
        assert _matching(fruit, ["red"]) == scores(FRUIT, ["red"])

    def test_a_session_is_not_scored_by_the_words_of_another(self, store: Store) -> None:
        own = [_scoped("own", ["red", "key"]), _scoped("wide", ["red", "sky"], "agent")]
        store.apply(own)
        alone = _matching(store, ["red", "key"], visible=_OWN_SESSION)
        assert alone == scores(own, ["red", "key"])
        theirs = [_scoped(f"t{n}", ["key", "red"] * n, session="t") for n in range(1, 6)]
        store.apply(theirs)
        assert _matching(store, ["red", "key"], visible=_OWN_SESSION) == alone
        assert store.matching(["red", "key"], ANYTHING, limit=99) == scores(
            [*own, *theirs], ["red", "key"]
        )
        store.apply(deletes=[row.key for row in theirs])
        store.apply([_scoped("new", ["key"])])  # a row that is visible does move the scores
        assert (
            dict(_matching(store, ["red", "key"], visible=_OWN_SESSION))["own"]
            != dict(alone)["own"]
        )

    @property_test
    @given(data=st.data(), words=st.lists(st.sampled_from(_WORDS), max_size=3))
    def test_the_statistics_are_of_exactly_the_visible_rows(
        self, store: Store, data: st.DataObject, words: list[str]
    ) -> None:
        given = [data.draw(_any_scope(f"m{n}")) for n in range(data.draw(st.integers(0, 6)))]
        cleared(store).apply(given)
        visible, where = (data.draw(conditions(given)) for _ in range(2))
        among = [row for row in given if visible.matches(row)]
        selected = {row.id for row in among if where.matches(row)}
        found = store.matching(words, visible, where, limit=9)
        assert found == [hit for hit in scores(among, words) if hit.id in selected]

    @property_test
    @given(
        data=st.data(),
        words=st.lists(st.sampled_from(_WORDS), max_size=3),
        reader=st.sampled_from(_READERS),
    )
    def test_what_a_reader_cannot_see_moves_no_answer(
        self, store: Store, data: st.DataObject, words: list[str], reader: Reader
    ) -> None:
        given = [data.draw(_any_scope(f"m{n}")) for n in range(data.draw(st.integers(0, 6)))]
        where, see = data.draw(conditions(given)), visible_to(reader)

        def answers() -> tuple[list[Hit], list[Hit], list[Hit]]:
            near = store.nearest(Kind.MEMORY, query(1, 2), see, limit=3)
            return (
                _matching(store, words, visible=see),
                store.matching(words, see, where, limit=2),
                near,
            )

        cleared(store).apply(given)
        before = answers()
        store.apply(deletes=[row.key for row in given if not visible(reader, row)])
        assert answers() == before
        hidden = [
            data.draw(_any_scope(f"h{n}").filter(lambda row: not visible(reader, row)))
            for n in range(2)
        ]
        store.apply([*hidden, passage("x", "h0", [1, 2])])
        assert answers() == before

    def test_a_condition_hides_rows_and_does_not_move_a_score(self, fruit: Store) -> None:
        hits = dict(_matching(fruit, ["red", "apple"]))
        shown = _matching(fruit, ["red", "apple"], where=Compare("id", "<>", "apple"))
        assert shown == [("car", hits["car"]), ("green", hits["green"])]

    def test_a_limit_counts_only_matches_that_the_condition_lets_through(
        self, store: Store
    ) -> None:
        """The best rows are hidden, so a limit applied before the condition would return
        nothing."""
        store.apply(
            [
                memory(f"m{n}", ["word"] * (9 - n), status="active" if n > 6 else None)
                for n in range(9)
            ]
        )
        everything = ids(_matching(store, ["word"]))
        assert len(everything) == 9
        hidden = [id_ for id_ in everything if id_ not in ("m7", "m8")]
        assert everything[: len(hidden)] == hidden
        active = Compare("status", "=", "active")
        assert len(_matching(store, ["word"], where=active, limit=1)) == 1
        assert ids(_matching(store, ["word"], where=active, limit=2)) == everything[len(hidden) :]
        assert _matching(store, ["word"], limit=0) == []

    def test_what_is_sought_among_hundreds_is_found_behind_what_is_hidden(
        self, store: Store
    ) -> None:
        store.apply([memory(f"a{n:04}", ["word", "word"]) for n in range(1100)])
        store.apply([memory("needle", ["word", *"abcdefgh"], status="active")])
        assert ids(_matching(store, ["word"], where=Compare("status", "=", "active"), limit=1)) == [
            "needle"
        ]

    def test_equal_matches_go_by_id_descending(self, store: Store) -> None:
        store.apply([memory(id_, ["word"]) for id_ in ("b", "c", "a", "é", "B")])
        assert ids(_matching(store, ["word"])) == ["é", "c", "b", "a", "B"]
        assert ids(_matching(store, ["word"], limit=2)) == ["é", "c"]

    @pytest.mark.parametrize(
        "word",
        [
            "c++",
            "C++",
            "漢字",
            "a b",
            "it's",
            "%",
            "é",
            "e\u0301",
            "1",
            "1.0",
            "\U0001f600",
            "null",
        ],
    )
    def test_keywords_are_taken_as_they_are(self, store: Store, word: str) -> None:
        others = [
            other for other in ("c++", "C++", "1", "1.0", "é", "e\u0301", "%", "x") if other != word
        ]
        store.apply([memory("this", [word]), memory("others", others)])
        assert ids(_matching(store, [word])) == ["this"]


def _matching(
    store: Store,
    words: Sequence[str],
    *,
    visible: Where | None = None,
    where: Where = ANYTHING,
    limit: int = 99,
) -> list[Hit]:
    return store.matching(words, visible or within("p"), where, limit=limit)
