"""The faces of an asynchronous mesh. Their types are generated into `asynchronous.pyi`."""

from memory_mesh.api.aio import AsyncProxy
from memory_mesh.api.graph_methods import MemoryGraph
from memory_mesh.api.lane_methods import MemoryLane
from memory_mesh.api.notes_methods import MemoryNotes
from memory_mesh.api.traces_methods import MemoryTraces


class AsyncMemoryGraph(AsyncProxy, face=MemoryGraph):
    """`MemoryGraph` for `async` code: the same methods, awaited."""

    def __init__(self, graph: MemoryGraph) -> None:
        super().__init__(graph)


class AsyncMemoryLane(AsyncProxy, face=MemoryLane):
    """`MemoryLane` for `async` code: the same methods, awaited."""

    def __init__(self, lane: MemoryLane) -> None:
        super().__init__(lane)


class AsyncMemoryNotes(AsyncProxy, face=MemoryNotes):
    """`MemoryNotes` for `async` code: the same methods, awaited."""

    def __init__(self, notes: MemoryNotes) -> None:
        super().__init__(notes)


class AsyncMemoryTraces(AsyncProxy, face=MemoryTraces):
    """`MemoryTraces` for `async` code: the same methods, awaited. `run` is entered with `async
    with`."""

    def __init__(self, traces: MemoryTraces) -> None:
        super().__init__(traces)
