"""The calls of mem0's `Memory` and `AsyncMemory` over a mesh.

`Memory().add("Ana likes tea.", user_id="ana", infer=False)` Users, agents and runs are those of
the mesh, so the memories of a user are never shown to another one. An id that is returned also
names the user, since mem0 reads, changes and deletes a memory by its id alone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from hashlib import md5
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, unquote

from memory_mesh.api.aio import awaited, to_thread
from memory_mesh.api.mesh import MemoryMesh
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core import errors
from memory_mesh.core.errors import InvalidFilter, InvalidInput, shown
from memory_mesh.core.intake import read_items
from memory_mesh.core.model import Filter, MemoryRecord, SearchResult, Status
from memory_mesh.core.options import Options

_SCOPES = {"user_id": "user_id", "agent_id": "agent_id", "run_id": "session_id"}
# Metadata of ours, and metadata that is a field of its own in a result.
_NOT_SHOWN = ("role", "speaker", "turn", "provenance", "session_id", "expires_at")
_NO_SCOPE = "at least one of user_id, agent_id and run_id"
_DEFAULT_AGENT = Options().agent_id
_PROCEDURAL = "procedural_memory"
_KEPT: Any = object()  # an argument that is not given, where None has a meaning
_DAY, _MOMENT = timedelta(days=1), timedelta(milliseconds=1)
_MAX_LIMIT = 10_000  # of a search
# The options that sections of a configuration of mem0 set, and the parts that mean nothing here.
_SECTIONS = {
    "llm": ("llm_provider", "llm_model", "llm_api_key", "llm_base_url"),
    "embedder": ("embedder", "embedding_model", "embedding_api_key", "embedding_url"),
}
_UNUSED = ("history_db_path", "reranker", "version", "custom_instructions")
_OPPOSITE = {
    "eq": "ne", "ne": "eq", "in": "nin", "nin": "in", "gt": "lte", "lte": "gt", "gte": "lt",
    "lt": "gte",
}  # fmt: skip
_FORMS: dict[str, Callable[[str], str]] = {"contains": str, "icontains": str.casefold}
_Values = Callable[[str], Iterable[str]]


class Memory:
    """A mesh with the methods and results of mem0's `Memory`. What it stores is visible to every
    agent of the user. Without a mesh it opens that of the settings."""

    def __init__(self, mesh: Mesh | None = None) -> None:
        self._mesh = MemoryMesh() if mesh is None else mesh
        self._users: set[str] = set()

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Open the mesh of a configuration of mem0, or of options of `MemoryMesh`.

        Of `vector_store` the path or the connection string of PostgreSQL is used, of `llm` and
        `embedder` the provider, the model, the key and the address.
        """
        return cls(MemoryMesh(**_options(config_dict)))

    def close(self) -> None:
        """Close the mesh. The next call opens it again."""
        self._mesh.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(
        self, messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]], *,
        user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None, timestamp: None = None,
        expiration_date: str | date | None = None, infer: bool = True,
        memory_type: str | None = None, prompt: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Store a text, or each message of a conversation.

        With `infer`, the language model of the mesh extracts memories; without a model all is
        stored as it is. A text that is stored already is counted as observed again: its event is
        NONE. `prompt` is accepted and not used.
        """
        _check_unsupported("timestamp", timestamp)
        if memory_type not in (None, _PROCEDURAL):
            raise InvalidInput(f"memory_type is {shown(memory_type)}", expected=_PROCEDURAL)
        scope = _scope({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        user, agent, run = map(scope.get, _SCOPES)
        handle = self._of_user(user).scoped(agent_id=agent, session_id=run)
        stored = _metadata(metadata, _KEPT if expiration_date is None else expiration_date)
        stored |= {"memory_type": memory_type} if memory_type and agent else {}
        # Raises what is wrong before anything is stored.
        items = [one for one in _items(messages) if read_items([one], stored)]
        records: Sequence[MemoryRecord]
        if infer and items and handle._context().models.chat:
            records = handle.extract(_text(items), metadata=stored).memories
        elif isinstance(messages, str):
            records = [handle.add(messages, {**stored, "role": "user"})]
        else:  # one by one: of a list, the mesh leaves out what repeats stored turns
            records = [handle.add(message, stored) for message in items]
        events = ("ADD" if record.times_observed == 1 else "NONE" for record in records)
        return {
            "results": [
                {**_named(one), "event": event, "actor_id": _actor(one), "role": _role(one)}
                for one, event in zip(records, events, strict=True)
            ]
        }

    def search(
        self, query: str, *, top_k: int = 20, filters: Mapping[str, Any] | None = None,
        threshold: float | None = 0.1, rerank: bool = False, explain: bool = False,
        reference_date: None = None, show_expired: bool = False, user_id: str | None = None,
        agent_id: str | None = None, run_id: str | None = None, limit: int | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Return the memories that answer a query, highest score first.

        A user, an agent or a run is named by `filters`, or by itself as in mem0 1; `limit` is an
        older name of `top_k`. Results are always ranked by the mesh: `rerank` changes nothing.
        With `explain`, `score_details` has the score of each channel.
        """
        _check_unsupported("reference_date", reference_date)
        size = min(_size(top_k, limit, show_expired), _MAX_LIMIT)
        lowest = errors.fraction("threshold", 0.1 if threshold is None else threshold)
        handle, where = self._filtered(
            filters, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        )
        if not size:
            return {"results": []}
        if not explain:
            hits = handle.search(query, size, where, min_score=lowest)
            return {"results": [_shown(hit, score=True) for hit in hits]}
        results = []
        for one in handle.explain(query, size, where, min_score=lowest).answers:
            details = {name: placing.score for name, placing in one.channels.items()}
            details |= {"final_score": one.result.score, "threshold": lowest}
            results.append({**_shown(one.result, score=True), "score_details": details})
        return {"results": results}

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return one memory; None if there is none."""
        handle, id_ = self._owned(memory_id)
        record = handle.get(id_)
        return None if record is None else _shown(record, score=True)

    def get_all(
        self, *, filters: Mapping[str, Any] | None = None, top_k: int = 20,
        show_expired: bool = False, user_id: str | None = None, agent_id: str | None = None,
        run_id: str | None = None, limit: int | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Return the memories of a user, an agent or a run, newest first. These are named as in
        `search`."""
        size = _size(top_k, limit, show_expired)
        handle, where = self._filtered(
            filters, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        )
        records = handle.get_all(size if 0 < size <= _MAX_LIMIT else None, filter=where)
        return {"results": [_shown(record) for record in records[:size]]}

    def update(
        self, memory_id: str, text: str | None = None, metadata: Mapping[str, Any] | None = None,
        expiration_date: str | date | None = _KEPT, data: str | None = None,
    ) -> dict[str, str]:  # fmt: skip
        """Change the text, the metadata or the expiry of a memory; the old text stays in its
        history. An expiry of None removes it. `data` is an older name of `text`."""
        handle, id_ = self._owned(memory_id, must_exist=True)
        content = data if text is None else text
        if content is None and metadata is None and expiration_date is _KEPT:
            raise InvalidInput(
                "nothing to change is given", expected="text, metadata or expiration_date"
            )
        handle.update(id_, content=content, metadata=_metadata(metadata, expiration_date))
        return {"message": "Memory updated successfully!"}

    def delete(self, memory_id: str) -> dict[str, str]:
        """Erase a memory and its history for good."""
        handle, id_ = self._owned(memory_id, must_exist=True)
        handle.delete(id_)
        return {"message": "Memory deleted successfully!"}

    def delete_all(
        self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
    ) -> dict[str, str]:  # fmt: skip
        """Erase all memories of a user, an agent or a run for good."""
        scope = _scope({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        user, agent, run = map(scope.get, _SCOPES)
        self._of_user(user).forget(user_id=user, agent_id=agent, session_id=run)
        return {"message": "Memories deleted successfully!"}

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return what changed the text of a memory, oldest first; nothing if there is none."""
        handle, id_ = self._owned(memory_id)
        record = handle.get(id_)
        if record is None:
            return []
        text: str | None = record.content
        listed = list[dict[str, Any]]()
        about = {"is_deleted": False, "actor_id": _actor(record), "role": _role(record)}
        for change in reversed(handle.history(id_)):
            if change.number == 1 or "content" in change.before:
                old, at = change.before.get("content"), change.created_at
                event = "UPDATE" if change.number > 1 else "ADD"
                listed.append(
                    {
                        "id": change.id, "memory_id": memory_id, "event": event,
                        "old_memory": old, "new_memory": text, "created_at": at,
                        "updated_at": at, **about,
                    }
                )  # fmt: skip
                text = None if old is None else str(old)
        return listed[::-1]

    def reset(self) -> None:
        """Erase the memories of the users that this object was used for, and those of the mesh's
        own user, for good."""
        for user in sorted(self._users):
            self._mesh.scoped(user_id=user).forget(user_id=user)
        for record in self._mesh.get_all(status=tuple(Status)):
            self._mesh.delete(record.id)

    def _of_user(self, user_id: str | None) -> Mesh:
        if user_id is None:
            return self._mesh
        handle = self._mesh.scoped(user_id=user_id)
        self._users.add(user_id)
        return handle

    def _filtered(
        self, filters: Mapping[str, Any] | None, names: Mapping[str, str | None]
    ) -> tuple[Mesh, Filter]:
        """Return the handle of the user that is named, and the filter of the rest."""
        if not isinstance(filters, Mapping | None):
            raise InvalidFilter(f"filters is {shown(filters)}", expected="a mapping")
        given = dict(filters or {})
        for name, value in names.items():
            if value not in (None, given.setdefault(name, value)):
                raise InvalidInput(f"{name} and filters differ", expected="one of them")
        scope = _scope({name: given.pop(name, None) for name in _SCOPES})
        handle = self._of_user(scope.pop("user_id", None))

        def values(name: str) -> Iterable[str]:
            for one in handle.get_all(filter={name: {"$ne": None}}):
                value = one.metadata.get(name, getattr(one, name, None))
                yield from map(str, value if isinstance(value, list) else [value])

        return handle, _where({**scope, **given}, values)

    def _owned(self, memory_id: str, *, must_exist: bool = False) -> tuple[Mesh, str]:
        if not isinstance(memory_id, str):
            raise InvalidInput(
                f"memory_id is {shown(memory_id)}", expected="an id that this object returned"
            )
        user, at, id_ = memory_id.partition("@")
        handle = self._of_user(unquote(user)) if at else self._mesh
        if must_exist and handle.get(id_) is None:
            raise InvalidInput(f"there is no memory {memory_id}")
        return handle, id_


class AsyncMemory:
    """`Memory` for `async` code: the same methods, awaited."""

    def __init__(self, mesh: Mesh | None = None) -> None:
        self._face = Memory(mesh)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Call `Memory.from_config`. Like `close`, it is not awaited in mem0."""
        return cls(MemoryMesh(**_options(config_dict)))

    def close(self) -> None:
        """Close the mesh. The next call opens it again."""
        self._face.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await to_thread(self._face.close)

    add = awaited(Memory.add)
    search = awaited(Memory.search)
    get = awaited(Memory.get)
    get_all = awaited(Memory.get_all)
    update = awaited(Memory.update)
    delete = awaited(Memory.delete)
    delete_all = awaited(Memory.delete_all)
    history = awaited(Memory.history)
    reset = awaited(Memory.reset)


# --- arguments ---


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `MemoryMesh` for a configuration of mem0."""
    if not isinstance(given, Mapping):
        raise InvalidInput(f"config_dict is {shown(given)}", expected="a mapping")
    options = {name: value for name, value in given.items() if name not in _UNUSED}
    for section, names in _SECTIONS.items():
        if isinstance(part := options.get(section), Mapping):
            config = part.get("config") or {}
            url = next((one for name, one in config.items() if name.endswith("base_url")), None)
            values = part.get("provider", "openai"), config.get("model"), config.get("api_key"), url
            del options[section]
            options |= zip(names, values, strict=True)
    store = (options.pop("vector_store", None) or {}).get("config") or {}
    if text := store.get("connection_string"):
        options["store"] = text
    elif path := store.get("path"):
        options["store"] = str(Path(path) / f"{store.get('collection_name', 'mem0')}.db")
    elif store.keys() & {"host", "url"}:
        raise InvalidInput(
            "vector_store is a server", expected='a path, a connection_string, or {"store": …}'
        )
    return options


def _scope(given: Mapping[str, object]) -> dict[str, str]:
    """Return the users, agents and runs that are given. Numbers are taken as texts."""
    named = {name: value for name, value in given.items() if value is not None}
    if not named:
        raise InvalidInput("no scope is given", expected=_NO_SCOPE)
    for name, value in named.items():
        is_id = isinstance(value, str | int) and not isinstance(value, bool)
        if not is_id or len(str(value).split()) != 1 or value == "*":
            raise InvalidInput(f"{name} is {shown(value)}", expected="one id without spaces")
    return {name: str(value).strip() for name, value in named.items()}


def _check_unsupported(name: str, value: object) -> None:
    if value is not None:
        raise InvalidInput(f"{name} is {shown(value)}", expected="only mem0's platform takes it")


def _size(top_k: object, limit: object, show_expired: object) -> int:
    if show_expired:
        raise InvalidInput("show_expired is set", expected="False: what has expired is never shown")
    return errors.whole_number("top_k", top_k if limit is None else limit, min_=0)


def _metadata(given: Mapping[str, Any] | None, expires: object) -> dict[str, Any]:
    """Return the metadata to store. Like mem0, it cannot set the scope."""
    metadata = {
        name: value for name, value in (given or {}).items() if name not in (*_SCOPES, "actor_id")
    }
    if expires is _KEPT or expires is None:
        return metadata if expires is _KEPT else {**metadata, "expires_at": None}
    try:
        day = expires.date() if isinstance(expires, datetime) else expires
        end = date.fromisoformat(str(day)) + _DAY  # that day still belongs to it
    except (ValueError, OverflowError):
        expected = "a date, YYYY-MM-DD"
        raise InvalidInput(f"expiration_date is {shown(expires)}", expected=expected) from None
    return {**metadata, "expires_at": f"{end}T00:00:00Z"}


def _items(given: object) -> list[dict[str, Any]]:
    """Return what is to be stored as messages; those without role or content are left out. Raises
    `InvalidInput` if it is neither a text nor messages."""
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
    return [dict(one) for one in messages if one.get("role") and one.get("content") is not None]


def _text(messages: Sequence[Mapping[str, Any]]) -> str:
    if len(messages) == 1:
        return str(messages[0]["content"])
    return "\n".join(f"{one.get('name') or one['role']}: {one['content']}" for one in messages)


# --- filters ---


def _where(filters: object, values: _Values, *, negated: bool = False) -> dict[str, Any]:
    """Return the filter of the mesh for one of mem0, or for its opposite. A condition with `ne`,
    `nin` or NOT is also met by what lacks the field."""
    if not isinstance(filters, Mapping):
        raise InvalidFilter(f"a condition is {shown(filters)}", expected="a mapping")
    parts = list[dict[str, Any]]()
    for key, value in filters.items():
        join = key[1:].upper() if str(key).startswith("$") else key
        if join not in ("AND", "OR", "NOT"):
            given = {"ne": None} if value == "*" else value
            given = given if isinstance(given, Mapping) else {"eq": given}
            leaves = [_leaf(str(key), one, values, negated=negated) for one in given.items()]
            parts.append({"$or" if negated else "$and": leaves})
        elif not isinstance(value, list | tuple) or not (value or join == "AND"):
            raise InvalidFilter(f"{key} is {shown(value)}", expected="a list of conditions")
        elif value:
            inner = [_where(one, values, negated=negated != (join == "NOT")) for one in value]
            parts.append({"$and" if negated != (join != "OR") else "$or": inner})
    return {"$or" if negated else "$and": parts} if parts else {}


def _leaf(
    key: str, condition: tuple[object, Any], values: _Values, *, negated: bool
) -> dict[str, Any]:
    name, operand = {**_SCOPES, "actor_id": "speaker"}.get(key, key), condition[1]
    operator = str(condition[0]).removeprefix("$")
    if operator in _FORMS and isinstance(operand, str):
        form = _FORMS[operator]
        found = sorted({value for value in values(name) if form(operand) in form(value)})
        # What no value contains is no value itself.
        operator, operand = "in", found or [operand]
    if operator not in _OPPOSITE:
        raise InvalidFilter(
            f"unknown operator {shown(condition[0])} of {key}",
            expected=f"one of {', '.join([*_OPPOSITE, *_FORMS])}",
        )
    lacking = (operator in ("ne", "nin")) != negated and operand is not None
    part = {name: {f"${_OPPOSITE[operator] if negated else operator}": operand}}
    return {"$or": [part, {name: None}]} if lacking else part


# --- results ---


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
    agent, last = None if record.agent_id == _DEFAULT_AGENT else record.agent_id, None
    if record.expires_at:  # the last day on which it is shown
        last = (datetime.fromisoformat(record.expires_at) - _MOMENT).date().isoformat()
    names = {"user_id": record.user_id, "agent_id": agent, "run_id": record.session_id}
    optional = {
        **names,
        "actor_id": _actor(record),
        "role": _role(record),
        "expiration_date": last,
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
