"""How the encoder and its teachers learn. A teacher is the shipped reader, which reads question and
text together, tuned further.

There are two teachers. Each learns on the questions of one half of the authors and teaches those of
the other half, so that none has learnt the answers that it scores. General questions are taught by
the last one.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.train_reader.__main__ import logits_of
from bench.train_reader.data import as_pair
from bench.train_reader.network import DELTA, Reader
from bench.tune_encoder.data import Query, Tokens

BATCH, EVERYDAY, NEGATIVES = 24, 0.75, 11
RATE, WARM_UP = 5e-4, 0.08
_RANK = 8  # of the shipped change

Group = tuple[Query, Sequence[int]]  # a question and places of texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Lessons:
    """The texts, and the questions that are learnt."""

    texts: Sequence[Tokens]
    everyday: Sequence[Query]
    general: Sequence[Query]

    def draw(self, rng: random.Random, count: int, everyday: float) -> list[Query]:
        """Return the questions of a batch, a fraction of them of everyday memory."""
        part = int(count * everyday)
        return rng.sample(self.everyday, part) + rng.sample(self.general, count - part)


class Teachers:
    """Two readers, and the authors that each of them teaches."""

    def __init__(
        self, base: Mapping[str, Any], lessons: Lessons, *, steps: int, device: str
    ) -> None:
        self._device, self._texts = device, lessons.texts
        authors = sorted({query.author for query in lessons.everyday})
        self._teacher_of = {"": 1} | {author: number % 2 for number, author in enumerate(authors)}
        self._readers = [load(Reader(base, _RANK), np.load(DELTA)).to(device) for _ in range(2)]
        for number, reader in enumerate(self._readers):
            learnt = [
                query for query in lessons.everyday if self._teacher_of[query.author] != number
            ]
            self._tune(reader, replace(lessons, everyday=learnt), random.Random(number), steps)  # noqa: S311

    def logits(self, groups: Sequence[Group]) -> Tensor:
        """Return the logits of the texts of each question; every question has the same number of
        them."""
        result = torch.zeros(len(groups), len(groups[0][1]), device=self._device)
        for number, reader in enumerate(self._readers):
            rows = [
                row
                for row, (query, _) in enumerate(groups)
                if self._teacher_of[query.author] == number
            ]
            if rows:
                with torch.no_grad():
                    result[rows] = self._read(reader, [groups[row] for row in rows])
        return result

    def _tune(self, reader: Reader, lessons: Lessons, rng: random.Random, steps: int) -> None:
        def loss() -> Tensor:
            batch = lessons.draw(rng, BATCH, EVERYDAY)
            logits = self._read(
                reader,
                [
                    (query, query.group(rng.choices(query.negatives, k=NEGATIVES), rng))
                    for query in batch
                ],
            )
            return functional.cross_entropy(
                logits, torch.zeros(BATCH, dtype=torch.long, device=self._device)
            )

        learn(reader, loss, steps)

    def _read(self, reader: Reader, groups: Sequence[Group]) -> Tensor:
        pairs = [
            as_pair(query.tokens, self._texts[place], [])
            for query, places in groups
            for place in places
        ]
        with torch.autocast(self._device, torch.bfloat16, enabled=self._device != "cpu"):
            return logits_of(reader, pairs, self._device).view(len(groups), -1)


def load(reader: Reader, change: Mapping[str, np.ndarray]) -> Reader:
    """Set what a reader has learnt to a change that `delta` returned."""
    with torch.no_grad():
        for name, parameter in reader.named_parameters():
            key = name.removeprefix("matrices.").removeprefix("norms.").replace("|", ".")
            parameter.copy_(torch.from_numpy(change[key]).view_as(parameter))
    return reader


def learn(network: nn.Module, loss_of_batch: Callable[[], Tensor], steps: int) -> None:
    """Minimise a loss, with a rate that rises during the warm-up and then falls."""
    learnt = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learnt, lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / (WARM_UP * steps), (steps - step) / ((1 - WARM_UP) * steps)),
    )
    for _ in range(steps):
        loss = loss_of_batch()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learnt, 1.0)
        optimizer.step()
        schedule.step()
