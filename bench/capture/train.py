"""Learn the weights of the classifier of capture and write them into the package.

    python -m bench.capture.train [--check]

Learns from the labelled pieces of own.jsonl and of train.txt; blind.jsonl is never read. `--check` only prints precision and
recall of a cross-validation with five folds at several limits, and writes nothing. The same data give the same weights.

A line of train.txt is a type, or `none`, a tab, and the words of the user. `A: ` before them makes them the assistant's; words
before ` || ` are the assistant's message that the user answers.
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.capture.pieces import FOLDER, Keep, Piece, judged, read
from memory_mesh.core.capture import extract
from memory_mesh.core.capture.classify import CLASSES, NONE, features
from memory_mesh.core.capture.junk import why_not

TARGET = Path(extract.__file__).parent / "data" / "weights.json"
MIN_COUNT = 3  # pieces in which a word occurs
L2, STEPS, RATE = 0.3, 300, 0.05
FOLDS, LIMITS = 5, (0.4, 0.5, 0.6, 0.7, 0.8)
Sample = tuple[int, dict[str, float], int]  # piece, features, class


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.capture.train", description="Learn the weights of capture")
    parser.add_argument("--check", action="store_true", help="cross-validate, and write nothing")
    given = parser.parse_args()
    pieces = [*read(FOLDER / "own.jsonl"), *read_lines(FOLDER / "train.txt")]
    samples = [sample for at, piece in enumerate(pieces) for sample in samples_of(at, piece)]
    if given.check:
        cross_validate(pieces, samples)
        return
    table = learn(samples)
    lines = ",\n".join(f"{json.dumps(name, ensure_ascii=False)}: {json.dumps(row)}" for name, row in sorted(table.items()))
    TARGET.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    print(f"{len(pieces)} pieces, {len(samples)} texts, {len(table)} features")


def read_lines(path: Path) -> list[Piece]:
    """Read the pieces of one or two messages."""
    pieces = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        name, _, text = line.partition("\t")
        before, answers, words = text.partition(" || ")
        messages = [("assistant", before), ("user", words)] if answers else [("user", text)]
        if text.startswith("A: ") and not answers:
            messages = [("assistant", text[3:])]
        keep = () if name == NONE else (Keep(name, ()),)
        pieces.append(Piece(f"train {number}", tuple(messages), keep))
    return pieces


def samples_of(at: int, piece: Piece) -> list[Sample]:
    """Return the texts that capture would judge, with their true class."""
    found, answered = list[Sample](), ""
    for number, (role, content) in enumerate(piece.messages):
        if role not in ("user", "assistant"):
            continue
        usable = [sentence for sentence in extract.sentences(content) if not why_not(sentence, role=role)]
        for text in extract.windows(usable):
            name = class_of(piece, number, role, text)
            found.append((at, features(text, role=role, answered=answered if role == "user" else ""), CLASSES.index(name)))
        answered = content if role == "assistant" else ""
    return found


def class_of(piece: Piece, number: int, role: str, text: str) -> str:
    for keep in piece.keep:
        own = role == "user" or keep.type not in ("correction", "decision", "commitment")
        named = any(word in text.lower() for word in keep.says) if keep.says else number == len(piece.messages) - 1
        if own and named:
            return keep.type
    return NONE


def learn(samples: Sequence[Sample]) -> dict[str, list[float]]:
    """Fit a multinomial logistic regression by Adam on all samples."""
    counts = Counter(name for _, found, _ in samples for name in found)
    names = sorted(name for name, count in counts.items() if count >= MIN_COUNT)
    place = {name: at for at, name in enumerate(names)}
    inputs, truth = np.zeros((len(samples), len(names))), np.zeros((len(samples), len(CLASSES)))
    for row, (_, found, name) in enumerate(samples):
        truth[row, name] = 1
        for feature, value in found.items():
            if feature in place:
                inputs[row, place[feature]] = value
    weights = np.zeros((len(names), len(CLASSES)))
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        sums = inputs @ weights
        powers = np.exp(sums - sums.max(1, keepdims=True))
        slope = (inputs.T @ (powers / powers.sum(1, keepdims=True) - truth) + L2 * weights) / len(samples)
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        weights -= RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return {name: [round(float(weight), 2) for weight in row] for name, row in zip(names, weights, strict=True)}


def cross_validate(pieces: Sequence[Piece], samples: Sequence[Sample]) -> None:
    """Print precision and recall on pieces that the weights were not learnt from."""
    fold = np.random.default_rng(0).integers(0, FOLDS, len(pieces))
    tables = [learn([sample for sample in samples if fold[sample[0]] != at]) for at in range(FOLDS)]
    for limit in LIMITS:
        right = wrong = found = total = 0
        for at, piece in enumerate(pieces):
            verdict = judged(piece, weights=tables[fold[at]], min_chance=limit)
            right, wrong = right + len(verdict.right), wrong + len(verdict.wrong)
            found, total = found + len(piece.keep) - len(verdict.missed), total + len(piece.keep)
        print(f"limit {limit}: precision {right / max(1, right + wrong):.3f}, recall {found / total:.3f}")


if __name__ == "__main__":
    main()
