"""A store for LangGraph: `graph.compile(store=MemoryMeshStore(mesh))`.

An item is a memory with a key. Its text, which searches compare, is made of the texts of the value;
the value itself is in the metadata, and so are its parts, by which filters select.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from memory_mesh.api.aio import to_thread
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import MemoryRecord, SearchResult
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
        get_text_at_path,
        tokenize_path,
    )

_MAX_FILTERED = 1_000  # characters of a text in a value that a filter can compare
_NAMESPACE, _PART = "langgraph_namespace", "value."


class MemoryMeshStore(BaseStore):
    """LangGraph's long-term memory in a mesh, visible to every agent of its user.

    `fields` are the paths of the value that searches compare; by default all its texts. An item
    with a `ttl` expires so many minutes after it was written; reading it does not extend that.
    Reads of a batch see what was stored before the batch.
    """

    supports_ttl = True

    def __init__(self, mesh: Mesh, *, fields: Sequence[str] = ()) -> None:
        self._mesh, self._fields = mesh, fields

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Run operations and return their results in the same order. All items that are put are
        stored, or none."""
        given = list(ops)
        keys = {_key(op.namespace, op.key): None for op in given if isinstance(op, GetOp)}
        found = (
            {one.key: one for one in self._mesh.get_all(filter={"key": list(keys)})} if keys else {}
        )
        results = [
            _item(found.get(_key(op.namespace, op.key)))
            if isinstance(op, GetOp)
            else self._read(op)
            for op in given
        ]
        self._write({_key(op.namespace, op.key): op for op in given if isinstance(op, PutOp)})
        return results

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """Run operations in a thread, as `batch` does."""
        return await to_thread(self.batch, ops)

    def _read(self, op: Any) -> list[Any] | None:
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        if isinstance(op, PutOp):
            return None
        raise InvalidInput(
            f"unknown operation {type(op).__name__}",
            expected="GetOp, PutOp, SearchOp or ListNamespacesOp",
        )

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
        value = dict(op.value)
        paths = op.index or self._fields
        texts = (
            [text for path in paths for text in get_text_at_path(value, tokenize_path(path))]
            if paths
            else [*_texts(value)]
        )
        metadata = {
            _NAMESPACE: _joined(op.namespace),
            "item": {"key": op.key, "value": value},
            "indexed": op.index is not False,
        }
        if op.ttl is not None:
            metadata["expires_at"] = (datetime.now(UTC) + timedelta(minutes=op.ttl)).isoformat()
        return {
            "content": "\n".join(texts) or op.key,
            "metadata": {**_parts(value), **metadata},
            "key": key,
        }

    def _search(self, op: SearchOp) -> list[SearchItem]:
        where = {
            "$and": [
                _inside(op.namespace_prefix),
                *(_condition(_PART + key, value) for key, value in (op.filter or {}).items()),
            ]
        }
        size, found = op.offset + op.limit, list[SearchItem]()
        if op.query and op.query.strip():
            hits = self._mesh.search(
                op.query, limit=size, filter={"$and": [where, {"indexed": True}]}, min_score=0.0
            )
            found = [_item(hit) for hit in hits]
        known = {(item.namespace, item.key) for item in found}
        # As in the stores of LangGraph, items that were not scored follow those that were.
        rest = (
            [_item(record) for record in self._mesh.get_all(size, filter=where)]
            if len(found) < size
            else []
        )
        found += [item for item in rest if (item.namespace, item.key) not in known]
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


def _parts(value: object, name: str = _PART) -> dict[str, object]:
    """Return the parts of a value by their path: texts, numbers and truth values, and lists as
    JSON."""
    if isinstance(value, Mapping):
        return {
            path: part
            for key, inner in value.items()
            for path, part in _parts(inner, f"{name}{key}.").items()
        }
    plain = json.dumps(value, ensure_ascii=False) if isinstance(value, list | tuple) else value
    return (
        {}
        if isinstance(plain, str) and len(plain) > _MAX_FILTERED
        else {name.removesuffix("."): plain}
    )


def _condition(name: str, value: object) -> dict[str, object]:
    """Return the filter of a condition on a part of the value: an operator such as `$gt`, a
    nested object, or what it equals."""
    if isinstance(value, Mapping) and not any(str(key).startswith("$") for key in value):
        return {"$and": [_condition(f"{name}.{key}", inner) for key, inner in value.items()]}
    if isinstance(value, Mapping):
        return {
            "$and": [_operation(name, operator, operand) for operator, operand in value.items()]
        }
    return {
        name: json.dumps(value, ensure_ascii=False) if isinstance(value, list | tuple) else value
    }


def _operation(name: str, operator: str, operand: object) -> dict[str, object]:
    # Also what does not have that part.
    differs: dict[str, object] = {"$or": [{name: {"$ne": operand}}, {name: None}]}
    return differs if operator == "$ne" and operand is not None else {name: {operator: operand}}


def _matches(rule: MatchCondition, namespace: tuple[str, ...]) -> bool:
    size = len(rule.path)
    part = namespace[:size] if rule.match_type == "prefix" else namespace[-size:]
    return len(part) == size and all(
        wanted in ("*", label) for wanted, label in zip(rule.path, part, strict=True)
    )


def _item(record: MemoryRecord | SearchResult | None) -> Any:
    """Return the item of a memory; it has a score if a search found it."""
    if record is None:
        return None
    stored: Any = record.metadata["item"]
    times = {
        name: datetime.fromisoformat(str(getattr(record, name)))
        for name in ("created_at", "updated_at")
    }
    score = record.score if isinstance(record, SearchResult) else None
    return SearchItem(
        namespace=_split(record), key=stored["key"], value=stored["value"], score=score, **times
    )
