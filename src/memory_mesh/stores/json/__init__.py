"""The JSON store: a folder of JSON files that people can read and compare."""

from memory_mesh.stores.json.store import JsonStore

__all__ = ["JsonStore"]
