"""Measure recall at 1 to 10: which fraction of the evidence the first results contain.

    python -m bench.quality.curves --data DIR [--vectors FILE]

The questions are those of LoCoMo, asked of one memory for each turn: of ours, of the baselines, and
of each other store that is installed. It writes `bench/results/recall.json`; `tools/pictures.py`
draws it.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.commit import measured_at
from bench.peers import installed_versions
from bench.quality.comparing import RETRIEVAL, answers
from bench.quality.evaluating import OURS, cut
from bench.quality.measuring import recalls
from bench.quality.ours import opened
from bench.quality.plain import Plain
from bench.quality.report import RESULTS
from bench.quality.sets import SETS, Question, Space
from bench.quality.vectors import local
from memory_mesh.core.ports import Embedder

SET = "locomo"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.quality.curves", description="Recall at 1 to 10"
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--vectors", type=Path, help="a file that keeps vectors between runs")
    options = parser.parse_args()
    embedder = local(options.vectors)
    people = [space for space in SETS[SET](options.data) if space.questions]
    result = {
        "command": "python -m bench.quality.curves --data DIR",
        **measured_at(),
        "set": SET,
        "questions": sum(len(space.questions) for space in people),
        "curves": curves(people, embedder),
    }
    embedder.save()
    (RESULTS / "recall.json").write_text(
        json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def curves(people: Sequence[Space], embedder: Embedder) -> dict[str, list[float]]:
    """Return the mean recall of each ranker and store at 1, 2 and so on, in hundredths."""
    found: defaultdict[str, list[list[float]]] = defaultdict(list)
    with opened(people, embedder) as meshes:
        for space, ours in zip(people, meshes, strict=True):
            plain = Plain(space.memories, embedder)
            for question in space.questions:
                own = cut(ours.ranked(question), len(space.memories))[OURS]
                _count(found, question, {OURS: own, **plain.ranked(question)})
    for name, space in ((name, space) for name in _installed() for space in people):
        for question, ids in answers(RETRIEVAL[name][1], space, embedder):
            _count(found, question, {name: ids})
    return {
        name: [round(100 * sum(at) / len(at), 1) for at in zip(*each, strict=True)]
        for name, each in found.items()
    }


def _count(
    found: defaultdict[str, list[list[float]]],
    question: Question,
    ranked: Mapping[str, Sequence[str]],
) -> None:
    for name, ids in ranked.items():
        found[name].append(recalls(ids, question.gold))


def _installed() -> Iterator[str]:
    for name, (packages, _) in RETRIEVAL.items():
        if installed_versions(packages) is not None:
            yield name


if __name__ == "__main__":
    main()
