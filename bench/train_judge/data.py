"""The pairs that the judge learns from and is measured with, and the file that has them, their
texts and the weights of the model."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bench.tune_encoder.prepared import packed_weights, read_weights

CLASSES = ("replaces", "ends", "both", "unrelated")
CHANGE, NO_CHANGE = (0, 1), (2, 3)  # classes
# Where a pair comes from: written as a pair; written as one that both hold, the other way round;
# made of two written pairs; a change of a world; two near memories of a world; a change of a line
# of statements; two other statements of a line.
SOURCES = ("written", "swapped", "crossed", "changed", "near", "lined", "beside")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The places of two texts, and which classes are right. A doubtful pair has the weight 0."""

    older: int
    newer: int
    classes: Sequence[int]
    source: str
    author: str
    split: str = "train"
    is_implied: bool = False
    is_near: bool = False  # the older one is among the nearest that the newer one is compared with
    weight: float = 1.0
    name: str = ""  # of a pair of a world: the world and the ids of both memories

    @property
    def is_change(self) -> bool:
        return self.classes[0] in CHANGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The content of the file."""

    texts: Sequence[str]
    tokens: np.ndarray  # of all texts
    lengths: np.ndarray
    pairs: Sequence[Pair]
    base: Mapping[str, np.ndarray]


def write(prepared: Prepared, file: Path) -> None:
    """Write the file."""
    rest = {"texts": prepared.texts, "pairs": [asdict(pair) for pair in prepared.pairs]}
    np.savez_compressed(
        file,
        tokens=prepared.tokens.astype(np.uint16),
        lengths=prepared.lengths.astype(np.uint8),
        rest=np.frombuffer(json.dumps(rest, separators=(",", ":")).encode(), np.uint8),
        **packed_weights(prepared.base, prepared.tokens),
    )


def read(file: Path) -> Prepared:
    """Read what `write` wrote."""
    with np.load(file) as arrays:
        rest = json.loads(arrays["rest"].tobytes())
        return Prepared(
            texts=rest["texts"],
            tokens=arrays["tokens"],
            lengths=arrays["lengths"],
            pairs=[Pair(**row) for row in rest["pairs"]],
            base=read_weights(arrays),
        )
