"""Scores of documents that are read one by one: BM25 of their keywords, cosine of their vectors.

Numpy is loaded by the first comparison of vectors, not by importing this module.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from memory_mesh.core.model import Hit
from memory_mesh.core.search.lexical import Corpus, Posting, best, bm25


def keyword_scores(documents: Iterable[tuple[str, Sequence[str]]], tokens: Sequence[str]) -> list[tuple[str, float]]:
    """Return the id and BM25 score of each document that contains one of the tokens, best first.

    It scans all documents; one without keywords does not count as a document.
    """
    query, number, length = set(tokens), 0, 0
    postings: defaultdict[str, list[Posting]] = defaultdict(list)
    for id_, words in documents:
        number, length = number + bool(words), length + len(words)
        for token in query.intersection(words):
            postings[token].append(Posting(id_, words.count(token), len(words)))
    return best(bm25(postings, Corpus(number, length), tokens))


def best_cosines(query: bytes, rows: Sequence[tuple[str, bytes]], limit: int) -> list[Hit]:
    """Return the ids with the best cosines, best first. An id counts with its best vector; a vector of length zero scores 0."""
    if not rows:
        return []
    import numpy as np

    vector = np.frombuffer(query, "<f4").astype(np.float64)
    matrix = np.frombuffer(b"".join(data for _, data in rows), "<f4").reshape(len(rows), -1).astype(np.float64)
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(vector)
    # Row by row: the score of a vector must not depend on the other rows of the batch.
    dots = np.einsum("ij,j->i", matrix, vector)
    scores = np.divide(dots, lengths, out=np.zeros(len(rows)), where=lengths > 0)
    by_id: dict[str, float] = {}
    for (id_, _), score in zip(rows, scores.tolist(), strict=True):
        by_id[id_] = max(score, by_id.get(id_, -1.0))
    return [Hit(*found) for found in best(by_id)[:limit]]
