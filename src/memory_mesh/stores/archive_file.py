"""The file of an archive (`core.transfer.archive`) as a source of rows.

It is checked as a whole before the first row is used.
"""

import json
from collections.abc import Collection, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from memory_mesh.core.errors import InvalidInput, StoreBusy, shown
from memory_mesh.core.model import Kind, Row
from memory_mesh.core.model.background import check_cancelled
from memory_mesh.core.ports import NoFile, Progress, Store
from memory_mesh.core.transfer import archive
from memory_mesh.core.transfer.archive import KINDS, Tally
from memory_mesh.core.transfer.export import read_object
from memory_mesh.stores.files import remove_parts, whole_file
from memory_mesh.system import open_regular

MAX_LINE = 32 * 1024 * 1024  # bytes; no row of ours is longer
_ATTEMPTS = 5  # to write an archive of one moment
_REMEDY = "nothing was changed; make the export again, or take another copy of the file"


def bounded_lines(file: BinaryIO) -> Iterator[bytes | InvalidInput]:
    """Yield the lines of a file; for a line that is too long, an error. At most one line is in
    memory."""
    while line := file.readline(MAX_LINE + 1):
        if len(line) <= MAX_LINE:
            yield line
            continue
        while not line.endswith(b"\n") and (line := file.readline(MAX_LINE)):
            pass
        yield InvalidInput("it is too long", expected=f"at most {MAX_LINE:,} bytes")


class ArchivedStore(NoFile):
    """A store without a file: its backup is an archive."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def backup(self, target: Path, progress: Progress) -> int:
        """Write all rows to a new file; again, if others write to the store meanwhile."""
        try:
            remove_parts(target)
            with whole_file(target) as part:
                for attempts_left in reversed(range(_ATTEMPTS)):
                    try:
                        with part.open("w", encoding="utf-8", newline="\n") as opened:
                            opened.writelines(
                                archive.archive_lines(self._store, vectors=True, progress=progress)
                            )
                        break
                    except StoreBusy:
                        if not attempts_left:
                            raise
            return target.stat().st_size
        except FileExistsError:
            raise InvalidInput(
                f"{target} exists", expected="a file that does not exist yet"
            ) from None
        except OSError as error:
            raise InvalidInput(
                f"{target} cannot be written: {error.strerror}",
                expected="a folder with enough space",
            ) from error


class ArchiveFile:
    """The rows of an archive. Implements `core.ports.RowSource`. Raises `InvalidInput` if a line
    is damaged or missing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._starts: dict[Kind, int] = {}  # the places in the file
        self._total = 0
        self.name = f"archive {self._check()}"

    def state(self) -> Hashable:
        return self.name

    def count(self) -> int:
        return self._total

    def present(self, kind: Kind, ids: Sequence[str]) -> Collection[str]:
        return ids  # the file does not change

    def rows(self, kind: Kind) -> Iterator[Row]:
        if kind not in self._starts:
            return
        with open_regular(self._path) as file:
            file.seek(self._starts[kind])
            for line in file:
                values = json.loads(line)
                if values.get("kind") != kind:
                    return
                yield archive.decode(values)

    def _check(self) -> str:
        """Read the whole file, and return the digest in its last line."""
        tally, last, end, place = Tally(), None, None, 0
        with open_regular(self._path) as file:
            for number, line in enumerate(bounded_lines(file), start=1):
                check_cancelled()
                try:
                    values = read_object(line)
                    if number == 1:
                        archive.check_header(values)
                    elif "end" in values:
                        end = values["end"]
                    else:
                        last = self._check_row(values, last, place)
                        tally.add(last)
                        end = None  # a line after the last one
                except InvalidInput as error:
                    raise InvalidInput(
                        f"line {number} of {self._path}: {error.what}", remedy=_REMEDY
                    ) from None
                place = file.tell()
        if end is None:
            raise InvalidInput(f"{self._path} was cut: its last line is missing", remedy=_REMEDY)
        if end != tally.values():
            raise InvalidInput(
                f"{self._path} was changed: its rows do not have the digest of its last line",
                remedy=_REMEDY,
            )
        self._total = sum(tally.counts.values())
        return tally.digest

    def _check_row(self, values: dict[str, Any], last: Row | None, place: int) -> Row:
        row = archive.decode(values)
        if last and (KINDS.index(row.kind), last.age_key) < (KINDS.index(last.kind), row.age_key):
            raise InvalidInput("it is not in order")
        if last and (row.kind, row.age_key) == (last.kind, last.age_key):
            raise InvalidInput(f"{shown(row.id)} is there twice")
        self._starts.setdefault(row.kind, place)
        return row
