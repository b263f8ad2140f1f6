"""Open the file of a transcript. Its lines are read one by one, so that a file of any size needs little memory."""

from collections.abc import Iterator
from os import PathLike, fstat
from pathlib import Path

from memory_mesh.core.capture import Transcript
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.regular_files import open_regular

_MAX_BYTES = 2**30  # of a file, which is read from its start in every run
_MAX_LINE_BYTES = 2**24  # a longer one contains a picture or a whole file, and is skipped
_CHUNK_BYTES = 2**16


def open_transcript(path: str | PathLike[str]) -> Transcript:
    """Return the messages of a file in any form that `Transcript` reads. Raise `InvalidInput` if it cannot be opened."""
    lines = _lines(path)
    next(lines)  # opens the file
    return Transcript(lines)


def _lines(path: str | PathLike[str]) -> Iterator[str]:
    try:
        with open_regular(Path(path).expanduser()) as file:
            _check_size(fstat(file.fileno()).st_size)
            yield ""
            while line := file.readline(_MAX_LINE_BYTES):
                if len(line) < _MAX_LINE_BYTES or line.endswith(b"\n"):
                    yield line.decode("utf-8", "replace")
                else:
                    while line and not line.endswith(b"\n"):
                        line = file.readline(_CHUNK_BYTES)
                    yield "{ too long"
    except (OSError, ValueError, RuntimeError) as error:  # too large; a NUL in the path; the home of an unknown user
        why = error.strerror if isinstance(error, OSError) else str(error)
        expected = "the JSON lines of Claude Code, or an export of opencode"
        raise InvalidInput(
            f"the transcript {shown(str(path), max_length=120)} cannot be read: {why}", expected=expected
        ) from None


def _check_size(size: int) -> None:
    if size > _MAX_BYTES:
        raise ValueError(f"it has {size:,} bytes, more than {_MAX_BYTES:,}")
