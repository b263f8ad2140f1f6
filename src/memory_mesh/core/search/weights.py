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

MIN_EXPECTED = {"recall": 0.005, "precise": 0.33}
FRACTIONS = {"recall": 0.001, "precise": 0.05}
CALIBRATION = ((0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0), (0.0, 0.033, 0.11, 0.264, 0.495, 0.676, 0.814, 0.869))

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
        "slope": (1.0848, 0.1055, -0.0617, -0.043),
        "bias": (0.917, 0.8451, -0.4196, -0.4142),
    },
    pool={
        "max_coverage": (1.231, -0.053, -0.404, -0.774),
        "max_vectors": (5.0655, -1.1107, 0.6385, 0.7175),
        "max_vectors_context": (4.0958, -1.0687, 1.6008, 2.4599),
        "max_speaker": (0.9451, 0.7961, -0.2146, 1.2511),
        "best_coverage_context": (1.9024, -0.0759, -0.3763, -1.1005),
        "best_vectors_context": (0.0, 0.0, 0.3488, 0.0),
        "best_vectors": (3.7951, 0.3835, -0.9851, 0.7292),
        "best_coverage_and_vectors": (3.4536, 2.5643, -2.5886, -0.8646),
        "max_keywords": (0.5155, -0.2937, -0.124, -0.0978),
        "no_stranger": (2.2922, 1.6218, 0.4137, -0.1748),
        "all_words": (0.0, 0.7055, 0.3533, 0.0),
        "documents": (-0.4588, 0.2225, 0.2972, 0.2047),
        "personal": (0.8641, -0.8641, 0.6107, 0.9047),
        "general": (-0.4403, 2.5617, -1.2329, -2.1452),
        "bias": (-6.5948, -2.6919, -1.6032, -1.9072),
    },
)

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
        "slope": (1.0771, 0.1606, -0.2906, -0.0747),
        "bias": (0.8484, 1.3879, -1.4372, -0.8882),
    },
    pool={
        "max_coverage": (3.5729, 0.0372, -1.1965, -2.1993),
        "max_speaker": (0.0263, 1.5405, 0.6381, 1.0073),
        "best_coverage_context": (3.1446, 1.2802, -1.2651, 0.3074),
        "max_keywords": (1.623, -0.4865, 0.4666, 0.2646),
        "no_stranger": (2.5918, 1.2191, 2.9341, -0.6467),
        "all_words": (0.0, 0.8244, 0.0, 0.0),
        "documents": (-0.7089, 0.3779, -0.0164, 0.3474),
        "personal": (0.9778, -0.4518, 0.2027, 0.7514),
        "general": (-0.0022, 2.4964, -2.0112, -2.0618),
        "bias": (-4.5179, -4.5238, -2.2858, -1.3269),
    },
)
