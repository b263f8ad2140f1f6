"""Search modes: what recall and precise leave out, in searches, explanations and lessons."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_mesh import AsyncMemoryMesh, MemoryMesh
from memory_mesh.core.errors import InvalidInput, SettingsError
from memory_mesh.core.model import Vector
from memory_mesh.core.options import SEARCH_MODES
from memory_mesh.core.search import ranker
from memory_mesh.core.search.weights import FRACTIONS, MIN_EXPECTED
from memory_mesh.flows.search import search
from memory_mesh.models import HashingEmbedder

from .house import House

QUERY = "when does the deploy key rotate?"
FACTS = [
    "The deploy key rotates on Mondays.",
    "The deploy key is in the vault.",
    "A deploy takes an hour.",
    "The key of the house is lost.",
    "Ana prefers green tea.",
    "Backups run every night at two.",
]
WORDS = [
    "when",
    "does",
    "deploy",
    "key",
    "rotate",
    "tea",
    "vault",
    "Ana",
    "backups",
    "night",
    "zeppelin",
]
LESSON: dict[str, object] = {
    "situation": "The deploy failed with 401.", "error_pattern": "token_expired",
    "oversight": "Nobody looked at the expiry.", "fix": "A new token.",
    "preventative_rule": "Refresh the token before a deploy.", "severity": "high",
    "applicable_scope": "deploys",
}  # fmt: skip
Cuts = Mapping[str, float]


@pytest.fixture
def mesh(house: House) -> MemoryMesh:
    filled = house.mesh(embedder=HashingEmbedder())
    filled.add_many(FACTS)
    return filled


@pytest.fixture
def cuts(mesh: MemoryMesh, monkeypatch: pytest.MonkeyPatch) -> Cuts:
    """Minimum scores that keep two results in precise mode and four in recall mode, whatever the
    weights are."""
    scores = [hit.score for hit in mesh.search(QUERY, min_score=0, use_cache=False)]
    chosen = {"precise": (scores[1] + scores[2]) / 2, "recall": (scores[3] + scores[4]) / 2}
    set_cuts(monkeypatch, scores[0], chosen)
    return chosen


def set_cuts(monkeypatch: pytest.MonkeyPatch, best: float, cuts: Cuts) -> None:
    """Set the minimum scores of searches with this best score."""
    monkeypatch.setattr(ranker, "MIN_EXPECTED", dict.fromkeys(cuts, 0.0))
    monkeypatch.setattr(ranker, "FRACTIONS", {mode: cut / best for mode, cut in cuts.items()})


# --- searches ---


def test_every_mode_expects_some_answers_and_precise_more() -> None:
    for each in (MIN_EXPECTED, FRACTIONS):
        assert each.keys() == set(SEARCH_MODES)
        assert 0 < each["recall"] < each["precise"] < 1


def test_precise_leaves_out_more_than_recall_and_recall_is_the_default(
    mesh: MemoryMesh, cuts: Cuts
) -> None:
    assert len(mesh.search(QUERY, mode="precise")) == 2
    assert len(mesh.search(QUERY, mode="recall")) == len(mesh.search(QUERY)) == 4
    assert min(hit.score for hit in mesh.search(QUERY, mode="precise")) >= cuts["precise"]


@pytest.mark.usefixtures("cuts")
@pytest.mark.parametrize(("ranker_name", "size"), [("learnt", 2), ("rrf", len(FACTS))])
def test_a_result_is_relevant_if_a_precise_search_returns_it_too(
    house: House, mesh: MemoryMesh, ranker_name: str, size: int
) -> None:
    other = house.mesh(embedder=HashingEmbedder(), ranker=ranker_name)
    for options in ({}, {"min_score": 0}, {"as_of": "2030-01-01"}, {"mode": "precise"}):
        for use_cache in (True, True, False):
            found = other.search(QUERY, use_cache=use_cache, **options)
            assert [hit.relevant for hit in found] == [at < size for at in range(len(found))]
        explained = other.explain(QUERY, **options).answers
        assert [hit.result.relevant for hit in explained] == [hit.relevant for hit in found]
    assert not any(hit.relevant for hit in other.search(QUERY, ranker="learnt", min_score=0)[2:])


_SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
_RATES = st.just(1.0) | st.floats(0, 1)


@settings(max_examples=40, deadline=None)
@given(
    texts=st.lists(_SENTENCES, min_size=2, max_size=14),
    values=st.lists(_SENTENCES, max_size=4),
    query=_SENTENCES,
    limit=st.integers(1, 8),
    cuts=st.tuples(_RATES, _RATES),
    only_keywords=st.booleans(),
    changed=st.booleans(),
)
def test_the_relevant_results_of_recall_are_exactly_those_of_a_precise_search(
    texts: list[str],
    values: list[str],
    query: str,
    limit: int,
    cuts: tuple[float, float],
    only_keywords: bool,
    changed: bool,
) -> None:
    embedder = "none" if only_keywords else HashingEmbedder()
    with (
        pytest.MonkeyPatch.context() as patched,
        MemoryMesh("memory://", agent_id="ann", embedder=embedder) as mesh,
    ):
        patched.setattr(ranker, "MIN_EXPECTED", {"recall": 0.0, "precise": cuts[0]})
        patched.setattr(ranker, "FRACTIONS", {"recall": 0.0, "precise": cuts[1]})
        stored = mesh.add_many(texts, deduplicate=False)
        for value in values:
            claim = {"subject": "Ana", "predicate": "drinks", "value": value}
            mesh.graph.store("ann", f"Ana drinks {value}", claim=claim)
        if changed:
            mesh.confirm_change(stored[-1].id, stored[0].id)
        for known_at in (None, stored[-1].created_at):
            recall, precise = (
                mesh.search(query, limit, mode=mode, known_at=known_at) for mode in SEARCH_MODES
            )
            relevant = [hit.relevant for hit in recall]
            assert relevant == sorted(relevant, reverse=True)
            assert [(hit.id, hit.score) for hit in recall if hit.relevant] == [
                (hit.id, hit.score) for hit in precise
            ]
            assert all(hit.relevant for hit in precise)


def test_a_source_that_is_not_relevant_does_not_take_the_place_of_a_relevant_reflection(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a precise search, which does not find the source."""
    mesh = house.mesh(embedder=HashingEmbedder())
    mesh.add_many(FACTS[1:])
    source = mesh.add(FACTS[0])
    house.clock.advance(days=1)  # of equal memories the newer one has a higher score
    copy = house.change(mesh.add(FACTS[0], deduplicate=False).id, sources=[source.id])
    with monkeypatch.context() as patched:
        patched.setattr(search, "_is_distinct", lambda _: True)
        best, other = mesh.search(QUERY, 2, min_score=0, use_cache=False)
    assert (best.id, other.id) == (copy.id, source.id)
    for cut, found in ((other.score, source.id), ((best.score + other.score) / 2, copy.id)):
        set_cuts(monkeypatch, best.score, {"recall": 0.0, "precise": cut})
        recall, precise = (mesh.search(QUERY, mode=mode, use_cache=False) for mode in SEARCH_MODES)
        assert [hit.id for hit in recall if hit.relevant] == [hit.id for hit in precise] == [found]
        assert recall[0].copies == 2


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(
        st.sampled_from(
            [
                "when",
                "does",
                "deploy",
                "key",
                "rotate",
                "tea",
                "vault",
                "Ana",
                "backups",
                "night",
                "zeppelin",
            ]
        ),
        min_size=1,
    ),
    limit=st.integers(1, 6),
)
def test_the_precise_results_are_the_first_ones_of_recall_with_equal_scores(
    words: list[str], limit: int, filled: MemoryMesh
) -> None:
    query = " ".join(words)
    precise, recall = (
        [(hit.id, hit.score) for hit in filled.search(query, limit, mode=mode)]
        for mode in ("precise", "recall")
    )
    cut = ranker.min_scores(
        [hit.score for hit in filled.search(query, len(FACTS), min_score=0)], len(FACTS)
    )["precise"]
    assert precise == [pair for pair in recall if pair[1] >= cut] == recall[: len(precise)]


