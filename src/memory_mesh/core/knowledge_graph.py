"""The knowledge graph of the official MCP memory server as memories: one for each entity, observation and relation.

Each has a key, which is not the text itself: that may be long, or masked.
"""

import json
from hashlib import sha256

from memory_mesh.core.model import Value

PART = "knowledge_graph"  # the metadata key that says what a memory is: entity, observation or relation
RELATION = ("from", "to", "relationType")


def graph_key(*parts: str) -> str:
    """Return the key of a part of the graph: what it is, and the texts that identify it."""
    return f"{PART}:{sha256(json.dumps(parts).encode()).hexdigest()[:24]}"


def entity_part(name: str, kind: str) -> tuple[str, str, dict[str, Value]]:
    """Return the content, the key and the metadata of an entity."""
    return f"{name} ({kind})", graph_key("entity", name), {PART: "entity", "entity": name, "entity_type": kind}


def observation_part(name: str, text: str) -> tuple[str, str, dict[str, Value]]:
    """Return the content, the key and the metadata of an observation of an entity."""
    return f"{name}: {text}", graph_key("observation", name, text), {PART: "observation", "entity": name, "observation": text}


def relation_part(source: str, target: str, kind: str) -> tuple[str, str, dict[str, Value]]:
    """Return the content, the key and the metadata of a relation between two entities."""
    metadata: dict[str, Value] = {PART: "relation", **dict(zip(RELATION, (source, target, kind), strict=True))}
    return f"{source} {kind} {target}", graph_key("relation", source, target, kind), metadata
