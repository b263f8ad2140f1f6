"""Searches that no block tells of yet: kept in memory until they are written down in groups, so that none waits for it."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock, Thread

AT_ONCE = 500  # written in one group
CHARACTERS = 1_000_000  # or fewer, where queries are long
WAIT_MS = 60_000  # the next search after so long has them written, however few they are
MOST = 5_000  # while others keep the store busy


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """One search: who asked what and when, and how well it was answered. The query is as it was typed; it is masked when it is
    written."""

    user_id: str | None
    agent_id: str | None
    query: str
    limit: int
    filter: str | None
    ms: int
    results: int
    top_score: float

    @property
    def size(self) -> int:
        return len(self.query) + len(self.filter or "")


@dataclass(slots=True)
class Recalls:
    """What waits to be written, oldest first."""

    waiting: deque[Recall] = field(default_factory=deque)
    characters: int = 0
    lost: int = 0  # those that the store did not take
    told: bool = False  # that some were lost was said
    lock: Lock = field(default_factory=Lock)
    writing: Lock = field(default_factory=Lock)  # held by whoever writes: groups come in order, and a flush waits for the last
    writer: Thread | None = None  # writes them down while searches go on

    def add(self, recall: Recall) -> bool:
        """Whether it is time to write."""
        with self.lock:
            self.waiting.append(recall)
            self.characters += recall.size
            waited = recall.ms - self.waiting[0].ms
            return len(self.waiting) >= AT_ONCE or self.characters >= CHARACTERS or waited >= WAIT_MS

    def start(self, writer: Thread) -> None:
        """Let a thread write them down, unless one does already."""
        with self.lock:
            if self.writer is None or not self.writer.is_alive():
                self.writer = writer
                writer.start()

    def take(self) -> list[Recall]:
        """The next group; it has one at least, however long."""
        with self.lock:
            taken: list[Recall] = []
            size = 0
            while self.waiting and len(taken) < AT_ONCE and (not taken or size + self.waiting[0].size <= CHARACTERS):
                taken.append(self.waiting.popleft())
                size += taken[-1].size
            self.characters -= size
            return taken

    def put_back(self, taken: Sequence[Recall]) -> int:
        """Let a group wait for another attempt; how many there was no room for."""
        with self.lock:
            kept = taken[-room:] if (room := MOST - len(self.waiting)) > 0 else ()
            self.waiting.extendleft(reversed(kept))
            self.characters += sum(recall.size for recall in kept)
            return len(taken) - len(kept)

    def lose(self, count: int) -> bool:
        """Count what is lost; whether this is the first time."""
        with self.lock:
            first = count > 0 and not self.told
            self.lost += count
            self.told |= first
            return first
