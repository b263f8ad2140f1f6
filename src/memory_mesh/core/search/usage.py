"""Which memories were found, counted until someone writes it down."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock, Thread


@dataclass(slots=True)
class UsageCounter:
    """What was found since the last flush: how often, and when last."""

    counts: Counter[str] = field(default_factory=Counter)
    latest: dict[str, str] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)
    writing: Lock = field(default_factory=Lock)  # held by whoever writes: a flush waits for the last
    writer: Thread | None = None  # writes them down while searches go on

    def start(self, writer: Thread) -> None:
        """Let a thread write them down, unless one does already."""
        with self.lock:
            if self.writer is None or not self.writer.is_alive():
                self.writer = writer
                writer.start()

    def add(self, ids: Sequence[str], at: str) -> int:
        with self.lock:
            self.counts.update(ids)
            self.latest.update(dict.fromkeys(ids, at))
            return self.counts.total()

    def put_back(self, taken: Mapping[str, tuple[int, str]]) -> None:
        with self.lock:
            for id_, (count, at) in taken.items():
                self.counts[id_] += count
                self.latest[id_] = max(at, self.latest.get(id_, at))

    def take(self) -> dict[str, tuple[int, str]]:
        with self.lock:
            taken = {id_: (count, self.latest[id_]) for id_, count in self.counts.items()}
            self.counts.clear()
            self.latest.clear()
            return taken
