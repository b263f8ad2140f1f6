"""Rows and queries of the SQLite store: how a row is written and read, and conditions as SQL.

The text of a query has only our own column names and placeholders; every value is a parameter.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import attrgetter
from typing import Any

from memory_mesh.core.errors import Conflict, IdTaken, StoreCorrupt, shown
from memory_mesh.core.model import (
    BASE,
    BY_NAME,
    CONTENTS,
    METADATA,
    MOVING,
    And,
    Anything,
    Compare,
    In,
    IsNull,
    Key,
    Kind,
    Like,
    Not,
    Or,
    Row,
    Scalar,
    Sealed,
    Status,
    Type,
    Used,
    Value,
    Vector,
    Where,
    all_of,
    as_read,
    batches,
    fields_of,
    is_list,
    like,
)
from memory_mesh.stores.base import comparable, decode_json, dumped_texts, encode_json
from memory_mesh.stores.sqlite.tables import BLOCKS, MEMORIES, WRITING, Table, of_kind, table_of

_FEW = 16  # ids that are parameters
# SQLite rejects a thousand terms in a row. Bracketed in groups of a hundred, ten thousand are
# accepted.
_MAX_TERMS = 100
# The LIKE of SQLite treats these three characters as equal.
_CONFUSED = frozenset("\ufffd\ufffe\uffff")
_MAX_MERGED = 8  # partitions; SQLite would merge 500, but each costs a cursor
_MAX_PARAMETERS = 30_000  # SQLite accepts 32,766


# --- rows ---


class Writing:
    """Writes one change within a transaction, and collects the moves that it causes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._marked = False
        self.moved: defaultdict[str, list[Key]] = defaultdict(list)

    def delete(self, key: Key) -> None:
        stored = self._stored(key)
        if stored:
            self._mark(key.kind)
            self._connection.execute(
                f"DELETE FROM {table_of(key.kind).name} WHERE {of_kind(key.kind)}id = ?", (key.id,)
            )
            self._move(key, stored[0])

    def put(self, rows: Sequence[Row]) -> None:
        """Write rows in their order, and consecutive new rows of a kind with one statement."""
        for kind, same in groupby(rows, lambda row: None if row.replaces else row.kind):
            if kind is None:
                for row in same:
                    self._replace(row)
            else:
                self._insert(kind, [*same])

    def _replace(self, row: Row) -> None:
        stored, layout = self._stored(row.key) if row.kind in MOVING else None, layout_of(row.kind)
        self._mark(row.kind)
        if not self._connection.execute(
            layout.update, (*_encoded(row, layout), row.id, row.replaces)
        ).rowcount:
            raise Conflict(f"{row.kind} {row.id} is not at revision {row.replaces}")
        if stored:
            self._move(row.key, row.partition, stored[0])

    def _insert(self, kind: Kind, rows: Sequence[Row]) -> None:
        layout, last = layout_of(kind), rows[0]

        def values() -> Iterator[list[Any]]:
            nonlocal last
            for last in rows:
                yield _encoded(last, layout)

        try:
            self._connection.executemany(layout.insert, values())
        except sqlite3.IntegrityError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
                raise
            raise IdTaken(f"{kind} {last.id} already exists") from error
        for row in rows if kind in MOVING else ():
            self.moved[row.partition].append(row.key)

    def _mark(self, kind: Kind) -> None:
        """Keep the triggers from logging a change of ours as one of another program."""
        if kind is Kind.MEMORY and not self._marked:
            self._marked = True
            self._connection.execute("INSERT OR REPLACE INTO mesh_meta VALUES (?, '')", (WRITING,))

    def finish(self) -> None:
        """Remove the mark before the transaction ends."""
        if self._marked:
            self._connection.execute("DELETE FROM mesh_meta WHERE key = ?", (WRITING,))

    def _stored(self, key: Key) -> tuple[str, int] | None:
        """Return the partition and revision of the stored row."""
        stored: tuple[str, int] | None = self._connection.execute(
            layout_of(key.kind).stored, (key.id,)
        ).fetchone()
        return stored

    def _move(self, key: Key, *partitions: str) -> None:
        for name in {*partitions} if key.kind in MOVING else ():
            self.moved[name].append(key)


_encode_extra = json.JSONEncoder(ensure_ascii=False).encode

