"""Check the content and metadata of a new memory and turn them into a draft.

Some metadata keys also fill columns (`type`, `session_id`, `tags`, `importance`, …). They stay in
the metadata too.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from math import isfinite
from typing import TYPE_CHECKING

from memory_mesh.core.errors import InvalidInput, fraction, is_number, number, shown
from memory_mesh.core.model import INT_MAX, MemoryType, Reader, Value, iso, parse_time
from memory_mesh.core.text import is_blank

if TYPE_CHECKING:
    from memory_mesh.core.intake.gate import Layer0


# --- times as programs write them ---

_MAX_TIME = 253_402_300_799_000  # the end of the year 9999 in milliseconds
# A larger timestamp is in milliseconds: as seconds it would be after the year 5000.
_MILLISECONDS = 1e11


def parse_moment(value: object, name: str) -> str:
    """Convert a time to the stored form: ISO 8601, a datetime, or seconds or milliseconds since
    1970."""
    if not is_number(value):
        return parse_time(value, name)
    seconds = number(
        name, value, min_=0, max_=_MAX_TIME, expected="seconds since 1970, or ISO 8601"
    )
    return iso(round(seconds if seconds > _MILLISECONDS else seconds * 1000))


# --- drafts ---

FORBIDDEN_KEYS = frozenset({"__proto__", "constructor", "prototype"})
IMPORTANCE = {"low": 0.25, "medium": 0.5, "high": 0.75, "critical": 1.0}
_TIMES = ("event_time", "valid_from", "valid_until", "expires_at")
# Of 1973; a smaller number counts something else, such as the seconds of a recording.
_MIN_TIMESTAMP = 100_000_000
_TEXTS = ("session_id", "project", "category", "speaker")

# Categories are an open vocabulary; these are the ones that memory-mesh assigns: those of claims
# and links, and the ten types of the learning taxonomy.
TAXONOMY = (
    "correction", "decision", "commitment", "insight", "learning", "confidence", "pattern_seed",
    "cross_agent", "workflow_note", "gap",
)  # fmt: skip
CATEGORIES = ("fact", "finding", "preference", "event", "task", "digest", *TAXONOMY)
DEFAULT_CATEGORY = "fact"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one memory's size."""

    content_chars: int = 1_000_000
    metadata_depth: int = 16
    metadata_bytes: int = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Checked content and metadata, with the columns that the metadata fills."""

    content: str
    metadata: dict[str, Value]
    columns: dict[str, Value] = field(default_factory=dict)
    # How many values of each kind were masked.
    redactions: dict[str, int] = field(default_factory=dict)

    @property
    def memory_type(self) -> str:
        return str(self.columns["memory_type"])


def draft(
    content: object, metadata: object, reader: Reader, limits: Limits, layer0: "Layer0"
) -> Draft:
    """Check content and metadata, clean them with Layer 0 and return the draft."""
    given, keys = read_content(content, limits), read_metadata(metadata, limits)
    text, clean = layer0.clean_content(given), layer0.clean_metadata(keys)
    redactions = layer0.count((given, text), (keys, clean))
    return Draft(
        content=text, metadata=clean, columns=columns_of(clean, reader), redactions=redactions
    )


def read_content(content: object, limits: Limits) -> str:
    """Return the content if it can be stored."""
    if not isinstance(content, str):
        raise InvalidInput(f"content is {type(content).__name__}", expected="text")
    if is_blank(content):
        raise InvalidInput("content is blank", expected="some text")
    if len(content) > limits.content_chars:
        raise InvalidInput(
            f"content has {len(content):,} characters",
            expected=f"at most {limits.content_chars:,}",
            remedy="split it, or raise `max_content_chars`",
        )
    _check_text(content, "content")
    return content


def _check_text(value: str, name: str) -> None:
    if "\0" in value:
        raise InvalidInput(f"{name} contains a NUL character", expected="text without NUL")
    if value.isascii():
        return
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{name} contains half a surrogate pair at {error.start}", expected="valid Unicode"
        ) from None


def read_metadata(metadata: object, limits: Limits) -> dict[str, Value]:
    """Return a copy of the metadata if it is JSON, within the limits and without forbidden keys."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InvalidInput(
            f"metadata is {type(metadata).__name__}", expected="an object with text keys"
        )
    budget = _Budget(limits.metadata_bytes)
    checked = _object(metadata, "metadata", limits.metadata_depth, budget)
    read = limits.metadata_bytes - budget.bytes_left
    # In JSON, a character has at most 6 bytes, and a number 24.
    if 6 * read + 32 * budget.taken > limits.metadata_bytes:
        size = len(json.dumps(checked, ensure_ascii=False).encode())
        if size > limits.metadata_bytes:
            raise InvalidInput(
                f"metadata has {size:,} bytes", expected=f"at most {limits.metadata_bytes:,}"
            )
    return checked


@dataclass(slots=True)
class _Budget:
    """The bytes that may still be read. Nested references to one list are small to pass and huge
    to copy, so reading counts."""

    bytes_left: int
    taken: int = 0

    def take(self, size: int) -> None:
        self.bytes_left -= size
        self.taken += 1
        if self.bytes_left < 0:
            raise InvalidInput("metadata has too many bytes", expected="fewer or shorter values")


