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

MIN_EXPECTED = {"recall": 0.01, "precise": 0.33}
FRACTIONS = {"recall": 0.001, "precise": 0.05}
CALIBRATION = (
    (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0),
    (0.0, 0.018, 0.124, 0.273, 0.473, 0.649, 0.799, 0.873),
)

BY_TOKENS = Weights(
    candidate={
        "coverage_z": (0.0265, 0.0132, -0.0235, -0.003),
        "coverage_wide_z": (0.1034, -0.03377, -0.03157, -0.03806),
        "keywords_z": (0.0387, 0.1454, -0.027, -0.0117),
        "keywords_session_z": (0.0479, 0.1426, -0.037, -0.0109),
        "vectors_z": (0.243, -0.0495, 0.0557, -0.0302),
        "vectors_context_z": (0.2614, -0.1062, 0.0527, -0.1552),
        "vectors_session_z": (0.1868, -0.1868, 0.0451, 0.0878),
        "tokens_z": (0.2359, 0.431, -0.0894, -0.0354),
        "tokens_context_z": (0.2644, 0.0598, -0.0901, 0.0704),
        "vectors_fraction_of_best": (0.5898, -0.5898, 0.0652, 0.7567),
        "vectors_context_fraction_of_best": (0.4842, -0.4842, 0.0801, 0.4703),
        "vectors_session_fraction_of_best": (0.2068, -0.2068, 0.0545, 1.1459),
        "tokens_fraction_of_best": (0.6839, 0.7001, -0.2787, -0.4052),
        "tokens_context_fraction_of_best": (1.0046, -0.64444, -0.31977, -0.0404),
        "keywords_before_fraction_of_best": (-0.3791, -0.4029, -0.01, 0.5665),
        "keywords_behind_fraction_of_best": (0.4654, 0.0023, -0.0372, -0.7971),
        "vectors_before_fraction_of_best": (-0.4314, -0.7052, -0.0337, 0.2635),
        "vectors_behind_fraction_of_best": (-0.2124, -0.2328, 0.0104, -0.1719),
        "coverage_context": (0.1612, -0.0381, -0.0267, -0.0963),
        "coverage_wide": (1.1512, -0.6081, -0.1538, -0.3893),
        "vectors": (0.0, 0.0, 0.8343, 0.0),
        "vectors_context": (0.323, -0.2156, 0.7825, -0.1074),
        "tokens": (0.9689, 1.6896, -0.0158, -0.9531),
        "tokens_context": (1.5102, -1.0777, -0.0664, -0.3661),
        "question": (-0.8098, 0.7766, -0.0267, -0.1509),
        "speaker": (0.9, 0.0, 0.0, 0.0),
        "role": (0.4208, 0.879, -0.0082, 1.3488),
        "when": (2.5224, -0.3436, 0.3452, 1.1591),
        "by_assistant": (0.2425, -0.2422, 0.0081, -0.1287),
        "length": (-0.0361, -0.0404, 0.0413, 0.3035),
        "long": (-0.0488, -0.3247, 0.0913, -0.2885),
        "short": (-0.1935, 0.8567, 0.0438, -0.8268),
        "answer_keywords": (0.0694, 0.5735, 0.0361, -0.5249),
        "answer_vectors": (1.0305, -0.5036, 0.0045, -0.2335),
        "newer": (0.0538, -0.0538, 0.49, 0.4772),
    },
    odds={
        "slope": (1.0994, 0.103, -0.049, -0.0238),
        "bias": (0.9771, 0.8276, -0.3578, -0.3293),
    },
    pool={
        "max_coverage": (0.7467, -0.3185, -0.2098, -0.2184),
        "max_vectors": (3.624, -1.2047, 0.0283, 0.3794),
        "max_vectors_context": (4.514, -0.5926, 0.9158, 2.4997),
        "max_tokens": (1.9781, 2.7298, -0.521, -1.4571),
        "max_tokens_context": (3.5123, 0.3366, -1.8019, -0.8316),
        "max_speaker": (0.6034, 0.8741, -0.4727, 1.5449),
        "best_coverage_context": (1.546, -0.1434, 0.2448, -0.306),
        "best_tokens": (2.7923, 2.9284, -0.6164, -0.3872),
        "best_tokens_context": (0.3544, 1.1868, -0.1521, -0.2023),
        "best_vectors_context": (0.242, -0.1048, 0.3595, -0.0202),
        "best_vectors": (2.2792, -0.2035, -0.7783, 0.06),
        "best_coverage_and_vectors": (0.4754, 1.811, -0.4124, -0.063),
        "max_keywords": (0.6196, -0.4145, -0.1171, -0.088),
        "no_stranger": (2.2776, 1.4121, 0.9685, -0.2447),
        "all_words": (0.7569, 0.8045, 2.6485, 1.2946),
        "documents": (-0.4602, 0.2519, 0.2503, 0.1224),
        "personal": (1.114, -1.114, 0.3297, 0.621),
        "general": (-0.4392, 2.5629, -1.279, -2.3089),
        "bias": (-10.3705, -6.1256, -0.005, 0.2633),
    },
)

