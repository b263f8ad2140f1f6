"""memory-mesh: one memory for AI agents.

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_mesh.build import AsyncMemoryMesh, MemoryMesh
    from memory_mesh.core.audit import Broken, Sound
    from memory_mesh.core.cache import CacheStats
    from memory_mesh.core.errors import MemoryMeshError
    from memory_mesh.core.explain import Explanation
    from memory_mesh.core.jobs import Heartbeat, JobRun
    from memory_mesh.core.lessons import Distilled, LessonBlock, LessonContext
    from memory_mesh.core.records import Extraction, MemoryRecord, SearchResult
    from memory_mesh.core.stopping import cancellable
    from memory_mesh.faces.mesh import MemoryStats
    from memory_mesh.flows.erase import Erasure
    from memory_mesh.flows.folders import Ingested
    from memory_mesh.flows.reembed import Reembedded

__version__ = "0.1.0"

_FROM = {
    "MemoryMesh": "build",
    "AsyncMemoryMesh": "build",
    "MemoryMeshError": "core.errors",
    "MemoryRecord": "core.records",
    "SearchResult": "core.records",
    "MemoryStats": "faces.mesh",
    "Erasure": "flows.erase",
    "Extraction": "core.records",
    "cancellable": "core.stopping",
    "Heartbeat": "core.jobs",
    "JobRun": "core.jobs",
    "Distilled": "core.lessons",
    "LessonBlock": "core.lessons",
    "LessonContext": "core.lessons",
    "Explanation": "core.explain",
    "CacheStats": "core.cache",
    "Ingested": "flows.folders",
    "Reembedded": "flows.reembed",
    "Sound": "core.audit",
    "Broken": "core.audit",
}

__all__ = [
    "AsyncMemoryMesh",
    "Broken",
    "CacheStats",
    "Distilled",
    "Erasure",
    "Explanation",
    "Extraction",
    "Heartbeat",
    "Ingested",
    "JobRun",
    "LessonBlock",
    "LessonContext",
    "MemoryMesh",
    "MemoryMeshError",
    "MemoryRecord",
    "MemoryStats",
    "Reembedded",
    "SearchResult",
    "Sound",
    "cancellable",
]


def __getattr__(name: str) -> object:
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_FROM[name]}"), name)
