"""Choose the piece of a long text that fits a query best, and the results that fit a limit."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from memory_mesh.core.model import SearchResult
from memory_mesh.core.search.lexical import tokens
from memory_mesh.core.search.scores import keyword_scores

_WORDS_WEIGHT = 0.4  # of the best BM25 among the pieces, compared with cosines; chosen on half of LoCoMo's conversations


class Piece(NamedTuple):
    """A piece of a text, and the cosine of its vector and that of the query; 0 if one of them has none."""

    start: int
    end: int
    cosine: float = 0.0


def best_piece(text: str, pieces: Sequence[Piece], words: Sequence[str], *, language: str) -> Piece:
    """Return the piece that fits best, by the words of the query and by vectors; of equal pieces the first."""
    documents = ((str(piece.start), tokens(text[piece.start : piece.end], language=language)) for piece in pieces)
    scores = dict(keyword_scores(documents, words))
    highest = max(scores.values(), default=1.0)
    return max(pieces, key=lambda piece: _WORDS_WEIGHT * scores.get(str(piece.start), 0.0) / highest + piece.cosine)


def fitting(results: Sequence[SearchResult], max_chars: int) -> list[SearchResult]:
    """Return the first results whose texts have at most so many characters together."""
    totals = accumulate(len(result.excerpt) for result in results)
    return [result for result, total in zip(results, totals, strict=True) if total <= max_chars]
