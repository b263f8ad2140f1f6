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

MIN_SCORES = {"recall": 0.005, "precise": 0.17}
OTHERS_FRACTION = 0.2

BY_VECTORS = Weights(
    candidate={
        "coverage_z": (0.1452, 0.0914, 0.0),
        "coverage_context_z": (0.2341, -0.109, 0.0),
        "coverage_wide_z": (0.0874, -0.0874, 0.0),
        "keywords_z": (0.022, 0.4193, 0.0),
        "keywords_session_z": (0.0, 0.0521, 0.0),
        "vectors_z": (0.3961, -0.3157, 0.0),
        "vectors_context_z": (0.3312, -0.0841, 0.0),
        "vectors_session_z": (0.1911, 0.2626, 0.0),
        "vectors_fraction_of_best": (0.8908, -0.8908, 0.0),
        "vectors_context_fraction_of_best": (0.6535, -0.6535, 0.0),
        "vectors_session_fraction_of_best": (0.0, 0.2652, 0.0),
        "keywords_before_fraction_of_best": (-0.2184, -0.4952, 0.0),
        "keywords_behind_fraction_of_best": (-0.505, -0.4562, 0.0),
        "vectors_before_fraction_of_best": (-0.4978, -0.3667, 0.0),
        "vectors_behind_fraction_of_best": (0.1834, -0.1493, 0.0),
        "coverage": (0.0252, 1.544, 0.0),
        "coverage_context": (0.9677, -0.4366, 0.0),
        "coverage_wide": (0.8141, -0.8141, 0.0),
        "vectors": (0.642, -0.642, 0.0),
        "vectors_context": (0.7343, 0.0665, 0.0),
        "question": (-1.155, 0.646, -0.2396),
        "speaker": (0.9, 0.0, 0.0),
        "role": (0.5817, 2.9006, 0.0),
        "when": (2.5837, -0.015, 0.0),
        "length": (0.4309, 0.2561, 0.0406),
        "long": (-0.2074, -1.0083, 0.1554),
        "short": (-0.0598, 0.9056, 0.0384),
        "answer_keywords": (0.1614, -0.2175, 0.0),
        "answer_vectors": (0.8054, -0.3959, 0.0),
    },
    odds={
        "slope": (1.1608, 0.0306, 0.0),
        "bias": (1.1952, 0.2396, 0.1145),
    },
    pool={
        "max_coverage": (3.6454, -1.5647, 0.7235),
        "max_vectors": (5.8517, -1.6596, 0.0),
        "max_vectors_context": (3.5984, 0.3039, 0.0),
        "max_speaker": (0.9487, -0.0681, 0.0),
        "best_coverage_context": (2.5412, -0.0123, 1.4507),
        "best_vectors_context": (2.0137, 0.3729, 0.0),
        "no_stranger": (1.7418, 3.2998, 0.813),
        "words": (0.7431, -0.7431, 0.299),
        "documents": (-0.2448, 0.3265, -0.6271),
        "bias": (-9.0003, -2.4335, 1.6908),
    },
)

BY_KEYWORDS = Weights(
    candidate={
        "coverage_z": (0.2866, -0.2844, 0.0),
        "coverage_context_z": (0.1252, -0.1252, 0.0),
        "keywords_z": (0.2468, 0.3883, 0.0),
        "keywords_context_z": (0.163, -0.163, 0.0),
        "keywords_session_z": (0.4442, 0.0767, 0.0),
        "keywords_fraction_of_best": (0.0, 1.3171, 0.0),
        "keywords_context_fraction_of_best": (0.0, 0.0649, 0.0),
        "keywords_session_fraction_of_best": (0.3209, -0.105, 0.0),
        "keywords_before_fraction_of_best": (-0.1997, -0.5967, -1.3107),
        "keywords_behind_fraction_of_best": (0.0103, -0.5796, 0.7343),
        "coverage": (1.4444, -0.3301, 0.0),
        "coverage_context": (0.9303, -0.2262, 0.0),
        "coverage_wide": (0.8382, -0.8382, 0.0),
        "question": (-1.2122, 0.6947, -0.2613),
        "speaker": (0.9, 0.0, 0.0),
        "role": (0.5502, 2.681, 0.5284),
        "when": (2.9611, -0.4965, 0.0),
        "length": (0.3875, 0.0316, 0.0872),
        "long": (-0.1844, -0.8036, -0.1074),
        "short": (-0.6168, 1.2186, 0.9464),
        "answer_keywords": (0.948, -0.5754, 0.1573),
    },
    odds={
        "slope": (1.1141, 0.0296, 0.0),
        "bias": (1.0149, 0.1686, -0.0116),
    },
    pool={
        "max_coverage": (5.2913, -1.7168, 0.0),
        "max_speaker": (0.8542, 0.2984, 0.1691),
        "best_coverage_context": (4.3525, 0.9915, 0.4075),
        "no_stranger": (2.0057, 2.3165, 3.3576),
        "words": (2.1635, -1.9189, 0.0),
        "documents": (-0.2615, 0.5613, -0.7375),
        "bias": (-6.6427, -3.334, 0.0832),
    },
)
