"""The systems whose hygiene is measured, and what they do not promise."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.hygiene.record import OURS
from bench.peers import (
    LIMIT,
    MCP_SERVER,
    ROOT,
    Chroma,
    Hit,
    LangGraph,
    McpMemory,
    Mem0,
    System,
    Text,
)
from memory_mesh import MemoryMesh
from memory_mesh.api.build import model_paths
from memory_mesh.api.settings import load
from memory_mesh.core.ports import Embedder
from memory_mesh.models import HashingEmbedder, LocalEmbedder

_PEERS = ROOT / ".venv-peers" / "bin" / "python"


class Ours:
    """memory-mesh on SQLite. Deletion is `erase`, as the command `delete` does it; search is in
    `precise` mode."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._mesh = MemoryMesh(
            f"sqlite:///{folder / 'memory.db'}", agent_id="bench", embedder=embedder
        )

    def add(self, items: Sequence[tuple[str, Text]]) -> None:
        for key, item in items:
            self._mesh.add(item.text, {**item.metadata, "name": key})

    def capture(self, session: str, messages: Sequence[tuple[str, str]]) -> None:
        said = [{"role": role, "content": text} for role, text in messages]
        self._mesh.lane.on_session_event("session.idle", said, session_id=session)

    def delete(self, key: str) -> None:
        for record in self._mesh.get_all():
            if record.metadata.get("name") == key:
                self._mesh.erase(record.id)

    def texts(self) -> list[str]:
        return [record.content for record in self._mesh.get_all()]

    def search(self, query: str) -> list[Hit]:
        return [
            Hit(result.id, result.content)
            for result in self._mesh.search(query, LIMIT, mode="precise")
        ]

    def close(self) -> None:
        self._mesh.close()


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
    ("chroma", "junk"): "stores what it is given",
    ("langgraph", "junk"): "stores what it is given",
    (
        "mem0",
        "junk",
    ): (
        "needs a language model to judge, which infer=False turns off; leaves out messages of "
        "the system"
    ),
    ("mcp-memory", "junk"): "stores what it is given",
    ("chroma", "stale"): "knows no newer and older",
    ("langgraph", "stale"): "knows no newer and older",
    ("mem0", "stale"): "needs a language model for it, which infer=False turns off",
    ("mcp-memory", "stale"): "knows no newer and older; lists in the order of storing",
    ("chroma", "unrelated"): "returns the nearest, however far",
    ("langgraph", "unrelated"): "returns the nearest, however far",
    ("mem0", "unrelated"): "returns the nearest above its default threshold",
    ("chroma", "deleted"): "promises that no query returns it, not that the bytes are gone",
    (
        "mem0",
        "deleted",
    ): "promises that no query returns it; its history keeps the text of deletions",
    ("mcp-memory", "deleted"): "rewrites its file at each change",
    ("mcp-memory", "killed"): "rewrites its file at each change",
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


def python_for(name: str) -> str:
    """Return the interpreter that a system runs in: other systems have their own environment."""
    return str(_PEERS) if name != OURS and _PEERS.exists() else sys.executable


def embedder(name: str) -> Embedder:
    """Return the local model, or the embedder that hashes words and needs none."""
    return LocalEmbedder(model_paths(load({}))) if name == "local" else HashingEmbedder()
