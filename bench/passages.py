"""Measure how often the passage of a hit contains the evidence.

    python -m bench.passages --data DIR

DIR holds `locomo/`. Each session of a conversation is one memory; the questions are those whose
evidence is a single turn. The weight of words was chosen on conversations 1–5, so only 6–10 are
measured.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from bench.quality.sets import Space, locomo_sessions, locomo_turns
from memory_mesh import MemoryMesh, SearchResult

_CHOSEN_ON = 5  # conversations


def main() -> None:
    parser = argparse.ArgumentParser(description="How often a passage contains the evidence")
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data
    spaces = list(zip(locomo_sessions(folder), locomo_turns(folder), strict=True))[_CHOSEN_ON:]
    found = [each for sessions, turns in spaces for each in _found(sessions, turns)]
    right = sum(evidence in hit.excerpt for hit, evidence in found)
    begins = sum(evidence in hit.content[: len(hit.excerpt)] for hit, evidence in found)
    size = sum(len(hit.excerpt) for hit, _ in found) / sum(len(hit.content) for hit, _ in found)
    print(
        f"{len(found)} questions: the evidence is in {right / len(found):.1%} of the passages, "
        f"which have {size:.0%} of the text"
    )
    print(f"and in {begins / len(found):.1%} of beginnings of the same length")


def _found(sessions: Space, turns: Space) -> Iterator[tuple[SearchResult, str]]:
    """Yield the hit on the right session for each question, and the turn that is the evidence."""
    texts = {said.id: said.text for said in turns.memories}
    with MemoryMesh(store="memory://", audit_recalls=False) as mesh:
        names = {mesh.add(said.text, said.metadata).id: said.id for said in sessions.memories}
        for question in turns.questions:
            if len(question.gold) == 1 and question.kind != "adversarial":
                (gold,) = question.gold
                hits = mesh.search(question.text, limit=len(names), min_score=0.0)
                right = (hit for hit in hits if names[hit.id] == gold.split(":")[0])
                yield from ((hit, texts[gold]) for hit in right if texts[gold] in hit.content)


if __name__ == "__main__":
    main()
