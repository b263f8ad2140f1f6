"""Whether a score is a probability: of the results with a score of about 0.3, three in ten
should be right."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from bench.picture import Line, unit_chart
from bench.quality.measuring import Judged

EDGES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_MIN_RESULTS = 20  # results of a bin that is drawn


def reliability(judged: Sequence[Judged]) -> dict[str, Any]:
    """Return the mean score and the fraction of right results in each bin of scores, and the
    expected calibration error."""
    bins = [_bin(low, high, judged) for low, high in pairwise(EDGES)]
    off = sum(each["results"] * abs(each["predicted"] - each["observed"]) for each in bins)
    return {"results": len(judged), "error": round(off / max(len(judged), 1), 4), "bins": bins}


def diagram(groups: Mapping[str, Mapping[str, Any]]) -> str:
    """Draw predicted against observed, a line for each group of questions, as SVG."""
    shown = [
        Line(
            name,
            [
                (each["predicted"], each["observed"])
                for each in group["bins"]
                if each["results"] >= _MIN_RESULTS
            ],
        )
        for name, group in groups.items()
    ]
    perfect = Line("perfectly calibrated", [(0.0, 0.0), (1.0, 1.0)], dashed=True)
    return unit_chart(
        "Reliability of the score",
        [*shown, perfect],
        x="score of a result",
        y="fraction that is right",
    )


def _bin(low: float, high: float, judged: Sequence[Judged]) -> dict[str, Any]:
    within = [
        (score, right)
        for score, right in judged
        if low <= score < high or score == high == EDGES[-1]
    ]
    many = max(len(within), 1)
    return {
        "from": low,
        "to": high,
        "results": len(within),
        "predicted": round(sum(score for score, _ in within) / many, 4),
        "observed": round(sum(right for _, right in within) / many, 4),
    }
