"""The baseline rankers, in straightforward code over the same tokens and vectors."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from bench.quality.measuring import DEPTH
from bench.quality.sets import Question, Said
from bench.quality.vectors import matrix
from memory_mesh.core.ports import Embedder
from memory_mesh.core.search import Corpus, Posting, best, bm25, tokens
from memory_mesh.core.search.ranker import rrf

PLAIN = ("BM25", "cosine", "RRF")


class Plain:
    """The memories of one person, ranked by keywords, by cosine, and by both."""

    def __init__(self, memories: Sequence[Said], embedder: Embedder) -> None:
        self._ids = [said.id for said in memories]
        self._vectors, self._embedder = matrix(embedder, [said.text for said in memories]), embedder
        words = [tokens(said.text) for said in memories]
        self._corpus = Corpus(len(words), sum(map(len, words)))
        self._postings: defaultdict[str, list[Posting]] = defaultdict(list)
        for id_, keywords in zip(self._ids, words, strict=True):
            for word, times in Counter(keywords).items():
                self._postings[word].append(Posting(id_, times, len(keywords)))

    def ranked(self, question: Question) -> dict[str, list[str]]:
        """Return the best ids of each ranker."""
        scores = bm25(self._postings, self._corpus, tokens(question.text))
        by_keywords = [id_ for id_, _ in best(scores)]
        cosines = self._vectors @ matrix(self._embedder, [question.text])[0]
        by_cosine = [self._ids[at] for at in np.argsort(-cosines, kind="stable")]
        fused = best(rrf({"keywords": by_keywords, "vectors": by_cosine}))
        found = dict(zip(PLAIN, (by_keywords, by_cosine, [id_ for id_, _ in fused]), strict=True))
        return {name: ids[:DEPTH] for name, ids in found.items()}
