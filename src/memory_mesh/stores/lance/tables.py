"""The tables of a LanceDB store: read one at a version, select rows, and write changes into it.

Columns that conditions read are kept in memory, because Lance takes milliseconds for each scan.
Texts that are long, and vectors, are read for the selected rows only.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from errno import ENOSPC
from functools import reduce
from pathlib import Path
from typing import Any

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from memory_mesh.core.errors import StoreForeign, StoreTooOld
from memory_mesh.core.model import (
    BASE,
    METADATA,
    And,
    Anything,
    Compare,
    In,
    IsNull,
    Kind,
    Not,
    Or,
    Row,
    Scalar,
    Where,
    batches,
    fields_of,
    is_list,
)  # fmt: skip
from memory_mesh.core.ports import Step
from memory_mesh.stores.base import comparable
from memory_mesh.stores.files import store_error, sync
from memory_mesh.stores.journal import Superseded
from memory_mesh.stores.lance.journal import Place, folder_of, translated
from memory_mesh.stores.lance.schema import (
    DIMENSION,
    MEMORIES,
    RECORDS,
    Table,
    from_arrow,
    is_schema_v1,
    packed_vectors,
    reader_of,
    to_arrow,
)

Positions = npt.NDArray[np.int64]  # of rows in a table

_LONG = frozenset(  # columns that are not kept
    {
        "content",
        "metadata",
        "keywords",
        "extra",
        "yamo_text",
        "heritage_chain",
        "claim",
        "vector",
        "other_vector",
        "tokens",
    }
)
_KEPT_AFTER = 8  # reads of a few rows, after which the short columns are kept
_FEW = 0.2  # fraction of the rows up to which they are read one by one
_MAX_FRAGMENTS = 24  # small files of a table; more are merged
# Rows of a merged file; larger ones stay as they are, so that merging is quick.
_MERGED_ROWS = 16_384
_MAX_VERSIONS = 60  # of a table; more are removed with the files that only they use
_TAG = "memory-mesh-"  # of the versions that a state names, in a fenced place
_DELETED_AT_ONCE = 5_000  # ids in one condition
_OPS = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater,
    ">=": pc.greater_equal
}  # fmt: skip


class Frame:
    """One table at one version.

    In a place that is fenced, each change must follow the one before it. If not, another writer
    changed the table meanwhile: `Superseded`. Nothing that it did is undone or deleted here;
    `restored` begins anew from a version that is known.
    """

    def __init__(self, place: Place, table: Table, version: int | None) -> None:
        self.table, self.version, self._place, self._newest = table, version, place, version
        self._title = f"the table {table.name}"
        self._columns: dict[str, pa.Array] = {}
        self._reads = 0
        with translated(self._title):
            self._data = None if version is None else self._opened(version)
            self.rows = self._data.count_rows() if self._data is not None else 0
            self.schema: pa.Schema = (
                self._data.schema if self._data is not None else table.schema(DIMENSION)
            )
        vector = (
            self.schema.field("vector").type
            if "vector" in self.schema.names
            else pa.list_(pa.float32(), DIMENSION)
        )
        if not pa.types.is_fixed_size_list(vector) or vector.value_type != pa.float32():
            expected = "vectors of 32-bit floats with a fixed size, as in RFC-0011"
            raise StoreForeign(
                f"the table {table.name} has vectors of type {vector}", expected=expected
            )
        self.dimension: int = vector.list_size
        self._names = frozenset(self.schema.names)
        if table is MEMORIES and is_schema_v1(self.schema):
            what = f"{place.name} has memories with schema V1 of RFC-0011"
            raise StoreTooOld(
                what,
                expected="schema V2",
                remedy="run memory-mesh migrate on it; it keeps a backup",
            )

    # --- reading ---

    def column(self, name: str) -> pa.Array:
        """Return all values of a column; nulls if the table, which another program made, does
        not have it."""
        if name in self._columns:
            return self._columns[name]
        if self._data is None or name not in self._names:
            type_ = self.table.schema(self.dimension).field(name).type
            found = pa.nulls(self.rows, type_)
        else:
            with translated(self._title):
                found = self._data.to_table(columns=[name])[name].combine_chunks()
        if name not in _LONG:
            self._columns[name] = found
        return found

    def _taken(self, name: str, at: Positions) -> pa.Array:
        return self.column(name) if len(at) == self.rows else self.column(name).take(pa.array(at))

    def with_ids(self, ids: Collection[str]) -> Positions:
        """Return the positions of the rows with these ids, of any kind."""
        found = pc.is_in(self.column("id"), value_set=pa.array(ids, pa.utf8()))
        return np.flatnonzero(found.to_numpy(zero_copy_only=False))

    def select(self, kind: Kind, where: Where) -> Positions:
        """Return the positions of the rows of a kind that satisfy a condition."""
        at = np.arange(self.rows)
        if self.rows and (self.table is RECORDS or self.column("partition").null_count):
            # A row without a partition is of another program: see `foreign`.
            ours = (
                pc.equal(self.column("kind"), kind.value)
                if self.table is RECORDS
                else pc.is_valid(self.column("partition"))
            )
            at = np.flatnonzero(ours.to_numpy(zero_copy_only=False))
        for part in where.parts if isinstance(where, And) else (where,):
            if not len(at):
                break
            truth = self._truth(kind, part, at)
            at = at[pc.fill_null(truth, fill_value=False).to_numpy(zero_copy_only=False)]
        return at

    def ids(self, at: Positions) -> list[str]:
        found: list[str] = self._taken("id", at).to_pylist()
        return found

    def values(self, at: Positions, *names: str) -> list[tuple[Any, ...]]:
        """Return the values of some columns of the rows at these positions. They are kept,
        unless they are long."""
        for name in names if len(at) else ():
            if name not in _LONG:
                self.column(name)
        return list(
            zip(*(column.to_pylist() for column in self._read(at, names).columns), strict=True)
        )

    def read(self, at: Positions) -> list[Row]:
        """Return the rows at these positions."""
        if not len(at):
            return []
        names = [name for name in self.table.read_columns if name in self._names]
        self._reads += 1
        # Each column costs time at every read, so a process that goes on keeps them.
        if self._reads == _KEPT_AFTER and self._data is not None:
            kept = [name for name in names if name not in _LONG and name not in self._columns]
            with translated(self._title):
                data = self._data.to_table(columns=kept)
            self._columns |= {name: data[name].combine_chunks() for name in kept}
        return from_arrow(self.table, self._read(at, names))

    def vectors(self, at: Positions) -> list[bytes | None]:
        """Return the packed vectors of the rows at these positions, whatever their dimension."""
        data = self._read(at, ("vector", "other_vector"))
        return [
            other or own
            for own, other in zip(
                packed_vectors(data["vector"]), data["other_vector"].to_pylist(), strict=True
            )
        ]

    def newest(self, at: Positions, limit: int) -> Positions:
        """Return the positions of the newest rows, in any order."""
        if len(at) <= limit:
            return at
        names = [self.table.physical(name) for name in ("created_at", "partition", "number", "id")]
        data = pa.table({name: self._taken(name, at) for name in names})
        best = pc.select_k_unstable(
            data, k=limit, sort_keys=[(name, "descending") for name in names]
        )
        found: Positions = at[best.to_numpy()]
        return found

    def _read(self, at: Positions, names: Sequence[str]) -> pa.Table:
        kept = [name for name in names if name in self._columns or name not in self._names]
        wanted = [name for name in names if name not in kept]
        columns = {name: self._taken(name, at) for name in kept}
        if wanted and len(at) and self._data is not None:
            with translated(self._title):
                if len(at) > _FEW * self.rows:
                    data = self._data.to_table(columns=wanted)
                    data = data if len(at) == self.rows else data.take(pa.array(at))
                else:
                    order = np.argsort(at)
                    data = self._data.take(at[order].tolist(), columns=wanted).take(
                        pa.array(np.argsort(order))
                    )
            columns |= {name: data[name] for name in wanted}
        elif wanted:
            columns |= {name: pa.nulls(0, self.schema.field(name).type) for name in wanted}
        return pa.table({name: columns[name] for name in names})

    def foreign(self) -> tuple[pa.Table, set[str]] | None:
        """Return the rows of a table of memories that other programs wrote, and the ids of ours;
        None if there are none."""
        if not self.rows or not self.column("partition").null_count:
            return None
        ours = pc.is_valid(self.column("partition")).to_numpy(zero_copy_only=False)
        known = pc.fill_null(pc.not_equal(self.column("id"), ""), fill_value=False).to_numpy(
            zero_copy_only=False
        )
        at = np.flatnonzero(~ours & known)
        names = [name for name in self.table.document(self.dimension).names if name in self._names]
        return (self._read(at, names), set(self.ids(np.flatnonzero(ours)))) if len(at) else None

    # --- conditions ---

    def _truth(self, kind: Kind, where: Where, at: Positions) -> pa.Array:
        """Evaluate a condition for the rows at these positions, in three-valued logic, as
        `Where.truth` does for one row."""
        match where:
            case Anything():
                return pa.array(np.ones(len(at), bool))
            case And(parts) | Or(parts):
                combine, start = (
                    (pc.and_kleene, True) if isinstance(where, And) else (pc.or_kleene, False)
                )
                return reduce(
                    combine,
                    (self._truth(kind, part, at) for part in parts),
                    pa.array(np.full(len(at), start)),
                )
            case Not(part):
                return pc.invert(self._truth(kind, part, at))
        column = where.column
        if column == "kind" or not _has(kind, column):  # the same for all rows
            same = where.truth(Row(kind=kind, id="", partition="", created_at=""))
            return (
                pa.nulls(len(at), pa.bool_()) if same is None else pa.array(np.full(len(at), same))
            )
        if column in self.table.fields and not is_list(column):
            values = self._taken(self.table.physical(column), at)
            match where:
                case IsNull():
                    return pc.is_null(values)
                case Compare(op=op, value=value):
                    return _compare(column, values, op, value)
                case In(values=among):
                    return _among(column, values, among)
        return self._truth_by_row(kind, where, column, at)

    def _truth_by_row(self, kind: Kind, where: Any, column: str, at: Positions) -> pa.Array:
        """Evaluate a condition row by row: on a list, on a key of the metadata, on what has no
        column, or LIKE."""
        name = "metadata" if column.startswith(METADATA) else column
        own = name in self.table.fields
        values = (
            self._read(at, [self.table.physical(name) if own else "extra"])
            .column(0)
            .combine_chunks()
        )
        read = reader_of(name) if own else lambda text: json.loads(text).get(name)
        # Values repeat, so each is evaluated once.
        coded = values.dictionary_encode()
        known = [
            where.truth(_with(kind, name, read(value))) for value in coded.dictionary.to_pylist()
        ]
        null = where.truth(_with(kind, name, None))
        return pa.array(
            [null if code is None else known[code] for code in coded.indices.to_pylist()],
            pa.bool_(),
        )

    # --- writing ---

    def delete_foreign(self) -> None:
        """Delete the rows that `foreign` returns; rows that another program adds meanwhile stay."""
        found = self.foreign() if "partition" in self.schema.names else None
        if found is not None:
            with translated(self._title):
                for among in _conditions(set(found[0]["id"].to_pylist())):
                    self._commit(
                        lambda data, among=among: data.delete(f"partition IS NULL AND {among}")  # type: ignore[misc]
                    )

    def write(
        self, puts: Sequence[Row], gone: Mapping[Kind, Collection[str]], step: Step
    ) -> "Frame":
        """Delete the rows with these ids, append rows, and merge small files. Returns the table
        as it is then."""
        frame, uri = self, self._place.uri(self.table)
        with translated(self._title):
            for kind, ids in gone.items():
                for among in _conditions(ids):
                    which = f"kind = '{kind.value}' AND {among}" if self.table is RECORDS else among
                    self._commit(lambda data, which=which: data.delete(which))  # type: ignore[misc]
            step(f"flush.{self.table.name}.deleted")
            if puts:
                frame = self._fitting(puts)
                rows = self._with_unknown(to_arrow(self.table, puts, frame.dimension))
                if frame._data is None:
                    lance.write_dataset(rows, uri, mode="create")
                else:
                    frame._commit(lambda data: lance.write_dataset(rows, data, mode="append"))
                step(f"flush.{self.table.name}.appended")
            if len(frame._latest().get_fragments()) > _MAX_FRAGMENTS:
                frame._compact(target_rows_per_fragment=_MERGED_ROWS)
                step(f"flush.{self.table.name}.merged")
        return frame._reopened()

    def having(self, kind: Kind, ids: Collection[str]) -> set[str]:
        """Return which of these ids of a kind are in the table."""
        at = self.with_ids(ids)
        if self.table is RECORDS:
            return {id_ for id_, found in self.values(at, "id", "kind") if found == kind}
        return set(self.ids(at))

    @property
    def fenced(self) -> bool:
        return self._place.fenced

    @property
    def has_many_versions(self) -> bool:
        return len(self._place.versions(self.table)) > _MAX_VERSIONS

    def check(self) -> None:
        """Read everything once."""
        with translated(self._title):
            for _ in self._data.to_batches() if self._data is not None else ():
                pass

    def compacted(self) -> "Frame":
        """Rewrite the files that contain deleted rows."""
        with translated(self._title):
            if self._data is not None:
                self._compact(materialize_deletions_threshold=0.0)
        return self._reopened()

    def remove_old_versions(self) -> None:
        """Remove all files that the newest version does not use.

        In a fenced place that is the version of a state. Later versions with a tag stay, which
        another state may name by now, and so do files of no version, which another writer may be
        about to commit.
        """
        fenced = self._place.fenced
        with translated(self._title):
            if self._data is not None:
                for name in self._data.tags.list() if fenced else ():
                    if name.startswith(_TAG) and int(name.removeprefix(_TAG)) < (self.version or 0):
                        self._data.tags.delete(name)
                self._latest().cleanup_old_versions(
                    older_than=timedelta(0),
                    delete_unverified=not fenced,
                    error_if_tagged_old_versions=not fenced,
                )

    def restored(self) -> "Frame":
        """Return this version as the newest one of the table, after those that were never
        committed; an empty table for none."""
        newest = max(self._place.versions(self.table), default=None)
        if self.version is not None and newest == self.version:
            return self
        with translated(self._title):
            if self._data is None:
                empty = self.table.schema(DIMENSION).empty_table()
                uri, options = self._place.uri(self.table), self._place.options
                data = lance.write_dataset(empty, uri, mode="overwrite", storage_options=options)
            else:
                data = self._opened(self.version)
                data.restore()
        return Frame(self._place, self.table, data.version)

    def tag(self) -> None:
        """Tag this version, which a state is about to name, so that no writer removes it."""
        with translated(self._title):
            if self._data is not None and f"{_TAG}{self.version}" not in self._data.tags.list():
                self._data.tags.create(f"{_TAG}{self.version}", self.version)

    def _opened(self, version: int | None) -> Any:
        return lance.dataset(
            self._place.uri(self.table), version=version, storage_options=self._place.options
        )

    def _latest(self) -> Any:
        return self._opened(self._newest if self._place.fenced else None)

    def _reopened(self) -> "Frame":
        newest = (
            self._newest
            if self._place.fenced
            else max(self._place.versions(self.table), default=None)
        )
        return Frame(self._place, self.table, newest)

    def _commit(self, change: Callable[[Any], object], *, commits: int = 1) -> None:
        """Change the newest version, by this many versions or none."""
        data = self._latest()
        before = data.version
        changed = change(data)
        self._newest = changed.version if isinstance(changed, lance.LanceDataset) else data.version
        if self._place.fenced and self._newest not in (before, before + commits):
            raise Superseded(f"another writer changed the table {self.table.name}")

    def _compact(self, **options: Any) -> None:
        """Rewrite files. Lance commits twice: the first one reserves numbers."""
        self._commit(lambda data: data.optimize.compact_files(**options), commits=2)

    def _with_unknown(self, data: pa.Table) -> pa.Table:
        """Return rows with the values that columns of other programs have in this table."""
        names = [name for name in self.schema.names if name not in data.column_names]
        if not names:
            return data
        at = self.with_ids(data["id"].to_pylist())
        place = {id_: place for place, id_ in enumerate(self.ids(at))}
        old = self._read(at, names).take(
            pa.array([place.get(id_) for id_ in data["id"].to_pylist()], pa.int64())
        )
        for name in names:
            data = data.append_column(name, old[name])
        return data

    def _fitting(self, puts: Sequence[Row]) -> "Frame":
        """Return the table with all our columns. While it has no vector, its dimension becomes
        that of the first ones."""
        sizes = Counter(row.vector.dimension for row in puts if row.vector)
        frame = self._reopened()
        if frame._data is None:
            frame.dimension = sizes.most_common(1)[0][0] if sizes else DIMENSION
            return frame
        missing = [
            field
            for field in self.table.schema(frame.dimension)
            if field.name not in frame.schema.names
        ]
        if missing:
            frame._commit(lambda data: data.add_columns(missing))
        ours = self.table.schema(frame.dimension)
        for field in frame.schema:
            if not field.nullable and (
                field.name not in ours.names or ours.field(field.name).nullable
            ):
                nullable = {"path": field.name, "nullable": True}
                frame._commit(lambda data, change=nullable: data.alter_columns(change))  # type: ignore[misc]
        if (
            sizes
            and frame.dimension not in sizes
            and not frame._latest().count_rows("vector IS NOT NULL")
        ):
            frame = frame._reopened()
            rows = frame.read(np.arange(frame.rows))
            resized = frame._with_unknown(to_arrow(self.table, rows, sizes.most_common(1)[0][0]))
            frame._commit(lambda data: lance.write_dataset(resized, data, mode="overwrite"))
        return frame._reopened()


def erase(path: Path, ids: Collection[str]) -> None:
    """Delete the rows with these ids from a table that is not in use, with their bytes."""
    with translated(f"the table {path.stem}"):
        data = lance.dataset(str(path))
        for among in _conditions(ids):
            data.delete(among)
        data.optimize.compact_files(materialize_deletions_threshold=0.0)
        data.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)


def _conditions(ids: Collection[str]) -> Iterator[str]:
    """Yield conditions that select the rows with these ids, some ids in each."""
    for some in batches(sorted(ids), _DELETED_AT_ONCE):
        yield "id IN ({})".format(", ".join("'" + id_.replace("'", "''") + "'" for id_ in some))


def sync_table(root: Path, table: Table, synced: set[str]) -> None:
    """Make the files of a table durable that are not known to be: Lance never does. Raises
    `StoreFull` if one is incomplete."""
    _check_lengths(folder_of(root, table), table, synced)
    for folder, _, files in os.walk(folder_of(root, table)):
        new = [
            path for path in (os.path.join(folder, name) for name in files) if path not in synced
        ]
        for path in new:
            os.chmod(path, 0o600)  # Lance leaves that to the umask
            sync(Path(path))
        if folder not in synced:
            os.chmod(folder, 0o700)
            synced.add(folder)
        if new:
            sync(Path(folder))
            sync(Path(folder).parent)
        synced.update(path for path in new if not path.endswith(".json"))


def _check_lengths(folder: Path, table: Table, synced: Collection[str]) -> None:
    """Compare new files with the lengths that the table knows: on a full disk Lance may lose the
    end of one without an error."""
    if not any(str(path) not in synced for path in folder.glob("data/*")):
        return
    with translated(f"the table {table.name}"):
        for fragment in lance.dataset(str(folder)).get_fragments():
            for file in fragment.metadata.files:
                path = folder / "data" / file.path
                if (
                    str(path) not in synced
                    and file.file_size_bytes
                    and path.stat().st_size != file.file_size_bytes
                ):
                    raise store_error(path, ENOSPC)


def _has(kind: Kind, column: str) -> bool:
    name = "metadata" if column.startswith(METADATA) else column
    return name in BASE or name in {field.name for field in fields_of(kind)}


def _with(kind: Kind, name: str, value: Any) -> Row:
    """Return a row with this value only."""
    base = {"id": "", "partition": "", "created_at": "", "revision": 1, "number": 0}
    fields = {} if name in BASE else {name: value}
    return Row.from_fields(
        **(base | ({name: value} if name in BASE else {})), kind=kind, fields=fields, vector=None
    )


def _compare(column: str, values: pa.Array, op: str, value: Scalar) -> pa.Array:
    if not comparable(column, value):
        return pa.nulls(len(values), pa.bool_())
    if isinstance(value, str):
        return _OPS[op](values, pa.scalar(value))
    return _OPS[op](values.cast(pa.float64()), pa.scalar(float(value)))


def _among(column: str, values: pa.Array, among: Sequence[Scalar]) -> pa.Array:
    if not among:
        return pa.array(np.zeros(len(values), bool))
    given = [value for value in among if comparable(column, value)]
    if not given:
        return pa.nulls(len(values), pa.bool_())
    if isinstance(given[0], str):
        found = pc.is_in(values, value_set=pa.array(given, pa.utf8()))
    else:
        found = pc.is_in(
            values.cast(pa.float64()), value_set=pa.array([float(value) for value in given])
        )
    unknown = (
        pc.is_null(values) if len(given) == len(among) else pa.array(np.ones(len(values), bool))
    )
    return pc.if_else(pc.and_(pc.invert(found), unknown), pa.scalar(None, pa.bool_()), found)
