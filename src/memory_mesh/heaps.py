"""What the C library keeps of freed memory. glibc gives each thread a heap of its own, up to eight for each core."""

import ctypes
import sys
from contextlib import suppress

_ARENA_MAX, _HEAPS = -8, 2  # M_ARENA_MAX of <malloc.h>


def release_memory() -> None:
    """Return freed memory to the system, after work that used much: a heap keeps it for its own thread."""
    _call("malloc_trim", 0)


def share_heaps() -> None:
    """Let all threads that start later share two heaps. For a server: a library does not change the process of its user.

    Under mixed load, gaps in the heaps of single threads were most of what a server grew by (docs/soak.md).
    """
    _call("mallopt", _ARENA_MAX, _HEAPS)


def _call(function: str, *numbers: int) -> None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            getattr(ctypes.CDLL(None), function)(*numbers)
