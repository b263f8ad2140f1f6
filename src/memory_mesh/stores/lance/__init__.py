"""The LanceDB store: a folder of Lance tables with the schemas of RFC-0011."""

from memory_mesh.stores.lance.store import LanceStore

__all__ = ["LanceStore"]
