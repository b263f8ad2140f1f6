"""The SQLite store: one file, with the table of Memory Lane and ours."""

from memory_mesh.stores.sqlite.store import SqliteStore
from memory_mesh.stores.sqlite.tables import VERSION, derived_faults

__all__ = ["VERSION", "SqliteStore", "derived_faults"]
