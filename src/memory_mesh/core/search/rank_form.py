"""The form of what a ranker was taught; `rank_weights` fills it, `rank` uses it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """How log odds become other log odds: a straight line, another one where no candidate has a neighbour, mixed in between."""

    slope: float
    bias: float
    alone_slope: float
    alone_bias: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What a ranker was taught."""

    candidate: Mapping[str, float]  # by feature of a candidate: which of them it is
    odds: Line  # from a candidate's share of all points to how likely it is
    pool: Mapping[str, float]  # by feature of the pool: whether it is here at all
    pool_bias: float
