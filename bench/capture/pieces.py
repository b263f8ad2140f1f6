"""Labelled pieces of transcripts, and what capture makes of them.

A piece of a JSON Lines file has messages and what is to be kept of them: `type`, and `says`, the words that the memory or the
part of the transcript it comes from must contain. A memory is right if a label has its type and all its words are there.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from memory_mesh.core.capture.classify import type_chances
from memory_mesh.core.capture.extract import MIN_CHANCE, Captured, Said, extract

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Keep:
    """What is to be kept: the type, and words that must occur."""

    type: str
    says: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a transcript with its labels."""

    id: str
    messages: tuple[tuple[str, str], ...]
    keep: tuple[Keep, ...]


@dataclass(slots=True)
class Verdict:
    """The memories that were found rightly and wrongly, and the labels without one."""

    piece: Piece
    right: list[Captured] = field(default_factory=list)
    wrong: list[Captured] = field(default_factory=list)
    missed: list[Keep] = field(default_factory=list)


def read(path: Path) -> list[Piece]:
    """Read the pieces of a JSON Lines file."""
    pieces = []
    for line in path.read_text(encoding="utf-8").splitlines():
        raw = json.loads(line)
        keep = tuple(Keep(each["type"], tuple(word.lower() for word in each["says"])) for each in raw["keep"])
        pieces.append(Piece(raw["id"], tuple((each["role"], each["content"]) for each in raw["messages"]), keep))
    return pieces


def judged(piece: Piece, *, weights: Mapping[str, list[float]] | None = None, min_chance: float = MIN_CHANCE) -> Verdict:
    """Run capture on a piece and compare what it keeps with the labels."""
    messages = (Said(number, *message) for number, message in enumerate(piece.messages))
    judge = partial(type_chances, weights=weights) if weights else type_chances
    verdict, found = Verdict(piece), set[Keep]()
    for memory in extract(messages, judge=judge, min_chance=min_chance):
        if isinstance(memory, Captured):
            text = f"{memory.content}\n{memory.source_chunk}".lower()
            fits = {keep for keep in piece.keep if keep.type == memory.memory_type and all(word in text for word in keep.says)}
            found |= fits
            (verdict.right if fits else verdict.wrong).append(memory)
    verdict.missed = [keep for keep in piece.keep if keep not in found]
    return verdict
