"""Rankers: interchangeable ways from a pool of candidates to scores within 0–1, best first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memory_mesh.core import fuse, rank
from memory_mesh.core.pool import Pool, Signal

LEARNT, RRF = "learnt", "rrf"


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates that a ranker lets pass, best first, and what it looked at (one array entry for each of the pool)."""

    scores: Mapping[str, float]
    default_min_score: float = 0.0
    features: Mapping[str, Signal] = field(default_factory=dict)


def ranked(ranker: str, pool: Pool, *, depth: int, by_vector: bool, weights: Mapping[str, float] | None = None) -> Ranking:
    """The pool in order. `depth` is how many candidates each channel of the document's fusion takes."""
    if ranker == RRF:
        channels = {name: order(pool, name, depth) for name in (("keywords", "vectors") if by_vector else ("keywords",))}
        return Ranking(_best_first(fuse.rrf(channels, weights)))
    features = rank.features(pool)
    scores = dict(zip(pool.ids, rank.scores(features).tolist(), strict=True))
    return Ranking(_best_first(scores), rank.DEFAULT_MIN_SCORE, features)


def order(pool: Pool, channel: str, depth: int | None = None) -> Sequence[str]:
    """The ids in the order of one channel. Keywords name only what they find; likeness has a word on everything."""
    values = zip(pool.signals[channel].tolist(), pool.ids, strict=True)
    known = [pair for pair in values if channel.startswith("vectors") or pair[0] > 0]
    return [id_ for _, id_ in sorted(known, reverse=True)[:depth]]


def _best_first(scores: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True))