@pytest.fixture(scope="module")
def filled() -> MemoryMesh:
    mesh = MemoryMesh("memory://", embedder=HashingEmbedder())
    mesh.add_many(FACTS)
    return mesh


@pytest.mark.usefixtures("cuts")
@pytest.mark.parametrize("mode", [*SEARCH_MODES, None])
def test_a_minimum_score_wins_over_the_mode(mesh: MemoryMesh, mode: str | None) -> None:
    everything = mesh.search(QUERY, mode=mode, min_score=0)
    assert len(everything) == len(FACTS)
    assert [hit.id for hit in mesh.search(QUERY, mode=mode, min_score=everything[0].score)] == [
        everything[0].id
    ]


@pytest.mark.usefixtures("cuts")
def test_the_option_sets_the_mode_and_the_argument_wins(house: House, mesh: MemoryMesh) -> None:
    strict = house.mesh(embedder=HashingEmbedder(), search_mode="precise")
    assert len(strict.search(QUERY)) == 2
    assert len(strict.search(QUERY, mode="recall")) == 4
    assert strict.explain(QUERY).mode == "precise"
    with pytest.raises(
        SettingsError, match=r"search_mode 'precisely' is not valid.*did you mean 'precise'"
    ):
        house.mesh(search_mode="precisely")


