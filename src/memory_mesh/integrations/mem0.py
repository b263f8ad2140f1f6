"""The calls of mem0's `Memory` over a mesh.

`Memory(mesh).add("Ana likes tea.", user_id="ana", infer=False)` Users, agents and runs are those of
the mesh, so the memories of a user are never shown to another one. An id that is returned also
names the user, since mem0 reads, changes and deletes a memory by its id alone.
"""

from collections.abc import Mapping, Sequence
from hashlib import md5
from typing import Any
from urllib.parse import quote, unquote

from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.errors import InvalidInput, NotFound, shown
from memory_mesh.core.model import Filter, MemoryRecord, SearchResult, Status
from memory_mesh.core.options import Options

_SCOPES = {"user_id": "user_id", "agent_id": "agent_id", "run_id": "session_id"}
# Metadata of ours, and metadata that is a field of its own in a result.
_NOT_SHOWN = ("role", "speaker", "turn", "provenance", "session_id", "expires_at")
_NO_SCOPE = "at least one of user_id, agent_id and run_id"
_DEFAULT_AGENT = Options().agent_id


class Memory:
    """A mesh with the methods and results of mem0's `Memory`. What it stores is visible to every
    agent of the user."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self._users: set[str] = set()

    def add(
        self, messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]], *,
        user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None, expiration_date: str | None = None,
        infer: bool = True,
    ) -> dict[str, Any]:  # fmt: skip
        """Store a text, or each message of a conversation.

        With `infer`, the language model of the mesh extracts memories; without a model the text is
        stored as it is.
        """
        handle = self._handle(user_id, agent_id, run_id)
        items = _messages(messages)
        stored = {
            **(metadata or {}),
            **({"expires_at": expiration_date} if expiration_date else {}),
        }
        records = (
            handle.extract(_text(items), metadata=stored).memories
            if infer
            else handle.add_many(items, stored)
        )
        return {
            "results": [
                {**_named(one), "event": "ADD", "actor_id": _actor(one), "role": _role(one)}
                for one in records
            ]
        }

    def search(
        self,
        query: str,
        *,
        top_k: int = 20,
        filters: Mapping[str, Any] | None = None,
        threshold: float = 0.1,
    ) -> dict[str, Any]:
        """Return the memories that answer a query, highest score first; `filters` names at least
        a user, an agent or a run."""
        handle, where = self._filtered(filters)
        return {
            "results": [
                _shown(hit, score=True)
                for hit in handle.search(query, top_k, where, min_score=threshold)
            ]
        }

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return one memory; None if there is none."""
        handle, id_ = self._owned(memory_id)
        record = handle.get(id_)
        return None if record is None else _shown(record, score=True)

    def get_all(
        self, *, filters: Mapping[str, Any] | None = None, top_k: int = 20
    ) -> dict[str, Any]:
        """Return the memories of a user, an agent or a run, newest first."""
        handle, where = self._filtered(filters)
        return {"results": [_shown(record) for record in handle.get_all(top_k, filter=where)]}

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change the text or the metadata of a memory; the old text stays in its history. `data`
        is an older name of `text`."""
        handle, id_ = self._owned(memory_id)
        handle.update(id_, content=data if text is None else text, metadata=metadata)
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Erase a memory and its history for good."""
        handle, id_ = self._owned(memory_id)
        if handle.get(id_) is None:
            raise NotFound(f"there is no memory {memory_id}")
        handle.delete(id_)
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:  # fmt: skip
        """Erase all memories of a user, an agent or a run for good."""
        handle = self._handle(user_id, agent_id, run_id)
        handle.forget(user_id=user_id, agent_id=agent_id, session_id=run_id)
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return what changed the text of a memory, oldest first."""
        handle, id_ = self._owned(memory_id)
        changes, record = handle.history(id_), handle.get(id_)
        text, listed = record.content if record else None, list[dict[str, Any]]()
        for change in reversed(changes):
            if change.number == 1 or "content" in change.before:
                old = change.before.get("content")
                event = {
                    "event": "UPDATE" if change.number > 1 else "ADD",
                    "old_memory": old,
                    "new_memory": text,
                }
                times = {"created_at": change.created_at, "updated_at": change.created_at}
                about = {
                    "is_deleted": False,
                    "actor_id": record and _actor(record),
                    "role": record and _role(record),
                }
                listed.append({"id": change.id, "memory_id": memory_id, **event, **times, **about})
                text = None if old is None else str(old)
        return listed[::-1]

    def reset(self) -> None:
        """Erase the memories of the users that this object was used for, and those of the mesh's
        own user, for good."""
        for user in sorted(self._users):
            self._mesh.scoped(user_id=user).forget(user_id=user)
        for record in self._mesh.get_all(status=tuple(Status)):
            self._mesh.delete(record.id)

    def _handle(self, user_id: str | None, agent_id: str | None, run_id: str | None) -> Mesh:
        if not (user_id or agent_id or run_id):
            raise InvalidInput("no scope is given", expected=_NO_SCOPE)
        return self._of_user(user_id).scoped(agent_id=agent_id, session_id=run_id)

    def _of_user(self, user_id: str | None) -> Mesh:
        if user_id is None:
            return self._mesh
        handle = self._mesh.scoped(user_id=user_id)
        self._users.add(user_id)
        return handle

    def _filtered(self, filters: Mapping[str, Any] | None) -> tuple[Mesh, Filter]:
        """Return the handle of the user that filters name, and the filter of the rest."""
        given = {_SCOPES.get(name, name): value for name, value in (filters or {}).items()}
        if not given.keys() & {*_SCOPES.values()}:
            raise InvalidInput("the filters name no scope", expected=_NO_SCOPE)
        return self._of_user(given.pop("user_id", None)), given

    def _owned(self, memory_id: str) -> tuple[Mesh, str]:
        if not isinstance(memory_id, str):
            raise InvalidInput(
                f"memory_id is {shown(memory_id)}", expected="an id that this object returned"
            )
        user, at, id_ = memory_id.partition("@")
        return (self._of_user(unquote(user)), id_) if at else (self._mesh, memory_id)


def _messages(given: object) -> list[dict[str, Any]]:
    """Return what is to be stored as messages. Raises `InvalidInput` if it is neither a text nor
    messages."""
    listed = given if isinstance(given, list | tuple) else [given]
    messages: list[Any] = [
        {"role": "user", "content": one} if isinstance(one, str) else one for one in listed
    ]
    for one in messages:
        if not isinstance(one, Mapping):
            raise InvalidInput(
                f"messages has {shown(one)}",
                expected='a text, or messages such as {"role": "user", "content": "…"}',
            )
    return [dict(one) for one in messages]


def _text(messages: Sequence[Mapping[str, Any]]) -> str:
    if len(messages) == 1:
        return str(messages[0].get("content", ""))
    lines = [
        (one.get("name") or one.get("role", "user"), one.get("content", "")) for one in messages
    ]
    return "\n".join(f"{author}: {text}" for author, text in lines if author != "system")


def _named(record: MemoryRecord) -> dict[str, Any]:
    return {
        "id": f"{quote(record.user_id, safe='')}@{record.id}" if record.user_id else record.id,
        "memory": record.content,
    }


def _role(record: MemoryRecord) -> object:
    return record.metadata.get("role")


def _actor(record: MemoryRecord) -> str | None:
    return None if record.speaker == _role(record) else record.speaker


def _shown(record: MemoryRecord, *, score: bool = False) -> dict[str, Any]:
    agent = None if record.agent_id == _DEFAULT_AGENT else record.agent_id
    names = {"user_id": record.user_id, "agent_id": agent, "run_id": record.session_id}
    optional = {
        **names,
        "actor_id": _actor(record),
        "role": _role(record),
        "expiration_date": record.expires_at,
    }
    return {
        **_named(record),
        "hash": md5(record.content.encode(), usedforsecurity=False).hexdigest(),
        "metadata": {
            name: value for name, value in record.metadata.items() if name not in _NOT_SHOWN
        }
        or None,
        **({"score": record.score if isinstance(record, SearchResult) else None} if score else {}),
        "created_at": record.created_at,
        "updated_at": record.updated_at,
        **{name: value for name, value in optional.items() if value is not None},
    }
