"""Index files: their place, their format, and how they are deleted.

A file contains words and vectors, so erasing deletes it first. It is a checksum of the rest, a line of JSON, and arrays as they
lie in memory, so opening it means mapping it. numpy is loaded by the functions that read and write arrays: a command that erases
does not search.
"""

import json
import mmap
import os
import secrets
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import reduce
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from memory_mesh.core.errors import StoreUnavailable

if TYPE_CHECKING:
    from memory_mesh.index.arrays import Columns
    from memory_mesh.index.table import Names

_SUFFIX, _PARTIAL = ".index", ".part"
_MAGIC = b"memory-mesh index 5\n"
_HEAD = len(_MAGIC) + 8  # where the head begins, after the digits of the checksum
_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Saved:
    """The contents of a file: a table, and the mark of the partition's state that it was built from."""

    mark: str
    language: str
    names: "Names"
    columns: "Columns"


def file_of(folder: Path, partition: str) -> Path:
    """Return the index file of a partition; its name does not reveal the partition."""
    return folder / (sha256(partition.encode()).hexdigest()[:32] + _SUFFIX)


def forget(folder: Path | None, partitions: Iterable[str]) -> None:
    """Delete the index files of these partitions, partly written ones included."""
    if folder is None:
        return
    for partition in partitions:
        path = file_of(folder, partition)
        for file in (path, *folder.glob(f"{path.stem}*{_PARTIAL}")):
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise StoreUnavailable(f"cannot delete {file}: {error.strerror}", remedy="delete it by hand") from error


def save(path: Path, saved: Saved) -> bool:
    """Replace a file atomically; return False if that fails."""
    partial = path.with_name(f"{path.stem}-{secrets.token_hex(8)}{_PARTIAL}")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with os.fdopen(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.writelines(_bytes(saved))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:  # a full disk, a deleted or read-only folder: the file only makes the next start faster
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        return False
    return True


def load(path: Path) -> Saved | None:
    """Map a file; return None if it is missing, damaged or of another format."""
    import numpy as np

    from memory_mesh.index.table import Names, Scope

    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        # Without the checksum, a head or arrays that a bad disk changed would silently give wrong results.
        if mapped[: len(_MAGIC)] != _MAGIC or mapped[len(_MAGIC) : _HEAD] != _checksum([memoryview(mapped)[_HEAD:]]):
            return None
        head = json.loads(mapped[_HEAD : mapped.find(b"\n", _HEAD)])
        names = head["names"]
        scopes, models = [Scope(*scope) for scope in names["scopes"]], [(name, dimension) for name, dimension in names["models"]]
        columns = {
            name: np.frombuffer(mapped, dtype, prod(shape), start).reshape(shape)
            for name, (start, dtype, shape) in head["columns"].items()
        }
        return Saved(head["mark"], head["language"], Names(**{**names, "scopes": scopes, "models": models}), columns)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _bytes(saved: Saved) -> Iterator[bytes | memoryview]:
    import numpy as np

    arrays = [np.ascontiguousarray(column) for column in saved.columns.values()]
    data = [array.reshape(-1).view(np.uint8).data if array.size else b"" for array in arrays]
    body = [part for each in data for part in (each, bytes(-len(each) % _ALIGNMENT))]
    places = [[0, array.dtype.str, list(array.shape)] for array in arrays]
    head = {
        "mark": saved.mark, "language": saved.language, "names": asdict(saved.names),
        "columns": dict(zip(saved.columns, places, strict=True)),
    }  # fmt: skip
    # The offsets of the arrays depend on the length of the head and the reverse, so the head is padded.
    room = _HEAD + len(json.dumps(head)) + 24 * len(arrays)
    room = start = room + -room % _ALIGNMENT
    for place, each in zip(places, data, strict=True):
        place[0] = start
        start += len(each) + -len(each) % _ALIGNMENT
    line = json.dumps(head).encode().ljust(room - _HEAD - 1) + b"\n"
    yield from (_MAGIC, _checksum([line, *body]), line, *body)


def _checksum(parts: Iterable[bytes | memoryview]) -> bytes:
    """Return the checksum of all that follows it in a file, as eight digits."""
    return b"%08x" % reduce(lambda total, part: zlib.crc32(part, total), parts, 0)