BY_VECTORS = Weights(
    candidate={
        "coverage_z": (0.0849, 0.1133, -0.06652, -0.01838),
        "coverage_context_z": (0.0388, 0.0187, -0.0177, -0.0211),
        "coverage_wide_z": (0.0717, -0.0234, -0.0243, -0.024),
        "keywords_z": (0.0574, 0.1244, -0.0344, -0.023),
        "keywords_session_z": (0.0431, 0.1022, -0.0396, -0.0035),
        "vectors_z": (0.4432, 0.2263, 0.0106, -0.0196),
        "vectors_context_z": (0.3458, -0.0868, 0.0099, -0.2304),
        "vectors_session_z": (0.2018, -0.2018, 0.0043, 0.1296),
        "vectors_fraction_of_best": (1.2654, -0.0773, -0.2355, 0.6107),
        "vectors_context_fraction_of_best": (0.7005, -0.618, -0.0825, 0.3172),
        "vectors_session_fraction_of_best": (0.1875, -0.1821, -0.0054, 1.1509),
        "keywords_before_fraction_of_best": (-0.3714, -0.7744, -0.0105, 0.7351),
        "keywords_behind_fraction_of_best": (0.2101, -0.117, -0.0403, -0.6249),
        "vectors_before_fraction_of_best": (-0.3074, -0.8184, -0.0326, 0.451),
        "vectors_behind_fraction_of_best": (-0.4508, -0.1567, 0.0024, -0.0015),
        "coverage": (0.0, 1.0043, 0.0, 0.2592),
        "coverage_context": (1.0301, -0.0591, -0.244, -0.7269),
        "coverage_wide": (1.3715, -0.9116, -0.1247, -0.3351),
        "vectors": (1.098, 0.2462, 0.8283, -0.6255),
        "vectors_context": (0.8437, -0.665, 0.7802, -0.1787),
        "question": (-0.8985, 0.6622, -0.1233, -0.0693),
        "speaker": (0.9, 0.0, 0.0, 0.0),
        "role": (0.4361, 1.1494, -0.0122, 1.3659),
        "when": (2.5922, -0.2294, 0.2778, 1.0276),
        "by_assistant": (0.238, -0.5151, 0.0103, -0.1868),
        "length": (0.0294, 0.05, 0.1598, 0.3835),
        "long": (-0.0488, -0.3351, 0.1624, -0.3449),
        "short": (-0.3064, 0.7346, -0.0128, -0.801),
        "answer_keywords": (0.1869, 0.5934, 0.0367, -0.6013),
        "answer_vectors": (0.9653, -0.5347, 0.01, -0.294),
        "newer": (0.0701, -0.0701, 0.4719, 0.4718),
    },
    odds={
        "slope": (1.0899, 0.0826, -0.0404, -0.0128),
        "bias": (0.9443, 0.7695, -0.3348, -0.3052),
    },
    pool={
        "max_coverage": (1.9708, -0.5525, -0.5513, -0.6827),
        "max_vectors": (4.8157, -0.6758, 0.0871, -0.0933),
        "max_vectors_context": (4.498, -0.3515, 1.0507, 2.0518),
        "max_speaker": (0.7987, 0.8603, -0.3817, 1.3293),
        "best_coverage_context": (1.6172, -0.2484, 0.4076, -0.4173),
        "best_vectors_context": (0.5914, -0.05, 0.3111, -0.0681),
        "best_vectors": (3.955, 0.3204, -1.315, 0.3433),
        "best_coverage_and_vectors": (1.8476, 2.532, -1.6534, -0.1942),
        "max_keywords": (0.4852, -0.2676, -0.1257, -0.0919),
        "no_stranger": (2.3066, 1.408, 0.8003, -0.2296),
        "all_words": (0.9243, 0.6331, 2.6237, 1.5812),
        "documents": (-0.4286, 0.2263, 0.2575, 0.1214),
        "personal": (0.9255, -0.9255, 0.4635, 0.7464),
        "general": (-0.4451, 2.5727, -1.254, -2.1932),
        "bias": (-7.0765, -2.7317, -1.4159, -1.0003),
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
