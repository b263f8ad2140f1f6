"""The weights of the learnt ranker, learnt on LongMemEval (MIT); NOTICE names the data.

`python -m bench.train_ranker --data DIR` writes everything below the marker; do not edit it by hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

# The mean length of the candidates, 0–1; the fraction of candidates without neighbours; and that of a user's and an assistant's.
KINDS = ("long", "alone", "chat")
Weight: TypeAlias = tuple[float, float, float, float]  # and what is added for each kind, as far as a pool is of it
NOTHING: Weight = (0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weights of one model, by the names of features."""

    candidate: Mapping[str, Weight]  # which candidate is the answer
    odds: Mapping[str, Weight]  # slope and bias of a line from log odds to calibrated log odds
    pool: Mapping[str, Weight]  # whether the answer is in the pool


# --- written by bench.train_ranker ---

MIN_SCORES = {"recall": 0.005, "precise": 0.165}
OTHERS_FRACTION = 0.2
CALIBRATION = ((0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0), (0.0, 0.026, 0.131, 0.272, 0.399, 0.656, 0.793, 0.823))

BY_VECTORS = Weights(
    candidate={
        "coverage_z": (0.1526, 0.0991, 0.0, 0.0),
        "coverage_context_z": (0.236, -0.102, 0.0, 0.0),
        "coverage_wide_z": (0.0898, -0.0898, 0.0, 0.0),
        "keywords_z": (0.0159, 0.3934, 0.0, 0.0),
        "keywords_session_z": (0.0, 0.0497, 0.0, 0.0),
        "vectors_z": (0.3935, -0.2921, 0.0, 0.0),
        "vectors_context_z": (0.325, -0.1255, 0.0, 0.0),
        "vectors_session_z": (0.1927, 0.2538, 0.0, 0.0),
        "vectors_fraction_of_best": (0.9176, -0.9176, 0.0, 0.0),
        "vectors_context_fraction_of_best": (0.6853, -0.6853, 0.0, 0.0),
        "vectors_session_fraction_of_best": (0.0, 0.2741, 0.0, 0.0),
        "keywords_before_fraction_of_best": (-0.2257, -0.4632, 0.0, 0.0),
        "keywords_behind_fraction_of_best": (-0.5013, -0.4063, 0.0, 0.0),
        "vectors_before_fraction_of_best": (-0.487, -0.4471, 0.0, 0.0),
        "vectors_behind_fraction_of_best": (0.1769, -0.0408, 0.0, 0.0),
        "coverage": (0.0287, 1.5752, 0.0, 0.0),
        "coverage_context": (0.9653, -0.4292, 0.0, 0.0),
        "coverage_wide": (0.7911, -0.7911, 0.0, 0.0),
        "vectors": (0.6086, -0.6086, 0.0, 0.0),
        "vectors_context": (0.7214, 0.2546, 0.0, 0.0),
        "question": (-1.1544, 0.674, -0.2453, 0.0),
        "speaker": (0.9, 0.0, 0.0, 0.0),
        "role": (0.5887, 2.9316, 0.0, 0.0),
        "when": (2.5517, 0.0185, 0.0, 0.0),
        "length": (0.4167, 0.1494, 0.054, 0.0),
        "long": (-0.183, -0.8857, 0.1573, 0.0),
        "short": (-0.0527, 1.2723, -0.2737, 0.0),
        "answer_keywords": (0.1581, -0.2387, 0.0, 0.0),
        "answer_vectors": (0.8069, -0.5433, 0.0, 0.0),
    },
    odds={
        "slope": (1.1611, 0.03, 0.0, 0.0),
        "bias": (1.1969, 0.2426, 0.1193, 0.0),
    },
    pool={
        "max_coverage": (2.4993, -0.654, 0.3934, 0.0),
        "max_vectors": (4.1492, -1.3278, 0.0, 0.0),
        "max_vectors_context": (4.0599, 0.3478, 0.0, 0.0),
        "max_speaker": (0.6546, -0.0065, 0.0, 0.0),
        "best_coverage_context": (0.844, 0.0482, 1.2038, 0.0),
        "best_vectors_context": (0.5536, 0.0687, 0.0, 0.0),
        "best_vectors": (1.6657, -1.6657, 0.0, 0.0),
        "best_coverage_and_vectors": (3.1652, 1.8997, 0.0, 0.0),
        "max_keywords": (1.0327, -0.1313, 0.0768, 0.0),
        "no_stranger": (1.7312, 3.5191, 0.6947, 0.0),
        "documents": (-0.4349, 0.3719, -0.6728, 0.0),
        "bias": (-8.479, -3.328, 2.2981, 0.0),
    },
)

BY_KEYWORDS = Weights(
    candidate={
        "coverage_z": (0.2911, -0.2724, 0.0, 0.0),
        "coverage_context_z": (0.1352, -0.1352, 0.0, 0.0),
        "keywords_z": (0.2433, 0.3783, 0.0, 0.0),
        "keywords_context_z": (0.1523, -0.1523, 0.0, 0.0),
        "keywords_session_z": (0.4413, 0.0577, 0.0, 0.0),
        "keywords_fraction_of_best": (0.0, 1.1557, 0.0, 0.0),
        "keywords_context_fraction_of_best": (0.0, 0.1409, 0.0, 0.0),
        "keywords_session_fraction_of_best": (0.3343, -0.0732, 0.0, 0.0),
        "keywords_before_fraction_of_best": (-0.1926, -0.6228, -1.3703, 0.0),
        "keywords_behind_fraction_of_best": (0.0209, -0.47, 0.6424, 0.0),
        "coverage": (1.4595, -0.2244, 0.0, 0.0),
        "coverage_context": (0.9317, -0.2351, 0.0, 0.0),
        "coverage_wide": (0.8179, -0.8179, 0.0, 0.0),
        "question": (-1.2128, 0.7292, -0.2862, 0.0),
        "speaker": (0.9, 0.0, 0.0, 0.0),
        "role": (0.5467, 2.6597, 0.4754, 0.0),
        "when": (2.9615, -0.4992, 0.0, 0.0),
        "length": (0.3737, -0.0765, 0.1111, 0.0),
        "long": (-0.176, -0.7678, -0.0351, 0.0),
        "short": (-0.6168, 1.5208, 0.8888, 0.0),
        "answer_keywords": (0.9483, -0.7451, 0.1594, 0.0),
    },
    odds={
        "slope": (1.1137, 0.0283, 0.0, 0.0),
        "bias": (1.0147, 0.1656, -0.0048, 0.0),
    },
    pool={
        "max_coverage": (4.1012, -0.9941, 0.0, 0.0),
        "max_speaker": (0.5437, 0.6324, 0.3067, 0.0),
        "best_coverage_context": (2.9738, 0.6478, 0.0, 0.0),
        "max_keywords": (1.9152, 0.173, 0.0, 0.0),
        "no_stranger": (2.1091, 2.5615, 2.9819, 0.0),
        "words": (0.4309, -0.4309, 0.0, 0.0),
        "documents": (-0.5926, 0.5956, -0.8329, 0.0),
        "bias": (-6.5583, -5.9825, 1.0956, 0.0),
    },
)
