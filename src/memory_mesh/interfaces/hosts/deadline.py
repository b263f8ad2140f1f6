"""The time limit of a hook: its host must never wait for the memory.

The installed command begins the deadline of its process before it loads anything else. A hook that is run within another process,
as tests do, has none.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from time import monotonic, process_time

EMPTY = "{}"
SECONDS = 0.7  # until the settings are read
CAPTURE_SECONDS = 600.0  # of a process that captures, for which no host waits
_POLL_SECONDS = 0.05
_begun: list["Deadline"] = []


def begin(words: list[str], leave: Callable[[int], object] = os._exit) -> "Deadline":
    """Begin the deadline of this process; `words` follow `memory-mesh host`. After it the process answers empty and ends."""
    _begun.append(Deadline(" ".join(words[:2])))
    if "--wait" in words:
        _begun[-1].seconds = CAPTURE_SECONDS
    Thread(target=_begun[-1].watch, args=[leave], daemon=True).start()
    return _begun[-1]


def current(hook: str) -> "Deadline":
    """Return the deadline of this process, or one that never comes."""
    return _begun[-1] if _begun else Deadline(hook)


class Deadline:
    """Writes one answer: the one that is given in time, or else the empty one.

    The time since the process began is estimated by its processor time.
    """

    def __init__(self, hook: str) -> None:
        self._hook = hook
        self._started = monotonic() - process_time()
        self._lock, self._ended, self._answered = Lock(), Event(), False
        self.seconds = SECONDS

    def answer(self, text: str) -> bool:
        """Write the answer and return True, unless one was written before."""
        with self._lock:
            late, self._answered = self._answered, True
            if not late and sys.stdout is not None:
                with suppress(OSError):  # the host does not read it
                    sys.stdout.write(f"{text}\n")
                    sys.stdout.flush()
        return not late

    def end(self) -> None:
        """Stop watching."""
        self._ended.set()

    def watch(self, leave: Callable[[int], object]) -> None:
        """Wait for the end or for the deadline, which changes when the settings are read."""
        while (left := self._started + self.seconds - monotonic()) > 0:
            if self._ended.wait(min(left, _POLL_SECONDS)):
                return
        if self.answer(EMPTY):
            from memory_mesh.interfaces.hosts import faults

            faults.record(self._hook, f"it took longer than {self.seconds:g} seconds")
        leave(0)
