"""The stores whose speed is compared: memory-mesh, and others with the same prepared vectors.

In this setup none of the others redacts, deduplicates, keeps an audit trail or ranks by keywords:
the figures compare time, not work.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.peers import LIMIT, Chroma, Hit, Lance, LangGraph, Make, Mem0, Text
from bench.speed.ours import url
from memory_mesh import MemoryMesh
from memory_mesh.core.ports import Embedder


class Ours:
    """memory-mesh: redacts, deduplicates, audits; searches by keywords and vectors."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._mesh = MemoryMesh(store=url(folder), embedder=embedder)

    def add(self, items: Sequence[tuple[str, Text]]) -> None:
        if len(items) == 1:
            self._mesh.add(items[0][1].text, items[0][1].metadata)
        else:
            self._mesh.add_many([(item.text, item.metadata) for _, item in items])

    def search(self, query: str) -> list[Hit]:
        return [
            Hit(result.id, result.content)
            for result in self._mesh.search(query, LIMIT, use_cache=False)
        ]

    def close(self) -> None:
        self._mesh.close()


@dataclass(frozen=True, slots=True)
class PeerSpec:
    """How to create a store, the packages that it needs, and whether it is durable."""

    make: Make
    packages: tuple[str, ...]
    durable: bool = True


OURS = "memory-mesh"
PEERS = {
    OURS: PeerSpec(Ours, ("memory-mesh",)),
    "Chroma (persistent)": PeerSpec(Chroma, ("chromadb",)),
    "LanceDB (no index)": PeerSpec(Lance, ("lancedb", "pyarrow")),
    "LangGraph InMemoryStore": PeerSpec(LangGraph, ("langgraph",), durable=False),
    "mem0 (infer=False, local Qdrant)": PeerSpec(Mem0, ("mem0ai", "qdrant-client")),
}
