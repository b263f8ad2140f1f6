"""Learn the weights of the classifier of capture and write them into the package.

    python -m bench.capture.train [--check]

Learns from the files of SOURCES, each by another writer; blind.jsonl is never read. The lowest chance to keep a text is chosen by
leaving out one writer after the other: the lowest at which `PRECISION` of what is kept was labelled so. `--check` prints these
figures and writes nothing. The same data give the same weights.
"""

import argparse
import json
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.capture.pieces import FOLDER, Piece, judged, read
from memory_mesh import MemoryMesh
from memory_mesh.core.capture import extract
from memory_mesh.core.capture.classify import CLASSES, NONE, VECTOR_SCALE, Judge, Weights, features
from memory_mesh.core.capture.junk import why_not

SOURCES = ("own.jsonl", "second.jsonl", "third.jsonl", "lines.txt", "messages.txt", "more.txt")
TARGET = Path(extract.__file__).parent / "data" / "weights.json"
L2 = {"vectors": 3.0, "plain": 0.3}
STEPS, RATE = 400, 0.05
# Without vectors less is found: the same precision would keep hardly a third.
PRECISION = {"vectors": 0.95, "plain": 0.915}
LIMITS = (0.75, 0.8, 0.85, 0.9, 0.95)
Sample = tuple[str, dict[str, float], int]  # text, features, class
Vectors = Callable[[str], Sequence[float]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.capture.train", description="Learn the weights of capture")
    parser.add_argument("--check", action="store_true", help="only print the figures")
    given = parser.parse_args()
    model, vectors = local_model()
    pieces = {name: read(FOLDER / name) for name in SOURCES if (FOLDER / name).exists()}
    samples = {name: [sample for piece in some for sample in samples_of(piece)] for name, some in pieces.items()}
    tables: dict[str, Weights] = {}
    for name, vector in (("vectors", vectors), ("plain", None)):
        limit = choose_limit(name, pieces, samples, vector)
        tables[name] = replace(learn([each for some in samples.values() for each in some], vector, L2[name]), limit=limit)
    if not given.check:
        data = {name: {"features": one.features, "vector": one.vector, "limit": one.limit} for name, one in tables.items()}
        text = json.dumps({"model": model, **data}, ensure_ascii=False)
        TARGET.write_text(text.replace("], [", "],\n[").replace('], "', '],\n"') + "\n", encoding="utf-8")


def local_model() -> tuple[str, Vectors]:
    """Return the name of the local model, and a function that embeds a text."""
    embedder = MemoryMesh("memory://", embedder="local")._context().embedder
    if embedder is None:
        raise SystemExit("the local model is not installed")
    model = embedder

    @cache
    def vector(text: str) -> Sequence[float]:
        return array("f", model.embed([text])[0].data)

    return embedder.model, vector


def samples_of(piece: Piece) -> list[Sample]:
    """Return the texts that capture would judge, with their true class."""
    found, answered = list[Sample](), ""
    for number, (role, content) in enumerate(piece.messages):
        if role not in ("user", "assistant"):
            continue
        usable = [sentence for sentence in extract.sentences(content) if not why_not(sentence, role=role)]
        for text in extract.windows(usable):
            values = features(text, role=role, answered=answered if role == "user" else "")
            found.append((text, values, CLASSES.index(class_of(piece, number, role, text))))
        answered = content if role == "assistant" else ""
    return found


def class_of(piece: Piece, number: int, role: str, text: str) -> str:
    """Return the type of the label that a text belongs to, or none."""
    for keep in piece.keep:
        own = role == "user" or keep.type not in ("correction", "decision", "commitment")
        named = any(word in text.lower() for word in keep.says) if keep.says else number == len(piece.messages) - 1
        if own and named:
            return keep.type
    return NONE


def learn(samples: Sequence[Sample], vector: Vectors | None, l2: float) -> Weights:
    """Fit a multinomial logistic regression by Adam on all samples."""
    names = sorted({name for _, values, _ in samples for name in values})
    inputs = np.array([[values.get(name, 0.0) for name in names] for _, values, _ in samples])
    if vector:
        inputs = np.hstack([inputs, VECTOR_SCALE * np.array([vector(text) for text, _, _ in samples])])
    weights = np.round(_fit(inputs, np.eye(len(CLASSES))[[name for _, _, name in samples]], l2), 3).tolist()
    rows = dict(zip(names, weights[: len(names)], strict=True))
    return Weights(features=rows, vector=weights[len(names) :], limit=1.0)


def _fit(inputs: npt.NDArray[np.float64], truth: npt.NDArray[np.float64], l2: float) -> npt.NDArray[np.float64]:
    weights = np.zeros((inputs.shape[1], truth.shape[1]))
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        sums = inputs @ weights
        powers = np.exp(sums - sums.max(1, keepdims=True))
        slope = (inputs.T @ (powers / powers.sum(1, keepdims=True) - truth) + l2 * weights) / len(inputs)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        weights -= RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return weights


def choose_limit(table: str, pieces: dict[str, list[Piece]], samples: dict[str, list[Sample]], vector: Vectors | None) -> float:
    """Return the lowest limit with enough precision on pieces of writers that the weights were not learnt from."""
    learnt = {
        name: learn([each for other, some in samples.items() if other != name for each in some], vector, L2[table])
        for name in pieces
    }
    for limit in LIMITS:
        verdicts = [
            judged(piece, Judge(replace(learnt[name], limit=limit), vector)) for name, some in pieces.items() for piece in some
        ]
        right, wrong = (sum(len(each) for each in some) for some in ([v.right for v in verdicts], [v.wrong for v in verdicts]))
        labels, missed = sum(len(v.piece.keep) for v in verdicts), sum(len(v.missed) for v in verdicts)
        precision, types = right / max(1, right + wrong), sum(len(v.same_type) for v in verdicts) / max(1, right)
        print(f"{table} {limit}: precision {precision:.3f}, recall {1 - missed / labels:.3f}, same type {types:.3f}")
        if precision >= PRECISION[table]:
            return limit
    return LIMITS[-1]


if __name__ == "__main__":
    main()
