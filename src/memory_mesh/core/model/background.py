"""Calls that can be cancelled, and work that waits to be done in the background."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event, Lock, Thread, current_thread
from typing import NamedTuple

from memory_mesh.core.errors import Cancelled
from memory_mesh.core.model import CONTENTS, Key, Row
from memory_mesh.core.text import ShortRepr

# --- cancellation ---
# The caller provides an event; code that waits, loops or is about to write checks it.

_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True, repr=False)
class Written(ShortRepr):
    """The ids of the memories that cancellable calls stored or changed, and of those that they
    erased."""

    stored: list[str] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)


_CALLS: ContextVar[tuple[tuple[Event, Written], ...]] = ContextVar(
    "memory_mesh_cancellable_calls", default=()
)


@contextmanager
def cancellable(stop: Event) -> Iterator[Written]:
    """Let another thread cancel the calls inside the block by setting the event. A cancelled call
    raises `Cancelled`.

    A write that has begun is completed. The block gets a `Written`, which lists what its calls
    wrote.
    """
    written = Written()
    with _calls(*_CALLS.get(), (stop, written)):
        yield written


def uncancellable() -> AbstractContextManager[None]:
    """Do not cancel what is inside the block: bookkeeping that must be written also for a
    cancelled call."""
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
            raise Cancelled(
                "the call was cancelled", remedy="repeat it if the result is still needed"
            )

    return check


def record_written(puts: Iterable[Row], deletes: Iterable[Key]) -> None:
    """Record the memories that were written, for the caller of a call that is cancelled too
    late."""
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


# --- background threads ---
# Usage counts and log entries of searches wait here to be written, and hooks are called.

USAGE_BATCH = 2000  # counted uses that start a write
LOG_BATCH = 500  # searches written in one group
LOG_BATCH_CHARS = 1_000_000  # or fewer, if queries are long
LOG_MAX_WAIT_MS = 60_000  # the next search after this time starts a write
LOG_MAX_PENDING = 5_000  # kept while the store is busy
JUDGE_AFTER_SECONDS = 2.0  # without a write
JUDGE_PAUSE_SECONDS = 0.05  # before each memory, about as long as judging it takes
JUDGE_AFTER_WAITS = 15  # at the latest, also if others go on writing


@dataclass(slots=True)
class WriteBehind:
    """A queue that one thread at a time writes to the store, so that no search waits for a
    write."""

    lock: Lock = field(default_factory=Lock)  # protects the entries
    # Held during a write: groups stay in order, and a flush waits for the last.
    writing: Lock = field(default_factory=Lock)
    writer: Thread | None = None

    def write_in_background(self, write: Callable[[], None]) -> None:
        """Start a thread that writes, unless one is running."""
        with self.lock:
            if self.writer is None or not self.writer.is_alive():
                self.writer = Thread(
                    target=write, name=f"memory-mesh {type(self).__name__}", daemon=True
                )
                self.writer.start()


class Found(NamedTuple):
    """How often a memory was found, when last, and the partitions that its reader could see."""

    times: int
    at: str
    partitions: tuple[str, ...]


@dataclass(slots=True)
class UsageCounter(WriteBehind):
    """The memories that were found since the last write. Readers of several users may share a
    counter."""

    found: dict[str, Found] = field(default_factory=dict)
    total: int = 0

    def add(self, ids: Sequence[str], at: str, partitions: tuple[str, ...]) -> bool:
        """Count memories and return whether it is time to write."""
        new = Found(1, at, partitions)
        with self.lock:
            for id_ in ids:
                self._add(id_, new)
            return self.total >= USAGE_BATCH

    def take(self) -> dict[str, Found]:
        """Remove and return all counts and times."""
        with self.lock:
            taken, self.found, self.total = self.found, {}, 0
            return taken

    def put_back(self, taken: Mapping[str, Found]) -> None:
        """Add counts that could not be written, for the next attempt."""
        with self.lock:
            for id_, found in taken.items():
                self._add(id_, found)

    def _add(self, id_: str, new: Found) -> None:
        known = self.found.get(id_)
        self.found[id_] = (
            Found(known.times + new.times, max(new.at, known.at), new.partitions) if known else new
        )
        self.total += new.times


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchEntry:
    """One search and its result. The query is kept as typed, and masked when it is written."""

    user_id: str | None
    agent_id: str | None
    session_id: str | None
    query: str
    limit: int
    filter: str | None
    ms: int
    results: int
    top_score: float

    @property
    def size(self) -> int:
        """The number of characters."""
        return len(self.query) + len(self.filter or "")


@dataclass(slots=True)
class SearchLog(WriteBehind):
    """Searches whose audit block is not written yet, oldest first."""

    entries: deque[SearchEntry] = field(default_factory=deque)
    characters: int = 0
    lost: int = 0  # entries that the store did not accept
    warned: bool = False  # the loss was logged

    def add(self, entry: SearchEntry) -> bool:
        """Add a search and return whether it is time to write."""
        with self.lock:
            self.entries.append(entry)
            self.characters += entry.size
            waited = entry.ms - self.entries[0].ms
            return (
                len(self.entries) >= LOG_BATCH
                or self.characters >= LOG_BATCH_CHARS
                or waited >= LOG_MAX_WAIT_MS
            )

    def take(self) -> list[SearchEntry]:
        """Remove and return the next group: at least one entry, however long."""
        with self.lock:
            taken: list[SearchEntry] = []
            size = 0
            while (
                self.entries
                and len(taken) < LOG_BATCH
                and (not taken or size + self.entries[0].size <= LOG_BATCH_CHARS)
            ):
                taken.append(self.entries.popleft())
                size += taken[-1].size
            self.characters -= size
            return taken

    def put_back(self, taken: Sequence[SearchEntry]) -> int:
        """Keep a group for another attempt and return how many entries were dropped for lack of
        room."""
        with self.lock:
            room = LOG_MAX_PENDING - len(self.entries)
            kept = taken[-room:] if room > 0 else ()
            self.entries.extendleft(reversed(kept))
            self.characters += sum(entry.size for entry in kept)
            return len(taken) - len(kept)

    def lose(self, count: int) -> bool:
        """Count lost entries and return whether this is the first loss."""
        with self.lock:
            first = count > 0 and not self.warned
            self.lost += count
            self.warned |= first
            return first


@dataclass(slots=True)
class Courier:
    """Delivers to one hook in a thread of its own, which ends when nothing is left to do."""

    lock: Lock = field(default_factory=Lock)
    closing: Event = field(default_factory=Event)
    thread: Thread | None = None
    wanted: bool = False  # something was queued since the thread last looked

    def start(self, deliver: Callable[[bool], float | None]) -> None:
        """Call `deliver` in the background. It returns in how many seconds it is called again,
        with True, or None for never."""
        with self.lock:
            self.wanted = True
            if (self.thread is None or not self.thread.is_alive()) and not self.closing.is_set():
                thread = Thread(
                    target=self._run, args=(deliver,), name="memory-mesh hook", daemon=True
                )
                thread.start()  # it waits for the lock
                self.thread = thread

    def _run(self, deliver: Callable[[bool], float | None]) -> None:
        forced = False
        while True:
            with self.lock:
                if not (self.wanted or forced):
                    self.thread = None
                    return
                self.wanted = False
            delay = deliver(forced)
            # A retry waits for its time, also if more events are queued meanwhile. Closing ends the
            # wait.
            forced = delay is not None and not self.closing.wait(delay)
            if delay is not None and not forced:
                self.wanted = False

    def close(self, seconds: float) -> bool:
        """Wait so long for the thread to deliver what it can deliver at once, and return whether
        it ended."""
        self.closing.set()
        thread = self.thread
        if thread is None or thread is current_thread():
            return True
        thread.join(seconds)
        return not thread.is_alive()


@dataclass(slots=True)
class Judging:
    """New memories of several readers that wait to be compared with older ones, in one thread,
    once nobody has written for a moment."""

    courier: Courier = field(default_factory=Courier)
    waiting: dict[Hashable, Callable[[Callable[[], bool]], None]] = field(default_factory=dict)
    written: bool = False  # something was added since the thread last looked
    waits: int = 0
    running: Lock = field(default_factory=Lock)  # held by whoever judges: nothing is judged twice

    def add(self, reader: Hashable, judge: Callable[[Callable[[], bool]], None]) -> None:
        """Let the memories of a reader be judged soon. `judge` gets a function that says whether
        to go on."""
        with self.courier.lock:
            self.waiting[reader] = judge
            self.written = True
        self.courier.start(self._run)

    def _run(self, waited: bool) -> float | None:  # noqa: FBT001  (called by `Courier`)
        with self.courier.lock:
            quiet, self.written = not self.written, False
            self.waits = self.waits + 1 if waited else 0
            if not waited or not (quiet or self.waits >= JUDGE_AFTER_WAITS):
                return JUDGE_AFTER_SECONDS
            taken, self.waiting = self.waiting, {}
        for judge in taken.values():
            judge(self._go_on)
        return None

    def _go_on(self) -> bool:
        """Return whether to judge the next memory, after a pause: what people wait for comes
        first."""
        return not self.courier.closing.wait(JUDGE_PAUSE_SECONDS)


@dataclass(slots=True)
class Couriers:
    """The couriers of the hooks of open meshes, and the numbers of the events that their writes
    queued."""

    by_hook: dict[str, Courier] = field(default_factory=dict)
    registered: set[str] = field(default_factory=set)  # hooks that the store knows
    stopped: bool = False
    _last: int = 0
    _lock: Lock = field(default_factory=Lock)

    def number(self, ms: int) -> int:
        """Return the number of the next event: its time in microseconds, and higher than any
        before."""
        with self._lock:
            self._last = max(self._last + 1, ms * 1000)
            return self._last
