"""Measure capture: precision, recall and the mistakes on labelled pieces of transcripts.

    python -m bench.capture [FILE ...] [--out FOLDER]

`own` was in view while the rules were written and the weights learnt; `blind` was written by someone who has not seen the rules,
and nothing was tuned on it. Prints each memory that was wrongly kept and each that was missed. The result is written to FOLDER.
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.capture.pieces import FOLDER, Verdict, judged, read
from bench.commit import measured_at
from memory_mesh.core.capture.cues import CUES

RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.capture", description="Capture from transcripts")
    parser.add_argument("files", nargs="*", type=Path, default=sorted(FOLDER.glob("*.jsonl")), help="labelled pieces")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the result file")
    given = parser.parse_args()
    verdicts = {path.stem: [judged(piece) for piece in read(path)] for path in given.files}
    for name, some in verdicts.items():
        show(name, some)
    result: dict[str, Any] = {
        "command": "python -m bench.capture",
        **measured_at(),
        "files": {name: score(some) for name, some in verdicts.items()},
    }
    print(json.dumps(result["files"], indent=1))
    if not {path.resolve().parent for path in given.files} - {FOLDER}:
        (given.out / "capture.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def show(name: str, verdicts: Sequence[Verdict]) -> None:
    """Print what was kept wrongly, and what was missed."""
    print(f"\n{name}")
    for verdict in verdicts:
        for memory in verdict.wrong:
            wanted = ", ".join(keep.type for keep in verdict.piece.keep) or "nothing"
            print(f"  wrong {verdict.piece.id} ({memory.memory_type}, labelled {wanted}): {memory.content}")
        for keep in verdict.missed:
            print(f"  missed {verdict.piece.id} ({keep.type}): {verdict.piece.messages[-1][1]!r}")


def score(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return precision and recall, in all and by type."""
    right = Counter(memory.memory_type for verdict in verdicts for memory in verdict.right)
    wrong = Counter(memory.memory_type for verdict in verdicts for memory in verdict.wrong)
    labels = Counter(keep.type for verdict in verdicts for keep in verdict.piece.keep)
    missed = Counter(keep.type for verdict in verdicts for keep in verdict.missed)
    by_type = {name: _figures(right[name], wrong[name], labels[name], missed[name]) for name in CUES}
    return {"pieces": len(verdicts), **_figures(*(each.total() for each in (right, wrong, labels, missed))), "types": by_type}


def _figures(right: int, wrong: int, labels: int, missed: int) -> dict[str, Any]:
    return {
        "labels": labels,
        "kept": right + wrong,
        "precision": round(right / (right + wrong), 3) if right + wrong else None,
        "recall": round(1 - missed / labels, 3) if labels else None,
    }


if __name__ == "__main__":
    main()
