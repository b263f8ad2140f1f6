"""Cancellation of long calls. The caller provides an event; code that waits or loops checks it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event

from memory_mesh.core.errors import Cancelled

_EVENTS: ContextVar[tuple[Event, ...]] = ContextVar("memory_mesh_cancel_events", default=())
_POLL_SECONDS = 0.1


@contextmanager
def cancellable(stop: Event) -> Iterator[None]:
    """Let another thread cancel the calls inside the block by setting the event. A cancelled call raises `Cancelled`."""
    token = _EVENTS.set((*_EVENTS.get(), stop))
    try:
        yield
    finally:
        _EVENTS.reset(token)


def check_cancelled() -> None:
    """Raise `Cancelled` if one of the events is set."""
    if any(event.is_set() for event in _EVENTS.get()):
        raise Cancelled("the call was cancelled", remedy="repeat it if the result is still needed")


def wait(seconds: float) -> None:
    """Sleep, or raise `Cancelled` as soon as the call is cancelled."""
    check_cancelled()
    events = _EVENTS.get()
    innermost = events[-1] if events else Event()
    while seconds > 0:
        # A thread can wait for one event only; with several, the others are polled.
        slice_ = min(seconds, _POLL_SECONDS) if len(events) > 1 else seconds
        innermost.wait(slice_)
        seconds -= slice_
        check_cancelled()
