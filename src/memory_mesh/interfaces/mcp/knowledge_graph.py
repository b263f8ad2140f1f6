"""The knowledge graph of the official MCP memory server, kept in a mesh: entities, their observations, and relations.

Each of them is a memory with a key, so that several programs can add to one graph at once, and every search finds what it says.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from memory_mesh.core.errors import NotFound
from memory_mesh.core.knowledge_graph import PART, RELATION, entity_part, graph_key, observation_part, relation_part
from memory_mesh.core.model import MemoryRecord, Status, Value
from memory_mesh.faces.mesh import Mesh

Node = dict[str, Any]
_MAX_MASKED = 1_000  # characters of a text in which personal data may be masked
_ENTITY = ("name", "entityType", "observations")
_FIELDS = {"entity": ("entity",), "observation": ("entity", "observation"), "relation": RELATION}


class KnowledgeGraph:
    """The operations of the official memory server."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh

    def create_entities(self, entities: Sequence[Node]) -> list[Node]:
        """Store the entities whose name is new, with their observations, and return them."""
        given = [{key: entity[key] for key in _ENTITY} for entity in entities]
        new = [entity for entity in _distinct(given, ("name",)) if self._get("entity", entity["name"]) is None]
        self._mesh.add_many([item for entity in new for item in _entity_items(entity)])
        return new

    def create_relations(self, relations: Sequence[Node]) -> list[Node]:
        """Store the relations that are new, and return them. Raises `NotFound` if an entity does not exist."""
        for name in dict.fromkeys(relation[end] for relation in relations for end in ("from", "to")):
            self._require(name)
        given = [{key: relation[key] for key in RELATION} for relation in relations]
        new = [one for one in _distinct(given, RELATION) if self._get("relation", *_parts(one)) is None]
        self._mesh.add_many([_item(relation_part(*_parts(relation))) for relation in new])
        return new

    def add_observations(self, observations: Sequence[Node]) -> list[Node]:
        """Add observations to entities, and return those that are new. Raises `NotFound` if an entity does not exist."""
        added, known = [], set[tuple[str, str]]()
        for given in observations:
            name = given["entityName"]
            self._require(name)
            texts = [text for text in dict.fromkeys(given["contents"]) if (name, text) not in known]
            new = [text for text in texts if self._get("observation", name, text) is None]
            known |= {(name, text) for text in new}
            added.append({"entityName": name, "addedObservations": new})
        items = [_item(observation_part(one["entityName"], text)) for one in added for text in one["addedObservations"]]
        self._mesh.add_many(items)
        return added

    def delete_entities(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """Erase entities with their observations and relations; return the names that existed, and those that did not."""
        found = {name: record for name in names if (record := self._get("entity", name))}
        stored = {record.metadata["entity"] for record in found.values()}
        for record in self._records():
            ends = {record.metadata.get(key) for key in ("entity", "from", "to")}
            if ends & stored:
                self._mesh.delete(record.id)
        return list(found), [name for name in names if name not in found]

    def delete_observations(self, deletions: Sequence[Node]) -> tuple[int, list[str]]:
        """Erase observations; return how many existed, and the entities that did not."""
        keys = [("observation", one["entityName"], text) for one in deletions for text in one["observations"]]
        missing = [one["entityName"] for one in deletions if self._get("entity", one["entityName"]) is None]
        return self._delete(keys), missing

    def delete_relations(self, relations: Sequence[Node]) -> int:
        """Erase relations; return how many existed."""
        return self._delete([("relation", *_parts(one)) for one in relations])

    def read(self) -> Node:
        """Return the whole graph, in the order in which it was stored."""
        entities: dict[Any, Node] = {}
        observations, relations = [], []
        for record in self._records():
            data = record.metadata
            if data[PART] == "entity":
                entities[data["entity"]] = {"name": data["entity"], "entityType": data["entity_type"], "observations": []}
            elif data[PART] == "relation":
                relations.append({key: data[key] for key in RELATION})
            else:
                observations.append((data["entity"], data["observation"]))
        for name, text in observations:
            if name in entities:
                entities[name]["observations"].append(text)
        return {"entities": list(entities.values()), "relations": relations}

    def search(self, query: str) -> Node:
        """Return the entities whose name, type or observations contain a text, whatever its case, and their relations."""
        folded = query.lower()
        return self._around(
            lambda entity: any(folded in text.lower() for text in (entity["name"], entity["entityType"], *entity["observations"]))
        )

    def open(self, names: Sequence[str]) -> Node:
        """Return the entities with these names, and their relations."""
        found = [record for name in dict.fromkeys(names) if (record := self._get("entity", name))]
        stored = {record.metadata["entity"] for record in found}  # where data is masked, it is not the name that is given
        return self._around(lambda entity: entity["name"] in stored)

    # --- its file of JSON lines ---

    def lines(self) -> Iterator[str]:
        """Yield the graph as the official server writes it into its file."""
        graph = self.read()
        for kind, key in (("entity", "entities"), ("relation", "relations")):
            for one in graph[key]:
                yield json.dumps({"type": kind, **one}, ensure_ascii=False) + "\n"

    # --- internals ---

    def _around(self, matches: Any) -> Node:
        graph = self.read()
        entities = [entity for entity in graph["entities"] if matches(entity)]
        names = {entity["name"] for entity in entities}
        relations = [one for one in graph["relations"] if one["from"] in names or one["to"] in names]
        return {"entities": entities, "relations": relations}

    def _records(self) -> list[MemoryRecord]:
        return self._mesh.get_all(filter={PART: ["entity", "observation", "relation"]})[::-1]

    def _get(self, *parts: str) -> MemoryRecord | None:
        """Return the memory of a part: of what was given when it was stored, or of what reading shows, where data is masked."""
        record = self._mesh.get(key=graph_key(*parts))
        if record is None and any("[" in part for part in parts) and max(map(len, parts)) <= _MAX_MASKED:
            where = {PART: parts[0], **dict(zip(_FIELDS[parts[0]], parts[1:], strict=True))}
            record = next(iter(self._mesh.get_all(1, filter=where)), None)
        return record if record and record.status == Status.ACTIVE else None

    def _require(self, name: str) -> None:
        if self._get("entity", name) is None:
            raise NotFound(f"Entity with name {name} not found")

    def _delete(self, keys: Iterable[tuple[str, ...]]) -> int:
        found = [record for parts in dict.fromkeys(keys) if (record := self._get(*parts))]
        for record in found:
            self._mesh.delete(record.id)
        return len(found)


def _parts(relation: Node) -> tuple[str, str, str]:
    return relation["from"], relation["to"], relation["relationType"]


def _distinct(nodes: Sequence[Node], keys: tuple[str, ...]) -> list[Node]:
    by_key: dict[tuple[str, ...], Node] = {}
    for node in nodes:
        by_key.setdefault(tuple(node[key] for key in keys), node)
    return list(by_key.values())


def _item(part: tuple[str, str, dict[str, Value]]) -> Node:
    content, key, metadata = part
    return {"content": content, "key": key, "metadata": metadata}


def _entity_items(entity: Node) -> Iterator[Node]:
    yield _item(entity_part(entity["name"], entity["entityType"]))
    for text in dict.fromkeys(entity["observations"]):
        yield _item(observation_part(entity["name"], text))
