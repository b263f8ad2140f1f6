"""The time limit of a hook, and its last failure: the host must never wait for the memory.

The installed command begins the deadline of its process before it loads anything else, so this
module imports nothing heavy. A hook that is run within another process, as tests do, has none.
"""

import gc
import json
import os
import sys
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper
from math import inf
from threading import Event, Lock, Thread

from memory_mesh.interfaces.hosts import RECALL, resident

EMPTY = "{}"
SECONDS = 2.5  # the default of `host_seconds`
_CAPTURE_SECONDS = 600.0  # of a process that captures, for which no host waits
_MAX_START_SECONDS = 60.0  # an older process is not that of a hook, or its clock is wrong
_MAX_WAIT_SECONDS = 60.0
_MAX_CHARS = 100_000
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)  # a pipe in the place of a file might never answer
_begun: list["Deadline"] = []


def begin(words: list[str]) -> None:
    """Begin the deadline of this process; `words` follow `memory-mesh host`. After it the
    process answers empty and ends."""
    # The settings are loaded later: that may take longer than the host waits.
    seconds = _CAPTURE_SECONDS if "--wait" in words else SECONDS
    if "--wait" not in words:
        gc.disable()  # 6 % of the time of a process that ends at once
        with suppress(KeyError, ValueError):
            seconds = float(os.environ["MEMORY_MESH_HOST_SECONDS"])
        if isinstance(sys.stdout, TextIOWrapper):  # None if the host has closed it
            sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    deadline = Deadline(" ".join(words[:2]), seconds)
    _begun.append(deadline)
    Thread(target=deadline.watch, args=[_leave_late], daemon=True).start()


def ask(words: list[str]) -> int | None:
    """Let the resident process answer the hook, and return the exit code. If it does not, start
    it for the next one, and return None."""
    if "--wait" in words:
        return None
    deadline = current("")
    if given := resident.answer_hook(words, deadline.read_session):
        if given["stderr"] and sys.stderr is not None:
            with suppress(OSError):
                sys.stderr.write(str(given["stderr"]))
        if given["stdout"]:
            deadline.answer(str(given["stdout"]).removesuffix("\n"))
        deadline.end()
        return int(str(given["code"]))
    from memory_mesh.api.settings import load
    from memory_mesh.core.errors import SettingsError

    with suppress(SettingsError):  # the hook reports it
        options = load({}).options
        deadline.limit(options.host_seconds)
        if options.host_idle_seconds:
            resident.start()
    return None


def _leave_late(code: int) -> None:
    """End the process at the deadline. Even one that could not load the settings in time starts the
    process that answers the next hook, which has that time."""
    if not current("").is_settled and os.environ.get("MEMORY_MESH_HOST_IDLE_SECONDS") != "0":
        resident.start()
    os._exit(code)


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
        self.hook, self.session_id = hook, ""
        self._began = time.monotonic() - _age()
        self._seconds = seconds
        self._lock, self._woken = Lock(), Event()
        self._answered = self._ended = self.is_settled = False

    def limit(self, seconds: float) -> None:
        """Set the time of the settings, which counts from the start of the process."""
        self._seconds, self.is_settled = seconds, True
        self._woken.set()

    def read_session(self, text: str) -> None:
        """Read the session from the input of a hook, which may be incomplete."""
        with suppress(ValueError, RecursionError):
            given = json.loads(text.partition("\n")[0] if "\n{" in text else text)
            if isinstance(given, dict):
                self.session_id = str(given.get("session_id") or "")

    def answer(self, text: str) -> bool:
        """Write the answer and return True, unless one was written before."""
        with self._lock:
            late, self._answered = self._answered, True
            if not late and sys.stdout is not None:
                with suppress(OSError):  # the host does not read it
                    sys.stdout.write(f"{text}\n")
                    sys.stdout.flush()
        return not late

    def skipped(self, why: str) -> str:
        """Return the answer of a hook that failed: empty, or with a note to the user if memories
        were to be added. A session has one such note."""
        if not self.hook.endswith(RECALL) or not self.session_id or _was_noted(self.session_id):
            return EMPTY
        note = f"[MemoryMesh] No memories were recalled: {why}. See memory-mesh doctor."
        return json.dumps({"systemMessage": note}, ensure_ascii=False)

    def end(self) -> None:
        """Stop watching."""
        self._ended = True
        self._woken.set()

    def watch(self, leave: Callable[[int], object]) -> None:
        """Wait for the end or for the deadline, then answer empty if there was no answer, and
        leave the process."""
        while not self._ended and (left := self._began + self._seconds - time.monotonic()) > 0:
            self._woken.wait(min(left, _MAX_WAIT_SECONDS))
            self._woken.clear()
        if self._ended:
            return
        late = f"it {_LATE} {self._seconds:g} seconds"
        if self.answer(self.skipped(late)):
            again = f" {self.hook}: it {_LATE}" in last_fault()
            record_fault(self.hook, late + (_AGAIN if again else ""))
            # Hosts put standard error into their log and do not show it to the model.
            if sys.stderr is not None:
                with suppress(OSError, ValueError):  # the host does not read it, or has closed it
                    sys.stderr.write(
                        f"[MemoryMesh Error] {self.hook}: {late}; the answer is empty; "
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
_LATE, _AGAIN = "took longer than", ", again"


def record_fault(hook: str, what: str) -> None:
    """Write the failure of a hook. If that is not possible, nothing is recorded."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with suppress(OSError):
        _write(FAULT_FILE, f"{at} {hook}: {what}\n")


def clear_fault(hook: str) -> None:
    """Remove the failure if it is one of this hook."""
    if f" {hook}: " in last_fault():
        with suppress(OSError):
            os.unlink(os.path.join(_home(), FAULT_FILE))


def last_fault() -> str:
    """Return the last failure, or an empty text."""
    with suppress(OSError):
        return _read(FAULT_FILE).strip()
    return ""


def is_single_timeout(fault: str) -> bool:
    """Return whether a failure is only that a hook took too long once, as on a busy machine."""
    return f": it {_LATE}" in fault and not fault.endswith(_AGAIN)


# --- notes to the user ---

_NOTED_FILE = "host-noted.txt"  # the sessions whose user has had a note
_MAX_NOTED = 100


def _was_noted(session_id: str) -> bool:
    """Return whether the user of a session has had a note, and record that one is given now. If
    that is not possible there is none: it would come with every prompt."""
    session = f"{zlib.crc32(session_id.encode(errors='replace')):08x}"
    noted: list[str] = []
    with suppress(OSError):
        noted = _read(_NOTED_FILE).split()
    if session in noted:
        return True
    try:
        _write(_NOTED_FILE, "\n".join([*noted[1 - _MAX_NOTED :], session, ""]))
    except OSError:
        return True
    return False


# --- files of the home folder ---


def _home() -> str:
    return os.path.expanduser(os.environ.get("MEMORY_MESH_HOME") or "~/.memory-mesh")


def _read(name: str) -> str:
    opened = os.open(os.path.join(_home(), name), os.O_RDONLY | _NO_WAITING)
    with open(opened, encoding="utf-8", errors="replace") as file:
        return file.read(_MAX_CHARS)


def _write(name: str, text: str) -> None:
    os.makedirs(_home(), 0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_WAITING
    with open(os.open(os.path.join(_home(), name), flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
