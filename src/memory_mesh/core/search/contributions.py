"""What each signal contributed to a score, so that a result can be explained: the parts sum to the log-odds of the score.

Of a candidate's feature, the part is slope × weight × how far its value lies above the mean of the candidates. What follows
does not go by features, and each step is one part: the strength of the rivals, the doubt whether there is an answer at all, the
calibration, the deep ranker, and the order of versions. Under `rrf` the parts of the channels sum to the score itself.
"""

from math import log

import numpy as np

from memory_mesh.core.search.query import Contribution
from memory_mesh.core.search.ranker import FEATURES, Features, Model, Ranking, log_odds, model

# By signal: what it means, and the signals whose features it gathers.
_GATHERED = {
    "words": ("words of the question in it", ("coverage", "keywords")),
    "words_around": (
        "words of the question in the memories around it",
        ("coverage_context", "coverage_wide", "keywords_context", "keywords_before", "keywords_behind"),
    ),
    "meaning": ("similar meaning", ("vectors",)),
    "meaning_around": ("similar meaning of the memories around it", ("vectors_context", "vectors_before", "vectors_behind")),
    "session": ("its whole session", ("keywords_session", "vectors_session")),
    "speaker": ("said by the person named", ("speaker",)),
    "role": ("said by the one who is asked about", ("role",)),
    "time": ("fits the time named", ("when",)),
    "answer": ("follows a question like this one", ("answer_keywords", "answer_vectors")),
    "question": ("asks instead of telling", ("question",)),
    "length": ("its length", ("length", "long", "short")),
    "assistant": ("said by the assistant", ("by_assistant",)),
    "age": ("newer than other candidates", ("newer",)),
    "stranger": ("the question names someone unknown", ("stranger",)),
}
_MEANINGS = {
    **{name: meaning for name, (meaning, _) in _GATHERED.items()},
    "rivals": "number and strength of the other candidates",
    "doubt": "doubt whether any memory answers this",
    "calibration": "correction learnt from questions with known answers",
    "deep": "read together with the question by the deep ranker",
    "versions": "order of versions: the newest or the valid one first",
    "keywords": "its place by words",
    "vectors": "its place by meaning",
}
_NAME_OF = {signal: name for name, (_, signals) in _GATHERED.items() for signal in signals}
_OF_FEATURE = [_NAME_OF[feature.removesuffix("_z").removesuffix("_fraction_of_best")] for feature in FEATURES]
# A memory without neighbours is its own context and session: those signals repeat its own words and meaning.
_BY_PREFIX = {"coverage": "words", "keywords": "words", "vectors": "meaning"}
_OF_FEATURE_ALONE = [_BY_PREFIX.get(feature.partition("_")[0], name) for feature, name in zip(FEATURES, _OF_FEATURE, strict=True)]
_NEIGHBOURS = [at for at, feature in enumerate(FEATURES) if "_before_" in feature or "_behind_" in feature]
_TINY = 1e-9


def contributions(ranking: Ranking, at: int) -> list[Contribution]:
    """Return what each signal contributed to the score of the candidate at this position of the pool, largest first.

    A score of 0 has no log-odds, and no contributions.
    """
    if ranking.found is None:
        parts = {name: by_id[ranking.pool.ids[at]] for name, by_id in ranking.fused.items() if ranking.pool.ids[at] in by_id}
    elif all(step.scores[at] > 0 for step in ranking.steps):
        parts = _of_features(ranking.found, at, model(by_vectors=ranking.found.by_vectors), spelled=ranking.spelled)
        reached = sum(parts.values())
        for step in ranking.steps:
            after = _logit(float(step.scores[at]))
            parts[step.name] = parts.get(step.name, 0.0) + after - reached
            reached = after
    else:
        parts = {}
    found = [Contribution(name, _MEANINGS[name], value) for name, value in parts.items() if abs(value) > _TINY]
    return sorted(found, key=lambda one: -abs(one.value))


def _of_features(found: Features, at: int, learnt: Model, *, spelled: bool) -> dict[str, float]:
    """Return the parts up to the probability before it is calibrated."""
    points, (slope, bias) = learnt.points(found), learnt.odds(found)
    rows = found.rows.astype(np.float64)
    by_feature = slope * learnt.weights(found) * (rows[:, at] - rows.mean(axis=1))
    parts = dict.fromkeys(_GATHERED, 0.0)
    names = _OF_FEATURE if rows[_NEIGHBOURS, at].any() else _OF_FEATURE_ALONE
    for name, value in zip(names, by_feature.tolist(), strict=True):
        parts[name] += value
    best_of_pool = bias + slope * float(log_odds(points)[at])  # given that there is an answer
    parts["rivals"] = best_of_pool - sum(parts.values())
    chance = learnt.chance(found, points, spelled=spelled) / (1 + np.exp(-best_of_pool))
    parts["doubt"] = _logit(float(chance)) - best_of_pool
    return parts


def _logit(chance: float) -> float:
    within = min(max(chance, _TINY), 1 - _TINY)
    return log(within / (1 - within))
