"""Other memories, each used as its documentation recommends, for the benchmarks of speed, quality
and hygiene.

All get vectors from the same embedder. In this setup none of them redacts, deduplicates, keeps an
audit trail or ranks by keywords. Their modules are imported by name on use, because none is a
dependency. The server of the Model Context Protocol is a program of Node.js: `npm install --prefix
build/mcp-memory @modelcontextprotocol/server-memory`.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from memory_mesh.core.ports import Embedder
from memory_mesh.flows.write.embed import embed_texts

ROOT = Path(__file__).parents[1]
MCP_SERVER = (
    ROOT
    / "build"
    / "mcp-memory"
    / "node_modules"
    / "@modelcontextprotocol"
    / "server-memory"
    / "dist"
    / "index.js"
)
LIMIT = 10
_ALL = 100_000  # more than a benchmark stores


class Text(Protocol):
    """A text with metadata; both stay as they are."""

    @property
    def text(self) -> str: ...

    @property
    def metadata(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Plain:
    """A text without metadata."""

    text: str
    metadata: dict[str, Any] = field(default_factory=dict)


class Hit(NamedTuple):
    """A result of a search: the key of the caller (memory-mesh returns its own id), and the
    text."""

    key: str
    text: str


class Peer(Protocol):
    """A store under measurement. A call that returns has been acknowledged."""

    def add(self, items: Sequence[tuple[str, Text]]) -> None: ...

    def search(self, query: str) -> list[Hit]: ...

    def close(self) -> None: ...


class System(Peer, Protocol):
    """A memory that also deletes and lists."""

    def capture(self, session: str, messages: Sequence[tuple[str, str]]) -> None:
        """Take over the messages of a session, each with its role, as far as the system finds
        them worth keeping."""

    def delete(self, key: str) -> None: ...

    def texts(self) -> list[str]: ...


class Chroma:
    """Chroma on disk, with cosine similarity."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        settings = import_module("chromadb.config").Settings(anonymized_telemetry=False)
        self._embedder = embedder
        self._client = import_module("chromadb").PersistentClient(str(folder), settings)
        self._collection = self._client.get_or_create_collection(
            "memories", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    def add(self, items: Sequence[tuple[str, Text]]) -> None:
        self._collection.add(
            ids=[key for key, _ in items],
            embeddings=[floats(self._embedder, item.text) for _, item in items],
            documents=[item.text for _, item in items],
            metadatas=[item.metadata or None for _, item in items],  # it refuses empty metadata
        )

    def capture(self, session: str, messages: Sequence[tuple[str, str]]) -> None:
        self.add(_as_items(session, messages))

    def delete(self, key: str) -> None:
        self._collection.delete(ids=[key])

    def texts(self) -> list[str]:
        return list(self._collection.get()["documents"])

    def search(self, query: str) -> list[Hit]:
        found = self._collection.query(
            query_embeddings=[floats(self._embedder, query)], n_results=LIMIT
        )
        return [*map(Hit, found["ids"][0], found["documents"][0])]

    def close(self) -> None:
        self._client.close()


class Lance:
    """LanceDB without an index, its default: each search scans all vectors."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        arrow = import_module("pyarrow")
        names = {"key": arrow.string(), "text": arrow.string(), "turn": arrow.int64()}
        names |= dict.fromkeys(("session_id", "speaker", "event_time"), arrow.string())
        schema = arrow.schema(
            [*names.items(), ("vector", arrow.list_(arrow.float32(), _size(embedder)))]
        )
        self._embedder = embedder
        self._table = (
            import_module("lancedb").connect(str(folder)).create_table("memories", schema=schema)
        )

    def add(self, items: Sequence[tuple[str, Text]]) -> None:
        self._table.add(
            [
                {
                    "key": key,
                    "text": item.text,
                    "vector": floats(self._embedder, item.text),
                    **item.metadata,
                }
                for key, item in items
            ]
        )

    def search(self, query: str) -> list[Hit]:
        found = (
            self._table.search(floats(self._embedder, query))
            .distance_type("cosine")
            .limit(LIMIT)
            .to_list()
        )
        return [Hit(row["key"], row["text"]) for row in found]

    def close(self) -> None:
        pass  # nothing to close


class LangGraph:
    """LangGraph's store in memory, with an index. It keeps nothing on disk."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._put = import_module("langgraph.store.base").PutOp
        index = {
            "dims": _size(embedder),
            "embed": lambda texts: [as_list(embedder, text) for text in texts],
            "fields": ["text"],
        }
        self._store = import_module("langgraph.store.memory").InMemoryStore(index=index)

    def add(self, items: Sequence[tuple[str, Text]]) -> None:
        self._store.batch(
            [
                self._put(("memories",), key, {"text": item.text, **item.metadata})
                for key, item in items
            ]
        )

    def capture(self, session: str, messages: Sequence[tuple[str, str]]) -> None:
        self.add(_as_items(session, messages))

    def delete(self, key: str) -> None:
        self._store.delete(("memories",), key)

    def texts(self) -> list[str]:
        return [item.value["text"] for item in self._store.search(("memories",), limit=_ALL)]

    def search(self, query: str) -> list[Hit]:
        return [
            Hit(item.key, item.value["text"])
            for item in self._store.search(("memories",), query=query, limit=LIMIT)
        ]

    def close(self) -> None:
        pass  # nothing to close


class Mem0:
    """mem0 without a language model (`infer=False`), on Qdrant in the same process. It accepts
    texts one at a time.

    Its keyword channel and its entities need further models, which it downloads; here it searches
    by vectors only.
    """

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        # mem0 reads these on import: no telemetry, and no files outside the folder.
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "mem0")}
        keyed = {"api_key": "not used"}
        location = {
            "path": str(folder / "qdrant"),
            "embedding_model_dims": _size(embedder),
            "on_disk": True,
        }
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
            self._memory.add(
                item.text, user_id="bench", metadata={**item.metadata, "key": key}, infer=False
            )

    def capture(self, session: str, messages: Sequence[tuple[str, str]]) -> None:
        said = [{"role": role, "content": text} for role, text in messages]
        self._memory.add(
            said, user_id="bench", run_id=session, metadata={"key": session}, infer=False
        )

    def delete(self, key: str) -> None:
        for row in self._rows():
            if row["metadata"]["key"] == key:
                self._memory.delete(row["id"])

    def texts(self) -> list[str]:
        return [row["memory"] for row in self._rows()]

    def search(self, query: str) -> list[Hit]:
        found = self._memory.search(query, filters={"user_id": "bench"}, top_k=LIMIT)["results"]
        return [Hit(row["metadata"]["key"], row["memory"]) for row in found]

    def close(self) -> None:
        self._memory.vector_store.client.close()
        self._memory.close()

    def _rows(self) -> list[dict[str, Any]]:
        return list(self._memory.get_all(filters={"user_id": "bench"}, top_k=_ALL)["results"])


