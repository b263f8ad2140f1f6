"""Move memories between stores: a backup of the file, and memories as lines of JSON."""

from dataclasses import dataclass
from pathlib import Path

from memory_mesh.core.ports import Progress
from memory_mesh.flows.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUp:
    """A copy of a store's file, and its size."""

    file: str
    bytes: int


def backup(context: Context, file: str, progress: Progress) -> BackedUp:
    """Copy the file of the store to a new file."""
    target = Path(file).expanduser().absolute()
    return BackedUp(file=str(target), bytes=context.file.backup(target, progress))
