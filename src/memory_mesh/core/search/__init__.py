"""Search without I/O: keywords, queries and the cache.

The rankers need numpy and are imported by their path, `ranker`.
"""

from memory_mesh.core.search.lexical import K1, B, Corpus, Posting, best, bm25, completed, tokens
from memory_mesh.core.search.query import (
    SIGNALS,
    CacheStats,
    Contribution,
    Explained,
    Explanation,
    Placing,
    Pool,
    Query,
    SearchCache,
    Signal,
    WordPair,
)

__all__ = [
    "K1", "SIGNALS", "B", "CacheStats", "Contribution", "Corpus", "Explained", "Explanation",
    "Placing", "Pool", "Posting", "Query", "SearchCache", "Signal", "WordPair", "best", "bm25",
    "completed", "tokens",
]  # fmt: skip
