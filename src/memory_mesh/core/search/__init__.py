"""Search without I/O: tokens, queries, the cache and rankers. `ranker` needs numpy and is imported by its path."""

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
)

__all__ = [
    "K1", "SIGNALS", "B", "CacheStats", "Contribution", "Corpus", "Explained", "Explanation", "Placing", "Pool", "Posting",
    "Query", "SearchCache", "Signal", "best", "bm25", "completed", "tokens",
]  # fmt: skip
