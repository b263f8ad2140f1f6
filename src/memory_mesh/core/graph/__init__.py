"""The graph of memories: links between them, and the score and the results of its searches."""

from memory_mesh.core.graph.clusters import connected
from memory_mesh.core.graph.composite import WEIGHTS, Composite, read_weights, recency
from memory_mesh.core.graph.links import MAX_LINKS, MIN_SIMILARITY, choose, link, replaced
from memory_mesh.core.graph.results import GraphHit, GraphResults, Retrieved

__all__ = [
    "MAX_LINKS",
    "MIN_SIMILARITY",
    "WEIGHTS",
    "Composite",
    "GraphHit",
    "GraphResults",
    "Retrieved",
    "choose",
    "connected",
    "link",
]
__all__ += ["read_weights", "recency", "replaced"]
