"""An index as a file: a line of JSON, then arrays as they lie in memory, so that opening it is mapping it."""

import json
import mmap
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from memory_mesh.index.arrays import Array, Columns
from memory_mesh.index.files import write
from memory_mesh.index.rows import Scope
from memory_mesh.index.table import Names

_MAGIC = b"memory-mesh index 1\n"
_ALIGNED = 64


@dataclass(frozen=True, slots=True)
class Saved:
    """What a file holds: a table as it was when the partition was in the state of the mark."""

    mark: str
    language: str
    names: Names
    columns: Columns


def save(path: Path, saved: Saved) -> bool:
    """Write it; False where that cannot be done."""
    return write(path, _bytes(saved))


def load(path: Path) -> Saved | None:
    """Read it back; None where there is none, or one that is not whole or not ours."""
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if mapped[: len(_MAGIC)] != _MAGIC:
            return None
        end = mapped.find(b"\n", len(_MAGIC)) + 1
        head = json.loads(mapped[len(_MAGIC) : end])
        # Arrays that a bad disk changed would give wrong answers without a word.
        if zlib.crc32(memoryview(mapped)[end:]) != head["sum"]:
            return None
        names = head["names"]
        return Saved(
            head["mark"], head["language"],
            Names(
                [Scope(*scope) for scope in names["scopes"]], names["sessions"], names["speakers"],
                [(model, dimension) for model, dimension in names["models"]],
            ),
            {name: _column(mapped, *where) for name, where in head["columns"].items()},
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _column(mapped: mmap.mmap, start: int, dtype: str, shape: list[int]) -> Array:
    count = int(np.prod(shape))
    if start + count * np.dtype(dtype).itemsize > len(mapped):
        raise ValueError("the file is too short")
    return np.frombuffer(mapped, dtype, count, start).reshape(shape)


def _bytes(saved: Saved) -> Iterator[bytes | memoryview]:
    arrays = [np.ascontiguousarray(column) for column in saved.columns.values()]
    body = [part for array in arrays for part in _padded(array)]
    head = {"mark": saved.mark, "language": saved.language, "names": asdict(saved.names), "sum": _sum(body)}
    # Where the arrays begin depends on how long the head is, and the other way round: so it is given room.
    bare = [[0, array.dtype.str, list(array.shape)] for array in arrays]
    room = _up(len(_MAGIC) + len(json.dumps({**head, "columns": dict(zip(saved.columns, bare, strict=True))})) + 24 * len(arrays))
    start = room
    for where, array in zip(bare, arrays, strict=True):
        where[0] = start
        start = _up(start + array.nbytes)
    line = _MAGIC + json.dumps({**head, "columns": dict(zip(saved.columns, bare, strict=True))}).encode()
    yield line.ljust(room - 1) + b"\n"
    yield from body


def _padded(array: Array) -> tuple[bytes | memoryview, bytes]:
    return array.reshape(-1).view(np.uint8).data if array.size else b"", bytes(_up(array.nbytes) - array.nbytes)


def _sum(parts: Iterable[bytes | memoryview]) -> int:
    total = 0
    for part in parts:
        total = zlib.crc32(part, total)
    return total


def _up(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
