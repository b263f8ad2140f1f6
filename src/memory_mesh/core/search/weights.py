"""The weights of the learnt ranker, learnt on LongMemEval (MIT).

`python -m bench.train_ranker --data DIR` writes everything below the marker; do not edit it by hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line from log odds to calibrated log odds, mixed with a second one by the fraction of candidates alone."""

    slope: float
    bias: float
    alone_slope: float  # added where no candidate has a neighbour
    alone_bias: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weights of one model, by the names of features."""

    candidate: Mapping[str, float]  # which candidate is the answer
    odds: Line
    pool: Mapping[str, float]  # whether the answer is in the pool
    pool_bias: float


# --- written by bench.train_ranker ---

MIN_SCORES = {"recall": 0.004, "precise": 0.05}

BY_VECTORS = Weights(
    candidate={
        "vectors_share": 0.6648,
        "vectors_context_share": 0.9175,
        "keywords_before_share": -0.219,
        "keywords_behind_share": -0.4669,
        "vectors_before_share": -0.8258,
        "vectors_behind_share": -0.1165,
        "keywords_z": 0.0118,
        "vectors_z": 0.3567,
        "vectors_context_z": 0.4516,
        "vectors_session_z": 0.2249,
        "coverage_z": 0.2269,
        "coverage_context_z": 0.2217,
        "coverage_wide_z": 0.0261,
        "coverage": 0.0661,
        "coverage_context": 1.0871,
        "coverage_wide": 1.3626,
        "vectors_context": 0.533,
        "question": -1.0306,
        "speaker": 0.9,
        "role": 2.0568,
        "when": 2.8512,
        "length": 0.3574,
        "long": -0.7476,
        "short": -0.2847,
        "answer_keywords": -0.2572,
        "answer_vectors": 0.8872,
    },
    odds=Line(slope=1.1193, bias=1.1662, alone_slope=-0.0517, alone_bias=0.2291),
    pool={
        "max_coverage": 0.484,
        "max_vectors": 4.1316,
        "max_vectors_context": 1.15,
        "max_speaker": 7.0226,
        "best_coverage_context": 2.7544,
        "best_vectors_context": 4.1935,
        "no_stranger": 6.587,
    },
    pool_bias=-10.9827,
)

BY_KEYWORDS = Weights(
    candidate={
        "keywords_session_share": 0.0396,
        "keywords_before_share": -0.3695,
        "keywords_behind_share": 0.0478,
        "keywords_z": 0.2848,
        "keywords_context_z": 0.1811,
        "keywords_session_z": 0.5241,
        "coverage_z": 0.2478,
        "coverage_context_z": 0.0947,
        "coverage": 1.6341,
        "coverage_context": 0.7609,
        "coverage_wide": 1.1062,
        "question": -1.1067,
        "speaker": 0.9,
        "role": 2.0905,
        "when": 3.0637,
        "length": 0.3078,
        "long": -0.8918,
        "short": -0.7987,
        "answer_keywords": 0.7849,
    },
    odds=Line(slope=1.1016, bias=1.055, alone_slope=0.0245, alone_bias=0.1256),
    pool={
        "max_coverage": 3.9051,
        "max_speaker": 7.4572,
        "best_coverage_context": 1.6603,
        "no_stranger": 5.4758,
    },
    pool_bias=-7.3643,
)
