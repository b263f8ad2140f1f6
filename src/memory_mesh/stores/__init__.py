"""Storage backends, and the registry that opens the store of a URL.

Each implements `core.ports.Store` and passes `memory_mesh.testing.StoreContract`.
"""

from memory_mesh.stores.registry import (
    is_store_file,
    lance_store,
    normal_url,
    open_store,
    path_url,
    store_file,
)

__all__ = ["is_store_file", "lance_store", "normal_url", "open_store", "path_url", "store_file"]
