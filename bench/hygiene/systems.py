"""The systems that can be measured, each used as its documentation shows: texts are added, found, listed and deleted.

All get the same vectors. Their modules are imported by name on use, because none is a dependency. The server of the Model Context
Protocol is a program of Node.js: `npm install --prefix build/mcp-memory @modelcontextprotocol/server-memory`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Protocol

from bench.hygiene.record import OURS
from bench.speed.peers import _ForMem0, as_list
from memory_mesh import MemoryMesh
from memory_mesh.core.ports import Embedder
from memory_mesh.models import HashingEmbedder, LocalEmbedder
from memory_mesh.settings import load
from memory_mesh.wiring.build import model_paths

ROOT = Path(__file__).parents[2]
MCP_SERVER = ROOT / "build" / "mcp-memory" / "node_modules" / "@modelcontextprotocol" / "server-memory" / "dist" / "index.js"
_PEERS = ROOT / ".venv-peers" / "bin" / "python"
LIMIT = 10


class System(Protocol):
    """A memory on disk. A call that returns has been acknowledged."""

    def add(self, key: str, text: str) -> None: ...

    def delete(self, key: str) -> None: ...

    def texts(self) -> list[str]: ...

    def search(self, query: str) -> list[str]: ...

    def close(self) -> None: ...


class Ours:
    """memory-mesh on SQLite. Deletion is `erase`, as the command `delete` does it; search is in `precise` mode."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._mesh = MemoryMesh(f"sqlite:///{folder / 'memory.db'}", agent_id="bench", embedder=embedder)

    def add(self, key: str, text: str) -> None:
        self._mesh.add(text, {"name": key})

    def delete(self, key: str) -> None:
        for record in self._mesh.get_all():
            if record.metadata.get("name") == key:
                self._mesh.erase(record.id)

    def texts(self) -> list[str]:
        return [record.content for record in self._mesh.get_all()]

    def search(self, query: str) -> list[str]:
        return [result.content for result in self._mesh.search(query, LIMIT, mode="precise")]

    def close(self) -> None:
        self._mesh.close()


class Chroma:
    """Chroma on disk, with cosine similarity."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        settings = import_module("chromadb.config").Settings(anonymized_telemetry=False)
        self._embedder = embedder
        self._client = import_module("chromadb").PersistentClient(str(folder), settings)
        self._collection = self._client.get_or_create_collection(
            "memories", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    def add(self, key: str, text: str) -> None:
        self._collection.add(ids=[key], embeddings=[as_list(self._embedder, text)], documents=[text])

    def delete(self, key: str) -> None:
        self._collection.delete(ids=[key])

    def texts(self) -> list[str]:
        return list(self._collection.get()["documents"])

    def search(self, query: str) -> list[str]:
        found = self._collection.query(query_embeddings=[as_list(self._embedder, query)], n_results=LIMIT)
        return list(found["documents"][0])

    def close(self) -> None:
        self._client.close()


class LangGraph:
    """LangGraph's store in memory, with an index. It keeps nothing on disk."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        size = len(as_list(embedder, "size"))
        index = {"dims": size, "embed": lambda texts: [as_list(embedder, text) for text in texts], "fields": ["text"]}
        self._store = import_module("langgraph.store.memory").InMemoryStore(index=index)

    def add(self, key: str, text: str) -> None:
        self._store.put(("memories",), key, {"text": text})

    def delete(self, key: str) -> None:
        self._store.delete(("memories",), key)

    def texts(self) -> list[str]:
        return [item.value["text"] for item in self._store.search(("memories",), limit=100_000)]

    def search(self, query: str) -> list[str]:
        return [item.value["text"] for item in self._store.search(("memories",), query=query, limit=LIMIT)]

    def close(self) -> None:
        pass  # nothing to close


