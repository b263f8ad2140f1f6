"""Labelled reports of agents, and what the judge of notes makes of them.

A line of a JSON Lines file is a finished run: agent, task, agent_output, result and error; `keep`
tells whether it is worth a note, `kind` of which kind, and `sentences` are those that carry it.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memory_mesh.core.language.packaged import NONE
from memory_mesh.core.notes.extraction import Statement, statements

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Report:
    """A report with its label."""

    id: str
    task: str
    text: str
    kind: str | None  # None: not worth a note
    sentences: tuple[str, ...]

    @property
    def statements(self) -> Sequence[Statement]:
        return statements(self.text)

    def class_of(self, statement: Statement) -> str:
        """Return the kind of a statement that the label names, or none."""
        own = _plain(statement.text)
        named = any(own in sentence or sentence in own for sentence in map(_plain, self.sentences))
        return self.kind if self.kind and named else NONE


def read(path: Path) -> list[Report]:
    """Read the reports of a file."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Report(
            row["id"],
            row["task"],
            row["agent_output"],
            row["kind"] if row["keep"] else None,
            tuple(row["sentences"]),
        )
        for row in rows
    ]


def _plain(text: str) -> str:
    return re.sub(r"\W+", " ", text.lower()).strip()
