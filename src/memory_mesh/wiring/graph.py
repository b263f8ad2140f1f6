"""`AsyncMemoryGraph`: the graph of an asynchronous mesh. `graph.pyi` is generated."""

from memory_mesh.faces.graph import MemoryGraph
from memory_mesh.wiring.aio import AsyncProxy


class AsyncMemoryGraph(AsyncProxy, face=MemoryGraph):
    """`MemoryGraph` for `async` code: the same methods, awaited."""

    def __init__(self, graph: MemoryGraph) -> None:
        super().__init__(graph)
