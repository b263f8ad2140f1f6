"""The texts that the encoder learns from and is measured with, and the questions about them."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from bench.everyday.worlds import CHANGED, read_worlds
from bench.quality.sets import Question, Space, locomo_turns
from bench.train_reader.data import read_lines

QUERY_TOKENS, TEXT_TOKENS, CHARACTERS = 62, 126, 600
# How many questions of each source of question_pairs are used, and from how many documents of the
# largest ones.
QUOTAS = {
    "persona_chat": 6000, "longmemeval_oracle": 470, "qmsum": 200, "schema_guided_dialogue": 622,
    "nq": 1200, "strategyqa": 800, "qed": 300, "squad": 3500,
}  # fmt: skip
MAX_DOCUMENTS = {"persona_chat": 180, "qmsum": 27}
OUTDATED = 0.7  # how often an outdated memory is among the negatives, where there is one

Tokens = list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question, and the places of the texts that it is compared with. Only everyday questions
    have an author."""

    tokens: Tokens
    candidates: Sequence[int]
    gold: Sequence[int]
    outdated: Sequence[int] = ()
    neutral: Sequence[int] = ()  # neither answers nor negatives
    negatives: Sequence[int] = ()  # nearest first
    author: str = ""
    labels: Sequence[str] = ()  # under which it is counted
    place: int = -1  # of its own tokens, if they are among the texts

    def with_negatives(self, ranked: Iterable[int], count: int) -> "Query":
        """Return the question with the first candidates that are wrong and were never right."""
        excluded = {*self.gold, *self.outdated, *self.neutral}
        return replace(
            self,
            negatives=list(islice((place for place in ranked if place not in excluded), count)),
        )

    def group(self, negatives: list[int], rng: random.Random) -> list[int]:
        """Return an answer and negatives; the first of them is often replaced by an outdated
        memory."""
        if self.outdated and rng.random() < OUTDATED:
            negatives = [rng.choice(self.outdated), *negatives[1:]]
        return [rng.choice(self.gold), *negatives]


class Corpus:
    """All texts as tokens, and the questions with an answer, by where they come from; with
    `every`, of one world in so many."""

    def __init__(self, tokenizer: Any, every: int) -> None:
        self._tokenizer, self._every = tokenizer, every
        self.texts: list[Tokens] = []

    def everyday(self, split: str) -> Iterator[Query]:
        """Yield the questions of the worlds of a split."""
        for world in read_worlds([split])[:: self._every]:
            for question, query in self._of_space(world):
                labels = [f"{split}, {name}" for name in _labels(question.kind, world.language)]
                yield replace(query, author=world.author, labels=labels)

    def locomo(self, folder: Path) -> Iterator[Query]:
        """Yield the questions of LoCoMo, if the folder has it."""
        for space in locomo_turns(folder)[:: self._every] if (folder / "locomo").exists() else ():
            yield from (
                replace(query, labels=["LoCoMo"])
                for each, query in self._of_space(space)
                if each.kind != "adversarial"
            )

    def general(self, folder: Path, count: int) -> Iterator[Query]:
        """Yield questions of question_pairs, in a random order."""
        documents = list(read_lines(folder / "documents.jsonl.xz"))
        rows = list(islice(_chosen(list(read_lines(folder / "questions.jsonl.xz"))), count))
        places = {
            number: self._add(
                [passage["text"][:CHARACTERS] for passage in documents[number]["passages"]]
            )
            for number in dict.fromkeys(row["document"] for row in rows)
        }
        for row, tokens in zip(
            rows, self._tokens([row["question"] for row in rows], QUERY_TOKENS), strict=True
        ):
            document = places[row["document"]]
            first, last = row.get("within") or (0, len(document))
            gold, neutral = (
                [document[at] for at in row.get(name, ())] for name in ("answers", "not_negative")
            )
            yield Query(tokens=tokens, candidates=document[first:last], gold=gold, neutral=neutral)

    def _of_space(self, space: Space) -> Iterator[tuple[Question, Query]]:
        candidates = self._add([memory.text for memory in space.memories])
        places = {
            memory.id: place for memory, place in zip(space.memories, candidates, strict=True)
        }
        questions = [question for question in space.questions if question.gold]
        for question, tokens in zip(
            questions, self._tokens([each.text for each in questions], QUERY_TOKENS), strict=True
        ):
            gold, outdated = (
                sorted(places[id_] for id_ in ids) for ids in (question.gold, question.stale)
            )
            yield (
                question,
                Query(tokens=tokens, candidates=candidates, gold=gold, outdated=outdated),
            )

    def _add(self, texts: Sequence[str]) -> range:
        start = len(self.texts)
        self.texts += self._tokens(texts, TEXT_TOKENS)
        return range(start, len(self.texts))

    def _tokens(self, texts: Sequence[str], count: int) -> list[Tokens]:
        return [
            each.ids[:count]
            for each in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        ]


def _labels(kind: str, language: str) -> Iterator[str]:
    unchanged = "English without change" if language == "en" else "other languages without change"
    yield "changed" if kind in CHANGED else unchanged
    if language == "en" and kind in ("paraphrase", "inference"):
        yield f"English {kind}"


def _chosen(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield questions in a random order, until the quotas of their sources are used up."""
    random.Random(1).shuffle(rows)  # noqa: S311
    counts, documents = Counter[str](), defaultdict[str, set[int]](set)
    for row in rows:
        source, used = row["source"], documents[row["source"]]
        if row["document"] not in used and len(used) == MAX_DOCUMENTS.get(source):
            continue
        counts[source] += 1
        if counts[source] <= QUOTAS.get(source, 0):
            used.add(row["document"])
            yield row