class Mem0:
    """mem0 without a language model (`infer=False`), on Qdrant in the same process."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        # mem0 reads these on import: no telemetry, and no files outside the folder.
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "mem0")}
        keyed = {"api_key": "not used"}
        size = len(as_list(embedder, "size"))
        location = {"path": str(folder / "qdrant"), "embedding_model_dims": size, "on_disk": True}
        self._memory: Any = import_module("mem0").Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": location},
                "embedder": {"provider": "openai", "config": keyed},
                "llm": {"provider": "openai", "config": keyed},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = _ForMem0(embedder)

    def add(self, key: str, text: str) -> None:
        self._memory.add(text, user_id="bench", metadata={"key": key}, infer=False)

    def delete(self, key: str) -> None:
        for row in self._rows():
            if row["metadata"]["key"] == key:
                self._memory.delete(row["id"])

    def texts(self) -> list[str]:
        return [row["memory"] for row in self._rows()]

    def search(self, query: str) -> list[str]:
        found = self._memory.search(query, filters={"user_id": "bench"}, top_k=LIMIT)["results"]
        return [row["memory"] for row in found]

    def close(self) -> None:
        self._memory.vector_store.client.close()
        self._memory.close()

    def _rows(self) -> list[dict[str, Any]]:
        return list(self._memory.get_all(filters={"user_id": "bench"}, top_k=100_000)["results"])


class McpMemory:
    """The official memory server of the Model Context Protocol: entities with observations in one JSON file."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        environment = {**os.environ, "MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
        self._process = subprocess.Popen(
            ["node", str(MCP_SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
            text=True,
        )  # fmt: skip
        self._in, self._out = pipes(self._process)
        self._last = 0
        client = {"name": "bench", "version": "1"}
        self._ask("initialize", {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": client})
        self._send({"method": "notifications/initialized"})

    def add(self, key: str, text: str) -> None:
        self._call("create_entities", {"entities": [{"name": key, "entityType": "note", "observations": [text]}]})

    def delete(self, key: str) -> None:
        self._call("delete_entities", {"entityNames": [key]})

    def texts(self) -> list[str]:
        return self._observations(self._call("read_graph", {}))

    def search(self, query: str) -> list[str]:
        return self._observations(self._call("search_nodes", {"query": query}))

    def close(self) -> None:
        self._process.communicate()

    def _observations(self, text: str) -> list[str]:
        return [one for entity in json.loads(text)["entities"] for one in entity["observations"]]

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


SYSTEMS: dict[str, Callable[[Path, Embedder], System]] = {
    OURS: Ours,
    "chroma": Chroma,
    "langgraph": LangGraph,
    "mem0": Mem0,
    "mcp-memory": McpMemory,
}
# What a system does not promise, so that its figure is no broken promise.
NO_PROMISE: dict[tuple[str, str], str] = {
    ("chroma", "duplicates"): "ids are the caller's; equal texts are not compared",
    ("langgraph", "duplicates"): "keys are the caller's; equal texts are not compared",
    ("mem0", "duplicates"): "with infer=False nothing is compared",
    ("mcp-memory", "duplicates"): "only compares the names of entities",
    ("chroma", "stale"): "knows no newer and older",
    ("langgraph", "stale"): "knows no newer and older",
    ("mem0", "stale"): "needs a language model for it, which infer=False turns off",
    ("mcp-memory", "stale"): "knows no newer and older; lists in the order of storing",
    ("chroma", "unrelated"): "returns the nearest, however far",
    ("langgraph", "unrelated"): "returns the nearest, however far",
    ("mem0", "unrelated"): "returns the nearest above its default threshold",
    ("mcp-memory", "unrelated"): "finds the query only where it stands word for word",
    ("chroma", "deleted"): "promises that no query returns it, not that the bytes are gone",
    ("mem0", "deleted"): "promises that no query returns it; its history keeps the text of deletions",
    ("mcp-memory", "deleted"): "rewrites its file at each change",
    ("langgraph", "killed"): "keeps nothing on disk",
    ("chroma", "processes"): "its documentation calls it not safe for several processes",
    ("mem0", "processes"): "local Qdrant locks its folder for one process",
    ("mcp-memory", "processes"): "one server for each client, all on one file",
}


def available(name: str) -> bool:
    """Return whether a system is installed here."""
    modules = {"chroma": "chromadb", "langgraph": "langgraph.store.memory", "mem0": "mem0"}
    if name == "mcp-memory":
        return MCP_SERVER.is_file()
    words = [python_for(name), "-c", f"import {modules.get(name, 'memory_mesh')}"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    """Return the input and the output of a process."""
    if process.stdin is None or process.stdout is None:
        raise ValueError("the process has no pipes")
    return process.stdin, process.stdout


def python_for(name: str) -> str:
    """Return the interpreter that a system runs in: other systems have their own environment."""
    return str(_PEERS) if name != OURS and _PEERS.exists() else sys.executable


def embedder(name: str) -> Embedder:
    """Return the local model, or the embedder that hashes words and needs none."""
    return LocalEmbedder(model_paths(load({}))) if name == "local" else HashingEmbedder()
