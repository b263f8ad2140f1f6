"""`AsyncMemoryNotes`: the notes of an asynchronous mesh. `notes.pyi` is generated."""

from memory_mesh.faces.notes import MemoryNotes
from memory_mesh.wiring.aio import AsyncProxy


class AsyncMemoryNotes(AsyncProxy, face=MemoryNotes):
    """`MemoryNotes` for `async` code: the same methods, awaited."""

    def __init__(self, notes: MemoryNotes) -> None:
        super().__init__(notes)
