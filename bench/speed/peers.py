"""Others that keep texts and find them by vectors, each as its own documents tell to use it, fed with ready vectors.

None of them redacts, deduplicates, seals what it did or ranks by keywords in this set-up; the figures compare time, not work.
Their modules are loaded by name when asked for: none is a dependency of ours.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bench.speed.ours import url
from bench.speed.texts import Item
from bench.speed.vectors import DIMENSION, Floats, ReadyEmbedder
from memory_mesh import MemoryMesh

LIMIT = 10


class Peer(Protocol):
    """Something that can be fed and asked. Keys are given by the caller where it takes them."""

    def add(self, items: Sequence[tuple[str, Item]]) -> None: ...

    def search(self, query: str) -> int: ...

    def close(self) -> None: ...


class Ours:
    """memory-mesh: redacted, deduplicated, audited; keywords and vectors."""

    def __init__(self, folder: Path, embedder: ReadyEmbedder) -> None:
        self._mesh = MemoryMesh(store=url(folder), embedder=embedder)

    def add(self, items: Sequence[tuple[str, Item]]) -> None:
        if len(items) == 1:
            self._mesh.add(items[0][1].text, items[0][1].metadata)
        else:
            self._mesh.add_many([(item.text, item.metadata) for _, item in items])

    def search(self, query: str) -> int:
        return len(self._mesh.search(query, LIMIT, use_cache=False))

    def close(self) -> None:
        self._mesh.close()


class Chroma:
    """Chroma on disk, cosine."""

    def __init__(self, folder: Path, embedder: ReadyEmbedder) -> None:
        chromadb = import_module("chromadb")
        settings = import_module("chromadb.config").Settings(anonymized_telemetry=False)
        self._embedder = embedder
        self._client = chromadb.PersistentClient(str(folder), settings)
        self._held = self._client.create_collection(
            "memories", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    def add(self, items: Sequence[tuple[str, Item]]) -> None:
        self._held.add(
            ids=[key for key, _ in items],
            embeddings=[floats(self._embedder, item.text) for _, item in items],
            documents=[item.text for _, item in items],
            metadatas=[item.metadata for _, item in items],
        )

    def search(self, query: str) -> int:
        found = self._held.query(query_embeddings=[floats(self._embedder, query)], n_results=LIMIT)
        return len(found["documents"][0])

    def close(self) -> None:
        self._client.close()


class Lance:
    """LanceDB without an index, as it starts out: each search compares all."""

    def __init__(self, folder: Path, embedder: ReadyEmbedder) -> None:
        arrow = import_module("pyarrow")
        names = {"key": arrow.string(), "text": arrow.string(), "turn": arrow.int64()}
        names |= dict.fromkeys(("session_id", "speaker", "event_time"), arrow.string())
        schema = arrow.schema([*names.items(), ("vector", arrow.list_(arrow.float32(), DIMENSION))])
        self._embedder = embedder
        self._table = import_module("lancedb").connect(str(folder)).create_table("memories", schema=schema)

    def add(self, items: Sequence[tuple[str, Item]]) -> None:
        self._table.add(
            [{"key": key, "text": item.text, "vector": floats(self._embedder, item.text), **item.metadata} for key, item in items]
        )

    def search(self, query: str) -> int:
        return len(self._table.search(floats(self._embedder, query)).distance_type("cosine").limit(LIMIT).to_list())

    def close(self) -> None:
        pass  # it has nothing to close


class LangGraph:
    """LangGraph's store in memory, with an index. Nothing of it lasts."""

    def __init__(self, folder: Path, embedder: ReadyEmbedder) -> None:
        self._puts = import_module("langgraph.store.base").PutOp
        index = {"dims": DIMENSION, "embed": lambda texts: [listed(embedder, text) for text in texts], "fields": ["text"]}
        self._store = import_module("langgraph.store.memory").InMemoryStore(index=index)

    def add(self, items: Sequence[tuple[str, Item]]) -> None:
        self._store.batch([self._puts(("memories",), key, {"text": item.text, **item.metadata}) for key, item in items])

    def search(self, query: str) -> int:
        return len(self._store.search(("memories",), query=query, limit=LIMIT))

    def close(self) -> None:
        pass  # it has nothing to close


class Mem0:
    """mem0 without a language model (`infer=False`), on Qdrant in the same process. It takes texts one by one.

    Its keyword channel and its entities need models of their own, which are fetched; here it searches by vectors alone.
    """

    def __init__(self, folder: Path, embedder: ReadyEmbedder) -> None:
        # It reads these when it is loaded: nothing is to be sent anywhere, nor written elsewhere.
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "mem0")}
        keyed = {"api_key": "none is called"}
        place = {"path": str(folder / "qdrant"), "embedding_model_dims": DIMENSION, "on_disk": True}
        self._memory: Any = import_module("mem0").Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": place},
                "embedder": {"provider": "openai", "config": keyed},
                "llm": {"provider": "openai", "config": keyed},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = _ForMem0(embedder)

    def add(self, items: Sequence[tuple[str, Item]]) -> None:
        for _, item in items:
            self._memory.add(item.text, user_id="bench", metadata=item.metadata, infer=False)

    def search(self, query: str) -> int:
        return len(self._memory.search(query, filters={"user_id": "bench"}, top_k=LIMIT)["results"])

    def close(self) -> None:
        self._memory.vector_store.client.close()
        self._memory.close()


class _ForMem0:
    """Ready vectors, under the names that mem0 calls."""

    def __init__(self, embedder: ReadyEmbedder) -> None:
        self._embedder = embedder

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return listed(self._embedder, text)

    def embed_batch(self, texts: Sequence[str], memory_action: str = "add") -> list[list[float]]:
        return [listed(self._embedder, text) for text in texts]


@dataclass(frozen=True, slots=True)
class Known:
    """How one of them is made, what must be installed for it, and whether it keeps what it is given."""

    make: Callable[[Path, ReadyEmbedder], Peer]
    packages: tuple[str, ...]
    durable: bool = True


OURS = "memory-mesh"
PEERS = {
    OURS: Known(Ours, ("memory-mesh",)),
    "Chroma (persistent)": Known(Chroma, ("chromadb",)),
    "LanceDB (no index)": Known(Lance, ("lancedb", "pyarrow")),
    "LangGraph InMemoryStore": Known(LangGraph, ("langgraph",), durable=False),
    "mem0 (infer=False, local Qdrant)": Known(Mem0, ("mem0ai", "qdrant-client")),
}


def versions(name: str) -> dict[str, str] | None:
    """What of a peer is installed; None where something is missing."""
    try:
        return {package: version(package) for package in PEERS[name].packages}
    except PackageNotFoundError:
        return None


def floats(embedder: ReadyEmbedder, text: str) -> Floats:
    return np.frombuffer(embedder.embed([text])[0].data, "<f4")


def listed(embedder: ReadyEmbedder, text: str) -> list[float]:
    values: list[float] = floats(embedder, text).tolist()
    return values
