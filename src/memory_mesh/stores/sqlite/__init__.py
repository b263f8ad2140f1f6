"""The SQLite store."""

from memory_mesh.stores.sqlite.store import SqliteStore
from memory_mesh.stores.sqlite.tables import VERSION, derived_faults

__all__ = ["VERSION", "SqliteStore", "derived_faults"]
