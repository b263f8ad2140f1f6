"""Teach the encoder token vectors, in the pass that gives the sentence vector.

    python -m bench.tune_encoder.tokens --prepared FILE --out DIR [--seconds 270] [--seeds 2]
        [--steps 900] [--teacher-steps 300] [--everyday 0.5] [--rate 1.4e-3] [--guard 20]

FILE is what `python -m bench.tune_encoder.prepare` wrote. A text gets a vector of 48 numbers for
each token, and as a query a weight for each; the score of a candidate is the weighted sum over the
query's tokens of the best match. The answer is to score higher than texts near to it, by as much as
the teachers say, and the sentence vectors of all texts are to stay, those of other languages and of
code too. Seeds differ in their batches only, so that what they learn can be
averaged. Within `--seconds` everything is done: a seed whose time is short makes fewer steps, and
its rate still falls to zero. Needs torch, and is made for a GPU. Writes seed-N.npz after each seed,
and encoder.npz, their average of rank 16 with `tokens.weight`, `weights.weight` and `weights.bias`;
prints how the start and the average rank the answers. To try it out on a CPU: prepare with
`--general 60 --every 20`, and `--batch 4 --steps 20 --teacher-steps 2 --seeds 2 --measure 40`.
"""

import argparse
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bench.train_reader.network import DELTA, WIDTH
from bench.tune_encoder.data import Query
from bench.tune_encoder.measuring import content, measure, token_scores
from bench.tune_encoder.network import Arrays, Table, Teacher, TokenEncoder, average
from bench.tune_encoder.prepared import Prepared, read
from bench.tune_encoder.teaching import Group, Lessons, Teachers, learn

NEGATIVES, NEAREST, GUARDED, RANK = 11, 40, 64, 16
HELD_OUT = 200  # general questions that measure
IN_BATCH, TAUGHT = 0.15, 1.0  # weights of the losses
TEACHERS_FRACTION = 0.1  # of the time, for each of the two teachers
MEASURING = 25.0  # seconds that are kept for it
_AT_ONCE = 8192  # texts or pairs


class FastTeachers(Teachers):
    """The teachers, and what they say about all texts of a question."""

    def __init__(
        self, base: Arrays, lessons: Lessons, table: Table, *, steps: int, seconds: float
    ) -> None:
        self._table = table
        super().__init__(base, lessons, steps=steps, device=table.device, seconds=seconds)

    def all_logits(self, queries: Sequence[Query]) -> dict[int, dict[int, float]]:
        """Return the logit of each text that may be in a group, by the places of the question and
        of the text."""
        found: dict[int, dict[int, float]] = {query.place: {} for query in queries}
        for number, reader in enumerate(self._readers):
            pairs = np.array([
                (query.place, place)
                for query in queries if self._teacher_of[query.author] == number
                for place in dict.fromkeys((*query.gold, *query.outdated, *query.negatives))
            ])  # fmt: skip
            pairs = pairs[np.argsort(self._table.lengths[pairs].sum(1), kind="stable")]
            for first in range(0, len(pairs), _AT_ONCE):
                questions, texts = pairs[first : first + _AT_ONCE].T.copy()
                with torch.no_grad():
                    logits = reader(self._table, questions, texts).tolist()
                for question, text, logit in zip(
                    questions.tolist(), texts.tolist(), logits, strict=True
                ):
                    found[question][text] = logit
        return found

    def _reader(self, base: Mapping[str, Any]) -> Teacher:
        return Teacher(base, np.load(DELTA), self._device)

    def _read(self, reader: Teacher, groups: Sequence[Group]) -> Tensor:
        questions = np.repeat([query.place for query, _ in groups], len(groups[0][1]))
        texts = np.array([place for _, places in groups for place in places])
        return reader(self._table, questions, texts).view(len(groups), -1)


