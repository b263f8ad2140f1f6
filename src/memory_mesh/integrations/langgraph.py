"""A store for LangGraph: `graph.compile(store=MemoryMeshStore(mesh))`.

An item is a memory with a key. Its text, which searches compare, is made of the texts of the value;
the value itself is in the metadata, and so are its texts, by which the store itself selects.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from time import time
from typing import Any, TypeVar

from memory_mesh.api.aio import to_thread
from memory_mesh.api.handle import erase_expired, for_program_data
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.errors import Conflict, InvalidFilter, InvalidInput, NotFound, StoreReadOnly
from memory_mesh.core.model import MemoryRecord, SearchResult
from memory_mesh.core.text import PASSAGE_BREAK
from memory_mesh.integrations import extra

with extra("langgraph"):
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        InvalidNamespaceError,
        ListNamespacesOp,
        MatchCondition,
        PutOp,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        tokenize_path,
        validate_op_namespace,
    )

_MAX_FILTERED = 1_000  # characters of a text in a value that the store compares
_CANDIDATES = 100  # hits of the mesh, of which the nearest by cosine are returned
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le
}  # fmt: skip
_NAMESPACE, _PART = "langgraph_namespace", "value."
_Record = TypeVar("_Record", bound=MemoryRecord)


class MemoryMeshStore(BaseStore):
    """LangGraph's long-term memory in a mesh, visible to every agent of its user.

    `fields` are the paths of the value that searches compare, each text with a vector of its own;
    the best one counts. By default all texts of the value are compared as one. An item with a `ttl`
    expires so many minutes after it was written or last read; `ttl` of the store sets the default
    and whether reading counts. Personal data is stored unchanged, secrets are masked. Reads of a
    batch see what was stored before the batch. `clock` returns seconds since 1970.
    """

    supports_ttl = True

    def __init__(
        self,
        mesh: Mesh,
        *,
        fields: Sequence[str] = (),
        ttl: TTLConfig | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        self._mesh, self._fields, self._clock = for_program_data(mesh), fields, clock
        self.ttl_config = ttl
        self._swept = clock()

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Run operations and return their results in the same order. All items that are put are
        stored, or none."""
        given = list(ops)
        for op in given:
            validate_op_namespace(op)
        keys = {_key(op.namespace, op.key): None for op in given if isinstance(op, GetOp)}
        records = self._mesh.get_all(filter={"key": list(keys)}) if keys else []
        stored = {record.key: record for record in records}
        results = [self._read(op, stored) for op in given]
        self._write({_key(op.namespace, op.key): op for op in given if isinstance(op, PutOp)})
        every = (self.ttl_config or {}).get("sweep_interval_minutes")
        if every is not None and self._clock() - self._swept >= every * 60:
            self.sweep_ttl()
        return results

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """Run operations in a thread, as `batch` does."""
        return await to_thread(self.batch, ops)

    def sweep_ttl(self) -> int:
        """Erase the items that have expired, and return their number. No read returns them."""
        self._swept = self._clock()
        return erase_expired(self._mesh, _inside(()))

    def _read(self, op: Any, stored: Mapping[str | None, MemoryRecord]) -> Any:
        if isinstance(op, GetOp):
            record = stored.get(_key(op.namespace, op.key))
            return _item(self._refreshed(record) if record and op.refresh_ttl else record)
        if isinstance(op, SearchOp):
            hits = self._search(op)
            return [_item(self._refreshed(hit) if op.refresh_ttl else hit) for hit in hits]
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        if isinstance(op, PutOp):
            return None
        raise InvalidInput(
            f"unknown operation {type(op).__name__}",
            expected="GetOp, PutOp, SearchOp or ListNamespacesOp",
        )

    def _refreshed(self, record: _Record) -> _Record:
        """Extend the time to live of an item that is read, and return the item unchanged."""
        item: Any = record.metadata["item"]
        expires = item.get("ttl") and self._expiry(item["ttl"])
        # Each extension is a revision: small ones are not worth it.
        if expires and expires - _time(record.expires_at) > timedelta(minutes=item["ttl"] / 20):
            kept = {"updated_at": record.updated_at, **item}
            # Another process may have erased it, or the store may be read-only.
            with suppress(NotFound, Conflict, StoreReadOnly):
                self._mesh.update(
                    record.id, metadata={"expires_at": expires.isoformat(), "item": kept}
                )
        return record

    def _expiry(self, minutes: float) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC) + timedelta(minutes=minutes)

    def _write(self, puts: Mapping[str, PutOp]) -> None:
        items = [self._memory(key, op) for key, op in puts.items() if op.value is not None]
        records = self._mesh.add_many(items)
        masked = [
            record for item, record in zip(items, records, strict=True) if record.key != item["key"]
        ]
        # A search could not find the namespace again, and the key of another item could be equal.
        if masked:
            for record in records:
                if record.revision == 1:
                    self._mesh.delete(record.id)
            remedy = 'use an id of your own, or a mesh with redaction="off"'
            raise InvalidInput(
                f"{masked[0].key} has personal data or a secret, which is masked", remedy=remedy
            )
        for key, op in puts.items():
            if op.value is None:
                self._mesh.delete(key=key)

    def _memory(self, key: str, op: PutOp) -> dict[str, object]:
        value: dict[str, Any] = dict(op.value)
        paths = op.index or self._fields
        texts = (
            [text for path in paths for text in get_text_at_path(value, tokenize_path(path))]
            if paths
            else ["\n".join(_texts(value))]
        )
        plain = {_PART + name: part for name, part in value.items() if _is_plain(name, part)}
        item = {"key": op.key, "value": value} | ({} if op.ttl is None else {"ttl": op.ttl})
        metadata = {
            _NAMESPACE: _joined(op.namespace), "item": item, "indexed": op.index is not False
        }  # fmt: skip
        if op.ttl is not None:
            metadata["expires_at"] = self._expiry(op.ttl).isoformat()
        return {
            "content": PASSAGE_BREAK.join(text for text in texts if text.strip()) or op.key,
            "metadata": {**plain, **metadata},
            "key": key,
        }

    def _search(self, op: SearchOp) -> list[MemoryRecord]:
        given = op.filter or {}
        plain = {name: value for name, value in given.items() if _is_plain(name, value)}
        where: dict[str, object] = {
            "$and": [
                _inside(op.namespace_prefix),
                *({_PART + name: value} for name, value in plain.items()),
            ]
        }
        if len(plain) < len(given):
            matching = [
                one for one in self._mesh.get_all(filter=where) if _fits(_value(one), given)
            ]
            if not matching:
                return []
            where = {"key": [one.key for one in matching]}
        size, found = op.offset + op.limit, list[MemoryRecord]()
        if op.query and op.query.strip():
            indexed = {"$and": [where, {"indexed": True}]}
            # The order of a mesh is another one: with more candidates the nearest are among them.
            hits = self._mesh.search(
                op.query, limit=max(_CANDIDATES, 4 * size), filter=indexed, min_score=0.0
            )
            found += sorted(hits, key=_score, reverse=True)[:size]
        if len(found) < size:
            # As in the stores of LangGraph, items that were not scored follow those that were.
            scored = {record.id for record in found}
            rest = self._mesh.get_all(size, filter=where)
            found += [record for record in rest if record.id not in scored]
        return found[op.offset : size]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        records = self._mesh.get_all(filter=_inside(()))
        every = {_split(record) for record in records}
        kept = {
            one[: op.max_depth]
            for one in every
            if all(_matches(rule, one) for rule in op.match_conditions or ())
        }
        return sorted(kept)[op.offset : op.offset + op.limit]


