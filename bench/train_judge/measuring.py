"""How well the judge finds changes: in pairs that were written, and in whole memories."""

from collections.abc import Sequence

import numpy as np

from bench.train_judge.data import CHANGE, Pair

THRESHOLDS = (0.5, 0.8, 0.9, 0.95, 0.97, 0.99)
_TEMPERATURES = np.exp(np.linspace(-1.5, 1.5, 61))
_SHOWN = 300  # characters of a text


def temperature(pairs: Sequence[Pair], logits: np.ndarray) -> float:
    """Return by what the logits are to be divided, so that the right classes are as likely as the
    judge says."""
    right = np.array([[number in pair.classes for number in range(4)] for pair in pairs])
    counted = np.array([pair.weight > 0 for pair in pairs])
    losses = [
        -np.log((_probabilities(logits / value) * right).sum(1)[counted] + 1e-9).mean()
        for value in _TEMPERATURES
    ]
    return float(_TEMPERATURES[np.argmin(losses)])


def change_probability(logits: np.ndarray) -> np.ndarray:
    """Return how likely each pair is a change: that the newer one replaces or ends the older."""
    likely: np.ndarray = _probabilities(logits)[:, list(CHANGE)].sum(1)
    return likely


def area(positive: np.ndarray, negative: np.ndarray) -> float:
    """Return how often a positive is above a negative: the area under the curve."""
    below = np.searchsorted(np.sort(negative), positive, side="left")
    equal = np.searchsorted(np.sort(negative), positive, side="right") - below
    return float((below + equal / 2).mean() / max(1, len(negative))) if len(positive) else np.nan


def show_written(name: str, pairs: Sequence[Pair], likely: np.ndarray) -> None:
    """Print how pairs that were written are told apart."""
    change = np.array([pair.is_change for pair in pairs])
    implied = change & np.array([pair.is_implied for pair in pairs])
    said = change & ~implied
    print(
        f"{name}: {len(pairs)} pairs, area under the curve: said "
        f"{area(likely[said], likely[~change]):.3f}, implied "
        f"{area(likely[implied], likely[~change]):.3f}"
    )
    for threshold in THRESHOLDS:
        above = likely >= threshold
        print(
            f"  {threshold}: precision {_percent(change[above])}, recall said "
            f"{_percent(above[said])}, implied {_percent(above[implied])}"
        )


def show_memories(name: str, pairs: Sequence[Pair], likely: np.ndarray) -> None:
    """Print how many links there would be in whole memories. Doubtful links are counted apart, and
    changes that are not near can never be found."""
    memories = len({place for pair in pairs for place in (pair.older, pair.newer)})
    change, near, implied, doubtful = (
        np.array(values)
        for values in zip(
            *((pair.is_change, pair.is_near, pair.is_implied, not pair.weight) for pair in pairs),
            strict=True,
        )
    )
    print(f"{name}: {memories} memories, {change.sum()} changes, {(change & near).sum()} near")
    for threshold in THRESHOLDS:
        above = (likely >= threshold) & near
        false, unsure = (above & ~change & ~doubtful).sum(), (above & ~change & doubtful).sum()
        print(
            f"  {threshold}: false links per 1,000 memories {1000 * false / memories:.1f}, "
            f"doubtful {1000 * unsure / memories:.1f}, found of the near changes: said "
            f"{_percent(above[change & near & ~implied])}, implied "
            f"{_percent(above[change & near & implied])}; of all changes {_percent(above[change])}"
        )


def show_worst(
    pairs: Sequence[Pair], likely: np.ndarray, texts: Sequence[str], count: int = 10
) -> None:
    """Print the most likely pairs that are not changes, and the least likely changes."""
    order = [at for at in np.argsort(-likely) if pairs[at].weight]
    false = [at for at in order if not pairs[at].is_change][:count]
    missed = [at for at in reversed(order) if pairs[at].is_change][:count]
    for title, rows in (("false links", false), ("missed changes", missed)):
        print(f"worst {title}:")
        for at in rows:
            pair = pairs[at]
            older, newer = (texts[place][:_SHOWN] for place in (pair.older, pair.newer))
            print(f"  {likely[at]:.3f} {pair.name or pair.author}: {older}\n        -> {newer}")


def _probabilities(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(1, keepdims=True))
    probabilities: np.ndarray = powers / powers.sum(1, keepdims=True)
    return probabilities


def _percent(hits: np.ndarray) -> str:
    return f"{100 * hits.mean():.0f} %" if len(hits) else "-"
