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
        found: Floats = self._size * (self._mean / (1 - 0.9**at)) / (np.sqrt(self._square / (1 - 0.99**at)) + 1e-9)
        return found


def listwise(
    tables: Sequence[Floats],
    right: Sequence[Flags],
    weights: Floats,
    *,
    fixed_at: Floats,
    free: Flags,
    ridge: float,
    steps: int = 250,
) -> Floats:
    """Return weights under which the right rows of each table score above the others. Weights with a number in `fixed_at` keep it
    (NaN: not fixed); the others, unless `free`, never go below zero."""
    rows = np.concatenate(tables)
    starts = np.cumsum([0, *map(len, tables)])[:-1]
    which = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    aims = np.concatenate([each / each.sum() for each in right])
    shares = (weights / weights.sum())[which]
    scale = rows.std(axis=0) + 1e-6
    rows = rows / scale
    fixed = ~np.isnan(fixed_at)
    found: Floats = np.where(fixed, np.nan_to_num(fixed_at) * scale, 0.0)
    adam = _Adam(steps, 0.08)
    for at in range(1, steps + 1):
        points = rows @ found
        parts = np.exp(points - np.maximum.reduceat(points, starts)[which])
        chances = parts / np.add.reduceat(parts, starts)[which]
        moved = found - adam.step(at, rows.T @ ((chances - aims) * shares) + 2 * ridge * found)
        found = np.where(fixed, found, np.where(free, moved, np.maximum(moved, 0)))
    learnt: Floats = found / scale
    return learnt


def logistic(rows: Floats, right: Floats, weights: Floats, *, steps: int = 600) -> tuple[Floats, float]:
    """Return weights that are never below zero, and a bias, for the probability that a row is right."""
    middle, scale = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    rows = np.column_stack(((rows - middle) / scale, np.ones(len(rows))))
    weights = weights / weights.sum()
    found = np.zeros(rows.shape[1])
    adam = _Adam(steps, 0.05)
    for at in range(1, steps + 1):
        chances = 1 / (1 + np.exp(-rows @ found))
        found = found - adam.step(at, rows.T @ ((chances - right) * weights) * 100 + 1e-3 * found)
        found[:-1] = np.maximum(found[:-1], 0)
    learnt = found[:-1] / scale
    return learnt, float(found[-1] - learnt @ middle)


def newton(rows: Floats, right: Floats, weights: Floats, *, steps: int = 50, ridge: float = 1e-4) -> Floats:
    """Return the same without bounds, by Newton's method; the last weight is the bias."""
    rows = np.column_stack((rows, np.ones(len(rows))))
    weights = weights / weights.sum()
    found = np.zeros(rows.shape[1])
    for _ in range(steps):
        chances = 1 / (1 + np.exp(-np.clip(rows @ found, -30, 30)))
        slope = rows.T @ ((chances - right) * weights) + ridge * found
        curve = (rows * (chances * (1 - chances) * weights)[:, None]).T @ rows + ridge * np.eye(len(found))
        found = found - np.linalg.solve(curve, slope)
    return found
