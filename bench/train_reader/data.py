"""The training data of the reader: passages as tokens, questions with their answers, and the
pairs that are read."""

import json
import lzma
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.train_reader.questions import made_questions

QUESTION, TURN, NEIGHBOUR = 48, 128, 32  # tokens
NEGATIVES, NEAREST = 11, 40
CLS, SEP = 101, 102
JOINED = 0.4  # the fraction of chat turns that get a second statement of the same speaker
# Cosine from which a statement of the same speaker may answer a question made by rules, too.
SAME_ANSWER = 0.6

Pair = tuple[list[int], list[int]]  # token ids, and the segment of each
Rows = Sequence[dict[str, Any]]
# Vectors of token lists, and the cosines of one of them with a range of others, as numbers that can
# be sorted.
Encode = Callable[[Sequence[str]], list[list[int]]]


@dataclass(slots=True)
class Question:
    """A question, the passages that answer it, and the nearest other ones."""

    source: str
    ids: list[int]
    answers: list[int]
    negatives: list[int]


class Vectors:
    """The vectors of passages and questions; what computes them is in `network`."""

    def nearest(self, question: int, first: int, last: int, count: int) -> list[int]:
        """Return the passages nearest to a question, within a range."""
        raise NotImplementedError

    def alike(self, passage: int, others: Sequence[int]) -> list[float]:
        """Return the cosines of a passage with others."""
        raise NotImplementedError


class Data:
    """All passages as tokens, and the questions with their negatives."""

    def __init__(
        self, folder: Path, encode: Encode, *, made: bool, joined: bool, without: Sequence[str] = ()
    ) -> None:
        documents = list(read_lines(folder / "documents.jsonl.xz"))
        self._joined = joined
        self.rows = [
            *read_lines(folder / "questions.jsonl.xz"),
            *(made_questions(documents, seed=0) if made else ()),
        ]
        self.rows = [row for row in self.rows if row["source"] not in without]
        self.starts, texts = [0], list[str]()
        self._previous: list[int | None] = []
        self._speaker: list[tuple[int, str] | None] = []  # with the number of the document
        others: dict[int, str] = {}  # turns that are not passages, by the passage behind them
        for number, document in enumerate(documents):
            start = self.starts[-1]
            for place, one in enumerate(document["passages"], start=start):
                texts.append(one["text"])
                before, speaker = one.get("previous"), one.get("speaker")
                self._previous.append(start + before if before is not None else None)
                self._speaker.append((number, speaker) if speaker else None)
                if before is None and one.get("previous_text"):
                    others[place] = one["previous_text"]
            self.starts.append(len(texts))
        self.tokens = encode(texts)
        self._before = dict(zip(others, encode(list(others.values())), strict=True))
        self.asked = encode([row["question"] for row in self.rows])
        self._prefix = {
            one: len(encode([f"{one[1]}:"])[0]) for one in dict.fromkeys(self._speaker) if one
        }
        self._turns: dict[tuple[int, str], list[int]] = defaultdict(list)
        for place, one in enumerate(self._speaker):
            if one and len(self.tokens[place]) <= 60:
                self._turns[one].append(place)

    def questions(self, vectors: Vectors) -> Iterator[Question]:
        """Yield the questions that have an answer and at least one negative."""
        for number, row in enumerate(self.rows):
            start, end = self.starts[row["document"]], self.starts[row["document"] + 1]
            first, last = row.get("within") or (0, end - start)
            answers = [start + at for at in row["answers"]]
            taken = {*answers, *(start + at for at in row.get("not_negative", ()))}
            near = vectors.nearest(
                number, start + first, min(start + last, end), NEAREST + len(taken)
            )
            negatives = [place for place in near if place not in taken][:NEAREST]
            if row["source"] == "made":
                negatives = self._surely_wrong(answers, negatives, vectors)
            if answers and negatives:
                yield Question(row["source"], self.asked[number], answers, negatives)

    def _surely_wrong(
        self, answers: list[int], negatives: list[int], vectors: Vectors
    ) -> list[int]:
        """Return the passages of other speakers, and those of the same one that are unlike the
        answer."""
        close = vectors.alike(answers[0], negatives)
        speaker = self._speaker[answers[0]]
        return [
            place
            for place, cosine in zip(negatives, close, strict=True)
            if self._speaker[place] != speaker or cosine < SAME_ANSWER
        ]

    def group(self, question: Question, rng: random.Random) -> list[Pair]:
        """Return an answer and its negatives as pairs. For half of the questions the turn before
        is left out of all pairs."""
        negatives = (
            question.negatives
            if len(question.negatives) >= NEGATIVES
            else question.negatives * NEGATIVES
        )
        chosen = [rng.choice(question.answers), *rng.sample(negatives, NEGATIVES)]
        previous = rng.random() < 0.5
        taken = set(question.answers)
        return [
            self.pair(
                question, place, previous=previous, rng=rng if self._joined else None, taken=taken
            )
            for place in chosen
        ]

    def pair(
        self,
        question: Question,
        place: int,
        *,
        previous: bool,
        rng: random.Random | None = None,
        taken: set[int] | None = None,
    ) -> Pair:
        """Return the tokens of a pair and their segments."""
        turn = self.tokens[place]
        speaker = self._speaker[place]
        if (
            rng
            and speaker
            and rng.random() < JOINED
            and len(turn) <= 60
            and len(self._turns[speaker]) > 4
        ):
            other = rng.choice(self._turns[speaker])
            if other != place and other not in (taken or ()):
                skipped = self._prefix[speaker]
                first, second = (place, other) if rng.random() < 0.5 else (other, place)
                turn = [*self.tokens[first], *self.tokens[second][skipped:]]
        before = list[int]()
        if previous:
            at = self._previous[place]
            before = self.tokens[at] if at is not None else self._before.get(place, [])
        return as_pair(question.ids, turn, before)


def as_pair(question: list[int], turn: list[int], previous: list[int]) -> Pair:
    """Return the input of the reader: the question, the memory, and the end of the turn before."""
    asked, turn, before = question[:QUESTION], turn[:TURN], previous[-NEIGHBOUR:]
    ids = [CLS, *asked, SEP, *turn, SEP]
    segments = [0] * (len(asked) + 2) + [1] * (len(turn) + 1)
    return ([*ids, *before, SEP], segments + [0] * (len(before) + 1)) if before else (ids, segments)


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
