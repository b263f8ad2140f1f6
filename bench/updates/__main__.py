"""Measure what changed.

    python -m bench.updates [--vectors FILE] [--out FOLDER]

Stores the memory of bench/updates/among.jsonl: what was the case first, then the other memories,
then what is new. Asks its questions with and without the judge of pairs, and of plain BM25 and
cosine. Counts how often the memory that answers is first and an outdated one stands above it, which
pairs that both hold were taken for a change, and what comparing costs. The ten worst mistakes are
kept. FILE keeps vectors between runs; the result is written to FOLDER.
"""

import argparse
import json
import platform
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.commit import measured_at
from bench.everyday.measuring import judged, stored
from bench.everyday.worlds import World
from bench.quality.plain import PLAIN, Plain
from bench.quality.sets import Question, Said
from bench.quality.vectors import KeptEmbedder, local
from memory_mesh.core.claims.updates import MAY_UPDATE
from memory_mesh.core.model import Kind, Link

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results"
LIMIT, WORST = 10, 10
WITH, WITHOUT = "ours", "ours, without the judge"
_BEGIN = datetime(2025, 9, 1, tzinfo=UTC)
_RIGHT = {"said": "newer", "implied": "newer", "ended": "newer", "past": "older"}

Pairs = Mapping[tuple[str, str], str]  # the kind by the texts of the older and the newer memory


def read(file: Path = HERE / "among.jsonl") -> tuple[World, Pairs]:
    """Return the memory and its questions, and the kinds of its pairs. The id of a memory is its
    text."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    texts = [row[name] for name in ("older", "text", "newer") for row in rows if name in row]
    times = ((_BEGIN + timedelta(days=day)).isoformat() for day in range(len(rows) * 3))
    memories = [
        Said(id=text, text=text, at=at)
        for text, at in zip(dict.fromkeys(texts), times, strict=False)
    ]
    asked = (_BEGIN + timedelta(days=len(memories))).isoformat()
    pairs = [row for row in rows if "older" in row]
    questions = [Question(text=row["question"], kind=row["kind"], at=asked, **_answers(row))
                 for row in pairs]  # fmt: skip
    world = World(name="among", memories=memories, questions=questions, about="", author="among",
                  area="private", language="en", is_chat=False)  # fmt: skip
    return world, {(row["older"], row["newer"]): row["kind"] for row in pairs}


def _answers(row: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """Return the memories that answer the question of a pair, and those that are outdated."""
    right = _RIGHT.get(row["kind"]) or row["answer"]
    if right == "both":
        return {"gold": frozenset((row["older"], row["newer"]))}
    wrong = "older" if right == "newer" else "newer"
    stale = frozenset() if row["kind"] == "both" else frozenset((row[wrong],))
    return {"gold": frozenset((row[right],)), "stale": stale}


def measure(world: World, pairs: Pairs, embedder: KeptEmbedder) -> dict[str, Any]:
    """Return the figures of each way to search, the links, the costs and the worst mistakes."""
    embedder.embed(
        [*(said.text for said in world.memories), *(each.text for each in world.questions)]
    )
    plain, now = Plain(world.memories, embedder), [world.questions[0].at]
    found = {ranker: [plain.ranked(each)[ranker] for each in world.questions] for ranker in PLAIN}
    links, seconds = list[Link](), 0.0
    for name, judge in ((WITHOUT, "off"), (WITH, "local")):
        began = time.process_time()
        with stored(world, embedder, now, update_judge=judge) as (mesh, ids):
            seconds = time.process_time() - began - seconds  # what the judge adds
            found[name] = [
                [ids[one.id] for one in mesh.search(each.text, limit=LIMIT, use_cache=False)]
                for each in world.questions
            ]
            links = [Link.of(row) for row in mesh._context().store.find(Kind.LINK)]
            ends = [(ids[link.target], ids[link.ref]) for link in links]
    linked = dict(zip(ends, links, strict=True))
    return {
        "memories": len(world.memories),
        "rankers": {name: _counts(world.questions, some) for name, some in found.items()},
        "links": _linked(pairs, linked, len(world.memories)),
        "judge_ms_of_cpu_a_memory": round(1000 * seconds / len(world.memories), 1),
        "worst": _worst(world.questions, found[WITH], pairs, linked),
    }


def _counts(questions: Sequence[Question], found: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return for each kind of question how many were asked, and how often what was the case."""
    table: dict[str, dict[str, int]] = {}
    for question, ids in zip(questions, found, strict=True):
        row = table.setdefault(question.kind, {"questions": 0})
        row["questions"] += 1
        for name, is_so in judged(question, ids).items():
            row[name] = row.get(name, 0) + is_so
    return table


def _linked(pairs: Pairs, linked: Mapping[tuple[str, str], Link], memories: int) -> dict[str, Any]:
    """Return how many pairs of each kind have a link that people see, and one that is only
    possible; and how many other links there are for 1,000 memories."""
    kinds = {
        kind: {"pairs": 0, "likely": 0, "possible": 0} for kind in dict.fromkeys(pairs.values())
    }
    for two, kind in pairs.items():
        kinds[kind]["pairs"] += 1
        if link := linked.get(two):
            kinds[kind]["possible" if link.link_type == MAY_UPDATE else "likely"] += 1
    others = [link for two, link in linked.items() if two not in pairs]
    likely = sum(link.link_type != MAY_UPDATE for link in others)
    return {"kinds": kinds, "other likely links per 1,000": round(1000 * likely / memories, 1),
            "other possible links per 1,000":
                round(1000 * (len(others) - likely) / memories, 1)}  # fmt: skip


def _worst(
    questions: Sequence[Question], found: Sequence[Sequence[str]], pairs: Pairs,
    linked: Mapping[tuple[str, str], Link],
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the links that are wrong, most likely first, and the questions for which an outdated
    memory is first."""
    wrong = sorted(
        (two for two in linked if pairs.get(two, "both") == "both"),
        key=lambda two: -(linked[two].similarity or 0.0),
    )
    links = [
        {"link": linked[two].link_type, "probability": linked[two].similarity, "older": two[0],
         "newer": two[1]}
        for two in wrong
    ]  # fmt: skip
    missed = [
        {"question": question.text, "kind": question.kind, "first": ids[0],
         "right": sorted(question.gold)[0]}
        for question, ids in zip(questions, found, strict=True)
        if ids and ids[0] in question.stale
    ]  # fmt: skip
    return [*links[: WORST // 2], *missed[: WORST // 2]]


def show(result: Mapping[str, Any]) -> None:
    """Print the figures."""
    for name, table in result["rankers"].items():
        print(name)
        for kind, row in table.items():
            shares = ", ".join(f"{what} {count}" for what, count in row.items())
            print(f"  {kind}: {shares}")
    print(json.dumps(result["links"], indent=1))
    print(f"{result['judge_ms_of_cpu_a_memory']} ms of CPU a memory for the judge")
    for one in result["worst"]:
        print(json.dumps(one, ensure_ascii=False))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.updates", description="What changed")
    parser.add_argument("--vectors", type=Path, help="a file that keeps vectors between runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the result file")
    given = parser.parse_args()
    embedder = local(given.vectors)
    result = measure(*read(), embedder)
    embedder.save()
    show(result)
    head = {"made_by": "python -m bench.updates", "python": platform.python_version()}
    (given.out / "updates.json").write_text(
        json.dumps({**head, **measured_at(), **result}, indent=1, ensure_ascii=False) + "\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
