"""The deep ranker: correct scores by a model that read the query and each memory together.

The model gives a logit for each pair. It learnt to compare the memories of one query, so only
differences of logits mean something: the log-odds of the learnt ranker and the logit are added with
a weight, and the best logit of the query is subtracted. Only the best candidates are read; the
others count as if they had the lowest logit of those that were read, so they do not pass a memory
that was read and found weak. Whether there is an answer at all is judged by the learnt ranker:
where it expects none, the best score stays as low as it was. The weight and the numbers that make
the score a probability again were fitted on LongMemEval (`bench.reader`).
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from memory_mesh.core.search.ranker import Ranking, expected_right, min_scores
from memory_mesh.core.search.weights import MIN_EXPECTED

MAX_READ = 30  # candidates
MIN_READ = 5  # fewer say too little: the learnt ranker's order stays
WEIGHT = 0.8  # of a logit beside the log-odds of the learnt ranker
SLOPE, BEST, BIAS = 0.56, -0.36, 0.05  # from the sum, and the best logit, to log-odds
_MIN_CHANCE = 1e-6  # log-odds stay finite


def reread(ranking: Ranking, logits: Mapping[int, float]) -> Ranking:
    """Return the ranking with the logits of the candidates that were read, by their positions in
    the pool."""
    if len(logits) < min(MIN_READ, len(ranking.scores)):
        return ranking
    read = np.full(len(ranking.scores), min(logits.values()), np.float64)
    read[list(logits)] = list(logits.values())
    chances = np.clip(ranking.scores.astype(np.float64), _MIN_CHANCE, 1 - _MIN_CHANCE)
    odds = (
        SLOPE * (np.log(chances / (1 - chances)) + WEIGHT * read)
        + BEST * max(logits.values())
        + BIAS
    )
    # A score of 0 means that nothing speaks for the memory: it is not raised.
    scores = np.where(ranking.scores > 0, 1 / (1 + np.exp(-odds)), ranking.scores).astype(
        ranking.scores.dtype
    )
    expected, best = ranking.scores.max(initial=0), scores.max(initial=0)
    if best > expected and expected_right(ranking.scores) < MIN_EXPECTED["precise"]:
        scores = scores * (expected / best)
    changed = ranking.changed("deep", scores)
    return replace(
        changed, min_scores=min_scores(scores, ranking.pool.documents), read=dict(logits)
    )