def with_negatives(
    queries: Sequence[Query], encoder: TokenEncoder, table: Table
) -> Iterator[Query]:
    """Yield the questions with the texts that are nearest by sentence vectors."""
    used = set[int]().union(*(query.candidates for query in queries))
    places = np.array(sorted(used | {query.place for query in queries}))
    places = places[np.argsort(table.lengths[places], kind="stable")]
    vectors = torch.zeros(len(table.lengths), WIDTH, device=table.device)
    with torch.no_grad():
        for first in range(0, len(places), _AT_ONCE):
            part = places[first : first + _AT_ONCE]
            vectors[torch.from_numpy(part).to(table.device)] = encoder(table, part).sentences
    for query in queries:
        candidates = query.candidates
        similar = vectors[candidates[0] : candidates[-1] + 1] @ vectors[query.place]
        excluded = len(query.gold) + len(query.outdated) + len(query.neutral)
        nearest = similar.topk(min(NEAREST + excluded, len(similar))).indices
        yield query.with_negatives((nearest + candidates[0]).tolist(), NEAREST)


class Course:
    """What a seed learns from."""

    def __init__(
        self, prepared: Prepared, lessons: Lessons, table: Table, start: TokenEncoder, guard: float
    ) -> None:
        self.prepared, self.lessons, self.table = prepared, lessons, table
        self.function_words = torch.tensor(prepared.function_words, device=table.device)
        self._others, self._guard = prepared.guard, guard
        self._kept = _sentences(start, table)
        self.taught: Mapping[int, Mapping[int, float]] = {}

    def loss(self, encoder: TokenEncoder, rng: random.Random, count: int, part: float) -> Tensor:
        """Return the loss of a new batch."""
        queries = self.lessons.draw(rng, count, part)
        groups = [query.group(_negatives(query, rng), rng) for query in queries]
        places = np.concatenate([
            [query.place for query in queries], np.ravel(groups),
            rng.choices(self._others, k=GUARDED),
        ])  # fmt: skip
        encoded = encoder(self.table, places)
        asked, texts = encoded[:count], encoded[count:-GUARDED]
        # A store may leave function words out, so both ways are learnt.
        mask = content(texts, self.function_words) if rng.random() < 0.5 else texts.mask
        scale = encoder.scale()
        tokens = texts.tokens.unflatten(0, (count, -1))
        mask = mask.unflatten(0, (count, -1))
        scores = scale * token_scores(asked, tokens, mask)
        in_batch = scale * token_scores(asked, tokens[None, :, 0], mask[None, :, 0])
        in_batch = in_batch.masked_fill(self._also_right(queries, groups), -1e4)
        first = torch.zeros(count, dtype=torch.long, device=scores.device)
        taught = torch.tensor([
            [self.taught[query.place][place] for place in group]
            for query, group in zip(queries, groups, strict=True)
        ], device=scores.device)  # fmt: skip
        diverged = functional.kl_div(
            scores.log_softmax(-1), taught.log_softmax(-1), log_target=True, reduction="batchmean"
        )
        kept = self._kept[torch.from_numpy(places).to(scores.device)]
        return (
            functional.cross_entropy(scores, first)
            + IN_BATCH
            * functional.cross_entropy(in_batch, torch.arange(count, device=first.device))
            + TAUGHT * diverged
            + self._guard * (1 - (encoded.sentences * kept).sum(-1)).mean()
        )

    def _also_right(self, queries: Sequence[Query], groups: Sequence[Sequence[int]]) -> Tensor:
        """Return which answers of the other questions of a batch are not wrong for a question."""
        answers = [group[0] for group in groups]
        right = np.stack([np.isin(answers, [*query.gold, *query.neutral]) for query in queries])
        np.fill_diagonal(right, val=False)
        return torch.from_numpy(right).to(self.table.device)


