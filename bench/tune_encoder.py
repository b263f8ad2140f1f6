"""Tune the local model's encoder on everyday memory, by a low-rank change of its matrices.

    python -m bench.tune_encoder --model DIR --out DIR [--rank 4] [--steps 250] [--rate 4e-4] [--tokens 0] [--seed 0]

DIR of the model has the model.safetensors and tokenizer.json of all-MiniLM-L6-v2, or model.npz instead of the first. Learns on
the worlds of `train` of bench.everyday: a question is to be nearer to its memory than to others of the same world, outdated ones
among them, and than to the memories of the other questions. With `--tokens`, texts are compared by so many numbers a token: the
sum of the best match of each token of the question. Needs torch, and uses a GPU if there is one: about a minute. Prints how often
the answer is first, among three and missing in ten for the worlds of `choose` and `test`, before and after, and writes
encoder.npz. Nothing of the product uses it yet; bench/tried.md has what was found.
"""

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from bench.everyday.worlds import CHANGED, World, read_worlds
from bench.quality.sets import Question
from bench.train_reader.__main__ import base_weights, padded, tokenizer_of
from bench.train_reader.data import CLS, QUESTION, SEP, TURN
from bench.train_reader.network import WIDTH, Reader

BATCH, NEGATIVES, WARM_UP, OUTDATED = 96, 5, 0.08, 0.7
NEAREST = 16  # memories of the world from which negatives are drawn
_SHARPNESS = 20.0  # of the softmax over similarities, at first

Tokens = list[int]


