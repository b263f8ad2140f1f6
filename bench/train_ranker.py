"""Train the learnt ranker and write its weights into `core/search/weights.py`.

    python -m bench.train_ranker --data DIR [--vectors FILE] [--check]

Learnt on LongMemEval alone (MIT): the evidence sessions as they are and as two people would talk, and the haystacks of S lite.
LoCoMo's licence keeps what is learnt on it from being shipped; a few settings below were chosen by looking at its conversations
1–5. The same data give the same numbers. `--check` learns on half of the questions, tests on the other half, and writes nothing.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from bench.quality.fitting import Floats, listwise, logistic, newton
from bench.quality.lessons import Lessons, World
from bench.quality.measuring import figures, mean, told_apart
from bench.quality.pools import pool
from bench.quality.sets import longmemeval_s_lite
from bench.quality.vectors import KeptEmbedder, local
from memory_mesh.core.search import Signal, ranker
from memory_mesh.core.search.ranker import features, fraction_alone, log_odds, points, pool_features
from memory_mesh.core.search.weights import Line, Weights

TARGET = Path(__file__).parents[1] / "src" / "memory_mesh" / "core" / "search" / "weights.py"
MARKER = "# --- written by bench.train_ranker ---\n\n"

# Settings, chosen on LongMemEval's chats and on LoCoMo's conversations 1–5.
MIN_SCORES = {"recall": 0.004, "precise": 0.05}
FIXED = {"speaker": 0.9}  # in our talks only one of two people is ever asked about, so what a name is worth cannot be learnt
RIDGE = 1e-2
RANKED = {"talk": 4.0, "chat": 0.5}  # what the order is learnt on
TRUSTED = {"talk": 3.0, "chat": 1.0, "haystack": 1.0, "few": 1.0}  # what the chances are learnt on

# Not for the order: of the pool, or (question_before) the same for nearly all that we can learn from.
LEFT_OUT = frozenset({"by_vectors", "stranger", "question_before"})
# May count against a memory; everything else is a reason for it.
FREE = frozenset({
    "length", "long", "short", "question", "answer_keywords", "answer_vectors",
    "keywords_before_share", "keywords_behind_share", "vectors_before_share", "vectors_behind_share",
})  # fmt: skip

Table = Mapping[str, Signal]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A world's question as the ranker sees it."""

    kind: str
    away: bool
    number: int
    ids: Sequence[str]
    gold: frozenset[str]
    table: Table
    speakers: Sequence[str | None]

    @property
    def right(self) -> NDArray[np.bool_]:
        return np.array([id_ in self.gold for id_ in self.ids])


def main() -> None:
    parser = argparse.ArgumentParser(description="Teach the ranker")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--vectors", type=Path, help="a file that keeps vectors between runs")
    parser.add_argument("--check", action="store_true", help="learn on half of the questions and test on the other half")
    options = parser.parse_args()
    embedder = local(options.vectors)
    learnt = {}
    for name, by_vectors in (("BY_VECTORS", True), ("BY_KEYWORDS", False)):
        examples = list(_examples(options.data, embedder, by_vectors=by_vectors))
        if options.check:
            check(name, examples)
        learnt[name] = teach(examples)
    if not options.check:
        TARGET.write_text(written(learnt), encoding="utf-8")


def teach(examples: Sequence[Example]) -> Weights:
    """First the order, then how sure it makes us."""
    by_vectors = bool(examples[0].table["by_vectors"].any())
    names = [name for name in examples[0].table if name not in LEFT_OUT and (by_vectors or "vectors" not in name)]
    candidate = _order(examples, names)
    scored = [points(example.table, candidate) for example in examples]
    return Weights(candidate=candidate, odds=_line(examples, scored), **_in_pool(examples, scored, by_vectors=by_vectors))  # type: ignore[arg-type]


