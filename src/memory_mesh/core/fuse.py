"""How the answers of several channels become one ranking: the document's reciprocal rank fusion."""

from collections.abc import Mapping, Sequence

K = 60


def rrf(channels: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Ids by fused value ÷ the most it can be for the channels in use: first in every one of them is 1."""
    if not channels:
        return {}
    most = len(channels) / (K + 1)
    fused: dict[str, float] = {}
    for ranked in channels.values():
        for rank, found in enumerate(ranked):
            fused[found] = fused.get(found, 0.0) + 1 / (K + rank + 1)
    return {found: min(1.0, value / most) for found, value in fused.items()}  # sums of five channels round to more than one
