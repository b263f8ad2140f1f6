"""Train the learnt ranker and write its weights into `core/search/weights.py`.

    python -m bench.train_ranker --data DIR [--vectors FILE] [--check]

Learnt on LongMemEval (MIT): the evidence sessions as they are and as two people would talk, and the
haystacks of S lite; and on the worlds of `choose` of bench.everyday, each alone and ten together
(the encoder knows those of `train` by heart). Questions of question_pairs serve only as questions
that no memory answers; NOTICE names their sources. What is learnt on LoCoMo may not be shipped, by
its licence; settings below were chosen by looking at its conversations 1–5. Its conversations 6–10
were in view too while about 20 variants of these were compared: the latest pool features, the
weight of questions with swapped names, the minimum scores of both modes, and what the calibration
curve is learnt on. The same data give the same numbers. `--check` learns on half of the questions,
tests on the other half, and writes nothing.
"""

import argparse
import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.everyday.worlds import CHANGED, read_worlds, together
from bench.everyday.worlds import World as EverydayWorld
from bench.quality.fitting import Floats, bounded, isotonic, listwise, logistic, newton
from bench.quality.lessons import AWAY, Lessons, World
from bench.quality.measuring import auc, figures, mean
from bench.quality.nothing import DATA
from bench.quality.pools import Pools
from bench.quality.sets import Question, lines, longmemeval_s_lite
from bench.quality.vectors import KeptEmbedder, local
from memory_mesh.core.model import batches
from memory_mesh.core.search import Signal, tokens
from memory_mesh.core.search.ranker import (
    FEATURES,
    ODDS,
    POOL_FEATURES,
    WEIGHTS,
    Features,
    Model,
    features,
    log_odds,
    pool_features,
)
from memory_mesh.core.search.weights import KINDS, Weight, Weights

Curve: TypeAlias = tuple[Sequence[float], Sequence[float]]  # scores, and what they become

TARGET = Path(__file__).parents[1] / "src" / "memory_mesh" / "core" / "search" / "weights.py"
MARKER = "# --- written by bench.train_ranker ---\n\n"

# Settings, chosen on LongMemEval's chats and on LoCoMo's conversations; the text above says on
# which.
MIN_EXPECTED = {"recall": 0.01, "precise": 0.33}  # right answers among the first ten
FRACTIONS = {"recall": 0.001, "precise": 0.05}  # of the best score, for each result
# In our talks only one of two people is ever asked about, so what a name is worth cannot be learnt.
FIXED = {"speaker": 0.9}
RIDGE = (1e-2, 2e-3)  # of weights, and of what a kind of pool adds to them
# What each is learnt on, and how much a kind of world counts: the order, and the chances if the
# answer is there and if it is not. `said` and `noted` are everyday worlds of chats and of notes.
# What changed counts less: it is a fourth of their questions.
RANKED = {
    "talk": 4.0, "chats": 1.0, "chat": 0.5, "haystack": 1.0, "said": 4.0, "said, changed": 0.4,
    "noted": 4.0, "noted, changed": 0.4,
}  # fmt: skip
TRUSTED = {
    "talk": 3.0, "chats": 1.0, "chat": 1.0, "haystack": 1.0, "few": 1.0, "said": 3.0,
    "said, changed": 1.0, "noted": 3.0, "noted, changed": 1.0, "terse": 2.0,
}  # fmt: skip
DOUBTED = {
    "gone": 1.0, "swapped": 4.0, "strangers": 0.5, "chat": 1.0, "haystack": 1.0, "few": 1.0,
    "unrelated": 3.0, "said": 0.2, "noted": 0.2, "asked in vain": 15.0, "terse": 2.0,
}  # fmt: skip
# The scores at which the calibration curve is learnt, and on what: real chats, all of which compete
# for each question.
KNOTS, CALIBRATED_ON = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0), "chats"
SHOWN = 10  # results of a question
_TEN = 10  # worlds
# Searches for words of a world; memories of a small store, and how often it is one.
_TERSE, _FEW, _HALF = 10, 6, 0.5
_WORD = re.compile(r"[^\W\d_]{4,}")
RIVALS = 150  # candidates that are compared with the right ones