def _key(namespace: tuple[str, ...], key: str) -> str:
    # A key may contain dots, a label may not and is never empty: two dots end the namespace.
    return f"langgraph:{_joined(namespace)}.{key}"


def _joined(namespace: tuple[str, ...]) -> str:
    """Return a namespace as a text in which each label ends with a dot."""
    for label in namespace:
        if not isinstance(label, str) or not label or "." in label:
            raise InvalidNamespaceError(
                f"the namespace has the label {label!r}; expected a text without a dot"
            )
    return "".join(f"{label}." for label in namespace)


def _split(record: MemoryRecord) -> tuple[str, ...]:
    return tuple(str(record.metadata[_NAMESPACE]).split(".")[:-1])


def _inside(prefix: tuple[str, ...]) -> dict[str, object]:
    """Return the filter of the items in a namespace and below. Texts are compared by code point,
    and '/' follows '.'."""
    start = _joined(prefix)
    return {_NAMESPACE: {"$gte": start, **({"$lt": f"{start[:-1]}/"} if start else {})}}


def _texts(value: object) -> Iterator[str]:
    parts = (
        value.values()
        if isinstance(value, Mapping)
        else value
        if isinstance(value, list | tuple)
        else ()
    )
    if isinstance(value, str):
        yield value
    for part in parts:
        yield from _texts(part)


