"""Storage backends. Each implements `core.ports.Store` and passes `memory_mesh.testing.StoreContract`."""

from memory_mesh.stores.registry import open_store, store_file

__all__ = ["open_store", "store_file"]
