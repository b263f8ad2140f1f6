"""Ask the questions of the data sets, of the memories that answer them and of others, and
collect the figures."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from bench.quality.measuring import FIGURES, figures, interval, mean
from bench.quality.nothing import SIZES, Mixed, ask_mixed, separation, speakers, swapped
from bench.quality.ours import Ours, Scored, opened
from bench.quality.plain import PLAIN, Plain
from bench.quality.reliability import reliability
from bench.quality.sets import Question, Space
from memory_mesh.core.ports import Embedder
from memory_mesh.core.search.ranker import min_scores

OURS, PRECISE, UNCUT = "ours", "ours, precise mode", "ours, min_score 0"
MODES = {OURS: "recall", PRECISE: "precise"}
_CHOSEN_ON = 5  # the first conversations, on which most settings were chosen
_OTHERS = "conversations 6–10"
_OPEN_AT_ONCE = 40  # people whose stores are open at a time
_EVERY_S = 10.0  # between two lines of progress
_TALK = 500  # memories of a conversation, roughly
_TURNS = "locomo"  # the set of the questions that nothing answers, and of the reliability

Measured = Mapping[str, Mapping[str, float]]  # of one question, by ranker


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionResult:
    """A question of one person, the figures of each ranker, and our best scores for it in other
    people's memories."""

    person: int
    question: Question
    measured: Measured
    ours: Scored
    wrong: Scored
    swapped: Scored


@dataclass(slots=True)
class Evaluation:
    """Everything that a run measures, as it goes into the result file."""

    embedder: Embedder
    sets: dict[str, Any] = field(default_factory=dict)
    nothing: dict[str, Any] = field(default_factory=dict)
    reliability: dict[str, Any] = field(default_factory=dict)

    def measure(self, name: str, spaces: Sequence[Space]) -> dict[str, Any]:
        """Measure one data set; LoCoMo's questions are also asked of the wrong conversations."""
        people = [space for space in spaces if space.questions]
        results = ask(name, people, self.embedder, elsewhere=name == _TURNS)
        parts = {part: _table(some) for part, some in _parts(name, results).items()}
        self.sets[name] = {"parts": parts, "memories": sum(len(space.memories) for space in spaces)}
        if name == _TURNS:
            self._add_nothing(results)
        return {"parts": parts}

    def measure_mixed(self, mixed: Mixed, sizes: Sequence[int] | None = None) -> None:
        """Ask unrelated questions of mixed memories."""
        rows, judged = ask_mixed(mixed, self.embedder, sizes or SIZES)
        self.nothing["mixed"] = rows
        self.reliability["mixed memories"] = reliability(judged)

    def _add_nothing(self, results: Sequence[QuestionResult]) -> None:
        parts = {"all": results, _OTHERS: [each for each in results if each.person >= _CHOSEN_ON]}
        for part, some in parts.items():
            if not some:
                continue
            right = [each.ours for each in some]
            self.nothing[part] = {
                "wrong conversation": separation(right, [each.wrong for each in some], _TALK),
                "wrong conversation, its names in the question": separation(
                    right, [each.swapped for each in some], _TALK
                ),
                "recall@5 kept": {
                    mode: _kept(some, ranker)
                    for mode, ranker in (("recall", OURS), ("precise", PRECISE))
                },
            }
        others = parts[_OTHERS] or results
        real = [(score, id_ in each.question.gold) for each in others for id_, score in each.ours]
        wrong = [(score, False) for each in others for _, score in each.swapped]
        self.reliability["own conversation"] = reliability(real)
        self.reliability["own, and swapped names"] = reliability([*real, *wrong])