def test_under_rrf_neither_mode_leaves_anything_out(mesh: MemoryMesh) -> None:
    found = [
        [hit.id for hit in mesh.search(QUERY, ranker="rrf", mode=mode)] for mode in SEARCH_MODES
    ]
    assert found[0] == found[1]
    assert len(found[0]) == len(FACTS)
    assert mesh.explain(QUERY, ranker="rrf", mode="precise").min_score == 0


@pytest.mark.parametrize("mode", ["", "Precise", "exact", 1, True, ["recall"], b"recall"], ids=str)
def test_an_unknown_mode_is_refused_with_the_two_that_exist(mesh: MemoryMesh, mode: object) -> None:
    mesh.distill_lesson(LESSON)
    for call in (mesh.search, mesh.explain, mesh.query_lessons):
        for query in (QUERY, "") if call == mesh.query_lessons else (QUERY,):
            with pytest.raises(
                InvalidInput, match=r"^mode is .*; expected one of recall, precise$"
            ):
                call(query, mode=mode)


@pytest.mark.req("MESH-113")
@pytest.mark.usefixtures("cuts")
@pytest.mark.parametrize("first", SEARCH_MODES)
def test_a_cached_search_of_one_mode_is_not_the_result_of_the_other(
    mesh: MemoryMesh, first: str
) -> None:
    second = SEARCH_MODES[1 - SEARCH_MODES.index(first)]
    sizes = {"precise": 2, "recall": 4}
    for mode in (first, second, first, second):
        assert len(mesh.search(QUERY, mode=mode)) == sizes[mode]
    assert mesh.get_cache_stats().hits == 2


@pytest.mark.usefixtures("cuts")
def test_what_the_mode_leaves_out_does_not_count_as_accessed(mesh: MemoryMesh) -> None:
    def counts() -> list[int]:
        by_text = {record.content: record.access_count for record in mesh.get_all()}
        return [by_text[fact] for fact in FACTS]

    before = counts()
    mesh.search(QUERY, mode="precise")
    mesh.explain(QUERY, mode="recall")  # its near misses are shown, which is no access either
    after = counts()
    assert [now - then for now, then in zip(after, before, strict=True)] == [1, 1, 0, 0, 0, 0]
    mesh.search(QUERY, mode="recall")
    assert sum(counts()) - sum(after) == 4


