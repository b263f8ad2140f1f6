"""Learn the weights of the classifier of capture and write them into the package.

    python -m bench.capture.train [--check]

Learns from the files of SOURCES, each by another writer; blind.jsonl is never read. The lowest
chance to keep a text is chosen by leaving out one writer after the other: the lowest at which
`PRECISION` of what is kept was labelled so. `--check` prints these figures and writes nothing. The
same data give the same weights.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from bench.capture.pieces import FOLDER, Piece, judged, read
from bench.linear import Sample, Vectors, learn, local_model, write_weights
from memory_mesh.core.language.capture import extract
from memory_mesh.core.language.capture.classify import CLASSES, Judge, features, why_not
from memory_mesh.core.language.packaged import NONE, Weights

# `everyday1` to `everyday3` are statements of the `train` and `choose` worlds of bench.everyday,
# and `short` of the pairs of bench.updates, each labelled by another reader.
SOURCES = (
    "own.jsonl", "second.jsonl", "third.jsonl", "lines.txt", "messages.txt", "more.txt",
    "everyday1.txt", "everyday2.txt", "everyday3.txt", "short.txt", "plain.txt",
)  # fmt: skip
TARGET = Path(extract.__file__).parent / "data" / "weights.json"
L2 = {"vectors": 8.0, "plain": 0.3}
PRECISION = 0.9
LIMITS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.capture.train", description="Learn the weights of capture"
    )
    parser.add_argument("--check", action="store_true", help="only print the figures")
    given = parser.parse_args()
    model, vectors = local_model()
    pieces = {name: read(FOLDER / name) for name in SOURCES if (FOLDER / name).exists()}
    samples = {
        name: [sample for piece in some for sample in samples_of(piece)]
        for name, some in pieces.items()
    }
    tables: dict[str, Weights] = {}
    for name, vector in (("vectors", vectors), ("plain", None)):
        limit = choose_limit(name, pieces, samples, vector)
        tables[name] = replace(
            learn(
                [each for some in samples.values() for each in some], len(CLASSES), vector, L2[name]
            ),
            limit=limit,
        )
    if not given.check:
        write_weights(TARGET, model, tables)


def samples_of(piece: Piece) -> list[Sample]:
    """Return the texts that capture would judge, with their true class."""
    found, answered = list[Sample](), ""
    for number, (role, content) in enumerate(piece.messages):
        if role not in ("user", "assistant"):
            continue
        usable = [
            sentence for sentence in extract.sentences(content) if not why_not(sentence, role=role)
        ]
        for text in extract.statements(usable):
            values = features(text, role=role, answered=answered if role == "user" else "")
            found.append((text, values, CLASSES.index(class_of(piece, number, role, text))))
        answered = content if role == "assistant" else ""
    return found


def class_of(piece: Piece, number: int, role: str, text: str) -> str:
    """Return the type of the label that a text belongs to, or none."""
    for keep in piece.keep:
        own = role == "user" or keep.type not in ("correction", "decision", "commitment")
        named = (
            any(word in text.lower() for word in keep.says)
            if keep.says
            else number == len(piece.messages) - 1
        )
        if own and named:
            return keep.type
    return NONE


def choose_limit(
    table: str,
    pieces: dict[str, list[Piece]],
    samples: dict[str, list[Sample]],
    vector: Vectors | None,
) -> float:
    """Return the lowest limit with enough precision on pieces of writers that the weights were
    not learnt from."""
    learnt = {
        name: learn(
            [each for other, some in samples.items() if other != name for each in some],
            len(CLASSES),
            vector,
            L2[table],
        )
        for name in pieces
    }
    for limit in LIMITS:
        verdicts = [
            judged(piece, Judge(replace(learnt[name], limit=limit), vector))
            for name, some in pieces.items()
            for piece in some
        ]
        right, wrong = (
            sum(len(each) for each in some)
            for some in ([v.right for v in verdicts], [v.wrong for v in verdicts])
        )
        labels, missed = (
            sum(len(v.piece.keep) for v in verdicts),
            sum(len(v.missed) for v in verdicts),
        )
        precision, types = (
            right / max(1, right + wrong),
            sum(len(v.same_type) for v in verdicts) / max(1, right),
        )
        print(
            f"{table} {limit}: precision {precision:.3f}, recall {1 - missed / labels:.3f}, same "
            f"type {types:.3f}"
        )
        if precision >= PRECISION:
            return limit
    return LIMITS[-1]


if __name__ == "__main__":
    main()
