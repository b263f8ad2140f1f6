"""The learnt ranker: the chance that a memory answers the query, from the signals of its pool.

A logistic model of a few dozen features. Each channel counts as a share of the pool's best and by how far it stands out of the
pool; coverage and likeness count as they are too, and so does the best of the whole pool, so that a query about nothing that is
stored scores low throughout. Channels, coverage and times never count against a memory. `rank_weights` says what it was learnt on.
"""

from collections.abc import Mapping

import numpy as np

from memory_mesh.core.pool import Pool, Signal
from memory_mesh.core.rank_weights import BY_KEYWORDS, BY_VECTORS, DEFAULT_MIN_SCORE

__all__ = ["DEFAULT_MIN_SCORE", "features", "scores"]

_CHANNELS = ("keywords", "keywords_context", "keywords_session", "vectors", "vectors_context", "vectors_session")
_COVERAGE = ("coverage", "coverage_context", "coverage_wide")
_NEAR = ("keywords_before", "keywords_behind", "vectors_before", "vectors_behind")
_PLAIN = ("question", "question_before", "speaker", "role", "when")
_BEST = ("coverage_context", "vectors", "vectors_context")  # of the whole pool
_ALIKE = ("vectors", "vectors_context", "vectors_session")
_BIAS = "bias"

_FAR = 4.0  # a memory stands out by at most so many deviations
_FEW = 10.0  # in a pool of so few a deviation counts half
_SHORT, _LONG, _LONGEST = 8.0, 24.0, 400.0  # keywords
_TINY = 1e-6


def features(pool: Pool) -> dict[str, Signal]:
    """What the ranker looks at, by name, one array entry for each candidate."""
    size = len(pool.ids)
    nothing = np.zeros(size, np.float32)
    signals = {name: pool.signals.get(name, nothing) for name in (*_CHANNELS, *_COVERAGE, *_NEAR, *_PLAIN, "length")}
    if not size:
        return dict.fromkeys(_names(), nothing)
    alike = bool(signals["vectors"].any())
    if alike:
        signals.update({name: _known(signals[name]) for name in _ALIKE})
    found = {f"{name}_share": row for name, row in _rows(signals, (*_CHANNELS, *_NEAR), _shares)}
    found.update({f"{name}_z": row for name, row in _rows(signals, (*_CHANNELS, *_COVERAGE), _deviations)})
    found.update({name: signals[name] for name in (*_COVERAGE, "vectors", "vectors_context", *_PLAIN)})
    found.update(_lengths(signals["length"]))
    found["answer_keywords"] = signals["question_before"] * found["keywords_before_share"]
    found["answer_vectors"] = signals["question_before"] * found["vectors_before_share"]
    found.update({f"best_{name}": np.full(size, signals[name].max(), np.float32) for name in _BEST})
    found["by_vectors"] = np.full(size, alike, np.float32)
    return found


def scores(features: Mapping[str, Signal]) -> Signal:
    """The chance of each candidate, 0–1."""
    weights = BY_VECTORS if features["by_vectors"].any() else BY_KEYWORDS
    names = [name for name in weights if name != _BIAS]
    table = np.stack([features[name] for name in names])
    learnt = np.array([weights[name] for name in names], np.float32)
    odds: Signal = learnt @ table + np.float32(weights[_BIAS])
    return (1 / (1 + np.exp(-np.clip(odds, -30, 30)))).astype(np.float32)


def _names() -> tuple[str, ...]:
    return tuple({*BY_VECTORS, *BY_KEYWORDS, "by_vectors"} - {_BIAS})


def _rows(signals: Mapping[str, Signal], names: tuple[str, ...], how) -> zip:  # type: ignore[no-untyped-def,type-arg]
    return zip(names, how(np.stack([signals[name] for name in names])), strict=True)


def _shares(rows: Signal) -> Signal:
    """Of the best of the pool; 0 where nothing is any good."""
    best = rows.max(axis=1, keepdims=True)
    return np.clip(np.divide(rows, best, out=np.zeros_like(rows), where=best > _TINY), -1, 1)


def _deviations(rows: Signal) -> Signal:
    """By how many standard deviations each stands above the middle of the pool."""
    size = rows.shape[1]
    spread = rows.std(axis=1, keepdims=True)
    apart = rows - rows.mean(axis=1, keepdims=True)
    return np.clip(np.divide(apart, spread, out=np.zeros_like(rows), where=spread > _TINY), -_FAR, _FAR) * np.float32(size / (size + _FEW))


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
