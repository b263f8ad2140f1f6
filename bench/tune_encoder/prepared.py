"""The file from which the token vectors are learnt: texts as tokens, questions, the weights of the
model in 16 bits, and the start of what is learnt."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.tune_encoder.data import Query

_WORDS = "embeddings.word_embeddings.weight"
_VOCABULARY = 30522
_SPECIAL = (0, 101, 102, 103)  # padding, [CLS], [SEP], [MASK]
_QUESTIONS = ("everyday", "general", "measured")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The content of the file."""

    tokens: np.ndarray  # of all texts
    lengths: np.ndarray
    everyday: Sequence[Query]
    general: Sequence[Query]
    measured: Sequence[Query]
    guard: Sequence[int]  # places of texts whose sentence vectors are to stay
    function_words: Sequence[int]
    base: Mapping[str, np.ndarray]
    start: Mapping[str, np.ndarray]


def packed_weights(base: Mapping[str, np.ndarray], tokens: np.ndarray) -> dict[str, Any]:
    """Return the weights of the model in 16 bits as arrays of a file, with the rows of the
    embedding table that these tokens use."""
    rows = np.unique(np.concatenate([tokens, _SPECIAL])).astype(np.int32)
    used = dict(base) | {_WORDS: base[_WORDS][rows]}
    return {"rows": rows} | {f"base/{name}": value.astype(np.float16)
                             for name, value in used.items()}  # fmt: skip


def read_weights(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the weights that `packed_weights` packed."""
    base = _with_prefix(arrays, "base/")
    words = np.zeros((_VOCABULARY, base[_WORDS].shape[1]), np.float32)
    words[arrays["rows"]] = base[_WORDS]
    return base | {_WORDS: words}


def _with_prefix(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {
        name.removeprefix(prefix): arrays[name].astype(np.float32)
        for name in arrays
        if name.startswith(prefix)
    }


def write(prepared: Prepared, file: Path) -> None:
    """Write the file."""
    arrays = packed_weights(prepared.base, prepared.tokens)
    arrays |= {f"start/{name}": value.astype(np.float32) for name, value in prepared.start.items()}
    questions: dict[str, Any] = {
        name: [
            asdict(query) | {"candidates": [query.candidates[0], query.candidates[-1] + 1]}
            for query in getattr(prepared, name)
        ]
        for name in _QUESTIONS
    } | {"guard": prepared.guard, "function_words": prepared.function_words}
    packed = np.frombuffer(json.dumps(questions, separators=(",", ":")).encode(), np.uint8)
    np.savez_compressed(
        file,
        tokens=prepared.tokens.astype(np.uint16),
        lengths=prepared.lengths.astype(np.uint8),
        questions=packed,
        **arrays,
    )


def read(file: Path) -> Prepared:
    """Read what `write` wrote."""
    with np.load(file) as arrays:
        questions = json.loads(arrays["questions"].tobytes())
        return Prepared(
            tokens=arrays["tokens"],
            lengths=arrays["lengths"],
            base=read_weights(arrays),
            start=_with_prefix(arrays, "start/"),
            guard=questions["guard"],
            function_words=questions["function_words"],
            **{
                name: [
                    Query(**row | {"candidates": range(*row["candidates"])})
                    for row in questions[name]
                ]
                for name in _QUESTIONS
            },
        )
