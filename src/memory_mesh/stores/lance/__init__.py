"""The LanceDB store: a folder of Lance tables with the schemas of RFC-0011."""

from memory_mesh.stores.lance.schema import is_schema_v1, is_schema_v2
from memory_mesh.stores.lance.store import LanceStore

__all__ = ["LanceStore", "is_schema_v1", "is_schema_v2"]
