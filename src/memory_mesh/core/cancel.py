"""Calling off what takes long. Whoever starts a call says how it can be told to stop; whoever waits looks now and then."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event

from memory_mesh.core.errors import Cancelled

_STOPS: ContextVar[tuple[Event, ...]] = ContextVar("memory_mesh_stops", default=())
_LOOK = 0.1  # seconds


@contextmanager
def cancellable(stop: Event) -> Iterator[None]:
    """What is called within can be called off from another thread by setting the event; it then raises `Cancelled`."""
    token = _STOPS.set((*_STOPS.get(), stop))
    try:
        yield
    finally:
        _STOPS.reset(token)


def check_cancelled() -> None:
    """Raise `Cancelled` if the caller no longer wants what is being done."""
    if any(stop.is_set() for stop in _STOPS.get()):
        raise Cancelled("the call was called off", remedy="make it again if it is still wanted")


def wait(seconds: float) -> None:
    """Sleep, unless the caller calls it off meanwhile."""
    check_cancelled()
    stops = _STOPS.get()
    innermost = stops[-1] if stops else Event()
    while seconds > 0:
        # One alone wakes at once; the others are looked at in between.
        slice_ = min(seconds, _LOOK) if len(stops) > 1 else seconds
        innermost.wait(slice_)
        seconds -= slice_
        check_cancelled()
