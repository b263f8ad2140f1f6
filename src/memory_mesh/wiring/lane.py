"""`AsyncMemoryLane`: the lane of an asynchronous mesh. `lane.pyi` is generated."""

from memory_mesh.faces.lane import MemoryLane
from memory_mesh.wiring.aio import AsyncProxy


class AsyncMemoryLane(AsyncProxy, face=MemoryLane):
    """`MemoryLane` for `async` code: the same methods, awaited."""

    def __init__(self, lane: MemoryLane) -> None:
        super().__init__(lane)
