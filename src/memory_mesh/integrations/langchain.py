"""A retriever and a chat message history for LangChain."""

from collections.abc import Sequence
from typing import Any

from memory_mesh.api.aio import to_thread
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.model import Filter, SearchResult
from memory_mesh.integrations import extra
from memory_mesh.integrations.transcript import Entry, Transcript

with extra("langchain"):
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
    from langchain_core.retrievers import BaseRetriever

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "HumanMessageChunk": "user",
}


class MemoryMeshRetriever(BaseRetriever):
    """Retrieves the memories that answer a query, highest score first, at most `k`:
    `MemoryMeshRetriever(mesh=mesh, k=4)`, and for one query `retriever.invoke(query, k=8)`.

    By default what is probably irrelevant is left out; `mode="recall"` leaves out very little.
    """

    mesh: Any
    k: int = 4
    filter: Filter | None = None
    mode: str = "precise"

    def _get_relevant_documents(
        self, query: str, *, run_manager: object, k: int | None = None
    ) -> list[Document]:
        limit = self.k if k is None else k
        found = self.mesh.search(query, limit=limit, filter=self.filter, mode=self.mode)
        return [_document(result) for result in found]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: object, k: int | None = None
    ) -> list[Document]:
        return await to_thread(self._get_relevant_documents, query, run_manager=run_manager, k=k)


def _document(result: SearchResult) -> Document:
    metadata = {**result.metadata, "score": result.score, "created_at": result.created_at}
    return Document(page_content=result.content, metadata=metadata, id=result.id)


class MemoryMeshChatHistory(BaseChatMessageHistory):
    """The messages of one session, stored as memories: `MemoryMeshChatHistory(mesh, "session 1")`.

    Other sessions find them by searching. They come back as they were, with their personal data;
    secrets are masked. The option `program_data_redaction` changes that.
    """

    def __init__(self, mesh: Mesh, session_id: str) -> None:
        self._transcript = Transcript(mesh, session_id, "langchain")

    @property
    def messages(self) -> list[BaseMessage]:
        """The messages, oldest first."""
        return list(messages_from_dict(self._transcript.values()))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages, all or none, behind those of the session."""
        self._transcript.append([_entry(message) for message in messages])

    def clear(self) -> None:
        """Erase the messages of the session for good."""
        self._transcript.clear()

    async def aget_messages(self) -> list[BaseMessage]:
        return await to_thread(lambda: self.messages)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        await to_thread(self.add_messages, messages)

    async def aclear(self) -> None:
        await to_thread(self.clear)


def _entry(message: BaseMessage) -> Entry:
    calls = ", ".join(f"calls {call['name']}" for call in getattr(message, "tool_calls", ()))
    return Entry(
        _ROLES.get(message.type, message.type), str(message.text) or calls, message_to_dict(message)
    )
