"""The weights of the learnt ranker, learnt on LongMemEval (MIT); NOTICE names the data.

`python -m bench.train_ranker --data DIR` writes everything below the marker; do not edit it by hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

KINDS = ("long", "alone")  # the mean length of the candidates, 0–1; the fraction of candidates without neighbours
Weight: TypeAlias = tuple[float, float, float]  # and what is added for each kind, as far as a pool is of it
NOTHING: Weight = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weights of one model, by the names of features."""

    candidate: Mapping[str, Weight]  # which candidate is the answer
    odds: Mapping[str, Weight]  # slope and bias of a line from log odds to calibrated log odds
    pool: Mapping[str, Weight]  # whether the answer is in the pool


# --- written by bench.train_ranker ---

MIN_SCORES = {"recall": 0.015, "precise": 0.17}
FOLLOWING = 0.2

BY_VECTORS = Weights(
    candidate={
        "coverage_z": (0.1412, 0.0656, 0.0),
        "coverage_context_z": (0.2278, -0.0791, 0.0),
        "coverage_wide_z": (0.1888, -0.1888, 0.0),
        "keywords_z": (0.0489, 0.4059, 0.0),
        "keywords_session_z": (0.0, 0.0574, 0.0),
        "vectors_z": (0.4149, -0.3035, 0.0),
        "vectors_context_z": (0.3984, -0.1641, 0.0),
        "vectors_session_z": (0.1277, 0.298, 0.0),
        "vectors_share": (0.6453, -0.6453, 0.0),
        "vectors_context_share": (0.6099, -0.6099, 0.0),
        "vectors_session_share": (0.0, 0.3308, 0.0),
        "keywords_before_share": (-0.223, -0.4689, 0.0),
        "keywords_behind_share": (-0.6148, -0.3674, 0.0),
        "vectors_before_share": (-0.5504, -0.3134, 0.0),
        "vectors_behind_share": (0.2429, -0.1741, 0.0),
        "coverage": (0.0, 1.5766, 0.0),
        "coverage_context": (0.6861, -0.2669, 0.0),
        "coverage_wide": (0.4119, -0.4119, 0.0),
        "vectors": (0.6319, -0.6319, 0.0),
        "vectors_context": (0.8828, -0.157, 0.0),
        "question": (-1.1749, 0.6659, -0.3943),
        "speaker": (0.9, 0.0, 0.0),
        "role": (0.5613, 2.7977, 0.0),
        "when": (2.8188, 0.2802, 0.0),
        "length": (0.3934, 0.2447, 0.0759),
        "long": (-0.2059, -0.991, 0.007),
        "short": (-0.0603, 0.9441, -0.8008),
        "answer_keywords": (0.2109, -0.3457, 0.0),
        "answer_vectors": (0.7618, -0.2969, 0.0),
    },
    odds={
        "slope": (1.1496, 0.0485, 0.0088),
        "bias": (1.2076, 0.2275, 0.1942),
    },
    pool={
        "max_coverage": (2.9877, -0.6322, 0.0),
        "max_vectors": (6.3833, -1.8402, 0.0),
        "max_vectors_context": (3.9968, -0.3382, 0.0),
        "max_speaker": (0.7914, -0.591, 0.0),
        "best_coverage_context": (2.8663, 0.2068, 0.6802),
        "best_vectors_context": (1.9789, 0.5061, 0.0),
        "no_stranger": (1.4872, 2.0544, 0.0672),
        "words": (0.4888, -0.4888, 0.9493),
        "documents": (-0.4208, 0.434, -0.6606),
        "bias": (-7.541, -2.2605, 2.2641),
    },
)

BY_KEYWORDS = Weights(
    candidate={
        "coverage_z": (0.2678, -0.2534, 0.0),
        "coverage_context_z": (0.0574, -0.0574, 0.0),
        "coverage_wide_z": (0.0728, -0.0728, 0.0),
        "keywords_z": (0.2277, 0.3244, 0.0),
        "keywords_context_z": (0.2071, -0.2071, 0.0),
        "keywords_session_z": (0.3226, 0.112, 0.0),
        "keywords_share": (0.0, 1.5841, 0.0),
        "keywords_context_share": (0.0, 0.1889, 0.0),
        "keywords_session_share": (0.4471, 0.0734, 0.0),
        "keywords_before_share": (-0.3128, -0.4542, -1.4604),
        "keywords_behind_share": (-0.1667, -0.41, 0.8747),
        "coverage": (1.6036, -0.4655, 0.0),
        "coverage_context": (1.0884, -0.8793, 0.0),
        "coverage_wide": (0.8487, -0.8487, 0.0),
        "question": (-1.1565, 0.624, -0.25),
        "speaker": (0.9, 0.0, 0.0),
        "role": (0.5167, 2.5114, 0.5464),
        "when": (3.2689, 0.079, 0.0),
        "length": (0.3867, 0.0098, 0.1454),
        "long": (-0.189, -0.8689, -0.1187),
        "short": (-0.5253, 1.4644, 0.619),
        "answer_keywords": (1.0532, -0.3296, -1.161),
    },
    odds={
        "slope": (1.1197, 0.0426, 0.0),
        "bias": (1.0889, 0.1884, 0.0247),
    },
    pool={
        "max_coverage": (6.1771, -1.8506, 0.0),
        "max_speaker": (1.1586, -0.5838, 0.8926),
        "best_coverage_context": (3.8856, 0.9332, 0.0535),
        "no_stranger": (1.3176, 1.7203, 0.3134),
        "words": (0.2558, 0.8584, 2.2193),
        "documents": (-0.4382, 0.6771, -0.7891),
        "bias": (-3.3863, -5.631, 0.9559),
    },
)
