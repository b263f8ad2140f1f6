"""Read what a caller gives to `add`, and find out which messages of a conversation are new.

Messages are read in the forms of OpenAI, Anthropic and LangChain. A message becomes one text; its
author, its time and the calls of tools go into the metadata. System messages and messages without
text are not stored.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

from memory_mesh.core.errors import InvalidInput, listed, shown
from memory_mesh.core.intake.drafts import Draft, parse_moment
from memory_mesh.core.intake.prints import normal_text
from memory_mesh.core.language.safety import BASE_TRUST, Source
from memory_mesh.core.model import Row, Value
from memory_mesh.core.text import is_blank


@runtime_checkable
class MessageObject(Protocol):
    """A message object of a library, such as `openai`, `anthropic` or `langchain`."""

    def model_dump(self) -> Mapping[str, object]: ...


Metadata = Mapping[str, object]
Message = Mapping[str, object] | MessageObject
Item = (
    str
    | Message
    | tuple[str, Metadata | None]
    | tuple[Sequence[Message], Metadata | None]
    | Sequence[Message]
)

SINGLE = -1  # the thread of a message that was not given in a list
MAX_MESSAGES = 10_000
_SOURCES = {"user": Source.USER_IMPLICIT, "assistant": Source.INFERENCE, "tool": Source.TOOL_OUTPUT}
_UNSTORED_ROLES = ("system", "developer")
_ALIASES = {"human": "user", "ai": "assistant", "model": "assistant", "function": "tool"}
_TEXT_PARTS = ("text", "input_text", "output_text")
_UNNAMED_PARTS = (
    *_TEXT_PARTS,
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "reasoning",
)
_IMAGE_PARTS = ("image_url", "input_image", "image")
_MAX_IMAGES = 20
_MAX_URL = 2_000  # characters; a longer text is left out whole: masking would not find half a key
_DATA_TYPE = re.compile(r"data:[\w.+-]{0,100}/[\w.+-]{0,100}", re.ASCII | re.IGNORECASE)
_EXPECTED = "a text, a pair of text and metadata, a message, or a list of messages"
_MAX_ARGUMENTS = 4_000  # characters of the arguments of one call; they may contain whole files
_MAX_VALUE = 1_000  # characters of one argument of a call that has too many


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a text is stored beside what its metadata says."""

    claim: object = None  # as the caller gives it
    claims: str | None = None  # auto: find a claim in the text; None: as the option `claims` says
    quarantine: bool = False
    # A claim that would be quarantined because of a conflict stays active.
    keep_active: bool = False
    links: bool = False  # link it to similar memories
    evolves: bool = False  # it supersedes the memory that is most similar to it
    supersedes: tuple[str, ...] = ()  # the ids of the memories that it is to supersede


PLAIN = Terms()


@dataclass(frozen=True, slots=True)
class NewText:
    """A text to store and its metadata, neither of them checked yet."""

    content: object
    metadata: object = None
    trust: float | None = None
    # Of a message: the list that it came in, which is compared with the stored turns.
    thread: int | None = None
    item: int | None = None  # its position in the call, for errors; None if it is the only one
    key: object = None  # the caller's own key of the memory
    terms: Terms = PLAIN


def is_list(content: object) -> bool:
    """Return whether the argument of `add` is a list of items rather than one of them."""
    pair = _as_pair(content)
    return isinstance(pair[0] if pair else content, list | tuple) and not (
        pair and _as_pair(pair[0])
    )


def read_texts(content: object, metadata: object = None, key: object = None) -> list[NewText]:
    """Return the texts of the argument of `add`. Raise `InvalidInput` for a single item without
    text."""
    if is_list(content):
        texts = read_items([content] if _as_pair(content) else content, metadata)
    elif not (texts := list(_read(content, metadata, SINGLE, {}, None))):
        raise InvalidInput(
            "system messages and messages without text are not stored",
            remedy="leave it out, or give the list of messages that it is part of",
        )
    if key is None:
        return texts
    if is_list(content) or texts[0].thread is not None:
        raise InvalidInput(
            "a key names one memory",
            expected="a single text",
            remedy="leave out the key of messages",
        )
    return [replace(texts[0], key=key)]


def read_items(items: object, metadata: object = None) -> list[NewText]:
    """Return the texts of a batch; `metadata` is added to that of each item. An error names the
    position of the item."""
    every: list[object] = listed("items", items, expected="a list; `add` takes a single item")
    texts: list[NewText] = []
    calls: dict[str, object] = {}
    for n, item in enumerate(every):
        at = n if len(every) > 1 else None
        with numbered("item", at):
            texts += _read(item, metadata, 0, calls, at)
    if sum(text.thread is not None for text in texts) > MAX_MESSAGES:
        raise InvalidInput(
            "too many messages in one call",
            expected=f"at most {MAX_MESSAGES:,}",
            remedy="give the rest in further calls, in order",
        )
    return texts


