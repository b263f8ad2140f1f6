"""Migrate `memory_entries` from schema V1 of RFC-0011 to V2 (section 11), and roll it back.

LanceDB cannot rename a table, so the folders of the tables are renamed. Before the first rename, a
file lists all of them; the next process that opens the folder finishes them. Before that the V1
table is untouched, and the next run starts again.
"""

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from memory_mesh.core.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreForeign,
    StoreFull,
    StoreMissing,
    StoreTooNew,
    StoreUnavailable,
    shown,
)
from memory_mesh.core.model import DAY_MS, DamagedRow, Migration, iso
from memory_mesh.core.model.background import check_cancelled
from memory_mesh.core.ports import Progress, Step, no_progress, no_step
from memory_mesh.stores.base import new_nonce
from memory_mesh.stores.files import create_folder, files_under, locked, stat_of, sync
from memory_mesh.stores.lance.journal import (
    LANCE_ERRORS,
    LOCK,
    OWN,
    journal_of,
    read_state,
    translated,
    write_json,
    write_state,
)
from memory_mesh.stores.lance.schema import is_schema_v2, is_time, memories_v1, memories_v2

# --- rows of V1 ---

ROWS = 1024  # read at once


def v2_schema(schema: pa.Schema) -> pa.Schema:
    """Return the V2 schema for a V1 table. Columns that are not in the document are kept, behind
    those of V2."""
    if missing := set(memories_v1().names) - set(schema.names):
        raise StoreForeign(
            f"the table has no column {min(missing)}",
            expected="the columns of RFC-0011, section 2.1",
        )
    vector = schema.field("vector").type
    if not pa.types.is_fixed_size_list(vector):
        raise StoreForeign(
            f"the column vector has the type {vector}",
            expected="a list of fixed size, of 32-bit floats",
        )
    document = memories_v2(vector.list_size)
    fields = [
        field.with_nullable(field.name not in schema.names or schema.field(field.name).nullable)
        for field in document
    ]
    return pa.schema([*fields, *(field for field in schema if field.name not in document.names)])


