"""The files of a JSON store: arrays of rows, and the journal of later changes.

A row is a line. The first line of the journal is its header, and each further line is a change. A
checkpoint replaces every file whose rows were changed, and then the journal. To replay a change
again does no harm. So a reader of the journal and then of the files sees whole changes only, also
while a checkpoint is running, and after one that was interrupted.
"""

import json
import os
from base64 import b64decode, b64encode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from zlib import crc32

from memory_mesh.core.errors import InvalidInput, StoreCorrupt, StoreForeign, StoreTooNew, shown
from memory_mesh.core.graph import connected
from memory_mesh.core.graph.episodes import GAP_SECONDS, Moment, split
from memory_mesh.core.model import BASE, COLUMNS, CONTENTS, Kind, Row, Vector, checked, parse_time
from memory_mesh.core.ports import Changes
from memory_mesh.stores.base import (
    BEGINNING,
    KEPT_MOVES,
    Change,
    Moves,
    decode_change,
    decode_key,
    encode_json,
    since,
)
from memory_mesh.stores.files import names_in
from memory_mesh.stores.json import neolata
from memory_mesh.stores.ram import RamStore
from memory_mesh.system import open_regular

FORMAT = 1
JOURNAL, LOCK = "journal.jsonl", ".lock"
FILES: Mapping[str, tuple[Kind, ...]] = {
    "memories.json": (Kind.MEMORY,),
    "links.json": (Kind.LINK,),
    "pending_conflicts.json": (Kind.CONFLICT,),
    "skills.json": (Kind.SKILL,),
    "passages.json": (Kind.PASSAGE,),
    "history.json": (Kind.CHANGE,),
    "audit.json": (Kind.BLOCK, Kind.HEAD),
    "records.json": (Kind.RECEIPT, Kind.META, Kind.USAGE, Kind.SIGHTING, Kind.EVENT),
}
# Computed from the memories and links, and never read.
EPISODES, CLUSTERS = "episodes.json", "clusters.json"
FILE_OF = {kind: name for name, kinds in FILES.items() for kind in kinds}
_KEPT_CHANGES = 200  # of each partition, for `changes`
_VECTOR = "embedding"
_ORDER = {column.name: place for place, column in enumerate(COLUMNS)}
_SEAL = 12  # bytes of a line before its value: the checksum as the first item of a list

Signature = tuple[tuple[int, int, int], ...]


@dataclass(slots=True)
class State:
    """All rows of a folder, and the part of its journal that they contain."""

    rows: RamStore = field(default_factory=RamStore)
    # By partition, oldest first.
    moves: defaultdict[str, list[Moves]] = field(default_factory=lambda: defaultdict(list))
    nonce: str = ""  # of the last change
    files: list[str] = field(default_factory=list)  # which of `FILES` must be there
    # Files of neolata that are to be moved aside.
    originals: list[str] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)  # which of `FILES` lack changes of the journal
    frees: bool = False  # the files have bytes of deleted or replaced rows
    erases: bool = False  # a memory was deleted since the last checkpoint
    inode: int = 0  # of the journal; 0: there is none
    start: int = 0  # of the changes in the journal
    end: int = 0  # of the part of the journal that was read
    last: tuple[int, bytes] = (0, b"")  # where its last line begins, and with what

    def version(self, partition: str) -> int:
        moves = self.moves.get(partition)
        return moves[-1].version if moves else 0

    def moved(self, partition: str, mark: str | None) -> Changes:
        """Return the changes of a partition since a mark."""
        moves = self.moves.get(partition, [])
        now = moves[-1].mark if moves else BEGINNING
        return Changes(now, [] if mark == now else since(moves, mark))

    def replay(self, change: Change) -> None:
        """Apply a change, whose rows belong to this state from now on."""
        for name, keys in change.moves.items():
            self.moves[name].append(Moves(self.version(name) + len(keys), change.nonce, keys))
        self.rows.replay(change.puts, change.deletes)
        self.changed |= {FILE_OF[row.kind] for row in change.puts} | {
            FILE_OF[key.kind] for key in change.deletes
        }
        self.nonce, self.frees = change.nonce, self.frees or change.frees
        self.erases = self.erases or any(key.kind in CONTENTS for key in change.deletes)

    def read_lines(self, data: bytes, journal: Path) -> None:
        """Replay the changes in data that follow the part of the journal that was read."""
        for line in sound_lines(data, journal):
            self.replay(decode_change(json.loads(line)[1]))
            self.last = self.end, line[:_SEAL]
            self.end += len(line)

    def header(self) -> bytes:
        """Return the first line of a journal that continues this state."""
        for some in self.moves.values():
            oldest = some[-1].version - KEPT_MOVES
            some[:] = [one for one in some[-_KEPT_CHANGES:] if one.version > oldest]
        moves = {name: [asdict(one) for one in some] for name, some in sorted(self.moves.items())}
        about = {
            "format": FORMAT,
            "nonce": self.nonce,
            "files": self.files,
            "originals": self.originals,
            "moves": moves,
        }
        return line_of(about)

    def begin(self, header: bytes, inode: int) -> None:
        """Continue with a new journal, whose files have all changes."""
        self.inode, self.start, self.end, self.last = (
            inode,
            len(header),
            len(header),
            (0, header[:_SEAL]),
        )
        self.changed, self.frees, self.erases = set(), False, False