def test_the_asynchronous_mesh_has_the_same_modes(tmp_path: Path) -> None:
    async def sizes() -> list[int]:
        async with AsyncMemoryMesh(tmp_path / "memory.db", embedder=HashingEmbedder()) as mesh:
            await mesh.add_many(FACTS)
            await mesh.distill_lesson(LESSON)
            found = [await mesh.search(QUERY, mode=mode) for mode in SEARCH_MODES]
            explained = [(await mesh.explain(QUERY, mode=mode)).answers for mode in SEARCH_MODES]
            lessons = [
                await mesh.query_lessons("refresh the token", mode=mode) for mode in SEARCH_MODES
            ]
            return [len(each) for each in (*found, *explained, *lessons)]

    with MemoryMesh(tmp_path / "plain.db", embedder=HashingEmbedder()) as mesh:
        mesh.add_many(FACTS)
        mesh.distill_lesson(LESSON)
        found = [len(mesh.search(QUERY, mode=mode)) for mode in SEARCH_MODES]
    assert asyncio.run(sizes()) == [*found, *found, 1, 1]


# --- scripts that the embedder cannot read ---


@dataclass(frozen=True)
class English:
    """An embedder that reads Greek as an English model does: all such texts are nearly the same
    to it."""

    tokens_for_a_letter: float
    model: str = "english"
    window: int = 256

    def count(self, text: str) -> int:
        return round(self.tokens_for_a_letter * sum(map(str.isalpha, text)))

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [
            Vector.of(self.model, [1.0, 2.0 * ("νερ" in text), float(text.isascii())])
            for text in texts
        ]


GREEK = ["Η Ελένη μένει στον Πειραιά.", "Το γραφείο κλείνει νωρίς.", "Πίνουμε νερό."]


@pytest.mark.parametrize("tokens_for_a_letter", [1.0, 0.05])
def test_a_query_that_the_embedder_only_spells_is_judged_by_its_words(
    house: House, tokens_for_a_letter: float
) -> None:
    mesh = house.mesh(embedder=English(tokens_for_a_letter))
    mesh.add_many(GREEK)
    knows = house.mesh(embedder=English(0.3))
    # To an embedder that knows the words, equal vectors are an answer.
    assert knows.search("γιατί φυσάει;", mode="precise") != []
    assert mesh.search("γιατί φυσάει;", mode="precise") == []
    assert max(hit.score for hit in mesh.search("γιατί φυσάει;", min_score=0)) < 0.05
    assert mesh.search("πού μένει η Ελένη;", mode="precise")[0].content == GREEK[0]
    # Another form of the word, found by its letters.
    assert mesh.search("νερά", mode="recall")[0].content == GREEK[2]


def test_a_query_in_another_language_whose_words_the_embedder_splits_is_judged_by_its_words(
    house: House,
) -> None:
    mesh, knows = (house.mesh(embedder=English(rate)) for rate in (0.5, 0.3))
    mesh.add_many(GREEK)
    assert mesh.search("Wie groß ist der Schrank?", mode="precise") == []
    assert knows.search("Wie groß ist der Schrank?", mode="precise") != []


@pytest.mark.parametrize("query", ["Why is it windy?", "Größe Café?", "🎉🎉", "123 ½"])
def test_an_english_query_is_never_taken_as_spelled(house: House, query: str) -> None:
    mesh, knows = (house.mesh(embedder=English(rate)) for rate in (0.9, 0.3))
    mesh.add_many(GREEK)
    found, expected = (
        [hit.score for hit in each.search(query, min_score=0, use_cache=False)]
        for each in (mesh, knows)
    )
    assert found == expected


