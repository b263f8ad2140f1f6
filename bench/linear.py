"""Learn the weights of linear models from labelled texts. The same texts give the same weights."""

import json
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from memory_mesh import MemoryMesh
from memory_mesh.core.language.packaged import VECTOR_SCALE, Weights
from memory_mesh.flows.write.embed import embed_texts

STEPS, RATE = 400, 0.05
Sample = tuple[str, dict[str, float], int]  # text, features, class
Vectors = Callable[[str], Sequence[float]]


def local_model() -> tuple[str, Vectors]:
    """Return the name of the local model, and a function that embeds a text."""
    embedder = MemoryMesh("memory://", embedder="local")._context().models.embedder
    if embedder is None:
        raise SystemExit("the local model is not installed")
    model = embedder

    @cache
    def vector(text: str) -> Sequence[float]:
        return array("f", embed_texts(model, [text])[0].data)

    return embedder.model, vector


def learn(samples: Sequence[Sample], classes: int, vector: Vectors | None, l2: float) -> Weights:
    """Fit a multinomial logistic regression by Adam on all samples."""
    names = sorted({name for _, values, _ in samples for name in values})
    inputs = np.array([[values.get(name, 0.0) for name in names] for _, values, _ in samples])
    if vector:
        inputs = np.hstack(
            [inputs, VECTOR_SCALE * np.array([vector(text) for text, _, _ in samples])]
        )
    weights = np.round(
        _fit(inputs, np.eye(classes)[[own for _, _, own in samples]], l2), 3
    ).tolist()
    rows = dict(zip(names, weights[: len(names)], strict=True))
    return Weights(features=rows, vector=weights[len(names) :], limit=1.0)


def _fit(
    inputs: npt.NDArray[np.float64], truth: npt.NDArray[np.float64], l2: float
) -> npt.NDArray[np.float64]:
    weights = np.zeros((inputs.shape[1], truth.shape[1]))
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        sums = inputs @ weights
        powers = np.exp(sums - sums.max(1, keepdims=True))
        slope = (inputs.T @ (powers / powers.sum(1, keepdims=True) - truth) + l2 * weights) / len(
            inputs
        )
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        weights -= RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return weights


def write_weights(path: Path, model: str, tables: Mapping[str, Weights]) -> None:
    """Write the tables of a model into the package, a row a line."""
    data = {
        name: {"features": one.features, "vector": one.vector, "limit": one.limit}
        for name, one in tables.items()
    }
    text = json.dumps({"model": model, **data}, ensure_ascii=False)
    path.write_text(text.replace("], [", "],\n[").replace('], "', '],\n"') + "\n", encoding="utf-8")
