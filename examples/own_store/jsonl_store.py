"""A store in one file of JSON lines: a complete example of a store of your own.

The first line names the file, and each further line is one change. A handle keeps all rows in
memory. Before it answers, it reads the lines that were added since, so it sees the writes of every
process. Only one handle at a time reads or writes the file.

It passes `memory_mesh.testing.StoreContract`. It is made to be read, not to be fast: all rows must
fit into memory, and every search compares all of them. It locks with `fcntl`, so it runs on Linux
and macOS.
"""

import fcntl
import json
import os
import secrets
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from memory_mesh.core.errors import (
    Conflict,
    IdTaken,
    InvalidInput,
    StoreClosed,
    StoreCorrupt,
    StoreForeign,
    StoreUnavailable,
)
from memory_mesh.core.model import (
    ANYTHING,
    CONTENTS,
    MOVING,
    Hit,
    Key,
    Kind,
    Row,
    Sealed,
    Used,
    Vector,
    Where,
)
from memory_mesh.core.ports import Applied, Changes
from memory_mesh.core.search.lexical import best_cosines, keyword_scores
from memory_mesh.stores.base import (
    BEGINNING,
    check_unique,
    decode_key,
    decode_row,
    encode_row,
    mark_of,
    tallied,
    values_of,
)

FIRST_LINE = b'{"memory_mesh_jsonl": 1, "id": "'
# By `compact`, for each partition; the contract asks for the last hundred changes.
KEPT_MOVES = 1000


def open_store(url: str) -> "JsonlStore":
    """Open the store of a URL: `jsonl:////absolute/file` or `jsonl:///relative/file`. The entry
    point names this function."""
    parts = urlsplit(url)
    if parts.netloc or parts.query or parts.fragment or not (path := unquote(parts.path)[1:]):
        raise InvalidInput(
            f"{url} does not name a file",
            expected="jsonl:////absolute/file or jsonl:///relative/file",
        )
    return JsonlStore(Path(path))


@dataclass
class Partition:
    """The writes of a partition: how many there were, the last ones, and the version that each
    mark stands for."""

    version: int = 0
    moves: list[Key] = field(default_factory=list)
    marks: dict[str, int] = field(default_factory=lambda: {BEGINNING: 0})  # oldest first

    def since(self, mark: str | None) -> list[Key] | None:
        """Return what moved after a mark, or None if it is unknown or too old."""
        moved = self.version - self.marks.get(mark or "", -1)
        return self.moves[len(self.moves) - moved :] if moved <= len(self.moves) else None


