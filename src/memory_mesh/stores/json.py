"""The JSON store: a folder of JSON files that people can read and compare, and a journal.

A row is a line of a file. The first line of the journal is its header, and each further line is a
change. A flush replaces every file whose rows were changed, and then the journal. To replay a
change again does no harm. So a reader of the journal and then of the files sees whole changes only,
also while a flush is running, and after one that was interrupted.

A handle keeps all rows in memory. Before it answers, it reads the lines that were added to the
journal, so it sees the writes of every process. Reads create nothing.
"""

import json
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from zlib import crc32

from memory_mesh.core.errors import (
    InvalidInput,
    StoreCorrupt,
    StoreError,
    StoreForeign,
    StoreFull,
    StoreTooNew,
    StoreUnavailable,
    shown,
)
from memory_mesh.core.graph import connected
from memory_mesh.core.graph.episodes import GAP_SECONDS, Moment, split
from memory_mesh.core.model import BASE, COLUMNS, CONTENTS, Kind, Row, Vector, checked, parse_time
from memory_mesh.core.ports import Step, no_step
from memory_mesh.stores import neolata
from memory_mesh.stores.base import (
    Change,
    Moves,
    decode_key,
    encode_change,
    encode_json,
    latest_moves,
)
from memory_mesh.stores.files import (
    create_folder,
    files_under,
    names_in,
    replace_file,
    replaced,
    stat_of,
    sync,
)
from memory_mesh.stores.journal import FolderStore, Record, append, parse_change, sound_records
from memory_mesh.stores.ram import RamStore
from memory_mesh.system import open_regular

T = TypeVar("T")

FORMAT = 2  # since vectors have tokens, which earlier versions would lose without a word
JOURNAL = "journal.jsonl"
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
# Of the journal; a longer one is written into the files, unless they are much longer.
_FLUSHED_BYTES = 1024 * 1024
_ATTEMPTS = 4  # to read a folder whose files others replace meanwhile

Signature = tuple[tuple[int, int, int], ...]


class _Replaced(Exception):
    """Other processes replaced the journal while it was read."""


