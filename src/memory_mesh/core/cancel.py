"""Cancellation of long calls. The caller provides an event; code that waits, loops or is about to write checks it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event

from memory_mesh.core.errors import Cancelled
from memory_mesh.core.model import CONTENTS, Key, Row
from memory_mesh.core.reprs import short_repr

_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Written:
    """The ids of the memories that cancellable calls stored or changed, and of those that they erased."""

    __repr__ = short_repr

    stored: list[str] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)


_CALLS: ContextVar[tuple[tuple[Event, Written], ...]] = ContextVar("memory_mesh_cancellable_calls", default=())


@contextmanager
def cancellable(stop: Event) -> Iterator[Written]:
    """Let another thread cancel the calls inside the block by setting the event. A cancelled call raises `Cancelled`.

    A write that has begun is completed. The block gets a `Written`, which lists what its calls wrote.
    """
    written = Written()
    with _calls(*_CALLS.get(), (stop, written)):
        yield written


def uncancellable() -> AbstractContextManager[None]:
    """Do not cancel what is inside the block: bookkeeping that must be written also for a cancelled call."""
    return _calls()


@contextmanager
def _calls(*calls: tuple[Event, Written]) -> Iterator[None]:
    token = _CALLS.set(calls)
    try:
        yield
    finally:
        _CALLS.reset(token)


def check_cancelled() -> None:
    """Raise `Cancelled` if one of the events is set."""
    cancel_check()()


def cancel_check() -> Callable[[], None]:
    """Return `check_cancelled` for this call, to be used in other threads."""
    events = [event for event, _ in _CALLS.get()]

    def check() -> None:
        if any(event.is_set() for event in events):
            raise Cancelled("the call was cancelled", remedy="repeat it if the result is still needed")

    return check


def record_written(puts: Iterable[Row], deletes: Iterable[Key]) -> None:
    """Record the memories that were written, for the caller of a call that is cancelled too late."""
    for _, written in _CALLS.get():
        written.stored.extend(row.id for row in puts if row.kind in CONTENTS)
        written.erased.extend(key.id for key in deletes if key.kind in CONTENTS)


def wait(seconds: float) -> None:
    """Sleep, or raise `Cancelled` as soon as the call is cancelled."""
    check_cancelled()
    events = [event for event, _ in _CALLS.get()]
    innermost = events[-1] if events else Event()
    while seconds > 0:
        # A thread can wait for one event only; with several, the others are polled.
        slice_ = min(seconds, _POLL_SECONDS) if len(events) > 1 else seconds
        innermost.wait(slice_)
        seconds -= slice_
        check_cancelled()
