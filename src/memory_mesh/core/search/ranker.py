"""The learnt ranker: the chance that a memory answers the query, from the signals of its pool.

Two questions make it. Is the answer in this pool at all? A logistic model of the best that the pool holds says so; a query about
people nobody here knows scores low throughout. And which of them is it? A linear model orders the candidates: each channel counts
as a share of the pool's best and by how far it stands out, coverage and likeness as they are, besides who speaks, when, and how.
Channels, coverage and times never count against a memory. `rank_weights` holds the numbers and says what they were learnt on.
"""

from collections.abc import Mapping

import numpy as np

from memory_mesh.core.search.query import Pool, Signal
from memory_mesh.core.search.weights import BY_KEYWORDS, BY_VECTORS, DEFAULT_MIN_SCORE

__all__ = ["DEFAULT_MIN_SCORE", "alone", "features", "log_odds", "of_pool", "scores", "weighed"]

_CHANNELS = ("keywords", "keywords_context", "keywords_session", "vectors", "vectors_context", "vectors_session")
_COVERAGE = ("coverage", "coverage_context", "coverage_wide")
_NEAR = ("keywords_before", "keywords_behind", "vectors_before", "vectors_behind")
_AS_IS = (*_COVERAGE, "vectors", "vectors_context", "question", "question_before", "speaker", "role", "when")
_WAITING = ("vectors", "vectors_context", "vectors_session")

_FAR = 4.0  # a memory stands out by at most so many deviations
_FEW = 10.0  # in a pool of so few a deviation counts half
_SHORT, _LONG, _LONGEST = 8.0, 24.0, 400.0  # keywords
_TINY = 1e-6
_MOST = 9.0  # log odds of one among many; no model of a few hundred questions is surer than that
_SUREST = 30.0  # log odds; beyond, 32-bit floats know only 0 and 1


def features(pool: Pool) -> dict[str, Signal]:
    """What the ranker looks at, by name, one array entry for each candidate."""
    size = len(pool.ids)
    nothing = np.zeros(size, np.float32)
    signals = {
        name: pool.signals.get(name, nothing) for name in (*_CHANNELS, *_NEAR, *_AS_IS, "length", "speaker_known", "stranger")
    }
    by_vectors = bool(signals["vectors"].any())
    if by_vectors:
        signals.update({name: _known(signals[name]) for name in _WAITING})
    shares = _shares(np.stack([signals[name] for name in (*_CHANNELS, *_NEAR)]))
    found = {f"{name}_share": row for name, row in zip((*_CHANNELS, *_NEAR), shares, strict=True)}
    deviations = _deviations(np.stack([signals[name] for name in (*_CHANNELS, *_COVERAGE)]))
    found |= {f"{name}_z": row for name, row in zip((*_CHANNELS, *_COVERAGE), deviations, strict=True)}
    found |= {name: signals[name] for name in _AS_IS}
    found |= _lengths(signals["length"])
    found["answer_keywords"] = signals["question_before"] * found["keywords_before_share"]
    found["answer_vectors"] = signals["question_before"] * found["vectors_before_share"]
    # Where people speak, a name that nobody bears or mentions speaks of others.
    found["stranger"] = signals["stranger"] * signals["speaker_known"].max(initial=0)
    found["by_vectors"] = np.full(size, by_vectors, np.float32)
    return found


def scores(features: Mapping[str, Signal]) -> Signal:
    """The chance of each candidate, 0–1."""
    if not len(features["by_vectors"]):
        return np.zeros(0, np.float32)
    weights = BY_VECTORS if features["by_vectors"].any() else BY_KEYWORDS
    points = weighed(features, weights.candidate)
    line, apart = weights.odds, alone(features)
    odds = log_odds(points) * (line.slope + apart * line.alone_slope) + (line.bias + apart * line.alone_bias)
    pool = of_pool(features, points)
    here = sum(weight * pool[name] for name, weight in weights.pool.items()) + weights.pool_bias
    return _chance(odds) * _chance(np.array(here, np.float32))


def weighed(features: Mapping[str, Signal], weights: Mapping[str, float]) -> Signal:
    """The points of each candidate."""
    points: Signal = np.array(list(weights.values()), np.float32) @ np.stack([features[name] for name in weights])
    return points


def log_odds(points: Signal) -> Signal:
    """If the answer is in the pool: the log odds that it is this one, from its share of all points."""
    parts = np.exp(points - points.max())
    rest = np.maximum(parts.sum() - parts, _TINY)
    odds: Signal = np.log(np.maximum(parts, _TINY) / rest)
    return odds.clip(-_MOST, _MOST)


def alone(features: Mapping[str, Signal]) -> float:
    """The share of candidates that have no neighbours, and so less to tell them apart."""
    return float(np.mean(np.abs([features[f"{name}_share"] for name in _NEAR]).sum(axis=0) < _TINY))


def of_pool(features: Mapping[str, Signal], points: Signal) -> dict[str, float]:
    """What says whether the answer is in the pool: the most there is of each, and what the best candidate has."""
    best = points.argmax()
    found = {f"most_{name}": float(features[name].max()) for name in ("coverage", "vectors", "vectors_context", "speaker")}
    found |= {f"best_{name}": float(features[name][best]) for name in ("coverage_context", "vectors_context")}
    return found | {"no_stranger": 1 - float(features["stranger"].max())}


def _chance(odds: Signal) -> Signal:
    return np.asarray(1 / (1 + np.exp(-odds.clip(-_SUREST, _SUREST))), np.float32)


def _shares(rows: Signal) -> Signal:
    """Of the best of the pool; 0 where nothing is any good."""
    best = rows.max(axis=1, keepdims=True, initial=0)
    shares: Signal = np.divide(rows.clip(0), best, out=np.zeros_like(rows), where=best > _TINY)
    return shares


def _deviations(rows: Signal) -> Signal:
    """By how many standard deviations each stands above the middle of the pool."""
    size = rows.shape[1]
    if not size:
        return rows
    apart = rows - rows.mean(axis=1, keepdims=True)
    spread = np.sqrt((apart * apart).mean(axis=1, keepdims=True))
    deviations: Signal = np.divide(apart, spread, out=np.zeros_like(rows), where=spread > _TINY)
    return deviations.clip(-_FAR, _FAR) * np.float32(size / (size + _FEW))


def _known(likeness: Signal) -> Signal:
    """A memory that waits for its vector counts as the middle of those that have one."""
    missing = likeness == 0
    return np.where(missing, likeness[~missing].mean(), likeness) if missing.any() and not missing.all() else likeness


def _lengths(length: Signal) -> dict[str, Signal]:
    size = np.log1p(np.minimum(length, _LONGEST))
    return {
        "length": size,
        "long": np.maximum(size - np.float32(np.log1p(_LONG)), 0),
        "short": np.maximum(np.float32(np.log1p(_SHORT)) - size, 0),
    }
