"""Documents scored by their keywords, all of them at once: right, and slow where there are many."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from memory_mesh.core.search import Corpus, Posting, best, bm25


def scored(documents: Iterable[tuple[str, Sequence[str]]], tokens: Sequence[str]) -> list[tuple[str, float]]:
    """The id and score of each document that holds one of the tokens, best first; one without keywords is no document."""
    asked, number, length = set(tokens), 0, 0
    postings: defaultdict[str, list[Posting]] = defaultdict(list)
    for id_, words in documents:
        number, length = number + bool(words), length + len(words)
        for token in asked.intersection(words):
            postings[token].append(Posting(id_, words.count(token), len(words)))
    return best(bm25(postings, Corpus(number, length), tokens))
