"""What SQLite is asked: the rows of a kind under a condition, page by page, and the vectors that can be compared."""

from collections.abc import Sequence

from memory_mesh.core.model.columns import BASE, Kind, fields_of
from memory_mesh.core.model.records import Status
from memory_mesh.core.model.rows import Row, Vector
from memory_mesh.core.model.where import And, Compare, In, Where, all_of
from memory_mesh.stores.sql import Compiler, Sql
from memory_mesh.stores.sqlite.schema import table_of

_MOST_MERGED = 8  # partitions; SQLite would merge 500, but each costs a cursor
_MOST_PARAMETERS = 30_000  # of the 32,766 that SQLite takes


def condition_on(kind: Kind, where: Where) -> Sql:
    table = table_of(kind)
    held = {column.name for column in fields_of(kind)}
    of_kind = f"kind = '{kind.value}' AND " if table.name == "records" else ""

    def reach(column: str) -> str:
        if column == "kind":
            return f"'{kind.value}'"
        known = column in held or column in BASE
        return table.reach(column) if known else "NULL"  # a field that the kind lacks is missing from every row

    compiled = Compiler(reach).where(where)
    return Sql(f"{of_kind}({compiled.text})", compiled.params)


def page(kind: Kind, where: Where, *, limit: int | None, after: Row | None) -> Sql:
    """The rows of a kind, newest first."""
    table = table_of(kind)
    made = table.physical("created_at")
    selects = _by_age(where, after) if kind is Kind.MEMORY and limit is not None else []
    if not selects or sum(len(select.params) for select in selects) > _MOST_PARAMETERS:
        selects = [_select(kind, table.name, where, after)]
    text = " UNION ALL ".join(select.text for select in selects)
    order = f"ORDER BY {made} DESC, number DESC, id DESC"
    bound = "" if limit is None else f" LIMIT {int(limit)}"
    return Sql(f"{text} {order}{bound}", tuple(param for select in selects for param in select.params))


def near(kind: Kind, vector: Vector, where: Where) -> Sql:
    """Ids and vectors of one model and dimension; a passage's under the id of its owner."""
    condition = condition_on(kind, where)
    owners = f"FROM {table_of(kind).name} WHERE ({condition.text})"
    same = "model = ? AND length(embedding) = ?"
    text, params = f"SELECT id, embedding {owners} AND {same}", (*condition.params, vector.model, len(vector.data))
    if kind is Kind.MEMORY:
        text += f" UNION ALL SELECT ref, embedding FROM records WHERE kind = 'passage' AND {same} AND ref IN (SELECT id {owners})"
        params = (*params, vector.model, len(vector.data), *condition.params)
    return Sql(text, params)


def _select(kind: Kind, source: str, where: Where, after: Row | None) -> Sql:
    made = table_of(kind).physical("created_at")
    condition = condition_on(kind, where)
    text, params = f"SELECT * FROM {source} WHERE {condition.text}", condition.params
    if after is None:
        return Sql(text, params)
    return Sql(f"{text} AND ({made}, number, id) < (?, ?, ?)", (*params, *after.age_key))


def _by_age(where: Where, after: Row | None) -> list[Sql]:
    """One query for each partition that the condition names, such that SQLite merges them and stops at the limit.

    Left to itself it would read and sort all active memories of the user. Empty where another index finds the rows sooner.
    """
    parts = where.parts if isinstance(where, And) else (where,)
    among = next((part for part in parts if isinstance(part, In) and part.column == "partition"), None)
    if among is None or len(among.values) > _MOST_MERGED or not _are_many(parts):
        return []
    others = [part for part in parts if part is not among]
    source = "memories INDEXED BY memories_by_age"
    each = [all_of(Compare("partition", "=", name), *others) for name in dict.fromkeys(among.values)]
    return [_select(Kind.MEMORY, source, one, after) for one in each]


def _are_many(parts: Sequence[Where]) -> bool:
    """Whether the conditions let many rows through, as far as one can tell: most memories are active, and ids are few."""
    named = [part for part in parts if isinstance(part, Compare | In)]
    rare = any(isinstance(part, In) and part.column == "status" and Status.ACTIVE not in part.values for part in named)
    return not rare and not any(part.column == "id" for part in named)
