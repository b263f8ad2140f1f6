"""Rankers: the learnt one, and reciprocal rank fusion against the document's formula."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.search import SIGNALS, Pool, Signal, ranker
from memory_mesh.core.search.ranker import Ranking, ScoredCandidate, rrf
from memory_mesh.core.search.weights import BY_KEYWORDS, BY_VECTORS, NOTHING

FLAGS = {
    "question", "question_before", "speaker", "speaker_known", "role", "when", "stranger",
    "by_user", "by_assistant", "personal", "general",
}  # fmt: skip
NEIGHBOURS = {
    f"{channel}_{side}" for channel in ("keywords", "vectors") for side in ("before", "behind")
} | {"question_before"}
# Signals that may never lower the score of a memory.
FOR_IT = ("keywords", "keywords_context", "keywords_session", "coverage", "coverage_context",
          "coverage_wide", "vectors", "vectors_context", "vectors_session", "speaker", "role",
          "when")  # fmt: skip


def pool(**signals: list[float]) -> Pool:
    """Return a pool with these signals; the others are 0."""
    size = len(next(iter(signals.values()), []))
    arrays = {name: np.array(signals.get(name, [0.0] * size), np.float32) for name in SIGNALS}
    return Pool(ids=[str(at) for at in range(size)], signals=arrays, documents=size)


def scores(pool_: Pool) -> Signal:
    found = ranker.features(pool_)
    return ranker.model(found.means).scores(found)


@st.composite
def pools(draw: st.DrawFn, least: int = 1, most: int = 12) -> Pool:
    """Draw a pool that an index could return."""
    size = draw(st.integers(least, most))

    def some(name: str) -> list[float]:
        if name in FLAGS:
            each = st.sampled_from([0.0, 1.0])
        elif name.startswith("vectors"):
            each = st.floats(-1, 1, width=32)
        elif name.startswith("coverage"):
            each = st.floats(0, 1, width=32)
        else:
            each = st.floats(0, 1000, width=32)
        return draw(st.lists(each, min_size=size, max_size=size))

    return pool(**{name: some(name) for name in SIGNALS})


@given(pools())
def test_every_candidate_has_a_probability_between_zero_and_one(pool_: Pool) -> None:
    found = scores(pool_)
    assert found.shape == (len(pool_.ids),)
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert ((found >= 0) & (found <= 1)).all()


@given(pools())
def test_equal_pools_are_scored_equally(pool_: Pool) -> None:
    assert (scores(pool_) == scores(pool_)).all()
    assert all(np.isfinite(values).all() for values in ranker.features(pool_).named().values())


@given(pools(least=2), st.randoms(use_true_random=False))
def test_the_order_of_the_candidates_does_not_matter(pool_: Pool, draw: object) -> None:
    places = list(range(len(pool_.ids)))
    draw.shuffle(places)  # type: ignore[attr-defined]
    other = Pool(
        ids=[pool_.ids[at] for at in places],
        signals={name: values[places] for name, values in pool_.signals.items()},
        documents=pool_.documents,
    )
    assert scores(other) == pytest.approx(scores(pool_)[places], rel=1e-3, abs=1e-5)


def test_an_empty_pool_has_no_scores() -> None:
    assert len(scores(pool(keywords=[]))) == 0
    assert all(len(values) == 0 for values in ranker.features(pool(keywords=[])).named().values())


def test_every_weight_has_a_feature() -> None:
    found = ranker.FEATURES
    assert set(BY_VECTORS.candidate) | set(BY_KEYWORDS.candidate) <= set(found)
    assert set(BY_VECTORS.pool) | set(BY_KEYWORDS.pool) <= set(ranker.POOL_FEATURES)
    assert "coverage_context" in BY_VECTORS.candidate
    assert not [name for name in (*BY_KEYWORDS.candidate, *BY_KEYWORDS.pool) if "vectors" in name]


@pytest.mark.parametrize("name", FOR_IT)
@pytest.mark.parametrize("by_vectors", [True, False])
def test_signals_that_favour_a_memory_have_no_negative_weight(name: str, by_vectors: bool) -> None:
    weights = BY_VECTORS if by_vectors else BY_KEYWORDS
    counted = [
        weights.candidate.get(each, NOTHING)
        for each in (name, f"{name}_fraction_of_best", f"{name}_z")
    ]
    assert all(base + sum(min(each, 0) for each in added) >= -1e-9 for base, *added in counted)


@given(pools(least=3), st.sampled_from(FOR_IT), st.sampled_from([0.01, 0.1, 0.5]))
def test_a_higher_signal_never_lowers_the_rank_of_a_memory(
    pool_: Pool, name: str, more: float
) -> None:
    raised = pool_.signals[name].copy()
    raised[0] = raised[0] + np.float32(more)
    after = Pool(ids=pool_.ids, signals={**pool_.signals, name: raised}, documents=pool_.documents)
    if bool(pool_.signals["vectors"].any()) != bool(
        raised.any() if name == "vectors" else pool_.signals["vectors"].any()
    ):
        return  # the first vector of the pool: the other model applies
    if name.startswith("vectors") and (pool_.signals[name] == 0).any():
        return  # memories without a vector count as the mean, which has changed
    before_it = set(np.flatnonzero(scores(pool_) < scores(pool_)[0]).tolist())
    still = set(np.flatnonzero(scores(after) <= scores(after)[0] * (1 + 1e-4) + 1e-7).tolist())
    assert before_it <= still


def _talk(size: int, **signals: list[float]) -> Pool:
    """Return the signals of turns that do not answer the query."""
    plain = {
        "keywords": [1.0] * size,
        "keywords_context": [2.0] * size,
        "coverage": [0.1] * size,
        "coverage_context": [0.2] * size,
        "coverage_wide": [0.2] * size,
        "vectors": [0.15] * size,
        "vectors_context": [0.15] * size,
        "vectors_session": [0.3] * size,
        "vectors_before": [0.15] * size,
        "vectors_behind": [0.15] * size,
        "length": [12.0] * size,
        "speaker_known": [1.0] * size,
    }
    return pool(**{**plain, **signals})


def _one(size: int, other: float, best: float) -> list[float]:
    return [best, *[other] * (size - 1)]


ANSWER = {
    "keywords": _one(40, 1.0, 12.0),
    "keywords_context": _one(40, 2.0, 14.0),
    "coverage": _one(40, 0.1, 0.8),
    "coverage_context": _one(40, 0.2, 0.9),
    "coverage_wide": _one(40, 0.2, 0.9),
    "vectors": _one(40, 0.15, 0.7),
    "vectors_context": _one(40, 0.15, 0.65),
}


def test_a_memory_that_matches_by_words_and_by_vectors_scores_high() -> None:
    found = scores(_talk(40, **ANSWER, speaker=_one(40, 0.0, 1.0)))
    assert found.argmax() == 0
    assert found[0] > 0.5 > 0.1 > found[1:].max()


def test_each_of_several_memories_that_match_equally_well_scores_as_one_would_alone() -> None:
    alone = scores(_talk(40, **ANSWER))[0]
    several = scores(
        _talk(60, **{name: [values[0]] * 20 + [values[1]] * 40 for name, values in ANSWER.items()})
    )
    assert several[:20].min() > ranker.min_scores(several, 60)["precise"]
    assert several[:20] == pytest.approx([several[0]] * 20)
    assert several[0] > alone / 2
    assert several[20:].max() < ranker.min_scores(several, 60)["precise"]


def test_if_no_memory_matches_all_scores_are_below_the_minimum() -> None:
    pool_ = _talk(40, stranger=[1.0] * 40)
    assert (
        ranker.expected_right(scores(pool_))
        < ranker.MIN_EXPECTED["precise"]
        < scores(_talk(40, **ANSWER)).max()
    )


def test_if_enough_right_answers_are_expected_each_needs_a_fraction_of_the_best_score() -> None:
    for mode, least in ranker.MIN_EXPECTED.items():
        some = [least / 2, least / 4, least / 5, 0.0]
        assert ranker.min_scores(some, 50)[mode] == least, (
            "together they do not reach it, so nothing is returned"
        )
        assert (
            0
            < ranker.min_scores([*some, least / 19], 1000)[mode]
            == pytest.approx(some[0] * ranker.FRACTIONS[mode])
        )
        assert ranker.min_scores(some, 5)[mode] < some[-2], "among few memories less is enough"
    assert set(ranker.min_scores([], 50).values()) == set(ranker.MIN_EXPECTED.values())


def test_only_the_first_ten_count_as_expected_answers() -> None:
    assert ranker.expected_right([0.01] * 200) == pytest.approx(0.1)
    assert ranker.expected_right([0.5, 0.25]) == 0.75
    assert ranker.expected_right([]) == 0


def test_an_unknown_name_lowers_every_score() -> None:
    known, unknown = (
        scores(_talk(40, **ANSWER, stranger=[fraction] * 40)) for fraction in (0.0, 1.0)
    )
    assert (unknown < known).all()


def test_without_speakers_an_unknown_name_does_not_lower_scores() -> None:
    no_speakers = [0.0] * 40
    known, unknown = (
        scores(_talk(40, **ANSWER, speaker_known=no_speakers, stranger=[fraction] * 40))
        for fraction in (0.0, 1.0)
    )
    assert (unknown == known).all()


def test_the_order_is_the_same_without_vectors_where_words_decide() -> None:
    by_words = {name: values for name, values in ANSWER.items() if not name.startswith("vectors")}
    found = scores(
        _talk(
            40, **by_words, **{name: [0.0] * 40 for name in SIGNALS if name.startswith("vectors")}
        )
    )
    assert found.argmax() == 0
    assert found[0] > ranker.min_scores(found, 40)["recall"]


def test_memories_without_sessions_and_speakers_are_ranked_too() -> None:
    alone = {name: [0.0] * 40 for name in (*NEIGHBOURS, "speaker_known")}
    found = scores(_talk(40, **ANSWER, **alone))
    assert found.argmax() == 0
    assert found[0] > 0.3


@pytest.mark.parametrize("size", [1, 2, 5])
def test_in_a_small_store_the_memory_that_matches_scores_well_above_the_others(size: int) -> None:
    fits = {"keywords": 3.0, "keywords_context": 3.0, "keywords_session": 3.0, "coverage": 0.8,
            "coverage_context": 0.8, "coverage_wide": 0.8, "vectors": 0.6, "vectors_context": 0.6,
            "vectors_session": 0.6}  # fmt: skip
    rest = {name: 0.05 if name.startswith("vectors") else 0.0 for name in fits}
    found = scores(
        pool(**{name: _one(size, rest[name], fits[name]) for name in fits}, length=[8.0] * size)
    )
    assert found[0] > 0.3
    assert size == 1 or found[0] > 5 * found[1:].max()


def test_a_single_memory_that_does_not_match_scores_low_although_it_is_the_best() -> None:
    poor = scores(
        pool(
            keywords=[0.0],
            vectors=[0.02],
            vectors_context=[0.02],
            vectors_session=[0.02],
            length=[8.0],
        )
    )
    good = scores(pool(keywords=[2.0], coverage=[0.7], coverage_context=[0.7], coverage_wide=[0.7],
                       vectors=[0.6], vectors_context=[0.6], vectors_session=[0.6],
                       length=[8.0]))  # fmt: skip
    assert poor[0] < 0.1 < 0.3 < good[0]


def test_a_memory_whose_vector_is_pending_counts_as_the_mean_of_the_others() -> None:
    waiting = ranker.features(pool(keywords=[1.0, 1.0, 1.0], vectors=[0.0, 0.2, 0.6])).named()
    assert waiting["vectors"].tolist() == pytest.approx([0.4, 0.2, 0.6])
    no_vectors = ranker.features(pool(keywords=[1.0, 1.0], vectors=[0.0, 0.0]))
    assert no_vectors.means == "keywords"


def test_memories_of_the_named_speaker_role_and_time_come_first() -> None:
    for name in ("speaker", "role", "when"):
        found = scores(_talk(40, **{name: _one(40, 0.0, 1.0)}))
        assert found[0] > found[1:].max(), name


def test_a_question_scores_lower_than_a_statement() -> None:
    found = scores(_talk(40, question=_one(40, 0.0, 1.0)))
    assert found[0] < found[1:].min()


# --- reciprocal rank fusion ---


@pytest.mark.req("MESH-106")
def test_rrf_adds_one_by_sixty_plus_the_rank_for_each_channel() -> None:
    channels = {"vector": ["a", "b", "c"], "keywords": ["c", "a"]}
    raw = {"a": 1 / 61 + 1 / 62, "b": 1 / 62, "c": 1 / 63 + 1 / 61}
    most = 1 / 61 + 1 / 61
    assert rrf(channels) == pytest.approx({found: value / most for found, value in raw.items()})


@pytest.mark.req("MESH-107")
def test_first_in_all_channels_is_one_and_first_in_one_of_two_is_a_half() -> None:
    assert rrf({"vector": ["a"], "keywords": ["a"]}) == pytest.approx({"a": 1.0})
    assert rrf({"vector": ["a"], "keywords": ["b"]}) == pytest.approx({"a": 0.5, "b": 0.5})
    assert rrf({"vector": ["a"], "keywords": []}) == pytest.approx({"a": 0.5})
    assert rrf({"keywords": ["a", "b"]}) == pytest.approx({"a": 1.0, "b": 61 / 62})


@pytest.mark.req("MESH-107")
@pytest.mark.parametrize("channels", range(1, 13))
def test_first_in_many_channels_is_at_most_one(channels: int) -> None:
    assert rrf({str(n): ["a"] for n in range(channels)})["a"] == pytest.approx(1.0)
    assert rrf({str(n): ["a"] for n in range(channels)})["a"] <= 1


def test_without_channels_the_fusion_is_empty() -> None:
    assert rrf({}) == {}
    assert rrf({"keywords": []}) == {}


@pytest.mark.req("MESH-107")
@given(
    st.dictionaries(
        st.sampled_from("stuvwxyz"),
        st.permutations("abcdef").map(lambda ranked: ranked[:4]),
        min_size=1,
    )
)
def test_fused_scores_lie_within_zero_and_one_and_better_ranks_never_lower_them(
    channels: dict[str, list[str]],
) -> None:
    fused = rrf(channels)
    assert set(fused) == {found for ranked in channels.values() for found in ranked}
    assert all(0 < value <= 1 for value in fused.values())
    for name, ranked in channels.items():
        raised = [ranked[-1], *ranked[:-1]]
        assert rrf({**channels, name: raised})[ranked[-1]] >= fused[ranked[-1]]


@pytest.mark.req("MESH-109")
def test_the_newest_version_gets_the_best_score_of_all_versions() -> None:
    found = Ranking(pool(keywords=[1.0, 1.0, 1.0]), np.array([0.4, 0.9, 0.2], np.float32))
    newest, older, oldest = (
        ScoredCandidate(float(found.scores[at]), str(at), at) for at in (0, 1, 2)
    )
    ordered = found.newest_first([[newest, older, oldest]])
    assert ordered.scores.tolist() == pytest.approx([0.9, 0.4, 0.2])
    assert ordered.newer == {"1": "0", "2": "0"}
    assert found.scores.tolist() == pytest.approx([0.4, 0.9, 0.2])


def test_without_a_common_word_name_or_time_nothing_is_likely_if_no_vector_is_compared() -> None:
    assert scores(pool(length=[4.0, 9.0])).tolist() == [0.0, 0.0]
    assert scores(pool(length=[4.0, 9.0], coverage_wide=[0.5, 0.0])).max() > 0


def test_of_two_equal_memories_of_one_user_the_newer_stands_above() -> None:
    both = {name: [values[0]] * 2 + [values[1]] * 38 for name, values in ANSWER.items()}
    said = {"by_user": [1.0] * 40, "question": [0.0] * 40}
    found = scores(_talk(40, **both, **said, day=[20_000.0, 20_100.0, *[20_050.0] * 38]))
    assert found[1] > found[0] > found[2:].max()


def test_a_candidate_is_newer_than_the_fraction_of_the_others_that_are_older() -> None:
    found = ranker.features(pool(day=[3.0, 1.0, 2.0, 2.0, 5.0], keywords=[1.0] * 5)).named()
    assert found["newer"].tolist() == [0.75, 0.0, 0.375, 0.375, 1.0]
    assert ranker.features(pool(day=[7.0], keywords=[1.0])).named()["newer"].tolist() == [0.0]


def test_a_question_that_anybody_could_ask_is_less_likely_about_the_memories() -> None:
    notes = {name: [0.0] * 40 for name in (*NEIGHBOURS, "speaker_known")}
    own, general = (
        scores(_talk(40, **ANSWER, **notes, general=[form] * 40)).max() for form in (0.0, 1.0)
    )
    assert general < own
