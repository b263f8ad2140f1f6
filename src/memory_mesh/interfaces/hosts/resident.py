"""Ask the resident process of the user to answer a hook.

Loading the memory and its model takes longer than a prompt may wait. One process, which the first
hook starts, keeps them loaded and answers the hooks that follow, over a socket in a folder that
only its user can reach. This module is what a hook loads before it asks: it imports nothing heavy.

The process has the lock of a file as long as it lives: a socket without it is a remainder. Each
installation of the package has a process of its own. A request is one line of JSON, as is its
answer.
"""

import io
import json
import os
import select
import signal
import socket
import struct
import sys
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from stat import S_ISDIR

import memory_mesh

ASK_SECONDS = 1.0  # then the hook answers by itself
_MAX_BYTES = 2**27
_MAX_INPUT_BYTES = 2**25
_MAX_PATH_BYTES = 100  # of a socket; the smallest limit of a system is 104
_PACKAGE = memory_mesh.__path__[0]


def folder() -> str:
    """Return the folder of the socket and the lock."""
    environ = os.environ
    state = environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(environ.get("XDG_RUNTIME_DIR") or state, "memory-mesh")


def path(kind: str) -> str:
    """Return the path of the `socket` or the `lock` of this installation."""
    place = zlib.crc32(os.fsencode(f"{sys.prefix}\0{_PACKAGE}"))
    return os.path.join(folder(), f"hooks-{place:08x}.{kind}")


def is_available() -> bool:
    """Return whether this system has what the process needs."""
    if sys.platform == "win32":
        return False
    return os.path.isabs(folder()) and len(os.fsencode(path("socket"))) <= _MAX_PATH_BYTES


def is_private() -> bool:
    """Return whether the folder is that of this user, and nobody else can reach it."""
    try:
        found = os.lstat(folder())
    except OSError:
        return False
    return S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def is_own(connection: socket.socket) -> bool:
    """Return whether the other end is a process of this user. Where the system does not say, the
    folder protects the socket."""
    if sys.platform != "linux":
        return True
    size = struct.calcsize("3i")
    given = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return bool(struct.unpack("3i", given)[1] == os.getuid())


def identity() -> str:
    """Return what differs between versions of the package at the same place."""
    changed = os.stat(os.path.join(_PACKAGE, "__init__.py")).st_mtime_ns
    return f"{memory_mesh.__version__} {changed} {sys.version}"


def ask(request: dict[str, object], seconds: float = ASK_SECONDS) -> dict[str, object] | None:
    """Return the answer of the process; None if it gives none in time, or does not run."""
    if not is_available() or not is_private():
        return None
    until = time.monotonic() + seconds
    with suppress(OSError, ValueError), socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        connection.connect(path("socket"))
        if is_own(connection):
            connection.sendall(json.dumps({"identity": identity(), **request}).encode() + b"\n")
            return receive(connection, until)
    return None


def receive(connection: socket.socket, until: float) -> dict[str, object] | None:
    """Return the object that the other end sends in one line; None if it ends before. Raises
    `OSError` if that takes too long, and `ValueError` for anything else."""
    line = bytearray()
    while not line.endswith(b"\n"):
        if len(line) > _MAX_BYTES or (left := until - time.monotonic()) <= 0:
            raise TimeoutError
        connection.settimeout(left)
        if not (piece := connection.recv(2**16)):
            return None
        line += piece
    given = json.loads(line)
    return given if isinstance(given, dict) else None


# --- a hook ---


def answer_hook(words: list[str], seen: Callable[[str], None]) -> dict[str, object] | None:
    """Let the process answer a hook, and return what it would write; None if it did not. Standard
    input can be read as before. `seen` is called with the beginning of it."""
    if sys.stdin is None or not is_available():
        return None
    data, complete = _read(one_line=words[:1] == ["opencode"])
    sys.stdin = io.TextIOWrapper(io.BufferedReader(_Rest(data)))
    seen(text := data.decode(errors="surrogateescape"))
    given: dict[str, object] | None = None
    with suppress(FileNotFoundError):  # the working folder was removed, which the settings report
        request = {"words": ["host", *words], "text": text, "environ": dict(os.environ)}
        given = ask({**request, "cwd": os.getcwd()}) if complete else None
    return given if given and given.keys() >= {"stdout", "stderr", "code"} else None


def _read(*, one_line: bool) -> tuple[bytes, bool]:
    """Return what comes from standard input in time, and whether that is all of it."""
    data, until = bytearray(), time.monotonic() + ASK_SECONDS
    while not (one_line and b"\n" in data):
        left = max(0.0, until - time.monotonic())
        if len(data) > _MAX_INPUT_BYTES or not select.select([0], [], [], left)[0]:
            return bytes(data), False
        if not (piece := os.read(0, 2**16)):
            break
        data += piece
    return bytes(data), True


class _Rest(io.RawIOBase):
    """Standard input, of which the beginning was read."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        piece = self._data[: len(buffer)] or os.read(0, len(buffer))
        self._data = self._data[len(piece) :]
        buffer[: len(piece)] = piece
        return len(piece)


# --- starting it ---


def start() -> None:
    """Start the process, unless it runs or cannot run here. It is not waited for."""
    with suppress(OSError):
        if not is_available():
            return
        os.makedirs(os.path.dirname(folder()), exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            os.mkdir(folder(), 0o700)
        if not is_private() or holder() is not None:
            return
        import subprocess

        # -P: the working folder is that of any repository, and must not be the first place where
        # modules are looked for.
        words = [sys.executable, "-P", "-m", "memory_mesh.interfaces.hosts.process"]
        null = subprocess.DEVNULL
        process = subprocess.Popen(  # noqa: S603  (the words of this very program)
            words, stdin=null, stdout=null, stderr=null, start_new_session=True
        )
        process.returncode = 0  # it is not waited for


def holder() -> int | None:
    """Return the id of the process that has the lock; None if there is none, 0 if it is just
    starting."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        opened = os.open(path("lock"), os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(os.read(opened, 20) or b"0")
    finally:
        os.close(opened)
    return None


# --- seeing and stopping it ---

_STOP_SECONDS = 3.0


def state() -> tuple[int | None, str]:
    """Return the id of the process, None if there is none, and a sentence about it."""
    if not is_available():
        return None, "hooks answer by themselves: this system has no socket for the process"
    given = ask({"status": True})
    if given:
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(float(str(given["since"]))))
        return (
            int(str(given["pid"])),
            f"process {given['pid']} has answered {given['answered']} since {since}",
        )
    if (pid := holder()) is None:
        return None, "no process answers hooks; the next hook starts one"
    return pid, f"process {pid or ''} is starting, busy or stuck; hooks answer by themselves"


def stop() -> int | None:
    """End the process, also if it is stuck, and return its id; None if there is none."""
    if not is_available() or (pid := holder()) is None:
        return None
    until = time.monotonic() + _STOP_SECONDS
    ask({"stop": True}, _STOP_SECONDS)
    while holder() == pid and time.monotonic() < until:
        time.sleep(0.02)
    if pid and holder() == pid:
        os.kill(pid, signal.SIGKILL)  # it writes nothing that could be left half-way
    return pid
