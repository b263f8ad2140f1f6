"""The graph of memories: links between them, and the score and the results of its searches."""

from memory_mesh.core.graph.episodes import GAP_SECONDS, Episode
from memory_mesh.core.graph.links import (
    LINK_TYPES,
    MADE_BY_US,
    MAX_LINKS,
    MIN_SIMILARITY,
    WEIGHTS,
    Candidate,
    Composite,
    GraphContext,
    GraphHit,
    GraphResults,
    MemoryLink,
    Reached,
    Retrieved,
    choose,
    connected,
    link,
    read_weights,
    recency,
    replaced,
)

__all__ = [
    "GAP_SECONDS",
    "LINK_TYPES",
    "MADE_BY_US",
    "MAX_LINKS",
    "MIN_SIMILARITY",
    "WEIGHTS",
    "Candidate",
    "Composite",
]
__all__ += [
    "Episode",
    "GraphContext",
    "GraphHit",
    "GraphResults",
    "MemoryLink",
    "Reached",
    "Retrieved",
    "choose",
]
__all__ += ["connected", "link", "read_weights", "recency", "replaced"]
