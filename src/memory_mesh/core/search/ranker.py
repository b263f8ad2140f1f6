"""Rankers: interchangeable ways to turn a pool of candidates into scores within 0–1.

`rrf` is reciprocal rank fusion. `learnt` estimates the probability that a memory answers the query, as the product of two models:
- Is the answer in this pool at all? A logistic model over the best values of the pool. A query about unknown people scores low
  throughout.
- Which candidate is it? A linear model. Each channel counts as a fraction of the pool's best and by its deviation from the mean;
  coverage and similarity count as they are, and so do speaker, time and form. Channels, coverage and times never lower a score.
`weights` holds the numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_mesh.core.search.query import Pool, Signal
from memory_mesh.core.search.weights import BY_KEYWORDS, BY_VECTORS, MIN_SCORES

K = 60  # the constant of reciprocal rank fusion

_CHANNELS = ("keywords", "keywords_context", "keywords_session", "vectors", "vectors_context", "vectors_session")
_COVERAGE = ("coverage", "coverage_context", "coverage_wide")
_NEIGHBOURS = ("keywords_before", "keywords_behind", "vectors_before", "vectors_behind")
_UNCHANGED = (*_COVERAGE, "vectors", "vectors_context", "question", "question_before", "speaker", "role", "when")
_MAY_BE_PENDING = ("vectors", "vectors_context", "vectors_session")

_MAX_DEVIATION = 4.0
_SMALL_POOL = 10.0  # in a pool of this size a deviation counts half
_SHORT, _LONG, _LONGEST = 8.0, 24.0, 400.0  # keywords
_TINY = 1e-6
_DIGITS = 4  # in which cosines of equal vectors agree
_MAX_LOG_ODDS = 9.0  # of one among many; a model of a few hundred questions is never surer than that
_MAX_EXPONENT = 30.0  # beyond this, 32-bit floats round to 0 and 1


class ScoredCandidate(NamedTuple):
    """A candidate with its score; `at` is its position in the pool."""

    score: float
    id: str
    at: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """The scores of a pool's candidates (−1: rejected by the ranker), and the features they come from."""

    pool: Pool
    scores: NDArray[np.floating[Any]]
    min_scores: Mapping[str, float] = field(default_factory=dict)  # by search mode; 0 for a mode that is not here
    features: Mapping[str, Signal] = field(default_factory=dict)

    def best(self, min_score: float) -> list[ScoredCandidate]:
        """Return the candidates with at least this score, best first; equal scores by id, descending."""
        return self._sorted(self.scores >= min_score)

    def below(self, min_score: float) -> list[ScoredCandidate]:
        """Return the other candidates, best first."""
        return self._sorted((self.scores < min_score) & (self.scores >= 0))

    def twins(self, candidates: Sequence[ScoredCandidate], found: Sequence[ScoredCandidate]) -> list[ScoredCandidate]:
        """Return the candidates that match as well as one of `found` by keywords and vectors, as those of the same text do."""
        marks = self.pool.signals["keywords"] + 1j * self.pool.signals["vectors"].round(_DIGITS)
        among, known = (marks[[each.at for each in some]] for some in (candidates, found))
        alike = np.isin(among, known) & (among != 0)
        return [each for each, twin in zip(candidates, alike.tolist(), strict=True) if twin]

    def _sorted(self, chosen: NDArray[np.bool_]) -> list[ScoredCandidate]:
        positions = chosen.nonzero()[0].tolist()
        return sorted((ScoredCandidate(float(self.scores[at]), self.pool.ids[at], at) for at in positions), reverse=True)


def rank(ranker: str, pool: Pool, *, depth: int, by_vector: bool, weights: Mapping[str, float] | None = None) -> Ranking:
    """Score a pool. `depth` and `weights` are for `rrf`: candidates taken from each channel, and the weight of each channel."""
    if ranker == "rrf":
        channels = {name: order(pool, name, depth) for name in (("keywords", "vectors") if by_vector else ("keywords",))}
        fused = rrf(channels, weights)
        return Ranking(pool, np.array([fused.get(id_, -1.0) for id_ in pool.ids], np.float64))
    pool_features = features(pool)
    return Ranking(pool, scores(pool_features), MIN_SCORES, pool_features)


def order(pool: Pool, channel: str, depth: int | None = None) -> Sequence[str]:
    """Return the ids in the order of one channel. Keyword channels contain only matches, vector channels every candidate."""
    values = zip(pool.signals[channel].tolist(), pool.ids, strict=True)
    ranked = [pair for pair in values if channel.startswith("vectors") or pair[0] > 0]
    return [id_ for _, id_ in sorted(ranked, reverse=True)[:depth]]


def rrf(channels: Mapping[str, Sequence[str]], weights: Mapping[str, float] | None = None) -> dict[str, float]:
    """Fuse rankings by reciprocal rank, divided by the maximum for these channels: first in every channel is 1."""
    channel_weights = {name: (weights or {}).get(name, 1.0) for name in channels}
    maximum = sum(channel_weights.values()) / (K + 1)
    if not maximum:
        return {}
    fused: dict[str, float] = {}
    for name, ids in channels.items():
        for position, id_ in enumerate(ids):
            fused[id_] = fused.get(id_, 0.0) + channel_weights[name] / (K + position + 1)
    return {id_: min(1.0, value / maximum) for id_, value in fused.items()}  # the sum of five channels can round to above one


