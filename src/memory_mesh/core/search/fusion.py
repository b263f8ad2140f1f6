"""How the answers of several channels become one ranking: the document's reciprocal rank fusion."""

from collections.abc import Mapping, Sequence

K = 60


def rrf(channels: Mapping[str, Sequence[str]], weights: Mapping[str, float] | None = None) -> dict[str, float]:
    """Ids by fused value ÷ the most it can be for the channels in use: first in every one of them is 1."""
    heavy = {name: (weights or {}).get(name, 1.0) for name in channels}
    most = sum(heavy.values()) / (K + 1)
    if not most:
        return {}
    fused: dict[str, float] = {}
    for name, ranked in channels.items():
        for rank, found in enumerate(ranked):
            fused[found] = fused.get(found, 0.0) + heavy[name] / (K + rank + 1)
    return {found: min(1.0, value / most) for found, value in fused.items()}  # sums of five channels round to more than one
