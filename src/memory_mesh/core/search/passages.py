"""Choose the piece of a long text that fits a query best, and the results that fit a limit."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from memory_mesh.core.model import SearchResult
from memory_mesh.core.search.lexical import Corpus, Posting, bm25
from memory_mesh.core.search.marks import occurrences

_WORDS_WEIGHT = 0.4  # of the best BM25 among the pieces, compared with cosines; chosen on half of LoCoMo's conversations


class Piece(NamedTuple):
    """A piece of a text, and the cosine of its vector and that of the query; 0 if one of them has none."""

    start: int
    end: int
    cosine: float = 0.0


def best_piece(text: str, pieces: Sequence[Piece], words: Sequence[str], *, language: str) -> Piece:
    """Return the piece that fits best, by the words of the query and by vectors; of equal pieces the first."""
    scores = _word_scores(text, pieces, words, language)
    highest = max(scores.values(), default=1.0)
    return max(pieces, key=lambda piece: _WORDS_WEIGHT * scores.get(str(piece.start), 0.0) / highest + piece.cosine)


def fitting(results: Sequence[SearchResult], max_chars: int) -> list[SearchResult]:
    """Return the first results whose texts have at most so many characters together."""
    totals = accumulate(len(result.excerpt) for result in results)
    return [result for result, total in zip(results, totals, strict=True) if total <= max_chars]


def _word_scores(text: str, pieces: Sequence[Piece], words: Sequence[str], language: str) -> dict[str, float]:
    """Return the BM25 of each piece, by its start, as if the pieces were all documents; their length is in characters."""
    ordered = sorted(pieces)
    starts = [piece.start for piece in ordered]
    times = Counter(
        (found.token, piece)
        for found in occurrences(text, frozenset(words), language=language)
        for piece in ordered[max(0, bisect_right(starts, found.start) - 1) :][:1]
        if piece.start <= found.start < piece.end
    )
    postings: dict[str, list[Posting]] = {}
    for (token, piece), count in times.items():
        postings.setdefault(token, []).append(Posting(str(piece.start), count, piece.end - piece.start))
    return bm25(postings, Corpus(len(pieces), sum(piece.end - piece.start for piece in pieces)), words)
