"""memory-mesh: one memory for AI agents.

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_mesh.core.audit import Broken, Sound
    from memory_mesh.core.cancel import cancellable
    from memory_mesh.core.errors import MemoryMeshError
    from memory_mesh.core.learning.jobs import Heartbeat, JobRun
    from memory_mesh.core.learning.lessons import Distilled, LessonBlock, LessonContext
    from memory_mesh.core.model.records import Extraction, MemoryRecord, SearchResult
    from memory_mesh.core.search import CacheStats, Explanation
    from memory_mesh.faces.mesh import MemoryStats
    from memory_mesh.flows.embed import Reembedded
    from memory_mesh.flows.erase import Erasure
    from memory_mesh.flows.folders import Ingested
    from memory_mesh.wiring.mesh import AsyncMemoryMesh, MemoryMesh

__version__ = "0.1.0"

_FROM = {
    "MemoryMesh": "wiring.mesh",
    "AsyncMemoryMesh": "wiring.mesh",
    "MemoryMeshError": "core.errors",
    "MemoryRecord": "core.model.records",
    "SearchResult": "core.model.records",
    "MemoryStats": "faces.mesh",
    "Erasure": "flows.erase",
    "Extraction": "core.model.records",
    "cancellable": "core.cancel",
    "Heartbeat": "core.learning.jobs",
    "JobRun": "core.learning.jobs",
    "Distilled": "core.learning.lessons",
    "LessonBlock": "core.learning.lessons",
    "LessonContext": "core.learning.lessons",
    "Explanation": "core.search",
    "CacheStats": "core.search",
    "Ingested": "flows.folders",
    "Reembedded": "flows.embed",
    "Sound": "core.audit.chain",
    "Broken": "core.audit.chain",
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
