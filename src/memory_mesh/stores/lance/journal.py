"""The files of a LanceDB store beside its tables, in the folder `memory_mesh`: state, journal, log of moves, and lock.

A change is durable when its record is in the journal. `flush.flush` writes the changes of the journal into the tables, and
then replaces the state, which names the version of each table and the journal that continues it. So a reader that reads the state
and its journal sees whole changes only, whatever a writer does meanwhile or left unfinished.
"""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import sha256
from pathlib import Path
from struct import Struct
from typing import Any, TypeVar
from zlib import crc32

from memory_mesh.core.errors import StoreCorrupt, StoreTooNew
from memory_mesh.stores import folder
from memory_mesh.stores.base import KEPT_MOVES, decode_key, encode_json
from memory_mesh.stores.changes import Change, Moves, append, decode_change, encode_change
from memory_mesh.stores.files import sync

FORMAT = 1
OWN = "memory_mesh"  # the folder of these files, beside the folders of the tables
STATE, LOCK, FLUSHING = "state.json", "lock", "flushing.json"

HEADER = Struct("<II")  # length and checksum of a record
_MIN_TRIMMED = 4 * 1024 * 1024  # bytes of the log of moves


@dataclass(slots=True)
class State:
    """What the tables contain: their versions, those of the partitions, and which journal and log of moves belong to them."""

    format: int = FORMAT
    generation: int = 0  # the number of the journal
    tables: dict[str, int] = field(default_factory=dict)
    partitions: dict[str, tuple[int, str]] = field(default_factory=dict)  # version and nonce
    moves: int = 0  # the number of the log of moves
    moves_length: int = 0  # in bytes; what follows was never committed
    moves_trimmed: int = 0  # its length after it was trimmed last
    writes: int = 0
    nonce: str = ""  # of the last change
    unfreed: bool = False  # bytes of deleted rows may be in the files
    foreign: bool = False  # another program may have written to the tables

    def after_others(self, tables: dict[str, int], nonce: str | None = None) -> "State":
        """Return the state after another program, or a migration, wrote to the tables. It is not known which rows moved.

        Without a nonce, it is the same for every process that reads these tables.
        """
        nonce = nonce or sha256(encode_json(sorted(tables.items())).encode()).hexdigest()[:16]
        moved = {name: (version + 1, nonce) for name, (version, _) in self.partitions.items()}
        return replace(
            self, tables=tables, partitions=moved, moves=self.moves + 1, moves_length=0, moves_trimmed=0, writes=self.writes + 1,
            nonce=nonce, foreign=True,
        )  # fmt: skip


S = TypeVar("S", bound=State)


# --- the state ---


def read_state(own: Path) -> State | None:
    """Return the state, or None if there is none. A state of a newer version raises `StoreTooNew`."""
    try:
        return decode_state(json.loads((own / STATE).read_bytes()), State, str(own.parent))
    except FileNotFoundError as error:
        if any(own.glob("journal-*")):  # it is written before the first journal
            raise StoreCorrupt(f"{own / STATE} is missing", remedy="restore a backup") from error
        return None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreCorrupt(f"{own / STATE} is damaged", remedy="restore a backup") from error


def decode_state(given: Mapping[str, Any], form: type[S], name: str) -> S:
    """Return the state that JSON represents."""
    if given["format"] > FORMAT:
        what = f"the store {name} has format {given['format']}"
        raise StoreTooNew(what, expected=f"at most {FORMAT}", remedy="upgrade memory-mesh")
    state, blank = form(**given), form()
    state.partitions = {name: (int(version), str(nonce)) for name, (version, nonce) in state.partitions.items()}
    state.tables = {name: int(version) for name, version in state.tables.items()}
    for one in fields(state):
        if type(getattr(state, one.name)) is not type(getattr(blank, one.name)):
            raise TypeError(f"{one.name} has another type")
    return state


def write_state(own: Path, state: State) -> None:
    """Replace the state, durably and at once."""
    write_json(own / STATE, asdict(state))


