"""Tune the local model's encoder on everyday memory, by a low-rank change of its matrices.

    python -m bench.tune_encoder --data DIR --model DIR --out DIR [--seeds 4] [--steps 300]
        [--teacher-steps 300]

DIR of the data has `question_pairs`, and `locomo` if that is to be measured; DIR of the model has
the model.safetensors and tokenizer.json of all-MiniLM-L6-v2. Learns on the worlds of `train` of
bench.everyday and on general questions: a question is to be nearer to its answer than to other
texts of the same world or document, outdated ones among them, and than to the texts of the other
questions; and its own texts are to be as near as a teacher says. The changes of several seeds are
averaged. Needs torch, and uses a GPU if there is one. Prints the figures without a change, of each
seed and of the result, and writes encoder.npz, which `python -m bench.tune_encoder.ship` puts into
the package. To try it out: `--general 48 --every 20 --steps 2 --teacher-steps 2`, with one world in
twenty.
"""

import argparse
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.train_reader.__main__ import base_weights, padded, tokenizer_of
from bench.train_reader.data import CLS, SEP
from bench.train_reader.network import WIDTH, Reader
from bench.tune_encoder.data import QUOTAS, Corpus, Query, Tokens
from bench.tune_encoder.measuring import show
from bench.tune_encoder.teaching import Group, Lessons, Teachers, learn

RANK, RESULT_RANK = 8, 16
BATCH, EVERYDAY, NEGATIVES = 96, 0.8, 5
NEAREST = 20  # texts from which negatives are drawn; the teachers draw from more
EVERYDAY_NEAREST, GENERAL_NEAREST = 32, 24
HELD_OUT = 1200  # general questions that measure
_SHARPNESS, _MAX_SHARPNESS = 20.0, 60.0  # of the softmax over similarities
_AT_ONCE = 512  # texts that are embedded together


class Encoder(nn.Module):  # type: ignore[misc]
    """The encoder with its change, and the sharpness of its similarities."""

    def __init__(self, base: Mapping[str, Any], rank: int, device: str) -> None:
        super().__init__()
        self.reader, self._device = Reader(base, rank), device
        self.sharpness = nn.Parameter(torch.tensor(_SHARPNESS).log())
        self.to(device)

    def forward(self, texts: Sequence[Tokens]) -> Tensor:
        """Return the vectors of texts, of length 1."""
        ids, segments, mask = padded(
            [([CLS, *text, SEP], [0] * (len(text) + 2)) for text in texts], self._device
        )
        with torch.autocast(self._device, torch.bfloat16, enabled=self._device != "cpu"):
            hidden = self.reader.encode(ids, segments, mask)
        return functional.normalize((hidden.float() * mask.unsqueeze(-1)).sum(1), dim=-1)

    def embed(self, texts: Sequence[Tokens]) -> Tensor:
        """Return the vectors of many texts, without gradients. Texts of similar length are
        encoded together."""
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        vectors = torch.zeros(len(texts), WIDTH, device=self._device)
        with torch.no_grad():
            for start in range(0, len(order), _AT_ONCE):
                part = order[start : start + _AT_ONCE]
                vectors[part] = self([texts[at] for at in part])
        return vectors

    def rank(self, queries: Sequence[Query], texts: Sequence[Tokens]) -> Iterator[list[int]]:
        """Yield the candidates of each question, nearest first."""
        places = sorted(set[int]().union(*(query.candidates for query in queries)))
        vectors = torch.zeros(len(texts), WIDTH, device=self._device)
        vectors[places] = self.embed([texts[place] for place in places])
        for query, vector in zip(
            queries, self.embed([query.tokens for query in queries]), strict=True
        ):
            cosines = vectors[list(query.candidates)] @ vector
            yield [query.candidates[at] for at in torch.argsort(-cosines, stable=True).tolist()]


def measure(name: str, encoder: Encoder, queries: Sequence[Query], texts: Sequence[Tokens]) -> None:
    """Print by label how the answers are ranked, in percent."""
    show(name, zip(queries, encoder.rank(queries, texts), strict=True))


def tune(encoder: Encoder, teachers: Teachers, lessons: Lessons, *, steps: int, seed: int) -> None:
    """Learn from the answers and from the teachers."""
    rng = random.Random(seed)  # noqa: S311

    def loss() -> Tensor:
        groups: list[Group] = []
        for query in lessons.draw(rng, BATCH, EVERYDAY):
            near = query.negatives[:NEAREST]
            groups.append((query, query.group(rng.sample(near, min(NEGATIVES, len(near))), rng)))
        return _loss(encoder, teachers, groups, lessons.texts)

    learn(encoder, loss, steps)


