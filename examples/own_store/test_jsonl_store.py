"""The published contract, run on this store: `pytest test_jsonl_store.py`."""

from pathlib import Path

from jsonl_store import JsonlStore

from memory_mesh.testing import StoreContract, machine_for


def open_in(place: Path) -> JsonlStore:
    return JsonlStore(place / "memory.jsonl")


class TestJsonlStore(StoreContract):
    def open(self, place: Path) -> JsonlStore:
        return open_in(place)


TestHistory = machine_for(open_in).TestCase
