"""The numbers of `core.rank`, fitted on LongMemEval (MIT) alone; not to be edited by hand.

They come from the experiments that `bench/train_ranker.py` was written from. That program makes them anew; it has not yet
replaced these by numbers of its own.
"""

from memory_mesh.core.rank_form import Line, Weights

DEFAULT_MIN_SCORE = 0.004

BY_VECTORS = Weights(
    candidate={
        "vectors_share": 0.2048,
        "vectors_context_share": 1.1072,
        "vectors_session_share": 0.1633,
        "keywords_before_share": -0.3083,
        "keywords_behind_share": -0.3126,
        "vectors_before_share": -0.8743,
        "vectors_behind_share": -0.3047,
        "keywords_z": 0.0014,
        "vectors_z": 0.3025,
        "vectors_context_z": 0.446,
        "vectors_session_z": 0.2108,
        "coverage_z": 0.273,
        "coverage_context_z": 0.206,
        "coverage_wide_z": 0.041,
        "coverage": 0.0881,
        "coverage_context": 1.5761,
        "coverage_wide": 0.6245,
        "vectors_context": 1.1551,
        "question": -0.899,
        "question_before": 0.6572,
        "when": 2.739,
        "length": 0.4408,
        "long": -0.6945,
        "short": 0.0145,
        "answer_keywords": 0.0542,
        "answer_vectors": -0.1374,
        "role": 2.0178,
        "speaker": 0.9,
    },
    odds=Line(slope=1.102, bias=1.1679, alone_slope=-0.05, alone_bias=0.2136),
    pool={
        "most_coverage": 0.8096,
        "most_vectors": 1.1697,
        "most_vectors_context": 1.9026,
        "best_coverage_context": 2.657,
        "best_vectors_context": 5.0986,
        "most_speaker": 5.5697,
        "no_stranger": 5.5835,
    },
    pool_bias=-9.3977,
)

BY_KEYWORDS = Weights(
    candidate={
        "keywords_before_share": -0.3083,
        "keywords_behind_share": -0.3126,
        "keywords_z": 0.4,
        "coverage_z": 0.273,
        "coverage_context_z": 0.206,
        "coverage_wide_z": 0.041,
        "coverage": 0.0881,
        "coverage_context": 1.5761,
        "coverage_wide": 0.6245,
        "question": -0.899,
        "question_before": 0.6572,
        "when": 2.739,
        "length": 0.4408,
        "long": -0.6945,
        "short": 0.0145,
        "answer_keywords": 0.0542,
        "role": 2.0178,
        "speaker": 0.9,
        "keywords_context_z": 0.3,
    },
    odds=Line(slope=1.102, bias=1.1679, alone_slope=-0.05, alone_bias=0.2136),
    pool={
        "most_coverage": 0.8096,
        "best_coverage_context": 2.657,
        "most_speaker": 5.5697,
        "no_stranger": 5.5835,
    },
    pool_bias=-7.0,
)
