"""The in-memory store: the port's meaning in the fewest words, gone when the process ends."""

import secrets
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from threading import RLock

from memory_mesh.core.errors import Conflict, IdTaken, StoreClosed
from memory_mesh.core.model.columns import MOVING, Kind
from memory_mesh.core.model.rows import Hit, Key, Row, Vector
from memory_mesh.core.model.where import ANYTHING, Where
from memory_mesh.core.ports import Applied, Changes
from memory_mesh.stores.keywords import scored
from memory_mesh.stores.marks import KEPT, mark_of, version_in
from memory_mesh.stores.vectors import cosines, ranked
from memory_mesh.stores.writes import once_each


class RamStore:
    """Rows in a dict."""

    url = "memory://"
    index_folder = None

    def __init__(self) -> None:
        self._rows: dict[Key, Row] = {}
        self._versions: Counter[str] = Counter()
        self._moves: defaultdict[str, list[Key]] = defaultdict(list)  # the latest of each partition, oldest first
        self._nonce = secrets.token_hex(8)
        self._lock = RLock()
        self._open = True

    def apply(self, puts: Sequence[Row] = (), deletes: Sequence[Key] = (), *, seen: Mapping[str, int] | None = None) -> Applied:
        once_each(puts, deletes)
        with self._lock:
            self._still_open()
            for partition, version in (seen or {}).items():
                if self._versions[partition] != version:
                    raise Conflict(f"partition {partition} has moved on")
            for row in puts:
                self._admit(row)
            moved = [(partition, key) for key in deletes for partition in self._touched(key, None)]
            moved += [(partition, row.key) for row in puts for partition in self._touched(row.key, row)]
            for key in deletes:
                self._rows.pop(key, None)
            self._rows.update({row.key: _apart(row) for row in puts})
            for partition, key in moved:
                self._log(partition, key)
        return Applied(bytes_freed=True)

    def version(self, partition: str) -> int:
        with self._lock:
            self._still_open()
            return self._versions[partition]

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]:
        with self._lock:
            self._still_open()
            return {id_: _apart(self._rows[Key(kind, id_)]) for id_ in ids if Key(kind, id_) in self._rows}

    def find(self, kind: Kind, where: Where = ANYTHING, *, limit: int | None = None, after: Row | None = None) -> list[Row]:
        rows = [row for row in self._all(kind, where) if after is None or row.age_key < after.age_key]
        return [_apart(row) for row in sorted(rows, key=lambda row: row.age_key, reverse=True)[:limit]]

    def count(self, kind: Kind, where: Where = ANYTHING) -> int:
        return sum(1 for _ in self._all(kind, where))

    def ids(self, kind: Kind, where: Where = ANYTHING) -> list[str]:
        return [row.id for row in self._all(kind, where)]

    def changes(self, partition: str, since: str | None = None) -> Changes:
        with self._lock:
            self._still_open()
            version, moves = self._versions[partition], self._moves[partition]
            now, asked = mark_of(version, self._nonce), version_in(since)
            if asked is None or mark_of(asked, self._nonce) != since or not version - len(moves) <= asked <= version:
                return Changes(now, None)
            return Changes(now, moves[len(moves) - (version - asked) :])

    def nearest(self, kind: Kind, vector: Vector, where: Where = ANYTHING, *, limit: int) -> list[Hit]:
        with self._lock:
            owners = {row.id: row for row in self._all(kind, where)}
            vectors = [(row.id, row.vector) for row in owners.values() if row.vector]
            if kind is Kind.MEMORY:
                passages = self._all(Kind.PASSAGE, ANYTHING)
                vectors += [(str(row.value("ref")), row.vector) for row in passages if row.vector and row.value("ref") in owners]
        comparable = [(id_, v.data) for id_, v in vectors if (v.model, len(v.data)) == (vector.model, len(vector.data))]
        return ranked(cosines(vector.data, comparable), limit)

    def matching(self, tokens: Sequence[str], partitions: Sequence[str], where: Where = ANYTHING, *, limit: int) -> list[Hit]:
        rows = {row.id: row for row in self._all(Kind.MEMORY, ANYTHING) if row.partition in partitions}
        every = scored([(row.id, _keywords(row)) for row in rows.values()], tokens)
        allowed = (Hit(id_, score) for id_, score in every if where.matches(rows[id_]))
        return list(islice(allowed, limit))

    def compact(self) -> bool:
        with self._lock:
            self._still_open()
        return True

    def close(self) -> None:
        with self._lock:
            self._open = False
            self._rows.clear()

    def _all(self, kind: Kind, where: Where) -> Iterator[Row]:
        with self._lock:
            self._still_open()
            rows = [row for row in self._rows.values() if row.kind is kind]
        return (row for row in rows if where.matches(row))

    def _admit(self, row: Row) -> None:
        held = self._rows.get(row.key)
        if row.replaces == 0 and held:
            raise IdTaken(f"{row.kind} {row.id} is already there")
        if row.replaces and (held is None or held.revision != row.replaces):
            raise Conflict(f"{row.kind} {row.id} is not at revision {row.replaces}")

    def _log(self, partition: str, key: Key) -> None:
        self._versions[partition] += 1
        self._moves[partition].append(key)
        if len(self._moves[partition]) >= 2 * KEPT:
            del self._moves[partition][:-KEPT]

    def _touched(self, key: Key, new: Row | None) -> set[str]:
        """The partitions that a put or delete of a moving row moves."""
        if key.kind not in MOVING:
            return set()
        return {row.partition for row in (self._rows.get(key), new) if row}

    def _still_open(self) -> None:
        if not self._open:
            raise StoreClosed("the store is closed", remedy="open it again")


def _apart(row: Row) -> Row:
    """The row by itself: what its owner does to its lists later stays with its owner."""
    return replace(row, fields=deepcopy(dict(row.fields)), replaces=0)


def _keywords(row: Row) -> list[str]:
    held = row.value("keywords")
    return [str(word) for word in held] if isinstance(held, list) else []
