"""The weights of the learnt ranker, learnt on LongMemEval (MIT); NOTICE names the data.

`python -m bench.train_ranker --data DIR` writes everything below the marker; do not edit it by
hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

# The mean length of the candidates, 0–1; the fraction of candidates without neighbours; and that of
# a user's and an assistant's.
KINDS = ("long", "alone", "chat")
# And what is added for each kind, as far as a pool is of it.
Weight: TypeAlias = tuple[float, float, float, float]
NOTHING: Weight = (0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The weights of one model, by the names of features."""

    candidate: Mapping[str, Weight]  # which candidate is the answer
    odds: Mapping[str, Weight]  # slope and bias of a line from log odds to calibrated log odds
    pool: Mapping[str, Weight]  # whether the answer is in the pool


# --- written by bench.train_ranker ---

MIN_EXPECTED = {"recall": 0.02, "precise": 0.33}
FRACTIONS = {"recall": 0.001, "precise": 0.05}
CALIBRATION = (
    (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0),
    (0.0, 0.033, 0.109, 0.264, 0.488, 0.671, 0.808, 0.87),
)

BY_VECTORS = Weights(
    candidate={
        "coverage_z": (0.0926, 0.0989, -0.0684, -0.0242),
        "coverage_context_z": (0.0343, 0.0136, -0.0156, -0.0187),
        "coverage_wide_z": (0.0668, -0.0228, -0.0218, -0.0222),
        "keywords_z": (0.0681, 0.1549, -0.0395, -0.0286),
        "keywords_session_z": (0.0412, 0.1331, -0.03821, -0.00299),
        "vectors_z": (0.4181, 0.1648, 0.0141, 0.0058),
        "vectors_context_z": (0.3602, -0.0806, 0.0147, -0.1928),
        "vectors_session_z": (0.2193, -0.2168, 0.0074, 0.0962),
        "vectors_fraction_of_best": (1.1516, -0.1815, -0.3082, 0.5699),
        "vectors_context_fraction_of_best": (0.6501, -0.5428, -0.1073, 0.2751),
        "vectors_session_fraction_of_best": (0.2849, -0.2638, -0.0211, 1.0338),
        "keywords_before_fraction_of_best": (-0.3285, -0.7604, -0.0228, 0.722),
        "keywords_behind_fraction_of_best": (0.1157, -0.1617, -0.0451, -0.5268),
        "vectors_before_fraction_of_best": (-0.3554, -0.974, -0.0378, 0.4612),
        "vectors_behind_fraction_of_best": (-0.3462, -0.0375, 0.0254, -0.1548),
        "coverage": (0.0, 1.012, 0.0, 0.2372),
        "coverage_context": (1.0463, -0.0676, -0.3041, -0.6746),
        "coverage_wide": (1.3502, -0.8768, -0.1489, -0.3245),
        "vectors": (0.9619, 0.1626, 1.124, -0.3438),
        "vectors_context": (0.8813, -0.6928, 1.0619, -0.1885),
        "question": (-1.0485, 0.7095, -0.1051, 0.0203),
        "speaker": (0.9, 0.0, 0.0, 0.0),
        "role": (0.4424, 1.2373, -0.0129, 1.3948),
        "when": (2.6083, -0.1875, 0.2199, 1.146),
        "by_assistant": (0.2385, -0.5132, 0.0116, -0.1652),
        "length": (0.0289, 0.094, 0.0878, 0.3264),
        "long": (-0.0525, -0.3396, 0.1577, -0.3597),
        "short": (-0.3494, 0.6826, 0.0578, -0.7857),
        "answer_keywords": (0.191, 0.6758, 0.0342, -0.6293),
        "answer_vectors": (0.9515, -0.6088, 0.012, -0.2292),
        "newer": (0.0719, -0.0719, 0.4778, 0.5151),
    },
    odds={
        "slope": (1.0894, 0.0823, -0.0449, -0.019),
        "bias": (0.9352, 0.7494, -0.3399, -0.3142),
    },
    pool={
        "max_coverage": (1.8409, -0.4759, -0.388, -0.6456),
        "max_vectors": (5.113, -0.8588, 0.1916, 0.0883),
        "max_vectors_context": (4.3279, -0.8045, 1.156, 1.8952),
        "max_speaker": (0.8749, 0.8167, -0.3651, 1.2298),
        "best_coverage_context": (1.863, -0.2561, 0.1947, -0.4654),
        "best_vectors_context": (0.0, 0.1376, 0.12, 0.0),
        "best_vectors": (4.1498, 0.5214, -1.1827, 0.382),
        "best_coverage_and_vectors": (1.8663, 2.2381, -1.5884, -0.2779),
        "max_keywords": (0.4672, -0.2594, -0.1126, -0.0952),
        "no_stranger": (2.2609, 1.4774, 0.7419, -0.0722),
        "all_words": (0.8214, 0.5793, 2.7396, 1.6778),
        "documents": (-0.4154, 0.2252, 0.2308, 0.1156),
        "personal": (0.893, -0.893, 0.5426, 0.7983),
        "general": (-0.4427, 2.5702, -1.2651, -2.1532),
        "bias": (-6.9544, -2.7127, -1.3693, -1.196),
    },
)