# --- reading ---


def sign(root: Path) -> Signature:
    """Return what changes with every change of a folder; without a journal, with the files of
    neolata."""
    for names in ((JOURNAL,), neolata.FILES):
        found = []
        for name in names:
            with suppress(FileNotFoundError, NotADirectoryError):
                about = os.stat(root / name)
                found.append((about.st_ino, about.st_size, about.st_mtime_ns))
        if found:
            break
    return tuple(found)


def load(root: Path) -> State | None:
    """Return what a folder contains, or None if another process replaced the journal meanwhile.
    Nothing is written."""
    journal = root / JOURNAL
    with (
        suppress(FileNotFoundError, NotADirectoryError),
        open_regular(journal) as opened,
    ):  # its inode is in use until it is closed
        data, inode = opened.read(), os.fstat(opened.fileno()).st_ino
        header = data[: data.find(b"\n") + 1]
        state = _state_of(header, inode, journal)
        for name, kinds in FILES.items():
            state.rows.replay(_read_rows(root / name, kinds, required=name in state.files))
        state.read_lines(data[len(header) :], journal)
        return state if os.stat(journal).st_ino == inode else None
    state = _without_journal(root)
    return None if journal.exists() else state


def read_on(root: Path, state: State) -> bool:
    """Replay the changes that were added to the journal; False if it is not the one that the
    state continues."""
    with open_regular(root / JOURNAL) as opened:
        if os.fstat(opened.fileno()).st_ino != state.inode:
            return False
        start, beginning = state.last
        opened.seek(start)
        data = opened.read()
    known = state.end - start
    # A line that its writer took back may have been read, and another one may be in its place.
    if len(data) < known or not data.startswith(beginning) or data[known - 1 : known] != b"\n":
        return False
    state.read_lines(data[known:], root / JOURNAL)
    return True


def _without_journal(root: Path) -> State:
    try:
        names = [name for name in names_in(root) if not name.startswith(".")]
    except NotADirectoryError:
        raise StoreForeign(
            f"{root} is a file", expected="a folder", remedy="name another folder"
        ) from None
    if neolata.GRAPH in names:
        rows, nonce = neolata.read(root)
        keys = defaultdict(list)
        for row in rows:
            if row.kind in (Kind.MEMORY, Kind.LINK):
                keys[row.partition].append(row.key)
        state = State(
            nonce=nonce,
            originals=[name for name in neolata.FILES if name in names],
            changed={*FILES},
        )
        state.moves.update({name: [Moves(len(some), nonce, some)] for name, some in keys.items()})
        state.rows.replay(rows)
        return state
    if ours := [name for name in FILES if name in names]:
        raise StoreCorrupt(
            f"{root} has {ours[0]}, but {JOURNAL} is missing", remedy="restore a backup"
        )
    if names:
        expected = "a folder of this store or of neolata-mem, an empty one, or none"
        raise StoreForeign(
            f"{root} is not a folder of memories", expected=expected, remedy="name another folder"
        )
    return State()


def _state_of(header: bytes, inode: int, journal: Path) -> State:
    try:
        (line,) = sound_lines(header, journal)
        given = json.loads(line)[1]
        check_format(given, f"the store {journal.parent}")
        state = State(nonce=given["nonce"], files=given["files"], originals=given["originals"])
        state.begin(header, inode)
        for name, some in given["moves"].items():
            state.moves[name] = [
                Moves(one["version"], one["nonce"], [*map(decode_key, one["keys"])]) for one in some
            ]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StoreCorrupt(
            f"the first line of {journal} is damaged", remedy="restore a backup"
        ) from error
    return state


def check_format(header: Mapping[str, Any], place: str) -> None:
    """Raise `StoreTooNew` if a newer version wrote the header of a journal."""
    if header["format"] > FORMAT:
        what = f"{place} has format {header['format']}"
        raise StoreTooNew(what, expected=f"at most {FORMAT}", remedy="upgrade memory-mesh")