def _order(examples: Sequence[Example], names: Sequence[str]) -> dict[str, float]:
    chosen = [(example, _rivals(example)) for example in examples if example.kind in RANKED and example.right.any()]
    tables = [np.stack([example.table[name][rivals] for name in names], axis=1).astype(float) for example, rivals in chosen]
    found = listwise(
        tables,
        [example.right[rivals] for example, rivals in chosen],
        _shares([example for example, _ in chosen], RANKED),
        fixed_at=np.array([FIXED.get(name, np.nan) for name in names]),
        free=np.array([name in FREE for name in names]),
        ridge=RIDGE,
    )
    return {name: round(float(weight), 4) for name, weight in zip(names, found, strict=True) if abs(weight) > 5e-4}


def _rivals(example: Example) -> NDArray[np.bool_]:
    """Return the candidates to compare. In a talk only those of the speaker with the answer: it is always the same one."""
    if example.kind != "talk":
        return np.ones(len(example.ids), np.bool_)
    speakers = {speaker for speaker, right in zip(example.speakers, example.right, strict=True) if right}
    return np.array([speaker in speakers for speaker in example.speakers])


def _line(examples: Sequence[Example], scored: Sequence[Signal]) -> Line:
    """Calibrate the log odds on the questions whose answer is in the pool."""
    pairs = [(example, each) for example, each in zip(examples, scored, strict=True) if not example.away]
    rows = []
    for example, each in pairs:
        odds, alone = log_odds(each), fraction_alone(example.table)
        rows.append(np.column_stack((odds, alone * odds, np.full(len(odds), alone))))
    shares = _shares([example for example, _ in pairs], TRUSTED)
    weights = np.concatenate([np.full(len(row), share) for row, share in zip(rows, shares, strict=True)])
    right = np.concatenate([example.right for example, _ in pairs]).astype(float)
    slope, alone_slope, alone_bias, bias = (round(float(each), 4) for each in newton(np.concatenate(rows), right, weights))
    return Line(slope, bias, alone_slope, alone_bias)


def _in_pool(
    examples: Sequence[Example], scored: Sequence[Signal], *, by_vectors: bool
) -> dict[str, Mapping[str, float] | float]:
    """Learn whether the answer is in the pool."""
    pools = [pool_features(example.table, each) for example, each in zip(examples, scored, strict=True)]
    names = [name for name in pools[0] if by_vectors or "vectors" not in name]
    rows = np.array([[each[name] for name in names] for each in pools])
    away = np.array([example.away for example in examples])
    weights = _shares(examples, TRUSTED)
    weights = np.where(away, weights / weights[away].sum(), weights / weights[~away].sum())
    learnt, bias = logistic(rows, 1.0 - away, weights)
    return {"pool": {name: round(float(each), 4) for name, each in zip(names, learnt, strict=True)}, "pool_bias": round(bias, 4)}


def _shares(examples: Sequence[Example], heavy: Mapping[str, float]) -> Floats:
    """A kind weighs what it weighs, however many examples it has."""
    kinds = [(example.kind, example.away) for example in examples]
    counts = Counter(kinds)
    return np.array([heavy[kind[0]] / counts[kind] for kind in kinds])


def _examples(data: Path, embedder: KeptEmbedder, *, by_vectors: bool) -> Iterator[Example]:
    lessons = Lessons(data)
    for away in (False, True):
        kinds: Mapping[str, Iterable[World]] = {
            "chat": lessons.chat(away=away),
            "talk": lessons.talk(away=away),
            "few": lessons.few(away=away),
            "haystack": haystacks(data, away=away),
        }
        for kind, worlds in kinds.items():
            worlds = list(worlds)
            embedder.embed([said.text for world in worlds for said in world.memories])
            yield from (
                example for world in worlds if (example := _example(kind, world, embedder, away=away, by_vectors=by_vectors))
            )
            print(f"{kind}{', away' if away else ''}: {len(worlds):,} worlds", file=sys.stderr)
        embedder.save()


