"""Folders of neolata-mem as rows of ours.

They hold memories with their links, the archive, pending conflicts, episodes and clusters. What we
have no column for is kept in `metadata.neolata` of the memory. Its vectors are of an unknown model,
so they are kept and not compared.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from memory_mesh.core.claims.claim import read_claim
from memory_mesh.core.claims.rules import base_trust
from memory_mesh.core.errors import InvalidInput, StoreCorrupt
from memory_mesh.core.intake import Draft, fingerprint
from memory_mesh.core.model import (
    ClaimConflict,
    Kind,
    Link,
    MemoryType,
    Reader,
    Row,
    Status,
    Usage,
    Value,
    Vector,
    checked,
    iso,
    partition_for,
)
from memory_mesh.core.search import tokens
from memory_mesh.stores.base import (
    count_of,
    number_of,
    parse_foreign,
    text_of,
    texts_of,
    time_of,
)
from memory_mesh.stores.files import read_if_any

GRAPH, _ARCHIVE, _CONFLICTS = "graph.json", "archived.json", "pending-conflicts.json"
_GROUPS = {"episodes.json": "episodes", "clusters.json": "clusters"}
FILES = (GRAPH, _ARCHIVE, *_GROUPS, _CONFLICTS)
ASIDE = "neolata"  # the folder of the original files, once their contents are in ours

_MEMBERS = ("memoryIds", "memory_ids", "memberIds", "members")
_CLAIM = {"sessionId": "session_id", "validFrom": "valid_from", "validUntil": "valid_until"}
# Read into columns of ours; all other keys go to the metadata.
_READ = {
    "id", "agent", "agent_id", "memory", "content", "category", "tags", "embedding", "importance",
    "links", "status", "reinforcements", "disputes", "superseded_by", "supersedes", "created_at",
    "updated_at", "provenance",
}  # fmt: skip


def read(root: Path) -> tuple[list[Row], str]:
    """Return the rows that a folder contains, and a digest of its files."""
    digest, items = sha256(), dict[str, list[dict[str, Any]]]()
    for name in FILES:
        data = read_if_any(root / name)
        data = b"[]" if data is None else data
        digest.update(b"%d %b" % (len(data), data))
        items[name] = _objects(root / name, data)
    rows = [*_memories(items)]
    memories = {row.id: row for row in rows if row.kind is Kind.MEMORY}
    rows += _links(items[GRAPH], memories)
    rows += _conflicts(items[_CONFLICTS], memories)
    return rows, digest.hexdigest()[:16]


def _objects(file: Path, data: bytes) -> list[dict[str, Any]]:
    try:
        value = parse_foreign(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as error:
        raise StoreCorrupt(
            f"{file} is damaged: {error}"[:300], remedy="mend the file; nothing was changed"
        ) from error
    items = value if isinstance(value, list) else [None]
    objects = [item for item in items if isinstance(item, dict)]
    if len(objects) < len(items):
        raise StoreCorrupt(
            f"{file} is not an array of objects", remedy="mend the file; nothing was changed"
        )
    return objects


def _memories(items: Mapping[str, list[dict[str, Any]]]) -> Iterator[Row]:
    """Yield the memories and the rows of their usage. The second memory with an id gets another
    one."""
    groups: dict[str, dict[str, list[Value]]] = {}
    for file, name in _GROUPS.items():
        for group in items[file]:
            about = {key: value for key, value in group.items() if key not in _MEMBERS}
            for id_ in next(
                (group[key] for key in _MEMBERS if isinstance(group.get(key), list)), []
            ):
                groups.setdefault(str(id_), {}).setdefault(name, []).append(about)
    used: set[str] = set()
    for file in (GRAPH, _ARCHIVE):
        for place, item in enumerate(items[file]):
            id_ = str(item.get("id") or "")
            new = (
                id_
                if id_ and id_ not in used
                else f"mem_0_{sha256(repr((file, place, item)).encode()).hexdigest()[:12]}"
            )
            used.add(new)
            row = _memory(item, new, groups.get(id_, {}), is_archived=file == _ARCHIVE)
            yield row
            if (count := count_of(item.get("accessCount"))) > 0:
                at = str(row.value("updated_at"))
                yield Usage(
                    id=new, created_at=at, ref=new, access_count=count, last_accessed=at
                ).row(row.partition)


def _memory(
    item: Mapping[str, Any], id_: str, groups: Mapping[str, Value], *, is_archived: bool
) -> Row:
    agent = text_of(item.get("agent") or item.get("agent_id"))
    content, rest = (
        text_of(item.get("memory") or item.get("content")) or "",
        {k: v for k, v in item.items() if k not in _READ},
    )
    rest |= dict(groups) | ({"id": item.get("id")} if item.get("id") != id_ else {})
    provenance = item["provenance"] if isinstance(item.get("provenance"), dict) else None
    claim = _claim(rest)
    metadata: dict[str, Value] = {"provenance": provenance} if provenance else {}
    metadata |= {"neolata": rest} if rest else {}
    created = time_of(item.get("created_at")) or iso(0)
    vector, status = _vector(item.get("embedding")), item.get("status")
    kind = (MemoryType.AGENT if agent else MemoryType.GLOBAL).value
    fields: dict[str, Value] = {
        "agent_id": agent, "memory_type": kind, "content": content, "metadata": metadata,
        "tags": texts_of(item.get("tags")), "category": text_of(item.get("category")),
        "keywords": [*tokens(content)], "importance": number_of(item.get("importance")),
        "trust": base_trust(provenance) if provenance else None,
        "updated_at": time_of(item.get("updated_at")) or created,
        "event_time": time_of(item.get("event_at")), "times_observed": 1,
        "pending": None if vector else True,
        "status": "archived" if is_archived else status if status in list(Status) else "active",
        "superseded_by": text_of(item.get("superseded_by")),
        "supersedes": texts_of(item.get("supersedes")) or None,
        "reinforcements": count_of(item.get("reinforcements")) or None,
        "disputes": count_of(item.get("disputes")) or None,
        "corroborations": count_of((provenance or {}).get("corroboration")) or None, **claim,
    }  # fmt: skip
    draft = Draft(content=content, metadata=metadata, columns={"memory_type": kind, **claim})
    fields["fingerprint"] = fingerprint(Reader(None, agent), draft)
    where = partition_for(None, agent, kind, None)
    return checked(
        Row(
            kind=Kind.MEMORY,
            id=id_,
            partition=where,
            created_at=created,
            fields=fields,
            vector=vector,
        )
    )


def _claim(rest: dict[str, Any]) -> dict[str, Value]:
    """Return the columns of the claim, and take it out of the rest; one that cannot be read
    stays there."""
    given = rest.get("claim")
    if isinstance(given, dict):
        with suppress(InvalidInput):
            named = {
                _CLAIM.get(name, name): value for name, value in given.items() if value is not None
            }
            named["scope"] = "session" if named.get("scope") == "session" else "global"
            claim = read_claim({k: v for k, v in named.items() if k != "normalizedValue"}, None)
            del rest["claim"]
            return {name: value for name, value in claim.columns.items() if value is not None}
    return {}


def _links(items: list[dict[str, Any]], memories: Mapping[str, Row]) -> list[Row]:
    """Return one link for each pair and type: neolata writes it at both of its ends."""
    found: dict[tuple[frozenset[str], str], Row] = {}
    for item in items:
        source, links = memories.get(str(item.get("id"))), item.get("links")
        for link in links if source and isinstance(links, list) else ():
            target = str(link.get("id")) if isinstance(link, dict) else ""
            if source and target in memories and target != source.id:
                type_ = text_of(link.get("type")) or "similar"
                scope: dict[str, Any] = {
                    name: source.value(name) for name in ("agent_id", "memory_type")
                }
                row = Link(
                    id=f"{source.id}>{target}:{type_}", created_at=source.created_at, ref=source.id,
                    target=target, link_type=type_, similarity=number_of(link.get("similarity")),
                    **scope,
                ).row(source.partition)  # fmt: skip
                found.setdefault((frozenset((source.id, target)), type_), checked(row))
    return [*found.values()]


def _conflicts(items: list[dict[str, Any]], memories: Mapping[str, Row]) -> list[Row]:
    """Return the conflicts between memories that are there."""
    rows: dict[str, Row] = {}
    for place, item in enumerate(items):
        ref, target = (memories.get(str(item.get(name))) for name in ("newId", "existingId"))
        if ref and target:
            id_ = text_of(item.get("id")) or f"conflict_{place}"
            conflict = ClaimConflict(
                id=id_ if id_ not in rows else f"{id_}_{place}",
                created_at=time_of(item.get("created_at")) or ref.created_at, ref=ref.id,
                target=target.id, status="resolved" if item.get("resolved_at") else "pending",
                why="kept from neolata-mem", detail={"policy": "supersede", "neolata": item},
                agent_id=text_of(ref.value("agent_id")),
            )  # fmt: skip
            rows[conflict.id] = checked(conflict.row(ref.partition))
    return [*rows.values()]


def _vector(given: object) -> Vector | None:
    if (
        not isinstance(given, list)
        or not given
        or not all(isinstance(one, int | float) for one in given)
    ):
        return None
    with suppress(OverflowError):
        vector = Vector.of(f"unknown/{len(given)}", given)
        return vector if vector.finite else None
    return None
