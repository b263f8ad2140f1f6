"""The transcript of a session as LangChain and the OpenAI Agents SDK store it and read it back.

Each entry is a memory: its text is found by every search, and the object of the library is in its
metadata. It comes back as it was, also if an equal one is stored, except for masked secrets.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from memory_mesh.api.handle import for_program_data
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.errors import InvalidInput, NotFound
from memory_mesh.core.intake import Limits, read_metadata
from memory_mesh.core.model import MemoryRecord, Status
from memory_mesh.core.text import is_blank

_ROLES = ("user", "assistant", "tool")
_MAX_TEXT = 100_000  # characters of an entry that searches read
# Also what was archived: a session has all its entries until they are erased.
_READ = tuple(status for status in Status if status is not Status.QUARANTINED)
_JSON = "$json"  # the key of a value that metadata cannot hold, such as a text with NUL
_ANY_SIZE = Limits(metadata_bytes=2**60)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its author, its text, and the object that the library gets back."""

    role: str
    text: str
    value: Mapping[str, Any]


class Transcript:
    """The entries that one library stored in a session, oldest first."""

    def __init__(self, mesh: Mesh, session_id: str, library: str) -> None:
        self._mesh, self._library = for_program_data(mesh.scoped(session_id=session_id)), library
        self._filter = {"session_id": session_id, "transcript_of": library}

    def append(self, entries: Sequence[Entry]) -> None:
        """Store entries, all or none, as the next turns of the session."""
        if entries:
            self._mesh.add_many([self._message(entry) for entry in entries], deduplicate=False)

    def values(self, limit: int | None = None) -> list[Any]:
        """Return the objects of the library, oldest first; with a limit, the latest ones."""
        records = self._records() if limit is None else self._latest(limit)
        return [_decoded(record.metadata["value"]) for record in records]

    def pop(self) -> Any | None:
        """Erase the latest entry for good and return its object; None if there is none."""
        while records := self._latest(1):
            with suppress(NotFound):  # another process has just erased it
                self._mesh.delete(records[0].id)
                return _decoded(records[0].metadata["value"])
        return None

    def clear(self) -> None:
        """Erase all entries for good."""
        for record in self._records(statuses=tuple(Status)):
            with suppress(NotFound):
                self._mesh.delete(record.id)

    def _message(self, entry: Entry) -> dict[str, object]:
        role = entry.role if entry.role in _ROLES else "assistant"
        name = {} if role == entry.role else {"name": entry.role}
        text = entry.text[:_MAX_TEXT].replace("\0", " ").encode(errors="replace").decode()
        metadata = {"transcript_of": self._library, "value": _encoded(dict(entry.value))}
        return {
            "role": role,
            "content": f"({entry.role})" if is_blank(text) else text,
            "metadata": metadata,
            **name,
        }

    def _latest(self, limit: int) -> list[MemoryRecord]:
        """Return the entries with the highest numbers. The clocks of two writers may differ, so
        the newest one only says about how high these are."""
        if limit == 0 or not (newest := self._records(limit=1)):
            return []
        start = (newest[0].turn or 0) - limit
        records = self._records({"turn": {"$gt": start}})
        is_complete = len(records) >= limit or start < 0
        return (records if is_complete else self._records())[-limit:]

    def _records(
        self, where: Mapping[str, object] | None = None, *, limit: int | None = None,
        statuses: Sequence[str] = _READ,
    ) -> list[MemoryRecord]:  # fmt: skip
        filter_ = {**self._filter, **(where or {})}
        records = self._mesh.get_all(limit, filter=filter_, status=statuses)
        return sorted(records, key=lambda record: (record.turn or 0, record.created_at))


def _encoded(value: Any) -> Any:
    """Return a value with JSON texts for those parts that metadata cannot hold: a large number,
    half a surrogate pair, a key such as `constructor`."""
    if isinstance(value, list | tuple):
        return [_encoded(part) for part in value]
    if isinstance(value, Mapping):
        parts = {key: _encoded(part) for key, part in value.items()}
        return parts if _fits(dict.fromkeys(parts)) and _JSON not in parts else _as_json(value)
    plain = not isinstance(value, str | int | float) or _fits({"value": value})
    return value if plain else _as_json(value)


def _fits(metadata: Mapping[Any, object]) -> bool:
    try:
        read_metadata(metadata, _ANY_SIZE)
    except InvalidInput:
        return False
    return True


def _as_json(value: object) -> dict[str, object]:
    return {_JSON: json.dumps(value)}


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(part) for part in value]
    if not isinstance(value, dict):
        return value
    if [*value] == [_JSON]:
        with suppress(ValueError):  # masking may have left no JSON
            return json.loads(value[_JSON])
    return {key: _decoded(part) for key, part in value.items()}
