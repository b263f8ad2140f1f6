"""What a caller gives, checked and read once: content and metadata in, a draft out, or an error that says what to mend.

Some metadata keys are more than notes: they fill columns (`type`, `session_id`, `tags`, `importance`, …). The metadata keeps
them as given all the same.
"""

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import isfinite
from typing import TYPE_CHECKING

from memory_mesh.core.checks import fraction
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model.columns import INT_MAX, Value
from memory_mesh.core.model.scope import MemoryType, Reader
from memory_mesh.core.model.times import parse_time

if TYPE_CHECKING:  # the gate takes a moment to load, and who only reads does not need it
    from memory_mesh.core.intake.gate import Layer0

FORBIDDEN_KEYS = frozenset({"__proto__", "constructor", "prototype"})
IMPORTANCE = {"low": 0.25, "medium": 0.5, "high": 0.75, "critical": 1.0}
_TIMES = ("event_time", "valid_from", "valid_until", "expires_at")
_TEXTS = ("session_id", "project", "category", "speaker")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one memory may be."""

    content_chars: int = 1_000_000
    metadata_depth: int = 16
    metadata_bytes: int = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Checked input, with the columns that its metadata fills."""

    content: str
    metadata: dict[str, Value]
    columns: dict[str, Value] = field(default_factory=dict)

    @property
    def memory_type(self) -> str:
        return str(self.columns["memory_type"])


def draft(content: object, metadata: object, reader: Reader, limits: Limits, layer0: "Layer0") -> Draft:
    """Read what a caller gave, through the gate that every memory passes."""
    text = layer0.content(read_content(content, limits))
    kept = layer0.notes(read_metadata(metadata, limits))
    return Draft(content=text, metadata=kept, columns=_columns(kept, reader))


def fingerprint(reader: Reader, draft: Draft) -> str:
    """Equal for the same text in the same scope, said by the same speaker, at the same time and place of the session."""
    normal = " ".join(unicodedata.normalize("NFKC", draft.content).casefold().split())
    parts = [
        reader.user_id,
        reader.agent_id,
        *(draft.columns.get(name) for name in ("session_id", "project", "memory_type", "event_time", "speaker")),
        draft.metadata.get("turn"),
        normal,
    ]
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def read_content(content: object, limits: Limits) -> str:
    """A text that can be remembered."""
    if not isinstance(content, str):
        raise InvalidInput(f"content is {type(content).__name__}", expected="text")
    if not content.strip():
        raise InvalidInput("content is blank", expected="some text to remember")
    if len(content) > limits.content_chars:
        raise InvalidInput(
            f"content has {len(content):,} characters",
            expected=f"at most {limits.content_chars:,}",
            remedy="split it, or raise `max_content_chars`",
        )
    _text(content, "content")
    return content


def _text(value: str, name: str) -> None:
    if "\0" in value:
        raise InvalidInput(f"{name} holds a NUL character", expected="text without it")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{name} holds half a surrogate pair at {error.start}", expected="valid Unicode") from None


