"""The transcript of a session as LangChain and the OpenAI Agents SDK store it and read it back.

Each entry is a memory: its text is found by every search, and the object of the library is in its
metadata.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.model import MemoryRecord

_ROLES = ("user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its author, its text, and the object that the library gets back."""

    role: str
    text: str
    value: Mapping[str, Any]


class Transcript:
    """The entries that one library stored in a session, oldest first."""

    def __init__(self, mesh: Mesh, session_id: str, library: str) -> None:
        self._mesh, self._library = mesh.scoped(session_id=session_id), library
        self._filter = {"session_id": session_id, "transcript_of": library}

    def append(self, entries: Sequence[Entry]) -> None:
        """Store entries, all or none, as the next turns of the session."""
        if entries:
            self._mesh.add_many([self._message(entry) for entry in entries])

    def values(self, limit: int | None = None) -> list[Any]:
        """Return the objects of the library, oldest first; with a limit, the latest ones."""
        return [record.metadata["value"] for record in self._records(limit)]

    def pop(self) -> Any | None:
        """Erase the latest entry for good and return its object; None if there is none."""
        records = self._records(1)
        for record in records:
            self._mesh.delete(record.id)
        return records[0].metadata["value"] if records else None

    def clear(self) -> None:
        """Erase all entries for good."""
        for record in self._records():
            self._mesh.delete(record.id)

    def _message(self, entry: Entry) -> dict[str, object]:
        # Each message stands alone, not in a list: a list is compared with the stored turns, and
        # what it repeats is left out.
        role = entry.role if entry.role in _ROLES else "assistant"
        name = {} if role == entry.role else {"name": entry.role}
        metadata = {"transcript_of": self._library, "value": dict(entry.value)}
        return {
            "role": role,
            "content": entry.text or f"({entry.role})",
            "metadata": metadata,
            **name,
        }

    def _records(self, limit: int | None = None) -> list[MemoryRecord]:
        return sorted(
            self._mesh.get_all(limit, filter=self._filter), key=lambda record: record.turn or 0
        )