# How a value is stored, by type; other types need no conversion.
_WRITERS: Mapping[Type, Callable[[Any], str | int | float]] = {
    Type.TEXTS: lambda texts: dumped_texts(texts) if texts else "[]",  # most lists are empty
    Type.JSON: encode_json,
    Type.REAL: float,
    Type.BOOL: int,
}


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows of a kind are written: which parts of a row go into columns, which into `extra`,
    and the statements."""

    table: Table
    base: Callable[[Row], tuple[Any, ...]]  # returns the attributes that are columns
    own: tuple[str, ...]
    # Of the values at these places.
    writers: tuple[tuple[int, Callable[[Any], str | int | float]], ...]
    extra: tuple[str, ...]
    insert: str
    update: str
    stored: str


@cache
def layout_of(kind: Kind) -> Layout:
    """Return the layout of a kind. It is computed once: a write of forty columns would spend its
    time on it."""
    table, fields = table_of(kind), fields_of(kind)
    base = tuple(name for name in BASE if name in table.columns)
    own = [column for column in fields if column.name in table.columns]
    writers = (
        (place, _WRITERS.get(column.type)) for place, column in enumerate(own, start=len(base))
    )
    columns = [table.physical(name) for name in (*base, *(column.name for column in own))]
    columns += ["extra", table.vector, "model", "tokens"] if table is not BLOCKS else []
    columns += ["collection"] if table is MEMORIES else []
    names, marks, same = (
        ", ".join(columns),
        ", ".join("?" * len(columns)),
        f"WHERE {of_kind(kind)}id = ?",
    )
    return Layout(
        table, attrgetter(*base), tuple(column.name for column in own),
        tuple((place, write) for place, write in writers if write),
        tuple(column.name for column in fields if column.name not in table.columns),
        insert=f"INSERT INTO {table.name} ({names}) VALUES ({marks})",
        update=f"UPDATE {table.name} SET ({names}) = ({marks}) {same} AND revision = ?",
        stored=f"SELECT partition, revision FROM {table.name} {same}",
    )  # fmt: skip


def _encoded(row: Row, layout: Layout) -> list[Any]:
    """Return the values of a row in the order of its layout."""
    table, fields = layout.table, row.fields
    values = [*layout.base(row), *map(fields.get, layout.own)]
    for place, write in layout.writers:
        if values[place] is not None:
            values[place] = write(values[place])
    if table is not BLOCKS:
        extra = {name: fields[name] for name in layout.extra if fields.get(name) is not None}
        values.append(_encode_extra(extra) if extra else None)
        vector = row.vector
        values += (vector.data, vector.model, vector.token_column) if vector else (None,) * 3
    if table is MEMORIES:
        values.append(fields.get("project") or "memory-lane")
    return values


# How a stored value is read back, by type; other types need no conversion.
_READERS: Mapping[Type, Callable[[Any], Value]] = {
    Type.TEXTS: lambda text: [] if text == "[]" else decode_json(text),  # most lists are empty
    Type.JSON: decode_json,
    Type.BOOL: bool,
}


# What the latest block of a memory sealed, and its usage. Read in the same statement, so that all
# are of the same state.
_SEALED = (
    "(SELECT memory_revision || ' ' || content_hash FROM yamo_blocks WHERE ref = {table}.id AND "
    "content_hash IS NOT NULL AND typeof(memory_revision) = 'integer' ORDER BY memory_revision "
    "DESC, content_hash DESC LIMIT 1)"
)
_USED = "(SELECT extra FROM records WHERE kind = 'usage' AND id = {table}.id)"


@dataclass(frozen=True, slots=True)
class Reading:
    """How rows of a kind are read: the columns to select, the fields that the last of them
    contain, and how to convert those."""

    columns: str
    own_columns: tuple[str, ...]  # the same without reading other tables
    fields: tuple[str, ...]
    converted: tuple[tuple[int, Callable[[Any], Value]], ...]  # at these places of `fields`


@cache
def reading_of(kind: Kind) -> Reading:
    """Return how a kind is read. It is computed once, like `layout_of`."""
    table = table_of(kind)
    own = [column for column in fields_of(kind) if column.name in table.columns]
    base = [
        table.physical(name) for name in ("id", "partition", "created_at", "revision", "number")
    ]
    further = ["NULL"] * 4 if table is BLOCKS else [table.vector, "model", "tokens", "extra"]
    derived = (
        [_SEALED.format(table=table.name), _USED.format(table=table.name)]
        if kind in CONTENTS
        else ["NULL"] * 2
    )
    names = [table.physical(column.name) for column in own]
    return Reading(
        ", ".join([*base, *further, *derived, *names]),
        (*base, *further, "NULL", "NULL", *names),
        tuple(column.name for column in own),
        tuple(
            (place, _READERS[column.type])
            for place, column in enumerate(own)
            if column.type in _READERS
        ),
    )


def rows_of(kind: Kind, cursor: Iterable[Sequence[Any]]) -> list[Row]:
    """Return the rows of a query that selects the columns of `reading_of`. One that none of ours
    wrote raises `StoreCorrupt`."""
    reading, rows = reading_of(kind), list[Row]()
    for (
        id_,
        partition,
        created_at,
        revision,
        number,
        data,
        model,
        tokens,
        extra,
        sealed,
        used,
        *values,
    ) in cursor:
        if partition is None:  # Memory Lane has written it just now
            continue
        try:
            more = decode_json(extra) if extra else {}
            for place, convert in reading.converted:
                if (value := values[place]) is not None:
                    values[place] = convert(value)
            fields = {
                name: value
                for name, value in zip(reading.fields, values, strict=True)
                if value is not None
            }
            row = Row.from_fields(
                kind=kind, id=id_, partition=partition, created_at=created_at, revision=revision,
                number=number, fields=more | fields if more else fields,
                vector=Vector.stored(model, data, tokens)
                if data is not None and model is not None
                else None,
                replaces=0, sealed=_sealed(sealed) if sealed else None,
                used=Used.of(decode_json(used)) if used else None,
            )  # fmt: skip
        except (TypeError, RecursionError) as error:  # edited by hand
            raise StoreCorrupt(
                f"the {kind} {shown(id_)} cannot be read: unexpected columns",
                remedy="restore a backup",
            ) from error
        rows.append(as_read(row))
    return rows


def _sealed(text: str) -> Sealed:
    revision, _, hash_ = text.partition(" ")
    return Sealed(int(revision), hash_)


# --- conditions and queries ---


@dataclass(frozen=True, slots=True)
class Sql:
    """A fragment of SQL with its parameters."""

    text: str
    params: tuple[Scalar, ...] = ()
    depth: int = 0  # of nested brackets


class Compiler:
    """Compiles conditions to the dialect of SQLite; `column` returns the SQL expression of a
    field."""

    def __init__(self, column: Callable[[str], str]) -> None:
        self._column = column

    def where(self, condition: Where) -> Sql:
        match condition:
            case Anything():
                return Sql("1")
            case Compare(column, "<>", value) if is_list(column):
                return self.where(Not(Compare(column, "=", value)))
            case Compare(column, op, value):
                return self._each(column, f"{{}} {op} ?", (value,))
            case In(column, values):
                return self._in(column, values)
            case Like(column, pattern):
                exactly = "exactly_like({}, ?)" if _CONFUSED & {*pattern} else "{} LIKE ?"
                return self._each(column, exactly, (pattern,))
            case IsNull(column) if column.startswith(METADATA):
                present = (
                    f"SELECT 1 FROM json_each({self._column('metadata')}) WHERE key = ? AND "
                    "type <> 'null'"
                )
                return Sql(f"NOT EXISTS ({present})", (column.removeprefix(METADATA),))
            case IsNull(column):
                return Sql(f"{self._column(column)} IS NULL")
            case And(parts) | Or(parts):
                return self._joined(type(condition), parts)
            case Not(part):
                return self._not(part)

    def _not(self, part: Where) -> Sql:
        """Compile a negation with NOT at the leaves only: the stack of the SQLite parser has 100
        entries."""
        match part:
            case And(parts) | Or(parts):
                other = Or if isinstance(part, And) else And
                return self.where(other(tuple(Not(each) for each in parts)))
            case Not(inner):
                return self.where(inner)
        compiled = self.where(part)
        return Sql(f"NOT ({compiled.text})", compiled.params, compiled.depth + 2)

    def _joined(self, kind: type[And | Or], parts: tuple[Where, ...]) -> Sql:
        if len(parts) > _MAX_TERMS:
            return self._joined(
                kind, tuple(kind(tuple(batch)) for batch in batches(parts, _MAX_TERMS))
            )
        word, empty = (" AND ", "1") if kind is And else (" OR ", "0")
        # The deepest part first, so that the parser stack does not also hold the other parts.
        compiled = sorted(
            (self.where(part) for part in parts), key=lambda part: part.depth, reverse=True
        )
        text = word.join(f"({part.text})" for part in compiled) or empty
        depth = 1 + max((part.depth for part in compiled), default=0)
        return Sql(text, tuple(param for part in compiled for param in part.params), depth)

    def _in(self, column: str, values: tuple[Scalar, ...]) -> Sql:
        by_type: dict[str, list[Scalar]] = {}
        for value in values:
            by_type.setdefault(_json_types(value), []).append(value)
        if len(by_type) != 1:
            return self.where(Or(tuple(In(column, tuple(same)) for same in by_type.values())))
        marks = ", ".join("?" * len(values))
        return self._each(column, f"{{}} IN ({marks})", values)

    def _each(self, column: str, test: str, values: tuple[Scalar, ...]) -> Sql:
        """Compile one test of a column, of each item of a list, or of a metadata key. The values
        are of one type."""
        if column.startswith(METADATA):
            inside = test.format("value")
            text = (
                f"(SELECT {inside} FROM json_each({self._column('metadata')}) "
                f"WHERE key = ? AND type IN ({_json_types(values[0])}))"
            )
            return Sql(text, (*values, column.removeprefix(METADATA)))
        if not comparable(column, values[0]):
            return Sql("NULL")
        expression = self._column(column)
        if is_list(column):
            # Most lists are empty (`[]`). The first term selects the index that leaves them out;
            # without one, checking the length is still much cheaper than parsing them.
            text = (
                f"length({expression}) > 2 AND CASE WHEN length({expression}) < 3 THEN 0 WHEN "
                f"{expression} IS NOT NULL THEN EXISTS (SELECT 1 FROM json_each({expression}) "
                f"WHERE {test.format('value')}) END"
            )
            return Sql(text, values)
        return Sql(test.format(expression), values)


def exactly_like(text: str | None, pattern: str) -> bool | None:
    """Evaluate LIKE for the patterns that SQLite gets wrong. Stores register it with their
    connections."""
    return None if text is None else like(text, pattern)


def _json_types(value: Scalar) -> str:
    """Return the JSON types, as SQLite names them, that compare with a literal."""
    if isinstance(value, bool):
        return "'true', 'false'"
    return "'text'" if isinstance(value, str) else "'integer', 'real'"


def condition_on(kind: Kind, where: Where) -> Sql:
    """Compile a condition on the rows of a kind."""
    compiled = _compiler(kind).where(where)
    return Sql(f"{of_kind(kind)}({compiled.text})", compiled.params)


@cache
def _compiler(kind: Kind) -> Compiler:
    """Return the compiler of conditions on a kind."""
    return Compiler({**_columns(kind), "kind": f"'{kind}'"}.__getitem__)


@cache
def _columns(kind: Kind) -> dict[str, str]:
    """Return the SQL expression of each field. One that the kind lacks is NULL in every row."""
    table, known = table_of(kind), {*BASE, *(column.name for column in fields_of(kind))}
    return {name: table.expression(name) if name in known else "NULL" for name in BY_NAME}


def page(kind: Kind, where: Where, *, limit: int | None, after: Row | None) -> Sql:
    """Build the query of `find`: rows of a kind, newest first."""
    table = table_of(kind)
    created = table.physical("created_at")
    selects = _by_age(where, after) if kind is Kind.MEMORY and limit is not None else []
    if not selects or sum(len(select.params) for select in selects) > _MAX_PARAMETERS:
        selects = [_select(kind, table.name, where, after)]
    text = " UNION ALL ".join(select.text for select in selects)
    order = f"ORDER BY {created} DESC, partition DESC, number DESC, id DESC"
    limited = "" if limit is None else f" LIMIT {int(limit)}"
    params = tuple(param for select in selects for param in select.params)
    if kind is Kind.BLOCK and limited:
        # The sort reads all blocks: with their ids alone it takes a third of the time.
        ids = f"SELECT id FROM ({text}) {order}{limited}"
        return Sql(
            f"SELECT {reading_of(kind).columns} FROM {table.name} WHERE id IN ({ids}) {order}",
            params,
        )
    if kind is not Kind.MEMORY:
        return Sql(f"{text} {order}{limited}", params)
    # Around the limit: what blocks and usage add is read only for the rows that are returned.
    inner = f"{text} {order}{limited}" if limited else text
    return Sql(f"SELECT {reading_of(kind).columns} FROM ({inner}) AS memories {order}", params)


def tally_of(kind: Kind, columns: Sequence[str], where: Where, length: int | None) -> Sql:
    """Build the query of `tally`."""
    condition = condition_on(kind, where)
    value = f"coalesce({', '.join(_columns(kind)[name] for name in columns)}, NULL)"
    value = value if length is None else f"substr({value}, 1, {int(length)})"
    return Sql(
        f"SELECT {value}, count(*) FROM {table_of(kind).name} WHERE {condition.text} GROUP BY 1",
        condition.params,
    )


def with_ids(kind: Kind, ids: Sequence[str]) -> Sql:
    """Build the query of `get` for at least one id. It has two texts for any number of ids, so
    that each is compiled once."""
    few = len(ids) <= _FEW
    return Sql(
        _with_ids(kind, few=few),
        (*ids, *[ids[0]] * (_FEW - len(ids))) if few else (json.dumps(ids),),
    )


@cache
def _with_ids(kind: Kind, *, few: bool) -> str:
    # Parameters are faster than the ids as JSON.
    given = ", ".join("?" * _FEW) if few else "SELECT value FROM json_each(?)"
    return (
        f"SELECT {reading_of(kind).columns} FROM {table_of(kind).name} WHERE {of_kind(kind)}id "
        f"IN ({given})"
    )


def near(kind: Kind, vector: Vector, where: Where) -> Sql:
    """Build the query for ids and vectors of one model and dimension; a passage has the id of
    its memory."""
    condition, column = condition_on(kind, where), table_of(kind).vector
    owners = f"FROM {table_of(kind).name} WHERE ({condition.text})"
    same = f"model = ? AND length({column}) = ?"
    text, params = (
        f"SELECT id, {column} {owners} AND {same}",
        (*condition.params, vector.model, len(vector.data)),
    )
    if kind is Kind.MEMORY:
        text += (
            f" UNION ALL SELECT ref, embedding FROM records WHERE kind = 'passage' AND {same} AND "
            f"ref IN (SELECT id {owners})"
        )
        params = (*params, vector.model, len(vector.data), *condition.params)
    return Sql(text, params)


def documents_of(visible: Where) -> Sql:
    """Build the query for the ids and keywords of the memories that a condition selects."""
    condition = condition_on(Kind.MEMORY, visible)
    return Sql(
        f"SELECT id, keywords FROM memories WHERE ({condition.text}) AND keywords IS NOT NULL",
        condition.params,
    )


def _select(kind: Kind, source: str, where: Where, after: Row | None) -> Sql:
    created = table_of(kind).physical("created_at")
    condition = condition_on(kind, where)
    columns = "*" if kind is Kind.MEMORY else reading_of(kind).columns
    text, params = f"SELECT {columns} FROM {source} WHERE {condition.text}", condition.params
    if after is None:
        return Sql(text, params)
    return Sql(
        f"{text} AND ({created}, partition, number, id) < (?, ?, ?, ?)", (*params, *after.age_key)
    )


def _by_age(where: Where, after: Row | None) -> list[Sql]:
    """Build one query for each partition in the condition; SQLite merges their results and stops at
    the limit.

    A single query would read and sort all active memories of the user. Returns an empty list when
    another index is faster.
    """
    parts = where.parts if isinstance(where, And) else (where,)
    among = next(
        (part for part in parts if isinstance(part, In) and part.column == "partition"), None
    )
    if among is None or len(among.values) > _MAX_MERGED or not _are_many(parts):
        return []
    others = [part for part in parts if part is not among]
    return [_of_partition(str(name), others, after) for name in dict.fromkeys(among.values)]


def _of_partition(name: str, others: Sequence[Where], after: Row | None) -> Sql:
    """Build the query for the memories of one partition in the order of the index on their age."""
    select = _select(
        Kind.MEMORY,
        "memories INDEXED BY memories_by_age",
        all_of(Compare("partition", "=", name), *others),
        None,
    )
    if after is None:
        return select
    if name == after.partition:
        params = (*select.params, after.created_at, after.number, after.id)
        return Sql(f"{select.text} AND (created_at, number, id) < (?, ?, ?)", params)
    # Of equal times, those of a partition with a lower name are older.
    older = "<=" if name < after.partition else "<"
    return Sql(f"{select.text} AND created_at {older} ?", (*select.params, after.created_at))


def _are_many(parts: Sequence[Where]) -> bool:
    """Estimate whether many rows match: most memories are active, and lists of ids are short."""
    named = [part for part in parts if isinstance(part, Compare | In)]
    rare = any(
        isinstance(part, In) and part.column == "status" and Status.ACTIVE not in part.values
        for part in named
    )
    return not rare and not any(part.column == "id" for part in named)
