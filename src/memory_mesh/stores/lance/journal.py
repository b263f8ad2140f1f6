"""The files of a LanceDB store beside its tables: state, journal, log of moves, and lock.

They are in the folder `memory_mesh`. A change is durable when its record is in the journal.
`view.flush` writes the changes of the journal into the tables, and then replaces the state, which
names the version of each table and the journal that continues it. So a reader that reads the state
and its journal sees whole changes only, whatever a writer does meanwhile or left unfinished.
"""

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from errno import EACCES, EDQUOT, EFBIG, ENAMETOOLONG, ENOSPC, EPERM, EROFS
from hashlib import sha256
from pathlib import Path
from struct import Struct
from typing import Any, Protocol, TypeVar
from zlib import crc32

import pyarrow as pa

from memory_mesh.core.errors import (
    StoreCorrupt,
    StoreError,
    StoreMissing,
    StoreTooNew,
    StoreUnavailable,
)
from memory_mesh.stores.base import (
    Change,
    Moves,
    decode_key,
    encode_change,
    encode_json,
    latest_moves,
)
from memory_mesh.stores.files import replace_file, store_error
from memory_mesh.stores.journal import Record, append
from memory_mesh.stores.lance.schema import Table

FORMAT = 2  # since vectors have tokens, which earlier versions would lose without a word
OWN = "memory_mesh"  # the folder of these files, beside the folders of the tables
STATE, LOCK, FLUSHING = "state.json", "lock", "flushing.json"

HEADER = Struct("<II")  # length and checksum of a record
_MIN_TRIMMED = 4 * 1024 * 1024  # bytes of the log of moves


@dataclass(slots=True)
class State:
    """What the tables contain: their versions, those of the partitions, and which journal and
    log of moves belong to them."""

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
        """Return the state after another program, or a migration, wrote to the tables. It is not
        known which rows moved.

        Without a nonce, it is the same for every process that reads these tables.
        """
        nonce = nonce or sha256(encode_json(sorted(tables.items())).encode()).hexdigest()[:16]
        moved = {name: (version + 1, nonce) for name, (version, _) in self.partitions.items()}
        return replace(
            self, tables=tables, partitions=moved, moves=self.moves + 1, moves_length=0,
            moves_trimmed=0, writes=self.writes + 1, nonce=nonce, foreign=True,
        )  # fmt: skip


S = TypeVar("S", bound=State)


# --- the state ---


def read_state(own: Path) -> State | None:
    """Return the state, or None if there is none. A state of a newer version raises
    `StoreTooNew`."""
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
    state.partitions = {
        name: (int(version), str(nonce)) for name, (version, nonce) in state.partitions.items()
    }
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
    replace_file(file, encode_json(value).encode())


# --- the journal ---


def journal_of(own: Path, generation: int) -> Path:
    return own / f"journal-{generation}"


def record_of(change: Change) -> bytes:
    """Return the record of a change."""
    body = encode_json(encode_change(change)).encode()
    return HEADER.pack(len(body), crc32(body)) + body


def records(data: bytes) -> Iterator[Record]:
    """Yield the records of a journal; the last one may be incomplete."""
    start = 0
    while start + HEADER.size <= len(data):
        length, checksum = HEADER.unpack_from(data, start)
        end = start + HEADER.size + length
        body = data[start + HEADER.size : end]
        yield Record(start, end, body, len(body) == length and crc32(body) == checksum)
        start = end


# --- the log of moves ---


def moves_of(own: Path, number: int) -> Path:
    return own / f"moves-{number}"


def read_moves(own: Path, state: State) -> dict[str, list[Moves]]:
    """Return the moves that were flushed, by partition, oldest first."""
    file = moves_of(own, state.moves)
    return decode_moves(
        file.read_bytes()[: state.moves_length] if state.moves_length else b"", str(file)
    )


def decode_moves(data: bytes, file: str) -> dict[str, list[Moves]]:
    """Return the moves in a log, by partition, oldest first."""
    found: dict[str, list[Moves]] = {}
    try:
        for line in data.splitlines():
            name, version, nonce, keys = json.loads(line)
            moves = Moves(int(version), str(nonce), [decode_key(key) for key in keys])
            found.setdefault(name, []).append(moves)
    except (ValueError, TypeError, LookupError) as error:
        raise StoreCorrupt(f"{file} is damaged", remedy="restore a backup") from error
    return found