def read_metadata(metadata: object, limits: Limits) -> dict[str, Value]:
    """A copy of metadata that can be kept: JSON, within the limits, without forbidden keys."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"metadata is {type(metadata).__name__}", expected="an object with text keys")
    kept = _object(metadata, "metadata", limits.metadata_depth, _Room(limits.metadata_bytes))
    size = len(json.dumps(kept, ensure_ascii=False).encode())
    if size > limits.metadata_bytes:
        raise InvalidInput(f"metadata takes {size:,} bytes", expected=f"at most {limits.metadata_bytes:,}")
    return kept


@dataclass(slots=True)
class _Room:
    """What may still be read. Lists that hold each other are small to give and endless to copy, so reading counts along."""

    bytes_left: int

    def take(self, size: int) -> None:
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise InvalidInput("metadata takes too many bytes", expected="fewer or shorter values")


def _object(raw: Mapping[object, object], path: str, depth: int, room: _Room) -> dict[str, Value]:
    if depth == 0:
        raise InvalidInput(f"{path[:80]} is nested too deeply", expected="fewer levels of metadata")
    kept: dict[str, Value] = {}
    for key, item in raw.items():
        if not isinstance(key, str):
            raise InvalidInput(f"{path[:80]} has a key of type {type(key).__name__}", expected="text keys")
        if key in FORBIDDEN_KEYS:
            raise InvalidInput(f"{path[:80]} has the forbidden key {key!r}", remedy="rename it")
        room.take(len(key))
        _text(key, f"a key of {path[:80]}")
        kept[key] = _item(item, f"{path}.{key}", depth - 1, room)
    return kept


def _item(item: object, path: str, depth: int, room: _Room) -> Value:
    room.take(len(item) if isinstance(item, str) else 1)
    if isinstance(item, Mapping):
        return dict(_object(item, path, depth, room))
    if isinstance(item, list | tuple):
        if depth == 0:
            raise InvalidInput(f"{path[:80]} is nested too deeply", expected="fewer levels of metadata")
        return [_item(part, f"{path}[{at}]", depth - 1, room) for at, part in enumerate(item)]
    if isinstance(item, str):
        _text(item, path[:80])
        return str(item)
    if item is None or isinstance(item, bool):
        return item
    if isinstance(item, int) and abs(item) <= INT_MAX:
        return int(item)
    if isinstance(item, float) and isfinite(item):
        return float(item)
    what = f"{path[:80]} is {type(item).__name__} {shown(item, max_length=40)}"
    raise InvalidInput(what, expected="text, a finite number up to 2^53, true, false, null, a list or an object")


def _columns(metadata: dict[str, Value], reader: Reader) -> dict[str, Value]:
    for name in ("user_id", "agent_id"):
        _same_owner(metadata, name, getattr(reader, name))
    columns: dict[str, Value] = {name: _named(metadata, name) for name in _TEXTS}
    columns |= {name: None if (raw := metadata.get(name)) is None else parse_time(raw, name) for name in _TIMES}
    columns["session_id"] = columns["session_id"] or reader.session_id
    columns["memory_type"] = _memory_type(metadata, columns["session_id"])
    columns["tags"] = _tags(metadata.get("tags"))
    columns["importance"] = _share(metadata, "importance")
    columns["confidence"] = _share(metadata, "confidence")
    turn = metadata.get("turn")
    columns["turn"] = turn if isinstance(turn, int) and not isinstance(turn, bool) else None
    return columns


def _same_owner(metadata: dict[str, Value], name: str, own: str | None) -> None:
    given = metadata.get(name)
    # Scope comes from who writes, never from what is written: a mistaken owner would show memories to the wrong reader.
    if given is not None and given != own:
        raise InvalidInput(
            f"metadata.{name} is {given!r:.60} but this mesh writes as {own!r}",
            remedy=f"open MemoryMesh({name}=…) for it",
        )


def _named(metadata: dict[str, Value], name: str) -> str | None:
    raw = metadata.get(name)
    if raw is None:
        return None
    if not isinstance(raw, str) or not raw.strip():
        raise InvalidInput(f"metadata.{name} is {raw!r:.60}", expected="a non-empty text")
    return raw


def _memory_type(metadata: dict[str, Value], session_id: Value) -> str:
    raw = metadata.get("type")
    if not isinstance(raw, str) or raw not in list(MemoryType):
        return MemoryType.GLOBAL.value
    if raw == MemoryType.SESSION and session_id is None:
        raise InvalidInput("a memory of type 'session' has no session_id", remedy="give metadata.session_id")
    return raw


def _tags(raw: Value) -> list[Value]:
    if raw is None:
        return []
    if isinstance(raw, list) and all(isinstance(tag, str) for tag in raw):
        return raw
    raise InvalidInput(f"metadata.tags is {raw!r:.60}", expected="a list of texts")


def _share(metadata: dict[str, Value], name: str) -> float | None:
    raw = metadata.get(name)
    if raw is None:
        return None
    value = IMPORTANCE.get(raw, raw) if isinstance(raw, str) else raw
    return fraction(f"metadata.{name}", value, expected=f"a number from 0 to 1, or one of {', '.join(IMPORTANCE)}")