def _loss(
    encoder: Encoder, teachers: Teachers, groups: Sequence[Group], texts: Sequence[Tokens]
) -> Tensor:
    """Return the loss of the answers among all texts of a batch, plus the divergence from the
    teachers within the groups."""
    places = np.array([place for _, group in groups for place in group])
    # The first of each group.
    answers = list(accumulate((len(group) for _, group in groups[:-1]), initial=0))
    similarities = (
        encoder([query.tokens for query, _ in groups])
        @ encoder([texts[place] for place in places]).T
    )
    logits = similarities * encoder.sharpness.exp().clamp(max=_MAX_SHARPNESS)
    blocked = np.stack([np.isin(places, [*query.gold, *query.neutral]) for query, _ in groups])
    blocked[range(len(groups)), answers] = False
    allowed = logits.masked_fill(torch.from_numpy(blocked).to(logits.device), -1e4)
    loss = functional.cross_entropy(allowed, torch.tensor(answers, device=logits.device))
    whole = [row for row, (_, group) in enumerate(groups) if len(group) == 1 + NEGATIVES]
    own = torch.stack(
        [logits[row, answers[row] : answers[row] + 1 + NEGATIVES] for row in whole]
    ).log_softmax(-1)
    taught = teachers.logits([groups[row] for row in whole]).log_softmax(-1)
    return loss + functional.kl_div(own, taught, log_target=True, reduction="batchmean")


def average(encoders: Sequence[Encoder], result: Encoder) -> None:
    """Set the change of an encoder to the mean of others, as near as its rank allows."""
    with torch.no_grad():
        for name, matrix in result.reader.matrices.items():
            changes = [encoder.reader.matrices[name] for encoder in encoders]
            left, sizes, right = torch.linalg.svd(
                sum(each.up @ each.down for each in changes) / len(changes), full_matrices=False
            )
            roots = sizes[: len(matrix.down)].sqrt()
            matrix.up.copy_(left[:, : len(roots)] * roots)
            matrix.down.copy_(roots[:, None] * right[: len(roots)])
        for name, parameter in result.reader.norms.named_parameters():
            parameter.copy_(
                sum(encoder.reader.norms.get_parameter(name) for encoder in encoders)
                / len(encoders)
            )


def main() -> None:
    given = _arguments()
    given.out.mkdir(parents=True, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    corpus, base = Corpus(tokenizer_of(given.model), given.every), base_weights(given.model)
    everyday, general = (
        list(corpus.everyday("train")),
        list(corpus.general(given.data / "question_pairs", given.general)),
    )
    measured = [*corpus.everyday("choose"), *corpus.everyday("test"), *corpus.locomo(given.data)]
    unchanged = Encoder(base, 1, device)
    for queries, count in ((everyday, EVERYDAY_NEAREST), (general, GENERAL_NEAREST)):
        queries[:] = [
            query.with_negatives(ranked, count)
            for query, ranked in zip(queries, unchanged.rank(queries, corpus.texts), strict=True)
        ]
    general = [query for query in general if query.negatives]
    random.Random(0).shuffle(general)  # noqa: S311
    held_out = min(HELD_OUT, len(general) // 2)
    measured += [
        replace(
            query,
            candidates=[query.gold[0], *query.negatives],
            gold=query.gold[:1],
            labels=["general, held out"],
        )
        for query in general[:held_out]
    ]
    lessons = Lessons(texts=corpus.texts, everyday=everyday, general=general[held_out:])
    print(
        f"{len(everyday)} everyday and {len(lessons.general)} general questions, "
        f"{len(measured)} measure",
        flush=True,
    )
    measure("unchanged", unchanged, measured, corpus.texts)
    teachers = Teachers(base, lessons, steps=given.teacher_steps, device=device)
    encoders = []
    for seed in range(given.seeds):
        torch.manual_seed(seed)
        encoders.append(Encoder(base, RANK, device))
        tune(encoders[-1], teachers, lessons, steps=given.steps, seed=seed)
        measure(f"seed {seed}", encoders[-1], measured, corpus.texts)
    result = Encoder(base, RESULT_RANK, device)
    average(encoders, result)
    measure("result", result, measured, corpus.texts)
    change: dict[str, Any] = {
        name: value for name, value in result.reader.delta().items() if not name.startswith("head.")
    }
    np.savez(given.out / "encoder.npz", **change)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.tune_encoder", description="Tune the encoder on everyday memory"
    )
    for name in ("data", "model", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name, default in {
        "seeds": 4,
        "steps": 300,
        "teacher-steps": 300,
        "general": sum(QUOTAS.values()),
        "every": 1,
    }.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


if __name__ == "__main__":
    main()