BY_TOKENS = BY_VECTORS

BY_KEYWORDS = Weights(
    candidate={
        "coverage_z": (0.2809, -0.1006, -0.1778, -0.0025),
        "coverage_context_z": (0.0823, -0.0344, -0.0322, -0.0157),
        "keywords_z": (0.2061, 0.2946, 0.0051, -0.0131),
        "keywords_context_z": (0.1472, -0.0622, -0.0414, -0.0436),
        "keywords_session_z": (0.3496, 0.2253, -0.1745, -0.0074),
        "keywords_fraction_of_best": (0.2601, -0.2059, 1.3166, 0.9496),
        "keywords_context_fraction_of_best": (0.1294, -0.114, 0.3555, -0.0154),
        "keywords_session_fraction_of_best": (0.5405, -0.0382, 0.0778, -0.5023),
        "keywords_before_fraction_of_best": (-0.1154, -1.7169, 0.5423, 0.755),
        "keywords_behind_fraction_of_best": (0.0415, 0.1611, 0.1318, -0.5513),
        "coverage": (1.4147, -0.5016, -0.3379, 0.4169),
        "coverage_context": (0.8391, -0.4276, -0.0487, -0.0911),
        "coverage_wide": (1.0748, -0.7205, -0.069, -0.2853),
        "question": (-1.0989, 0.691, -0.2796, -0.0904),
        "speaker": (0.9, 0.0, 0.0, 0.0),
        "role": (0.3651, 1.0802, 0.4518, 1.6403),
        "when": (2.4835, 0.4243, -0.4616, -0.1685),
        "by_assistant": (0.0798, -0.6532, 0.168, -0.0964),
        "length": (0.2817, -0.1112, -0.0107, 0.262),
        "long": (-0.0652, -0.4255, 0.0851, -0.4367),
        "short": (-0.9177, 0.8027, -0.5986, 0.3766),
        "answer_keywords": (0.8546, 0.276, 0.2752, -0.9677),
        "newer": (0.1365, -0.1365, 0.5424, 0.4951),
    },
    odds={
        "slope": (1.0804, 0.1074, -0.2586, -0.0213),
        "bias": (0.8538, 1.1657, -1.2577, -0.6687),
    },
    pool={
        "max_coverage": (1.992, 1.217, -1.0076, -0.9844),
        "max_speaker": (0.0835, 1.2379, 0.6939, 0.9053),
        "best_coverage_context": (2.4352, 2.1543, -1.317, 1.0038),
        "max_keywords": (2.0689, -0.9025, 0.6452, 0.1973),
        "no_stranger": (2.911, 1.2342, 2.7348, -0.8209),
        "all_words": (0.0, 3.1853, 0.0, 0.0),
        "documents": (-0.5996, 0.4136, -0.2504, 0.1443),
        "personal": (1.036, -0.7716, 0.3209, 0.7169),
        "general": (-0.0127, 2.4498, -1.892, -2.0717),
        "bias": (-5.8179, -4.3814, -1.2965, -0.3921),
    },
)
