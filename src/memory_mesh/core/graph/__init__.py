"""The graph of memories: links between them, and the score of its searches."""

from memory_mesh.core.graph.links import MAX_LINKS, MIN_SIMILARITY, choose, link, replaced

__all__ = ["MAX_LINKS", "MIN_SIMILARITY", "choose", "link", "replaced"]