def read_interaction(prompt: object, response: object, context: object = None) -> NewText:
    """Return the text of a prompt and its response. The context becomes the metadata."""
    for name, text in (("prompt", prompt), ("response", response)):
        if not isinstance(text, str) or is_blank(text):
            raise InvalidInput(f"the {name} is {shown(text)}", expected="some text")
    return NewText(
        f"Prompt: {prompt}\nResponse: {response}", _merged({"type": "interaction"}, context)
    )


class numbered:  # noqa: N801 - used like a function
    """Add the position of an item to the errors of the block. A `contextmanager` takes three
    times as long, for every item."""

    __slots__ = ("_at", "_name")

    def __init__(self, name: str, at: int | None) -> None:
        self._name, self._at = name, at

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, InvalidInput) and self._at is not None:
            raise type(error)(
                f"{self._name} {self._at}: {error.what}",
                expected=error.expected,
                remedy=error.remedy,
            ) from None


def _read(
    given: object, metadata: object, thread: int, calls: dict[str, object], at: int | None
) -> Iterator[NewText]:
    """Yield the texts of an item. `calls` keeps the calls of messages without text until the
    results of their tools follow."""
    item = _plain(given)
    if pair := _as_pair(item):
        item, metadata = _plain(pair[0]), _merged(metadata, pair[1])
    if isinstance(item, str):
        yield NewText(item, metadata, item=at)
    elif isinstance(item, Mapping) and (role := _role(item)):
        for source, text, own in _turns(role, item, metadata, calls):
            yield NewText(text, own, BASE_TRUST[source], thread, at)
    elif isinstance(item, Mapping):
        if unknown := [key for key in item if key not in ("content", "metadata", "key")]:
            raise InvalidInput(
                f"unknown key {shown(unknown[0])}",
                expected="content, metadata and key, or a message with role and content",
            )
        yield NewText(
            item.get("content"),
            _merged(metadata, item.get("metadata")),
            item=at,
            key=item.get("key"),
        )
    elif (
        isinstance(item, list | tuple)
        and item
        and all(isinstance(_plain(one), Mapping) for one in item)
    ):
        inner: dict[str, object] = {}
        for n, message in enumerate(item):
            with numbered("message", n):
                yield from _read(message, metadata, 1 + (at or 0), inner, at)
    elif pair:
        yield NewText(item, metadata, item=at)  # refused with the other contents
    else:
        several = (
            "`add_many` stores several texts" if isinstance(item, list | tuple) and item else ""
        )
        raise InvalidInput(f"content is {shown(item)}", expected=_EXPECTED, remedy=several)


def _plain(item: Any) -> object:
    """Return a message object as a mapping, and everything else unchanged."""
    if isinstance(item, str | list | tuple | Mapping | type) or not isinstance(item, MessageObject):
        return item
    return item.model_dump()


def _as_pair(item: object) -> tuple[object, object] | None:
    """Return a content with its metadata; None for anything else. The second of two messages is
    not metadata."""
    if not isinstance(item, list | tuple) or len(item) != 2:
        return None
    content, metadata = item
    is_text = isinstance(item, tuple) and isinstance(content, str)
    is_metadata = metadata is None or (
        isinstance(metadata, Mapping) and not {"role", "content"} & metadata.keys()
    )
    return (content, metadata) if is_text or is_metadata else None


def _merged(common: object, own: object) -> object:
    """Return the metadata of a call together with that of an item, which comes first. What is
    not an object fails later."""
    if isinstance(common, Mapping) and isinstance(own, Mapping):
        return {**common, **own}
    return common if own is None else own


# --- messages ---


def _role(item: Mapping[Any, object]) -> str | None:
    """Return the role of a message; None for a mapping that is not a message. LangChain calls it
    `type`."""
    if "role" not in item and not (
        "content" in item and item.get("type") in ("system", "tool", *_ALIASES)
    ):
        return None
    raw = item.get("role", item.get("type"))
    role = _ALIASES.get(raw.lower(), raw.lower()) if isinstance(raw, str) else ""
    if role not in _SOURCES and role not in _UNSTORED_ROLES:
        raise InvalidInput(
            f"role is {shown(raw)}", expected=f"one of {', '.join([*_SOURCES, *_UNSTORED_ROLES])}"
        )
    return role


