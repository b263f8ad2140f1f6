"""Other stores that find texts by vectors, each used as its documentation recommends, with prepared vectors.

In this setup none of them redacts, deduplicates, keeps an audit trail or ranks by keywords: the figures compare time, not work.
Their modules are imported by name on use, because none is a dependency.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bench.speed.embedding import DIMENSION, Floats
from bench.speed.ours import url
from memory_mesh import MemoryMesh
from memory_mesh.core.ports import Embedder

LIMIT = 10


class Text(Protocol):
    """A text with metadata; both stay as they are."""

    @property
    def text(self) -> str: ...

    @property
    def metadata(self) -> dict[str, Any]: ...


class Peer(Protocol):
    """A store under measurement. `search` returns the ids of the caller; memory-mesh returns its own."""

    def add(self, items: Sequence[tuple[str, Text]]) -> None: ...

    def search(self, query: str) -> list[str]: ...

    def close(self) -> None: ...


class Ours:
    """memory-mesh: redacts, deduplicates, audits; searches by keywords and vectors."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._mesh = MemoryMesh(store=url(folder), embedder=embedder)

    def add(self, items: Sequence[tuple[str, Text]]) -> None:
        if len(items) == 1:
            self._mesh.add(items[0][1].text, items[0][1].metadata)
        else:
            self._mesh.add_many([(item.text, item.metadata) for _, item in items])

    def search(self, query: str) -> list[str]:
        return [result.id for result in self._mesh.search(query, LIMIT, use_cache=False)]

    def close(self) -> None:
        self._mesh.close()


class Chroma:
    """Chroma on disk, with cosine similarity."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        chromadb = import_module("chromadb")
        settings = import_module("chromadb.config").Settings(anonymized_telemetry=False)
        self._embedder = embedder
        self._client = chromadb.PersistentClient(str(folder), settings)
        self._collection = self._client.create_collection(
            "memories", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    def add(self, items: Sequence[tuple[str, Text]]) -> None:
        self._collection.add(
            ids=[key for key, _ in items],
            embeddings=[floats(self._embedder, item.text) for _, item in items],
            documents=[item.text for _, item in items],
            metadatas=[item.metadata for _, item in items],
        )

    def search(self, query: str) -> list[str]:
        result = self._collection.query(query_embeddings=[floats(self._embedder, query)], n_results=LIMIT)
        return list(result["ids"][0])

    def close(self) -> None:
        self._client.close()


class Lance:
    """LanceDB without an index, its default: each search scans all vectors."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        arrow = import_module("pyarrow")
        names = {"key": arrow.string(), "text": arrow.string(), "turn": arrow.int64()}
        names |= dict.fromkeys(("session_id", "speaker", "event_time"), arrow.string())
        schema = arrow.schema([*names.items(), ("vector", arrow.list_(arrow.float32(), DIMENSION))])
        self._embedder = embedder
        self._table = import_module("lancedb").connect(str(folder)).create_table("memories", schema=schema)

    def add(self, items: Sequence[tuple[str, Text]]) -> None:
        self._table.add(
            [{"key": key, "text": item.text, "vector": floats(self._embedder, item.text), **item.metadata} for key, item in items]
        )

    def search(self, query: str) -> list[str]:
        found = self._table.search(floats(self._embedder, query)).distance_type("cosine").limit(LIMIT).to_list()
        return [row["key"] for row in found]

    def close(self) -> None:
        pass  # nothing to close


class LangGraph:
    """LangGraph's store in memory, with an index. It is not durable."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._put = import_module("langgraph.store.base").PutOp
        index = {"dims": DIMENSION, "embed": lambda texts: [as_list(embedder, text) for text in texts], "fields": ["text"]}
        self._store = import_module("langgraph.store.memory").InMemoryStore(index=index)

    def add(self, items: Sequence[tuple[str, Text]]) -> None:
        self._store.batch([self._put(("memories",), key, {"text": item.text, **item.metadata}) for key, item in items])

    def search(self, query: str) -> list[str]:
        return [item.key for item in self._store.search(("memories",), query=query, limit=LIMIT)]

    def close(self) -> None:
        pass  # nothing to close


class Mem0:
    """mem0 without a language model (`infer=False`), on Qdrant in the same process. It accepts texts one at a time.

    Its keyword channel and its entities need further models, which it downloads; here it searches by vectors only.
    """

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        # mem0 reads these on import: no telemetry, and no files outside the folder.
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "mem0")}
        keyed = {"api_key": "not used"}
        location = {"path": str(folder / "qdrant"), "embedding_model_dims": DIMENSION, "on_disk": True}
        self._memory: Any = import_module("mem0").Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": location},
                "embedder": {"provider": "openai", "config": keyed},
                "llm": {"provider": "openai", "config": keyed},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = _ForMem0(embedder)

    def add(self, items: Sequence[tuple[str, Text]]) -> None:
        for key, item in items:
            self._memory.add(item.text, user_id="bench", metadata={**item.metadata, "key": key}, infer=False)

    def search(self, query: str) -> list[str]:
        found = self._memory.search(query, filters={"user_id": "bench"}, top_k=LIMIT)["results"]
        return [row["metadata"]["key"] for row in found]

    def close(self) -> None:
        self._memory.vector_store.client.close()
        self._memory.close()


class _ForMem0:
    """The prepared vectors, with the methods that mem0 calls."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return as_list(self._embedder, text)

    def embed_batch(self, texts: Sequence[str], memory_action: str = "add") -> list[list[float]]:
        return [as_list(self._embedder, text) for text in texts]


@dataclass(frozen=True, slots=True)
class PeerSpec:
    """How to create a store, the packages that it needs, and whether it is durable."""

    make: Callable[[Path, Embedder], Peer]
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


def installed_versions(name: str) -> dict[str, str] | None:
    """Return the versions of the packages of a store; None if one is missing."""
    try:
        return {package: version(package) for package in PEERS[name].packages}
    except PackageNotFoundError:
        return None


def floats(embedder: Embedder, text: str) -> Floats:
    return np.frombuffer(embedder.embed([text])[0].data, "<f4")


def as_list(embedder: Embedder, text: str) -> list[float]:
    values: list[float] = floats(embedder, text).tolist()
    return values