def ask(
    name: str, people: Sequence[Space], embedder: Embedder, *, elsewhere: bool = False
) -> list[QuestionResult]:
    """Ask every question of its own memories and, with `elsewhere`, of those of the next person."""
    progress = _Progress(name, sum(len(space.questions) for space in people))
    results: list[QuestionResult] = []
    for at in range(0, len(people), _OPEN_AT_ONCE):
        some = people[at : at + _OPEN_AT_ONCE]
        print(
            f"{name}: storing {sum(len(space.memories) for space in some):,} memories",
            file=sys.stderr,
        )
        with opened(some, embedder) as meshes:
            for which, (space, ours) in enumerate(zip(some, meshes, strict=True)):
                plain, next_ = Plain(space.memories, embedder), (which + 1) % len(some)
                other = (some[next_], meshes[next_]) if elsewhere and len(some) > 1 else None
                for question in space.questions:
                    results.append(_measure(at + which, question, ours, plain, space, other))
                    progress.show(len(results))
    return results


def _measure(
    person: int, question: Question, ours: Ours, plain: Plain, space: Space,
    other: tuple[Space, Ours] | None
) -> QuestionResult:  # fmt: skip
    scored = ours.ranked(question)
    found = {**plain.ranked(question), **cut(scored, len(space.memories))}
    wrong: Scored = []
    renamed: Scored = []
    if other:
        wrong = other[1].ranked(question)
        renamed = other[1].ranked(swapped(question, speakers(space), speakers(other[0])))
    measured = {ranker: figures(ids, question.gold) for ranker, ids in found.items()}
    return QuestionResult(
        person=person,
        question=question,
        measured=measured,
        ours=scored,
        wrong=wrong,
        swapped=renamed,
    )


def cut(scored: Scored, documents: int) -> dict[str, list[str]]:
    """Return the ids that each of our modes returns of the scored ones."""
    least = min_scores([score for _, score in scored], documents)
    by_ranker = {**{ranker: least[mode] for ranker, mode in MODES.items()}, UNCUT: 0.0}
    return {
        ranker: [id_ for id_, score in scored if score >= min_score]
        for ranker, min_score in by_ranker.items()
    }


def _parts(name: str, results: Sequence[QuestionResult]) -> dict[str, list[Measured]]:
    parts = {"all": [each.measured for each in results]}
    if name.startswith("locomo"):
        parts[f"conversations 1–{_CHOSEN_ON}"] = [
            each.measured for each in results if each.person < _CHOSEN_ON
        ]
        parts[_OTHERS] = [each.measured for each in results if each.person >= _CHOSEN_ON]
    for kind in sorted({each.question.kind for each in results}):
        parts[kind] = [each.measured for each in results if each.question.kind == kind]
    return {part: some for part, some in parts.items() if some}


def _table(results: Sequence[Measured]) -> dict[str, Any]:
    rankers = {ranker: mean([one[ranker] for one in results]) for ranker in (*PLAIN, *MODES, UNCUT)}
    ahead = {}
    for figure in FIGURES:
        best = max(PLAIN, key=lambda ranker: rankers[ranker][figure])
        ahead[figure] = (
            best,
            *interval(
                [one[OURS][figure] for one in results], [one[best][figure] for one in results]
            ),
        )
    return {"questions": len(results), "rankers": rankers, "ahead": ahead}


def _best(scored: Scored) -> float:
    return max((score for _, score in scored), default=0.0)


def _kept(results: Sequence[QuestionResult], ranker: str) -> float:
    """Return the percentage of recall@5 that is left after a cut."""
    left, all_ = (
        sum(each.measured[name]["recall@5"] for each in results) for name in (ranker, UNCUT)
    )
    return round(100 * left / all_, 1) if all_ else 0.0


class _Progress:
    """Prints how many questions were asked, every few seconds and at the end."""

    def __init__(self, name: str, of: int) -> None:
        self._name, self._of, self._start, self._next = (
            name,
            of,
            monotonic(),
            monotonic() + _EVERY_S,
        )

    def show(self, asked: int) -> None:
        if (now := monotonic()) >= self._next or asked == self._of:
            self._next = now + _EVERY_S
            print(
                f"{self._name}: {asked:,} of {self._of:,} questions, {now - self._start:.0f} s",
                file=sys.stderr,
            )
