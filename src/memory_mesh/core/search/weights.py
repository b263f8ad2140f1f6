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
        "coverage_z": (0.1708, 0.0714, -0.0743),
        "coverage_context_z": (0.2364, -0.1182, -0.0887),
        "coverage_wide_z": (0.1858, -0.0929, -0.0863),
        "keywords_z": (0.0462, 0.3298, -0.0231),
        "keywords_session_z": (0.0, 0.1452, 0.0),
        "vectors_z": (0.3492, -0.1746, 0.0179),
        "vectors_context_z": (0.3729, -0.18645, 0.0244),
        "vectors_session_z": (0.1632, 0.1201, 0.0212),
        "keywords_share": (0.0, 0.2744, 0.0),
        "vectors_share": (0.7743, -0.3871, -0.2668),
        "vectors_context_share": (0.7602, -0.3801, -0.2287),
        "vectors_session_share": (0.0254, 0.3411, -0.0127),
        "keywords_before_share": (-0.2284, -0.6025, 0.0),
        "keywords_behind_share": (-0.6321, -0.5824, 0.0),
        "vectors_before_share": (-0.5573, -0.2903, 0.0),
        "vectors_behind_share": (0.2501, -0.2957, 0.0),
        "coverage": (0.0, 1.2363, 0.0),
        "coverage_context": (0.7754, -0.3877, -0.3877),
        "coverage_wide": (0.3372, -0.1686, -0.1686),
        "vectors": (0.4081, -0.204, 0.4366),
        "vectors_context": (0.7441, -0.372, 0.4379),
        "question": (-1.1685, 0.6646, -0.4087),
        "speaker": (0.9, 0.0, 0.0),
        "role": (0.5761, 2.8715, 0.0),
        "when": (2.8683, 0.6936, -1.4341),
        "length": (0.3896, 0.2418, 0.109),
        "long": (-0.2079, -1.0123, 0.0546),
        "short": (-0.0579, 0.9405, -0.8991),
        "answer_keywords": (0.1909, -0.2946, 0.0),
        "answer_vectors": (0.7761, -0.3454, 0.0),
    },
    odds={
        "slope": (1.1505, 0.0111, 0.1174),
        "bias": (1.203, 0.1441, 0.3764),
    },
    pool={
        "max_coverage": (3.42, -0.7859, 0.4605),
        "max_vectors": (6.6917, -1.5062, -2.4496),
        "max_vectors_context": (4.0945, -0.1585, -0.7409),
        "max_speaker": (0.7702, -0.3851, -0.1941),
        "best_coverage_context": (2.4213, 0.0164, 0.9958),
        "best_vectors_context": (2.3059, 0.0168, 1.7764),
        "no_stranger": (1.4922, 2.125, 0.1936),
        "documents": (-0.3953, 0.3879, -0.5689),
        "bias": (-7.5213, -2.4338, 3.0178),
    },
)

BY_KEYWORDS = Weights(
    candidate={
        "coverage_z": (0.2584, -0.1292, -0.1292),
        "coverage_context_z": (0.0188, -0.0094, -0.0094),
        "coverage_wide_z": (0.0524, -0.0262, -0.0262),
        "keywords_z": (0.2329, 0.1547, 0.2479),
        "keywords_context_z": (0.2175, -0.10875, -0.10875),
        "keywords_session_z": (0.3145, 0.0207, -0.1572),
        "keywords_share": (0.0243, 1.4173, 0.9157),
        "keywords_context_share": (0.0153, -0.0076, 0.0941),
        "keywords_session_share": (0.5745, 0.394, -0.28725),
        "keywords_before_share": (-0.2505, -0.6578, -1.3319),
        "keywords_behind_share": (-0.1088, -0.6613, 1.0559),
        "coverage": (1.7733, -0.6553, -0.88665),
        "coverage_context": (1.0279, -0.51395, -0.51395),
        "coverage_wide": (0.8579, -0.42895, -0.42895),
        "question": (-1.1622, 0.6377, -0.2516),
        "speaker": (0.9, 0.0, 0.0),
        "role": (0.52, 2.5261, 0.5486),
        "when": (3.3402, 0.7779, -1.6701),
        "length": (0.3954, -0.0068, 0.1714),
        "long": (-0.1941, -0.9027, -0.085),
        "short": (-0.5231, 1.4188, 0.6061),
        "answer_keywords": (1.0424, -0.3143, -1.1512),
    },
    odds={
        "slope": (1.1199, 0.0161, 0.0455),
        "bias": (1.09, 0.1381, 0.1012),
    },
    pool={
        "max_coverage": (6.3734, -1.6902, -0.7514),
        "max_speaker": (1.1866, -0.5933, 0.7213),
        "best_coverage_context": (3.8231, 0.5403, 1.2544),
        "no_stranger": (1.2838, 1.7224, 0.3938),
        "documents": (-0.4265, 0.6524, -0.723),
        "bias": (-3.2378, -4.5743, 2.6986),
    },
)
