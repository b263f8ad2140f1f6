"""Train the reader: a small change of the local model that reads a question and a memory together.

No search uses it: it is the teacher from which the encoder learns (`bench.tune_encoder`).

    python -m bench.train_reader --data DIR --model DIR --out DIR [--seeds 3] [--epochs 2]
        [--rank 8] [--made] [--no-joined]

DIR of the data is `question_pairs` with questions.jsonl.xz and documents.jsonl.xz; DIR of the model
has the model.safetensors and tokenizer.json of all-MiniLM-L6-v2. Needs torch, and uses a GPU if
there is one: about three minutes for a seed on a large one. First it checks that 64 questions can
be learnt by heart. Writes delta-SEED.npz, and train_reader.json with the losses and the figures on
questions that were held out, by source. The teacher in use, `reader.npz`, is the delta-SEED.npz of
one seed. `--made` adds questions made by rules, `--no-joined` leaves out the turns that got a
second statement, and `--without` names sources to leave out.
"""

import argparse
import json
import pickle
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn import functional

from bench.train_reader.data import CLS, SEP, TURN, Data, Pair, Question, Vectors
from bench.train_reader.network import Reader

BATCH, WARM_UP, RATE = 64, 0.08, 1e-3
HELD_OUT = 20  # one question in so many measures the training
_EMBEDDED_AT_ONCE = 1024
_PARTS = 4  # of a batch, by length


class TorchVectors(Vectors):
    """Vectors of the unchanged encoder."""

    def __init__(
        self,
        encoder: Reader,
        device: str,
        passages: Sequence[list[int]],
        questions: Sequence[list[int]],
    ) -> None:
        self._encoder, self._device = encoder, device
        self._passages, self._questions = self._embed(passages), self._embed(questions)

    def nearest(self, question: int, first: int, last: int, count: int) -> list[int]:
        cosines = self._passages[first:last] @ self._questions[question]
        found: list[int] = (torch.topk(cosines, min(count, last - first)).indices + first).tolist()
        return found

    def alike(self, passage: int, others: Sequence[int]) -> list[float]:
        found: list[float] = (
            (self._passages[list(others)] @ self._passages[passage]).tolist() if others else []
        )
        return found

    def _embed(self, texts: Sequence[list[int]]) -> Any:
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        found = torch.zeros(len(texts), 384, dtype=torch.float16, device=self._device)
        with (
            torch.no_grad(),
            torch.autocast(self._device, torch.bfloat16, enabled=self._device != "cpu"),
        ):
            for start in range(0, len(order), _EMBEDDED_AT_ONCE):
                part = order[start : start + _EMBEDDED_AT_ONCE]
                pairs = [
                    ([CLS, *texts[at][:TURN], SEP], [0] * (len(texts[at][:TURN]) + 2))
                    for at in part
                ]
                ids, segments, mask = padded(pairs, self._device)
                hidden = self._encoder.encode(ids, segments, mask).float() * mask.unsqueeze(-1)
                found[part] = functional.normalize(hidden.sum(1), dim=-1).half()
        return found if self._device != "cpu" else found.float()


def padded(pairs: Sequence[Pair], device: str) -> tuple[Any, Any, Any]:
    """Return the ids, the segments and the mask of pairs as tensors."""
    longest = max(len(ids) for ids, _ in pairs)
    table = np.zeros((3, len(pairs), longest), np.int64)
    for at, (ids, segments) in enumerate(pairs):
        table[0, at, : len(ids)], table[1, at, : len(ids)], table[2, at, : len(ids)] = (
            ids,
            segments,
            1,
        )
    ids, segments, mask = torch.from_numpy(table).to(device, non_blocking=True)
    return ids, segments, mask


def logits_of(reader: Reader, pairs: Sequence[Pair], device: str) -> Any:
    """Return the logits of pairs. Pairs of similar length are read together: padding would
    double the work."""
    order = sorted(range(len(pairs)), key=lambda at: len(pairs[at][0]))
    parts = [
        order[len(order) * n // _PARTS : len(order) * (n + 1) // _PARTS] for n in range(_PARTS)
    ]
    logits = torch.cat(
        [reader(*padded([pairs[at] for at in part], device)).float() for part in parts if part]
    )
    return logits[torch.argsort(torch.tensor(order, device=device))]


def train(
    data: Data, questions: Sequence[Question], reader: Reader, device: str, *, seed: int, steps: int
) -> list[float]:
    """Train with a listwise softmax: of each answer and its negatives, the answer is to have the
    highest logit."""
    rng = random.Random(seed)  # noqa: S311
    learnt = [parameter for parameter in reader.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learnt, lr=RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(
            step / max(1, WARM_UP * steps), (steps - step) / max(1, (1 - WARM_UP) * steps)
        ),
    )
    losses, order = list[float](), list[Question]()
    reader.train()
    for step in range(steps):
        if len(order) < min(BATCH, len(questions)):
            order = rng.sample(questions, len(questions))
        batch, order = order[:BATCH], order[BATCH:]
        pairs = [pair for question in batch for pair in data.group(question, rng)]
        with torch.autocast(device, torch.bfloat16, enabled=device != "cpu"):
            logits = logits_of(reader, pairs, device).view(len(batch), -1)
        loss = functional.cross_entropy(
            logits, torch.zeros(len(batch), dtype=torch.long, device=device)
        )
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learnt, 1.0)
        optimizer.step()
        schedule.step()
        if step % 20 == 0:
            losses.append(round(loss.item(), 4))
    return losses