def _turns(
    role: str, message: Mapping[Any, object], common: object, calls: dict[str, object]
) -> Iterator[tuple[Source, str, Metadata]]:
    """Yield source, text and metadata of each turn in a message."""
    if role in _UNSTORED_ROLES:
        return
    if "content" not in message and not message.get("tool_calls"):
        raise InvalidInput("content is missing", expected="a text, or a list of parts")
    metadata = _merged(common, message.get("metadata")) or {}
    if not isinstance(metadata, Mapping):
        raise InvalidInput(
            f"metadata is {type(metadata).__name__}", expected="an object with text keys"
        )
    name, call_id, parts = (
        message.get("name"),
        message.get("tool_call_id"),
        _read_parts(message.get("content")),
    )
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise InvalidInput(f"name is {shown(name)}", expected="a non-empty text")
    # Anthropic puts results of tools into a user's message; a result has no results of its own.
    for result in parts:
        if result["type"] == "tool_result" and role != "tool":
            output = {
                **message,
                "content": result.get("content"),
                "tool_call_id": result.get("tool_use_id"),
            }
            yield from _turns("tool", {**output, "name": None, "tool_calls": None}, common, calls)
    given_calls = listed("tool_calls", message.get("tool_calls") or [], expected="a list of calls")
    own_calls = [
        _read_call(call)
        for call in (*given_calls, *(part for part in parts if part["type"] == "tool_use"))
    ]
    text = "\n".join(
        str(part["text"])
        for part in parts
        if part["type"] in _TEXT_PARTS and not is_blank(str(part["text"]))
    )
    if not text:
        calls |= {str(call["id"]): call for call in own_calls if "id" in call}
        return
    answered = [calls.pop(call_id)] if isinstance(call_id, str) and call_id in calls else []
    own = {
        **metadata,
        "event_time": _message_time(message.get("timestamp")) or metadata.get("event_time"),
        "tool_call_id": call_id, "speaker": name or metadata.get("speaker") or role, "role": role,
        "provenance": {"source": _SOURCES[role].value},
        "tool_calls": [*own_calls, *answered] or None,
        "attachments": [
            str(part["type"])[:60] for part in parts if part["type"] not in _UNNAMED_PARTS
        ] or None,
        "images": [image for part in parts if (image := _read_image(part))][:_MAX_IMAGES]
        or metadata.get("images"),
    }  # fmt: skip
    yield _SOURCES[role], text, {key: value for key, value in own.items() if value is not None}


def _read_parts(content: object) -> list[Mapping[Any, object]]:
    """Return the parts of a content, each with its type."""
    given = [content] if isinstance(content, str) else [] if content is None else content
    if not isinstance(given, list | tuple):
        raise InvalidInput(
            f"content is {type(content).__name__}", expected="a text, or a list of parts"
        )
    parts: list[Mapping[Any, object]] = []
    for part in ({"text": one} if isinstance(one, str) else _plain(one) for one in given):
        if not isinstance(part, Mapping):
            raise InvalidInput(
                f"content has a part of type {type(part).__name__}", expected="texts and objects"
            )
        parts.append({"type": "text" if "text" in part else "other", **part})
        if parts[-1]["type"] in _TEXT_PARTS and not isinstance(text := part.get("text"), str):
            raise InvalidInput(f"the text of a part is {type(text).__name__}", expected="text")
    return parts


def _read_image(part: Mapping[Any, object]) -> dict[str, str] | None:
    """Return the URL and the caption of an image, as OpenAI or Anthropic write it. Of a `data:`
    URL, only the type is kept."""
    given = part.get("image_url", part.get("source"))
    url = given.get("url") if isinstance(given, Mapping) else given
    if part["type"] not in _IMAGE_PARTS or not isinstance(url, str):
        return None
    url = url.strip()
    if url[:5].lower() == "data:":
        found = _DATA_TYPE.match(url)
        url = found[0] if found else "data:"
    image = {"url": _whole(url, _MAX_URL)}
    captions = (part.get(name) for name in ("caption", "alt", "title"))
    caption = next((one for one in captions if isinstance(one, str) and not is_blank(one)), None)
    return image if caption is None else {**image, "caption": _whole(caption, _MAX_VALUE)}


def _whole(text: str, most: int) -> str:
    return text if len(text) <= most else "…"


def _read_call(given: object) -> dict[str, object]:
    """Return a call of a tool in one form, with its arguments as JSON text."""
    raw = _plain(given)
    if not isinstance(raw, Mapping):
        raise InvalidInput(
            f"a tool call is {type(raw).__name__}", expected="an object with id and name"
        )
    function = raw.get("function")
    call = function if isinstance(function, Mapping) else raw
    arguments = next(
        (call[key] for key in ("arguments", "args", "input") if call.get(key) is not None), None
    )
    found = {
        "id": raw.get("id"),
        "name": call.get("name"),
        "arguments": None if arguments is None else _json_text(arguments),
    }
    return {key: value for key, value in found.items() if value is not None}


