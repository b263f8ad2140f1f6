"""Learn the weights of the judge of reports and write them into the package.

    python -m bench.notes.train [--check]

Learns from the files of SOURCES, each by another writer; blind.jsonl and second.jsonl are never
read. The lowest chance to keep a statement is chosen by leaving out one writer after the other: the
lowest at which `PRECISION` of the kept reports were labelled so. `--check` prints these figures and
writes nothing. The same data give the same weights.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace

from bench.linear import Sample, Vectors, learn, local_model, write_weights
from bench.notes.reports import FOLDER, Report, read
from memory_mesh.core.language.packaged import Weights
from memory_mesh.core.notes.extraction import CLASSES, ReportJudge, features

SOURCES = ("one", "two", "three", "four", "five", "six", "seven", "eight")
TARGET = FOLDER.parents[1] / "src" / "memory_mesh" / "core" / "notes" / "data" / "weights.json"
L2 = {"vectors": 3.0, "plain": 0.3}
# Without vectors less is found: the same precision would keep hardly half.
PRECISION = {"vectors": 0.965, "plain": 0.95}
LIMITS = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.notes.train", description="Learn the weights of the judge of reports"
    )
    parser.add_argument("--check", action="store_true", help="only print the figures")
    given = parser.parse_args()
    model, vectors = local_model()
    every = {name: read(FOLDER / f"{name}.jsonl") for name in SOURCES}
    samples = {
        name: [sample for report in some for sample in samples_of(report)]
        for name, some in every.items()
    }
    tables: dict[str, Weights] = {}
    for name, vector in (("vectors", vectors), ("plain", None)):
        limit = choose_limit(name, every, samples, vector)
        known = [each for some in samples.values() for each in some]
        tables[name] = replace(learn(known, len(CLASSES), vector, L2[name]), limit=limit)
    if not given.check:
        write_weights(TARGET, model, tables)


def samples_of(report: Report) -> list[Sample]:
    """Return the statements of a report with their true class."""
    return [
        (each.text, features(each), CLASSES.index(report.class_of(each)))
        for each in report.statements
    ]


def chance(report: Report, weights: Weights, vector: Vectors | None) -> float:
    """Return how likely a report is worth a note: the chance of its best statement."""
    given = report.statements
    found = ReportJudge(replace(weights, limit=0.0))(
        given, [vector(each.text) for each in given] if vector else ()
    )
    return max((each.chance for each in found), default=0.0)


def rates(labels: Sequence[bool], chances: Sequence[float], limit: float) -> tuple[float, float]:
    """Return precision and recall if the reports with at least such a chance are kept."""
    kept = [label for label, own in zip(labels, chances, strict=True) if own >= limit]
    return sum(kept) / max(1, len(kept)), sum(kept) / max(1, sum(labels))


def choose_limit(
    table: str,
    every: dict[str, list[Report]],
    samples: dict[str, list[Sample]],
    vector: Vectors | None,
) -> float:
    """Return the lowest limit with enough precision on reports of writers that the weights were
    not learnt from."""
    labels, chances = list[bool](), list[float]()
    for name, some in every.items():
        others = [each for other, known in samples.items() if other != name for each in known]
        weights = learn(others, len(CLASSES), vector, L2[table])
        own = [chance(report, weights, vector) for report in some]
        truth = [report.kind is not None for report in some]
        print(
            f"{table} {name}:",
            *(
                f"{limit} {' '.join(f'{x:.3f}' for x in rates(truth, own, limit))}"
                for limit in LIMITS
            ),
            sep="  ",
        )
        labels, chances = labels + truth, chances + own
    for limit in LIMITS:
        precision, recall = rates(labels, chances, limit)
        print(f"{table} {limit}: precision {precision:.3f}, recall {recall:.3f}")
        if precision >= PRECISION[table]:
            return limit
    return LIMITS[-1]


if __name__ == "__main__":
    main()
