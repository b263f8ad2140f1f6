"""placeholder"""
from collections.abc import Mapping
BY_VECTORS: Mapping[str, float] = {"bias": 0.0, "keywords_share": 1.0, "vectors_share": 1.0}
BY_KEYWORDS: Mapping[str, float] = {"bias": 0.0, "keywords_share": 1.0}
DEFAULT_MIN_SCORE = 0.02
