"""Measure the judge of reports: precision, recall and the mistakes on labelled reports of agents.

    python -m bench.notes [FILE ...] [--out FOLDER]

The weights were learnt from one.jsonl to eight.jsonl, each by another writer; `python -m
bench.notes.train --check` prints the figures of each writer with weights that were learnt from the
others. `blind` and `second` are by writers who have not seen the rules. `second` was first read
after the last change of rules and weights, `blind` before eight.jsonl was written. Prints each
report that was wrongly kept and each that was missed.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.commit import measured_at
from bench.linear import Vectors, local_model
from bench.notes.reports import FOLDER, Report, read
from memory_mesh.core.notes.extraction import (
    KINDS,
    ReportJudge,
    Worth,
    judges,
)

RESULTS = Path(__file__).parents[1] / "results"
MEASURED = [FOLDER / f"{name}.jsonl" for name in ("blind", "second")]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A report and the statements of it that were kept."""

    report: Report
    kept: Sequence[Worth]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.notes", description="Notes from the reports of agents"
    )
    parser.add_argument("files", nargs="*", type=Path, default=MEASURED, help="labelled reports")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the result file")
    given = parser.parse_args()
    vector = local_model()[1]
    scores: dict[str, Any] = {}
    for path in given.files:
        reports = read(path)
        _, with_vectors, without_vectors = judges()
        verdicts = {
            "vectors": judged(reports, with_vectors, vector),
            "plain": judged(reports, without_vectors, None),
        }  # fmt: skip
        show(path.stem, verdicts["vectors"])
        scores[path.stem] = {name: score(some) for name, some in verdicts.items()}
    print(json.dumps(scores, indent=1))
    if given.files == MEASURED:
        result = {"command": "python -m bench.notes", **measured_at(), "files": scores}
        (given.out / "notes.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def judged(reports: Sequence[Report], judge: ReportJudge, vector: Vectors | None) -> list[Verdict]:
    """Return what a judge keeps of each report."""
    found: list[Verdict] = []
    for report in reports:
        given = report.statements
        found.append(
            Verdict(report, judge(given, [vector(each.text) for each in given] if vector else ()))
        )
    return found


def show(name: str, verdicts: Sequence[Verdict]) -> None:
    """Print what was kept wrongly, and what was missed."""
    print(f"\n{name}")
    for each in verdicts:
        if each.kept and each.report.kind is None:
            print(f"  wrong {each.report.id}: {' | '.join(worth.text for worth in each.kept)}")
        elif each.report.kind and not each.kept:
            print(
                f"  missed {each.report.id} ({each.report.kind}): "
                f"{' | '.join(each.report.sentences)}"
            )


def score(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return precision and recall of reports, of the sentences in them, and recall by kind."""
    kept = [each for each in verdicts if each.kept]
    right = [each for each in kept if each.report.kind]
    labels = [each.report.kind for each in verdicts if each.report.kind]
    found = [each.report.kind for each in right]
    sentences = [(each.report, worth) for each in kept for worth in each.kept]
    named = [
        worth
        for report, worth in sentences
        if any(worth.text in one or one in worth.text for one in report.sentences)
    ]
    return {
        "reports": len(verdicts), "worth_a_note": len(labels), "kept": len(kept),
        "precision": _rate(len(right), len(kept)), "recall": _rate(len(right), len(labels)),
        "kept_sentences_that_the_label_names": _rate(len(named), len(sentences)),
        "recall_by_kind": {kind: _rate(found.count(kind), labels.count(kind)) for kind in KINDS},
    }  # fmt: skip


def _rate(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


if __name__ == "__main__":
    main()