def test_memories_in_a_script_that_the_embedder_only_spells_are_not_hidden_for_low_scores(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In default mode; `precise` stays silent."""
    monkeypatch.setattr(ranker, "MIN_EXPECTED", {"precise": 11.0, "recall": 11.0})
    mesh, knows = (house.mesh(embedder=English(rate)) for rate in (1.0, 0.3))
    mesh.add_many(GREEK)
    assert len(mesh.search("Where does Helen live?")) == len(GREEK)
    assert mesh.explain("Where does Helen live?").min_score == 0
    assert mesh.search("Where does Helen live?", mode="precise") == []
    assert knows.search("Where does Helen live?", use_cache=False) == []
    mesh.add("Helen lives in Piraeus.")  # read by words, so a low score means something
    assert mesh.search("Where does Helen live?") == []


# --- explanations ---


def test_an_explanation_names_the_mode_its_cut_and_the_near_misses(
    mesh: MemoryMesh, cuts: Cuts
) -> None:
    for mode, left_out in (("precise", 4), ("recall", 2)):
        explained = mesh.explain(QUERY, mode=mode)
        assert (explained.mode, explained.min_score) == (mode, cuts[mode])
        assert explained.left_out["min_score"] == left_out
        assert len(explained.answers) == len(FACTS) - left_out
        assert len(explained.nearly) == min(left_out, 3)
        assert max(hit.result.score for hit in explained.nearly) < cuts[mode]


@pytest.mark.usefixtures("cuts")
def test_an_explanation_of_a_given_minimum_score_names_no_mode(mesh: MemoryMesh) -> None:
    explained = mesh.explain(QUERY, mode="precise", min_score=0)
    assert (explained.mode, explained.min_score, len(explained.answers)) == (None, 0, len(FACTS))


# --- lessons ---


@pytest.fixture
def taught(mesh: MemoryMesh) -> MemoryMesh:
    rules = {
        "Refresh the token before a deploy.": "low",
        "Ask before you order tea for guests.": "critical",
    }
    for rule, severity in rules.items():
        mesh.distill_lesson(
            {**LESSON, "error_pattern": rule, "preventative_rule": rule, "severity": severity}
        )
    return mesh


def test_a_lesson_found_by_a_query_has_its_score_and_is_equal_to_the_listed_one(
    taught: MemoryMesh,
) -> None:
    found = taught.query_lessons("refresh the token", mode="recall")
    scores = {
        hit.id: hit.score
        for hit in taught.search("refresh the token", filter="memory_type = 'lesson'")
    }
    assert {lesson.memory_id: lesson.score for lesson in found} == scores
    assert [lesson.score for lesson in taught.query_lessons()] == [None, None]
    assert taught.query_lessons()[1] == found[0]


def test_lessons_are_cut_as_in_precise_mode_unless_recall_is_given(
    taught: MemoryMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    best, other = (
        lesson.score for lesson in taught.query_lessons("refresh the token", mode="recall")
    )
    assert best
    assert other
    assert best > other
    set_cuts(monkeypatch, best, {"precise": (best + other) / 2, "recall": 0.0})
    taught.clear_cache()
    assert [lesson.score for lesson in taught.query_lessons("refresh the token")] == [best]
    by_severity = [
        taught.query_lessons("refresh the token", order_by="severity DESC", mode=mode)
        for mode in SEARCH_MODES
    ]
    assert [[lesson.score for lesson in lessons] for lessons in by_severity] == [
        [other, best],
        [best],
    ]
    for mode in SEARCH_MODES:  # an empty query lists all
        assert [lesson.severity for lesson in taught.query_lessons("", mode=mode)] == [
            "critical",
            "low",
        ]


def test_the_option_does_not_change_the_mode_of_lessons(
    house: House, taught: MemoryMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranker, "MIN_EXPECTED", {"precise": 11.0, "recall": 0.0})
    loose = house.mesh(embedder=HashingEmbedder(), search_mode="recall")
    assert loose.query_lessons("refresh the token") == []
    assert len(loose.query_lessons("refresh the token", mode="recall")) == 2