def _read_rows(file: Path, kinds: tuple[Kind, ...], *, required: bool) -> list[Row]:
    """Return the rows of a file. Raises `StoreCorrupt` with the place if they cannot be read."""

    def damaged(where: str, error: Exception | None = None) -> NoReturn:
        raise StoreCorrupt(
            f"{file} is damaged: {where}", remedy="restore a backup, or mend the file"
        ) from error

    try:
        with open_regular(file) as opened:
            items = json.load(opened)
    except FileNotFoundError as error:
        return damaged("it is missing", error) if required else []
    except (ValueError, RecursionError) as error:
        damaged(f"{error}"[:200], error)
    rows: dict[tuple[Kind, str], Row] = {}
    for item in items if isinstance(items, list) else damaged("it is not an array"):
        try:
            row = checked(decode_item(item))
        except (InvalidInput, ValueError, LookupError, TypeError, AttributeError) as error:
            damaged(f"the row {shown(item, max_length=80)}: {error}"[:300], error)
        if row.kind not in kinds or row.key in rows:
            damaged(f"the {row.kind} {row.id} is in a wrong file, or twice")
        rows[row.key] = row
    return [*rows.values()]


def decode_item(item: Mapping[str, Any]) -> Row:
    """Return the row of an item of a file. Raises `LookupError`, `TypeError`, `ValueError` or
    `AttributeError`."""
    base = {name: item[name] for name in BASE if name != "kind"}
    fields = {name: value for name, value in item.items() if name not in BASE and name != _VECTOR}
    vector = (
        Vector(item[_VECTOR]["model"], b64decode(item[_VECTOR]["data"], validate=True))
        if _VECTOR in item
        else None
    )
    return Row(kind=Kind(item["kind"]), fields=fields, vector=vector, **base)


def sound_lines(data: bytes, journal: Path) -> Iterator[bytes]:
    """Yield the lines of a journal. A damaged end was never acknowledged: its writer died, or
    has not finished."""
    place = 0
    while (end := data.find(b"\n", place) + 1) > 0:
        line = data[place:end]
        if line[2:10] != b"%08x" % crc32(line[_SEAL:-2]):
            if end < len(data):
                raise StoreCorrupt(
                    f"{journal} is damaged: {shown(line[:40])}", remedy="restore a backup"
                )
            return
        yield line
        place = end


# --- writing ---


def line_of(value: object) -> bytes:
    """Return a line of a journal: a list of the checksum and the value."""
    body = encode_json(value).encode()
    return b'["%08x",%b]\n' % (crc32(body), body)


def encode_rows(state: State, name: str) -> bytes:
    """Return the contents of a file: its rows by kind, oldest first."""
    rows = [
        row
        for kind in FILES[name]
        for row in sorted(state.rows.rows_of(kind), key=lambda row: (row.created_at, row.id))
    ]
    return _array(map(_encode, rows))


def _encode(row: Row) -> dict[str, object]:
    base = {name: row.value(name) for name in BASE}
    fields = {
        name: row.fields[name]
        for name in sorted(row.fields, key=lambda name: _ORDER.get(name, len(_ORDER)))
    }
    vector = (
        {_VECTOR: {"model": row.vector.model, "data": b64encode(row.vector.data).decode()}}
        if row.vector
        else {}
    )
    return {**base, **fields, **vector}


def episodes(state: State) -> bytes:
    """Return the episodes of the active memories of each user."""
    moments: defaultdict[str, list[Moment]] = defaultdict(list)
    for row in state.rows.rows_of(Kind.MEMORY):
        if row.value("status") == "active":
            with suppress(InvalidInput):
                at = parse_time(row.value("event_time") or row.created_at, "time")
                session = row.value("session_id")
                moment = Moment(
                    id=row.id,
                    at=at,
                    session_id=str(session) if session else None,
                    number=row.number,
                )
                moments[str(row.value("user_id") or "")].append(moment)
    found = [one for each in moments.values() for one in split(each, gap_ms=GAP_SECONDS * 1000)]
    names = ("id", "start", "end", "count", "session_id", "memory_ids")
    return _array(
        {name: getattr(one, name) for name in names}
        for one in sorted(found, key=lambda one: (one.start, one.id))
    )


def clusters(state: State) -> bytes:
    """Return the groups of memories that links connect, the largest first."""
    rows = state.rows.rows_of(Kind.LINK)
    links = [
        (str(row.value("ref")), str(row.value("target")), float(row.value("similarity") or 0))  # type: ignore[arg-type]
        for row in rows
    ]
    return _array({"size": len(group), "memory_ids": group} for group in connected(links))


def _array(items: Iterable[Mapping[str, object]]) -> bytes:
    lines = ",\n".join(encode_json(item) for item in items)
    return f"[\n{lines}\n]\n".encode() if lines else b"[]\n"
