"""A session for the OpenAI Agents SDK.

`Runner.run(agent, "Hello", session=MemoryMeshSession(mesh, "s1"))`
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memory_mesh.api.aio import to_thread
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.errors import whole_number
from memory_mesh.integrations import extra
from memory_mesh.integrations.transcript import Entry, Transcript

with extra("openai-agents"):
    from agents.memory import SessionSettings
    from agents.memory.session_settings import resolve_session_limit


class MemoryMeshSession:
    """The items of one conversation, stored as memories. Other sessions find them by searching.

    Items come back as they were, with their personal data; secrets are masked. The option
    `program_data_redaction` changes that.
    """

    session_settings: SessionSettings | None

    def __init__(
        self,
        mesh: Mesh,
        session_id: str,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        given = session_settings
        if given is None or isinstance(given, dict):  # a dict with an unknown key is a TypeError
            given = SessionSettings().resolve(given)
        self.session_settings = given
        self._transcript = Transcript(mesh, session_id, "openai-agents")

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items, oldest first; with a limit, the latest ones."""
        size = resolve_session_limit(limit, self.session_settings)
        if size is not None and whole_number("limit", size, min_=0) == 0:
            return []
        return await to_thread(self._transcript.values, size)

    async def add_items(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Store items, all or none, behind those of the session."""
        await to_thread(self._transcript.append, [_entry(item) for item in items])

    async def pop_item(self) -> Any | None:
        """Erase the latest item for good and return it; None if there is none."""
        return await to_thread(self._transcript.pop)

    async def clear_session(self) -> None:
        """Erase all items for good."""
        await to_thread(self._transcript.clear)


def _entry(item: Mapping[str, Any]) -> Entry:
    """Return the entry of an item: a message, a call of a tool, its output, or what else the
    model produced."""
    if "role" in item:
        return Entry(str(item["role"]), _text(item.get("content")), item)
    kind = str(item.get("type", "item"))
    if kind.endswith("_output"):
        return Entry("tool", _text(item.get("output")), item)
    return Entry(
        "assistant",
        f"calls {item['name']}({item.get('arguments', '')})" if "name" in item else f"({kind})",
        item,
    )


def _text(content: object) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    parts = content if isinstance(content, Sequence) else [content]
    texts = (
        str(part.get("text") or part.get("refusal") or f"({part.get('type', 'part')})")
        if isinstance(part, Mapping)
        else json.dumps(part, ensure_ascii=False, default=str)
        for part in parts
    )
    return "\n".join(texts)
