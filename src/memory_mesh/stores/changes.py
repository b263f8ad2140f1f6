"""Changes as journals record them, and the moves of partitions that they cause."""

import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_mesh.core.errors import StoreCorrupt
from memory_mesh.core.model import Key, Kind, Row, as_read
from memory_mesh.stores.base import BEGINNING, decode_key, decode_row, encode_json, encode_row, mark_of


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a store."""

    puts: Sequence[Row]
    deletes: Sequence[Key]
    moves: Mapping[str, Sequence[Key]]  # by partition
    nonce: str
    frees: bool  # it leaves bytes that must be freed: see `erases`


@dataclass(frozen=True, slots=True)
class Moves:
    """The moves of one change in a partition, whose version they raised to `version`."""

    version: int
    nonce: str
    keys: Sequence[Key]

    @property
    def mark(self) -> str:
        return mark_of(self.version, self.nonce)


def erases(puts: Sequence[Row], deletes: Sequence[Key]) -> bool:
    """Return whether the bytes of what a change deletes must be freed: it deletes rows, or the text of an audit block.

    Events of hooks come and go, and say what their memory says: an erasure of that frees their bytes too.
    """
    tombstones = any(row.replaces and row.kind is Kind.BLOCK for row in puts)
    return tombstones or any(key.kind is not Kind.EVENT for key in deletes)


def since(moves: Sequence[Moves], mark: str | None) -> list[Key] | None:
    """Return the keys that moved after a mark, or None if these moves do not lead on from it."""
    found = moves_since(moves, mark)
    return None if found is None else [key for one in found for key in one.keys]


def moves_since(moves: Sequence[Moves], mark: str | None) -> list[Moves] | None:
    """Return the moves after a mark, or None if these do not lead on from it."""
    if mark == BEGINNING and moves and moves[0].version == len(moves[0].keys):
        return list(moves)
    for place in reversed(range(len(moves))):
        if moves[place].mark == mark:
            return list(moves[place + 1 :])
    return None


def encode_change(change: Change) -> dict[str, object]:
    """Return a change as an object that JSON can represent."""
    return {
        "puts": [encode_row(row) for row in change.puts],
        "deletes": change.deletes,
        "moves": change.moves,
        "nonce": change.nonce,
        "frees": change.frees,
    }


def decode_change(given: Mapping[str, Any]) -> Change:
    """Return the change that `encode_change` made an object of. Raises `StoreCorrupt` for another one."""
    try:
        return _decoded(given)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise StoreCorrupt("a change in the journal is damaged", remedy="restore a backup") from error


def _decoded(given: Mapping[str, Any]) -> Change:
    moves = {name: [decode_key(key) for key in keys] for name, keys in given["moves"].items()}
    deletes = [decode_key(key) for key in given["deletes"]]
    rows = [as_read(decode_row(one)) for one in given["puts"]]
    return Change(rows, deletes, moves, str(given["nonce"]), bool(given["frees"]))


def new_nonce() -> str:
    return secrets.token_hex(8)


def as_json(sample: bytes) -> bytes:
    """Return the form that a text has as a part of JSON."""
    return encode_json(sample.decode(errors="replace"))[1:-1].encode()


def append(file: Path, record: bytes, *, at: int) -> None:
    """Write a record at the end of a journal, durable when this returns. If it cannot, the journal is as it was."""
    opened = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    try:
        os.ftruncate(opened, at)  # what a process that died wrote by half
        os.lseek(opened, at, os.SEEK_SET)
        with memoryview(record) as left:
            while left:
                left = left[os.write(opened, left) :]
        os.fsync(opened)
    except OSError:
        with suppress(OSError):
            os.ftruncate(opened, at)
        raise
    finally:
        os.close(opened)