def _value(record: MemoryRecord) -> Mapping[str, Any]:
    item: Any = record.metadata["item"]
    return item["value"]  # type: ignore[no-any-return]


def _is_plain(name: str, value: object) -> bool:
    """Return whether a text is a part of the metadata, so that the store itself can compare it."""
    return (
        name.isidentifier()
        and isinstance(value, str)
        and 0 < len(value) <= _MAX_FILTERED
        and value.isprintable()
    )


def _fits(value: object, wanted: object) -> bool:
    """Return whether a value meets a condition as in LangGraph's own stores: operators such as
    `$gt`, a mapping of which all parts are met, a list item by item, or what it equals."""
    if isinstance(wanted, Mapping) and any(str(name).startswith("$") for name in wanted):
        return all(_holds(value, name, operand) for name, operand in wanted.items())
    if isinstance(wanted, Mapping):
        return isinstance(value, Mapping) and all(
            _fits(_part(value, str(name)), part) for name, part in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(value) == len(wanted)
            and all(map(_fits, value, wanted))
        )
    return value == wanted


def _part(value: Mapping[str, Any], name: str) -> Any:
    """Return the part of a value that a name or a path such as `user.role` names, or None."""
    first, _, rest = name.partition(".")
    if name in value or not (rest and isinstance(value.get(first), Mapping)):
        return value.get(name)
    return _part(value[first], rest)


def _holds(value: Any, name: str, operand: Any) -> bool:
    if name in ("$eq", "$ne"):
        return (value == operand) is (name == "$eq")
    if name not in _ORDER:
        raise InvalidFilter(f"unknown operator {name}", expected=f"$eq, $ne, {', '.join(_ORDER)}")
    try:
        return _ORDER[name](float(value), float(operand))
    except (TypeError, ValueError):  # texts that are no numbers; what is missing is in no order
        texts = isinstance(value, str) and isinstance(operand, str)
        return texts and _ORDER[name](value, operand)


def _matches(rule: MatchCondition, namespace: tuple[str, ...]) -> bool:
    size = len(rule.path)
    part = namespace[:size] if rule.match_type == "prefix" else namespace[-size:]
    return len(part) == size and all(
        wanted in ("*", label) for wanted, label in zip(rule.path, part, strict=True)
    )


def _score(hit: SearchResult) -> float:
    """Return the cosine of the best text; without vectors, the score of the words."""
    return hit.score if hit.similarity is None else 2 * hit.similarity - 1


def _time(text: object) -> datetime:
    return datetime.fromisoformat(str(text))


def _item(record: MemoryRecord | None) -> Any:
    """Return the item of a memory; it has a score if a search found it."""
    if record is None:
        return None
    stored: Any = record.metadata["item"]
    return SearchItem(
        namespace=_split(record),
        key=stored["key"],
        value=stored["value"],
        created_at=_time(record.created_at),
        # The time of the last `put`: an extended time to live is not a change of the item.
        updated_at=_time(stored.get("updated_at", record.updated_at)),
        score=_score(record) if isinstance(record, SearchResult) else None,
    )
