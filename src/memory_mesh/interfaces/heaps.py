"""The heaps of a server. A library does not change the allocator of its process; a process of ours may."""

import ctypes
import sys
from contextlib import suppress

_ARENA_MAX, _HEAPS = -8, 2  # M_ARENA_MAX of <malloc.h>


def share_heaps() -> None:
    """Let all threads that start later share two heaps, where the C library is glibc.

    It gives each thread one of up to eight times as many as there are cores, and what is freed in one is not used by the others.
    Under mixed load, such gaps were nearly all that a server grew by (docs/soak.md).
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(_ARENA_MAX, _HEAPS)