def as_v2(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows of V1 with the columns of V2, which are null."""
    have = set(batch.schema.names)
    columns = []
    for field in schema:
        try:
            columns.append(
                batch[field.name].cast(field.type)
                if field.name in have
                else pa.nulls(batch.num_rows, field.type)
            )
        except pa.ArrowException as error:
            what = (
                f"the column {field.name} has the type {batch[field.name].type} and cannot "
                "be converted"
            )
            raise StoreForeign(
                what, expected=str(field.type), remedy="nothing was changed"
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def damaged_rows(
    batches: Iterable[pa.RecordBatch], progress: Progress, total: int
) -> Iterator[DamagedRow]:
    """Yield the rows of V2 that cannot be read as whole memories, with the reasons."""
    row, first = 0, dict[str | None, int]()
    for batch in batches:
        ids, contents, metadata = (_texts(batch[name]) for name in ("id", "content", "metadata"))
        created, updated = (
            batch[name].cast(pa.int64()).to_pylist() for name in ("created_at", "updated_at")
        )
        vectors = _vector_faults(batch["vector"])
        for place, id_ in enumerate(ids):
            row += 1
            reasons = (
                "no id" if not id_ else f"the same id as row {first[id_]}" if id_ in first else "",
                "" if contents[place] else "no content",
                "" if _is_object(metadata[place]) else "metadata is not a JSON object",
                vectors[place],
                "no created_at"
                if created[place] is None
                else _time_fault("created_at", created[place]),
                _time_fault("updated_at", updated[place]),
            )
            first.setdefault(id_, row)
            if any(reasons):
                yield DamagedRow(row=row, id=id_, reason=", ".join(filter(None, reasons)))
        progress("memories checked", row, total)


def difference(
    one: Iterable[pa.RecordBatch], other: Iterable[pa.RecordBatch], progress: Progress, total: int
) -> int | None:
    """Return the first row near which two tables differ in a bit, or None if they are equal."""
    done = 0
    for left, right in zip(_regrouped(one), _regrouped(other), strict=False):
        if left.num_rows != right.num_rows or not all(map(_same, left.columns, right.columns)):
            return done + 1
        done += left.num_rows
        progress("memories compared", done, total)
    return None if done == total else done + 1


def ids_of(table: Any) -> set[str]:
    """Return the ids in a table."""
    return {id_ for batch in table.to_batches(columns=["id"]) for id_ in _texts(batch["id"]) if id_}


def _same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    if not pa.types.is_fixed_size_list(one.type):
        return bool(one.equals(other))
    left, right = (pa.concat_arrays(column.chunks) for column in (one, other))
    # NaN is not equal to itself, but its bits are.
    bits = [column.flatten().view(pa.int32()) for column in (left, right)]
    return bool(left.is_valid().equals(right.is_valid()) and bits[0].equals(bits[1]))


def _regrouped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the same rows in tables of one size; Lance ends a batch where a file ends."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        rows = pa.Table.from_batches([*waiting, batch])
        while rows.num_rows >= ROWS:
            yield rows.slice(0, ROWS)
            rows = rows.slice(ROWS)
        waiting = rows.to_batches()
    if waiting:
        yield pa.Table.from_batches(waiting)


def _texts(column: pa.Array) -> list[str | None]:
    """Return texts, also of bytes that are not valid UTF-8."""
    values = column.cast(pa.large_binary()).to_pylist()
    return [None if value is None else value.decode("utf-8", "replace") for value in values]


def _is_object(text: str | None) -> bool:
    try:
        return text is None or isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _time_fault(name: str, ms: int | None) -> str:
    return "" if ms is None or is_time(ms) else f"{name} is not a time of the years 1 to 9999"


def _vector_faults(column: pa.Array) -> list[str]:
    size, valid = column.type.list_size, column.is_valid().to_pylist()
    finite = iter(
        np.isfinite(column.flatten().to_numpy(zero_copy_only=False))
        .reshape(-1, size)
        .all(axis=1)
        .tolist()
    )
    return [
        "no vector" if not there else "" if next(finite) else "a vector that is not finite"
        for there in valid
    ]


# --- the migration ---

TABLE, BACKUP = "memory_entries", "memory_entries_v1_backup"
KEPT_MS = 30 * DAY_MS
_NEW = "memory_entries_v2_new"  # the copy, until it is complete
_ROLLED_BACK = "memory_entries_v2_rolled_back_"  # and the time: the V2 table after a rollback
_RECORD, _VERSION = "memory_entries_migration.json", 1
_AGAIN = "run memory-mesh migrate again; nothing was changed"


def migrate_folder(
    folder: Path,
    *,
    rollback: bool = False,
    dry_run: bool = False,
    now: int,
    busy_seconds: float = 30.0,
    progress: Progress = no_progress,
    step: Step = no_step,
) -> Migration:
    """Migrate a folder, or roll it back, while no other process of memory-mesh writes to it."""
    run = partial(roll_back, folder) if rollback else partial(migrate, folder, progress=progress)
    with translated(folder):
        if not _path(folder, TABLE).is_dir() and not is_unfinished(folder):
            raise StoreMissing(
                f"{folder} has no table {TABLE}", remedy="check the name of the folder"
            )
        if dry_run:
            return run(now=now, dry_run=True)
        _check(folder, now, rollback=rollback)
        create_folder(folder / OWN)
        with locked(folder, folder / OWN / LOCK, busy_seconds=busy_seconds):
            state = read_state(folder / OWN)
            journal = journal_of(folder / OWN, state.generation) if state else None
            if journal and (found := stat_of(journal)) and found.st_size:
                raise StoreBusy(
                    f"another process writes to {folder}",
                    remedy="stop it and run memory-mesh migrate again",
                )
            return run(now=now, step=step)


def _check(folder: Path, now: int, *, rollback: bool) -> None:
    """Raise an error if the folder cannot be migrated, before it gets a lock: one that others
    may wait for cannot be removed."""
    if is_unfinished(folder):
        return
    if rollback:
        _tables_to_exchange(folder, now)
        return
    table, schema = _table_to_migrate(folder, now)
    if schema is None:
        return
    _check_space(folder)
    # Does each value fit into the other type?
    if any(field.type != schema.field(field.name).type for field in table.schema):
        for _ in _converted(table, schema):
            pass


def migrate(
    folder: Path,
    *,
    now: int,
    dry_run: bool = False,
    progress: Progress = no_progress,
    step: Step = no_step,
) -> Migration:
    """Copy the V1 table of a folder to a V2 table, compare the two, and exchange them. A V2 table
    stays as it is.

    Rows that are damaged are copied as they are, and reported. The caller holds the lock of the
    folder.
    """
    if finished := _finish(folder, dry_run=dry_run):
        return finished
    removed = () if dry_run else _clean(folder, now)
    table, schema = _table_to_migrate(folder, now)
    done = Migration(rows=table.count_rows(), removed=removed, dry_run=dry_run)
    if schema is None:
        return replace(done, backup_until=_kept_until(folder, BACKUP))
    progress = _seldom(progress)
    damaged = tuple(damaged_rows(_converted(table, schema), progress, done.rows))
    done = replace(
        done, action="migrate", damaged=damaged, backup=BACKUP, backup_until=iso(now + KEPT_MS)
    )
    if not dry_run:
        _copy(folder, table, schema, progress, step)
        _switch(folder, ((TABLE, BACKUP), (_NEW, TABLE)), step, **{BACKUP: now})
    return done


def _table_to_migrate(folder: Path, now: int) -> tuple[Any, pa.Schema | None]:
    """Return the table and the schema of its copy; None if it has schema V2. Raises an error if
    it cannot be migrated."""
    table = _open(folder, TABLE)
    if is_schema_v2(table.schema):
        return table, None
    if _has_backup(folder, now):
        what = f"{folder} has the table {BACKUP} of an earlier migration, and a V1 table again"
        raise StoreForeign(
            what, expected="one of them", remedy=f"move {BACKUP}.lance to another folder"
        )
    return table, v2_schema(table.schema)


def roll_back(folder: Path, *, now: int, dry_run: bool = False, step: Step = no_step) -> Migration:
    """Restore the V1 table from its backup. The V2 table is kept under another name for 30 days.
    The caller holds the lock."""
    finished = _finish(folder, dry_run=dry_run)
    if finished and finished.action == "roll back":
        return finished
    removed = () if dry_run else _clean(folder, now)
    (table, backup), aside = _tables_to_exchange(folder, now), f"{_ROLLED_BACK}{now}"
    later = len(ids_of(table) - ids_of(backup))
    if not dry_run:
        _switch(folder, ((TABLE, aside), (BACKUP, TABLE)), step, **{aside: now})
    return Migration(
        action="roll back", rows=backup.count_rows(), left_behind=later, backup=aside,
        backup_until=iso(now + KEPT_MS), removed=removed, dry_run=dry_run,
    )  # fmt: skip


def _tables_to_exchange(folder: Path, now: int) -> tuple[Any, Any]:
    """Return the V2 table and its backup. Raises an error if there is nothing to roll back."""
    table = _open(folder, TABLE)
    if not _has_backup(folder, now):
        why = (
            "it is kept for 30 days after a migration"
            if is_schema_v2(table.schema)
            else "its memories are in a V1 table"
        )
        raise StoreMissing(f"{folder} has no table {BACKUP}", remedy=why)
    backup = _open(folder, BACKUP)
    if is_schema_v2(backup.schema) or not is_schema_v2(table.schema):
        what = f"{BACKUP} in {folder} does not belong to {TABLE}"
        raise StoreForeign(what, expected="a V1 table and the V2 table made of it")
    return table, backup


def is_unfinished(folder: Path) -> bool:
    """Return whether a process died between two renames; the next run of `migrate` or
    `roll_back` finishes them."""
    return bool(_read(folder).renames)


def check_finished(folder: Path) -> None:
    """Raise `StoreUnavailable` if a migration of the folder was interrupted between two renames."""
    if is_unfinished(folder):
        raise StoreUnavailable(
            f"a migration of {folder} was interrupted",
            remedy="run memory-mesh migrate on it to finish it",
        )


def remove_expired(folder: Path, now: int) -> tuple[str, ...]:
    """Remove the tables that were put aside 30 days ago, and return their names. The caller
    holds the lock."""
    record = _read(folder)
    expired = _expired(record, now)
    for name in expired:
        shutil.rmtree(_path(folder, name), ignore_errors=True)
    kept = {name: since for name, since in record.kept.items() if _path(folder, name).exists()}
    if kept != record.kept:
        _write(folder, replace(record, kept=kept))
    return expired


def tables_put_aside(folder: Path) -> list[Path]:
    """Return the folders of the backup and of rolled-back tables; a memory that is erased is
    erased there too."""
    return [path for name in _read(folder).kept if (path := _path(folder, name)).exists()]


# --- the steps ---


def _finish(folder: Path, *, dry_run: bool) -> Migration | None:
    """Finish the renames of a run that was interrupted, and return what that run did."""
    record = _read(folder)
    if not record.renames:
        return None
    if dry_run:
        raise StoreUnavailable(
            f"a migration of {folder} was interrupted",
            remedy="run it without --dry-run to finish it",
        )
    _rename(folder, record, no_step)
    _, aside = record.renames[0]
    action = "migrate" if aside == BACKUP else "roll back"
    return Migration(
        action=action,
        rows=_open(folder, TABLE).count_rows(),
        backup=aside,
        backup_until=_kept_until(folder, aside),
    )


def _clean(folder: Path, now: int) -> tuple[str, ...]:
    """Remove an unfinished copy, and tables that were put aside 30 days ago."""
    shutil.rmtree(_path(folder, _NEW), ignore_errors=True)
    return remove_expired(folder, now)


def _seldom(progress: Progress) -> Progress:
    """Return a function that passes on about twenty reports of each kind of work, if there are
    many rows."""
    last: dict[str, int] = {}

    def report(what: str, done: int, of: int) -> None:
        part = 20 * done // of
        if done == of or (done >= ROWS and part > last.get(what, 0)):
            last[what] = part
            progress(what, done, of)

    return report


def _copy(folder: Path, table: Any, schema: pa.Schema, progress: Progress, step: Step) -> None:
    """Write the V2 table, compare it with the V1 table, and make it durable; or leave nothing of
    it."""
    _check_space(folder)
    step("migration.begun")
    total, new = table.count_rows(), _path(folder, _NEW)
    try:
        copy = _write_copy(new, table, schema, progress, step)
        row = difference(
            _converted(table, schema), copy.to_batches(batch_size=ROWS), progress, total
        )
        for path in (*new.rglob("*"), new, folder):
            sync(path)
        _check_copied(folder, row, table)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    step("migration.compared")


def _check_space(folder: Path) -> None:
    size = sum(found.st_size for _, found in files_under(_path(folder, TABLE)))
    if shutil.disk_usage(folder).free < size:
        raise StoreFull(
            f"{folder} has no room for a copy of {TABLE}", remedy=f"free {size:,} bytes; {_AGAIN}"
        )


def _write_copy(new: Path, table: Any, schema: pa.Schema, progress: Progress, step: Step) -> Any:
    total, copied, stopped = table.count_rows(), 0, list[BaseException]()

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal copied
        try:
            for batch in _converted(table, schema):
                yield batch
                copied += batch.num_rows
                progress("memories copied", copied, total)
                step("migration.copying")
        except BaseException as error:
            stopped.append(error)
            raise

    try:
        copy = lance.write_dataset(pa.RecordBatchReader.from_batches(schema, batches()), new)
    except LANCE_ERRORS:
        if stopped:  # Lance raised an error of its own in place of ours
            raise stopped[0] from None
        raise
    step("migration.copied")
    return copy


def _check_copied(folder: Path, row: int | None, table: Any) -> None:
    if lance.dataset(_path(folder, TABLE)).version != table.version:
        raise StoreUnavailable(
            f"another program wrote to {folder} meanwhile", remedy=f"stop it and {_AGAIN}"
        )
    if row is not None:
        raise StoreCorrupt(f"the copy of {TABLE} differs from row {row} on", remedy=_AGAIN)


def _converted(table: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in table.to_batches(batch_size=ROWS):
        check_cancelled()
        yield as_v2(batch, schema)


def _switch(
    folder: Path, renames: tuple[tuple[str, str], ...], step: Step, **put_aside: int
) -> None:
    record = _Record(renames=renames, kept=_read(folder).kept | put_aside)
    _write(folder, record)
    step("migration.recorded")
    _rename(folder, record, step)


def _rename(folder: Path, record: "_Record", step: Step) -> None:
    """Do the renames that are left. They are done in order: when the source of the last one is
    gone, none is left."""
    last, _ = record.renames[-1]
    for source, target in record.renames:
        if _path(folder, last).exists() and not _path(folder, target).exists():
            os.rename(_path(folder, source), _path(folder, target))
            sync(folder)
            step("migration.renamed")
    # The state of the store names the new table. Marks of partitions that readers remember become
    # invalid.
    if state := read_state(folder / OWN):
        versions = {**state.tables, TABLE: _open(folder, TABLE).version}
        write_state(folder / OWN, state.after_others(versions, new_nonce()))
    step("migration.noted")
    _write(folder, replace(record, renames=()))
    step("migration.finished")


# --- files ---


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """The record file: the renames that have begun, and when each table was put aside, in Unix
    milliseconds."""

    renames: tuple[tuple[str, str], ...] = ()
    kept: dict[str, int]


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.lance"


def _open(folder: Path, name: str) -> Any:
    if not _path(folder, name).is_dir():
        raise StoreMissing(f"{folder} has no table {name}", remedy="check the name of the folder")
    return lance.dataset(_path(folder, name))


def _kept_until(folder: Path, name: str) -> str | None:
    since = _read(folder).kept.get(name)
    return None if since is None else iso(since + KEPT_MS)


def _has_backup(folder: Path, now: int) -> bool:
    return _path(folder, BACKUP).exists() and BACKUP not in _expired(_read(folder), now)


def _expired(record: _Record, now: int) -> tuple[str, ...]:
    """Return the tables that were put aside 30 days ago."""
    return tuple(name for name, since in record.kept.items() if now - since >= KEPT_MS)


def _read(folder: Path) -> _Record:
    file = folder / _RECORD
    try:
        stored = json.loads(file.read_bytes())
        if stored["version"] > _VERSION:
            raise StoreTooNew(
                f"a newer version of memory-mesh migrated {folder}", remedy="update memory-mesh"
            )
        renames = tuple((str(source), str(target)) for source, target in stored["renames"])
        kept = {str(name): int(since) for name, since in stored["kept"].items()}
    except FileNotFoundError:
        return _Record(kept={})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreCorrupt(
            f"{file} cannot be read: {shown(error)}", remedy="restore a backup of the folder"
        ) from error
    # No other table, and no path that leads out of the folder, is ever renamed or removed.
    names = {name for rename in renames for name in rename} - {TABLE, _NEW} | kept.keys()
    if not all(re.fullmatch(rf"{BACKUP}|{_ROLLED_BACK}[0-9]+", name) for name in names):
        raise StoreCorrupt(f"{file} names other tables", remedy="restore a backup of the folder")
    return _Record(renames=renames, kept=kept)


def _write(folder: Path, record: _Record) -> None:
    write_json(
        folder / _RECORD, {"version": _VERSION, "renames": record.renames, "kept": record.kept}
    )
