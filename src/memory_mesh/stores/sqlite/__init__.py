"""The SQLite store."""

from memory_mesh.stores.sqlite.changes import derived_faults
from memory_mesh.stores.sqlite.schema import VERSION
from memory_mesh.stores.sqlite.store import SqliteStore

__all__ = ["VERSION", "SqliteStore", "derived_faults"]
