"""Read the files of other programs: mem0, the official MCP memory server and ChatGPT."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from memory_mesh.core.errors import InvalidInput, listed, shown
from memory_mesh.core.intake.drafts import parse_moment
from memory_mesh.core.language.safety import BASE_TRUST, Source
from memory_mesh.core.learning import MAX_BLOCK_LENGTH
from memory_mesh.core.model import Memory, Value, parse_time
from memory_mesh.core.ports import RowSource
from memory_mesh.core.transfer.export import Exported, as_object, read_object

# --- the graph of the MCP memory server ---
# Each entity, observation and relation is a memory. Its key is not the text itself: that may be
# long, or masked.

# The metadata key that says what a memory is: entity, observation or relation.
PART = "knowledge_graph"
RELATION = ("from", "to", "relationType")


def graph_key(*parts: str) -> str:
    """Return the key of a part of the graph: what it is, and the texts that identify it."""
    return f"{PART}:{sha256(json.dumps(parts).encode()).hexdigest()[:24]}"


def entity_part(name: str, kind: str) -> tuple[str, str, dict[str, Value]]:
    """Return the content, the key and the metadata of an entity."""
    return (
        f"{name} ({kind})",
        graph_key("entity", name),
        {PART: "entity", "entity": name, "entity_type": kind},
    )


def observation_part(name: str, text: str) -> tuple[str, str, dict[str, Value]]:
    """Return the content, the key and the metadata of an observation of an entity."""
    return (
        f"{name}: {text}",
        graph_key("observation", name, text),
        {PART: "observation", "entity": name, "observation": text},
    )


def relation_part(source: str, target: str, kind: str) -> tuple[str, str, dict[str, Value]]:
    """Return the content, the key and the metadata of a relation between two entities."""
    metadata: dict[str, Value] = {
        PART: "relation",
        **dict(zip(RELATION, (source, target, kind), strict=True)),
    }
    return f"{source} {kind} {target}", graph_key("relation", source, target, kind), metadata


# --- memories and links of a file ---

MAX_ITEM = 32 * 1024 * 1024  # characters
_CHUNK = 64 * 1024
_LISTS = ("results", "memories")  # the keys of mem0's lists
_SPACE = re.compile(r"[\s,]*")
_MEM0 = {
    "id",
    "memory",
    "created_at",
    "updated_at",
    "user_id",
    "agent_id",
    "run_id",
    "metadata",
    "categories",
    "actor_id",
}
_MEM0 |= {"expiration_date", "score"}


@dataclass(frozen=True, slots=True)
class ForeignLink:
    """A link of another program between two memories."""

    source_id: str
    target_id: str
    link_type: str


# The place in the file, and what is there: an error if it cannot be imported. Memories come before
# the links between them. What a memory of another program lacks is filled in by the import.
Item = tuple[int, Exported | ForeignLink | InvalidInput]
Block = tuple[int, str | InvalidInput]  # the first line of a block, and its text


@dataclass(frozen=True, slots=True)
class ImportFile:
    """An open file to import, its format, and its contents: items, the blocks of lessons, or all
    rows of a store."""

    format: str
    items: Iterable[Item] = ()
    is_export: bool = False  # the items are those of `export`
    blocks: Iterable[Block] | None = None
    rows: RowSource | None = None
    is_fixed: bool = False  # its name says what it contains: an archive


def read_blocks(lines: Iterable[str | InvalidInput]) -> Iterator[Block]:
    """Yield the blocks of a text: each ends with its line `handoff:`, or before the next line
    `agent:`."""
    start, block, size = 1, list[str](), 0
    for number, line in enumerate(lines, start=1):
        text = str(line) if isinstance(line, InvalidInput) else line.replace("\r\n", "\n")
        if block and text.startswith("agent:"):
            yield start, _block(block, size)
            block, size = [], 0
        if not block and not text.strip():
            continue
        start, size = (start if block else number), size + len(text)
        if size <= MAX_BLOCK_LENGTH or not block:  # of a longer one only its size is needed
            block.append(text[:MAX_BLOCK_LENGTH])
        if text.startswith("handoff:"):
            yield start, _block(block, size)
            block, size = [], 0
    if block:
        yield start, _block(block, size)


def _block(lines: list[str], size: int) -> str | InvalidInput:
    if size > MAX_BLOCK_LENGTH:
        return InvalidInput(
            f"the block has {size:,} characters", expected=f"at most {MAX_BLOCK_LENGTH:,}"
        )
    return "".join(lines).rstrip("\n") + "\n"


def read_mem0(read: Callable[[int], str], imported_at: str) -> Iterator[Item]:
    """Yield the memories of `Memory.get_all()`, or of an export of the platform."""
    for place, item in enumerate(_items(read), start=1):
        try:
            yield place, Exported(_mem0_memory(item, imported_at))
        except InvalidInput as error:
            yield place, error


def _mem0_memory(item: object, imported_at: str) -> Memory:
    values = as_object(item)
    id_, content = _text(values, "id"), _text(values, "memory")
    created = (
        parse_time(values["created_at"], "created_at") if values.get("created_at") else imported_at
    )
    expires, more = (
        values.get("expiration_date"),
        {k: v for k, v in values.items() if k not in _MEM0 and v is not None},
    )
    given = values.get("metadata")
    metadata = dict(given) if isinstance(given, Mapping) else {}
    return Memory(
        id=id_, content=content, created_at=created,
        updated_at=parse_time(values["updated_at"], "updated_at") if values.get("updated_at")
        else created,
        expires_at=parse_time(expires, "expiration_date") if expires else None,
        user_id=values.get("user_id"), agent_id=values.get("agent_id"),
        session_id=values.get("run_id"), speaker=values.get("actor_id"),
        tags=values.get("categories") or [], metadata=metadata | ({"mem0": more} if more else {}),
    )  # fmt: skip


# The roles of messages that were said and not only shown to a tool, and what such a message is.
_SPEAKERS = {"user": Source.USER_IMPLICIT, "assistant": Source.INFERENCE}
_SPOKEN = ("text", "multimodal_text")
_MAX_NAME = 200  # characters of the name of a file


def read_chatgpt(read: Callable[[int], str], imported_at: str) -> Iterator[Item]:
    """Yield the turns of the conversations of a ChatGPT export, of each only the thread that was
    shown last. Their place is the number of the conversation."""
    for place, item in enumerate(_items(read), start=1):
        turn = 0
        try:
            conversation = as_object(item)
            for message in _thread(conversation):
                try:
                    memory = _spoken(conversation, as_object(message), turn + 1, imported_at)
                except InvalidInput as error:
                    yield place, error
                    continue
                if memory:
                    turn += 1
                    yield place, Exported(memory)
        except InvalidInput as error:
            yield place, error


def _thread(conversation: Mapping[str, Any]) -> list[object]:
    """Return the messages from the first one to the current one."""
    nodes, at = conversation.get("mapping"), conversation.get("current_node")
    thread: dict[str, object] = {}
    while at is not None or not thread:
        node = nodes.get(at) if isinstance(nodes, Mapping) and isinstance(at, str) else None
        if not isinstance(node, Mapping):
            raise InvalidInput(f"the conversation has no node {shown(at)}")
        if at in thread:
            raise InvalidInput(f"the node {shown(at)} of the conversation is its own parent")
        thread[str(at)] = node.get("message")
        at = node.get("parent")
    return [message for message in reversed(thread.values()) if message is not None]


def _spoken(
    conversation: Mapping[str, Any], message: Mapping[str, Any], turn: int, imported_at: str
) -> Memory | None:
    """Return the memory of a message; None for one without text, and for what a tool reads or
    writes."""
    author, content, more = (
        as_object(message.get(name) or {}) for name in ("author", "content", "metadata")
    )
    role, hidden = str(author.get("role")), more.get("is_visually_hidden_from_conversation")
    is_spoken = message.get("recipient") in ("all", None) and content.get("content_type") in _SPOKEN
    if role not in _SPEAKERS or hidden or not is_spoken:
        return None
    parts = listed("parts", content.get("parts") or [], expected="a list of texts and objects")
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    text = "\n".join(one for one in texts if isinstance(one, str) and one.strip())
    if not text:
        return None
    given = listed("attachments", more.get("attachments") or [], expected="a list of objects")
    named = [as_object(one).get("name") for one in given]
    names = [name[:_MAX_NAME] for name in named if isinstance(name, str)]
    at = message.get("create_time") or conversation.get("create_time")
    time = parse_moment(at, "create_time") if at else imported_at
    source = _SPEAKERS[role]
    metadata: dict[str, Any] = {
        "role": role,
        "provenance": {"source": source.value},
        "title": conversation.get("title"),
        "attachments": names,
    }
    return Memory(
        id=_text(message, "id"), content=text, created_at=time, updated_at=time, event_time=time,
        session_id=conversation.get("conversation_id") or _text(conversation, "id"),
        speaker=role, turn=turn, trust=BASE_TRUST[source],
        metadata={key: value for key, value in metadata.items() if value},
    )  # fmt: skip


def read_mcp_entities(lines: Iterable[object], imported_at: str) -> Iterator[Item]:
    """Yield a memory for each entity, for each of its observations and for each relation, with
    the same ids in every run."""
    for place, line in enumerate(lines, start=1):
        try:
            values = _line(line)
            for memory in () if values is None else _graph_memories(values, imported_at):
                yield place, Exported(memory)
        except InvalidInput as error:
            yield place, error


def read_mcp_relations(lines: Iterable[object]) -> Iterator[Item]:
    """Yield a link for each relation, and one from each observation to its entity."""
    for place, line in enumerate(lines, start=1):
        with suppress(InvalidInput):  # named by `read_mcp_entities`
            values = _line(line) or {}
            if values.get("type") == "entity":
                name = _text(values, "name")
                for text in _observations(values):
                    yield place, ForeignLink(_mcp_id(name, text), _mcp_id(name), "observation_of")
            elif values.get("type") == "relation":
                source, target, kind = _relation(values)
                yield place, ForeignLink(_mcp_id(source), _mcp_id(target), link_name(kind))


def _graph_memories(values: Mapping[str, Any], imported_at: str) -> Iterator[Memory]:
    if values.get("type") == "relation":
        parts = {_mcp_id("relation", *(relation := _relation(values))): relation_part(*relation)}
    elif values.get("type") == "entity":
        name, type_ = _text(values, "name"), values.get("entityType")
        parts = {
            _mcp_id(name): entity_part(
                name, type_ if isinstance(type_, str) and type_ else "entity"
            )
        }
        parts |= {
            _mcp_id(name, text): observation_part(name, text) for text in _observations(values)
        }
    else:
        raise InvalidInput(
            f"its type is {shown(values.get('type'))}", expected="entity or relation"
        )
    for id_, (content, key, metadata) in parts.items():
        yield Memory(
            id=id_,
            content=content,
            key=key,
            created_at=imported_at,
            updated_at=imported_at,
            metadata=metadata,
        )


def _relation(values: Mapping[str, Any]) -> tuple[str, str, str]:
    return _text(values, "from"), _text(values, "to"), _text(values, "relationType")


def _observations(values: Mapping[str, Any]) -> list[str]:
    given = values.get("observations") or []
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise InvalidInput(
            "observations is not a list of texts", expected="an entity of the MCP memory server"
        )
    return [one for one in given if one.strip()]


def _mcp_id(*parts: str) -> str:
    text = json.dumps(parts)  # ASCII, also with half a surrogate pair
    return f"mcp_{sha256(text.encode()).hexdigest()[:24]}"


def link_name(given: str) -> str:
    """Return the type of a relation as a name of a link type."""
    name = re.sub(r"[^a-z0-9]+", "_", given.lower()).strip("_")[:64]
    return name if re.match(r"[a-z]", name) else "related"


def _line(line: object) -> dict[str, Any] | None:
    """Return the object of a line, or None for an empty one."""
    if isinstance(line, str) and not line.strip():
        return None
    return read_object(line, "a JSON object on each line")


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{name} is {shown(value)}", expected="a text")
    return value


# --- a long JSON document, an item at a time ---


class _Document:
    """JSON text that is read in pieces."""

    def __init__(self, read: Callable[[int], str]) -> None:
        self._read, self._text, self._ended = read, "", False
        self._decode = json.JSONDecoder().raw_decode

    def peek(self) -> str:
        """Return the next character that is neither space nor comma; empty at the end."""
        while True:
            at = _SPACE.match(self._text).end()  # type: ignore[union-attr]  # it matches every text
            self._text = self._text[at:]
            if self._text or not self._more(_CHUNK):
                return self._text[:1]

    def skip(self, expected: str) -> None:
        if (found := self.peek()) != expected:
            raise InvalidInput(f"the file is not JSON: {shown(found)} in place of {expected}")
        self._text = self._text[1:]

    def value(self) -> Any:
        """Return the next value. Each failed attempt reads as much again, so that a long value
        is not parsed too often."""
        self.peek()
        while True:
            try:
                value, end = self._decode(self._text)
            except RecursionError:
                raise InvalidInput("the file is nested too deeply") from None
            except ValueError as error:
                if len(self._text) > MAX_ITEM:
                    raise InvalidInput(
                        "a value of the file is too long",
                        expected=f"at most {MAX_ITEM:,} characters",
                    ) from None
                if not self._more(max(_CHUNK, len(self._text))):
                    raise InvalidInput(f"the file is not JSON: {error}"[:200]) from None
            else:
                if end < len(self._text) or not self._more(_CHUNK):  # a number may go on
                    self._text = self._text[end:]
                    return value

    def _more(self, size: int) -> bool:
        piece = "" if self._ended else self._read(size)
        self._ended, self._text = not piece, self._text + piece
        return bool(piece)


def _items(read: Callable[[int], str]) -> Iterator[Any]:
    """Yield the items of a JSON array, or of the list `results` or `memories` of an object."""
    document, found = _Document(read), False
    if document.peek() == "{":
        document.skip("{")
        while document.peek() not in ("}", "") and not found:
            name = document.value()
            document.skip(":")
            found = name in _LISTS and document.peek() == "["
            if not found:
                document.value()
        if not found:
            raise InvalidInput(
                "the file has no list of memories",
                expected="results, as Memory.get_all() returns it",
            )
    document.skip("[")
    while document.peek() != "]":
        yield document.value()
