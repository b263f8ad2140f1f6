"""Figures of a ranking: recall, complete recall, nDCG, MRR and the first result, and the
confidence of a difference."""

from collections.abc import Mapping, Sequence
from math import log2

import numpy as np

DEPTH = 10
FIGURES = ("recall@5", "recall@10", "all@10", "nDCG@10", "MRR", "first")
_DRAWS = 2000

Judged = tuple[float, bool]  # the score of a result, and whether the result is right


def figures(ranked: Sequence[str], gold: frozenset[str]) -> dict[str, float]:
    """Return the figures of one question's answers, which are sorted best first."""
    found = [each in gold for each in ranked[:DEPTH]]
    ideal = sum(1 / log2(at + 2) for at in range(min(DEPTH, len(gold))))
    return {
        "recall@5": sum(found[:5]) / len(gold),
        "recall@10": sum(found) / len(gold),
        "all@10": float(sum(found) == len(gold)),
        "nDCG@10": sum(1 / log2(at + 2) for at, right in enumerate(found) if right) / ideal,
        "MRR": next((1 / at for at, right in enumerate(found, start=1) if right), 0.0),
        "first": float(any(found[:1])),
    }


def recalls(ranked: Sequence[str], gold: frozenset[str]) -> list[float]:
    """Return the recall of the first answer, of the first two, and so on."""
    return [sum(each in gold for each in ranked[:at]) / len(gold) for at in range(1, DEPTH + 1)]


def mean(measured: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the means over all questions, in hundredths."""
    return {
        name: round(100 * sum(each[name] for each in measured) / len(measured), 1)
        for name in FIGURES
    }


def interval(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of the mean difference, in hundredths, by resampling
    the questions."""
    apart = np.array(ours) - np.array(theirs)
    drawn = np.random.default_rng(0).integers(0, len(apart), (_DRAWS, len(apart)))
    low, high = np.percentile(100 * apart[drawn].mean(axis=1), [2.5, 97.5])
    return round(float(low), 1), round(float(high), 1)


def auc(right: Sequence[float], wrong: Sequence[float]) -> float:
    """Return the probability that a right value is larger than a wrong one (the area under the
    ROC curve)."""
    ordered = np.sort(np.array(wrong))
    below, up_to = np.searchsorted(ordered, right, "left"), np.searchsorted(ordered, right, "right")
    return round(float((below + up_to).mean() / (2 * len(ordered))), 4)
