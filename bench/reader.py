"""Measure the deep ranker beside the default one, on the turns of LoCoMo or of LongMemEval.

    python -m bench.reader --data DIR [--set locomo|longmemeval] [--vectors FILE] [--every 1]
        [--out FOLDER]

Each question is searched with both rankers through the public API, without a budget of time. The
logits of the 30 candidates that were read also give what fewer candidates would have reached.
Processor time is that of this process, all cores together. The weight and the calibration come from
LongMemEval, whose questions the model also saw in its training. LoCoMo is shown as a whole, and its
conversations 6–10, on which nothing was chosen, separately. `--every 6` asks every sixth question.
Writes reader.json or reader_longmemeval.json, and for LoCoMo pictures of quality against time and
of the reliability of the scores.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np

from bench.commit import measured_at
from bench.picture import Line, unit_chart
from bench.quality.measuring import Judged, figures, interval, mean
from bench.quality.reliability import diagram, reliability
from bench.quality.report import RESULTS
from bench.quality.sets import Question, Space, locomo_turns, longmemeval_oracle_turns
from bench.quality.vectors import local
from memory_mesh import MemoryMesh
from memory_mesh.core.model import batches
from memory_mesh.core.ports import Embedder
from memory_mesh.core.search.deep import MAX_READ, WEIGHT

SETS = {"locomo": locomo_turns, "longmemeval": longmemeval_oracle_turns}
DEPTHS = (0, 5, 10, 20, MAX_READ)
_CHOSEN_ON = 5  # conversations
_SHOWN = 10  # results whose scores are judged
_BUDGET_MS = 60_000.0
_TINY = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """A question with the candidates of both rankers."""

    question: Question
    held_out: bool
    fast: Sequence[tuple[str, float]]  # ids and scores
    deep: Sequence[tuple[str, float]]
    logits: Mapping[str, float]
    ms: float  # processor time of reading

    def at_depth(self, depth: int) -> list[str]:
        """Return the ids in the order that reading so many candidates gives."""
        first = [id_ for id_, _ in self.fast[:depth]]
        odds = {
            id_: float(np.log(max(score, _TINY) / max(1 - score, _TINY)))
            for id_, score in self.fast
        }
        read = sorted(first, key=lambda id_: -(odds[id_] + WEIGHT * self.logits.get(id_, 0.0)))
        return [*read, *(id_ for id_, _ in self.fast[depth:])]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.reader", description="The deep ranker beside the default one"
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", choices=SETS, default="locomo", help="the questions")
    parser.add_argument("--vectors", type=Path, help="a file that keeps vectors between runs")
    parser.add_argument("--every", type=int, default=1, help="ask one question in so many")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the result files")
    options = parser.parse_args()
    commit, embedder, found = measured_at(), local(options.vectors), list[Searched]()
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for number, space in enumerate(SETS[options.set](options.data)):
            held_out = options.set == "locomo" and number >= _CHOSEN_ON
            found += searched(
                space, embedder, Path(folder) / f"{number}.db", options.every, held_out=held_out
            )
            print(
                space.name,
                len(found),
                mean(
                    [figures([id_ for id_, _ in each.deep], each.question.gold) for each in found]
                ),
            )
    command = f"python -m bench.reader --data DIR --set {options.set} --every {options.every}"
    result = {"command": command, **commit, **summary(found)}
    if options.set != "locomo":
        (options.out / f"reader_{options.set}.json").write_text(
            json.dumps(result, indent=1) + "\n", encoding="utf-8"
        )
        return
    (options.out / "reader.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (options.out / "reader_reliability.svg").write_text(
        diagram(result["reliability"]), encoding="utf-8"
    )
    curve = [(row["ms"], row["recall@5"] / 100) for row in result["curve"]]
    longest = max(ms for ms, _ in curve) or 1.0
    line = Line("recall@5", [(ms / longest, recall) for ms, recall in curve])
    chart = unit_chart(
        "Quality against time",
        [line],
        x=f"processor time of reading, of {longest:.0f} ms",
        y="recall@5",
    )
    (options.out / "reader.svg").write_text(chart, encoding="utf-8")


def searched(
    space: Space, embedder: Embedder, path: Path, every: int, *, held_out: bool
) -> list[Searched]:
    """Return one question in so many of a conversation, searched with both rankers."""
    now = {"at": space.questions[0].at}
    with ExitStack() as stack:
        mesh = stack.enter_context(
            MemoryMesh(
                store=f"sqlite:///{path}", embedder=embedder, deep_budget_ms=_BUDGET_MS,
                clock=lambda: datetime.fromisoformat(now["at"]),
            )
        )  # fmt: skip
        names: dict[str, str] = {}
        for batch in batches(space.memories, 500):
            kept = mesh.add_many([(said.text, said.metadata) for said in batch])
            for record, said in zip(kept, batch, strict=True):
                names.setdefault(record.id, said.id)
        found = list[Searched]()
        for question in space.questions[::every]:
            now["at"] = question.at
            scored, logits, times = [], dict[str, float](), []
            for ranker in ("learnt", "deep"):
                began = process_time()
                explained = mesh.explain(
                    question.text, limit=MAX_READ, min_score=0.0, ranker=ranker
                )
                times.append(process_time() - began)
                scored.append(
                    [(names[each.result.id], each.result.score) for each in explained.answers]
                )
                logits |= {
                    names[each.result.id]: each.features["deep"]
                    for each in explained.answers
                    if "deep" in each.features
                }
            fast, deep = scored
            ms = 1000 * (times[1] - times[0])
            found.append(
                Searched(
                    question=question, held_out=held_out, fast=fast, deep=deep, logits=logits, ms=ms
                )
            )
        return found


def summary(found: Sequence[Searched]) -> dict[str, Any]:
    """Return the figures by part of the questions, by the number of candidates that are read,
    and of the scores."""
    kinds = sorted({each.question.kind for each in found})
    parts = {"all": found, "conversations 6–10": [each for each in found if each.held_out]}
    parts |= {kind: [each for each in found if each.question.kind == kind] for kind in kinds}
    ms = float(np.median([each.ms for each in found]))
    return {
        "questions": len(found),
        "parts": {name: _part(some) for name, some in parts.items() if some},
        "curve": [
            {
                "read": depth,
                "ms": round(ms * depth / MAX_READ, 1),
                **mean([_figures(each, depth) for each in found]),
            }
            for depth in DEPTHS
        ],
        "reliability": {ranker: reliability(_judged(found, ranker)) for ranker in ("fast", "deep")},
    }


def _part(some: Sequence[Searched]) -> dict[str, Any]:
    fast, deep = ([_of(each, ranker) for each in some] for ranker in ("fast", "deep"))
    gains = {
        name: interval([one[name] for one in deep], [one[name] for one in fast])
        for name in ("recall@5", "recall@10")
    }
    return {"questions": len(some), "fast": mean(fast), "deep": mean(deep), "gain": gains}


def _of(each: Searched, ranker: str) -> dict[str, float]:
    return figures(
        [id_ for id_, _ in (each.fast if ranker == "fast" else each.deep)], each.question.gold
    )


def _figures(each: Searched, depth: int) -> dict[str, float]:
    return figures(each.at_depth(depth), each.question.gold)


def _judged(found: Sequence[Searched], ranker: str) -> list[Judged]:
    return [
        (score, id_ in each.question.gold)
        for each in found
        for id_, score in (each.fast if ranker == "fast" else each.deep)[:_SHOWN]
    ]


if __name__ == "__main__":
    main()
