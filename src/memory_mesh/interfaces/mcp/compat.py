"""The nine tools of the official MCP memory server, with its arguments and results.

That server is `@modelcontextprotocol/server-memory`. Its clients read JSON, so the answers are not
fenced as data.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations

from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.errors import InvalidInput, NotFound, shown
from memory_mesh.core.model import MemoryRecord, Status, Value
from memory_mesh.core.transfer.foreign import (
    PART,
    RELATION,
    entity_part,
    graph_key,
    observation_part,
    relation_part,
)
from memory_mesh.interfaces.operation import Effect, Extent

# --- the knowledge graph ---
# Entities, observations and relations are memories with a key, so that several programs can add to
# one graph at once, and every search finds what it says.

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
        new = [
            entity
            for entity in _distinct(given, ("name",))
            if self._get("entity", entity["name"]) is None
        ]
        self._mesh.add_many([item for entity in new for item in _entity_items(entity)])
        return new

    def create_relations(self, relations: Sequence[Node]) -> list[Node]:
        """Store the relations that are new, and return them. Raises `NotFound` if an entity does
        not exist."""
        for name in dict.fromkeys(
            relation[end] for relation in relations for end in ("from", "to")
        ):
            self._require(name)
        given = [{key: relation[key] for key in RELATION} for relation in relations]
        new = [
            one for one in _distinct(given, RELATION) if self._get("relation", *_parts(one)) is None
        ]
        self._mesh.add_many([_item(relation_part(*_parts(relation))) for relation in new])
        return new

    def add_observations(self, observations: Sequence[Node]) -> list[Node]:
        """Add observations to entities, and return those that are new. Raises `NotFound` if an
        entity does not exist."""
        added, known = [], set[tuple[str, str]]()
        for given in observations:
            name = given["entityName"]
            self._require(name)
            texts = [text for text in dict.fromkeys(given["contents"]) if (name, text) not in known]
            new = [text for text in texts if self._get("observation", name, text) is None]
            known |= {(name, text) for text in new}
            added.append({"entityName": name, "addedObservations": new})
        items = [
            _item(observation_part(one["entityName"], text))
            for one in added
            for text in one["addedObservations"]
        ]
        self._mesh.add_many(items)
        return added

    def delete_entities(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """Erase entities with their observations and relations; return the names that existed,
        and those that did not."""
        found = {name: record for name in names if (record := self._get("entity", name))}
        stored = {record.metadata["entity"] for record in found.values()}
        for record in self._records():
            ends = {record.metadata.get(key) for key in ("entity", "from", "to")}
            if ends & stored:
                self._mesh.delete(record.id)
        return list(found), [name for name in names if name not in found]

    def delete_observations(self, deletions: Sequence[Node]) -> tuple[int, list[str]]:
        """Erase observations; return how many existed, and the entities that did not."""
        keys = [
            ("observation", one["entityName"], text)
            for one in deletions
            for text in one["observations"]
        ]
        missing = [
            one["entityName"] for one in deletions if self._get("entity", one["entityName"]) is None
        ]
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
                entities[data["entity"]] = {
                    "name": data["entity"],
                    "entityType": data["entity_type"],
                    "observations": [],
                }
            elif data[PART] == "relation":
                relations.append({key: data[key] for key in RELATION})
            else:
                observations.append((data["entity"], data["observation"]))
        for name, text in observations:
            if name in entities:
                entities[name]["observations"].append(text)
        return {"entities": list(entities.values()), "relations": relations}

    def search(self, query: str) -> Node:
        """Return the entities whose name, type or observations contain a text, whatever its
        case, and their relations."""
        folded = query.lower()
        return self._around(
            lambda entity: any(
                folded in text.lower()
                for text in (entity["name"], entity["entityType"], *entity["observations"])
            )
        )

    def open(self, names: Sequence[str]) -> Node:
        """Return the entities with these names, and their relations."""
        found = [record for name in dict.fromkeys(names) if (record := self._get("entity", name))]
        # Where data is masked, it is not the name that is given.
        stored = {record.metadata["entity"] for record in found}
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
        relations = [
            one for one in graph["relations"] if one["from"] in names or one["to"] in names
        ]
        return {"entities": entities, "relations": relations}

    def _records(self) -> list[MemoryRecord]:
        return self._mesh.get_all(filter={PART: ["entity", "observation", "relation"]})[::-1]

    def _get(self, *parts: str) -> MemoryRecord | None:
        """Return the memory of a part: of what was given when it was stored, or of what reading
        shows, where data is masked."""
        record = self._mesh.get(key=graph_key(*parts))
        if (
            record is None
            and any("[" in part for part in parts)
            and max(map(len, parts)) <= _MAX_MASKED
        ):
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


# --- the tools ---

# It returns a message, a graph, or a list that the data of the answer has under one key.
_Call = Callable[[KnowledgeGraph, Any], object]
_TEXT = {"type": "string"}
_READS, _ADDS, _DELETES = Effect.READ, Effect.WRITE, Effect.DESTRUCTIVE


def _list(item: Mapping[str, Any], about: str = "") -> dict[str, Any]:
    return {"type": "array", "items": item, **({"description": about} if about else {})}


def _object(texts: Mapping[str, str], lists: Mapping[str, str] | None = None) -> dict[str, Any]:
    properties: dict[str, Any] = {
        name: {**_TEXT, "description": about} for name, about in texts.items()
    }
    properties |= {name: _list(_TEXT, about) for name, about in (lists or {}).items()}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_ENTITIES = _list(
    _object(
        {"name": "The name of the entity", "entityType": "The type of the entity"},
        {"observations": "An array of observation contents associated with the entity"},
    )
)
_RELATIONS = _list(
    _object(
        {
            "from": "The name of the entity where the relation starts",
            "to": "The name of the entity where the relation ends",
            "relationType": "The type of the relation",
        }
    )
)
_ADDED = _object(
    {"entityName": "The name of the entity to add the observations to"},
    {"contents": "An array of observation contents to add"},
)
_DELETED = _object(
    {"entityName": "The name of the entity containing the observations"},
    {"observations": "An array of observations to delete"},
)
_GRAPH = {"entities": _ENTITIES, "relations": _RELATIONS}
_DONE = {"success": {"type": "boolean"}, "message": _TEXT}


@dataclass(frozen=True, slots=True)
class _Entry:
    """A tool: what it takes, what it answers with, and what it calls."""

    name: str
    description: str
    takes: dict[str, Any]
    returns: dict[str, Any]
    call: _Call
    effect: Effect = _READS


def _delete_entities(graph: KnowledgeGraph, names: Any) -> str:
    deleted, missing = graph.delete_entities(names)
    some = f"Deleted {len(deleted)} of {len(names)} entities. Not found: {', '.join(missing)}"
    return some if missing else "Entities deleted successfully"


def _delete_observations(graph: KnowledgeGraph, given: Any) -> str:
    deleted, missing = graph.delete_observations(given)
    count = sum(len(one["observations"]) for one in given)
    some = f"Deleted {deleted} of {count} observations." + (
        f" Entities not found: {', '.join(missing)}" if missing else ""
    )
    return some if deleted < count else "Observations deleted successfully"


def _delete_relations(graph: KnowledgeGraph, given: Any) -> str:
    deleted = graph.delete_relations(given)
    some = f"Deleted {deleted} of {len(given)} relations. The rest matched nothing."
    return some if deleted < len(given) else "Relations deleted successfully"


_QUERY = "The search query to match against entity names, types, and observation content"
_ENTRIES = (
    _Entry("create_entities", "Create multiple new entities in the knowledge graph",
           {"entities": _ENTITIES}, {"entities": _ENTITIES},
           KnowledgeGraph.create_entities, _ADDS),
    _Entry("create_relations",
           "Create multiple new relations between entities in the knowledge graph. Relations "
           "should be in active voice",
           {"relations": _RELATIONS}, {"relations": _RELATIONS},
           KnowledgeGraph.create_relations, _ADDS),
    _Entry("add_observations", "Add new observations to existing entities in the knowledge graph",
           {"observations": _list(_ADDED)},
           {"results": _list(_object({"entityName": ""}, {"addedObservations": ""}))},
           KnowledgeGraph.add_observations, _ADDS),
    _Entry("delete_entities",
           "Delete multiple entities and their associated relations from the knowledge graph",
           {"entityNames": _list(_TEXT, "An array of entity names to delete")}, _DONE,
           _delete_entities, _DELETES),
    _Entry("delete_observations",
           "Delete specific observations from entities in the knowledge graph",
           {"deletions": _list(_DELETED)}, _DONE, _delete_observations, _DELETES),
    _Entry("delete_relations", "Delete multiple relations from the knowledge graph",
           {"relations": _RELATIONS}, _DONE, _delete_relations, _DELETES),
    _Entry("read_graph", "Read the entire knowledge graph", {}, _GRAPH,
           lambda graph, _: graph.read()),
    _Entry("search_nodes", "Search for nodes in the knowledge graph based on a query",
           {"query": {**_TEXT, "maxLength": 2048, "description": _QUERY}}, _GRAPH,
           KnowledgeGraph.search),
    _Entry("open_nodes", "Open specific nodes in the knowledge graph by their names",
           {"names": _list(_TEXT, "An array of entity names to retrieve")}, _GRAPH,
           KnowledgeGraph.open),
)  # fmt: skip


class GraphTools:
    """The tools of the official memory server."""

    def __init__(self, *, read_only: bool = False) -> None:
        self._entries = {one.name: one for one in _ENTRIES if one.effect is _READS or not read_only}

    def listed(self) -> list[Tool]:
        """Return the tools as clients see them."""
        return [_tool(entry) for entry in self._entries.values()]

    def refusal(
        self, name: str, arguments: Collection[str], *, read_only: bool, limit: Extent
    ) -> str | None:
        """Return why a caller may not call a tool, an empty text if it may, and None if there is
        no such tool."""
        if name not in self._entries:
            return None
        return (
            "the token is for reading only"
            if read_only and self._entries[name].effect is not _READS
            else ""
        )

    def call(self, mesh: Mesh, name: str, arguments: Mapping[str, object]) -> CallToolResult:
        """Call a tool on the graph in a mesh."""
        entry = self._entries[name]
        for key in arguments:
            if key not in entry.takes:
                raise InvalidInput(
                    f"unknown argument {shown(key)}",
                    expected=", ".join(entry.takes) or "no arguments",
                )
        for key, schema in entry.takes.items():
            _check(key, arguments.get(key), schema)
        result = entry.call(KnowledgeGraph(mesh), next(iter(arguments.values()), None))
        text = json.dumps(result, ensure_ascii=False, indent=2)
        data = result if isinstance(result, dict) else {next(iter(entry.returns)): result}
        if isinstance(result, str):
            text, data = result, {"success": True, "message": result}
        return CallToolResult(content=[TextContent(text=text)], structured_content=data)


def _tool(entry: _Entry) -> Tool:
    takes, returns = (
        {
            "type": "object",
            "properties": part,
            "required": list(part),
            "additionalProperties": False,
        }
        for part in (entry.takes, entry.returns)
    )
    hints = ToolAnnotations(
        read_only_hint=entry.effect is _READS,
        destructive_hint=entry.effect is _DELETES,
        idempotent_hint=entry.effect is not _ADDS,
        open_world_hint=False,
    )
    title = entry.name.replace("_", " ").title()
    return Tool(
        name=entry.name, title=title, description=entry.description, input_schema=takes,
        output_schema=returns, annotations=hints
    )  # fmt: skip


def _check(name: str, value: object, schema: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` if a value is not what a schema of this module says."""
    kind = schema["type"]
    if kind == "string":
        longest = schema.get("maxLength")
        if not isinstance(value, str) or (longest and len(value) > longest):
            raise InvalidInput(
                f"{name} is {shown(value)}",
                expected=f"a text of at most {longest:,}" if longest else "a text",
            )
    elif kind == "array":
        if not isinstance(value, list):
            raise InvalidInput(f"{name} is {shown(value)}", expected="a list")
        for at, item in enumerate(value):
            _check(f"{name}[{at}]", item, schema["items"])
    elif not isinstance(value, Mapping):
        raise InvalidInput(
            f"{name} is {shown(value)}", expected=f"an object with {', '.join(schema['required'])}"
        )
    else:
        for key, part in schema["properties"].items():
            _check(f"{name}.{key}", value.get(key), part)
