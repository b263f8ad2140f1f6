"""Read the vectors of redaction: texts with values that must be masked, and texts that must stay,
by kind and source.

`tests/data/redaction_vectors/*.toml` holds tables `[[vectors]]` with `kind` (see `KINDS`), `source`
(where such texts occur, in a few words), `masked` and `stays` (lists of texts). In a text of
`masked`, «…» surrounds each value that must be masked; all else must stay. With a blank inside, « …
» are quotes of the text. For `stays`, the kind is the one that it could be mistaken for. <a36>
stands for 36 made-up characters, as in `data/examples.toml`.
"""

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memory_mesh.core.language.redaction import KINDS, MASK
from redaction_docs import filled

FOLDER = Path(__file__).parents[1] / "tests" / "data" / "redaction_vectors"
SECRETS = FOLDER.parent / "redaction_secrets.txt"
Verdict = Literal["right", "missed", "too much"]
_VALUE = re.compile("«(?! )(.*?)(?<! )»", re.DOTALL)
_MARK = re.compile("«(?! )|(?<! )»")


@dataclass(frozen=True, slots=True)
class Vector:
    """A text, with «…» around each value that must be masked."""

    kind: str
    source: str
    marked: str

    @property
    def text(self) -> str:
        return _MARK.sub("", self.marked)

    @property
    def values(self) -> list[str]:
        return _VALUE.findall(self.marked)

    def verdict(self, redact: Callable[[str], str]) -> Verdict:
        """Return whether all values are masked and nothing else. Part of a value that is left
        counts as missed."""
        redacted, at = redact(self.text), 0
        if MASK.sub("«»", redacted) == _VALUE.sub("«»", self.marked):
            return "right"
        if any(value in redacted for value in self.values):
            return "missed"
        for piece in _VALUE.split(self.marked)[::2]:
            at = redacted.find(piece, at) + len(piece)
            if at < len(piece):
                return "too much"
        return "missed" if self.values else "too much"


def load_secrets(path: Path = SECRETS) -> Iterator[Vector]:
    """Yield the lines of the list of secrets: «…» marks a secret, ⏎ is a line break, and `## …`
    names the source."""
    source = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            source = line[3:]
        elif line:
            yield Vector("secret", source, line.replace("⏎", "\n"))


def load_vectors(folder: Path = FOLDER) -> Iterator[Vector]:
    """Yield the vectors of all files."""
    for path in sorted(folder.glob("*.toml")):
        for table in tomllib.loads(path.read_text(encoding="utf-8"))["vectors"]:
            if table["kind"] not in KINDS:
                raise ValueError(f"{path.name}: unknown kind {table['kind']!r}")
            for text in (*table.get("masked", ()), *table.get("stays", ())):
                yield Vector(table["kind"], table["source"], filled(text))
