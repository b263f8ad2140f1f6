"""The file of anchors: one line of JSON for each time the heads were written, appended and never changed."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from stat import S_ISREG

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import Json
from memory_mesh.regular_files import open_regular
from memory_mesh.stores.files import append_durably, sync

_START = b'{"anchored_at": "'
_EXPECTED = "a new file outside the store, or a file of memory-mesh audit anchor"
# Opening a pipe must not wait for its reader.
_FLAGS = os.O_RDWR | os.O_APPEND | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class AnchorFile:
    """The anchors in a file; implements `core.ports.AnchorLog`. It refuses to write to a file or folder in `store_files`."""

    def __init__(self, path: str, *, store_files: Sequence[Path] = ()) -> None:
        self._path = Path(path).expanduser()
        self._store_files = [os.path.realpath(file) for file in store_files]

    def write(self, record: Mapping[str, Json]) -> None:
        """Append a record. It is durable when the call returns."""
        line = json.dumps(dict(record)).encode("ascii") + b"\n"
        real = os.path.realpath(self._path)
        if any(real == file or real.startswith((f"{file}-", f"{file}{os.sep}")) for file in self._store_files):
            raise self._refusal("it belongs to the store")
        try:
            if self._path.is_symlink() and not self._path.exists():
                raise self._refusal("it is a link to a file that does not exist")
            with open(os.open(self._path, _FLAGS | os.O_CREAT, 0o600), "r+b", buffering=0) as file:
                self._check(file.fileno(), file.read(len(_START)))
                is_new = not os.fstat(file.fileno()).st_size
                append_durably(file.fileno(), line)
            if is_new:
                sync(self._path.parent)
        except OSError as error:
            raise self._refusal(str(error.strerror)) from error

    def lines(self) -> Iterator[str]:
        """Yield the lines of the file."""
        try:
            with TextIOWrapper(open_regular(self._path, typed=True), "utf-8-sig") as file:
                yield from file
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise InvalidInput(
                f"{str(self._path)[:200]} cannot be read: {reason}", expected="a file of memory-mesh audit anchor"
            ) from None

    def _check(self, file: int, start: bytes) -> None:
        if not S_ISREG(os.fstat(file).st_mode):
            raise self._refusal("it is not a regular file")
        if start not in (b"", _START):
            raise self._refusal("it has other contents than anchors")

    def _refusal(self, why: str) -> InvalidInput:
        return InvalidInput(f"the anchor cannot be written to {str(self._path)[:200]}: {why}", expected=_EXPECTED)