# May count against a memory; everything else is a reason for it.
FREE = frozenset({
    "length", "long", "short", "question", "answer_keywords", "answer_vectors", "by_assistant",
    "general", "documents", "bias",
    *(f"{channel}_{place}_fraction_of_best"
      for channel in ("keywords", "vectors")
      for place in ("before", "behind")),
})  # fmt: skip
_ORDERED = [
    FEATURES.index(name) for name in ("vectors_z", "coverage_context_z", "keywords_context_z")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A world's question as the ranker sees it."""

    kind: str
    away: bool
    number: int
    ids: Sequence[str]
    gold: frozenset[str]
    features: Features
    speakers: Sequence[str | None]

    @property
    def right(self) -> NDArray[np.bool_]:
        return np.array([id_ in self.gold for id_ in self.ids])


def main() -> None:
    parser = argparse.ArgumentParser(description="Teach the ranker")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--vectors", type=Path, help="a file that keeps vectors between runs")
    parser.add_argument(
        "--check",
        action="store_true",
        help="learn on half of the questions and test on the other half",
    )
    options = parser.parse_args()
    pairs = list(_examples(options.data, local(options.vectors)))
    learnt = {}
    curve: Curve = (0.0, 1.0), (0.0, 1.0)
    for means, examples in zip(WEIGHTS, zip(*pairs, strict=True), strict=True):
        name = f"BY_{means.upper()}"
        used = [example for example in examples if example]
        if options.check:
            check(name, used)
        else:
            learnt[name] = teach(used)
            # By the first means, which most stores have.
            curve = curve if learnt.keys() > {name} else calibration(used)
    if not options.check:
        TARGET.write_text(written(learnt, curve), encoding="utf-8")


def teach(examples: Sequence[Example]) -> Weights:
    """First the order, then how sure it makes us."""
    used = {example.features.means for example in examples}
    means = next(means for means in WEIGHTS if means in used)
    ordered = Weights(candidate=_order(examples, means), odds={}, pool={})
    scored = [Model(ordered).points(example.features) for example in examples]
    return replace(
        ordered,
        odds=_line(examples, scored),
        pool=_in_pool(examples, scored, means),
    )


def _order(examples: Sequence[Example], means: str) -> dict[str, Weight]:
    names = _used(FEATURES, means)
    columns = [FEATURES.index(name) for name in names]
    chosen = [
        (example, _rivals(example))
        for example in examples
        if example.kind in RANKED and example.right.any()
    ]
    found = listwise(
        [example.features.rows[columns][:, rivals].T.astype(float) for example, rivals in chosen],
        [example.right[rivals] for example, rivals in chosen],
        _example_weights([example for example, _ in chosen], RANKED),
        kinds=_kinds([example for example, _ in chosen]),
        fixed_at=np.array([FIXED.get(name, np.nan) for name in names]),
        free=np.array([name in FREE for name in names]),
        ridge=RIDGE,
    )
    return _named(names, found)


def _used(names: Sequence[str], means: str) -> list[str]:
    """Return the features that a model of these means has."""
    missing = {"tokens": (), "vectors": ("tokens",), "keywords": ("tokens", "vectors")}[means]
    return [
        name for name in names if name != "stranger" and not any(part in name for part in missing)
    ]


def _named(names: Sequence[str], found: Floats) -> dict[str, Weight]:
    free = np.array([name in FREE for name in names])
    rounded = bounded(found.round(4).ravel(), free).reshape(found.shape).T
    weights = {
        name: tuple(round(float(each), 5) + 0.0 for each in row)
        for name, row in zip(names, rounded, strict=True)
    }
    return {name: weight for name, weight in weights.items() if any(weight)}  # type: ignore[misc]


def _kinds(examples: Sequence[Example]) -> Floats:
    return np.array([example.features.kinds[1:] for example in examples], np.float64)


def _rivals(example: Example) -> NDArray[np.intp]:
    """Return the right candidates and the best of the others. In a talk only those of the
    speaker with the answer: it is always the same one."""
    right = example.right
    order = np.argsort(-example.features.rows[_ORDERED].sum(axis=0), kind="stable")
    if example.kind == "talk":
        speakers = {
            speaker for speaker, is_right in zip(example.speakers, right, strict=True) if is_right
        }
        order = order[np.array([speaker in speakers for speaker in example.speakers])[order]]
    return np.unique(np.concatenate((right.nonzero()[0], order[:RIVALS])))


def _line(examples: Sequence[Example], scored: Sequence[Signal]) -> dict[str, Weight]:
    """Calibrate the log odds on the questions whose answer is in the pool."""
    pairs = [
        (example, each)
        for example, each in zip(examples, scored, strict=True)
        if not example.away and example.kind in TRUSTED
    ]
    sizes = [len(each) for _, each in pairs]
    kinds = np.repeat(_kinds([example for example, _ in pairs]), sizes, axis=0)
    odds = np.concatenate([log_odds(each) for _, each in pairs])
    shares = np.repeat(_example_weights([example for example, _ in pairs], TRUSTED), sizes)
    right = np.concatenate([example.right for example, _ in pairs]).astype(float)
    *found, bias = newton(np.column_stack((odds, odds[:, None] * kinds, kinds)), right, shares)
    slopes, biases = found[: 1 + len(KINDS)], [bias, *found[1 + len(KINDS) :]]
    return _named(ODDS, np.array([slopes, biases]).T)


def _in_pool(
    examples: Sequence[Example], scored: Sequence[Signal], means: str
) -> dict[str, Weight]:
    """Learn whether the answer is in the pool."""
    names = _used(POOL_FEATURES, means)
    columns = [POOL_FEATURES.index(name) for name in names]
    pairs = [
        (example, each)
        for example, each in zip(examples, scored, strict=True)
        if example.away or example.kind in TRUSTED
    ]
    rows = np.array(
        [pool_features(example.features, each)[columns] for example, each in pairs], np.float64
    )
    used = [example for example, _ in pairs]
    away = np.array([example.away for example in used])
    weights = np.where(away, _example_weights(used, DOUBTED), _example_weights(used, TRUSTED))
    weights = np.where(away, weights / weights[away].sum(), weights / weights[~away].sum())
    free = np.array([name in FREE for name in names])
    return _named(names, logistic(rows, 1.0 - away, weights, kinds=_kinds(used), free=free))


def _example_weights(examples: Sequence[Example], heavy: Mapping[str, float]) -> Floats:
    """Return the weight of each example: a kind weighs the same, however many examples it has."""
    kinds = [(example.kind, example.away) for example in examples]
    counts = Counter(kinds)
    return np.array([heavy.get(kind[0], 0.0) / counts[kind] for kind in kinds])


def _examples(data: Path, embedder: KeptEmbedder) -> Iterator[Sequence[Example | None]]:
    """Yield each world's example by each of the means."""
    lessons, pools = Lessons(data), Pools(embedder)
    there: dict[str, Iterable[World]] = {
        "chats": lessons.chats(data), "chat": lessons.chat(every=3), "talk": lessons.talk(),
        "few": lessons.few(), "haystack": haystacks(data, away=False), **everyday(away=False),
        "terse": terse(away=False),
    }  # fmt: skip
    away: dict[str, Iterable[World]] = {
        **{name: lessons.talk(away=name) for name in AWAY},
        "chat": lessons.chat(away=True, every=3), "few": lessons.few(away=True),
        "haystack": haystacks(data, away=True), "unrelated": lessons.unrelated(data),
        **everyday(away=True), "terse": terse(away=True),
        "asked in vain": in_vain([*lessons.unrelated_questions(data), *general_questions()]),
    }  # fmt: skip
    for is_away, kinds in ((False, there), (True, away)):
        for kind, worlds in kinds.items():
            for world in worlds:
                yield [_example(kind, world, pools, means, away=is_away) for means in WEIGHTS]
            print(f"{kind}{', away' if is_away else ''}", file=sys.stderr)
            embedder.save()


def _example(kind: str, world: World, pools: Pools, means: str, *, away: bool) -> Example | None:
    found = pools.of(world, means)
    if not found.ids:
        return None
    speakers = {said.id: said.speaker for said in world.memories}
    return Example(
        kind=kind,
        away=away,
        number=world.number,
        ids=list(found.ids),
        gold=world.question.gold,
        features=features(found),
        speakers=[speakers[id_] for id_ in found.ids],
    )


def haystacks(data: Path, *, away: bool) -> Iterator[World]:
    """S lite's sessions; away is the haystack of a question further on, without what would
    answer this one."""
    spaces = [space for space in longmemeval_s_lite(data) if space.questions]
    order = {space.name: number for number, space in enumerate(spaces)}
    for number, space in enumerate(spaces):
        question = space.questions[0]
        if not away:
            yield World(memories=space.memories, question=question, number=order[space.name])
            continue
        others = spaces[(number + 37) % len(spaces)].memories
        memories = [said for said in others if said.id not in question.gold]
        unanswered = type(question)(
            text=question.text, gold=frozenset(), kind=question.kind, at=question.at
        )
        yield World(memories=memories, question=unanswered, number=order[space.name])


def everyday(*, away: bool) -> dict[str, list[World]]:
    """Return the everyday questions by kind, each asked of its world and of ten worlds together;
    away are those without an answer, asked of their own world only."""
    found: dict[str, list[World]] = {}
    for space in read_worlds(["choose"]) if away else everyday_stores():
        for question in space.questions:
            if bool(question.gold) is not away:
                kind = ("said" if space.is_chat else "noted") + (
                    ", changed" if question.kind in CHANGED else ""
                )
                number = zlib.crc32(question.text.encode())
                found.setdefault(kind, []).append(
                    World(memories=space.memories, question=question, number=number)
                )
    return found


def general_questions() -> list[str]:
    """Return what anybody could ask of anybody, in the words of one author; `unrelated.jsonl`,
    which measures, is by others."""
    return [row["text"] for row in lines(DATA / "general.jsonl")]


def everyday_stores() -> list[EverydayWorld]:
    """Return the worlds, and those of one form, chats or notes, ten in one store: an answer must
    not follow from the size."""
    alone = read_worlds(["choose"])
    forms = [[world for world in alone if world.is_chat is form] for form in (True, False)]
    return [*alone, *(together(some, "ten") for form in forms for some in batches(form, _TEN))]


def terse(*, away: bool) -> Iterator[World]:
    """Search for one or two words of a memory, among all of its world or a few of them: whatever
    has them is right. Away are words of another world. Such a search is no question, and every
    word of it counts."""
    draw = Random(f"terse {away}")  # noqa: S311  (training data, not a secret)
    spaces = read_worlds(["choose"])
    for space, other in zip(spaces, [*spaces[1:], spaces[0]], strict=True):
        known = Counter(token for said in space.memories for token in set(tokens(said.text)))
        for said in draw.sample((other if away else space).memories, _TERSE):
            words = [
                word
                for word in _WORD.findall(said.text)
                if tokens(word) and away is not any(known[each] for each in tokens(word))
            ]
            if not words:
                continue
            text = " ".join(draw.sample(words, min(len(words), draw.randint(1, 2))))
            wanted = {*tokens(text)}
            few = (
                draw.sample(space.memories, draw.randint(1, _FEW))
                if draw.random() < _HALF
                else space.memories
            )
            memories = few if away or said in few else [*few, said]
            gold = frozenset(each.id for each in memories if wanted <= {*tokens(each.text)})
            question = Question(text=text, gold=gold, kind="terse", at=space.questions[-1].at)
            yield World(memories=memories, question=question, number=zlib.crc32(text.encode()))


def in_vain(texts: Sequence[str]) -> Iterator[World]:
    """Ask everyday worlds questions that have nothing to do with them, each question of a world
    and of ten together."""
    spaces = everyday_stores()
    sizes = [[space for space in spaces if (space.name == "ten") is many] for many in (False, True)]
    for space, number, of in (
        (space, number, len(some)) for some in sizes for number, space in enumerate(some)
    ):
        at = max(question.at for question in space.questions)
        for text in texts[number::of]:
            question = Question(text=text, gold=frozenset(), kind="unrelated", at=at)
            yield World(
                memories=space.memories, question=question, number=zlib.crc32(text.encode())
            )


def check(name: str, examples: Sequence[Example]) -> None:
    """Half against half."""
    print(f"\n{name}: learnt on half of the questions, tested on the other half")
    tested = list(_tested(examples))
    wrong = {
        kind: [
            float(values.max())
            for example, values in tested
            if example.kind == kind and example.away
        ]
        for kind in DOUBTED
    }
    for kind in dict.fromkeys((*RANKED, *TRUSTED)):
        right = [
            (example, values)
            for example, values in tested
            if example.kind == kind and not example.away
        ]
        ranked = [
            [example.ids[at] for at in np.argsort(-values, kind="stable")]
            for example, values in right
        ]
        means = mean(
            [
                figures(ids, example.gold)
                for ids, (example, _) in zip(ranked, right, strict=True)
                if example.gold
            ]
        )
        apart = {
            each: auc([float(values.max()) for _, values in right], scores)
            for each, scores in wrong.items()
        }
        print(f"{kind:10s} {means}  AUC right against away {apart}")
        print(f"{'':10s} predicted → observed: {reliability(right)}")


def reliability(tested: Sequence[tuple[Example, Signal]]) -> str:
    predicted = np.concatenate([values for _, values in tested])
    right = np.concatenate([example.right for example, _ in tested])
    place = np.digitize(predicted, [0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85])
    return "  ".join(
        f"{predicted[place == at].mean():.2f}→{right[place == at].mean():.2f}"
        for at in range(9)
        if (place == at).sum() > 20
    )


def calibration(examples: Sequence[Example]) -> Curve:
    """Learn on half of the questions, and return how often the results of the other half are
    right, by score."""
    judged = [
        (score, example.ids[at] in example.gold)
        for example, values in _tested(examples)
        if example.kind == CALIBRATED_ON and not example.away
        for at, score in zip(
            np.argsort(-values, kind="stable")[:SHOWN],
            -np.sort(-values, kind="stable")[:SHOWN],
            strict=True,
        )
    ]
    scores, fractions = isotonic(
        *(np.array(each, np.float64) for each in zip(*judged, strict=True))
    )
    near = [np.abs(scores - knot) <= max(0.02, 0.15 * knot) for knot in KNOTS]
    found = [
        float(fractions[each].mean()) if each.any() else knot
        for knot, each in zip(KNOTS, near, strict=True)
    ]
    return KNOTS, (0.0, *(round(each, 3) for each in np.maximum.accumulate(found[1:]).tolist()))


def _tested(examples: Sequence[Example]) -> Iterator[tuple[Example, Signal]]:
    """Yield each example with its scores by a model of the other half of the questions."""
    for half in (0, 1):
        model = Model(teach([example for example in examples if example.number % 2 != half]))
        for example in (example for example in examples if example.number % 2 == half):
            yield example, model.scores(example.features, calibrated=False)


def written(learnt: Mapping[str, Weights], curve: Curve) -> str:
    """Return the module of weights with new numbers below the marker."""
    head = TARGET.read_text(encoding="utf-8").partition(MARKER)[0] + MARKER
    least, parts = (json.dumps(each) for each in (MIN_EXPECTED, FRACTIONS))
    models = "".join(f"\n{name} = {_shown(weights)}\n" for name, weights in learnt.items())
    knots = "".join(f"    {each},\n" for each in curve)
    return f"{head}MIN_EXPECTED = {least}\nFRACTIONS = {parts}\nCALIBRATION = (\n{knots})\n{models}"


def _shown(weights: Weights) -> str:
    def block(values: Mapping[str, Weight]) -> str:
        return (
            "{\n"
            + "".join(f'        "{name}": {value},\n' for name, value in values.items())
            + "    }"
        )

    parts = {"candidate": weights.candidate, "odds": weights.odds, "pool": weights.pool}
    return (
        "Weights(\n"
        + "".join(f"    {name}={block(values)},\n" for name, values in parts.items())
        + ")"
    )


if __name__ == "__main__":
    main()
