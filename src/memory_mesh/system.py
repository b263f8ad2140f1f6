"""The operating system: locks after a fork, freed memory, and files that must be regular ones."""

import ctypes
import os
import re
import sys
from contextlib import suppress
from errno import EINVAL, EISDIR
from io import BufferedReader
from stat import S_ISDIR, S_ISREG
from typing import Any, TypeVar
from weakref import WeakSet

# --- locks ---
# They are free in a forked child, whatever the threads of its parent did at the moment of the fork.

_Lock = TypeVar("_Lock")
_locks: WeakSet[Any] = WeakSet()


def fork_safe(lock: _Lock) -> _Lock:
    """Return the lock. A child does not wait for a thread of its parent to release it, because
    it does not have that thread."""
    _locks.add(lock)
    return lock


def _release_all() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # as the locks of `logging` and `threading` do


if sys.platform != "win32":  # Windows has no fork
    os.register_at_fork(after_in_child=_release_all)


# --- freed memory ---
# glibc gives each thread a heap of its own, up to eight for each core, and keeps what is freed
# there.

_ARENA_MAX, _HEAPS = -8, 2  # M_ARENA_MAX of <malloc.h>


def release_memory() -> None:
    """Return freed memory to the system, after work that used much: a heap keeps it for its own
    thread."""
    _call("malloc_trim", 0)


def share_heaps() -> None:
    """Let all threads that start later share two heaps. For a server: a library does not change the
    process of its user.

    Under mixed load, gaps in the heaps of single threads were most of what a server grew by
    (docs/internals/soak.md).
    """
    _call("mallopt", _ARENA_MAX, _HEAPS)


def _call(function: str, *numbers: int) -> None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            getattr(ctypes.CDLL(None), function)(*numbers)


# --- regular files ---
# A pipe might never answer, and a device never end.

# Opening a pipe must not wait for its writer, and a terminal must not become that of the process.
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY")
)
_OPENED = re.compile("/dev/(?:stdin|fd/[0-9]{1,9})")


def open_regular(
    path: "str | os.PathLike[str]", *, flags: int = 0, typed: bool = False
) -> BufferedReader:
    """Open a regular file for reading. Raises `OSError`, also if it is a pipe, a device or a
    folder.

    A path that somebody `typed` may name a pipe that the shell has opened: `<(zcat export.gz)`.
    """
    if typed and _OPENED.fullmatch(os.fspath(path)):
        return open(path, "rb")
    _check(os.stat(path))  # opening some devices does something
    opened = os.open(path, _FLAGS | flags)
    try:
        _check(os.fstat(opened))  # it may have been replaced
        return open(opened, "rb")
    except OSError:
        os.close(opened)
        raise


def _check(found: os.stat_result) -> None:
    if S_ISDIR(found.st_mode):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    if not S_ISREG(found.st_mode):
        raise OSError(EINVAL, "it is not a regular file")
