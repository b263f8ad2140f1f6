"""Which words of a memory are nearest to which words of a question, by their token vectors."""

from collections.abc import Sequence
from struct import unpack

from memory_mesh.core.model import KEPT_TOKEN, TOKEN_BYTES
from memory_mesh.core.search.query import WordPair

_SHOWN = 3
_ONE = 127.0**2  # the product of two equal tokens
_Token = tuple[str, int, Sequence[int]]  # the word that it is a part of, its weight, its numbers


def word_pairs(
    question: bytes, words: Sequence[str], memory: bytes, memory_words: Sequence[str]
) -> list[WordPair]:
    """Return the pairs that count most, best first: of each word of the question its nearest one
    in the memory. The words are those of the tokens, in their order."""
    asked, kept = _tokens(question, words), _tokens(memory, memory_words)
    kept = [token for token in kept if token[1] & KEPT_TOKEN]
    total = sum(weight % KEPT_TOKEN for _, weight, _ in asked)
    best: dict[tuple[str, str], float] = {}
    for word, weight, numbers in asked if kept and total else ():
        value, nearest = max((_product(numbers, other), text) for text, _, other in kept)
        pair, part = (word.lower(), nearest.lower()), value * (weight % KEPT_TOKEN) / total
        best[pair] = best.get(pair, 0.0) + part
    first = sorted(best.items(), key=lambda each: -each[1])[:_SHOWN]
    return [WordPair(*pair, value) for pair, value in first if value > 0]


def _tokens(data: bytes, words: Sequence[str]) -> list[_Token]:
    rows = (data[at : at + TOKEN_BYTES] for at in range(0, len(data), TOKEN_BYTES))
    return [
        (word, row[-1], unpack(f"{TOKEN_BYTES - 1}b", row[:-1]))
        for word, row in zip(words, rows, strict=False)
    ]


def _product(one: Sequence[int], other: Sequence[int]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / _ONE
