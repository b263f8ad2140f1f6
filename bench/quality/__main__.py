"""Measure search quality.

    python -m bench.quality --data DIR [--sets locomo,locomo-sessions,longmemeval-s-lite] [--vectors FILE]

DIR holds `locomo/` and `longmemeval_s_lite/`. "Ours" is the product as it comes; the others are plain code over the same tokens
and vectors. Settings were chosen on LoCoMo's conversations 1–5, so 6–10 are told apart. FILE keeps vectors between runs.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.quality import report
from bench.quality.measuring import FIGURES, figures, interval, mean, told_apart
from bench.quality.ours import Ours, opened
from bench.quality.plain import PLAIN, Plain
from bench.quality.sets import SETS, Question, Space
from bench.quality.vectors import local
from memory_mesh.core.ports import Embedder
from memory_mesh.core.search.weights import MIN_SCORES

OURS, OURS_ALL = "ours", "ours, min_score 0"
_CHOSEN_ON = 5  # conversations
_MANY = 40  # people whose stores are open at a time

Measured = Mapping[str, Mapping[str, float]]  # of one question, by ranker


def main() -> None:
    parser = argparse.ArgumentParser(description="How well memories are found")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--vectors", type=Path, help="a file that keeps vectors between runs")
    options = parser.parse_args()
    embedder = local(options.vectors)
    results: dict[str, Any] = {}
    for name in options.sets.split(","):
        results[name] = _measured(name, SETS[name](options.data), embedder)
        embedder.save()
        report.show(name, results[name])
    tables = {name: result["parts"]["all"]["rankers"] for name, result in results.items()}
    command = f"python -m bench.quality --data DIR --sets {options.sets}"
    if set(results) == set(SETS):
        report.keep(results, command, report.picture(tables, "recall@10"))


def _measured(name: str, spaces: Sequence[Space], embedder: Embedder) -> dict[str, Any]:
    asked: list[tuple[int, Question, Measured]] = []
    right: list[float] = []
    wrong: list[float] = []
    people = [space for space in spaces if space.questions]
    for at in range(0, len(people), _MANY):
        some = people[at : at + _MANY]
        with opened(some, embedder) as meshes:
            for which, (space, ours) in enumerate(zip(some, meshes, strict=True)):
                found, best = _answers(space, ours, Plain(space.memories, embedder))
                asked += [(at + which, question, one) for question, one in zip(space.questions, found, strict=True)]
                right += best
                wrong += _asked_of(meshes[(which + 1) % len(meshes)], space.questions)
        print(f"{name}: {len(asked):,} questions asked", file=sys.stderr)
    result: dict[str, Any] = {"parts": {part: _table(some) for part, some in _parts(name, asked).items()}}
    # Our search returns nothing when no memory scores high enough. LongMemEval's people share sessions: no name is unknown there.
    if name.startswith("locomo"):
        empty = 100 * sum(score < MIN_SCORES["recall"] for score in wrong) / len(wrong)
        result["wrong"] = {"empty": round(empty, 1), "auc": told_apart(right, wrong), "min_score": MIN_SCORES["recall"]}
    return result


def _answers(space: Space, ours: Ours, plain: Plain) -> tuple[list[Measured], list[float]]:
    measured: list[Measured] = []
    best: list[float] = []
    for question in space.questions:
        scored = ours.ranked(question)
        found = plain.ranked(question)
        found[OURS] = [id_ for id_, score in scored if score >= MIN_SCORES["recall"]]
        found[OURS_ALL] = [id_ for id_, _ in scored]
        measured.append({ranker: figures(ids, question.gold) for ranker, ids in found.items()})
        best.append(scored[0][1] if scored else 0.0)
    return measured, best


def _asked_of(other: Ours, questions: Sequence[Question]) -> list[float]:
    """Return the best score of each question that no memory answers."""
    return [max((score for _, score in other.ranked(question)), default=0.0) for question in questions]


def _parts(name: str, asked: Sequence[tuple[int, Question, Measured]]) -> dict[str, list[Measured]]:
    parts = {"all": [one for _, _, one in asked]}
    if name.startswith("locomo"):
        parts[f"conversations 1–{_CHOSEN_ON}"] = [one for which, _, one in asked if which < _CHOSEN_ON]
        parts[f"conversations {_CHOSEN_ON + 1}–10"] = [one for which, _, one in asked if which >= _CHOSEN_ON]
    for kind in sorted({question.kind for _, question, _ in asked}):
        parts[kind] = [one for _, question, one in asked if question.kind == kind]
    return {part: some for part, some in parts.items() if some}


def _table(asked: Sequence[Measured]) -> dict[str, Any]:
    rankers = {ranker: mean([one[ranker] for one in asked]) for ranker in (*PLAIN, OURS, OURS_ALL)}
    ahead = {}
    for figure in FIGURES:
        best = max(PLAIN, key=lambda ranker: rankers[ranker][figure])
        ahead[figure] = (best, *interval([one[OURS][figure] for one in asked], [one[best][figure] for one in asked]))
    return {"questions": len(asked), "rankers": rankers, "ahead": ahead}


if __name__ == "__main__":
    main()
