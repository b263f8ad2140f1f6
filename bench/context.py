"""Measure how much of the evidence a context of a given size contains.

    python -m bench.context --data DIR [--vectors FILE] [--jobs 2] [--people 5] [--out FOLDER]

Each turn of LoCoMo's conversations is stored with `mesh.graph.store_many`. For each question and
budget of tokens, `context` is compared with the best hits of `mesh.search`, in their order until
the budget is full: as the same text, also of a search without a minimum score, as bare lines
without dates, headings and fence, and as the text of `format_for_model`. A question counts if the
text has all of its evidence. `format_for_model` and the document's formula, which take long and are
far behind, are asked every fifth question. Settings were chosen on conversations 1–5, so 6–10 are
also shown separately. A run of all conversations writes its result and a picture.
"""

import argparse
import json
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.commit import measured_at
from bench.picture import Line, unit_chart
from bench.quality.measuring import interval
from bench.quality.report import RESULTS
from bench.quality.sets import Question, Space, locomo_turns
from bench.quality.vectors import local
from memory_mesh import GraphHit, MemoryMesh, SearchResult
from memory_mesh.core.graph.packing import Page
from memory_mesh.core.model import batches
from memory_mesh.core.ports import Embedder

BUDGETS = (400, 800, 1600)
PACKED, DOCUMENT, SAME, EVERY, FENCED, BARE = (
    "context", 'context, packing="composite"', "top hits, same text",
    "top hits without a minimum score, same text", "top hits, format_for_model",
    "top hits, bare lines",
)  # fmt: skip
AGENT, _DEPTH, _BATCH, _CHOSEN_ON = "reader", 100, 200, 5
_EVERY = 5  # questions, for all ways
_BOUNDARY = "3f9a0c1b77d2e845"


@dataclass(frozen=True, slots=True)
class Filled:
    """One text: whether it has all evidence, which part of it, and its size."""

    complete: bool
    part: float
    tokens: int


Results = dict[tuple[str, int], list[Filled]]  # by the way and the budget


class Conversation:
    """The turns of one conversation, stored and linked."""

    def __init__(self, path: Path, space: Space, embedder: Embedder) -> None:
        self._now, self._count = space.questions[0].at, embedder.count
        self._mesh = MemoryMesh(
            store=f"sqlite:///{path}", agent_id=AGENT, embedder=embedder, clock=self._clock
        )
        self._names: dict[str, str] = {}
        for batch in batches(space.memories, _BATCH):
            stored = self._mesh.graph.store_many(
                AGENT, [{"text": said.text, "metadata": said.metadata} for said in batch]
            )
            for one, said in zip(stored, batch, strict=True):
                self._names.setdefault(one.id, said.id)

    def _clock(self) -> datetime:
        return datetime.fromisoformat(self._now)

    def ask(self, question: Question, *, all_ways: bool) -> Iterator[tuple[str, int, Filled]]:
        """Yield what each way has of the evidence within each budget."""
        self._now = question.at
        found = self._mesh.search(question.text, limit=_DEPTH, min_score=0.0, use_cache=False)
        every = [
            GraphHit(
                **{
                    name: getattr(hit, name)
                    for name in hit.__dataclass_fields__
                    if name != "relevant"
                }
            )
            for hit in found
        ]
        # The same without the least likely.
        hits = every[: len(self._mesh.search(question.text, limit=_DEPTH, use_cache=False))]
        same = Page(every, _BOUNDARY).text
        texts: dict[str, tuple[Sequence[GraphHit], Callable[[Sequence[GraphHit]], str]]] = {
            SAME: (hits, same), EVERY: (every, same),
            BARE: (hits, lambda some: "\n".join(hit.content for hit in some)),
        }  # fmt: skip
        packings = {PACKED: "relevance"}
        if all_ways:
            texts[FENCED], packings[DOCUMENT] = (
                (hits, self._mesh.format_for_model),
                "composite",
            )
        for name, packing in packings.items():
            for budget in BUDGETS:
                text = self._mesh.graph.context(
                    AGENT, question.text, max_tokens=budget, packing=packing
                )
                yield name, budget, self._filled(question, text.memories, text.tokens)
        for name, (some, text_of) in texts.items():
            for budget in BUDGETS:
                fitting = bisect_right(
                    range(1, len(some) + 1), budget, key=lambda n: self._count(text_of(some[:n]))
                )
                yield (
                    name,
                    budget,
                    self._filled(
                        question,
                        some[:fitting],
                        self._count(text_of(some[:fitting])) if fitting else 0,
                    ),
                )

    def _filled(self, question: Question, hits: Sequence[SearchResult], tokens: int) -> Filled:
        found = {self._names[hit.id] for hit in hits} & question.gold
        return Filled(found == question.gold, len(found) / len(question.gold), tokens)

    def close(self) -> None:
        self._mesh.close()


