"""Questions that no memory answers: of another conversation, with and without its names, and
unrelated ones."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.quality.measuring import Judged, auc
from bench.quality.ours import Scored, opened
from bench.quality.sets import Question, Said, Space, lines
from memory_mesh.core.ports import Embedder
from memory_mesh.core.search.ranker import min_scores
from memory_mesh.core.search.weights import MIN_EXPECTED

DATA = Path(__file__).parent / "data"
SIZES = (5, 50, 500)
_HIGH = 0.3  # no unrelated question may score more
_AT = "2026-01-01T12:00:00.000Z"


def speakers(space: Space) -> list[str]:
    """Return the speakers of a conversation in the order of their first turns."""
    return list(dict.fromkeys(said.speaker for said in space.memories if said.speaker))


def swapped(question: Question, own: Sequence[str], others: Sequence[str]) -> Question:
    """Return the question with the names of its own speakers replaced by those of another
    conversation."""
    names = dict(zip(own, others, strict=False))
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b") if names else None
    text = pattern.sub(lambda found: names[found[1]], question.text) if pattern else question.text
    return replace(question, text=text, gold=frozenset())


def separation(right: Sequence[Scored], wrong: Sequence[Scored], documents: int) -> dict[str, Any]:
    """Return how well the best scores tell answered questions from others, and how many of the
    others stay empty."""
    apart = auc(*([_best(scored) for scored in some] for some in (right, wrong)))
    return {"questions": len(wrong), "auc": apart, "empty": _empty(wrong, documents)}


def _best(scored: Scored) -> float:
    return max((score for _, score in scored), default=0.0)


def _empty(found: Sequence[Scored], documents: int) -> dict[str, float]:
    """Return by mode the percentage of questions that get no answer among so many memories."""
    return {
        mode: _percent([not _kept(scored, mode, documents) for scored in found])
        for mode in MIN_EXPECTED
    }


def _kept(scored: Scored, mode: str, documents: int) -> Scored:
    least = min_scores([score for _, score in scored], documents)[mode]
    return [(id_, score) for id_, score in scored if score >= least]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixed:
    """Memories of many kinds, unrelated questions by kind, and control questions that one of the
    memories answers."""

    memories: Sequence[Said]
    unrelated: Sequence[Question]
    controls: Sequence[Question]


def read_mixed(folder: Path = DATA) -> Mixed:
    """Read the files of this repository. The kind of a question in another language than English
    ends with it: `trivia:de`."""
    memories = [
        Said(id=row["id"], text=row["text"], at=_AT)
        for row in lines(folder / "mixed_memories.jsonl")
    ]
    rows = list(lines(folder / "unrelated.jsonl"))
    return Mixed(
        memories=memories,
        unrelated=[_question(row, row["kind"]) for row in rows if "answer" not in row],
        controls=[_question(row, row.get("kind", "control")) for row in rows if "answer" in row],
    )


def ask_mixed(
    mixed: Mixed, embedder: Embedder, sizes: Sequence[int]
) -> tuple[list[dict[str, Any]], list[Judged]]:
    """Ask all questions of stores of each size. Return a row for each size, and all judged
    scores."""
    rows: list[dict[str, Any]] = []
    judged: list[Judged] = []
    for size in sizes:
        spaces = [
            _space(at, mixed.memories[at : at + size])
            for at in range(0, len(mixed.memories) - size + 1, size)
        ]
        with opened(spaces, embedder) as meshes:
            homes = {
                said.id: mesh
                for space, mesh in zip(spaces, meshes, strict=True)
                for said in space.memories
            }
            found = [
                meshes[at % len(meshes)].ranked(question)
                for at, question in enumerate(mixed.unrelated)
            ]
            controls = [question for question in mixed.controls if question.gold & homes.keys()]
            right = [homes[next(iter(question.gold))].ranked(question) for question in controls]
        rows.append(
            {
                "memories": size,
                "stores": len(spaces),
                **_mixed_row(mixed.unrelated, found, controls, right, size),
            }
        )
        judged += [(score, False) for scored in found for _, score in scored]
        judged += [
            (score, id_ in each.gold)
            for each, scored in zip(controls, right, strict=True)
            for id_, score in scored
        ]
    return rows, judged


def _mixed_row(
    unrelated: Sequence[Question],
    found: Sequence[Scored],
    controls: Sequence[Question],
    right: Sequence[Scored],
    size: int,
) -> dict[str, Any]:
    kinds: dict[str, list[Scored]] = {}
    for question, scored in zip(unrelated, found, strict=True):
        language = "all in other languages" if ":" in question.kind else "all in English"
        for kind in (language, question.kind):
            kinds.setdefault(kind, []).append(scored)
    return {
        **_unrelated_row(found, size),
        "controls": {
            "questions": len(controls),
            **{mode: _first(controls, right, mode, size) for mode in MIN_EXPECTED},
        },
        "kinds": {kind: _unrelated_row(some, size) for kind, some in sorted(kinds.items())},
    }


def _unrelated_row(found: Sequence[Scored], size: int) -> dict[str, Any]:
    best = [_best(scored) for scored in found]
    return {
        "questions": len(found),
        "empty": _empty(found, size),
        "highest": round(max(best, default=0.0), 3),
        "high": sum(score > _HIGH for score in best),
    }


def _first(controls: Sequence[Question], right: Sequence[Scored], mode: str, size: int) -> float:
    """Return the percentage of control questions whose memory is the first result."""
    firsts = [_kept(scored, mode, size)[:1] for scored in right]
    return _percent(
        [
            any(id_ in each.gold for id_, _ in first)
            for each, first in zip(controls, firsts, strict=True)
        ]
    )


def _question(row: Mapping[str, str], kind: str) -> Question:
    return Question(
        text=row["text"],
        gold=frozenset({row["answer"]} if "answer" in row else ()),
        kind=kind,
        at=_AT,
    )


def _space(at: int, memories: Sequence[Said]) -> Space:
    return Space(name=f"mixed {len(memories)} {at}", memories=memories, questions=[])


def _percent(flags: Sequence[bool]) -> float:
    return round(100 * sum(flags) / len(flags), 1) if flags else 0.0
