from pathlib import Path
from memory_mesh.core.ports import Store
from memory_mesh.stores.lance import LanceStore
from memory_mesh.testing import StoreContract
class TestLanceFlushed(StoreContract):
    def open(self, place: Path) -> Store:
        return LanceStore(place / "memory", flush_rows=1)
