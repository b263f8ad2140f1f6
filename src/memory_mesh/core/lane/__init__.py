"""The lane: a taxonomy of memories, their entities, and a score that falls with age and follows feedback."""

from memory_mesh.core.lane.entities import ENTITY_TYPES, find_entities, parse_entity

__all__ = ["ENTITY_TYPES", "find_entities", "parse_entity"]