def measure(space: Space, vectors: Path | None) -> Results:
    """Return the results of one conversation."""
    results: Results = {}
    embedder = local(vectors)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        conversation = Conversation(Path(folder) / "context.db", space, embedder)
        for at, question in enumerate(space.questions):
            for way, budget, filled in conversation.ask(question, all_ways=at % _EVERY == 0):
                results.setdefault((way, budget), []).append(filled)
        conversation.close()
    print(
        f"{space.name}: {len(space.questions):,} questions",
        *_rows(table([results])),
        sep="\n",
        file=sys.stderr,
    )
    return results


def table(results: Sequence[Results]) -> dict[str, dict[str, list[float]]]:
    """Return by way and budget: the percentage of questions with all evidence, the percentage of
    evidence, the mean tokens."""
    found: dict[str, dict[str, list[float]]] = {}
    for way, budget in results[0]:
        every = [filled for one in results for filled in one[way, budget]]
        shares = (
            100 * sum(getattr(each, name) for each in every) / len(every)
            for name in ("complete", "part")
        )
        tokens = sum(each.tokens for each in every) / len(every)
        found.setdefault(way, {})[str(budget)] = [
            *(round(share, 1) for share in shares),
            round(tokens),
        ]
    return found


def ahead(results: Sequence[Results]) -> dict[str, dict[str, list[float]]]:
    """Return by way and budget the 95 % interval by which contexts have all evidence more often,
    by paired bootstrap."""
    found: dict[str, dict[str, list[float]]] = {}
    for way, budget in ((way, budget) for way in (SAME, EVERY, BARE) for budget in BUDGETS):
        ours, theirs = (
            [float(each.complete) for one in results for each in one[name, budget]]
            for name in (PACKED, way)
        )
        found.setdefault(way, {})[str(budget)] = [*interval(ours, theirs)]
    return found


def picture(found: dict[str, dict[str, list[float]]]) -> str:
    lines = [
        Line(way, [(budget / BUDGETS[-1], found[way][str(budget)][0] / 100) for budget in BUDGETS])
        for way in found
    ]
    return unit_chart(
        "Questions with all evidence in the text",
        lines,
        x=f"budget ÷ {BUDGETS[-1]:,} tokens",
        y="fraction",
    )


def _rows(found: dict[str, dict[str, list[float]]]) -> Iterator[str]:
    for way, by_budget in found.items():
        yield f"  {way:<30}" + "".join(
            f"  {budget}: {values}" for budget, values in by_budget.items()
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.context", description="How much evidence fits into a context"
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--vectors", type=Path, help="a file of vectors that an earlier run of bench.quality kept"
    )
    parser.add_argument(
        "--people", type=int, help="only the first conversations; nothing is written"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes, with a conversation each")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the result file")
    options = parser.parse_args()
    commit, spaces = (
        measured_at(),
        [space for space in locomo_turns(options.data) if space.questions],
    )
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        results = list(
            pool.map(partial(measure, vectors=options.vectors), spaces[: options.people])
        )
    parts = {
        "all": results,
        "conversations 1–5": results[:_CHOSEN_ON],
        "conversations 6–10": results[_CHOSEN_ON:],
    }
    tables = {
        part: {"ways": table(some), "ahead": ahead(some)} for part, some in parts.items() if some
    }
    for part, found in tables.items():
        print(
            part,
            *_rows(found["ways"]),
            "  95 % interval of the difference",
            *_rows(found["ahead"]),
            sep="\n",
        )
    if options.people is None:
        questions = sum(len(space.questions) for space in spaces)
        data = {
            "command": "python -m bench.context --data DIR",
            **commit,
            "questions": questions,
            "parts": tables,
        }
        (options.out / "context.json").write_text(
            json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        (options.out / "context.svg").write_text(picture(tables["all"]["ways"]), encoding="utf-8")


if __name__ == "__main__":
    main()
