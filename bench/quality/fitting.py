"""Fit linear models by gradient steps: which item of a list is right, and whether any is."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class _Adam:
    """Gradient descent whose steps get smaller towards the end."""

    def __init__(self, steps: int, size: float) -> None:
        self._steps, self._size = steps, size
        self._mean: Floats | float = 0.0
        self._square: Floats | float = 0.0

    def step(self, at: int, gradient: Floats) -> Floats:
        self._mean = 0.9 * self._mean + 0.1 * gradient
        self._square = 0.99 * self._square + 0.01 * gradient**2
        if at > 0.6 * self._steps:
            self._size *= 0.97
        found: Floats = (
            self._size
            * (self._mean / (1 - 0.9**at))
            / (np.sqrt(self._square / (1 - 0.99**at)) + 1e-9)
        )
        return found


def by_kind(rows: Floats, kinds: Floats) -> Floats:
    """Return the columns, then the same columns times each kind; `kinds` has a row for each row."""
    return np.concatenate([rows, *(rows * kind[:, None] for kind in kinds.T)], axis=1)


def bounded(weights: Floats, free: Flags) -> Floats:
    """Return weights, first those of the columns and then what each kind adds, of which no sum
    for a column is below zero, unless it is `free`, whichever kinds a pool is of."""
    base, added = np.split(weights.reshape(-1, len(free)), [1])
    base = np.where(free, base, np.maximum(base, 0))
    lower = np.minimum(added, 0)
    taken = -lower.sum(axis=0)
    kept = np.where(free | (taken <= base[0]), 1.0, base[0] / np.maximum(taken, 1e-12))
    return np.concatenate([base, np.where(added < 0, lower * kept, added)]).ravel()


def listwise(
    tables: Sequence[Floats],
    right: Sequence[Flags],
    weights: Floats,
    *,
    kinds: Floats,
    fixed_at: Floats,
    free: Flags,
    ridge: tuple[float, float],
    steps: int = 250,
) -> Floats:
    """Return weights under which the right rows of each table score above the others, one row
    for the columns and one for each kind. Weights with a number in `fixed_at` keep it (NaN: not
    fixed); the others, unless `free`, never go below zero. `ridge` keeps weights small: those of
    the columns, and what a kind adds."""
    which = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    starts = np.cumsum([0, *map(len, tables)])[:-1]
    rows = by_kind(np.concatenate(tables), kinds[which])
    aims = np.concatenate([each / each.sum() for each in right])
    shares = (weights / weights.sum())[which]
    scale = np.tile(rows[:, : len(free)].std(axis=0) + 1e-6, 1 + kinds.shape[1])
    rows /= scale
    values = (
        np.concatenate([fixed_at, *(np.where(np.isnan(fixed_at), np.nan, 0.0) for _ in kinds.T)])
        * scale
    )
    ridges = np.repeat(ridge, [len(free), len(free) * kinds.shape[1]])
    found: Floats = np.nan_to_num(values)
    adam = _Adam(steps, 0.08)
    for at in range(1, steps + 1):
        points = rows @ found
        parts = np.exp(points - np.maximum.reduceat(points, starts)[which])
        chances = parts / np.add.reduceat(parts, starts)[which]
        found = found - adam.step(at, rows.T @ ((chances - aims) * shares) + 2 * ridges * found)
        found = bounded(np.where(np.isnan(values), found, values), free)
    learnt: Floats = (found / scale).reshape(-1, len(free))
    return learnt


def logistic(
    rows: Floats, right: Floats, weights: Floats, *, kinds: Floats, free: Flags, steps: int = 600
) -> Floats:
    """Return weights for the probability that a row is right, one row for the columns and one
    for each kind. Unless `free`, none goes below zero. The last column is constant: the bias."""
    middle, scale = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    middle[-1], scale[-1] = 0.0, 1.0
    wide = by_kind((rows - middle) / scale, kinds)
    weights = weights / weights.sum()
    ridges = np.full(wide.shape[1], 1e-3)
    ridges[len(free) - 1] = 0
    found = np.zeros(wide.shape[1])
    adam = _Adam(steps, 0.05)
    for at in range(1, steps + 1):
        chances = 1 / (1 + np.exp(-np.clip(wide @ found, -30, 30)))
        found = bounded(
            found - adam.step(at, wide.T @ ((chances - right) * weights) + 2 * ridges * found), free
        )
    learnt: Floats = found.reshape(-1, len(free)) / scale
    learnt[:, -1] -= learnt @ middle
    return learnt


def newton(
    rows: Floats, right: Floats, weights: Floats, *, steps: int = 50, ridge: float = 1e-4
) -> Floats:
    """Return the same without bounds, by Newton's method; the last weight is the bias."""
    rows = np.column_stack((rows, np.ones(len(rows))))
    weights = weights / weights.sum()
    found = np.zeros(rows.shape[1])
    for _ in range(steps):
        chances = 1 / (1 + np.exp(-np.clip(rows @ found, -30, 30)))
        slope = rows.T @ ((chances - right) * weights) + ridge * found
        curve = (rows * (chances * (1 - chances) * weights)[:, None]).T @ rows + ridge * np.eye(
            len(found)
        )
        found = found - np.linalg.solve(curve, slope)
    return found


def isotonic(values: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Return the values in order, and the fraction of right ones at each, which never falls
    (pool adjacent violators)."""
    order = np.argsort(values, kind="stable")
    blocks: list[tuple[float, int]] = []  # sum and size
    for each in right[order].tolist():
        block = (each, 1)
        while blocks and blocks[-1][0] * block[1] >= block[0] * blocks[-1][1]:
            before = blocks.pop()
            block = (before[0] + block[0], before[1] + block[1])
        blocks.append(block)
    return values[order], np.repeat(
        [total / size for total, size in blocks], [size for _, size in blocks]
    )