def _sentences(encoder: TokenEncoder, table: Table) -> Tensor:
    """Return the sentence vectors of all texts."""
    order = np.argsort(table.lengths, kind="stable")
    parts = np.array_split(order, max(1, len(order) // _AT_ONCE))
    with torch.no_grad():
        vectors = torch.cat([encoder(table, part).sentences for part in parts])
        return vectors[torch.from_numpy(np.argsort(order)).to(table.device)]


def halved(change: Arrays) -> dict[str, Any]:
    """Return a change as it is shipped, in 16 bits."""
    return {
        name: value.astype(np.float16).reshape(-1) if name == "weights.weight"
        else value.astype(np.float16)
        for name, value in change.items()
    }  # fmt: skip


def main() -> None:
    given = _arguments()
    say = _clock()
    given.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    torch.backends.cuda.enable_cudnn_sdp(enabled=False)  # it plans anew for each length of texts
    prepared = read(given.prepared)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    table = Table(prepared.tokens, prepared.lengths, device)
    start = TokenEncoder(prepared.base, prepared.start, device)
    everyday = list(with_negatives(prepared.everyday, start, table))
    general = [query for query in with_negatives(prepared.general, start, table)
               if query.negatives]  # fmt: skip
    held_out = min(HELD_OUT, len(general) // 4)
    lessons = Lessons(texts=[], everyday=everyday, general=general[held_out:])
    course = Course(prepared, lessons, table, start, given.guard)
    say(f"{len(everyday)} everyday and {len(lessons.general)} general questions have negatives")
    teachers = FastTeachers(prepared.base, lessons, table, steps=given.teacher_steps,
                            seconds=TEACHERS_FRACTION * given.seconds)  # fmt: skip
    say(f"the teachers have learnt: {teachers.losses}")
    course.taught = teachers.all_logits([*lessons.everyday, *lessons.general])
    say("the teachers have read all pairs")
    changes: list[Arrays] = []
    for seed in range(given.seeds):
        left = given.seconds - MEASURING - say(f"seed {seed} begins")
        encoder = TokenEncoder(prepared.base, prepared.start, device)
        rng = random.Random(seed)  # noqa: S311
        loss = partial(course.loss, encoder, rng, given.batch, given.everyday)
        seconds = max(1.0, left / (given.seeds - seed))
        losses = learn(encoder, loss, given.steps, rate=given.rate, seconds=seconds)
        changes.append(encoder.delta())
        np.savez(given.out / f"seed-{seed}.npz", **halved(changes[-1]))
        np.savez(given.out / "encoder.npz", **halved(average(changes, RANK)))
        say(f"seed {seed}: steps and losses {losses}, sharpness {encoder.scale().item():.1f}")
    measured = [*prepared.measured, *(
        replace(query, candidates=[query.gold[0], *query.negatives], gold=query.gold[:1],
                labels=["general, held out"])
        for query in general[:held_out]
    )][:: given.measure]  # fmt: skip
    with np.load(given.out / "encoder.npz") as change:
        result = TokenEncoder(prepared.base, dict(change), device)
    for name, encoder in (("result", result), ("start", start)):
        measure(name, encoder, measured, table, course.function_words)
        say(f"{name} measured")


def _negatives(query: Query, rng: random.Random) -> list[int]:
    near = list(query.negatives)
    return rng.sample(near, NEGATIVES) if len(near) >= NEGATIVES else rng.choices(near, k=NEGATIVES)


def _clock() -> Callable[[str], float]:
    began = time.monotonic()

    def say(text: str) -> float:
        """Print a line with the seconds since the beginning, and return these."""
        seconds = time.monotonic() - began
        print(f"{seconds:.0f} s: {text}", flush=True)
        return seconds

    return say


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.tune_encoder.tokens", description="Teach the encoder token vectors"
    )
    for name in ("prepared", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name, default in {
        "seconds": 1e9, "seeds": 2, "steps": 900, "teacher-steps": 300, "batch": 64,
        "measure": 1, "everyday": 0.5, "rate": 1.4e-3, "guard": 20.0,
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()


if __name__ == "__main__":
    main()