class State(RamStore):
    """All rows of a folder, and the part of its journal that they contain."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[str] = []  # which of `FILES` must be there
        self.originals: list[str] = []  # files of neolata that are to be moved aside
        self.changed: set[str] = set()  # which of `FILES` lack changes of the journal
        self.unfreed = False  # the files have bytes of deleted or replaced rows
        self.erases = False  # a memory was deleted since the last flush
        self.inode = 0  # of the journal; 0: there is none
        self.format = FORMAT  # of the journal
        self.start = self.end = 0  # of the changes in the journal that were read
        self.last = (0, b"")  # where the last line of the journal begins, and with what

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def leaves_bytes(self) -> bool:
        return bool(self.changed)

    def replay(self, change: Change) -> None:
        super().replay(change)
        self.changed |= {FILE_OF[row.kind] for row in change.puts} | {
            FILE_OF[key.kind] for key in change.deletes
        }
        self.unfreed = self.unfreed or change.frees
        self.erases = self.erases or any(key.kind in CONTENTS for key in change.deletes)

    def read_lines(self, data: bytes, journal: Path) -> None:
        """Replay the changes in data that follow the part of the journal that was read."""
        at = self.end
        for record in sound_records(lines(data), len(data), journal, at=at):
            self.replay(parse_change(record.body))
            self.last = at + record.start, data[record.start : record.start + _SEAL]
            self.end = at + record.end

    def header(self) -> bytes:
        """Return the first line of a journal that continues this state."""
        for moves in self.moves.values():
            moves[:] = latest_moves(moves[-_KEPT_CHANGES:])
        about = {
            "format": FORMAT,
            "nonce": self.nonce,
            "files": self.files,
            "originals": self.originals,
            "moves": {
                name: [some._asdict() for some in moves]
                for name, moves in sorted(self.moves.items())
            },
        }
        return line_of(about)

    def begin(self, header: bytes, inode: int) -> None:
        """Continue with a new journal, whose files have all changes."""
        self.inode, self.format, self.last = inode, FORMAT, (0, header[:_SEAL])
        self.start = self.end = len(header)
        self.changed, self.unfreed, self.erases = set(), False, False


class JsonStore(FolderStore[State]):
    """Rows in the JSON files of one folder."""

    index_folder = None  # all rows are in memory, and so is the search index
    _lock_name = ".lock"

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        busy_seconds: float = 30.0,
        step: Step = no_step,
        url: str = "",
        flush_bytes: int = _FLUSHED_BYTES,
    ) -> None:
        self._flush_size = flush_bytes
        self._signature: Signature = ()
        super().__init__(
            path, url=url or f"json:///{path}", read_only=read_only,
            busy_seconds=busy_seconds, step=step,
        )  # fmt: skip
        if self._reading(lambda state: state.unfreed and not read_only):
            self._free()

    def compact(self) -> bool:
        self.check_writable()
        if self._reading(lambda state: not state.changed):
            return True
        try:
            with self._writing() as state:
                self._flush(state)
        except StoreFull:
            return False
        return True

    def _free(self) -> None:
        with suppress(StoreError), self._writing(wait=False) as state:
            self._flush(state)

    # --- reading and writing ---

    def _reading(self, read: Callable[[State], T]) -> T:
        with self._translated():
            with suppress(_Replaced), self._lock:
                return read(self._refreshed())
            # Others write faster than this handle reads. The lock of the file comes first, as for
            # writers.
            try:
                with self._locked(), self._lock:
                    return read(self._refreshed())
            except _Replaced as error:
                what = f"{self._root} changes too fast to be read"
                raise StoreUnavailable(what, remedy="try again") from error

    def _create(self) -> None:
        self._reading(lambda state: None)
        if self._folder is None:
            create_folder(self._root)
            sync(self._root.parent)

    def _current(self) -> State:
        """Return the state with all that is committed. The first write converts the folder, also
        one of an earlier format."""
        state = self._refreshed()
        if not state.inode or state.format < FORMAT:
            self._flush(state)
        return state

    def _refreshed(self) -> State:
        """Return the state with all that is committed."""
        self._check_open()
        self._check_folder()
        state, journal = self._state, self._root / JOURNAL
        if state and state.inode and not journal.exists():
            raise replaced(self._root, "replaced")
        for _ in range(_ATTEMPTS):
            with suppress(FileNotFoundError):  # another process converts the folder
                signature, state = sign(self._root), self._state
                if state and signature == self._signature:
                    return state
                if not (state and state.inode and read_on(self._root, state)):
                    state = load(self._root)
                if state:
                    self._state, self._signature = state, signature
                    return state
        raise _Replaced

    def _commit(self, state: State, change: Change) -> None:
        journal, line = self._root / JOURNAL, line_of(encode_change(change))
        append(journal, line, at=state.end)
        # Not the rows of the caller, who may change their lists.
        state.read_lines(line, journal)

    def _is_long(self, state: State) -> bool:
        if not super()._is_long(state):
            return False
        size = sum((self._root / name).stat().st_size for name in state.files)
        return not self._flush_size or state.size >= size // 2

    def _flush(self, state: State) -> None:
        """Write the changes of the journal into the files, and begin a new one. The caller holds
        the lock."""
        is_new = not state.inode and not state.originals
        self._step("flush.begun")
        for name in () if is_new else FILES:
            if name in state.changed or name not in state.files:
                replace_file(self._root / name, encode_rows(state, name))
                self._step(f"flush.{name}")
        state.files = [] if is_new else [*FILES]
        moved = [] if state.inode else state.originals
        # A process died before it had moved them.
        for name in state.originals if state.inode else ():
            self._put_aside(name)
        if state.erases:
            shutil.rmtree(self._root / neolata.ASIDE, ignore_errors=True)
        state.originals = moved
        header = state.header()
        replace_file(self._root / JOURNAL, header)
        self._step("flush.committed")
        state.begin(header, os.stat(self._root / JOURNAL).st_ino)
        self._signature = sign(self._root)
        for name in moved:
            self._put_aside(name)
        if not is_new:
            replace_file(self._root / EPISODES, episodes(state))
            replace_file(self._root / CLUSTERS, clusters(state))
        self._step("store.freed")

    def _put_aside(self, name: str) -> None:
        """Move an original file of neolata, whose contents are in the files of the store."""
        aside = self._root / neolata.ASIDE
        if (self._root / name).exists() and not (aside / name).exists():
            create_folder(aside)
            os.replace(self._root / name, aside / name)
            sync(aside)

    # --- the file ---

    def is_prepared(self) -> bool:
        """Return whether the folder has a journal of this version, so that nothing must be created
        or converted."""
        return self._reading(lambda state: bool(state.inode) and state.format == FORMAT)

    def damage(self) -> list[str]:
        """Read all files again, and return what is wrong with them."""
        try:
            load(self._root)
        except StoreCorrupt as error:
            return [str(error)]
        return []

    def _files(self) -> list[Path]:
        return [path for path, _ in files_under(self._root)]

    _copied = _files


# --- reading ---


def sign(root: Path) -> Signature:
    """Return what changes with every change of a folder; without a journal, with the files of
    neolata."""
    for names in ((JOURNAL,), neolata.FILES):
        found = [about for name in names if (about := stat_of(root / name))]
        if found:
            break
    return tuple((about.st_ino, about.st_size, about.st_mtime_ns) for about in found)


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
            state.put(_read_rows(root / name, kinds, required=name in state.files))
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
        moves = defaultdict(list)
        for row in rows:
            if row.kind in (Kind.MEMORY, Kind.LINK):
                moves[row.partition].append(row.key)
        state = State()
        state.replay(Change(rows, (), moves, nonce, frees=False))
        state.originals = [name for name in neolata.FILES if name in names]
        state.changed = {*FILES}
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
        (record,) = sound_records(lines(header), len(header), journal)
        about = json.loads(record.body)
        check_format(about, f"the store {journal.parent}")
        state = State()
        state.nonce, state.files, state.originals = (
            about[name] for name in ("nonce", "files", "originals")
        )
        state.begin(header, inode)
        state.format = about["format"]
        for name, moves in about["moves"].items():
            state.moves[name] = [
                Moves(some["version"], some["nonce"], [*map(decode_key, some["keys"])])
                for some in moves
            ]
            state.partitions[name] = state.moves[name][-1][:2]
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
    vector = Vector.from_json(item[_VECTOR]) if _VECTOR in item else None
    return Row(kind=Kind(item["kind"]), fields=fields, vector=vector, **base)


def lines(data: bytes) -> Iterator[Record]:
    """Yield the lines of a journal."""
    start = 0
    while (end := data.find(b"\n", start) + 1) > 0:
        body = data[start + _SEAL : end - 2]
        yield Record(start, end, body, data[start + 2 : start + 10] == b"%08x" % crc32(body))
        start = end


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
        for row in sorted(state.rows_of(kind), key=lambda row: (row.created_at, row.id))
    ]
    return _array(map(_encode, rows))


def _encode(row: Row) -> dict[str, object]:
    base = {name: row.value(name) for name in BASE}
    fields = {
        name: row.fields[name]
        for name in sorted(row.fields, key=lambda name: _ORDER.get(name, len(_ORDER)))
    }
    vector = {_VECTOR: row.vector.as_json()} if row.vector else {}
    return {**base, **fields, **vector}


def episodes(state: State) -> bytes:
    """Return the episodes of the active memories of each user."""
    moments: defaultdict[str, list[Moment]] = defaultdict(list)
    for row in state.rows_of(Kind.MEMORY):
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
    rows = state.rows_of(Kind.LINK)
    links = [
        (str(row.value("ref")), str(row.value("target")), float(row.value("similarity") or 0))  # type: ignore[arg-type]
        for row in rows
    ]
    return _array({"size": len(group), "memory_ids": group} for group in connected(links))


def _array(items: Iterable[Mapping[str, object]]) -> bytes:
    lines = ",\n".join(encode_json(item) for item in items)
    return f"[\n{lines}\n]\n".encode() if lines else b"[]\n"
