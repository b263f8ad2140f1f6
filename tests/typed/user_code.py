"""A program as a user writes it. `make lint` checks it with mypy --strict;
`tests/faces/test_mesh_messages.py` runs it."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import TypedDict

from memory_mesh import AsyncMemoryMesh, MemoryMesh, MemoryRecord


class ChatMessage(TypedDict):
    role: str
    content: str


class LibraryMessage:
    """A message object such as libraries have; theirs are pydantic models."""

    def __init__(self, type_: str, content: str) -> None:
        self.type, self.content = type_, content

    def model_dump(self, *, exclude_none: bool = False) -> dict[str, object]:
        return {"type": self.type, "content": self.content}


def remember(mesh: MemoryMesh) -> list[MemoryRecord]:
    own: dict[str, str] = {"source": "chat"}
    message: dict[str, str] = {"role": "user", "content": "I moved to Lisbon."}
    history: list[dict[str, str]] = [message, {"role": "assistant", "content": "Noted."}]
    typed: Sequence[ChatMessage] = [{"role": "user", "content": "I like tea."}]
    objects = [LibraryMessage("human", "Is it late?"), LibraryMessage("ai", "It is noon.")]
    one: MemoryRecord = mesh.add("The ferry leaves at noon.", own)
    another: MemoryRecord = mesh.add(message)
    plain: MemoryRecord = mesh.add(
        {"content": "Tea is at four."}, {"event_time": datetime(2026, 3, 1, 16, tzinfo=UTC)}
    )
    turns: list[MemoryRecord] = mesh.add(history, {"session_id": "first"})
    more: list[MemoryRecord] = mesh.ingest(typed, own)
    spoken: list[MemoryRecord] = mesh.add(objects)
    texts: list[MemoryRecord] = mesh.add_many(
        ["a text", ("a text with a tag", {"tags": ["x"]}), ("another", None), message]
    )
    pairs: list[tuple[str, dict[str, str]]] = [("the last", own)]
    rest: list[MemoryRecord] = mesh.add_many(pairs, {"event_time": date(2026, 3, 1)})
    mesh.update(one.id, metadata=own)
    return [one, another, plain, *turns, *more, *spoken, *texts, *rest]


async def remember_later(
    mesh: AsyncMemoryMesh, history: list[dict[str, str]]
) -> tuple[MemoryRecord, list[MemoryRecord]]:
    return await mesh.add("The ferry leaves at noon."), await mesh.add(history)
