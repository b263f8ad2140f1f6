"""The metadata of Memory Lane: check what a caller gives, and keep it equal to the columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from memory_mesh.core.errors import InvalidInput, iterable, number, one_of, shown, suggestion
from memory_mesh.core.intake import TAXONOMY
from memory_mesh.core.model import Memory, MemoryRecord, Value, parse_time

VERSION = "4.1.0"
DEFAULT_COLLECTION = "memory-lane"  # of a memory without a project
DEFAULT_CONFIDENCE = 70  # also of a memory of another face that has none
# In the order of the document. `source_chunk`, `tags` and the times of observation may be missing.
_OPTIONAL = ("source_chunk", "tags", "first_observed_at", "last_observed_at")

AnyMemory = TypeVar("AnyMemory", bound=Memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLaneMemory:
    """What a caller of `lane.store` gives, not checked."""

    memory_type: object
    confidence_score: object = DEFAULT_CONFIDENCE
    decay_factor: object = 1.0
    entity_slugs: object = None
    entities: object = ()
    tags: object = ()
    collection: object = None
    source_chunk: object = None
    valid_from: object = None
    valid_until: object = None
    metadata: object = None

    def checked(self, content: object, redact: Callable[[str], str]) -> dict[str, Any]:
        """Return the metadata to store, from which the columns are filled, or raise
        `InvalidInput`."""
        type_ = _memory_type(self.memory_type)
        score = number(
            "confidence_score",
            self.confidence_score,
            min_=0,
            max_=100,
            expected="a number from 0 to 100",
        )
        factor = number(
            "decay_factor", self.decay_factor, min_=0, max_=1, expected="a number from 0 to 1"
        )
        if self.source_chunk is not None and not isinstance(self.source_chunk, str):
            raise InvalidInput(f"source_chunk is {shown(self.source_chunk)}", expected="a text")
        if self.metadata is not None and not isinstance(self.metadata, Mapping):
            raise InvalidInput(
                f"metadata is {shown(self.metadata)}", expected="an object with text keys"
            )
        first, last = (_time(name, getattr(self, name)) for name in ("valid_from", "valid_until"))
        if first and last and last < first:
            raise InvalidInput(
                f"valid_until {last} is before valid_from {first}", expected="a time after it"
            )
        given: dict[str, Any] = {
            **(self.metadata or {}),
            "lane_version": VERSION, "memory_type": type_,
            "entity_slugs": self._slugs(content, redact),
            "entities": list(iterable("entities", self.entities, expected="a list")),
            "confidence_score": score, "decay_factor": factor, "source_chunk": self.source_chunk,
            "tags": list(iterable("tags", self.tags, expected="a list of texts")),
            "valid_from": first, "valid_until": last, "category": type_, "confidence": score / 100,
            "project": _collection(self.collection),
        }  # fmt: skip
        return {
            name: value
            for name, value in given.items()
            if value is not None and not (name == "tags" and not value)
        }

    def _slugs(self, content: object, redact: Callable[[str], str]) -> list[str]:
        """Return the entities that the caller names; by default those that are found in the
        text. A masked one is left out."""
        # Compiles patterns, and most programs never need them.
        from memory_mesh.core.lane.entities import find_entities

        if self.entity_slugs is None:
            found = find_entities(content) if isinstance(content, str) else []
            return find_entities(redact(str(content))) if found else []
        given = iterable(
            "entity_slugs", self.entity_slugs, expected='a list such as ["project:atlas"]'
        )
        slugs = {slug: _entity(slug) for slug in given}
        return list(dict.fromkeys(entity for slug, entity in slugs.items() if redact(slug) == slug))


def lane_metadata(memory: MemoryRecord) -> dict[str, Value]:
    """Return the metadata of a memory as the document lists it. Where a column says the same,
    the column counts."""
    own = memory.metadata
    listed: dict[str, Value] = {
        "lane_version": own.get("lane_version", VERSION),
        "memory_type": memory.category,
        "entity_slugs": list(memory.entities),
        "entities": own.get("entities", []),
        "confidence_score": confidence_score(memory),
        "decay_factor": own.get("decay_factor", 1.0),
        "source_chunk": own.get("source_chunk"),
        "tags": list(memory.tags),
        "feedback_score": memory.feedback_score,
        "feedback_count": memory.feedback_count,
        "valid_from": memory.valid_from,
        "valid_until": memory.valid_until,
        "supersedes": list(memory.supersedes) or None,
        "superseded_by": memory.superseded_by,
        "times_observed": memory.times_observed,
        "first_observed_at": own.get("first_observed_at") or memory.created_at,
        "last_observed_at": memory.last_observed
        or own.get("last_observed_at")
        or memory.created_at,
        "access_count": memory.access_count,
        "last_accessed_at": memory.last_accessed,
    }
    return {
        name: value for name, value in listed.items() if value is not None or name not in _OPTIONAL
    }


def confidence_score(memory: MemoryRecord) -> float:
    """Return the confidence of a memory from 0 to 100."""
    return DEFAULT_CONFIDENCE if memory.confidence is None else round(100 * memory.confidence, 6)


def is_of_lane(memory: MemoryRecord) -> bool:
    """Return whether a memory was stored by the lane or by Memory Lane."""
    return "lane_version" in memory.metadata


def synced(memory: AnyMemory) -> AnyMemory:
    """Return a memory of the lane with metadata that say the same as its columns; any other memory
    as it is.

    Memory Lane reads the metadata only. Accesses are counted elsewhere: the metadata keep those
    that it counted itself.
    """
    if not is_of_lane(memory):
        return memory
    own, uncounted = memory.metadata, memory.changed(access_count=0, last_accessed=None)
    counted: dict[str, Value] = {
        name: own[name] for name in ("access_count", "last_accessed_at") if name in own
    }
    return replace(memory, metadata={**own, **lane_metadata(uncounted), **counted})


def _memory_type(given: object) -> str:
    if isinstance(given, str) and given not in TAXONOMY and (near := suggestion(given, TAXONOMY)):
        raise InvalidInput(
            f"memory_type is {shown(given)}", expected=f"one of {', '.join(TAXONOMY)}", remedy=near
        )
    return one_of("memory_type", given, TAXONOMY)


def _entity(given: Any) -> str:
    from memory_mesh.core.lane.entities import parse_entity

    type_, slug = parse_entity(given)
    if type_ is None:
        raise InvalidInput(
            f"entity_slugs has {shown(given)}", expected=f"its type too, such as project:{slug}"
        )
    return f"{type_}:{slug}"


def _collection(given: object) -> str | None:
    if given is None or given == DEFAULT_COLLECTION:
        return None
    if not isinstance(given, str) or not given.strip():
        raise InvalidInput(f"collection is {shown(given)}", expected="the name of a collection")
    return given


def _time(name: str, given: object) -> str | None:
    return None if given is None else parse_time(given, name)