def measure(
    data: Data, questions: Sequence[Question], reader: Reader, device: str
) -> dict[str, dict[str, float]]:
    """Return by source how often an answer is first among the nearest passages, by the reader."""
    reader.eval()
    first: dict[str, list[float]] = defaultdict(list)
    with torch.no_grad(), torch.autocast(device, torch.bfloat16, enabled=device != "cpu"):
        for question in questions:
            chosen = [*question.answers[:1], *question.negatives]
            ids, segments, mask = padded(
                [data.pair(question, one, previous=True) for one in chosen], device
            )
            logits = reader(ids, segments, mask).float()
            first[question.source].append(float(logits[0] >= logits.max()))
    return {
        name: {"questions": len(some), "first": round(sum(some) / len(some), 3)}
        for name, some in sorted(first.items())
    }


def base_weights(folder: Path) -> dict[str, Any]:
    """Return the tensors of the model: of a safetensors file, or of an .npz file with 16 bits."""
    if (packed := folder / "model.npz").exists():
        return {name: value.astype(np.float32) for name, value in np.load(packed).items()}
    from memory_mesh.models.onnx_graph import tensors

    return tensors((folder / "model.safetensors").read_bytes())


def tokenizer_of(folder: Path) -> Tokenizer:
    """Return the tokenizer of the model, without padding and truncation."""
    found = Tokenizer.from_file(str(folder / "tokenizer.json"))
    found.no_padding()
    found.no_truncation()
    return found


def main() -> None:
    given = _arguments()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer, base, began = tokenizer_of(given.model), base_weights(given.model), time.time()

    def encode(texts: Sequence[str]) -> list[list[int]]:
        return [each.ids for each in tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    data = Data(
        given.data,
        encode,
        made=given.made,
        joined=not given.no_joined,
        without=given.without.split(","),
    )
    if given.nearest and given.nearest.exists():
        questions = pickle.loads(given.nearest.read_bytes())  # noqa: S301  (a file of an earlier run)
    else:
        vectors = TorchVectors(Reader(base, 1).to(device), device, data.tokens, data.asked)
        questions = list(data.questions(vectors))
        if given.nearest:
            given.nearest.write_bytes(pickle.dumps(questions))
    print(
        f"{len(data.tokens)} passages, {len(questions)} questions, {time.time() - began:.0f} s",
        flush=True,
    )
    held = [one for at, one in enumerate(questions) if at % HELD_OUT == 0]
    used = [one for at, one in enumerate(questions) if at % HELD_OUT]
    torch.manual_seed(0)
    by_heart = train(
        data,
        used[:BATCH],
        Reader(base, given.rank).to(device),
        device,
        seed=0,
        steps=given.by_heart,
    )
    print("by heart:", by_heart[:1], "to", by_heart[-1:], flush=True)
    settings = {
        name: str(value) if isinstance(value, Path) else value
        for name, value in vars(given).items()
        if name not in ("data", "model", "out", "nearest")
    }
    result: dict[str, Any] = {
        "seeds": [],
        "by_heart": by_heart,
        "questions": len(used),
        "settings": settings,
    }
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        torch.manual_seed(seed)
        reader, began = Reader(base, given.rank).to(device), time.time()
        losses = train(
            data, used, reader, device, seed=seed, steps=int(given.epochs * len(used) / BATCH)
        )
        np.savez(given.out / f"delta-{seed}.npz", **reader.delta())
        figures = measure(data, held, reader, device)
        result["seeds"].append(
            {
                "seed": seed,
                "seconds": round(time.time() - began),
                "losses": losses,
                "held_out": figures,
            }
        )
        print(seed, round(time.time() - began), "s", losses[:1], losses[-1:], figures, flush=True)
        (given.out / "train_reader.json").write_text(
            json.dumps(result, indent=1) + "\n", encoding="utf-8"
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.train_reader", description="Train the reader"
    )
    for name in ("data", "model", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument(
        "--nearest",
        type=Path,
        help="a file that keeps the negatives between runs with the same questions",
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument(
        "--by-heart",
        type=int,
        default=150,
        help="steps of the check that 64 questions can be learnt by heart",
    )
    parser.add_argument("--made", action="store_true", help="add the questions made by rules")
    parser.add_argument(
        "--no-joined", action="store_true", help="leave out the turns with a second statement"
    )
    parser.add_argument("--without", default="", help="sources to leave out, separated by commas")
    return parser.parse_args()


if __name__ == "__main__":
    main()