def write_json(file: Path, value: Mapping[str, Any]) -> None:
    """Replace a file by JSON, durably and at once."""
    part = file.with_name(f".{file.name}")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
        opened.write(encode_json(value).encode())
        opened.flush()
        os.fsync(opened.fileno())
    os.replace(part, file)
    sync(file.parent)


# --- the journal ---


def journal_of(own: Path, generation: int) -> Path:
    return own / f"journal-{generation}"


def encode(change: Change) -> bytes:
    """Return the record of a change."""
    body = encode_json(encode_change(change)).encode()
    return HEADER.pack(len(body), crc32(body)) + body


def decode(record: bytes) -> Change:
    """Return the change of a record."""
    try:
        return decode_change(json.loads(record[HEADER.size :]))
    except (ValueError, RecursionError) as error:
        raise StoreCorrupt("a change in the journal is not JSON", remedy="restore a backup") from error


def read_journal(descriptor: int, at: int, name: Path) -> tuple[list[Change], int]:
    """Return the changes in a journal from a place on, and the place after them.

    A last record that is incomplete is being written, or the process that wrote it died: it was never acknowledged.
    """
    size, changes = os.fstat(descriptor).st_size, list[Change]()
    data = os.pread(descriptor, size - at, at) if size > at else b""
    place = 0
    while place + HEADER.size <= len(data):
        length, checksum = HEADER.unpack_from(data, place)
        body = data[place + HEADER.size : place + HEADER.size + length]
        end = place + HEADER.size + length
        if len(body) < length or crc32(body) != checksum:
            if end < len(data):
                raise StoreCorrupt(f"{name} is damaged at byte {at + place}", remedy="restore a backup")
            break
        changes.append(decode(data[place:end]))
        place = end
    return changes, at + place


# --- the log of moves ---


def moves_of(own: Path, number: int) -> Path:
    return own / f"moves-{number}"


def read_moves(own: Path, state: State) -> dict[str, list[Moves]]:
    """Return the moves that were flushed, by partition, oldest first."""
    file = moves_of(own, state.moves)
    return decode_moves(file.read_bytes()[: state.moves_length] if state.moves_length else b"", str(file))


def decode_moves(data: bytes, file: str) -> dict[str, list[Moves]]:
    """Return the moves in a log, by partition, oldest first."""
    found: dict[str, list[Moves]] = {}
    try:
        for line in data.splitlines():
            name, version, nonce, keys = json.loads(line)
            found.setdefault(name, []).append(Moves(int(version), str(nonce), [decode_key(key) for key in keys]))
    except (ValueError, TypeError, LookupError) as error:
        raise StoreCorrupt(f"{file} is damaged", remedy="restore a backup") from error
    return found


def encode_moves(moved: Mapping[str, Sequence[Moves]]) -> bytes:
    """Return moves as the lines of a log."""
    lines = [encode_json([name, one.version, one.nonce, one.keys]) for name, some in moved.items() for one in some]
    return "".join(f"{line}\n" for line in lines).encode()


def log_moves(own: Path, state: State, moved: Mapping[str, Sequence[Moves]]) -> None:
    """Append moves to the log, durably; the state that names its new length commits them. A long log is trimmed."""
    trimmed = state.moves_length > 2 * state.moves_trimmed + _MIN_TRIMMED
    if trimmed:
        kept = read_moves(own, state)
        for name, new in moved.items():
            kept.setdefault(name, []).extend(new)
        moved = {name: latest_moves(some) for name, some in kept.items()}
        state.moves, state.moves_length = state.moves + 1, 0
    data = encode_moves(moved)
    append(moves_of(own, state.moves), data, at=state.moves_length)
    state.moves_length += len(data)
    state.moves_trimmed = state.moves_length if trimmed else state.moves_trimmed


def latest_moves(moves: Sequence[Moves]) -> list[Moves]:
    """Return the last moves, about as many as a partition must remember."""
    oldest = moves[-1].version - KEPT_MOVES
    return [one for one in moves if one.version > oldest]


# --- the lock ---


def locked(own: Path, *, busy_seconds: float) -> AbstractContextManager[None]:
    """Hold the lock that every writer of any process takes. Raises `StoreBusy` if it is not free in time."""
    return folder.locked(own.parent, own / LOCK, busy_seconds=busy_seconds)
