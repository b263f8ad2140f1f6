"""PLACEHOLDER by the lead until the learnt ranker lands: same names, a plain sum."""

from collections.abc import Mapping

import numpy as np

from memory_mesh.core.pool import Pool, Signal

DEFAULT_MIN_SCORE = 0.02


def features(pool: Pool) -> Mapping[str, Signal]:
    names = ("keywords", "keywords_context", "keywords_session", "vectors", "vectors_context")
    return {name: pool.signals[name] / max(float(pool.signals[name].max(initial=0)), 1e-6) for name in names}


def scores(features: Mapping[str, Signal]) -> Signal:
    total = sum(features.values())
    return np.clip(np.asarray(total, dtype=np.float32) / max(len(features), 1), 0, 1)
