"""The record of a check, and the counters that it is made from."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

OURS = "memory-mesh"
_MAX_EXAMPLES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The figure of one check for one system.

    A control shows that the check can find what it looks for. A row whose controls did not all pass
    is invalid.
    """

    check: str
    what: str  # what is counted as bad
    system: str
    trials: int
    bad: int
    control: int  # controls that passed
    controls: int
    note: str = ""
    examples: tuple[str, ...] = ()  # some of the bad ones

    @property
    def valid(self) -> bool:
        return self.trials > 0 and self.control == self.controls > 0


@dataclass(frozen=True, slots=True)
class Run:
    """What a run measures: few trials or many, and which systems."""

    quick: bool
    systems: Sequence[str]

    def count(self, full: int, quick: int) -> int:
        return quick if self.quick else full


@dataclass(slots=True)
class Tally:
    """Counts the trials and controls of one row."""

    check: str
    what: str
    system: str = OURS
    note: str = ""
    trials: int = 0
    bad: int = 0
    control: int = 0
    controls: int = 0
    examples: list[str] = field(default_factory=list)

    def trial(self, *, good: bool, example: str) -> None:
        self.trials += 1
        self.bad += not good
        if not good and len(self.examples) < _MAX_EXAMPLES:
            self.examples.append(example)

    def expect(self, passed: object) -> None:
        """Count a control, which passed if the value is true."""
        self.controls += 1
        self.control += bool(passed)

    def row(self) -> Row:
        values = {
            name: getattr(self, name)
            for name in ("check", "what", "system", "trials", "bad", "control", "controls", "note")
        }
        return Row(**values, examples=tuple(self.examples))


@contextmanager
def folder() -> Iterator[Path]:
    """Yield a new folder that is removed afterwards."""
    with TemporaryDirectory(prefix="hygiene-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def file_bytes(place: Path) -> bytes:
    """Return the names and all bytes of all files below a folder."""
    return b"\0".join(
        path.name.encode() + b"\0" + path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file()
    )
