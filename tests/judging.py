"""A judge of pairs for tests: it was told what a few newer statements change."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from memory_mesh.api import build
from memory_mesh.core.ports import Likely

BERLIN, MUNICH, HAMBURG = "I live in Berlin", "I live in Munich", "I live in Hamburg"
ROSSI, KIM = "I eat lunch at Rossi's", "Lunch at Kim's was great"
GYM, GYM_ENDED = "My gym is Fit One", "My gym membership ran out"
UNRELATED = Likely(0.0, 0.0, 0.1, 0.9)
MOVED = Likely(0.97, 0.01, 0.01, 0.01)
MAY_HAVE = Likely(0.5, 0.1, 0.3, 0.1)


def _told() -> dict[tuple[str, str], Likely]:
    return {
        (BERLIN, MUNICH): MOVED, (MUNICH, HAMBURG): MOVED, (BERLIN, HAMBURG): MOVED,
        (GYM, GYM_ENDED): Likely(0.05, 0.93, 0.01, 0.01),
        ("I have a dog, Rex", "I have a second dog, Ada"): Likely(0.2, 0.2, 0.6, 0.0),
        (ROSSI, KIM): MAY_HAVE,
    }  # fmt: skip


@dataclass
class ToldJudge:
    """Says of the pairs that it was told what they are, and of others that they are unrelated."""

    says: dict[tuple[str, str], Likely] = field(default_factory=_told)
    asked: list[tuple[str, str]] = field(default_factory=list)
    version: str = "told"

    def is_ready(self) -> bool:
        return True

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Likely]:
        self.asked += pairs
        return [self.says.get(pair, UNRELATED) for pair in pairs]


def give_judge(monkeypatch: pytest.MonkeyPatch) -> ToldJudge:
    """Let every mesh that is opened later have a judge, and return it."""
    judge = ToldJudge()
    monkeypatch.setattr(build, "make_judge", lambda *_: judge)
    return judge
