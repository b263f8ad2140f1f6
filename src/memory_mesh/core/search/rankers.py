"""Rankers: interchangeable ways from a pool of candidates to scores within 0–1."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_mesh.core.search import fusion as fuse
from memory_mesh.core.search import ranker as rank
from memory_mesh.core.search.query import Pool, Signal

LEARNT, RRF = "learnt", "rrf"


class Placed(NamedTuple):
    """A candidate with its score; `at` is its place in the pool."""

    score: float
    id: str
    at: int


@dataclass(frozen=True, slots=True)
class Ranking:
    """What a ranker says of each candidate of a pool (−1: it does not let it pass), and what it looked at."""

    pool: Pool
    scores: NDArray[np.floating[Any]]
    default_min_score: float = 0.0
    features: Mapping[str, Signal] = field(default_factory=dict)

    def best(self, least: float) -> list[Placed]:
        """Those that score so much at least, best first; equal ones by id, descending."""
        return self._sorted(self.scores >= least)

    def below(self, least: float) -> list[Placed]:
        """The others, best first."""
        return self._sorted((self.scores < least) & (self.scores >= 0))

    def _sorted(self, chosen: NDArray[np.bool_]) -> list[Placed]:
        found = chosen.nonzero()[0].tolist()
        return sorted((Placed(float(self.scores[at]), self.pool.ids[at], at) for at in found), reverse=True)


def ranked(ranker: str, pool: Pool, *, depth: int, by_vector: bool, weights: Mapping[str, float] | None = None) -> Ranking:
    """The pool, scored. `depth` is how many candidates each channel of the document's fusion takes."""
    if ranker == RRF:
        channels = {name: order(pool, name, depth) for name in (("keywords", "vectors") if by_vector else ("keywords",))}
        fused = fuse.rrf(channels, weights)
        return Ranking(pool, np.array([fused.get(id_, -1.0) for id_ in pool.ids], np.float64))
    features = rank.features(pool)
    return Ranking(pool, rank.scores(features), rank.DEFAULT_MIN_SCORE, features)


def order(pool: Pool, channel: str, depth: int | None = None) -> Sequence[str]:
    """The ids in the order of one channel. Keywords name only what they find; likeness has a word on everything."""
    values = zip(pool.signals[channel].tolist(), pool.ids, strict=True)
    known = [pair for pair in values if channel.startswith("vectors") or pair[0] > 0]
    return [id_ for _, id_ in sorted(known, reverse=True)[:depth]]
