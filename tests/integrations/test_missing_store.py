"""Agents read before they store: an adapter over a store that does not exist finds nothing and
creates nothing."""

import asyncio
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh

pytestmark = pytest.mark.deep


def test_an_adapter_of_a_store_that_does_not_exist_finds_nothing_and_creates_nothing(
    tmp_path: Path,
) -> None:
    from memory_mesh.integrations.langchain import MemoryMeshChatHistory, MemoryMeshRetriever
    from memory_mesh.integrations.langgraph import MemoryMeshStore
    from memory_mesh.integrations.mem0 import Memory
    from memory_mesh.integrations.openai_agents import MemoryMeshSession

    def read(mesh: MemoryMesh) -> list[object]:
        return [
            MemoryMeshStore(mesh).search(("a",), query="tea"),
            MemoryMeshStore(mesh).get(("a",), "k"),
            MemoryMeshRetriever(mesh=mesh).invoke("tea"),
            MemoryMeshChatHistory(mesh, "s").messages,
            asyncio.run(MemoryMeshSession(mesh, "s").get_items()),
            Memory(mesh).search("tea", filters={"user_id": "u"})["results"],
        ]

    folder = tmp_path / "deep"
    with MemoryMesh(folder / "new.db", embedder="hash") as mesh:
        assert read(mesh) == [[], None, [], [], [], []]
        assert not folder.exists()
        MemoryMeshStore(mesh).put(("a",), "k", {"text": "Ana likes tea"})
        assert folder.is_dir()
        assert read(mesh)[1]
