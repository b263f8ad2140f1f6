"""Measure capture: precision, recall and the mistakes on labelled pieces of transcripts.

    python -m bench.capture [FILE ...] [--out FOLDER]

`own`, `second` and `third` were in view while the rules were written and the weights learnt.
`blind` was written by someone who has not seen the rules, and was first read after the last change
of rules and weights. Prints each memory that was wrongly kept and each that was missed. A memory is
right if it was labelled to be kept; whether its type is the labelled one is counted too.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.capture.pieces import FOLDER, Verdict, judged, read
from bench.commit import measured_at
from bench.linear import local_model
from memory_mesh.core.language.capture.classify import (
    CLASSES,
    judge_with_vectors,
    judge_without_vectors,
)
from memory_mesh.core.language.packaged import NONE

RESULTS = Path(__file__).parents[1] / "results"
MEASURED = [FOLDER / f"{name}.jsonl" for name in ("own", "second", "third", "blind")]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.capture", description="Capture from transcripts"
    )
    parser.add_argument("files", nargs="*", type=Path, default=MEASURED, help="labelled pieces")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the result file")
    given = parser.parse_args()
    judges = {"vectors": judge_with_vectors(local_model()[1]), "plain": judge_without_vectors()}
    scores: dict[str, Any] = {}
    for path in given.files:
        verdicts = {
            name: [judged(piece, judge) for piece in read(path)] for name, judge in judges.items()
        }
        show(path.stem, verdicts["vectors"])
        scores[path.stem] = {name: score(some) for name, some in verdicts.items()}
    print(json.dumps(scores, indent=1))
    if given.files == MEASURED:
        result = {"command": "python -m bench.capture", **measured_at(), "files": scores}
        (given.out / "capture.json").write_text(
            json.dumps(result, indent=1) + "\n", encoding="utf-8"
        )


def show(name: str, verdicts: Sequence[Verdict]) -> None:
    """Print what was kept wrongly, and what was missed."""
    print(f"\n{name}")
    for verdict in verdicts:
        for memory in verdict.wrong:
            print(f"  wrong {verdict.piece.id} ({memory.memory_type}): {memory.content}")
        for keep in verdict.missed:
            print(f"  missed {verdict.piece.id} ({keep.type}): {verdict.piece.messages[-1][1]!r}")


def score(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return precision and recall, and how often the type is the labelled one; recall also by
    type."""
    right, wrong, same = (
        sum(len(getattr(v, name)) for v in verdicts) for name in ("right", "wrong", "same_type")
    )
    labels = [keep.type for v in verdicts for keep in v.piece.keep]
    missed = [keep.type for v in verdicts for keep in v.missed]
    types = {name: {
        "labels": labels.count(name),
        "recall": _rate(labels.count(name) - missed.count(name), labels.count(name)),
    }
             for name in CLASSES if name != NONE}  # fmt: skip
    return {
        "pieces": len(verdicts), "labels": len(labels), "kept": right + wrong,
        "precision": _rate(right, right + wrong),
        "recall": _rate(len(labels) - len(missed), len(labels)), "same_type": _rate(same, right),
        "types": types,
    }  # fmt: skip


def _rate(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


if __name__ == "__main__":
    main()
