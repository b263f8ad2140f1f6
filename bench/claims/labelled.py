"""Labelled sentences, and how well `find_statement` agrees with their labels."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_mesh.core.claims.patterns import Statement, find_statement

FOLDER = Path(__file__).parents[2] / "tests" / "data" / "claims"
# Never a reason to change a rule: then its figures would say nothing about other texts.
SECOND_LOOK = FOLDER / "second.jsonl"
SEEN = [path for path in sorted(FOLDER.glob("*.jsonl")) if path != SECOND_LOOK]
_ARTICLE = re.compile(r"^(?:the|an?) ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence, who says it, and the claim that a careful reader would store; None if they
    would store none."""

    text: str
    speaker: str | None
    claim: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found in a sentence, and in which fields it differs from the label."""

    sentence: Sentence
    found: Statement | None
    differs: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        return self.found is not None and self.sentence.claim is not None and not self.differs


def read(path: Path) -> list[Sentence]:
    return [Sentence(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def judge(sentence: Sentence) -> Verdict:
    """Compare what is found with the label: every field has to agree."""
    found, label = find_statement(sentence.text, speaker=sentence.speaker), sentence.claim
    if found is None or label is None:
        return Verdict(sentence, found, ())
    words = [
        name
        for name in ("subject", "predicate", "value")
        if _plain(getattr(found, name)) not in map(_plain, label[name])
    ]
    flags = [
        name for name in ("exclusive", "starts", "ended") if getattr(found, name) != label[name]
    ]
    return Verdict(sentence, found, (*words, *flags))


def score(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """Return the counts, precision (found claims that are right) and recall (labelled claims
    that are found)."""
    right = sum(verdict.is_right for verdict in verdicts)
    found = sum(verdict.found is not None for verdict in verdicts)
    claims = sum(verdict.sentence.claim is not None for verdict in verdicts)
    return {
        "sentences": len(verdicts),
        "claims": claims,
        "found": found,
        "right": right,
        "precision": round(right / found, 4) if found else 1.0,
        "recall": round(right / claims, 4) if claims else 1.0,
    }


def _plain(text: str) -> str:
    """Return a text without case, article and final punctuation."""
    return _ARTICLE.sub("", " ".join(text.casefold().split())).rstrip(".!")
