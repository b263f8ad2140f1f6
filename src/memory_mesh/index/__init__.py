"""The local search index, derived from any store."""

from memory_mesh.index.local import LocalIndex

__all__ = ["LocalIndex"]