def _json_text(arguments: object) -> str:
    """Return the arguments of a call as JSON text. Characters are not escaped: masking would not
    find `bob\\u0040example.org`."""
    escaped = isinstance(arguments, str) and ("\\u" in arguments or "\\/" in arguments)
    try:
        given = json.loads(arguments) if escaped else arguments  # type: ignore[arg-type]
        text = (
            given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
        )
    except (TypeError, ValueError, RecursionError):
        if isinstance(arguments, str):  # not JSON
            return arguments if len(arguments) <= _MAX_ARGUMENTS else "…"
        raise InvalidInput(
            "the arguments of a tool call cannot be written as JSON", expected="an object"
        ) from None
    text = text.encode(errors="replace").decode()  # an escape may be half a pair
    return text if len(text) <= _MAX_ARGUMENTS else _without_long_values(text)


def _without_long_values(arguments: str) -> str:
    """Return arguments with `…` for long values. They are left out whole: masking would not find
    a part of a secret."""
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return "…"
    texts = (
        {key: json.dumps(value, ensure_ascii=False) for key, value in given.items()}
        if isinstance(given, dict)
        else {}
    )
    short = json.dumps(
        {key: given[key] if len(text) <= _MAX_VALUE else "…" for key, text in texts.items()},
        ensure_ascii=False,
    )
    return short if texts and len(short) <= _MAX_ARGUMENTS else "…"


def _message_time(value: object) -> str | None:
    return None if value is None else parse_moment(value, "timestamp")


# --- conversations ---
# Agents send their history again and again: all of it, its end, or its beginning and its end. Only
# what follows the stored turns is new.

# Only lists that repeat one message hundreds of times need so many comparisons. Then all are new:
# storing twice loses nothing.
_MAX_COMPARED = 300_000


@dataclass(frozen=True, slots=True)
class Turn:
    """What is compared of a message and a stored turn."""

    speaker: Value
    text: str
    event_time: Value = None
    tool_call_id: Value = None
    changed: bool = False  # after it was stored, so its text says nothing

    @classmethod
    def of_draft(cls, draft: Draft) -> "Turn":
        columns = draft.columns
        return cls(
            columns["speaker"],
            normal_text(draft.content),
            columns["event_time"],
            draft.metadata.get("tool_call_id"),
        )

    @classmethod
    def of_row(cls, row: Row) -> "Turn":
        metadata = row.value("metadata")
        call = metadata.get("tool_call_id") if isinstance(metadata, dict) else None
        text, changed = normal_text(str(row.value("content"))), row.is_altered or row.revision > 1
        return cls(row.value("speaker"), text, row.value("event_time"), call, changed)

    def is_equal(self, stored: "Turn | None") -> bool:
        """Return whether it has the speaker and text of a stored turn, and no other time or tool
        call."""
        if stored is None or self.text != stored.text or self.speaker != stored.speaker:
            return False
        pairs = ((self.event_time, stored.event_time), (self.tool_call_id, stored.tool_call_id))
        return all(one is None or other is None or one == other for one, other in pairs)

    def may_be(self, stored: "Turn | None") -> bool:
        """Return whether it can be a stored turn: an equal one, a changed one of the same
        speaker, or an erased one."""
        return (
            stored is None
            or self.is_equal(stored)
            or (stored.changed and self.speaker == stored.speaker)
        )


def count_known(given: Sequence[Turn], stored: Mapping[int, Turn]) -> int:
    """Return how many of the given messages, from the first on, are stored already; `stored` maps
    the numbers of turns to them.

    These are the most messages that repeat the beginning of the stored turns and then their end;
    either may be missing. A number without a turn is one that was erased: it must not come back,
    nor may it make everything around it look new.
    """
    if not stored:
        return 0
    first, last = 0 if 0 in stored else 1, max(stored)
    length = last - first + 1
    at_start = next(
        (
            n
            for n, turn in enumerate(given)
            if n == length or not turn.may_be(stored.get(first + n))
        ),
        len(given),
    )
    equal_start = next(
        (n for n in range(at_start) if given[n].is_equal(stored.get(first + n))), at_start
    )
    if equal_start < at_start == len(given):
        return len(given)
    compared = 0
    for known in range(min(len(given), length), 0, -1):
        # As few as possible from the end: the others repeat the beginning.
        at_end = max(1, known - at_start)
        pairs = ((given[known - n], stored.get(last + 1 - n)) for n in range(1, at_end + 1))
        end = list(takewhile(lambda pair: pair[0].may_be(pair[1]), pairs))
        # Changed and erased turns may be anything, so at least one must be equal: at the end, if
        # some between are left out.
        is_equal = any(turn.is_equal(other) for turn, other in end) or (
            known == length and equal_start < known - at_end
        )
        if len(end) == at_end and is_equal:
            return known
        compared += len(end)
        if compared > _MAX_COMPARED:
            break
    return 0