def _object(
    raw: Mapping[object, object], path: str, depth: int, budget: _Budget
) -> dict[str, Value]:
    if depth == 0:
        raise InvalidInput(f"{path[:80]} is nested too deeply", expected="fewer levels of metadata")
    checked: dict[str, Value] = {}
    for key, item in raw.items():
        if not isinstance(key, str):
            raise InvalidInput(
                f"{path[:80]} has a key of type {type(key).__name__}", expected="text keys"
            )
        if key in FORBIDDEN_KEYS:
            raise InvalidInput(f"{path[:80]} has the forbidden key {key!r}", remedy="rename it")
        budget.take(len(key))
        _check_text(key, f"a key of {path[:80]}")
        checked[key] = _item(item, f"{path}.{key}", depth - 1, budget)
    return checked


def _item(item: object, path: str, depth: int, budget: _Budget) -> Value:
    budget.take(len(item) if isinstance(item, str) else 1)
    if isinstance(item, str):
        _check_text(item, path[:80])
        return str(item)
    if isinstance(item, Mapping):
        return dict(_object(item, path, depth, budget))
    if isinstance(item, list | tuple):
        if depth == 0:
            raise InvalidInput(
                f"{path[:80]} is nested too deeply", expected="fewer levels of metadata"
            )
        return [_item(part, f"{path}[{at}]", depth - 1, budget) for at, part in enumerate(item)]
    if item is None or isinstance(item, bool):
        return item
    if isinstance(item, date):
        return parse_time(item, path[:80]) if isinstance(item, datetime) else item.isoformat()
    if isinstance(item, int) and abs(item) <= INT_MAX:
        return int(item)
    if isinstance(item, float) and isfinite(item):
        return float(item)
    raise InvalidInput(
        f"{path[:80]} is {type(item).__name__} {shown(item, max_length=40)}",
        expected="text, a finite number up to 2^53, true, false, null, a time, a list or an object",
    )


def columns_of(metadata: dict[str, Value], reader: Reader) -> dict[str, Value]:
    """Return the columns that the metadata fills."""
    # The scope comes from the writer, never from the metadata: a wrong owner would show memories to
    # the wrong reader.
    fixed = {"user_id": reader.user_id, "agent_id": reader.agent_id}
    fixed |= {"project": reader.project} if reader.only_project else {}
    for name, own in fixed.items():
        if (given := metadata.get(name)) is not None and given != own:
            raise InvalidInput(
                f"metadata.{name} is {shown(given)} but this mesh writes as {own!r}",
                remedy=f"add it to mesh.scoped({name}=…)",
            )
    columns: dict[str, Value] = {
        name: _text_or_none(metadata, name) if name in metadata else None for name in _TEXTS
    }
    columns |= {
        name: None if (raw := metadata.get(name)) is None else parse_time(raw, name)
        for name in _TIMES
    }
    columns["event_time"] = columns["event_time"] or _timestamp(metadata.get("timestamp"))
    columns["session_id"] = columns["session_id"] or reader.session_id
    columns["project"] = columns["project"] or reader.project
    columns["memory_type"] = _memory_type(metadata, columns["session_id"])
    columns["tags"] = _tags(metadata.get("tags"))
    slugs = metadata.get("entity_slugs")
    columns["entities"] = (
        [slug for slug in slugs if isinstance(slug, str)] if isinstance(slugs, list) else []
    )
    columns["importance"] = _fraction(metadata, "importance")
    columns["confidence"] = _fraction(metadata, "confidence")
    if "lane_version" in metadata:
        columns |= {
            name: value for name, value in _lane_columns(metadata).items() if columns[name] is None
        }
    turn = metadata.get("turn")
    columns["turn"] = turn if isinstance(turn, int) and not isinstance(turn, bool) else None
    return columns


def _lane_columns(metadata: dict[str, Value]) -> dict[str, Value]:
    """Return the columns of metadata that Memory Lane wrote, which has its own names for them."""
    type_, score = metadata.get("memory_type"), metadata.get("confidence_score")
    return {
        "category": type_ if isinstance(type_, str) and type_.strip() else None,
        "confidence": score / 100
        if isinstance(score, int | float) and is_number(score, min_=0, max_=100)
        else None,
    }


def _timestamp(value: Value) -> str | None:
    """Return the time that the key `timestamp` names, as in a message; None if its value is not
    a point in time."""
    if value is None or (is_number(value) and not is_number(value, min_=_MIN_TIMESTAMP)):
        return None
    try:
        return parse_moment(value, "timestamp")
    except InvalidInput:
        return None


def _text_or_none(metadata: dict[str, Value], name: str) -> str | None:
    raw = metadata.get(name)
    if raw is None or (isinstance(raw, str) and raw.strip()):
        return raw
    raise InvalidInput(f"metadata.{name} is {shown(raw)}", expected="a non-empty text")


def _memory_type(metadata: dict[str, Value], session_id: Value) -> str:
    raw = metadata.get("type")
    if not isinstance(raw, str) or raw not in list(MemoryType):
        return MemoryType.GLOBAL.value
    if raw == MemoryType.SESSION and session_id is None:
        raise InvalidInput(
            "a memory of type 'session' has no session_id", remedy="give metadata.session_id"
        )
    return raw


def _tags(raw: Value) -> list[Value]:
    tags = [] if raw is None else raw
    if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags):
        return tags
    raise InvalidInput(f"metadata.tags is {shown(raw)}", expected="a list of texts")


def _fraction(metadata: dict[str, Value], name: str) -> float | None:
    if (raw := metadata.get(name)) is None:
        return None
    value = IMPORTANCE.get(raw, raw) if isinstance(raw, str) else raw
    return fraction(
        f"metadata.{name}",
        value,
        expected=f"a number from 0 to 1, or one of {', '.join(IMPORTANCE)}",
    )
