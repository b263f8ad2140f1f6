"""The scrubber of RFC-0011: six stages that clean a text before it is stored."""

from memory_mesh.core.language.scrubbing.cleaning import (
    MESH_OVERRIDES,
    Chunking,
    ScrubSettings,
    joined_words,
    without_tags,
)
from memory_mesh.core.language.scrubbing.pipeline import (
    Chunk,
    Scrubbed,
    annotate,
    cleaned,
    has_valid_chunk,
    heading_sections,
    is_heading,
    scrub,
    section_at,
    split_chunks,
    validate,
)  # fmt: skip

__all__ = [
    "MESH_OVERRIDES", "Chunk", "Chunking", "ScrubSettings", "Scrubbed", "annotate", "cleaned",
    "has_valid_chunk", "heading_sections", "is_heading", "joined_words", "scrub", "section_at",
    "split_chunks", "validate", "without_tags",
]  # fmt: skip
