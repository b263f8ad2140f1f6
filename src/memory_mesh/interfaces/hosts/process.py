"""The resident process that answers the hooks of a user.

It runs the command that a hook without it runs, with the environment, the working folder and the
input of the hook, one hook after the other. Between two hooks it keeps the modules and the model,
but no store open, so it is in nobody's way who erases, backs up or replaces one. It ends when it is
idle, when another version of the package asks, and when its socket is gone. It writes no log.
"""

import fcntl
import io
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from threading import Timer
from typing import Any

from memory_mesh.interfaces.hosts import resident

_POLL_SECONDS = 10.0  # how often it looks whether its socket is still there
_STUCK_SECONDS = 10.0  # of one hook; the hook has answered by itself long before
_LOCK_SECONDS = 1.0


def main() -> None:
    """Answer hooks until the process is idle. Returns at once if another one does."""
    identity = resident.identity()  # before anything is loaded: the package may change meanwhile
    with ExitStack() as last, _lock() as locked:
        if not locked or not resident.is_private():
            return
        os.chdir("/")
        process = Process(identity)
        process.warm_up()
        # Closed after the lock is free: who asked for the end may start the next process.
        if connection := process.serve():
            last.enter_context(connection)


@contextmanager
def _lock() -> Iterator[bool]:
    """Hold the lock that only one process has; yield False if it is not free."""
    until = time.monotonic() + _LOCK_SECONDS
    with open(os.open(resident.path("lock"), os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        while True:  # a hook that looks whether somebody has it has it for a moment
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    yield False
                    return
                time.sleep(0.02)
            else:
                break
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield True


class Process:
    """The process: how long it waits, and what it did so far."""

    def __init__(self, identity: str) -> None:
        self._identity, self._since, self._answered = identity, time.time(), 0
        self._idle_seconds = 0.0

    def warm_up(self) -> None:
        """Load what hooks need. What fails here fails again for a hook, which says so."""
        from memory_mesh.interfaces.hosts import hooks

        self._configure()
        hooks.models = {}
        with suppress(Exception):
            hooks.rehearse()

    def serve(self) -> socket.socket | None:
        """Answer until the process is idle or was asked to end. Return the connection that asked,
        which is closed when everything else is."""
        path = resident.path("socket")
        with suppress(FileNotFoundError):
            os.unlink(path)  # of a process that was killed
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            os.chmod(path, 0o600)
            listening.listen(64)
            own = os.lstat(path).st_ino
            try:
                return self._wait(listening, lambda: os.lstat(path).st_ino == own)
            except OSError:  # the socket is gone
                return None
            finally:
                with suppress(OSError):
                    os.unlink(path if os.lstat(path).st_ino == own else "")

    def _wait(self, listening: socket.socket, is_there: Callable[[], bool]) -> socket.socket | None:
        asked = time.monotonic()
        while (left := asked + self._idle_seconds - time.monotonic()) > 0 and is_there():
            listening.settimeout(min(left, _POLL_SECONDS))
            with suppress(TimeoutError):
                connection, _ = listening.accept()
                if not self._serve_one(connection):
                    return connection
                connection.close()
                asked = time.monotonic()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:  # processes that captured, and have ended
                    pass
        return None

    def _serve_one(self, connection: socket.socket) -> bool:
        """Answer one request, and return whether to go on. A hook may be killed at any moment."""
        try:
            request = None
            if resident.is_own(connection):
                request = resident.receive(connection, time.monotonic() + resident.ASK_SECONDS)
            if request is None:
                return True
            if request["identity"] != self._identity or "stop" in request:
                return False
            if "status" in request:
                _reply(connection, self._status())
                return True
            if _is_gone(connection):  # the hook waited too long, and has done this by itself
                return True
        except (OSError, ValueError, KeyError, RecursionError):
            return True
        guard = Timer(_STUCK_SECONDS, os._exit, (1,))
        guard.daemon = True
        guard.start()
        with suppress(Exception):  # without an answer, the hook does the same by itself
            self._answer(connection, request)
        guard.cancel()
        os.chdir("/")
        return True

    def _answer(self, connection: socket.socket, request: dict[str, Any]) -> None:
        from memory_mesh.api import settings
        from memory_mesh.interfaces.cli.main import run

        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["environ"])
        self._configure()
        settings.forget_warnings()  # the hook says what it would say without the process
        written = request["text"].encode(errors="surrogateescape")
        errors = io.StringIO()

        def send(text: str, code: int = 0) -> None:
            self._answered += 1
            _reply(connection, {"stdout": text, "stderr": errors.getvalue(), "code": code})

        answer = _Answer(send)
        sys.stdin = io.TextIOWrapper(io.BytesIO(written))
        with redirect_stdout(answer), redirect_stderr(errors):
            code = run(request["words"])
        if not answer.sent:
            send(answer.getvalue(), code)

    def _configure(self) -> None:
        """Read how long to wait, which may have changed."""
        from memory_mesh.api.settings import load
        from memory_mesh.core.errors import SettingsError

        with suppress(SettingsError):  # a hook reports it
            self._idle_seconds = load({}).options.host_idle_seconds

    def _status(self) -> dict[str, object]:
        return {"pid": os.getpid(), "since": self._since, "answered": self._answered}


class _Answer(io.StringIO):
    """Standard output of a hook, which is sent as soon as it is flushed: the hook does not wait
    until the store is closed."""

    def __init__(self, send: Callable[[str], None]) -> None:
        super().__init__()
        self._send, self.sent = send, False

    def flush(self) -> None:
        if self.getvalue() and not self.sent:
            self.sent = True
            self._send(self.getvalue())


def _is_gone(connection: socket.socket) -> bool:
    """Return whether the other end, which says nothing more, has ended."""
    connection.settimeout(0)  # it does not wait
    try:
        return not connection.recv(1)
    except BlockingIOError:
        return False


def _reply(connection: socket.socket, answer: dict[str, object]) -> None:
    connection.settimeout(resident.ASK_SECONDS)
    connection.sendall(json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
