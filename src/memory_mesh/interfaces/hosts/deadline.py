"""The time limit of a hook, and its last failure: the host must never wait for the memory.

The installed command begins the deadline of its process before it loads anything but the settings.
A hook that is run within another process, as tests do, has none.
"""

import gc
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from threading import Event, Lock, Thread

from memory_mesh.api.settings import home_folder
from memory_mesh.core.errors import MemoryMeshError
from memory_mesh.stores.files import create_file

EMPTY = "{}"
_CAPTURE_SECONDS = 600.0  # of a process that captures, for which no host waits
_MAX_START_SECONDS = 60.0  # an older process is not that of a hook, or its clock is wrong
_begun: list["Deadline"] = []


def begin(words: list[str]) -> None:
    """Begin the deadline of this process; `words` follow `memory-mesh host`. After it the
    process answers empty and ends."""
    from memory_mesh.api.settings import load
    from memory_mesh.core.errors import SettingsError
    from memory_mesh.core.options import Options

    try:
        seconds = load({}).options.host_seconds
    except SettingsError:  # the hook reports it
        seconds = Options().host_seconds
    _begun.append(Deadline(" ".join(words[:2]), _CAPTURE_SECONDS if "--wait" in words else seconds))
    if "--wait" not in words:
        gc.disable()  # 6 % of the time of a process that ends at once
    Thread(target=_begun[-1].watch, args=[os._exit], daemon=True).start()


def leave(code: int) -> None:
    """End the process without the clean-up of Python, which takes 70 ms. Everything that matters
    is closed."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError):  # the host does not read it
                stream.flush()
    os._exit(code)


def current(hook: str) -> "Deadline":
    """Return the deadline of this process, or one that never comes."""
    return _begun[-1] if _begun else Deadline(hook, inf)


class Deadline:
    """Writes one answer: the one that is given in time, or else the empty one. The time counts
    from the start of the process."""

    def __init__(self, hook: str, seconds: float) -> None:
        self._hook, self._seconds = hook, seconds
        self._at = time.monotonic() - _age() + seconds
        self._lock, self._ended, self._answered = Lock(), Event(), False

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
        """Wait for the end or for the deadline, then answer empty if there was no answer, and
        leave the process."""
        if self._ended.wait(max(0.0, self._at - time.monotonic())):
            return
        if self.answer(EMPTY):
            late = f"it took longer than {self._seconds:g} seconds"
            record_fault(self._hook, late)
            # Hosts put standard error into their log and do not show it to the model.
            if sys.stderr is not None:
                with suppress(OSError, ValueError):  # the host does not read it, or has closed it
                    sys.stderr.write(
                        f"[MemoryMesh Error] {self._hook}: {late}; the answer is empty; "
                        "MEMORY_MESH_HOST_SECONDS gives it more time\n"
                    )
                    sys.stderr.flush()
        leave(0)


def _age() -> float:
    """Return the seconds since the process began; where the system does not say, its processor
    time."""
    used = time.process_time()
    if sys.platform != "linux":
        return used
    try:
        with open("/proc/self/stat", encoding="utf-8") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return used
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return age if used <= age <= _MAX_START_SECONDS else used


# --- the last failure ---
# A line in the home folder, which `memory-mesh doctor` shows. A hook that works again removes it.

FAULT_FILE = "host-fault.txt"


def record_fault(hook: str, what: str) -> None:
    """Write the failure of a hook. If that is not possible, nothing is recorded."""
    with suppress(OSError, MemoryMeshError):
        create_file(path := _path())
        path.write_text(
            f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {hook}: {what}\n", encoding="utf-8"
        )


def clear_fault(hook: str) -> None:
    """Remove the failure if it is one of this hook."""
    if f" {hook}: " in last_fault():
        with suppress(OSError):
            _path().unlink()


def last_fault() -> str:
    """Return the last failure, or an empty text."""
    with suppress(OSError, MemoryMeshError):
        return _path().read_text(encoding="utf-8", errors="replace").strip()
    return ""


def _path() -> Path:
    return home_folder() / FAULT_FILE
