"""Locks that are free in a forked child, whatever the threads of its parent did at the moment of the fork."""

import os
import sys
from typing import Any, TypeVar
from weakref import WeakSet

_Lock = TypeVar("_Lock")
_locks: WeakSet[Any] = WeakSet()


def fork_safe(lock: _Lock) -> _Lock:
    """Return the lock. A child does not wait for a thread of its parent to release it, because it does not have that thread."""
    _locks.add(lock)
    return lock


def _release_all() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # as the locks of `logging` and `threading` do


if sys.platform != "win32":  # Windows has no fork
    os.register_at_fork(after_in_child=_release_all)