# --- the learnt ranker ---


def features(pool: Pool) -> dict[str, Signal]:
    """Return the features of a pool by name, one array entry for each candidate."""
    size = len(pool.ids)
    nothing = np.zeros(size, np.float32)
    names = (*_CHANNELS, *_NEIGHBOURS, *_UNCHANGED, "length", "speaker_known", "stranger")
    signals = {name: pool.signals.get(name, nothing) for name in names}
    by_vectors = bool(signals["vectors"].any())
    if by_vectors:
        signals.update({name: _with_pending(signals[name]) for name in _MAY_BE_PENDING})
    parts = np.stack([signals[name] for name in (*_CHANNELS, *_NEIGHBOURS)])
    best = parts.max(axis=1, keepdims=True, initial=0)
    fractions = np.divide(parts.clip(0), best, out=np.zeros_like(parts), where=best > _TINY)
    named = {f"{name}_share": row for name, row in zip((*_CHANNELS, *_NEIGHBOURS), fractions, strict=True)}
    deviations = _deviations(np.stack([signals[name] for name in (*_CHANNELS, *_COVERAGE)]))
    named |= {f"{name}_z": row for name, row in zip((*_CHANNELS, *_COVERAGE), deviations, strict=True)}
    named |= {name: signals[name] for name in _UNCHANGED}
    named["length"] = np.log1p(np.minimum(signals["length"], _LONGEST))
    named["long"] = np.maximum(named["length"] - np.float32(np.log1p(_LONG)), 0)
    named["short"] = np.maximum(np.float32(np.log1p(_SHORT)) - named["length"], 0)
    named["answer_keywords"] = signals["question_before"] * named["keywords_before_share"]
    named["answer_vectors"] = signals["question_before"] * named["vectors_before_share"]
    # Only if memories have speakers does an unknown name mean that the query is about somebody else.
    named["stranger"] = signals["stranger"] * signals["speaker_known"].max(initial=0)
    named["by_vectors"] = np.full(size, by_vectors, np.float32)
    return named


def scores(features: Mapping[str, Signal]) -> Signal:
    """Return the probability of each candidate, 0–1."""
    if not len(features["by_vectors"]):
        return np.zeros(0, np.float32)
    weights = BY_VECTORS if features["by_vectors"].any() else BY_KEYWORDS
    candidate_points = points(features, weights.candidate)
    line, alone = weights.odds, fraction_alone(features)
    odds = log_odds(candidate_points) * (line.slope + alone * line.alone_slope) + (line.bias + alone * line.alone_bias)
    pool = pool_features(features, candidate_points)
    in_pool = sum(weight * pool[name] for name, weight in weights.pool.items()) + weights.pool_bias
    return _probability(odds) * _probability(np.array(in_pool, np.float32))


def points(features: Mapping[str, Signal], weights: Mapping[str, float]) -> Signal:
    """Return the weighted sum of each candidate's features."""
    weighted: Signal = np.array(list(weights.values()), np.float32) @ np.stack([features[name] for name in weights])
    return weighted


def log_odds(points: Signal) -> Signal:
    """Return the log odds of each candidate, given that the answer is in the pool."""
    parts = np.exp(points - points.max())
    rest = np.maximum(parts.sum() - parts, _TINY)
    odds: Signal = np.log(np.maximum(parts, _TINY) / rest)
    return odds.clip(-_MAX_LOG_ODDS, _MAX_LOG_ODDS)


def fraction_alone(features: Mapping[str, Signal]) -> float:
    """Return the fraction of candidates without neighbours, which have fewer features to tell them apart."""
    return float(np.mean(np.abs([features[f"{name}_share"] for name in _NEIGHBOURS]).sum(axis=0) < _TINY))


def pool_features(features: Mapping[str, Signal], points: Signal) -> dict[str, float]:
    """Return the features that tell whether the answer is in the pool: maxima, and values of the best candidate."""
    best = points.argmax()
    named = {f"max_{name}": float(features[name].max()) for name in ("coverage", "vectors", "vectors_context", "speaker")}
    named |= {f"best_{name}": float(features[name][best]) for name in ("coverage_context", "vectors_context")}
    return named | {"no_stranger": 1 - float(features["stranger"].max())}


def _probability(odds: Signal) -> Signal:
    return np.asarray(1 / (1 + np.exp(-odds.clip(-_MAX_EXPONENT, _MAX_EXPONENT))), np.float32)


def _deviations(rows: Signal) -> Signal:
    """Return how many standard deviations each value lies above the mean of its row."""
    size = rows.shape[1]
    if not size:
        return rows
    differences = rows - rows.mean(axis=1, keepdims=True)
    spread = np.sqrt((differences * differences).mean(axis=1, keepdims=True))
    deviations: Signal = np.divide(differences, spread, out=np.zeros_like(rows), where=spread > _TINY)
    return deviations.clip(-_MAX_DEVIATION, _MAX_DEVIATION) * np.float32(size / (size + _SMALL_POOL))


def _with_pending(cosines: Signal) -> Signal:
    """Replace the 0 of memories whose vector is pending by the mean of the others."""
    missing = cosines == 0
    return np.where(missing, cosines[~missing].mean(), cosines) if missing.any() and not missing.all() else cosines
