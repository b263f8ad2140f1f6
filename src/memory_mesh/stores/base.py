"""Parts that every store uses: marks of a partition's state, the check of a change, BM25 and cosine over rows.

Numpy is loaded by the first comparison of vectors, not by importing this module.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import Hit, Key, Row
from memory_mesh.core.search import Corpus, Posting, best, bm25

BEGINNING = "0:"  # the mark of a partition without any write
KEPT_MOVES = 20_000  # for each partition; a reader with an older mark reads the whole partition

_MARK = re.compile(r"(\d{1,16}):[0-9a-f]*", re.ASCII)


def mark_of(version: int, nonce: str) -> str:
    """Return the mark of a state.

    The nonce tells apart two states with the same version, which occur when a backup is restored and then written to.
    """
    return f"{version}:{nonce}" if version else BEGINNING


def version_in(mark: str | None) -> int | None:
    """Return the version that a mark contains, or None for an invalid mark."""
    match = _MARK.fullmatch(mark) if mark else None
    return int(match[1]) if match else None


def check_unique(puts: Sequence[Row], deletes: Sequence[Key]) -> None:
    """Raise `InvalidInput` if a change names the same row twice."""
    for key, times in Counter([*(row.key for row in puts), *deletes]).most_common(1):
        if times == 1:
            return
        raise InvalidInput(f"{key} occurs {times} times in one change", expected="once")


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
