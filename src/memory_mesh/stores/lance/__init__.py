"""The LanceDB store: Lance tables with the schemas of RFC-0011, in a folder or a bucket."""

from memory_mesh.stores.lance.schema import is_schema_v1, is_schema_v2
from memory_mesh.stores.lance.store import LanceStore

__all__ = ["LanceStore", "is_schema_v1", "is_schema_v2"]
