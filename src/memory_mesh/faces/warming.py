"""Load the deep ranker in the background, for servers. A short process would wait longer for it than for its searches."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from memory_mesh.faces.handle import Handle
from memory_mesh.flows import deep


@contextmanager
def warming(mesh: Handle) -> Iterator[None]:
    """Load the deep ranker in a thread, while searches go on without it. The end waits for the thread."""
    thread = Thread(target=deep.load, args=(mesh._context(),), name="memory-mesh-warming")
    thread.start()
    try:
        yield
    finally:
        thread.join()
