"""The SQLite store."""

from memory_mesh.stores.sqlite.moves import derived_faults
from memory_mesh.stores.sqlite.store import SqliteStore
from memory_mesh.stores.sqlite.tables import VERSION

__all__ = ["VERSION", "SqliteStore", "derived_faults"]
