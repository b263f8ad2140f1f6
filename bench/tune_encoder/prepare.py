"""Prepare the learning of token vectors: everything that it reads, in one file.

    python -m bench.tune_encoder.prepare --data DIR --model DIR --out FILE [--start FILE]
        [--general 13092] [--every 1]

DIR of the data has `question_pairs`, and `locomo` if that is to be measured; DIR of the model has
the model.safetensors and tokenizer.json of all-MiniLM-L6-v2; `--start` is the change from which the
learning goes on, by default that of the package. Takes less than a minute;
`python -m bench.tune_encoder.tokens` reads the file, and needs neither the data nor the model. With
`--every`, only one world and one guarding text in so many are used.
"""

import argparse
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import memory_mesh.models
from bench.train_reader.__main__ import tokenizer_of
from bench.tune_encoder.data import QUOTAS, TEXT_TOKENS, Corpus, Query, Tokens
from bench.tune_encoder.network import TOKEN_WIDTH, Network, Table
from bench.tune_encoder.prepared import Prepared, write
from memory_mesh.models.onnx_graph import WIDTH, tensors

SAMPLE = 200  # texts whose states give the first layer of the tokens
# What guards: passages, lines of code, and how many times more often each line of the file.
GUARD_PASSAGES, CODE_LINES, OWN_LINES = 3000, 1500, 12
FIRST_WEIGHT = 0.5  # of a token of a query, before the softplus
DATA = Path(memory_mesh.models.__file__).parent / "data"
GUARD = Path(__file__).with_name("guard.txt")
SOURCE = Path(memory_mesh.models.__file__).parents[1]  # its lines are code that guards
_HEAD = ("tokens.", "weights.")  # of a start that has token vectors already


def first_layer(
    base: Mapping[str, np.ndarray], start: Mapping[str, np.ndarray], texts: Sequence[Tokens]
) -> np.ndarray:
    """Return the first layer of the tokens: the directions in which the states of the start differ
    most, at right angles to their mean."""
    network = Network(base, start, "cpu")
    table = Table(*_flat(texts), "cpu")
    with torch.no_grad():
        ids, segments, mask = table.inputs(np.arange(len(texts)))
        states = network.states(ids, segments, mask, network.merged())[mask].numpy()
    mean = states.mean(0) / np.linalg.norm(states.mean(0))
    states = states - (states @ mean)[:, None] * mean
    _, directions = np.linalg.eigh(states.T @ states)
    found: np.ndarray = directions.T[::-1][:TOKEN_WIDTH]
    return found


def main() -> None:
    given = _arguments()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    tokenizer, rng = tokenizer_of(given.model), random.Random(0)  # noqa: S311
    weights = tensors((given.model / "model.safetensors").read_bytes())
    base = {name: value for name, value in weights.items() if "pooler" not in name}
    with np.load(given.start) as change:
        start = {name: value for name, value in change.items() if not name.startswith(_HEAD)}
    corpus = Corpus(tokenizer, given.every)
    everyday = list(corpus.everyday("train"))
    sample = rng.sample(corpus.texts, min(SAMPLE, len(corpus.texts)))
    first = len(corpus.texts)
    general = list(corpus.general(given.data / "question_pairs", given.general))
    passages = rng.sample(range(first, len(corpus.texts)), GUARD_PASSAGES)
    measured = [*corpus.everyday("choose"), *corpus.everyday("test"), *corpus.locomo(given.data)]
    texts = list(corpus.texts)

    def placed(queries: Sequence[Query]) -> list[Query]:
        """Put the questions among the texts."""
        first = len(texts)
        texts.extend(query.tokens for query in queries)
        return [replace(query, tokens=[], place=place)
                for place, query in enumerate(queries, start=first)]  # fmt: skip

    lines, code = _guard_lines()
    guard = range(len(texts), len(texts) + len(lines) + len(code))
    texts += [
        encoding.ids[:TEXT_TOKENS]
        for encoding in tokenizer.encode_batch([*lines, *code], add_special_tokens=False)
    ]
    guards = [*list(guard[: len(lines)]) * OWN_LINES, *guard[len(lines) :], *passages]
    words = (DATA / "function_words.txt").read_text(encoding="utf-8").split()
    vocabulary = tokenizer.get_vocab()
    head = {
        "tokens.weight": first_layer(base, start, sample),
        "weights.weight": np.zeros(WIDTH, np.float32),
        "weights.bias": np.full(1, FIRST_WEIGHT, np.float32),
    }
    questions = {"everyday": placed(everyday), "general": placed(general),
                 "measured": placed(measured)}  # fmt: skip
    tokens, lengths = _flat(texts)
    prepared = Prepared(
        **questions, tokens=tokens, lengths=lengths, guard=guards[:: given.every],
        function_words=[vocabulary[word] for word in words], base=base,
        start=start | head,
    )  # fmt: skip
    write(prepared, given.out)
    print(f"{len(everyday)} everyday and {len(general)} general questions, {len(measured)} measure,"
          f" {len(texts)} texts: {given.out.stat().st_size / 2**20:.1f} MiB")  # fmt: skip


def _flat(texts: Sequence[Tokens]) -> tuple[np.ndarray, np.ndarray]:
    """Return all tokens, and the length of each text."""
    return (
        np.array([token for text in texts for token in text]),
        np.array([len(text) for text in texts]),
    )


def _guard_lines() -> tuple[list[str], list[str]]:
    """Return sentences of other languages, identifiers and code, and lines of the package."""
    lines = GUARD.read_text(encoding="utf-8").splitlines()
    code = {
        line.strip()
        for file in sorted(SOURCE.rglob("*.py"))
        for line in file.read_text(encoding="utf-8").splitlines()
    }
    chosen = sorted(line for line in code if len(line) > 30)
    return lines, random.Random(1).sample(chosen, CODE_LINES)  # noqa: S311


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.tune_encoder.prepare",
        description="Prepare the learning of token vectors",
    )
    for name in ("data", "model", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--start", type=Path, default=DATA / "encoder.npz")
    parser.add_argument("--general", type=int, default=sum(QUOTAS.values()))
    parser.add_argument("--every", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
