"""What each signal contributed to a score: the parts sum to it."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.search import Pool
from memory_mesh.core.search.ranker import Ranking, ScoredCandidate, contributions, rank

from .test_ranker import pool, pools


def total(ranking: Ranking, at: int) -> float:
    return sum(one.value for one in contributions(ranking, at))


def odds(score: float) -> float:
    return log(score / (1 - score))


@given(pools(), st.booleans())
def test_the_contributions_sum_to_the_log_odds_of_the_score(pool_: Pool, spelled: bool) -> None:
    ranking = rank("learnt", pool_, depth=10, by_vector=True, spelled=spelled)
    best = ranking.best(0)
    if len(best) > 1:
        ranking = ranking.newest_first([[best[-1], best[0]]])
    for each in ranking.best(0):
        expected = odds(each.score) if each.score > 1e-6 else None
        found = contributions(ranking, each.at)
        assert expected is None or total(ranking, each.at) == pytest.approx(expected, abs=1e-3)
        assert [abs(one.value) for one in found] == sorted(
            (abs(one.value) for one in found), reverse=True
        )


def test_a_signal_contributes_its_weight_times_how_far_it_lies_above_the_mean() -> None:
    ranking = rank(
        "learnt",
        pool(coverage=[0.5] * 3, coverage_wide=[0.5] * 3, when=[1.0, 0.0, 0.0]),
        depth=10,
        by_vector=False,
    )
    parts = [{one.signal: one.value for one in contributions(ranking, at)} for at in range(3)]
    assert "words" not in parts[0]  # alike in all
    assert parts[0]["time"] > 0 > parts[1]["time"]
    assert parts[0]["time"] == pytest.approx(-2 * parts[1]["time"])  # 1 − ⅓ against 0 − ⅓
    assert {one.signal: one.meaning for one in contributions(ranking, 0)}[
        "time"
    ] == "fits the time named"


def test_the_order_of_versions_is_a_part_of_its_own() -> None:
    pool_ = pool(
        coverage=[0.9, 0.5, 0.4, 0.3, 0.2],
        coverage_wide=[0.9, 0.5, 0.4, 0.3, 0.2],
        keywords=[9.0, 5.0, 4.0, 3.0, 2.0],
    )
    learnt = rank("learnt", pool_, depth=10, by_vector=False)
    newest, older = (ScoredCandidate(float(learnt.scores[at]), str(at), at) for at in (2, 0))
    ordered = learnt.newest_first([[newest, older]])
    before, after = (
        {one.signal for one in contributions(ranking, 0)} for ranking in (learnt, ordered)
    )
    assert after - before == {"versions"}


def test_a_memory_without_neighbours_has_no_contribution_of_a_context() -> None:
    signals = {
        "coverage": [0.9, 0.2],
        "coverage_context": [0.9, 0.2],
        "coverage_wide": [0.9, 0.2],
        "keywords": [9.0, 2.0],
    }
    alone, beside = (
        rank("learnt", pool(**signals, keywords_before=before), depth=10, by_vector=False)
        for before in ([0.0, 0.0], [3.0, 0.0])
    )
    found = [{one.signal for one in contributions(ranking, 0)} for ranking in (alone, beside)]
    assert ["words_around" in one for one in found] == [False, True]
    assert "words" in found[0] & found[1]


def test_a_score_of_zero_has_no_contributions() -> None:
    ranking = rank("learnt", pool(length=[4.0, 9.0]), depth=10, by_vector=False)
    assert ranking.scores.tolist() == [0.0, 0.0]
    assert contributions(ranking, 0) == []


def test_under_rank_fusion_the_channels_sum_to_the_score() -> None:
    pool_ = pool(keywords=[3.0, 2.0, 0.0], vectors=[0.1, 0.9, 0.5])
    ranking = rank("rrf", pool_, depth=10, by_vector=True, weights={"keywords": 2.0})
    assert [{one.signal for one in contributions(ranking, at)} for at in (0, 2)] == [
        {"keywords", "vectors"},
        {"vectors"},
    ]
    for at, score in enumerate(ranking.scores.tolist()):
        assert total(ranking, at) == pytest.approx(score)
    assert np.all(ranking.scores > 0)