class JsonlStore:
    """Rows in a file of JSON lines. The first write creates the file."""

    index_folder = None  # no place for derived files: the search index stays in memory

    def __init__(self, file: Path) -> None:
        self._file = file.absolute()
        self.url = f"jsonl:///{quote(str(self._file))}"
        self._lock_file = self._file.with_name(f"{self._file.name}.lock")
        # The lock of the file keeps other handles out, this one other threads.
        self._threads = Lock()
        self._closed = False
        self._forget()

    # --- writing ---

    def apply(
        self,
        puts: Sequence[Row] = (),
        deletes: Sequence[Key] = (),
        *,
        seen: Mapping[str, int] | None = None,
    ) -> Applied:
        check_unique(puts, deletes)
        with self._writing():
            for partition, version in (seen or {}).items():
                if self._partitions[partition].version != version:
                    raise Conflict(f"partition {partition} has changed")
            for row in puts:
                self._check_revision(row)
            if not self._first_line:
                self._rewrite()
            self._append(
                {
                    "nonce": secrets.token_hex(8),
                    "puts": [encode_row(row) for row in puts],
                    "deletes": deletes,
                }
            )
            # Also this change: the rows in memory are the ones in the file, not objects of the
            # caller.
            self._read_lines()
        return Applied(bytes_freed=not deletes and not any(row.replaces for row in puts))

    def compact(self) -> bool:
        """Write the file anew, without deleted rows and old revisions."""
        with self._writing():
            if self._first_line:
                self._rewrite()
                self._read_lines()
        return True

    def close(self) -> None:
        try:
            if self._has_deleted_texts:
                self.compact()
        finally:
            with self._threads:
                self._closed = True
                self._forget()

    def _check_revision(self, row: Row) -> None:
        stored = self._rows[row.kind].get(row.id)
        if row.replaces == 0 and stored:
            raise IdTaken(f"{row.kind} {row.id} already exists")
        if row.replaces and (stored is None or stored.revision != row.replaces):
            raise Conflict(f"{row.kind} {row.id} is not at revision {row.replaces}")

    # --- reading ---

    def version(self, partition: str) -> int:
        with self._reading():
            return self._partitions[partition].version

    def data_version(self) -> Hashable:
        with self._reading():
            return self._nonce

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]:
        with self._reading():
            found = [self._rows[kind][id_] for id_ in ids if id_ in self._rows[kind]]
            return {row.id: row for row in self._returned(kind, found)}

    def find(
        self,
        kind: Kind,
        where: Where = ANYTHING,
        *,
        limit: int | None = None,
        after: Row | None = None,
    ) -> list[Row]:
        with self._reading():
            found = [
                row
                for row in self._all(kind, where)
                if after is None or row.age_key < after.age_key
            ]
            return self._returned(
                kind, sorted(found, key=lambda row: row.age_key, reverse=True)[:limit]
            )

    def count(self, kind: Kind, where: Where = ANYTHING) -> int:
        return len(self.ids(kind, where))

    def ids(self, kind: Kind, where: Where = ANYTHING) -> list[str]:
        with self._reading():
            return [row.id for row in self._all(kind, where)]

    def tally(
        self,
        kind: Kind,
        columns: Sequence[str],
        where: Where = ANYTHING,
        *,
        length: int | None = None,
    ) -> dict[str | None, int]:
        with self._reading():
            rows = self._all(kind, where)
        return tallied(values_of(rows, columns), length)

    def changes(self, partition: str, since: str | None = None) -> Changes:
        with self._reading():
            writes = self._partitions[partition]
            return Changes(next(reversed(writes.marks)), writes.since(since))

    def nearest(
        self, kind: Kind, vector: Vector, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]:
        with self._reading():
            vectors = {row.id: [row.vector] for row in self._all(kind, where)}
            for passage in self._rows[Kind.PASSAGE].values() if kind is Kind.MEMORY else ():
                vectors.get(str(passage.value("ref")), []).append(passage.vector)
        pairs = [(id_, one) for id_, several in vectors.items() for one in several if one]
        comparable = [
            (id_, one.data)
            for id_, one in pairs
            if (one.model, one.dimension) == (vector.model, vector.dimension)
        ]
        return best_cosines(vector.data, comparable, limit)

    def matching(
        self, tokens: Sequence[str], visible: Where, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]:
        with self._reading():
            rows = {row.id: row for row in self._all(Kind.MEMORY, visible)}
        scores = keyword_scores([(row.id, row.keywords) for row in rows.values()], tokens)
        return [Hit(id_, score) for id_, score in scores if where.matches(rows[id_])][:limit]

    def _all(self, kind: Kind, where: Where) -> list[Row]:
        return [row for row in self._rows[kind].values() if where.matches(row)]

    def _returned(self, kind: Kind, rows: Iterable[Row]) -> list[Row]:
        """Return copies, which the caller may change; memories and skills with what the audit
        blocks sealed and their usage."""
        rows = [replace(row, fields=deepcopy(dict(row.fields))) for row in rows]
        if kind not in CONTENTS:
            return rows
        sealed: dict[str, Sealed] = {}
        for block in self._rows[Kind.BLOCK].values():
            ref, revision, hash_ = (
                block.value(name) for name in ("ref", "memory_revision", "content_hash")
            )
            if isinstance(ref, str) and isinstance(revision, int) and isinstance(hash_, str):
                sealed[ref] = max(Sealed(revision, hash_), sealed.get(ref, Sealed(-1, "")))
        usage = {row.id: Used.of(row.fields) for row in self._rows[Kind.USAGE].values()}
        return [replace(row, sealed=sealed.get(row.id), used=usage.get(row.id)) for row in rows]

    # --- the file ---

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Keep all others out, and bring the rows in memory up to date. `OSError` becomes an
        error of memory-mesh."""
        with self._threads:
            self._check_open()
            try:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                with open(self._lock_file, "ab", opener=_private) as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                    self._read_lines()
                    yield
            except OSError as error:
                raise StoreUnavailable(f"{self._file} cannot be written: {error}") from error

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Keep writers out, and bring the rows in memory up to date. A read creates no file."""
        with self._threads:
            self._check_open()
            try:
                if not self._lock_file.exists():  # nothing was ever written
                    yield
                    return
                with open(self._lock_file, "rb") as lock:
                    fcntl.flock(lock, fcntl.LOCK_SH)
                    self._read_lines()
                    yield
            except OSError as error:
                raise StoreUnavailable(f"{self._file} cannot be read: {error}") from error

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("the store is closed", remedy="open it again")

    def _forget(self) -> None:
        self._first_line, self._end = b"", 0  # the place after the last line that was read
        self._rows: dict[Kind, dict[str, Row]] = {kind: {} for kind in Kind}
        self._partitions: defaultdict[str, Partition] = defaultdict(Partition)
        self._nonce = ""  # of the last change
        self._has_deleted_texts = False  # in the file

    def _read_lines(self) -> None:
        """Read the lines that were added to the file; all of them if it was written anew."""
        if not self._first_line and not self._file.exists():
            return
        with open(self._file, "rb") as file:
            if (first := file.readline()) != self._first_line:
                if not first.startswith(FIRST_LINE):
                    raise StoreForeign(
                        f"{self._file} is not a file of this store", remedy="choose another file"
                    )
                self._forget()
                self._first_line, self._end = first, len(first)
            file.seek(self._end)
            for line in file:
                # The process that wrote it died; the next change replaces it.
                if not line.endswith(b"\n"):
                    break
                try:
                    self._replay(json.loads(line))
                except (ValueError, LookupError, TypeError) as error:
                    raise StoreCorrupt(
                        f"{self._file} is damaged at byte {self._end}", remedy="restore a backup"
                    ) from error
                self._end += len(line)

    def _replay(self, change: Mapping[str, Any]) -> None:
        """Do what a line says."""
        puts, deletes = [*map(decode_row, change["puts"])], [*map(decode_key, change["deletes"])]
        moved: defaultdict[str, list[Key]] = defaultdict(list)
        for key, new in [*((key, None) for key in deletes), *((row.key, row) for row in puts)]:
            old = self._rows[key.kind].pop(key.id, None)
            self._has_deleted_texts |= old is not None and (
                new is None or key.kind in (*CONTENTS, Kind.BLOCK)
            )
            if new:
                self._rows[key.kind][key.id] = new
            for name in {row.partition for row in (old, new) if row} if key.kind in MOVING else ():
                moved[name].append(key)
        self._nonce = change["nonce"]
        # The first change of a file that `compact` wrote: it also tells what came before.
        if "partitions" in change:
            for name, (version, moves, marks) in change["partitions"].items():
                self._partitions[name] = Partition(version, [*map(decode_key, moves)], marks)
            return
        for name, keys in moved.items():
            partition = self._partitions[name]
            partition.moves += keys
            partition.version += len(keys)
            partition.marks[mark_of(partition.version, self._nonce)] = partition.version

    def _append(self, change: Mapping[str, Any]) -> None:
        """Add a line, durable when this returns. If it fails, the file is as before."""
        with open(self._file, "r+b") as file:
            file.truncate(self._end)  # half a line of a process that died
            file.seek(self._end)
            try:
                file.write(_line(change))
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                os.truncate(self._file, self._end)
                raise

    def _rewrite(self) -> None:
        """Replace the file by one with the current rows, at once and durably."""
        partitions = {}
        for name, partition in self._partitions.items():
            oldest = partition.version - KEPT_MOVES
            marks = {
                mark: version for mark, version in partition.marks.items() if version >= oldest
            }
            partitions[name] = [partition.version, partition.moves[-KEPT_MOVES:], marks]
        rows = [encode_row(row) for rows in self._rows.values() for row in rows.values()]
        part = self._file.with_name(f"{self._file.name}.part")
        with open(part, "wb", opener=_private) as file:
            file.write(FIRST_LINE + secrets.token_hex(8).encode() + b'"}\n')
            file.write(
                _line({"nonce": self._nonce, "puts": rows, "deletes": [], "partitions": partitions})
            )
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, self._file)
        folder = os.open(self._file.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        self._read_lines()


def _line(change: Mapping[str, Any]) -> bytes:
    return json.dumps(change).encode() + b"\n"


def _private(name: str, flags: int) -> int:
    """Open a file that only its owner can read."""
    return os.open(name, flags, 0o600)
