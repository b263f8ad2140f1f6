"""memory-mesh: one memory for AI agents.

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_mesh.build import AsyncMemoryMesh, MemoryMesh
    from memory_mesh.core.audit import Broken, Sound
    from memory_mesh.core.errors import MemoryMeshError
    from memory_mesh.core.records import MemoryRecord, SearchResult
    from memory_mesh.faces.mesh import MemoryStats
    from memory_mesh.flows.erase import Erasure

__version__ = "0.1.0"

_FROM = {
    "MemoryMesh": "build",
    "AsyncMemoryMesh": "build",
    "MemoryMeshError": "core.errors",
    "MemoryRecord": "core.records",
    "SearchResult": "core.records",
    "MemoryStats": "faces.mesh",
    "Erasure": "flows.erase",
    "Sound": "core.audit",
    "Broken": "core.audit",
}

__all__ = [
    "AsyncMemoryMesh",
    "Broken",
    "Erasure",
    "MemoryMesh",
    "MemoryMeshError",
    "MemoryRecord",
    "MemoryStats",
    "SearchResult",
    "Sound",
]


def __getattr__(name: str) -> object:
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_FROM[name]}"), name)
