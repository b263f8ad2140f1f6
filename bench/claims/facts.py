"""FactConsolidation: how often a search returns the newest of contradicting facts first."""

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from bench.quality.ours import Ours, opened
from bench.quality.sets import Space, fact_consolidation
from bench.quality.vectors import local


def measure_facts(data: Path, vectors: Path | None) -> dict[str, Any]:
    """Ask the single-hop questions at every size, of the product with its default settings."""
    embedder = local(vectors)
    spaces = fact_consolidation(data)
    with opened(spaces, embedder) as meshes:
        measured = {
            f"{space.name} tokens": _measure(space, ours)
            for space, ours in zip(spaces, meshes, strict=True)
        }
    embedder.save()
    return measured


def _measure(space: Space, ours: Ours) -> dict[str, float]:
    texts = {said.id: said.text for said in space.memories}
    first = above = 0
    for question in space.questions:
        ids = [id_ for id_, _ in ours.ranked(question)]
        (gold,) = question.gold
        is_first, is_above = ids[:1] == [gold], _is_above_older(ids, gold, texts)
        first, above = first + is_first, above + is_above
        if not is_first:
            print(
                f"  not first ({space.name}): {question.text} → "
                f"{texts[ids[0]] if ids else 'nothing'}; newest: {texts[gold]}"
            )
    count = len(space.questions)
    return {
        "facts": len(space.memories),
        "questions": count,
        "first": round(100 * first / count, 2),
        "above_older": round(100 * above / count, 2),
    }


def _is_above_older(ids: Sequence[str], gold: str, texts: dict[str, str]) -> bool:
    """Return whether the newest fact was found, and no fact above it begins with the same words,
    for half of its length."""
    if gold not in ids:
        return False
    words = texts[gold].split()
    same = (
        sum(1 for _ in takewhile(_is_same, zip(words, texts[id_].split(), strict=False)))
        for id_ in ids[: ids.index(gold)]
    )
    return all(2 * count < len(words) for count in same)


def _is_same(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]
