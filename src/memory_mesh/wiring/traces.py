"""`AsyncMemoryTraces`: the traces of an asynchronous mesh. `traces.pyi` is generated."""

from memory_mesh.faces.traces import MemoryTraces
from memory_mesh.wiring.aio import AsyncProxy


class AsyncMemoryTraces(AsyncProxy, face=MemoryTraces):
    """`MemoryTraces` for `async` code: the same methods, awaited. `run` is entered with `async with`."""

    def __init__(self, traces: MemoryTraces) -> None:
        super().__init__(traces)
