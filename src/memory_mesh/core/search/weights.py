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
CALIBRATION = ((0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0), (0.0, 0.034, 0.109, 0.266, 0.495, 0.676, 0.815, 0.869))

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
        "max_coverage": (1.3111, 0.0005, -0.4369, -0.8742),
        "max_vectors": (5.056, -1.1193, 0.6338, 0.7169),
        "max_vectors_context": (4.0973, -1.0724, 1.5995, 2.4638),
        "max_speaker": (0.9455, 0.812, -0.2079, 1.2492),
        "best_coverage_context": (1.8802, -0.0418, -0.3563, -1.0552),
        "best_vectors_context": (0.0, 0.0, 0.3555, 0.0),
        "best_vectors": (3.7932, 0.3748, -0.985, 0.7289),
        "best_coverage_and_vectors": (3.4369, 2.5924, -2.5422, -0.8397),
        "max_keywords": (0.5076, -0.2891, -0.125, -0.0935),
        "no_stranger": (2.2812, 1.6138, 0.4018, -0.1634),
        "documents": (-0.4581, 0.2212, 0.2975, 0.2055),
        "personal": (0.8639, -0.8639, 0.6068, 0.9054),
        "general": (-0.4387, 2.5571, -1.2309, -2.1473),
        "bias": (-6.5883, -2.702, -1.5821, -1.9138),
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
        "max_coverage": (3.6029, 0.1643, -1.2014, -2.1367),
        "max_speaker": (0.0265, 1.5585, 0.6393, 1.0055),
        "best_coverage_context": (3.1221, 1.2838, -1.2755, 0.2803),
        "max_keywords": (1.6206, -0.4962, 0.468, 0.2562),
        "no_stranger": (2.5907, 1.2143, 2.9362, -0.649),
        "documents": (-0.7088, 0.3757, -0.0155, 0.3479),
        "personal": (0.9778, -0.4548, 0.2027, 0.7504),
        "general": (-0.0016, 2.4893, -2.0063, -2.0636),
        "bias": (-4.5142, -4.5253, -2.2911, -1.3218),
    },
)
