"""Rows of schema V1 of RFC-0011: convert them to V2, find the damaged ones, and compare two tables."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from memory_mesh.core.errors import StoreForeign
from memory_mesh.core.model import DamagedRow
from memory_mesh.core.ports import Progress
from memory_mesh.stores.lance.schema import is_time, memories_v1, memories_v2

ROWS = 1024  # read at once


def v2_schema(schema: pa.Schema) -> pa.Schema:
    """Return the V2 schema for a V1 table. Columns that are not in the document are kept, behind those of V2."""
    if missing := set(memories_v1().names) - set(schema.names):
        raise StoreForeign(f"the table has no column {min(missing)}", expected="the columns of RFC-0011, section 2.1")
    vector = schema.field("vector").type
    if not pa.types.is_fixed_size_list(vector):
        raise StoreForeign(f"the column vector has the type {vector}", expected="a list of fixed size, of 32-bit floats")
    document = memories_v2(vector.list_size)
    fields = [field.with_nullable(field.name not in schema.names or schema.field(field.name).nullable) for field in document]
    return pa.schema([*fields, *(field for field in schema if field.name not in document.names)])


def as_v2(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows of V1 with the columns of V2, which are null."""
    have = set(batch.schema.names)
    columns = []
    for field in schema:
        try:
            columns.append(batch[field.name].cast(field.type) if field.name in have else pa.nulls(batch.num_rows, field.type))
        except pa.ArrowException as error:
            what = f"the column {field.name} has the type {batch[field.name].type} and cannot be converted"
            raise StoreForeign(what, expected=str(field.type), remedy="nothing was changed") from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def damaged_rows(batches: Iterable[pa.RecordBatch], progress: Progress, total: int) -> Iterator[DamagedRow]:
    """Yield the rows of V2 that cannot be read as whole memories, with the reasons."""
    row, first = 0, dict[str | None, int]()
    for batch in batches:
        ids, contents, metadata = (_texts(batch[name]) for name in ("id", "content", "metadata"))
        created, updated = (batch[name].cast(pa.int64()).to_pylist() for name in ("created_at", "updated_at"))
        vectors = _vector_faults(batch["vector"])
        for place, id_ in enumerate(ids):
            row += 1
            reasons = (
                "no id" if not id_ else f"the same id as row {first[id_]}" if id_ in first else "",
                "" if contents[place] else "no content",
                "" if _is_object(metadata[place]) else "metadata is not a JSON object",
                vectors[place],
                "no created_at" if created[place] is None else _time_fault("created_at", created[place]),
                _time_fault("updated_at", updated[place]),
            )
            first.setdefault(id_, row)
            if any(reasons):
                yield DamagedRow(row=row, id=id_, reason=", ".join(filter(None, reasons)))
        progress("memories checked", row, total)


def difference(one: Iterable[pa.RecordBatch], other: Iterable[pa.RecordBatch], progress: Progress, total: int) -> int | None:
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
    bits = [column.flatten().view(pa.int32()) for column in (left, right)]  # NaN is not equal to itself, but its bits are
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
    finite = iter(np.isfinite(column.flatten().to_numpy(zero_copy_only=False)).reshape(-1, size).all(axis=1).tolist())
    return ["no vector" if not there else "" if next(finite) else "a vector that is not finite" for there in valid]
