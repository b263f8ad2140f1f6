"""The archive of a store: all rows of all users as lines of JSON, with history and audit chains.

The first line names the format, and the last one has the number of rows and a digest, so that a
file that was cut is detected. Rows are ordered by kind, newest first, with sorted keys, so that
stores with equal rows have equal archives. docs/internals/exports.md describes it.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from memory_mesh.core.errors import InvalidInput, StoreBusy, StoreTooNew, shown
from memory_mesh.core.model import BASE, BY_NAME, CONTENTS, Kind, Row, Type, Value, Vector, checked
from memory_mesh.core.model.background import check_cancelled
from memory_mesh.core.ports import Progress, Store
from memory_mesh.core.text import shown_url

FORMAT, VERSION = "memory-mesh store", 1
KINDS = tuple(Kind)  # the order of an archive
AT_ONCE = 500  # rows in one change
PAGE = 2_000  # rows in memory; a store may read all its rows to find the next page
# The id of the row that says what was copied into a store; it is not copied itself.
MARK = "transfer"
_VECTOR = "vector"
_EXPECTED = "a line of memory-mesh export --all"
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


@dataclass(slots=True)
class Tally:
    """Counts rows by kind, and computes a digest of each kind: equal tallies mean equal rows."""

    counts: Counter[str] = field(default_factory=Counter)
    _digests: dict[str, Any] = field(default_factory=dict)

    def add(self, row: Row, line: str | None = None) -> None:
        digest = self._digests.setdefault(row.kind, sha256())
        digest.update((encode(row) if line is None else line).encode())
        self.counts[row.kind] += 1

    @property
    def digest(self) -> str:
        parts = (
            f"{kind} {self.counts[kind]} {self._digests[kind].hexdigest()}\n"
            for kind in KINDS
            if kind in self._digests
        )
        return sha256("".join(parts).encode()).hexdigest()

    def values(self) -> dict[str, Value]:
        return {
            "rows": {str(kind): self.counts[kind] for kind in KINDS if self.counts[kind]},
            "digest": self.digest,
        }


class StoreRows:
    """The rows of a store. Implements `core.ports.RowSource`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.name = shown_url(store.url).removesuffix("?mode=ro")

    def state(self) -> Hashable:
        return self._store.data_version()

    def count(self) -> int:
        return sum(map(self._store.count, KINDS))

    def rows(self, kind: Kind) -> Iterator[Row]:
        last: Row | None = None
        while page := self._store.find(kind, limit=PAGE, after=last):
            check_cancelled()
            yield from (row for row in page if row.key != (Kind.META, MARK))
            last = page[-1]

    def present(self, kind: Kind, ids: Sequence[str]) -> Collection[str]:
        return self._store.get(kind, ids)


def snapshot_of(store: Store) -> AbstractContextManager[Store]:
    """Return one state of a store for a long read, if it has a method `snapshot`; otherwise the
    store itself."""
    snapshot: Callable[[], AbstractContextManager[Store]] | None = getattr(store, "snapshot", None)
    return snapshot() if snapshot else nullcontext(store)


def archive_lines(store: Store, *, vectors: bool, progress: Progress) -> Iterator[str]:
    """Yield all rows of a store as the lines of an archive. Raise `StoreBusy` at the end if it
    was written to meanwhile."""
    source = StoreRows(store)
    state, total = source.state(), source.count()
    rows = (row for kind in KINDS for row in source.rows(kind))
    for done, line in enumerate(lines(rows, vectors=vectors)):
        if line.startswith('{"end"') and source.state() != state:
            raise StoreBusy(
                f"{source.name} was written to during the export, so that it would not be of one "
                "moment",
                remedy="try again, or export a backup of it",
            )
        yield line
        if done % AT_ONCE == 0:
            progress("exporting", min(done, total), total)
    progress("exporting", total, total)


def lines(rows: Iterable[Row], *, vectors: bool) -> Iterator[str]:
    """Yield the lines of an archive. `rows` are in the order of an archive."""
    yield _encode({"format": FORMAT, "version": VERSION, "vectors": vectors}) + "\n"
    tally = Tally()
    for row in rows if vectors else _without_vectors(rows):
        line = encode(row)
        tally.add(row, line)
        yield line + "\n"
    yield _encode({"end": tally.values()}) + "\n"


def _without_vectors(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows as they are before they are embedded. Passages and the name of the model
    come with the vectors."""
    for row in rows:
        if row.kind in CONTENTS:
            yield replace(row, vector=None, fields={**row.fields, "pending": True})
        elif row.kind is not Kind.PASSAGE and (row.kind, row.id) != (Kind.META, "embedding"):
            yield row


def encode(row: Row) -> str:
    """Return a row as JSON; equal rows of all stores give the same text."""
    values: dict[str, Value] = {name: row.value(name) for name in BASE}
    for name, value in row.fields.items():
        if value is not None:  # a store may return 1 where another one returns 1.0
            values[name] = float(value) if BY_NAME[name].type is Type.REAL else value  # type: ignore[arg-type]
    if row.vector:
        values[_VECTOR] = {**row.vector.as_json()}
    return _encode(values)


def decode(values: Mapping[str, Any]) -> Row:
    """Return the row that a line has, or raise `InvalidInput`."""
    try:
        vector = values.get(_VECTOR)
        row = Row(
            kind=Kind(values["kind"]),
            fields={
                name: value
                for name, value in values.items()
                if name not in BASE and name != _VECTOR
            },
            vector=Vector.from_json(vector) if vector else None,
            **{name: values[name] for name in BASE if name != "kind"},
        )
        return checked(row)
    except InvalidInput:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InvalidInput(
            f"it is not a row: {shown(error, max_length=80)}", expected=_EXPECTED
        ) from None


def check_header(values: Mapping[str, Any]) -> None:
    """Raise `StoreTooNew` if only a later version can read the archive."""
    version = values.get("version")
    if version != VERSION:
        what = f"the archive has version {shown(version)}"
        raise StoreTooNew(
            what, expected=f"version {VERSION}", remedy="upgrade memory-mesh; nothing was changed"
        )