class _ForMem0:
    """The embedder, with the methods that mem0 calls."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return as_list(self._embedder, text)

    def embed_batch(self, texts: Sequence[str], memory_action: str = "add") -> list[list[float]]:
        return [as_list(self._embedder, text) for text in texts]


class McpMemory:
    """The official memory server of the Model Context Protocol: entities with observations in
    one JSON file."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        environment = {**os.environ, "MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
        self._process = subprocess.Popen(
            ["node", str(MCP_SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=environment, text=True,
        )  # fmt: skip
        self._in, self._out = pipes(self._process)
        self._last = 0
        client = {"name": "bench", "version": "1"}
        self._ask(
            "initialize",
            {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": client},
        )
        self._send({"method": "notifications/initialized"})

    def add(self, items: Sequence[tuple[str, Text]]) -> None:
        entities = [
            {"name": key, "entityType": "note", "observations": [item.text]} for key, item in items
        ]
        self._call("create_entities", {"entities": entities})

    def capture(self, session: str, messages: Sequence[tuple[str, str]]) -> None:
        self.add(_as_items(session, messages))

    def delete(self, key: str) -> None:
        self._call("delete_entities", {"entityNames": [key]})

    def texts(self) -> list[str]:
        return [hit.text for hit in self._hits(self._call("read_graph", {}))]

    def search(self, query: str) -> list[Hit]:
        return self._hits(self._call("search_nodes", {"query": query}))

    def close(self) -> None:
        self._process.communicate()

    def _hits(self, text: str) -> list[Hit]:
        return [
            Hit(entity["name"], one)
            for entity in json.loads(text)["entities"]
            for one in entity["observations"]
        ]

    def _call(self, name: str, arguments: dict[str, Any]) -> str:
        answer = self._ask("tools/call", {"name": name, "arguments": arguments})
        if answer.get("isError"):
            raise RuntimeError(str(answer))
        return str(answer["content"][0]["text"])

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last += 1
        self._send({"id": self._last, "method": method, "params": params})
        while True:
            message = json.loads(self._out.readline())
            if message.get("id") == self._last:
                return dict(message["result"])

    def _send(self, message: dict[str, Any]) -> None:
        self._in.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._in.flush()


Make = Callable[[Path, Embedder], Peer]


def installed_versions(packages: Iterable[str]) -> dict[str, str] | None:
    """Return the versions of packages; None if one is missing."""
    try:
        return {package: version(package) for package in packages}
    except PackageNotFoundError:
        return None


def pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    """Return the input and the output of a process."""
    if process.stdin is None or process.stdout is None:
        raise ValueError("the process has no pipes")
    return process.stdin, process.stdout


def floats(embedder: Embedder, text: str) -> NDArray[np.float32]:
    return np.frombuffer(embed_texts(embedder, [text])[0].data, "<f4")


def as_list(embedder: Embedder, text: str) -> list[float]:
    values: list[float] = floats(embedder, text).tolist()
    return values


def _size(embedder: Embedder) -> int:
    return len(as_list(embedder, "size"))


def _as_items(session: str, messages: Sequence[tuple[str, str]]) -> list[tuple[str, Text]]:
    """Return each message as a text of its own: a system without a judge stores what it is
    given."""
    return [(f"{session} {number}", Plain(text)) for number, (_, text) in enumerate(messages)]
