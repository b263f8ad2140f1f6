"""Which words of a memory are nearest to which words of a question, by their token vectors."""

from collections.abc import Sequence

import numpy as np

from memory_mesh.core.model import KEPT_TOKEN, TOKEN_BYTES
from memory_mesh.core.search.query import WordPair

_SHOWN = 3
_ONE = 127.0**2  # the product of two equal tokens


def word_pairs(
    question: bytes, words: Sequence[str], memory: bytes, memory_words: Sequence[str]
) -> list[WordPair]:
    """Return the pairs that count most, best first: of each word of the question its nearest one
    in the memory. The words are those of the tokens, in their order."""
    (asked, numbers), (kept, others) = (
        _tokens(data, len(texts)) for data, texts in ((question, words), (memory, memory_words))
    )
    weights, known = (asked % KEPT_TOKEN).astype(float), np.flatnonzero(kept & KEPT_TOKEN)
    if not len(known) or not weights.any():
        return []
    products = numbers @ others[known].T / _ONE
    nearest = products.argmax(axis=1)
    parts = products[np.arange(len(nearest)), nearest] * weights / weights.sum()
    best: dict[tuple[str, str], float] = {}
    for at, (place, part) in enumerate(zip(known[nearest].tolist(), parts.tolist(), strict=True)):
        pair = words[at].lower(), memory_words[place].lower()
        best[pair] = best.get(pair, 0.0) + part
    first = sorted(best.items(), key=lambda each: -each[1])[:_SHOWN]
    return [WordPair(*pair, value) for pair, value in first if value > 0]


def _tokens(data: bytes, count: int) -> tuple["np.ndarray", "np.ndarray"]:
    """Return the weights and the numbers of the first tokens."""
    rows = np.frombuffer(data, np.uint8).reshape(-1, TOKEN_BYTES)[:count]
    return rows[:, -1], rows[:, :-1].astype(np.int8).astype(np.float32)
