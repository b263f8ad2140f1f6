"""How the encoder and its teachers learn. A teacher is the reader of bench.train_reader,
which reads question and text together, tuned further.

There are two teachers. Each learns on the questions of one half of the authors and teaches those of
the other half, so that none has learnt the answers that it scores. General questions are taught by
the last one.
"""

import math
import random
import time
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
        self,
        base: Mapping[str, Any],
        lessons: Lessons,
        *,
        steps: int,
        device: str,
        seconds: float = math.inf,
    ) -> None:
        self._device, self._texts = device, lessons.texts
        authors = sorted({query.author for query in lessons.everyday})
        self._teacher_of = {"": 1} | {author: number % 2 for number, author in enumerate(authors)}
        self._readers = [self._reader(base) for _ in range(2)]
        self.losses: list[list[float]] = []
        for number, reader in enumerate(self._readers):
            learnt = [
                query for query in lessons.everyday if self._teacher_of[query.author] != number
            ]
            rng = random.Random(number)  # noqa: S311
            loss = self._loss(reader, replace(lessons, everyday=learnt), rng)
            self.losses.append(learn(reader, loss, steps, seconds=seconds))

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

    def _loss(
        self, reader: nn.Module, lessons: Lessons, rng: random.Random
    ) -> Callable[[], Tensor]:
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

        return loss

    def _reader(self, base: Mapping[str, Any]) -> nn.Module:
        return load(Reader(base, _RANK), np.load(DELTA)).to(self._device)

    def _read(self, reader: nn.Module, groups: Sequence[Group]) -> Tensor:
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


def learn(
    network: nn.Module,
    loss_of_batch: Callable[[], Tensor],
    steps: int,
    *,
    rate: float = RATE,
    seconds: float = math.inf,
) -> list[float]:
    """Minimise a loss, with a rate that rises during the warm-up and then falls. With a limit of
    seconds the rate falls sooner where time is short, so that it always reaches its end. Returns
    the number of steps and some losses."""
    learnt = [parameter for parameter in network.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learnt, lr=rate, weight_decay=0.01)
    losses, began = list[Tensor](), time.monotonic()
    for step in range(steps):
        if (elapsed := (time.monotonic() - began) / seconds) >= 1:
            break
        left = 1 - max(step / steps, elapsed)
        for group in optimizer.param_groups:
            group["lr"] = rate * min((step + 1) / (WARM_UP * steps), left / (1 - WARM_UP))
        loss = loss_of_batch()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learnt, 1.0)
        optimizer.step()
        losses.append(loss.detach())
    shown = [float(loss) for loss in losses[:: max(1, len(losses) // 8)]]
    return [len(losses), *(round(loss, 3) for loss in shown)]
