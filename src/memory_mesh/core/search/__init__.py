"""Search without I/O: tokens, query analysis, ranking, explanation, cache."""
