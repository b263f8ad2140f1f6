"""Train the judge of pairs: does a newer statement replace or end an older one?

    python -m bench.train_judge --prepared FILE --out DIR [--seconds 170] [--seeds 3] [--steps 1500]
        [--without u3,u12] [--rate 7e-4] [--batch 192] [--masked 0.3]
    python -m bench.train_judge --prepared FILE --out DIR --measure-test

FILE is what `python -m bench.train_judge.prepare` wrote. Learns a low-rank change of
all-MiniLM-L6-v2 and a head that gives four classes: replaces, ends, both hold, unrelated. Of pairs
of the worlds it is only known whether they are a change, so the loss is that of the sum of two
classes. Seeds differ in their batches only, so that what they learn can be averaged. Within
`--seconds` everything is done: a seed whose time is short makes fewer steps, and its rate still
falls to zero. Needs torch, and is made for a GPU. Writes judge.npz, in 16 bits.

Pairs of the authors of `--without` are not learnt and measure; so do the worlds of `choose`. Both
give the temperature by which the head is divided. The figures of `train` are of pairs that were
learnt: its worst mistakes show which labels may be wrong. `--measure-test` trains nothing: it
measures DIR/judge.npz on the worlds of `test` and on the memory of bench/updates/among.jsonl, which
must not be used to choose anything. To try it out on a CPU: prepare with `--every 20`, and `--batch
24 --steps 20`.
"""

import argparse
import random
import time
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bench.train_judge.data import CLASSES, SOURCES, Pair, Prepared, read
from bench.train_judge.measuring import (
    area,
    change_probability,
    show_memories,
    show_worst,
    show_written,
    temperature,
)
from bench.train_judge.network import RANK, Judge, first_change
from bench.tune_encoder.network import Arrays, Table, average
from bench.tune_encoder.teaching import learn

# The fraction of each source in a batch. Nearly all near pairs of a memory hold side by side, and
# what the judge says about them matters most.
FRACTIONS = {
    "written": 0.24, "swapped": 0.02, "crossed": 0.04, "changed": 0.14, "near": 0.30,
    "lined": 0.11, "beside": 0.15,
}  # fmt: skip
MEASURING = 25.0  # seconds that are kept for it


class Lessons:
    """The pairs that are learnt, by their sources."""

    def __init__(self, pairs: Sequence[Pair], table: Table) -> None:
        self._table = table
        self._pairs = {
            source: [pair for pair in pairs if pair.source == source and pair.weight]
            for source in SOURCES
        }
        self._sums = {
            source: list(accumulate(pair.weight for pair in some))
            for source, some in self._pairs.items()
        }

    def loss(self, judge: Judge, rng: random.Random, count: int) -> Tensor:
        """Return the loss of a new batch: the logarithm of the sum of the right classes."""
        batch = [
            pair
            for source, fraction in FRACTIONS.items()
            for pair in rng.choices(
                self._pairs[source], cum_weights=self._sums[source], k=round(count * fraction)
            )
        ]
        right = [[number in pair.classes for number in range(len(CLASSES))] for pair in batch]
        logits = judge(self._table, batch).log_softmax(-1)
        wrong = ~torch.tensor(right, device=logits.device)
        return -logits.masked_fill(wrong, -1e4).logsumexp(-1).mean()


def train(prepared: Prepared, table: Table, given: argparse.Namespace) -> dict[str, np.ndarray]:
    """Return the change that several seeds learn on average, its head divided by the
    temperature."""
    began = time.monotonic()
    learnt, measured = _parts(prepared.pairs, given.without)
    lessons, start, changes = Lessons(learnt, table), first_change(), list[Arrays]()
    is_change = np.array([pair.is_change for pair in measured])

    def logits_of(name: str, change: Arrays) -> np.ndarray:
        logits = Judge(prepared.base, change, table.device).logits(table, measured)
        likely = change_probability(logits)
        print(f"{time.monotonic() - began:.0f} s: {name}: area under the curve of all pairs that "
              f"measure {area(likely[is_change], likely[~is_change]):.3f}", flush=True)  # fmt: skip
        return logits

    for seed in range(given.seeds):
        torch.manual_seed(seed)
        judge = Judge(prepared.base, start, table.device, given.masked)
        loss = partial(lessons.loss, judge, random.Random(seed), given.batch)  # noqa: S311
        left = given.seconds - MEASURING - (time.monotonic() - began)
        seconds = max(1.0, left / (given.seeds - seed))
        losses = learn(judge, loss, given.steps, rate=given.rate, seconds=seconds)
        changes.append(judge.delta())
        logits_of(f"seed {seed}, steps and losses {losses}", changes[-1])
    change = average(changes, RANK)
    divisor = temperature(measured, logits_of("average", change))
    print(f"temperature {divisor:.2f}", flush=True)
    return change | {name: change[name] / divisor for name in ("head.weight", "head.bias")}


def measure(
    prepared: Prepared, table: Table, change: Arrays, pairs: Sequence[Pair], worst: int
) -> None:
    """Print the figures of pairs, by whether they were written or are of a split of worlds."""
    logits = Judge(prepared.base, change, table.device).logits(table, pairs)
    likely = change_probability(logits)
    groups = [pair.split if pair.source in ("changed", "near") else pair.author for pair in pairs]
    for group in sorted(set(groups)):
        rows = [row for row, name in enumerate(groups) if name == group]
        some = [pairs[row] for row in rows]
        show = show_memories if some[0].source in ("changed", "near") else show_written
        show(group, some, likely[rows])
        show_worst(some, likely[rows], prepared.texts, worst)


def _parts(pairs: Sequence[Pair], without: Sequence[str]) -> tuple[list[Pair], list[Pair]]:
    """Return the pairs that are learnt, and those that measure."""
    train = [pair for pair in pairs if pair.split == "train"]
    apart = ("written", "lined", "beside")
    held_out = [pair for pair in train if pair.author in without and pair.source in apart]
    return (
        [pair for pair in train if pair.author not in without],
        [*held_out, *(pair for pair in pairs if pair.split == "choose")],
    )


def main() -> None:
    given = _arguments()
    given.out.mkdir(parents=True, exist_ok=True)
    torch.backends.cuda.enable_cudnn_sdp(enabled=False)  # it plans anew for each length of texts
    prepared, file = read(given.prepared), given.out / "judge.npz"
    device = "cuda" if torch.cuda.is_available() else "cpu"
    table = Table(prepared.tokens, prepared.lengths, device)
    if not given.measure_test:
        change: dict[str, Any] = train(prepared, table, given)
        np.savez(file, **{name: value.astype(np.float16) for name, value in change.items()})
        print(f"{file}: {file.stat().st_size} bytes", flush=True)
    measured = [pair for pair in prepared.pairs if pair.split in ("test", "among")]
    if not given.measure_test:
        learnt, measured = _parts(prepared.pairs, given.without)
        measured += [pair for pair in learnt if pair.source in ("changed", "near")]
    with np.load(file) as shipped:
        measure(prepared, table, dict(shipped), measured, given.worst)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.train_judge", description="Train the judge of pairs"
    )
    for name in ("prepared", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--without", type=lambda text: text.split(","), default=[])
    parser.add_argument("--measure-test", action="store_true")
    for name, default in {
        "seconds": 1e9, "seeds": 3, "steps": 1500, "batch": 192, "rate": 7e-4, "masked": 0.3,
        "worst": 10,
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()


if __name__ == "__main__":
    main()
