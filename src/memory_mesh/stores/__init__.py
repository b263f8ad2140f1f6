"""Storage backends. Each implements `core.ports.Store` and passes `memory_mesh.testing.StoreContract`."""

from memory_mesh.stores.registry import normal_url, open_store, path_url, store_file

__all__ = ["normal_url", "open_store", "path_url", "store_file"]
