"""What a fork must not carry over: a SQLite connection.

A child that inherits one inherits the count of locks that only its parent holds. When the parent closes, it takes the log away
under what the child writes, and that is lost without a word. So every open store lets go before a fork, and on either side
the next use connects again.
"""

import os
import sys
from threading import RLock
from typing import Protocol
from weakref import WeakValueDictionary


class Forked(Protocol):
    """Something that holds still during a fork."""

    def before_fork(self) -> None: ...

    def after_fork(self) -> None: ...


_known: WeakValueDictionary[int, Forked] = WeakValueDictionary()
_still: list[Forked] = []
_one_at_a_time = RLock()


def watch(store: Forked) -> None:
    """Tell this one of every fork, for as long as it lives."""
    _known[id(store)] = store


def _before() -> None:
    _one_at_a_time.acquire()
    _still.extend(store for held in _known.valuerefs() if (store := held()))
    for store in _still:
        store.before_fork()


def _after() -> None:
    while _still:
        _still.pop().after_fork()
    _one_at_a_time.release()


if sys.platform != "win32":  # which has no fork
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