class Encoder(nn.Module):  # type: ignore[misc]
    """The encoder with its change, and what compares texts: their mean vectors, or vectors of their tokens."""

    def __init__(self, base: dict[str, Any], *, rank: int, tokens: int, device: str) -> None:
        super().__init__()
        self.reader, self._device, self._tokens = Reader(base, rank), device, tokens
        self.small = nn.Linear(WIDTH, tokens or 1, bias=False)
        nn.init.orthogonal_(self.small.weight)
        self.weight = nn.Linear(WIDTH, 1)
        nn.init.zeros_(self.weight.weight)
        nn.init.zeros_(self.weight.bias)
        self.sharpness = nn.Parameter(torch.tensor(_SHARPNESS).log())

    def compared(self, asked: Sequence[Tokens], texts: Sequence[Tokens]) -> Any:
        """Return the similarity of each question to each text."""
        (questions, asked_mask), (memories, mask) = self._encoded(asked), self._encoded(texts)
        if not self._tokens:
            means = [functional.normalize((each * here.unsqueeze(-1)).sum(1), dim=-1)
                     for each, here in ((questions, asked_mask), (memories, mask))]  # fmt: skip
            return means[0] @ means[1].T
        first, second = (functional.normalize(self.small(each), dim=-1) for each in (questions, memories))
        matches = torch.einsum("aqd,bld->abql", first.bfloat16(), second.bfloat16()).float()
        best = matches.masked_fill(mask[None, :, None] == 0, -9.0).max(-1).values
        weights = functional.softplus(self.weight(questions).squeeze(-1)) * asked_mask
        return (best * weights[:, None]).sum(-1) / weights.sum(-1)[:, None]

    def _encoded(self, texts: Sequence[Tokens]) -> tuple[Any, Any]:
        ids, segments, mask = padded([(each, [0] * len(each)) for each in texts], self._device)
        return self.reader.encode(ids, segments, mask).float(), mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question of a world as tokens, with the places of its memories."""

    question: Question
    tokens: Tokens
    texts: Sequence[Tokens]
    gold: Sequence[int]
    stale: Sequence[int]
    others: list[int]


def asked_of(worlds: Sequence[World], tokenizer: Any) -> Iterator[Asked]:
    """Yield the questions that have an answer."""
    for world in worlds:
        places = {said.id: at for at, said in enumerate(world.memories)}
        texts = _tokens(tokenizer, [said.text for said in world.memories], TURN)
        questions = [question for question in world.questions if question.gold]
        for question, tokens in zip(questions, _tokens(tokenizer, [each.text for each in questions], QUESTION), strict=True):
            gold, stale = (sorted(places[id_] for id_ in ids) for ids in (question.gold, question.stale))
            others = [at for at in range(len(texts)) if at not in {*gold, *stale}]
            yield Asked(question=question, tokens=tokens, texts=texts, gold=gold, stale=stale, others=others)


def _tokens(tokenizer: Any, texts: Sequence[str], most: int) -> list[Tokens]:
    return [[CLS, *each.ids[:most], SEP] for each in tokenizer.encode_batch(list(texts), add_special_tokens=False)]


def measure(encoder: Encoder, asked: Sequence[Asked]) -> dict[str, str]:
    """Return by kind: questions, and the percentages that are right first, in three, and missing in ten."""
    counts: Counter[tuple[str, str]] = Counter()
    encoder.eval()
    for each in asked:
        with torch.no_grad():
            order = torch.argsort(-encoder.compared([each.tokens], each.texts)[0]).tolist()
        place = min(order.index(at) for at in each.gold)
        for kind in (each.question.kind, "changed" if each.question.kind in CHANGED else "without change"):
            counts.update(
                {(kind, "all"): 1, (kind, "first"): place < 1, (kind, "three"): place < 3, (kind, "missing"): place >= 10}
            )
    kinds = sorted({kind for kind, _ in counts})
    return {
        kind: f"{counts[kind, 'all']}: "
        + " / ".join(f"{100 * counts[kind, name] / counts[kind, 'all']:.1f}" for name in ("first", "three", "missing"))
        for kind in kinds
    }


def tune(encoder: Encoder, asked: Sequence[Asked], *, steps: int, rate: float, seed: int) -> None:
    """Learn with a softmax over the memories of a batch: of them, the one that answers is to be nearest."""
    rng = random.Random(seed)  # noqa: S311
    near = [_nearest(encoder, each) for each in asked]
    learnt = [parameter for parameter in encoder.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learnt, lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / (WARM_UP * steps), (steps - step) / ((1 - WARM_UP) * steps))
    )
    encoder.train()
    for _ in range(steps):
        texts: list[Tokens] = []
        right: list[int] = []
        batch = rng.sample(range(len(asked)), min(BATCH, len(asked)))
        for number in batch:
            each = asked[number]
            wrong = rng.sample(near[number], min(NEGATIVES, len(near[number])))
            if each.stale and rng.random() < OUTDATED:
                wrong[:1] = [rng.choice(each.stale)]
            right.append(len(texts))
            texts += [each.texts[at] for at in (rng.choice(each.gold), *wrong)]
        similarities = encoder.compared([asked[number].tokens for number in batch], texts)
        logits = similarities * encoder.sharpness.exp().clamp(max=60)
        loss = functional.cross_entropy(logits, torch.tensor(right, device=logits.device))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learnt, 1.0)
        optimizer.step()
        schedule.step()


def _nearest(encoder: Encoder, each: Asked) -> list[int]:
    with torch.no_grad():
        order = torch.argsort(-encoder.compared([each.tokens], each.texts)[0]).tolist()
    return [at for at in order if at in set(each.others)][:NEAREST]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.tune_encoder", description="Tune the encoder on everyday memory")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--rate", type=float, default=4e-4)
    parser.add_argument("--tokens", type=int, default=0, help="numbers a token; 0 compares mean vectors")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    device, tokenizer = "cuda" if torch.cuda.is_available() else "cpu", tokenizer_of(given.model)
    torch.manual_seed(given.seed)
    encoder = Encoder(base_weights(given.model), rank=given.rank, tokens=given.tokens, device=device).to(device)
    splits = {split: list(asked_of(read_worlds([split]), tokenizer)) for split in ("train", "choose", "test")}
    for when in ("before", "after"):
        if when == "after":
            tune(encoder, splits["train"], steps=given.steps, rate=given.rate, seed=given.seed)
        for split in ("choose", "test"):
            print(when, split, measure(encoder, splits[split]), flush=True)
    compared = {f"tokens.{name}": value.detach().cpu().numpy() for name, value in encoder.small.state_dict().items()}
    compared |= {f"weights.{name}": value.detach().cpu().numpy() for name, value in encoder.weight.state_dict().items()}
    np.savez(given.out / "encoder.npz", **encoder.reader.delta(), **(compared if given.tokens else {}))


if __name__ == "__main__":
    main()
