"""Crash points: where a write goes through, and a sudden death at any of these places.

A test records the steps of a write once, then lets a process of its own die at each of them and looks at what is left:

    recorder = Recorder()
    MemoryMesh(store=…, step=recorder).add("…")
    for name in recorder.names:
        …  # in a new process: MemoryMesh(store=…, step=crash_at(name)).add("…")
"""

import os
import signal

from memory_mesh.core.ports import Step


class Recorder:
    """A step that notes the names of the steps, in order."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, name: str) -> None:
        self.names.append(name)


def crash_at(name: str, *, nth: int = 1) -> Step:
    """A step that kills its own process, without a last word, when `name` is reached for the nth time."""
    reached = 0

    def step(at: str) -> None:
        nonlocal reached
        reached += at == name
        if at == name and reached == nth:
            # Nothing may be flushed, closed or rolled back on the way out: no exit, no exception.
            os.kill(os.getpid(), signal.SIGKILL)

    return step