def _example(kind: str, world: World, embedder: KeptEmbedder, *, away: bool, by_vectors: bool) -> Example | None:
    found = pool(world, embedder, by_vectors=by_vectors)
    if not found.ids:
        return None
    speakers = {said.id: said.speaker for said in world.memories}
    return Example(
        kind=kind,
        away=away,
        number=world.number,
        ids=list(found.ids),
        gold=world.question.gold,
        table=features(found),
        speakers=[speakers[id_] for id_ in found.ids],
    )


def haystacks(data: Path, *, away: bool) -> Iterator[World]:
    """S lite's sessions; away is the haystack of a question further on, without what would answer this one."""
    spaces = [space for space in longmemeval_s_lite(data) if space.questions]
    order = {space.name: number for number, space in enumerate(spaces)}
    for number, space in enumerate(spaces):
        question = space.questions[0]
        if not away:
            yield World(memories=space.memories, question=question, number=order[space.name])
            continue
        others = spaces[(number + 37) % len(spaces)].memories
        memories = [said for said in others if said.id not in question.gold]
        unanswered = type(question)(text=question.text, gold=frozenset(), kind=question.kind, at=question.at)
        yield World(memories=memories, question=unanswered, number=order[space.name])


def check(name: str, examples: Sequence[Example]) -> None:
    """Half against half."""
    print(f"\n{name}: learnt on half of the questions, tested on the other half")
    tested = []
    for half in (0, 1):
        weights = teach([example for example in examples if example.number % 2 != half])
        tested += [(example, chances(example.table, weights)) for example in examples if example.number % 2 == half]
    for kind in TRUSTED:
        right = [(example, values) for example, values in tested if example.kind == kind and not example.away]
        wrong = [values.max() for example, values in tested if example.kind == kind and example.away]
        ranked = [[example.ids[at] for at in np.argsort(-values, kind="stable")] for example, values in right]
        means = mean([figures(ids, example.gold) for ids, (example, _) in zip(ranked, right, strict=True) if example.gold])
        auc = told_apart([float(values.max()) for _, values in right], [float(each) for each in wrong])
        print(f"{kind:10s} {means}  AUC right against away {auc}")
        print(f"{'':10s} predicted → observed: {reliability(right)}")


def reliability(tested: Sequence[tuple[Example, Signal]]) -> str:
    predicted = np.concatenate([values for _, values in tested])
    right = np.concatenate([example.right for example, _ in tested])
    place = np.digitize(predicted, [0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85])
    return "  ".join(
        f"{predicted[place == at].mean():.2f}→{right[place == at].mean():.2f}" for at in range(9) if (place == at).sum() > 20
    )


def chances(table: Table, weights: Weights) -> Signal:
    """Return what `ranker.scores` returns with other weights."""
    with patch.multiple(ranker, BY_VECTORS=weights, BY_KEYWORDS=weights):
        return ranker.scores(table)


def written(learnt: Mapping[str, Weights]) -> str:
    """Return the module of weights with new numbers below the marker."""
    head = TARGET.read_text(encoding="utf-8").partition(MARKER)[0] + MARKER
    return (
        head
        + f"MIN_SCORES = {json.dumps(MIN_SCORES)}\n"
        + "".join(f"\n{name} = {_shown(weights)}\n" for name, weights in learnt.items())
    )


def _shown(weights: Weights) -> str:
    def block(values: Mapping[str, float]) -> str:
        return "{\n" + "".join(f'        "{name}": {value},\n' for name, value in values.items()) + "    }"

    line = weights.odds
    return (
        "Weights(\n"
        f"    candidate={block(weights.candidate)},\n"
        f"    odds=Line(slope={line.slope}, bias={line.bias}, alone_slope={line.alone_slope}, alone_bias={line.alone_bias}),\n"
        f"    pool={block(weights.pool)},\n"
        f"    pool_bias={weights.pool_bias},\n"
        ")"
    )


if __name__ == "__main__":
    main()
