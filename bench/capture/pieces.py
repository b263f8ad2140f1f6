"""Labelled pieces of transcripts, and what capture makes of them.

A piece of a JSON Lines file has messages and what is to be kept of them: `type`, and `says`, words
that the memory or its part of the transcript must contain. A memory is right if a label has all its
words there. Whether the type is the same is counted too.

A line of a text file is a type, or `none`, a tab, and the words of the user. `A: ` before them
makes them the assistant's; words before ` || ` are the assistant's message that the user answers.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from memory_mesh.core.language.capture.classify import Judge
from memory_mesh.core.language.capture.extract import Captured, Message, extract
from memory_mesh.core.language.packaged import NONE

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
    """The memories that were kept rightly and wrongly, those with the labelled type, and the
    labels without a memory."""

    piece: Piece
    right: list[Captured] = field(default_factory=list)
    wrong: list[Captured] = field(default_factory=list)
    same_type: list[Captured] = field(default_factory=list)
    missed: list[Keep] = field(default_factory=list)


def read(path: Path) -> list[Piece]:
    """Read the pieces of a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    parse = _parse_json if path.suffix == ".jsonl" else _parse_line
    return [parse(f"{path.stem} {number}", line) for number, line in enumerate(lines, 1)]


def _parse_json(_: str, line: str) -> Piece:
    raw = json.loads(line)
    keep = tuple(
        Keep(each["type"], tuple(word.lower() for word in each["says"])) for each in raw["keep"]
    )
    return Piece(
        raw["id"], tuple((each["role"], each["content"]) for each in raw["messages"]), keep
    )


def _parse_line(id_: str, line: str) -> Piece:
    name, _, text = line.partition("\t")
    before, answers, words = text.partition(" || ")
    messages = [("assistant", before), ("user", words)] if answers else [("user", text)]
    if text.startswith("A: ") and not answers:
        messages = [("assistant", text[3:])]
    return Piece(id_, tuple(messages), () if name == NONE else (Keep(name, ()),))


def judged(piece: Piece, judge: Judge) -> Verdict:
    """Run capture on a piece and compare what it keeps with the labels."""
    messages = (Message(number, *message) for number, message in enumerate(piece.messages))
    verdict, found = Verdict(piece), set[Keep]()
    for memory in extract(messages, judge=judge):
        if isinstance(memory, Captured):
            text = f"{memory.content}\n{memory.source_chunk}".lower()
            fits = {keep for keep in piece.keep if all(word in text for word in keep.says)}
            found |= fits
            (verdict.right if fits else verdict.wrong).append(memory)
            if any(keep.type == memory.memory_type for keep in fits):
                verdict.same_type.append(memory)
    verdict.missed = [keep for keep in piece.keep if keep not in found]
    return verdict
