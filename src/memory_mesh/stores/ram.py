"""The store in memory: the simplest implementation of the port.

A mesh with memory disabled uses it too.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from threading import RLock
from typing import Never

from memory_mesh.core.errors import MemoryDisabled, StoreClosed
from memory_mesh.core.model import (
    ANYTHING,
    CONTENTS,
    And,
    Compare,
    Hit,
    In,
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
from memory_mesh.stores import base
from memory_mesh.stores.base import (
    Change,
    MoveLog,
    Stored,
    check_unique,
    copy_row,
    decide,
    latest_moves,
)
from memory_mesh.system import fork_safe

# Texts by which few rows of many are looked for, often.
_INDEXED = ("fingerprint", "claim_key", "ref", "target")


class RamStore(MoveLog):
    """Rows in a dict. They are lost when the process ends."""

    url = "memory://"
    index_folder = None

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[Key, Row] = {}
        # Kind, column, its value → ids.
        self._ids: defaultdict[tuple[Kind, str, str], dict[str, None]] = defaultdict(dict)
        # Memory → block → what it sealed.
        self._sealed: defaultdict[str, dict[str, Sealed]] = defaultdict(dict)
        self._lock = fork_safe(RLock())
        self._open = True

    def apply(
        self,
        puts: Sequence[Row] = (),
        deletes: Sequence[Key] = (),
        *,
        seen: Mapping[str, int] | None = None,
    ) -> Applied:
        check_unique(puts, deletes)
        with self._lock:
            self._check_open()
            self.check_seen(seen)
            change = decide(self.stored([*deletes, *(row.key for row in puts)]), puts, deletes)
            self.replay(replace(change, puts=[copy_row(row) for row in puts]))
        return Applied(bytes_freed=True)

    def version(self, partition: str) -> int:
        with self._lock:
            self._check_open()
            return super().version(partition)

    def data_version(self) -> Hashable:
        with self._lock:
            self._check_open()
            return self.nonce

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]:
        with self._lock:
            self._check_open()
            return {
                id_: self._read(self._rows[Key(kind, id_)])
                for id_ in ids
                if Key(kind, id_) in self._rows
            }

    def find(
        self,
        kind: Kind,
        where: Where = ANYTHING,
        *,
        limit: int | None = None,
        after: Row | None = None,
    ) -> list[Row]:
        rows = [
            row for row in self._all(kind, where) if after is None or row.age_key < after.age_key
        ]
        return [
            self._read(row)
            for row in sorted(rows, key=lambda row: row.age_key, reverse=True)[:limit]
        ]

    def count(self, kind: Kind, where: Where = ANYTHING) -> int:
        return sum(1 for _ in self._all(kind, where))

    def ids(self, kind: Kind, where: Where = ANYTHING) -> list[str]:
        return [row.id for row in self._all(kind, where)]

    def tally(
        self,
        kind: Kind,
        columns: Sequence[str],
        where: Where = ANYTHING,
        *,
        length: int | None = None,
    ) -> dict[str | None, int]:
        return base.tallied(base.values_of(self._all(kind, where), columns), length)

    def changes(self, partition: str, since: str | None = None) -> Changes:
        with self._lock:
            self._check_open()
            return super().changes(partition, since)

    def nearest(
        self, kind: Kind, vector: Vector, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]:
        with self._lock:
            owners = {row.id: row for row in self._all(kind, where)}
            vectors = [(row.id, row.vector) for row in owners.values() if row.vector]
            if kind is Kind.MEMORY:
                passages = self._all(Kind.PASSAGE, ANYTHING)
                vectors += [
                    (str(row.value("ref")), row.vector)
                    for row in passages
                    if row.vector and row.value("ref") in owners
                ]
        comparable = [
            (id_, v.data)
            for id_, v in vectors
            if (v.model, len(v.data)) == (vector.model, len(vector.data))
        ]
        return best_cosines(vector.data, comparable, limit)

    def matching(
        self, tokens: Sequence[str], visible: Where, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]:
        rows = {row.id: row for row in self._all(Kind.MEMORY, visible)}
        scored = keyword_scores([(row.id, row.keywords) for row in rows.values()], tokens)
        allowed = (Hit(id_, score) for id_, score in scored if where.matches(rows[id_]))
        return list(islice(allowed, limit))

    def compact(self) -> bool:
        with self._lock:
            self._check_open()
        return True

    def close(self) -> None:
        with self._lock:
            self._open = False
            self._rows.clear()
            self._ids.clear()

    def stored(self, keys: Iterable[Key]) -> dict[Key, Stored]:
        """Return the partitions and revisions of the rows with these keys that exist."""
        rows = ((key, self._rows.get(key)) for key in keys)
        return {key: (row.partition, row.revision) for key, row in rows if row}

    def rows_of(self, kind: Kind) -> list[Row]:
        """Return the rows of a kind as they are stored, in any order. The caller does not change
        them."""
        ids = self._ids.get((kind, "kind", kind), {})
        return [self._rows[Key(kind, id_)] for id_ in ids]

    def replay(self, change: Change) -> None:
        """Apply a change without any check. Its rows belong to this store from now on."""
        self.put(change.puts, change.deletes)
        self.log(change)
        for name in change.moves:
            moves = self.moves[name]
            if moves[-1].version - moves[0].version >= 2 * base.KEPT_MOVES:
                moves[:] = latest_moves(moves)

    def put(self, puts: Iterable[Row], deletes: Iterable[Key] = ()) -> None:
        """Delete and put rows. They belong to this store from now on; no version changes."""
        for key in deletes:
            self._leave(self._rows.pop(key, None))
        for row in puts:
            self._leave(self._rows.get(row.key))
            self._rows[row.key] = row
            for place in _places(row):
                self._ids[place][row.id] = None
            # Remember what a block sealed.
            hash_, revision = row.value("content_hash"), row.value("memory_revision")
            if row.kind is Kind.BLOCK and isinstance(hash_, str) and isinstance(revision, int):
                self._sealed[str(row.value("ref"))][row.id] = Sealed(revision, hash_)

    def _all(self, kind: Kind, where: Where) -> Iterator[Row]:
        with self._lock:
            self._check_open()
            named = _named_values(where)
            places = (
                ((kind, named[0], value) for value in named[1]) if named else [(kind, "kind", kind)]
            )
            ids = dict.fromkeys(id_ for place in places for id_ in self._ids.get(place, ()))
            rows = [self._rows[Key(kind, id_)] for id_ in ids]
        return (row for row in rows if where.matches(row))

    def _read(self, row: Row) -> Row:
        """Return a copy of the row; a memory or a skill with what its latest block sealed, and
        its usage."""
        if row.kind not in CONTENTS:
            return copy_row(row)
        usage, sealed = (
            self._rows.get(Key(Kind.USAGE, row.id)),
            self._sealed.get(row.id, {}).values(),
        )
        return replace(
            copy_row(row),
            sealed=max(sealed, default=None),
            used=Used.of(usage.fields) if usage else None,
        )

    def _leave(self, row: Row | None) -> None:
        """Forget where a row is found that is replaced or deleted, and what it sealed if it is a
        block."""
        if row is None:
            return
        for place in _places(row):
            del self._ids[place][row.id]
            if not self._ids[place]:
                del self._ids[place]
        if row.kind is Kind.BLOCK:
            self._sealed.get(str(row.value("ref")), {}).pop(row.id, None)

    def _check_open(self) -> None:
        if not self._open:
            raise StoreClosed("the store is closed", remedy="open it again")


class DisabledStore(RamStore):
    """The store of a mesh with memory disabled: every read is empty, and every write raises
    `MemoryDisabled`."""

    url = "none"

    def apply(
        self,
        puts: Sequence[Row] = (),
        deletes: Sequence[Key] = (),
        *,
        seen: Mapping[str, int] | None = None,
    ) -> Never:
        raise MemoryDisabled(
            "memory is disabled", remedy="open the mesh with enable_memory=True to store"
        )

    def close(self) -> None:
        """Do nothing."""


def _places(row: Row) -> list[tuple[Kind, str, str]]:
    values = ((column, row.value(column)) for column in _INDEXED)
    return [
        (row.kind, "kind", row.kind),
        *((row.kind, name, value) for name, value in values if isinstance(value, str)),
    ]


def _named_values(where: Where) -> tuple[str, tuple[str, ...]] | None:
    """Return an indexed column and the values of which a matching row has one, if the condition
    names such."""
    for part in where.parts if isinstance(where, And) else (where,):
        values = (
            part.values
            if isinstance(part, In)
            else (part.value,)
            if isinstance(part, Compare) and part.op == "="
            else ()
        )
        texts = tuple(value for value in values if isinstance(value, str))
        if (
            isinstance(part, In | Compare)
            and part.column in _INDEXED
            and texts
            and len(texts) == len(values)
        ):
            return part.column, texts
    return None