def encode_moves(moved: Mapping[str, Sequence[Moves]]) -> bytes:
    """Return moves as the lines of a log."""
    lines = [
        encode_json([name, one.version, one.nonce, one.keys])
        for name, some in moved.items()
        for one in some
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def log_moves(own: Path, state: State, moved: Mapping[str, Sequence[Moves]]) -> None:
    """Append moves to the log, durably; the state that names its new length commits them. A long
    log is trimmed."""
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


# --- errors ---

# Lance raises its errors as these. A panic in it is not an `Exception`.
LANCE_ERRORS = (OSError, ValueError, RuntimeError, pa.ArrowException)
_QUOTED = (ENOSPC, EDQUOT, EFBIG, EACCES, EPERM, EROFS, ENAMETOOLONG)
_STATUS, _CODE = re.compile(r"status code: (\d{3})"), re.compile(r"<Code>(\w{1,60})</Code>")


@contextmanager
def translated(
    place: Path | str, errors: type[Exception] | tuple[type[Exception], ...] = LANCE_ERRORS
) -> Iterator[None]:
    """Raise errors as those of the store. `place` is the folder or the table that they name."""
    try:
        yield
    except errors as error:
        if "S3 error" in str(error) or "Error performing" in str(error):
            raise remote_error(place, error) from None
        # Lance has no error numbers in its errors, but quotes those of the system.
        quoted = (one for one in _QUOTED if f"(os error {one})" in str(error))
        if number := getattr(error, "errno", None) or next(quoted, None):
            raise store_error(place, number) from error
        why = str(error).partition(", /")[0][:200]  # without the place in the source of Lance
        raise StoreCorrupt(
            f"{place} is damaged: {why}", remedy="restore a backup; nothing was changed"
        ) from error


def remote_error(place: Path | str, error: Exception) -> StoreError:
    """Return the error of a store in a bucket. The server's own text may contain keys and
    signatures, so it is not quoted."""
    status, code = _STATUS.search(str(error)), _CODE.search(str(error))
    why = code[1] if code else f"status {status[1]}" if status else "no response"
    if code and code[1] == "NoSuchBucket":
        return StoreMissing(
            f"the bucket of {place} does not exist",
            remedy="create it; a store does not create buckets",
        )
    if status and status[1] in ("401", "403"):
        remedy = "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they may do in the bucket"
        return StoreUnavailable(f"the server of {place} refuses the request: {why}", remedy=remedy)
    remedy = "check the endpoint, the region and the network; then try again"
    return StoreUnavailable(f"the server of {place} failed: {why}", remedy=remedy)


# --- places and versions of tables ---


class Place(Protocol):
    """Where the tables of a store are. If it is `fenced`, a writer whose turn is over may still
    change them: see `Frame`."""

    @property
    def fenced(self) -> bool: ...
    @property
    def name(self) -> str: ...
    @property
    def options(self) -> dict[str, str] | None: ...  # with which Lance reaches it
    def uri(self, table: Table) -> str: ...
    def versions(self, table: Table) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class Folder:
    """Tables in a folder, whose writers hold a lock. Other programs may write to it too."""

    root: Path
    options: None = None
    fenced: bool = False

    @property
    def name(self) -> str:
        return str(self.root)

    def uri(self, table: Table) -> str:
        return str(folder_of(self.root, table))

    def versions(self, table: Table) -> list[int]:
        return [version for version, _ in _manifests(self.root, table)]


def folder_of(root: Path, table: Table) -> Path:
    return root / f"{table.name}.lance"


def latest_version(root: Path, table: Table) -> int | None:
    """Return the newest version of a table; None without a table."""
    return max((version for version, _ in _manifests(root, table)), default=None)


def _manifests(root: Path, table: Table) -> list[tuple[int, Path]]:
    """Return the versions of a table with their files."""
    folder = folder_of(root, table) / "_versions"
    with suppress(FileNotFoundError, NotADirectoryError):
        return [(version, folder / name) for version, name in versions_in(os.listdir(folder))]
    return []


def versions_in(names: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the versions that the names of files stand for. Lance names them so, or by the
    distance to the largest one."""
    for name in names:
        if match := re.fullmatch(r"(\d{1,20})\.manifest", name):
            number = int(match[1])
            yield 2**64 - 1 - number if number >= 2**63 else number, name


def roll_back(root: Path, table: Table, version: int | None) -> None:
    """Remove the versions of a table after this one, which a process that died began; without a
    version, remove the table."""
    if version is None:
        shutil.rmtree(folder_of(root, table), ignore_errors=True)
        return
    for number, file in _manifests(root, table):
        if number > version:
            file.unlink()
    (folder_of(root, table) / "_versions" / "latest_version_hint.json").unlink(missing_ok=True)
