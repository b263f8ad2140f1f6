"""Measure capture: precision, recall and the mistakes on labelled pieces of transcripts, and how
many of the messages that later questions ask for it keeps.

    python -m bench.capture [FILE ...] [--out FOLDER]

`own`, `second` and `third` were in view while the rules were written and the weights learnt.
`blind` was written by someone who has not seen the rules, and was first read after the last change
of rules and weights but one, which learnt from everyday chats. `everyday_blind` has statements of
the `test` worlds of bench.everyday; nothing was learnt from these. Prints each memory that was
wrongly kept and each that was missed. A memory is right if it was labelled to be kept; whether its
type is the labelled one is counted too.

The messages are those of users in the chats of the `test` worlds. A message counts as kept if any
statement of it is.
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.capture.pieces import FOLDER, Verdict, judged, read
from bench.commit import measured_at
from bench.everyday.worlds import World, read_worlds
from bench.linear import local_model
from memory_mesh.core.language.capture.classify import (
    CLASSES,
    Judge,
    judge_with_vectors,
    judge_without_vectors,
)
from memory_mesh.core.language.capture.extract import Captured, Message, extract
from memory_mesh.core.language.packaged import NONE

RESULTS = Path(__file__).parents[1] / "results"
_FILES = ("own.jsonl", "second.jsonl", "third.jsonl", "blind.jsonl", "everyday_blind.txt")
MEASURED = [FOLDER / name for name in _FILES]
_ASKED, _OTHERS = "asked for", "others"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.capture", description="Capture from transcripts"
    )
    parser.add_argument("files", nargs="*", type=Path, default=MEASURED, help="labelled pieces")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the result file")
    given = parser.parse_args()
    judges = {"vectors": judge_with_vectors(local_model()[1]), "plain": judge_without_vectors()}
    scores: dict[str, Any] = {}
    for path in given.files:
        verdicts = {
            name: [judged(piece, judge) for piece in read(path)] for name, judge in judges.items()
        }
        show(path.stem, verdicts["vectors"])
        scores[path.stem] = {name: score(some) for name, some in verdicts.items()}
    print(json.dumps(scores, indent=1))
    if given.files == MEASURED:
        chats = [world for world in read_worlds(["test"]) if world.is_chat]
        messages = {name: of_messages(chats, judge) for name, judge in judges.items()}
        print(json.dumps(messages, indent=1))
        result = {"command": "python -m bench.capture", **measured_at(), "files": scores,
                  "messages": messages}  # fmt: skip
        (given.out / "capture.json").write_text(
            json.dumps(result, indent=1) + "\n", encoding="utf-8"
        )


def show(name: str, verdicts: Sequence[Verdict]) -> None:
    """Print what was kept wrongly, and what was missed."""
    print(f"\n{name}")
    for verdict in verdicts:
        for memory in verdict.wrong:
            print(f"  wrong {verdict.piece.id} ({memory.memory_type}): {memory.content}")
        for keep in verdict.missed:
            print(f"  missed {verdict.piece.id} ({keep.type}): {verdict.piece.messages[-1][1]!r}")


def score(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return precision and recall, and how often the type is the labelled one; recall also by
    type."""
    right, wrong, same = (
        sum(len(getattr(v, name)) for v in verdicts) for name in ("right", "wrong", "same_type")
    )
    labels = [keep.type for v in verdicts for keep in v.piece.keep]
    missed = [keep.type for v in verdicts for keep in v.missed]
    types = {name: {
        "labels": labels.count(name),
        "recall": _rate(labels.count(name) - missed.count(name), labels.count(name)),
    }
             for name in CLASSES if name != NONE}  # fmt: skip
    return {
        "pieces": len(verdicts), "labels": len(labels), "kept": right + wrong,
        "precision": _rate(right, right + wrong),
        "recall": _rate(len(labels) - len(missed), len(labels)), "same_type": _rate(same, right),
        "types": types,
    }  # fmt: skip


def of_messages(worlds: Sequence[World], judge: Judge) -> dict[str, dict[str, int]]:
    """Return how many messages of users there are, and how many are kept: those that a question of
    a kind asks for, of any kind, and those that none asks for."""
    counts = defaultdict[str, Counter[str]](Counter)
    for world in worlds:
        kinds = defaultdict[str, set[str]](set)
        for question in world.questions:
            for id_ in question.gold:
                kinds[id_].add(question.kind)
        for id_, kept in _kept(world, judge):
            for name in [*kinds[id_], _ASKED] if id_ in kinds else [_OTHERS]:
                counts[name].update(messages=1, kept=int(kept))
    return {name: dict(count) for name, count in sorted(counts.items())}


def _kept(world: World, judge: Judge) -> Iterator[tuple[str, bool]]:
    """Yield the ids of the messages of users, and whether capture keeps something of them."""
    for _, said in groupby(world.memories, key=lambda one: one.session):
        session = list(said)
        roles = ["assistant" if one.speaker == "assistant" else "user" for one in session]
        messages = [
            Message(at, role, one.text)
            for at, (role, one) in enumerate(zip(roles, session, strict=True))
        ]
        found = {
            each.message for each in extract(messages, judge=judge) if isinstance(each, Captured)
        }
        yield from ((one.id, at in found) for at, one in enumerate(session) if roles[at] == "user")


def _rate(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


if __name__ == "__main__":
    main()
